"""What the corpus stage counted, read back and checked: documents and tokens of each part, in natural order."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json

Row = dict[str, Any]

REMEDY = "delete it and run again"
KEPT = {"read": int, "kept": int, "dropped": {str: int}}  # the first is the sum of the others, and of bad lines
COUNTS = {"part": str, **KEPT, "bad": int, "without_url": int, "characters": KEPT}
COUNTS |= {"histograms": {str: {"read": [int], "kept": [int]}}}
RECORD = {"part": str, "documents": int, "tokens": int, "words": int, "histogram": [int]}
PART = {"counts": COUNTS, "record": RECORD}
MANIFEST = {"documents": {str: int}, "rows": {"train": int, "validation": int}, "sequence_length": int, "tokens": int}
MANIFEST |= {"remainder_tokens": int, "surplus_tokens": {str: int}}


def read_parts(files: list[Path]) -> list[Row]:
    """The counts and the record of each part, en_meta_part_9 before en_meta_part_10.

    DataError names the file and the part where documents read are not kept + dropped + bad, or characters read not
    kept + dropped, or documents with tokens not documents kept, and the part that is there twice.
    """
    parts = [read_json(file, PART) for file in files]
    for part, file in zip(parts, files, strict=True):
        counts, record = part["counts"], part["record"]
        _check_sum(file, counts["part"], "", counts, counts["bad"])
        _check_sum(file, counts["part"], "characters ", counts["characters"], 0)
        if record["documents"] != counts["kept"]:
            raise DataError(
                f"{file}: part {counts['part']}: {record['documents']} documents have tokens, but {counts['kept']} "
                f"were kept; {REMEDY}"
            )
    for name, following in pairwise(sorted(part["counts"]["part"] for part in parts)):
        if name == following:
            raise DataError(f"parts: part {name} is there twice; give each part once")
    return sorted(parts, key=lambda part: _natural(part["counts"]["part"]))


def _check_sum(file: Path, name: str, what: str, counts: Row, bad: int) -> None:
    dropped = sum(counts["dropped"].values())
    if counts["read"] != counts["kept"] + bad + dropped:
        raise DataError(
            f"{file}: part {name}: {what}read {counts['read']} is not kept {counts['kept']} + bad {bad} "
            f"+ dropped {dropped}; {REMEDY}"
        )


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name)]
