"""Compare two experiments by name, not by path: python tools/compare_results.py BEFORE AFTER

BEFORE and AFTER are the folders of two experiments, results/<experiment>. Names are architecture, size, operator,
seeds, step, task, part, table, row and column; a key at the end of a folder's name is no part of them. Compared are
weights (by tensor, bit by bit), files and settings of checkpoints, metrics.jsonl, done.json, scores, predictions,
classifiers, robustness, minimal pairs, rows of tasks, token ids, counts, shards, and the cells of tables. Prints how
many of a kind are equal, then what differs or is on one side alone; exits with 1 where anything is, but for what clocks
and machines measured.
"""

import csv
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from safetensors import safe_open

Entry = tuple[str, str, str]  # kind, name, value
LISTED = 12  # of a kind
SHOWN = 90  # characters of a value
KEYED = re.compile(r"-[0-9a-f]{8}$")
CLOCK = "measured by clocks and machines"
CLOCKED_TABLES = ("provenance", "runs", "hours")
CLOCKED_COLUMNS = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")
IDENTITY = ("size", "attention", "pretrain_seed", "architecture", "step", "task", "finetune_seed")
MACHINE = ("versions", "hash")  # of a record
MEASURED = ("metrics", "details", "majority", "constant_prediction")  # the scores of a record


def entries_of(folder: Path) -> Iterator[Entry]:
    """All entries of an experiment whose experiment.json names its files."""
    experiment, above = json.loads((folder / "experiment.json").read_text()), folder.parent.parent
    inputs, keyed = experiment["inputs"], [above / Path(file).parent for file in experiment["settings"]]
    for run in [*inputs["runs"], *inputs.get("runs_of_others", [])]:
        yield from _run(above / run)
    suites = [files for option in ("scores", "curve") for files in inputs[option].values()]
    scores = [above / file for files in [*suites, inputs.get("robustness", [])] for file in files]
    for file in filter(Path.is_file, dict.fromkeys(scores)):
        yield from _records(json.loads(file.read_text()))
    for checkpoint in dict.fromkeys(file.parent for file in scores):
        for file in sorted(checkpoint.glob("finetuned/*/seed-*.json")):
            yield from _finetuned(file)
    for file in filter(Path.is_file, (above / judged for judged in inputs.get("blimp", []))):
        yield from _minimal_pairs(json.loads(file.read_text()))
    for rows in (folder for folder in keyed if folder.parent.name == "tasks"):
        edited = " robustness" if KEYED.sub("", rows.name).endswith("-robustness") else ""
        for file in sorted(rows.glob("*.parquet")):
            yield from _rows(f"{file.stem}{edited}", file)
    for file in filter(Path.is_file, (above / part for part in inputs.get("parts", []))):
        content = json.loads(file.read_text())
        yield from _part(file, content["counts"], content["record"])
    for place in keyed:
        if place.parent.name == "corpus" and KEYED.sub("", place.name) == "shards":
            yield from _packed(place)
        yield from _blob("blocklist", place / "blocklist.marisa")
    yield from _tables(folder / "report/tables")
    for file in inputs.get("anatomy", []):
        yield from _table(above / file, "anatomy")


def _run(folder: Path) -> Iterator[Entry]:
    """A pre-training: what it measured, and its checkpoints; nothing where it is not finished."""
    if not (folder / "done.json").is_file():
        return
    done = json.loads((folder / "done.json").read_text())
    run = _name(done)
    yield "metrics.jsonl", run, _digest((folder / "metrics.jsonl").read_bytes())
    yield from _items("done.json", run, done)
    for checkpoint in sorted(folder.glob("step-*[0-9]/")):
        step = f"{run} step {int(checkpoint.name.removeprefix('step-'))}"
        yield from _weights("weights", step, checkpoint / "model.safetensors")
        for file in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
            yield from _blob("checkpoint files", checkpoint / file, f"{step} {file}")
        config = json.loads((checkpoint / "config.json").read_text())
        yield from _items("checkpoint settings", step, config.pop("pretraining"))
        yield from _items("checkpoint settings", f"{step} config.json", config)


def _records(content: Any) -> Iterator[Entry]:
    """Records of scores, or of robustness; the hash of a record covers its versions, and is not compared."""
    for record in content if isinstance(content, list) else []:
        name, sets = _name(record), record.get("sets", {})
        for key, value in record.items():
            if key in (*IDENTITY, *MACHINE, "sets"):
                continue
            kind = "robustness" if key == "clean" else "scores" if key in MEASURED else "records"
            yield kind, f"{name}{' robustness' if sets and kind == 'records' else ''} {key}", _text(value)
        for label, entries in sets.items():
            yield from _items("robustness", f"{name} {label}", entries)


def _finetuned(file: Path) -> Iterator[Entry]:
    """Predictions of a fine-tuned model and, where they were kept, its weights."""
    content = json.loads(file.read_text())
    name = _name(content["record"])
    yield from _items("predictions", name, content.get("predictions", {}))  # none of robustness
    if (weights := file.with_suffix(".safetensors")).is_file():
        yield from _weights("classifiers", name, weights)


def _minimal_pairs(record: dict[str, Any]) -> Iterator[Entry]:
    """How a checkpoint judges pairs."""
    yield from _items("minimal pairs", _name(record), record["paradigms"])
    rest = {key: value for key, value in record.items() if key not in (*IDENTITY, *MACHINE, "paradigms")}
    yield from _items("records", f"{_name(record)} minimal pairs", rest)


