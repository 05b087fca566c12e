"""What a corpus will hold and cost, before anything is downloaded.

Everything follows from the bytes of text in each part: real file sizes where the files are here, and otherwise
the size at which 300 parts hold the paper's 30 million kept documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from symbert.commit import PROJECT
from symbert.config import Config, annotations_of, files_of, merge, parts_of, sections, source_of
from symbert.errors import MissingInputError, UsageError
from symbert.progress import data_size
from symbert.project import read_config
from symbert.settings import PackSettings, settings_from
from symbert.sources import SOURCES, is_stand_in

# Section 3.1 of arXiv 2406.06366, and the README of its authors' code, which reads the first 300 parts.
PAPER_PARTS, PAPER_DOCUMENTS, PAPER_TOKENS = 300, 30_000_000, 70_000_000_000
TOKENS_PER_DOCUMENT = PAPER_TOKENS / PAPER_DOCUMENTS

# English in the table of github.com/oscar-project/documentation, docs/versions/oscar-2301.md. Every number of
# documents there is even, so each may be counted twice.
OSCAR_TEXT_BYTES, OSCAR_DOCUMENTS = 3.4e12, 1_235_510_986

# Measured on 22,915 real documents in OSCAR's form (web pages, encyclopedia, news, reviews), of which 3,845 were kept.
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
ORIGINS = (
    f"paper      {PAPER_DOCUMENTS:,} kept documents and {PAPER_TOKENS:,} tokens from {PAPER_PARTS} parts: arXiv",
    "           2406.06366, section 3.1, and its authors' README, where another line speaks of 900 parts",
    f"documents  {OSCAR_TEXT_BYTES / OSCAR_DOCUMENTS:,.0f} bytes of text each: OSCAR 23.01's documentation, English "
    f"({OSCAR_DOCUMENTS:,} in 3.4 TB)",
    f"text       assumed as in real text of OSCAR's form, for no part's size is published: a filter keeps {KEPT:.0%},",
    f"           {TEXT_PER_TOKEN} bytes are a token; a byte of it is {JSON} bytes of JSON lines, {ZSTD} compressed, "
    f"{PARQUET} as parquet",
    f"speed      measured, per core: filter {FILTER / 1e6:,.0f} MB/s of JSON lines (computed annotations: "
    f"{SCORE / 1e6:,.0f} MB/s of text),",
    f"           tokenize {TOKENIZE / 1e6:,.3g} M and pack {PACK / 1e6:,.3g} M tokens/s: docs/evidence/bench-corpus.md",
)


@dataclass(frozen=True)
class Plan:
    """What is expected of a corpus; sizes in bytes."""

    parts: int  # that are read
    ends_with: str  # documents | parts
    documents_read: float
    documents_kept: float
    tokens: float  # of the documents kept
    rows: dict[str, int]  # by split
    download: float
    disk: dict[str, float]  # by kind of file, each at its most
    high_water_mark: float
    core_hours: dict[str, float]  # by command


def plan_corpus(
    scale: str | None = None, source: str | None = None, mirror: Path | None = None, parts: int | None = None
) -> None:
    """Print what the configured corpus is expected to hold and to cost; nothing is read but file sizes.

    Options stand above config.yaml and its scale; where the source is `embedded`, which downloads nothing, the plan is
    that of the hub.
    """
    config = config_of(PROJECT, scale, source, mirror, parts)
    print("\n".join(_report(config, plan_of(config))))


def config_of(folder: Path, scale: str | None, source: str | None, mirror: Path | None, parts: int | None) -> Config:
    """The configuration in `folder` with the given options over it, of a corpus that is downloaded or read."""
    changes: list[Config] = [{} if scale is None else {"scale": scale}]
    if mirror is not None:
        changes.append({"mirror": str(mirror), "corpus": {"source": "mirror"}})
    if source is not None:
        changes.append({"corpus": {"source": source}})
    if parts is not None:
        changes.append({"corpus": {"parts": parts}})
    config = read_config(folder, *changes)
    if parts is not None and files_of(config):
        raise UsageError("--parts is for OSCAR's parts; of the user's files all are read, leave it out")
    return merge(config, {"corpus": {"source": "hub"}}) if is_stand_in(source_of(config, "corpus")) else config


def plan_of(config: Config) -> Plan:
    """The plan of a configuration; of a corpus that is made here, without the making."""
    values, source = sections(config, ""), SOURCES[source_of(config, "corpus")]
    pack = settings_from(values["pack"], PackSettings, "pack")
    texts = text_of_parts(config)
    kept = KEPT if config["corpus"]["filter"]["rules"] else 1.0
    tokens_by_part = [kept * text / TEXT_PER_TOKEN for text in texts]
    parts, ends_with = intake(tokens_by_part, config["corpus"]["parts_per_batch"], pack.max_documents)
    text, tokens = sum(texts[:parts]), sum(tokens_by_part[:parts])
    packed_tokens = min(tokens, pack.max_documents * TOKENS_PER_DOCUMENT)
    rows = _rows(packed_tokens, pack)
    raw = [] if files_of(config) else [ZSTD * text for text in texts[:parts]]  # the user's files stay where they are
    disk, high_water_mark = _disk(config["corpus"], raw, tokens, packed_tokens, rows)
    return Plan(
        parts=parts,
        ends_with=ends_with,
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
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*.arrow"))
    if not path.is_file():
        raise MissingInputError(f"{path}: file not found; ask for fewer parts with --parts, or complete the mirror")
    ratios = {".zst": ZSTD, ".gz": ZSTD, ".parquet": PARQUET, ".txt": 1, ".csv": 1, ".tsv": 1, ".arrow": 1}
    return path.stat().st_size / ratios.get(path.suffix, JSON)


def intake(tokens: Sequence[float], per_batch: int, max_documents: int) -> tuple[int, str]:
    """How many parts are read, and whether the documents suffice before the parts end.

    A batch is not read when the documents of all batches up to the last but one suffice; the last is under way.
    """
    totals = list(accumulate(tokens))
    for end in range(per_batch, len(tokens) + per_batch, per_batch):
        total = totals[min(end, len(tokens)) - 1]
        read = min(end + per_batch, len(tokens))
        if round(total / TOKENS_PER_DOCUMENT) >= max_documents:
            return read, "documents"
    return len(tokens), "parts"


def _rows(tokens: float, pack: PackSettings) -> dict[str, int]:
    rows = round(tokens) // pack.sequence_length
    validation = min(rows, pack.validation_sequences)
    return {"train": rows - validation, "validation": validation}


def _report(config: Config, plan: Plan) -> list[str]:
    """The plan as a plain table: quantity, value, and what the value rests on."""
    rows = [*_contents(config, plan), *_costs(config, plan)]
    name_width, value_width = (max(len(row[column]) for row in rows) for column in (0, 1))
    head = (
        f"Corpus of scale {config['scale']} from source {source_of(config, 'corpus')}: "
        "what to expect, and what it rests on"
    )
    table = [f"{name:<{name_width}}  {value:>{value_width}}  {reason}".rstrip() for name, value, reason in rows]
    return [head, "", *table, "", *ORIGINS]


def _contents(config: Config, plan: Plan) -> list[tuple[str, str, str]]:
    corpus, wanted = config["corpus"], config["pretrain"]["steps"] * config["pretrain"]["batch_size"]
    ends = {
        "parts": "they hold less than corpus.pack.max_documents",
        "documents": f"then there are {corpus['pack']['max_documents']:,} documents (corpus.pack.max_documents)",
    }
    parts = "file sizes" if SOURCES[source_of(config, "corpus")].files_of_parts(config) else "paper"
    times = wanted / plan.rows["train"] if plan.rows["train"] else 0
    return [
        ("parts read", f"{plan.parts:,}", f"of {len(parts_of(config)):,}; {ends[plan.ends_with]}"),
        ("documents read", _count(plan.documents_read), f"{parts}, text, documents"),
        ("documents kept", _count(plan.documents_kept), f"{parts}, text" if parts != "paper" else parts),
        ("tokens of documents kept", _count(plan.tokens), f"{parts}, text" if parts != "paper" else parts),
        ("training rows", _count(plan.rows["train"]), f"{corpus['pack']['sequence_length']} tokens each"),
        ("validation rows", f"{plan.rows['validation']:,}", "corpus.pack.validation_sequences"),
        (
            "rows that pre-training reads",
            f"{wanted:,}",
            f"pretrain.steps × batch_size; {float(f'{times:.2g}'):,g} per row",
        ),
    ]


def _costs(config: Config, plan: Plan) -> list[tuple[str, str, str]]:
    corpus = config["corpus"]
    batches = f"two batches of {corpus['parts_per_batch']} parts at a time; storage.raw"
    raw = "yours stay where they are" if files_of(config) else "all, corpus.keep_raw; storage.raw"
    reasons = {
        "raw parts": batches if plan.disk["raw parts"] and not corpus["keep_raw"] else raw,
        "shards": "storage.shards",
    }
    return [
        ("download", data_size(plan.download), "paper, text" if plan.download else "parts are here already"),
        ("disk, high-water mark", data_size(plan.high_water_mark), "not all of these at one time:"),
        *((f"  {name}", data_size(value), reasons.get(name, "text")) for name, value in plan.disk.items()),
        ("core-hours", _hours(sum(plan.core_hours.values())), "text, speed"),
        *((f"  {name}", _hours(hours), "") for name, hours in plan.core_hours.items()),
    ]


def _count(number: float) -> str:
    """Three significant digits: more would promise too much."""
    return f"{float(f'{number:.3g}'):,.0f}"


def _hours(hours: float) -> str:
    return "< 0.01" if hours < 0.01 else f"{hours:,.3g}"
