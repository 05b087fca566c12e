"""What the corpus stage counted, read back and checked: documents and tokens of each part, in natural order."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json

Row = dict[str, Any]

KEPT = {"read": int, "kept": int, "dropped": {str: int}}  # the first is the sum of the others, and of bad lines
COUNTS = {"part": str, "taken": bool, **KEPT, "bad": int, "without_url": int, "characters": KEPT}
COUNTS |= {"histograms": {str: {"read": [int], "kept": [int]}}}
RECORD = {"part": str, "documents": int, "tokens": int, "words": int, "histogram": [int]}
MANIFEST = {"documents": {str: int}, "rows": {"train": int, "validation": int}, "sequence_length": int, "tokens": int}
MANIFEST |= {"remainder_tokens": int, "surplus_tokens": {str: int}}


def read_counts(files: list[Path]) -> list[Row]:
    """The counts of each part, en_meta_part_9 before en_meta_part_10.

    DataError names the file and the part where documents read are not kept + dropped + bad, or characters read not
    kept + dropped, or the part that is there twice.
    """
    counts = [read_json(file, COUNTS, "run filter-part again") for file in files]
    for part, file in zip(counts, files, strict=True):
        _check_sum(file, part["part"], "", part, part["bad"])
        _check_sum(file, part["part"], "characters ", part["characters"], 0)
    _refuse_duplicates(counts, "counts")
    return sorted(counts, key=lambda part: _natural(part["part"]))


def read_records(files: list[Path], counts: list[Row]) -> list[Row]:
    """What tokenizing recorded of each part, in the order of `counts`.

    DataError names the part that has only counts or only a record, and the file whose documents are not those kept.
    """
    records = [read_json(file, RECORD, "run tokenize-part again") for file in files]
    _refuse_duplicates(records, "records")
    kept = {part["part"]: part["kept"] for part in counts}
    for record, file in zip(records, files, strict=True):
        part = record["part"]
        if part not in kept:
            raise DataError(f"{file}: part {part} has no counts; give both files of each part")
        if record["documents"] != kept[part]:
            raise DataError(
                f"{file}: part {part}: {record['documents']} documents have tokens, but {kept[part]} were kept; "
                "run tokenize-part again"
            )
    by_part = {record["part"]: record for record in records}
    for part in kept:
        if part not in by_part:
            raise DataError(
                f"records: part {part} has counts but no record of its tokens; give both files of each part"
            )
    return [by_part[part] for part in kept]


def not_read(counts: list[Row]) -> str:
    """The parts that were left out because there were enough documents, in words for captions; empty if none."""
    names = [part["part"] for part in counts if not part["taken"]]
    if not names:
        return ""
    listed = ", ".join(names) if len(names) <= 3 else f"{len(names)} parts from {names[0]} to {names[-1]}"
    return f"not read, because there were enough documents: {listed}"


def _check_sum(file: Path, name: str, what: str, counts: Row, bad: int) -> None:
    dropped = sum(counts["dropped"].values())
    if counts["read"] != counts["kept"] + bad + dropped:
        raise DataError(
            f"{file}: part {name}: {what}read {counts['read']} is not kept {counts['kept']} + bad {bad} "
            f"+ dropped {dropped}; run filter-part again"
        )


def _refuse_duplicates(entries: list[Row], kind: str) -> None:
    for name, following in pairwise(sorted(entry["part"] for entry in entries)):
        if name == following:
            raise DataError(f"{kind}: part {name} is there twice; give each part once")


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name)]