def _rows(name: str, file: Path) -> Iterator[Entry]:
    """The columns of prepared rows."""
    table = pyarrow.parquet.read_table(file)
    for column in table.column_names:
        yield "rows of tasks", f"{name} {column}", _digest(_text(table[column].to_pylist()).encode())


def _part(file: Path, counts: dict[str, Any], record: dict[str, Any]) -> Iterator[Entry]:
    """The tokens of a part, and what was counted."""
    for suffix in (".npy", ".offsets.npy"):
        yield from _array("tokens", f"{file.stem}{suffix}", file.with_suffix(suffix))
    yield from _items("counts of parts", f"{file.stem} counts", counts)
    yield from _items("counts of parts", f"{file.stem} record", record)


def _packed(folder: Path) -> Iterator[Entry]:
    """The rows that a pre-training reads, and their manifest."""
    for file in sorted(folder.glob("*.npy")):
        yield from _array("shards", file.name, file)
    for file in sorted(folder.glob("*.json")):
        if file.name != "settings.json":
            yield from _items("shards", file.name, json.loads(file.read_text()))


def _tables(folder: Path) -> Iterator[Entry]:
    """The cells of tables, and the lines of their Markdown."""
    for file in sorted(folder.glob("*.csv")):
        yield from _table(file)
    for file in sorted(folder.glob("*.md")):
        clocked = file.stem in (*CLOCKED_TABLES, "table2_training")
        for number, line in enumerate(file.read_text().splitlines()):
            yield CLOCK if clocked else "tables in Markdown", f"{file.name} line {number}", line


def _table(file: Path, kind: str = "cells of tables") -> Iterator[Entry]:
    """The cells of a csv file, but for a column of paths."""
    if file.is_file():
        header, *rows = csv.reader(file.read_text().splitlines())
        for number, row in enumerate(rows):
            for column, cell in zip(header, row, strict=True):
                if column != "checkpoint":
                    clocked = file.stem in CLOCKED_TABLES or column in CLOCKED_COLUMNS
                    yield CLOCK if clocked else kind, f"{file.stem} row {number} {column}", cell


def _weights(kind: str, name: str, file: Path) -> Iterator[Entry]:
    with safe_open(file, framework="np") as tensors:
        for tensor in tensors.keys():  # noqa: SIM118
            yield kind, f"{name} {tensor}", _of_array(tensors.get_tensor(tensor))


def _array(kind: str, name: str, file: Path) -> Iterator[Entry]:
    if file.is_file():
        yield kind, name, _of_array(np.load(file, mmap_mode="r"))


def _of_array(values: np.ndarray) -> str:
    return f"{values.dtype} {values.shape} {_digest(np.ascontiguousarray(values).tobytes())}"


def _blob(kind: str, file: Path, name: str = "") -> Iterator[Entry]:
    if file.is_file():
        yield kind, name or file.name, _digest(file.read_bytes())


def _items(kind: str, name: str, values: dict[str, Any]) -> Iterator[Entry]:
    for key, value in values.items():
        yield kind, f"{name} {key}", _text(value)


def _name(record: dict[str, Any]) -> str:
    """A run, checkpoint or fine-tuning, by its record."""
    architecture = record.get("architecture", "encoder")
    rest = [f"{key} {record[key]}" for key in ("step", "task", "finetune_seed") if key in record]
    return " ".join([architecture, f"{record['size']}-{record['attention']} seed {record['pretrain_seed']}", *rest])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def collected(folder: Path) -> dict[tuple[str, str], str]:
    """The entries of an experiment by kind and name; it ends where a name stands for two values."""
    found: dict[tuple[str, str], str] = {}
    for kind, name, value in entries_of(folder):
        if found.setdefault((kind, name), value) != value:
            sys.exit(f"{folder}: {kind}: {name} has two values: {found[kind, name][:SHOWN]} and {value[:SHOWN]}")
    return found


def compare(before: Path, after: Path) -> bool:
    """Print what is equal and what is not; returns whether all is equal but for what clocks and machines measured."""
    old, new = collected(before), collected(after)
    unequal = [entry for entry in dict.fromkeys([*old, *new]) if old.get(entry) != new.get(entry)]
    kinds = dict.fromkeys(kind for kind, _ in [*old, *new])
    words = {
        entry: "differs" if entry in old and entry in new else "gone" if entry in old else "new" for entry in unequal
    }
    for kind in kinds:
        counts = Counter(word for (of, _), word in words.items() if of == kind)
        equal = sum(of == kind for of, _ in old) - counts["differs"] - counts["gone"]
        print(f"{kind}: {equal:,} equal" + "".join(f", {count:,} {word}" for word, count in counts.items()))
    for kind in kinds:
        _list([entry for entry in unequal if entry[0] == kind and kind != CLOCK], words, old, new)
    return all(kind == CLOCK for kind, _ in unequal)


def _list(entries: Iterable[tuple[str, str]], words: dict, old: dict, new: dict) -> None:
    entries = sorted(entries, key=lambda entry: words[entry] != "differs")
    for entry in entries[:LISTED]:
        values = " | ".join(side[entry][:SHOWN] for side in (old, new) if entry in side)
        print(f"{words[entry]}: {entry[0]}: {entry[1]}: {values}")
    if len(entries) > LISTED:
        print(f"… and {len(entries) - LISTED:,} more of {entries[0][0]}")


if __name__ == "__main__":
    sys.exit(not compare(Path(sys.argv[1]), Path(sys.argv[2])))
