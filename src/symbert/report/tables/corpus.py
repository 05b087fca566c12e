"""The corpus table: what was read, why documents were dropped, what was kept, tokenized and packed."""

import pandas as pd

from symbert.corpus.filters import REASONS, are_few, kept_in_words
from symbert.report import captions, published
from symbert.report.collect import Collection
from symbert.report.corpus_counts import Row
from symbert.report.formats import Table, frame_of, heading, table_of

PARTS_SHOWN = 4  # more parts than these are listed in the csv file only
NAMES = {
    "read": "documents read",
    "bad": "bad lines",
    "kept": "documents kept",
    "without_url": "documents read without URL",
    "left_over_tokens": "tokens left over",
    "words": "words kept",
    "tokens": "tokens kept",
    "fertility": "tokens per word",
}
PACKED = ("packed_documents", "packed_tokens", "left_over_tokens", "train_rows", "validation_rows")
BY_REASON = "characters_dropped_"  # and the reason: a column of the csv file only


def corpus_table(data: Collection) -> Table | None:
    """Corpus, per part and in all: documents read, bad lines, documents dropped by the first reason that applies, and
    kept; characters, words and tokens; documents, tokens and rows after packing. Read is kept + dropped + bad in every
    part, or this table would not exist. The last column or row holds the paper's numbers.

    Csv has a row per part; Markdown and LaTeX, which have no room for its columns, turn it on its side. DataError names
    the file and part whose numbers do not add up.
    """
    if not data.parts or data.manifest is None:
        return None
    parts, settings = [part["counts"] for part in data.parts], data.settings
    present = {reason for part in parts for reason in part["dropped"]}
    reasons = [*REASONS, *sorted(present - set(REASONS))]
    rows = [_part_row(part["counts"], part["record"], reasons) for part in data.parts]
    summed = [key for key, value in rows[0].items() if isinstance(value, int)]
    total = rows[0] | {"part": "total"} | {key: sum(row[key] for row in rows) for key in summed}
    total["fertility"] = _fertility(total["tokens"], total["kept"], total["words"])
    total |= _packed(data.manifest)
    paper = {**dict.fromkeys(total), "part": "the paper", **published.CORPUS}
    few = ""
    if are_few(parts):
        few = f"{kept_in_words(parts)}, fewer than half; symbert prepare-part --keep-rejected shows the others. "
    passed_over = ""
    if rows_passed := data.manifest.get("passed_over_rows", 0):
        passed_over = f" and in {rows_passed:,} rows that are also among the training rows, and so passed over"
    wording = captions.wording_of(settings)
    caption = (
        f"Documents of {wording.corpus}: read, bad, dropped by the first reason that applies, kept, and packed into "
        f"rows; beside them the numbers of {published.PAPER}."
        f"\n\n{wording.experiment}. Tokens of the documents kept, and per word (text between white "
        "space; [CLS] and [SEP] are not counted there); documents and tokens packed into rows of "
        f"{settings.sequence_length} tokens, and tokens left over: of held-out documents beyond their rows"
        f"{passed_over}, beyond the budget, and of the last row. "
        f"{few}"
        f"The paper is {published.PAPER}, which does not say what it read or dropped."
    )
    everything = [*rows, total, paper]
    return table_of(everything, caption, "tab:corpus", readable=_on_its_side(everything, reasons))


def _part_row(part: Row, record: Row, reasons: list[str]) -> Row:
    return {
        "part": part["part"],
        "read": part["read"],
        "bad": part["bad"],
        **{reason: part["dropped"].get(reason, 0) for reason in reasons},
        "kept": part["kept"],
        "without_url": part["without_url"],
        "characters_read": part["characters"]["read"],
        **{BY_REASON + reason: part["characters"]["dropped"].get(reason, 0) for reason in reasons},
        "characters_kept": part["characters"]["kept"],
        "words": record["words"],
        "tokens": record["tokens"],
        "fertility": _fertility(record["tokens"], record["documents"], record["words"]),
        **dict.fromkeys(PACKED),
    }


def _fertility(tokens: int, documents: int, words: int) -> float | None:
    """Tokens per word; each document has a [CLS] and a [SEP], which belong to no word."""
    return (tokens - 2 * documents) / words if words else None


def _packed(manifest: Row) -> Row:
    """Documents, tokens and rows after packing."""
    rows = manifest["rows"]
    packed = sum(rows.values()) * manifest["sequence_length"]
    left_over = manifest["remainder_tokens"] + sum(manifest["surplus_tokens"].values())
    counts = (sum(manifest["documents"].values()), packed, left_over, rows["train"], rows["validation"])
    return dict(zip(PACKED, counts, strict=True))


def _on_its_side(rows: list[Row], reasons: list[str]) -> pd.DataFrame:
    """A row per quantity; columns for few parts, the total, its share of what was read, and the paper."""
    *parts, total, paper = rows
    shown = [*(parts if len(parts) <= PARTS_SHOWN else []), total]
    documents = (*reasons, "bad", "kept", "without_url")
    lines = []
    for key in (key for key in total if key != "part" and not key.startswith(BY_REASON)):
        name = f"dropped: {heading(key)}" if key in reasons else NAMES.get(key) or heading(key)
        whole = total["characters_read"] if key == "characters_kept" else total["read"] if key in documents else 0
        share = {"of_read_percent": 100 * total[key] / whole if whole else None}  # None: not part of what was read
        lines.append({"": name} | {row["part"]: row[key] for row in shown} | share | {"the paper": paper[key]})
    return frame_of(lines)
