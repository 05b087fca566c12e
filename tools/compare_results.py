"""Compare two experiments by name, not by path: python tools/compare_results.py BEFORE AFTER

BEFORE and AFTER are the folders of two experiments, results/<experiment>. Names are host, size, operator, seeds, step,
task, part, table, row and column; a key at the end of a folder's name is no part of them. Compared are weights (by
tensor, bit by bit), files and settings of checkpoints, metrics.jsonl, done.json, scores, predictions, classifiers,
robustness, judgements, rows of tasks, token ids, counts, shards, and the cells of tables. Prints how many of a
kind are equal, then what differs or is on one side alone; exits with 1 where anything is, but for what clocks and
machines measured.
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

Fact = tuple[str, str, str]  # kind, name, value
LISTED = 12  # of a kind
SHOWN = 90  # characters of a value
KEYED = re.compile(r"-[0-9a-f]{8}$")
CLOCK = "measured by clocks and machines"
CLOCKED_TABLES = ("provenance", "runs", "hours")
CLOCKED_COLUMNS = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")
IDENTITY = ("size", "attention", "pretrain_seed", "model_host", "step", "task", "finetune_seed")
MACHINE = ("versions", "hash")  # of a record
MEASURED = ("metrics", "details", "majority", "constant_prediction")  # the scores of a record


def facts_of(folder: Path) -> Iterator[Fact]:
    """All facts of an experiment whose experiment.json names its files."""
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
        yield from _judgement(json.loads(file.read_text()))
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
    for option in ("anatomy", "probes"):
        for file in inputs.get(option, []):
            yield from _table(above / file, "probes and anatomy")


def _run(folder: Path) -> Iterator[Fact]:
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


def _records(content: Any) -> Iterator[Fact]:
    """Records of scores, or of robustness; the hash of a record covers its versions, and is not compared."""
    for record in content if isinstance(content, list) else []:
        name, sets = _name(record), record.get("sets", {})
        for key, value in record.items():
            if key in (*IDENTITY, *MACHINE, "sets"):
                continue
            kind = "robustness" if key == "clean" else "scores" if key in MEASURED else "records"
            yield kind, f"{name}{' robustness' if sets and kind == 'records' else ''} {key}", _text(value)
        for label, facts in sets.items():
            yield from _items("robustness", f"{name} {label}", facts)


def _finetuned(file: Path) -> Iterator[Fact]:
    """Predictions of a fine-tuned model and, where they were kept, its weights."""
    content = json.loads(file.read_text())
    name = _name(content["record"])
    yield from _items("predictions", name, content.get("predictions", {}))  # none of robustness
    if (weights := file.with_suffix(".safetensors")).is_file():
        yield from _weights("classifiers", name, weights)


def _judgement(record: dict[str, Any]) -> Iterator[Fact]:
    """How a checkpoint judges pairs."""
    yield from _items("judgements", _name(record), record["paradigms"])
    rest = {key: value for key, value in record.items() if key not in (*IDENTITY, *MACHINE, "paradigms")}
    yield from _items("records", f"{_name(record)} judgement", rest)


def _rows(name: str, file: Path) -> Iterator[Fact]:
    """The columns of prepared rows."""
    table = pyarrow.parquet.read_table(file)
    for column in table.column_names:
        yield "rows of tasks", f"{name} {column}", _digest(_text(table[column].to_pylist()).encode())


def _part(file: Path, counts: dict[str, Any], record: dict[str, Any]) -> Iterator[Fact]:
    """The tokens of a part, and what was counted."""
    for suffix in (".npy", ".offsets.npy"):
        yield from _array("tokens", f"{file.stem}{suffix}", file.with_suffix(suffix))
    yield from _items("counts of parts", f"{file.stem} counts", counts)
    yield from _items("counts of parts", f"{file.stem} record", record)


def _packed(folder: Path) -> Iterator[Fact]:
    """The rows that a pre-training reads, and their manifest."""
    for file in sorted(folder.glob("*.npy")):
        yield from _array("shards", file.name, file)
    for file in sorted(folder.glob("*.json")):
        if file.name != "settings.json":
            yield from _items("shards", file.name, json.loads(file.read_text()))


def _tables(folder: Path) -> Iterator[Fact]:
    """The cells of tables, and the lines of their Markdown."""
    for file in sorted(folder.glob("*.csv")):
        yield from _table(file)
    for file in sorted(folder.glob("*.md")):
        clocked = file.stem in (*CLOCKED_TABLES, "table2_training")
        for number, line in enumerate(file.read_text().splitlines()):
            yield CLOCK if clocked else "tables in Markdown", f"{file.name} line {number}", line


def _table(file: Path, kind: str = "cells of tables") -> Iterator[Fact]:
    """The cells of a csv file, but for a column of paths."""
    if file.is_file():
        header, *rows = csv.reader(file.read_text().splitlines())
        for number, row in enumerate(rows):
            for column, cell in zip(header, row, strict=True):
                if column != "checkpoint":
                    clocked = file.stem in CLOCKED_TABLES or column in CLOCKED_COLUMNS
                    yield CLOCK if clocked else kind, f"{file.stem} row {number} {column}", cell


def _weights(kind: str, name: str, file: Path) -> Iterator[Fact]:
    with safe_open(file, framework="np") as tensors:
        for tensor in tensors.keys():  # noqa: SIM118
            yield kind, f"{name} {tensor}", _of_array(tensors.get_tensor(tensor))


def _array(kind: str, name: str, file: Path) -> Iterator[Fact]:
    if file.is_file():
        yield kind, name, _of_array(np.load(file, mmap_mode="r"))


def _of_array(values: np.ndarray) -> str:
    return f"{values.dtype} {values.shape} {_digest(np.ascontiguousarray(values).tobytes())}"


def _blob(kind: str, file: Path, name: str = "") -> Iterator[Fact]:
    if file.is_file():
        yield kind, name or file.name, _digest(file.read_bytes())


def _items(kind: str, name: str, values: dict[str, Any]) -> Iterator[Fact]:
    for key, value in values.items():
        yield kind, f"{name} {key}", _text(value)


def _name(record: dict[str, Any]) -> str:
    """A run, checkpoint or fine-tuning, by its record."""
    host = record.get("model_host", "encoder")
    rest = [f"{key} {record[key]}" for key in ("step", "task", "finetune_seed") if key in record]
    return " ".join([host, f"{record['size']}-{record['attention']} seed {record['pretrain_seed']}", *rest])


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def collected(folder: Path) -> dict[tuple[str, str], str]:
    """The facts of an experiment by kind and name; it ends where a name stands for two values."""
    found: dict[tuple[str, str], str] = {}
    for kind, name, value in facts_of(folder):
        if found.setdefault((kind, name), value) != value:
            sys.exit(f"{folder}: {kind}: {name} has two values: {found[kind, name][:SHOWN]} and {value[:SHOWN]}")
    return found


def compare(before: Path, after: Path) -> bool:
    """Print what is equal and what is not; returns whether all is equal but for what clocks and machines measured."""
    old, new = collected(before), collected(after)
    unequal = [fact for fact in dict.fromkeys([*old, *new]) if old.get(fact) != new.get(fact)]
    kinds = dict.fromkeys(kind for kind, _ in [*old, *new])
    words = {fact: "differs" if fact in old and fact in new else "gone" if fact in old else "new" for fact in unequal}
    for kind in kinds:
        counts = Counter(word for (of, _), word in words.items() if of == kind)
        equal = sum(of == kind for of, _ in old) - counts["differs"] - counts["gone"]
        print(f"{kind}: {equal:,} equal" + "".join(f", {count:,} {word}" for word, count in counts.items()))
    for kind in kinds:
        _list([fact for fact in unequal if fact[0] == kind and kind != CLOCK], words, old, new)
    return all(kind == CLOCK for kind, _ in unequal)


def _list(facts: Iterable[tuple[str, str]], words: dict, old: dict, new: dict) -> None:
    facts = sorted(facts, key=lambda fact: words[fact] != "differs")
    for fact in facts[:LISTED]:
        values = " | ".join(side[fact][:SHOWN] for side in (old, new) if fact in side)
        print(f"{words[fact]}: {fact[0]}: {fact[1]}: {values}")
    if len(facts) > LISTED:
        print(f"… and {len(facts) - LISTED:,} more of {facts[0][0]}")


if __name__ == "__main__":
    sys.exit(not compare(Path(sys.argv[1]), Path(sys.argv[2])))
