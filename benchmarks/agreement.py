"""Whether the contestants did the same work: the same documents kept, the same ids in the same order."""

import io
import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import zstandard

from benchmarks.peers import DOCUMENTS_AT_ONCE, SEQUENCE_LENGTH


def main(output: str) -> None:
    """Compare what a round left in a folder, and print how much was compared; AssertionError when it differs."""
    folder = Path(output)
    documents = compare_documents(folder / "parts/part.parquet", folder / "authors.jsonl.zst")
    tokens, rows = compare_tokens(folder / "parts/part.npy", folder / "parts/part.offsets.npy", folder)
    print(json.dumps({"documents": documents, "tokens": tokens, "rows": rows}))


def compare_documents(ours: Path, authors: Path) -> int:
    """The number of documents kept, equal by id and in order."""
    with open(authors, "rb") as file:
        lines = io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file))
        theirs = [json.loads(line)["warc_headers"]["warc-record-id"] for line in lines]
    assert pyarrow.parquet.read_table(ours)["id"].to_pylist() == theirs
    return len(theirs)


def compare_tokens(ours: Path, offsets: Path, folder: Path) -> tuple[int, int]:
    """The number of tokens, equal for all, and of those in the authors' rows, as they drop remainders."""
    stream = np.load(ours)
    np.testing.assert_array_equal(stream, np.load(folder / "fast.npy"))
    edges = [*np.load(offsets)["start"][::DOCUMENTS_AT_ONCE], len(stream)]
    rows = [stream[start:end][: (end - start) // SEQUENCE_LENGTH * SEQUENCE_LENGTH] for start, end in pairwise(edges)]
    with pyarrow.memory_map(str(folder / "rows.arrow")) as source:
        theirs = pyarrow.ipc.open_stream(source).read_all()["input_ids"]
        ids = np.concatenate([chunk.flatten().to_numpy() for chunk in theirs.chunks])
    np.testing.assert_array_equal(np.concatenate(rows), ids)
    return len(stream), len(ids)


if __name__ == "__main__":
    main(*sys.argv[1:])
