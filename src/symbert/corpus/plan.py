"""What a corpus will hold and cost, before anything is downloaded.

Everything follows from the bytes of text in each part: real file sizes where the files are here, and otherwise
the size at which 300 parts hold the paper's 30 million kept documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from symbert.config import Config, annotations_of, files_of, parts_of, sections, source_of
from symbert.files import reading
from symbert.settings import PackSettings, settings_from
from symbert.sources import SOURCES

# Section 3.1 of arXiv 2406.06366, and its authors' README, which reads the first 300 parts (900 in another line).
PAPER_PARTS, PAPER_DOCUMENTS, PAPER_TOKENS = 300, 30_000_000, 70_000_000_000
TOKENS_PER_DOCUMENT = PAPER_TOKENS / PAPER_DOCUMENTS

# English in the table of github.com/oscar-project/documentation, docs/versions/oscar-2301.md. Every number of
# documents there is even, so each may be counted twice.
OSCAR_TEXT_BYTES, OSCAR_DOCUMENTS = 3.4e12, 1_235_510_986

# No size of a part is published. Measured on 22,915 real documents in OSCAR's form (web pages, encyclopedia, news,
# reviews), of which 3,845 were kept.
KEPT = 0.67  # of the text, where there is a filter
TEXT_PER_TOKEN = 4.68  # bytes of UTF-8
JSON, ZSTD, PARQUET = 1.34, 0.382, 0.41  # bytes per byte of text: JSON lines, compressed ones, filtered parts

# Per second and core, measured on 2 shared cores: the filter on the large part of docs/evidence/bench-corpus.md and
# tokenising there, the others on 204 MB of real documents in OSCAR's form (44 million tokens).
FILTER = 203e6  # bytes of JSON lines
SCORE = 16e6  # bytes of text, annotated: harmful perplexity, quality warnings, categories
TOKENIZE = 7.7e6  # tokens
PACK = 139e6  # tokens

TOKEN_BYTES, OFFSET_BYTES, INDEX_BYTES = 2, 20, 16  # per token, tokenized document, packed document


@dataclass(frozen=True)
class Plan:
    """What is expected of a corpus; sizes in bytes."""

    parts: int  # that are read
    documents_read: float
    documents_kept: float
    tokens: float  # of the documents kept
    rows: dict[str, int]  # by split
    download: float
    disk: dict[str, float]  # by kind of file, each at its most
    high_water_mark: float
    core_hours: dict[str, float]  # by command


def plan_of(config: Config) -> Plan:
    """The plan of a configuration."""
    values, source = sections(config), SOURCES[source_of(config, "corpus")]
    pack = settings_from(values["pack"], PackSettings, "pack")
    texts = text_of_parts(config)
    kept = KEPT if config["corpus"]["filter"]["rules"] else 1.0
    tokens_by_part = [kept * text / TEXT_PER_TOKEN for text in texts]
    parts = intake(tokens_by_part, config["corpus"]["parts_per_batch"], pack.max_documents)
    text, tokens = sum(texts[:parts]), sum(tokens_by_part[:parts])
    packed_tokens = min(tokens, pack.max_documents * TOKENS_PER_DOCUMENT)
    rows = _rows(packed_tokens, pack)
    raw = [] if files_of(config) else [ZSTD * text for text in texts[:parts]]  # the user's files stay where they are
    disk, high_water_mark = _disk(config["corpus"], raw, tokens, packed_tokens, rows)
    return Plan(
        parts=parts,
        documents_read=text * OSCAR_DOCUMENTS / OSCAR_TEXT_BYTES,
        documents_kept=tokens / TOKENS_PER_DOCUMENT,
        tokens=tokens,
        rows=rows,
        download=sum(raw) if source.is_remote else 0,
        disk=disk,
        high_water_mark=high_water_mark,
        core_hours={
            "filter-part": (JSON * text / FILTER + (annotations_of(config) == "computed") * text / SCORE) / 3600,
            "tokenize-part": tokens / TOKENIZE / 3600,
            "pack-shards": packed_tokens / PACK / 3600,
        },
    )


def _disk(
    corpus: Config, raw: list[float], tokens: float, packed_tokens: float, rows: dict[str, int]
) -> tuple[dict[str, float], float]:
    """Bytes by kind of file, and the most at any time: while parts are read, or while shards are packed."""
    at_once = len(raw) if corpus["keep_raw"] else 2 * corpus["parts_per_batch"]
    disk = {
        "raw parts": max((sum(raw[first : first + at_once]) for first in range(len(raw))), default=0),
        "filtered documents": PARQUET * TEXT_PER_TOKEN * tokens,
        "token streams": TOKEN_BYTES * tokens + OFFSET_BYTES * tokens / TOKENS_PER_DOCUMENT,
        "shards": TOKEN_BYTES * sum(rows.values()) * corpus["pack"]["sequence_length"],
        "index of documents": INDEX_BYTES * packed_tokens / TOKENS_PER_DOCUMENT,
    }
    reading = sum(disk[name] for name in ("raw parts", "filtered documents", "token streams"))
    packing = sum(disk.values()) - (0 if corpus["keep_raw"] else disk["raw parts"])
    return disk, max(reading, packing)


def text_of_parts(config: Config) -> list[float]:
    """Bytes of text in each part; MissingInputError names the part that the mirror lacks."""
    source, parts = SOURCES[source_of(config, "corpus")], parts_of(config)
    if files := source.files_of_parts(config):
        return list(map(_text_of, files))
    text = source.text(config)
    return [PAPER_TOKENS / PAPER_PARTS * TEXT_PER_TOKEN / KEPT if text is None else text / len(parts)] * len(parts)


def _text_of(path: Path) -> float:
    ratios = {".zst": ZSTD, ".gz": ZSTD, ".parquet": PARQUET, ".txt": 1, ".csv": 1, ".tsv": 1, ".arrow": 1}
    with reading(path, absent="ask for fewer corpus.parts, or complete the mirror"):
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*.arrow"))
        return path.stat().st_size / ratios.get(path.suffix, JSON)


def intake(tokens: Sequence[float], per_batch: int, max_documents: int) -> int:
    """How many parts are read.

    A batch is not read when the documents of all batches up to the last but one suffice; the last is under way.
    """
    totals = list(accumulate(tokens))
    for end in range(per_batch, len(tokens) + per_batch, per_batch):
        total = totals[min(end, len(tokens)) - 1]
        read = min(end + per_batch, len(tokens))
        if round(total / TOKENS_PER_DOCUMENT) >= max_documents:
            return read
    return len(tokens)


def _rows(tokens: float, pack: PackSettings) -> dict[str, int]:
    rows = round(tokens) // pack.sequence_length
    validation = min(rows, pack.validation_sequences)
    return {"train": rows - validation, "validation": validation}


def contents_in_words(config: Config) -> list[str]:
    """How much is read, kept and packed, and how much of it training reads; two lines."""
    plan = plan_of(config)
    read, kept, tokens, rows = map(_count, (plan.documents_read, plan.documents_kept, plan.tokens, plan.rows["train"]))
    wanted = config["pretrain"]["steps"] * config["pretrain"]["batch_size"]
    return [
        f"{plan.parts:,} of {len(parts_of(config)):,} parts: {kept} of {read} documents kept, {tokens} tokens",
        f"{rows} training rows, {plan.rows['validation']:,} held out; training reads {wanted:,} rows",
    ]


def _count(number: float) -> str:
    """Three significant digits: more would promise too much."""
    return f"{float(f'{number:.3g}'):,.0f}"
