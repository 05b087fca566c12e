"""From a row of a shard back to the documents that it was made of."""

import json
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Any

import numpy as np

from symbert.corpus.arrays import open_array
from symbert.corpus.shards import DOCUMENT
from symbert.errors import DataError, MissingInputError, UsageError
from symbert.files import read_json


def locate_sample(manifest: Path, filtered: Path, split: str, row: int) -> None:
    """Print a JSON line for each document in row `row` (from 0) of `split`, train or validation.

    `part` and `line` (from 1) are the document's place in the raw corpus, `id` and `url` its own, and `tokens` the
    first token and the one after the last that it has in the row. `filtered` is the folder of kept documents.
    """
    for document in documents_in_row(manifest, split, row):
        print(json.dumps({**document, **_origin(filtered, document["part"], document["line"])}, ensure_ascii=False))


def documents_in_row(manifest: Path, split: str, row: int) -> list[dict[str, Any]]:
    """Part, line and token range of each document in a row; UsageError for a row that there is not."""
    facts = read_json(manifest, {"rows": {str: int}, "sequence_length": int, "parts": [str]}, "run pack_shards again")
    if split not in facts["rows"]:
        raise UsageError(f"split {split!r}: choose from {', '.join(facts['rows'])}")
    rows, length = facts["rows"][split], facts["sequence_length"]
    if not 0 <= row < rows:
        raise UsageError(f"row {row}: {split} has rows 0 to {rows - 1}")
    index = open_array(Path(manifest).parent / f"{split}-documents.npy", DOCUMENT)
    begin, end = row * length, (row + 1) * length
    first = bisect_right(index["start"], begin) - 1  # reads a few places of the file; numpy would copy it
    after = bisect_left(index["start"], end)
    starts = np.maximum(index["start"][first:after] - begin, 0)
    ends = np.append(starts[1:], length)
    return [
        {"part": facts["parts"][part], "line": int(line), "tokens": [int(start), int(end)]}
        for part, line, start, end in zip(
            index["part"][first:after], index["line"][first:after], starts, ends, strict=True
        )
    ]


def _origin(filtered: Path, part: str, line: int) -> dict[str, Any]:
    import pyarrow.parquet

    path = Path(filtered) / f"{part}.parquet"
    if not path.is_file():
        raise MissingInputError(f"{path}: file not found; run filter-part for {part}")
    found = pyarrow.parquet.read_table(path, columns=["id", "url"], filters=[("line", "==", line)]).to_pylist()
    if len(found) != 1:
        raise DataError(f"{path}: {len(found)} documents of line {line}, expected 1; delete it and run filter-part")
    return found[0]
