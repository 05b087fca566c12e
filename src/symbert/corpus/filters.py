"""Which documents are kept (paper, appendix A): the first reason against a document, or none."""

import hashlib
from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from pathlib import Path

import pyarrow
import pyarrow.parquet

from symbert.corpus.blocklist import Blocklist
from symbert.corpus.document import Document, documents
from symbert.corpus.reasons import REASONS
from symbert.errors import ConfigError
from symbert.files import publish, write_json
from symbert.settings import FilterSettings, read_settings

Filter = Callable[[Document], str | None]
"""Gives the reason against a document, or None."""

SCHEMA = pyarrow.schema([("id", pyarrow.string()), ("url", pyarrow.string()), ("text", pyarrow.string())])
CHARACTERS_PER_ROW_GROUP = 8_000_000


def filter_part(part: Path, blocklist: Path, settings: Path, output: Path, counts: Path) -> None:
    """Write the documents of a part that no rule drops (columns id, url, text), and count every document.

    `counts` holds documents read, kept, bad and dropped by first reason, the documents that fail each rule
    whatever the order (`overlaps`), and characters read and kept.
    """
    filters = make_filters(read_settings(settings, FilterSettings), Blocklist(blocklist))
    dropped, overlaps, characters = Counter(), Counter(), Counter()
    read = kept = 0
    with publish(output) as temporary, _PartWriter(temporary) as writer:
        for _, document in documents(part):
            read += 1
            characters["read"] += len(document.content)
            reasons = [reason for apply in filters if (reason := apply(document))]
            overlaps.update(reasons)
            if reasons:
                dropped[reasons[0]] += 1
            else:
                kept += 1
                characters["kept"] += len(document.content)
                writer.add(document)
    bad = 0  # a bad line ends the command
    assert read == kept + bad + dropped.total()
    write_json(
        counts,
        {
            "part": part.name.split(".")[0],
            "read": read,
            "kept": kept,
            "bad": bad,
            "dropped": {reason: dropped[reason] for reason in REASONS},
            "overlaps": {reason: overlaps[reason] for reason in REASONS},
            "characters": {key: characters[key] for key in ("read", "kept")},
        },
    )


def make_filters(settings: FilterSettings, blocklist: Blocklist) -> list[Filter]:
    """The filters in the order of REASONS; ConfigError for a category that the blocklist does not have."""
    blocked = frozenset(settings.blocked_categories)
    for name in sorted(blocked - blocklist.names):
        near = get_close_matches(name, blocklist.names, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(sorted(blocklist.names))}"
        raise ConfigError(f"blocked_categories: {name!r} is no category of the blocklist; {remedy}")
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity

    def category(document: Document) -> str | None:
        return "blocked_category" if not blocked.isdisjoint(document.metadata.categories or ()) else None

    def url(document: Document) -> str | None:
        found = blocklist.categories(document.url or "", settings.match)
        return "blocked_url" if not blocked.isdisjoint(found) else None

    def perplexity(document: Document) -> str | None:
        value = document.metadata.harmful_pp
        if value is None:
            return "no_perplexity"
        if value <= low:
            return "perplexity_too_low"
        return "perplexity_too_high" if value >= high else None

    def quality(document: Document) -> str | None:
        return "quality_warning" if document.metadata.quality_warnings else None

    return [category, url, perplexity, quality]


def id_of(document: Document) -> str:
    """The WARC record id, or one derived from the text where there is none."""
    return document.record_id or f"sha256:{hashlib.sha256(document.content.encode()).hexdigest()}"


class _PartWriter:
    """Writes kept documents as parquet (zstd), one row group at a time."""

    def __init__(self, path: Path) -> None:
        self._file = pyarrow.parquet.ParquetWriter(path, SCHEMA, compression="zstd")
        self._clear()

    def __enter__(self) -> "_PartWriter":
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._file.close()

    def add(self, document: Document) -> None:
        for column, value in zip(SCHEMA.names, (id_of(document), document.url, document.content), strict=True):
            self._columns[column].append(value)
        self._characters += len(document.content)
        if self._characters >= CHARACTERS_PER_ROW_GROUP:
            self._flush()

    def _flush(self) -> None:
        if self._columns["id"]:
            self._file.write_table(pyarrow.table(self._columns, schema=SCHEMA))
        self._clear()

    def _clear(self) -> None:
        self._columns: dict[str, list[str | None]] = {name: [] for name in SCHEMA.names}
        self._characters = 0
