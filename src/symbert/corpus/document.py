"""Documents: OSCAR-2301's schema, and web text of other publishers, which brings text, perhaps URL and id, only."""

import codecs
import csv
import glob
import gzip
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from symbert.corpus.lines import GZIP, LONGEST_LINE, read_lines
from symbert.errors import ConfigError, DataError
from symbert.files import reading

if TYPE_CHECKING:
    import pyarrow

Line = tuple[int, "Document"]
"""A document and its line in the part, from 1."""

Row = dict[str, Any] | UnicodeDecodeError | DataError
"""Cells by column, or why a row cannot be read."""

Schema = TypeVar("Schema")
ROWS_AT_ONCE = 256  # of a parquet file
BYTES_AT_ONCE = 1 << 20  # of its columns

OnBad = Callable[[DataError], None]
"""What happens to a bad line: raise what is given, or count it."""
DIALECTS: dict[str, dict[str, Any]] = {
    ".csv": {"delimiter": ",", "strict": True},
    ".tsv": {"delimiter": "\t", "quoting": csv.QUOTE_NONE},  # a quotation mark is text
}
"""How the `csv` library reads a file, by the end of its name; .gz may follow."""
LOADERS = {".arrow": "arrow", ".parquet": "parquet", ".jsonl": "json", ".ndjson": "json", ".json": "json"}
"""Loader of the `datasets` library, by the end of a file's name; .gz may follow."""


class WarcHeaders(msgspec.Struct, gc=False, rename={"url": "warc-target-uri", "record_id": "warc-record-id"}):
    """Where and when a document was crawled; only the fields that are used."""

    url: str | None = None
    record_id: str | None = None


class Metadata(msgspec.Struct, gc=False):
    """OSCAR's annotations; missing, null and empty lists mean the same."""

    harmful_pp: float | None = None
    quality_warnings: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    categories: list[str] | None = None
    annotation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # the name before OSCAR 23.01


class Document(msgspec.Struct, gc=False):
    """Text, one paragraph a line, and what is known about it."""

    content: str
    metadata: Metadata
    warc_headers: WarcHeaders | None = None

    @property
    def url(self) -> str | None:
        """The address of the page, if known."""
        return self.warc_headers.url if self.warc_headers else None

    @property
    def record_id(self) -> str | None:
        """The WARC record id, if known."""
        return self.warc_headers.record_id if self.warc_headers else None


class WebText(msgspec.Struct, gc=False):
    """A document without OSCAR's annotations: C4, FineWeb, Dolma, own crawls; or OSCAR's, which are then not read."""

    text: str | None = None
    content: str | None = None
    url: str | None = None
    id: str | int | None = None
    warc_headers: WarcHeaders | None = None


_OSCAR = msgspec.json.Decoder(Document)
_WEB_TEXT = msgspec.json.Decoder(WebText)


def documents(part: Path, annotations: str, on_bad: OnBad) -> Iterator[Line]:
    """The documents of a part, with OSCAR's annotations when they are `published`, without when `computed`.

    Formats: JSON lines (plain, gzip, zstd) and, without annotations, .parquet, .csv, .tsv, .txt, .arrow, and a folder
    that `save_to_disk` of the `datasets` library wrote. Each bad line goes to `on_bad` as DataError that names file and
    line; a truncated or damaged file raises it.
    """
    readers = {".parquet": _parquet_rows, ".csv": read_cells, ".tsv": read_cells, ".txt": _paragraphs}
    reader = _dataset_rows if part.is_dir() else (readers | {".arrow": _dataset_rows}).get(suffix_of(part))
    if reader is None:
        return _lines(part, {"published": decode, "computed": decode_web_text}[annotations], on_bad)
    if annotations == "published":
        raise ConfigError(f"{part}: has no annotations of OSCAR; set corpus.annotations to computed")
    return _documents_in_rows(part, reader(part), on_bad)


def decode(line: bytes, place: str) -> Document:
    """The document in a line of OSCAR-2301; DataError names `place`.

    OSCAR 22.01 is refused: its quality annotations have another name and would silently not be filtered.
    """
    document = _decode(_OSCAR, line, place, "an OSCAR document")
    metadata = document.metadata
    if metadata.annotation is not msgspec.UNSET and metadata.quality_warnings is msgspec.UNSET:
        raise DataError(
            f"{place}: 'annotation' without 'quality_warnings': OSCAR 22.01; use the files of OSCAR 23.01, "
            "or set corpus.annotations to computed"
        )
    return document


