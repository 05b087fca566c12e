"""One part through the filters: documents in, kept documents and counts out."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet

from symbert.corpus.annotation import annotator
from symbert.corpus.blocklist import Blocklist, look_up_nothing
from symbert.corpus.counts import Tally, is_full
from symbert.corpus.document import Document, documents
from symbert.errors import IntegrityError, UsageError
from symbert.files import publish, read_json, sha256_of, write_json
from symbert.filters import check_categories, make_rules
from symbert.progress import Progress
from symbert.settings import FilterSettings, read_settings

KEPT = {"line": pyarrow.uint32(), "id": pyarrow.string(), "url": pyarrow.string(), "text": pyarrow.string()}
WORDS = pyarrow.list_(pyarrow.string())
REJECTED = {**KEPT, "reasons": WORDS, "categories": WORDS, "quality_warnings": WORDS, "harmful_pp": pyarrow.float64()}
TEXT = list(KEPT).index("text")
Row = tuple[Any, ...]  # the columns of REJECTED, of which those of KEPT are the first
CHARACTERS_PER_ROW_GROUP = 8_000_000


def filter_part(
    part: Path,
    name: str,
    settings: Path,
    output: Path,
    counts: Path,
    blocklist: Path | None = None,
    harmful_model: Path | None = None,
    sources: Path | None = None,
    batch: Path | None = None,
    intake: Path | None = None,
    keep_rejected: Path | None = None,
) -> None:
    """Write the documents of a part that no rule drops (columns line, id, url, text), and count every document.

    `counts` holds documents read, kept, bad and dropped by first reason, the documents that fail each rule
    whatever the order (`overlaps`), and distributions.
    `sources` gives the part's published SHA-256 (IntegrityError), `harmful_model` the KenLM model for text
    without annotations; UsageError where a filter is chosen that lacks it, or the blocklist. When the earlier parts up
    to `batch` fill the `intake`, nothing is read. `keep_rejected` names a parquet file for the documents that are
    dropped, with all reasons, the counted one first.
    """
    choice = read_settings(settings, FilterSettings)
    if part.exists() and not (part.is_file() or part.is_dir()):
        raise UsageError(f"{part}: is no file, and a part is read twice: for its SHA-256 first; write it to a file")
    taken = not is_full(batch, intake)
    digest = sha256_of(part, absent="run download-part, or correct corpus.files") if taken else None
    if taken and sources and part.is_file():
        listed = read_json(sources, {"checksums": {str: str}})["checksums"].get(part.name, digest)
        if digest != listed:
            raise IntegrityError(f"{part}: sha256 expected {listed}, found {digest}; delete it and run download-part")
    select = _Selection(choice, blocklist, harmful_model)
    with ExitStack() as stack:
        keep = stack.enter_context(_part_writer(output, KEPT, taken))
        reject = stack.enter_context(_part_writer(keep_rejected, REJECTED, taken)) if keep_rejected else None
        progress = Progress(f"filter {name}", None, "documents")
        for line, document in documents(part, choice.annotations, select.tally.bad) if taken else ():
            reasons = select(document)
            add = reject if reasons else keep
            if add:
                text, metadata = (line, id_of(document), document.url, document.content), document.metadata
                add((*text, reasons, metadata.categories, metadata.quality_warnings or None, metadata.harmful_pp))
            progress.update(select.tally.read)
        select.tally.check(part)
    write_json(counts, {"part": name, "taken": taken, "file_sha256": digest, **select.tally.counts()})


class _Selection:
    """The reasons against a document, which is annotated first where OSCAR has not done so, and counted."""

    def __init__(self, settings: FilterSettings, blocklist: Path | None, harmful_model: Path | None) -> None:
        if settings.has("categories"):
            if blocklist is None:
                raise UsageError("the filter of categories needs UT1; add --blocklist")
            listed = Blocklist(blocklist)
            check_categories(settings.blocked_categories, listed.names)
            self._look_up = partial(listed.look_up, match=settings.match)
        else:
            self._look_up = look_up_nothing
        self.tally = Tally(settings)
        self._rules = make_rules(settings)
        self._annotate = None
        if settings.annotations == "computed":
            if harmful_model is None and settings.has("perplexity"):
                raise UsageError("perplexity is computed, which needs a KenLM model; add --harmful-model")
            self._annotate = annotator(harmful_model, self._look_up)

    def __call__(self, document: Document) -> list[str]:
        if self._annotate:
            document.metadata = self._annotate(document)
        found = self._look_up(document.url)
        reasons = self._rules(document, found)
        self.tally.document(document, found, reasons)
        return reasons


def id_of(document: Document) -> str:
    """The WARC record id, or one derived from the text where there is none."""
    return document.record_id or f"sha256:{hashlib.sha256(document.content.encode()).hexdigest()}"


@contextmanager
def _part_writer(path: Path, columns: dict[str, pyarrow.DataType], taken: bool) -> Iterator[Callable[[Row], None]]:
    """A function that adds a row to a parquet file (zstd), which is published when the block succeeds.

    Its metadata says whether the part was read. A row may have more cells than there are columns.
    """
    schema = pyarrow.schema(columns, metadata={"taken": str(taken).lower()})
    plain = {"use_dictionary": False, "write_statistics": False}
    rows: list[Row] = []
    characters = 0
    with (
        publish(path) as temporary,
        pyarrow.parquet.ParquetWriter(temporary, schema, compression="zstd", write_page_checksum=True, **plain) as file,
    ):

        def write_row_group() -> None:
            cells = zip(zip(*rows, strict=True), schema.types, strict=False)
            file.write_table(pyarrow.Table.from_arrays([_column(*pair) for pair in cells], schema=schema))
            rows.clear()

        def add(row: Row) -> None:
            nonlocal characters
            rows.append(row)
            characters += len(row[TEXT])
            if characters >= CHARACTERS_PER_ROW_GROUP:
                write_row_group()
                characters = 0

        yield add
        if rows:
            write_row_group()


def _column(values: tuple[Any, ...], kind: pyarrow.DataType) -> pyarrow.Array:
    """An Arrow array; of strings without `pyarrow.array`, which imports pandas: as long as filtering a small part."""
    if kind == pyarrow.string():
        builder = pyarrow.lib.StringBuilder()
        builder.append_values(values)
        return builder.finish()
    if kind == pyarrow.uint32():
        return pyarrow.Array.from_buffers(kind, len(values), [None, pyarrow.py_buffer(np.array(values, np.uint32))])
    return pyarrow.array(values, kind)
