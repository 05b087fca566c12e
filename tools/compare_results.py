"""Compare the results of two versions of the project by name, not by path: python tools/compare_results.py BEFORE AFTER

Names are host, size, operator, seeds, step and task; a key at the end of a folder's name is no part of them. Compared
are all weights (by tensor, bit by bit), metrics.jsonl, predictions, scores and losses in records, and the cells of
tables. Prints how many of each kind are equal, then each name that differs or that one side lacks; exits with 1 then.
"""

import csv
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import safe_open

RUN = re.compile(r"(?P<model>[a-z]\w*-[^/]+?)(?:-[0-9a-f]{8})?/seed-(?P<seed>\d+)(?:/step-0*(?P<step>\d+))?")
HOSTS = {"decoder": "decoder", "translation": "encoder-decoder", "encoder-decoder": "encoder-decoder"}
# What a record measured; what else it says is how it was made.
MEASURED = ("metrics", "details", "majority", "clean", "sets", "paradigms", "parameters")
IDENTITY = ("size", "attention", "pretrain_seed", "step", "task", "finetune_seed")
KEY = re.compile(r"-[0-9a-f]{8}$")
FOLDER_OF_STATE = re.compile(r"/state/(resume|weights)/")


def facts_of(results: Path) -> Iterator[tuple[str, str, Any]]:
    """Kind, name and value of all that is compared in a folder of results."""
    for path in sorted(results.rglob("*")):
        place = str(path.relative_to(results))
        run, host = RUN.search(place), next((HOSTS[part] for part in path.parts if part in HOSTS), "encoder")
        name = f"{host} {run['model']} seed {run['seed']} step {run['step']}" if run else place
        if FOLDER_OF_STATE.search(place) or not path.is_file():
            continue
        if path.suffix == ".safetensors" and run:
            finetuned = f"{path.parent.name} {KEY.sub('', path.stem)} " if path.name != "model.safetensors" else ""
            with safe_open(path, framework="np") as tensors:
                for tensor in tensors.keys():  # noqa: SIM118
                    digest = hashlib.sha256(tensors.get_tensor(tensor).tobytes()).hexdigest()
                    yield "weights", f"{name} {finetuned}{tensor}", digest
        elif path.name == "metrics.jsonl":
            yield "metrics.jsonl", name, path.read_bytes()
        elif path.suffix == ".json" and run:
            content = json.loads(path.read_text())
            for record in content if isinstance(content, list) else [content]:
                yield from _facts_of_record(record, host)
        elif path.suffix == ".csv" and "tables" in path.parts:
            header, *rows = csv.reader(path.read_text().splitlines())
            for number, row in enumerate(rows):
                for column, cell in zip(header, row, strict=True):
                    yield f"table {path.stem}", f"row {number} {column}", cell


def _facts_of_record(content: dict[str, Any], host: str) -> Iterator[tuple[str, str, Any]]:
    record = content.get("record", content)
    if "attention" not in record or "pretrain_seed" not in record:
        return
    name = " ".join([host, *(f"{key} {record[key]}" for key in IDENTITY if key in record)])
    for key, value in record.items():
        if key in MEASURED or key.startswith("validation_"):
            yield "records", f"{name} {key}", json.dumps(value, sort_keys=True)
    for split, predictions in content.get("predictions", {}).items():
        yield "predictions", f"{name} {split}", json.dumps(predictions)


def compare(before: Path, after: Path) -> int:
    """Print what is equal and what is not; gives the number of names that are not."""
    old, new = ({(kind, name): value for kind, name, value in facts_of(folder)} for folder in (before, after))
    equal = Counter(kind for (kind, name), value in old.items() if new.get((kind, name)) == value)
    unequal = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    for kind in sorted({kind for kind, _ in (*old, *new)}):
        of_kind = [key for key in unequal if key[0] == kind]
        counts = Counter("differ" if key in old and key in new else "gone" if key in old else "new" for key in of_kind)
        print(f"{kind}: {equal[kind]} equal" + "".join(f", {count} {word}" for word, count in sorted(counts.items())))
    for kind, name in unequal:
        if (kind, name) in old and (kind, name) in new:
            print(f"differs: {kind}: {name}")
    return len(unequal)


if __name__ == "__main__":
    sys.exit(compare(Path(sys.argv[1]), Path(sys.argv[2])) > 0)