def decode_web_text(line: bytes, place: str) -> Document:
    """The text (`text` or `content`), URL and id in a line; DataError names `place`."""
    return _without_annotations(_decode(_WEB_TEXT, line, place, "a document"), place)


def _decode(decoder: msgspec.json.Decoder[Schema], line: bytes, place: str, what: str) -> Schema:
    try:
        return decoder.decode(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not {what} ({error}); get the file again, or allow max_bad_fraction") from None


def _without_annotations(found: WebText, place: str) -> Document:
    content = found.text if found.text is not None else found.content
    if content is None:
        raise DataError(f"{place}: neither 'text' nor 'content' is a string; correct it, or allow max_bad_fraction")
    headers = found.warc_headers or WarcHeaders()
    identity = headers.record_id or (None if found.id is None else str(found.id))
    return Document(content, Metadata(), WarcHeaders(headers.url or found.url, identity))


def _lines(part: Path, decoder: Callable[[bytes, str], Document], on_bad: OnBad) -> Iterator[Line]:
    """The documents in lines; a byte order mark before one is no part of it, and a blank line is none."""
    blank, name = 0, str(part)
    for number, line in enumerate(read_lines(part), start=1):
        place = f"{name}:{number}"
        try:
            if isinstance(line, str):
                raise DataError(f"{place}: {line}, or allow max_bad_fraction")
            line = line.removeprefix(codecs.BOM_UTF8)
            document = decoder(line, place)
        except DataError as error:
            if isinstance(line, bytes) and not line.strip():
                blank += 1
            elif number == 1 + blank and isinstance(line, bytes) and _is_no_line(line):
                on_bad(
                    DataError(f"{place}: an array, or JSON over several lines; write one object a line (JSON lines)")
                )
            else:
                on_bad(error)
        else:
            yield number, document
    if blank:
        print(f"{part}: {blank:,} blank lines skipped", file=sys.stderr)


def _is_no_line(first: bytes) -> bool:
    """Whether a file's first line is an array or goes on in the next one, as where the file as a whole is JSON."""
    try:
        return isinstance(msgspec.json.decode(first), list)
    except (ValueError, RecursionError) as error:
        return first.lstrip().startswith(b"[") or (first.endswith(b"\n") and "truncated" in str(error))


def _documents_in_rows(part: Path, rows: Iterator[Row], on_bad: OnBad) -> Iterator[Line]:
    for number, row in enumerate(rows, start=1):
        place = f"{part}:{number}"
        try:
            if isinstance(row, Exception):
                raise row
            document = _without_annotations(msgspec.convert(row, WebText), place)
        except (msgspec.ValidationError, UnicodeDecodeError) as error:
            on_bad(DataError(f"{place}: not a document ({error}); correct the file"))
        except DataError as error:
            on_bad(error)
        else:
            yield number, document


def _parquet_rows(part: Path) -> Iterator[Row]:
    """The rows of a parquet file with columns text or content, and perhaps url and id."""
    import pyarrow
    import pyarrow.parquet

    unbuffered = {"pre_buffer": False, "buffer_size": BYTES_AT_ONCE}  # or a whole row group would be held
    try:
        with reading(part, absent="correct corpus.files"), pyarrow.parquet.ParquetFile(part, **unbuffered) as file:
            columns = [name for name in WebText.__struct_fields__ if name in file.schema_arrow.names]
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=columns, use_threads=False):
                yield from _cells(batch)
    except (pyarrow.ArrowException, OSError) as error:
        if getattr(error, "errno", None):  # the system's, not pyarrow's
            raise
        message = " ".join(str(error).split())
        raise DataError(f"{part}: damaged or no parquet file ({message}); get the file again") from None


def _cells(batch: "pyarrow.RecordBatch") -> Iterator[Row]:
    """The rows, or why one cannot be read; one by one only where there is such a row."""
    try:
        rows = batch.to_pylist()
    except UnicodeDecodeError as error:
        rows = [error] if len(batch) == 1 else [row for at in range(len(batch)) for row in _cells(batch.slice(at, 1))]
    yield from rows


