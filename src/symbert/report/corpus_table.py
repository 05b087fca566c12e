"""The corpus table: what was read, why documents were dropped, and what was packed."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from symbert.corpus.reasons import REASONS
from symbert.errors import DataError
from symbert.files import read_json
from symbert.report import captions, published
from symbert.report.formats import Table, table_of
from symbert.settings import ReportSettings

PARTS_SHOWN = 12  # more parts than these are listed in the csv file only

Row = dict[str, Any]


def corpus_table(counts: list[Path], manifest: Path, settings: ReportSettings) -> Table:
    """Documents per part and in all, tokens and rows in all, and the paper's numbers in the last row.

    DataError names the part where read is not kept + dropped + bad, or that is there twice.
    """
    parts = sorted((_checked(read_json(file), file) for file in counts), key=lambda part: _natural(part["part"]))
    _refuse_duplicates([part["part"] for part in parts])
    found = {reason for part in parts for reason in part["dropped"]}
    reasons = [*REASONS, *sorted(found - set(REASONS))]
    rows = [_part_row(part, reasons) for part in parts]
    total = _total_row(rows, read_json(manifest), manifest)
    paper = {**dict.fromkeys(total), "part": "the paper", **published.CORPUS}
    caption = (
        f"Corpus. {captions.experiment_of(settings)}; {captions.corpus_of(settings)}. Documents read, bad, dropped by "
        f"the first reason that applies, and kept; documents used, tokens and rows of {settings.sequence_length} "
        f"tokens after packing. Last row: {published.PAPER}, which does not say what it read or dropped."
    )
    hidden = frozenset(range(len(parts))) if len(parts) > PARTS_SHOWN else frozenset()
    return table_of([*rows, total, paper], caption, "tab:corpus", csv_only=hidden)


def _refuse_duplicates(names: list[str]) -> None:
    for name, following in pairwise(names):
        if name == following:
            raise DataError(f"counts: part {name} is there twice; give each part once")


def _checked(part: Row, file: Path) -> Row:
    if part["read"] != part["kept"] + part["bad"] + sum(part["dropped"].values()):
        raise DataError(
            f"{file}: part {part['part']}: read {part['read']} is not kept {part['kept']} + bad {part['bad']} "
            f"+ dropped {sum(part['dropped'].values())}; run filter-part again"
        )
    return part


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name)]


def _part_row(part: Row, reasons: list[str]) -> Row:
    dropped = {reason: part["dropped"].get(reason, 0) for reason in reasons}
    row = {"part": part["part"], "read": part["read"], "bad": part["bad"], **dropped, "kept": part["kept"]}
    return {**row, **dict.fromkeys(("documents", "tokens", "train_rows", "validation_rows"))}


def _total_row(rows: list[Row], manifest: Row, file: Path) -> Row:
    documents = sum(manifest["documents"].values())
    kept = sum(row["kept"] for row in rows)
    if documents > kept:
        raise DataError(f"{file}: {documents} documents packed, but {kept} kept in all parts; run pack-shards again")
    sums = {key: sum(row[key] for row in rows) for key, value in rows[0].items() if isinstance(value, int)}
    packed = {"documents": documents, "tokens": manifest["tokens"]}
    split_rows = {f"{split}_rows": manifest["rows"][split] for split in ("train", "validation")}
    return {**rows[0], **sums, "part": "total", **packed, **split_rows}