def _paragraphs(part: Path) -> Iterator[Row]:
    """The texts of a .txt file: lines between lines that are empty or blank, without their ends."""
    lines: list[str] = []
    for number, line in enumerate(read_lines(part), start=1):
        if isinstance(line, str):
            raise DataError(f"{part}:{number}: {line}")
        text = line.removeprefix(codecs.BOM_UTF8).decode().removesuffix("\n").removesuffix("\r")
        if text.strip():
            lines.append(text)
        elif lines:
            yield {"text": "\n".join(lines)}
            lines = []
    if lines:
        yield {"text": "\n".join(lines)}


def read_cells(path: Path, absent: str = "correct corpus.files") -> Iterator[dict[str, str] | DataError]:
    """The rows of a .csv or .tsv file (also .gz) by the names in its first row, every cell as text: 007 stays so.

    A DataError that names file and line stands for a row that has more or fewer cells than the first; blank lines are
    skipped. DataError when the file is damaged; `absent` is the remedy where it does not exist.
    """
    csv.field_size_limit(LONGEST_LINE)
    try:
        with reading(path, absent), open(path, "rb") as file:
            is_packed = file.peek(len(GZIP)).startswith(GZIP)
            content = TextIOWrapper(gzip.GzipFile(fileobj=file) if is_packed else file, "utf-8-sig", newline="")
            rows = csv.reader(content, **DIALECTS[suffix_of(path)])
            names = next(filter(None, rows), None)
            if names is None:
                raise DataError(f"{path}: has no first row with the names of columns; get the file again")
            for name in filter(None, names):
                if names.count(name) > 1:
                    raise DataError(f"{path}: the first row has '{name}' twice; rename one of them")
            while True:
                try:
                    row = next(rows)
                except StopIteration:
                    return
                except csv.Error as error:
                    yield DataError(f"{path}:{rows.line_num}: {error}; correct the row")
                    continue
                if len(row) == len(names):
                    yield dict(zip(names, row, strict=True))
                elif row:
                    yield DataError(
                        f"{path}:{rows.line_num}: {len(row)} cells, but {len(names)} columns; correct the row"
                    )
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}; correct the row") from None
    except UnicodeDecodeError:
        raise DataError(f"{path}: not UTF-8; convert the file to UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: damaged ({error}); get the file again") from None


def _dataset_rows(part: Path) -> Iterator[Row]:
    """The rows that `datasets` reads, with the columns of a document: of a folder all splits in their order."""
    columns = WebText.__struct_fields__
    with open_data(part, absent="correct corpus.files") as splits:
        for split in splits.values():
            for row in split:
                yield {name: row[name] for name in columns if name in row}


@contextmanager
def open_data(path: Path, absent: str) -> Iterator[dict[str, Any]]:
    """The data sets in a file (LOADERS) or in a folder of `save_to_disk`, by split; a file is one split, `train`.

    Nothing is copied to a cache, and of a file no more than a few megabytes are held. DataError when it is damaged;
    `absent` is the remedy where it does not exist.
    """
    import datasets
    import pyarrow

    datasets.utils.logging.set_verbosity(datasets.utils.logging.CRITICAL)  # errors are ours to tell
    try:
        with reading(path, absent=absent), tempfile.TemporaryDirectory(prefix="symbert-") as cache:
            if path.is_dir():
                saved = datasets.load_from_disk(str(path))
                yield saved if isinstance(saved, datasets.DatasetDict) else {"train": saved}
            else:
                with open(path, "rb"):  # or `datasets` would tell of it in words of its own
                    loader = LOADERS[suffix_of(path)]
                files = {"data_files": glob.escape(str(path)), "cache_dir": cache}
                yield {"train": datasets.load_dataset(loader, split="train", streaming=True, **files)}
    except (pyarrow.ArrowException, OSError, EOFError, ValueError) as error:
        message = " ".join(str(error).split())
        raise DataError(f"{path}: damaged, or not what its name says ({message}); get the file again") from None


def suffix_of(path: Path) -> str:
    """The end of a file's name, but for .gz."""
    return Path(path.name.removesuffix(".gz")).suffix
