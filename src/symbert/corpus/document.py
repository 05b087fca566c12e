"""Documents: OSCAR-2301's schema, and web text of other publishers, which brings text, perhaps URL and id, only."""

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from symbert.corpus.lines import LONGEST_LINE, read_lines
from symbert.errors import ConfigError, DataError
from symbert.files import reading

if TYPE_CHECKING:
    import pyarrow

Line = tuple[int, "Document"]
"""A document and its line in the part, from 1."""

Row = dict[str, Any] | DataError
"""Cells by column, an Exception where one cannot be read; or why the whole row cannot."""

Schema = TypeVar("Schema")
ROWS_AT_ONCE = 256  # of a parquet file
BYTES_AT_ONCE = 1 << 20  # of its columns

OnBad = Callable[[DataError], None]
"""Raises the error of a bad line, or counts it."""
CELLS = (".csv", ".tsv")  # files of cells; .gz may follow
END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"  # without it a stream of Arrow reads as a shorter one
OBJECTS = (".jsonl", ".ndjson", ".json")  # an object a line; .gz or .zst may follow


class WarcHeaders(msgspec.Struct, gc=False, rename={"url": "warc-target-uri", "record_id": "warc-record-id"}):
    """Where a document was crawled, and its name in the crawl."""

    url: str | None = None
    record_id: str | None = None


class Metadata(msgspec.Struct, gc=False):
    """OSCAR's annotations; missing, null and empty lists mean the same."""

    harmful_pp: float | None = None
    quality_warnings: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    categories: list[str] | None = None
    annotation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # the name before OSCAR 23.01


class Document(msgspec.Struct, gc=False):
    """Text, one paragraph a line, and its annotations."""

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

    Formats: JSON lines (plain, gzip, zstd) and, without annotations, .parquet, .csv, .tsv, .txt, and a folder that
    `save_to_disk` of the `datasets` library wrote. Each bad line goes to `on_bad` as DataError that names file and
    line; a truncated or damaged file raises it. Blank lines are skipped.
    """
    name, suffix = str(part), suffix_of(part)
    if not part.is_dir() and suffix not in (".txt", ".parquet", *CELLS):
        rows = read_lines(part)
    elif annotations == "published":
        raise ConfigError(f"{part}: has no annotations of OSCAR; set corpus.annotations to computed")
    else:
        rows = _paragraphs(part) if suffix == ".txt" else read_rows(part, WebText.__struct_fields__)
    understand = decode if annotations == "published" else decode_web_text
    for number, row in enumerate(rows, start=1):
        place = f"{name}:{number}"
        try:
            if isinstance(row, str):
                raise DataError(f"{place}: {row}, or allow max_bad_fraction")
            if isinstance(row, DataError):
                raise row
            document = understand(row, place)
        except DataError as error:
            if not (isinstance(row, bytes) and not row.removeprefix(codecs.BOM_UTF8).strip()):
                on_bad(error)
        else:
            yield number, document


def decode(line: bytes, place: str) -> Document:
    """The document in a line of OSCAR-2301; DataError names `place`.

    OSCAR 22.01 is refused: its quality annotations have another name and would silently not be filtered.
    """
    document = _decoded(_OSCAR.decode, line, place)
    metadata = document.metadata
    if metadata.annotation is not msgspec.UNSET and metadata.quality_warnings is msgspec.UNSET:
        raise DataError(
            f"{place}: 'annotation' without 'quality_warnings': OSCAR 22.01; use the files of OSCAR 23.01, "
            "or set corpus.annotations to computed"
        )
    return document


def decode_web_text(row: bytes | dict[str, Any], place: str) -> Document:
    """The text (`text` or `content`), URL and id in a line or in cells; DataError names `place`."""
    is_line = isinstance(row, bytes)
    found = _decoded(_WEB_TEXT.decode if is_line else lambda cells: msgspec.convert(cells, WebText), row, place)
    content = found.text if found.text is not None else found.content
    if content is None:
        raise DataError(f"{place}: neither 'text' nor 'content' is a string; correct it, or allow max_bad_fraction")
    headers = found.warc_headers or WarcHeaders()
    identity = headers.record_id or (None if found.id is None else str(found.id))
    return Document(content, Metadata(), WarcHeaders(headers.url or found.url, identity))


def _decoded(decoder: Callable[[Any], Schema], row: bytes | dict[str, Any], place: str) -> Schema:
    try:
        return decoder(row.removeprefix(codecs.BOM_UTF8) if isinstance(row, bytes) else row)
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{place}: not a document in one line ({error}); correct it, or allow max_bad_fraction"
        ) from None


def _paragraphs(part: Path) -> Iterator[Row]:
    """The texts of a .txt file: lines between lines that are empty or blank, without their ends."""
    lines: list[str] = []
    for line in chain(text_lines(part), [""]):
        text = line.removesuffix("\n").removesuffix("\r")
        if text.strip():
            lines.append(text)
        elif lines:
            yield {"text": "\n".join(lines)}
            lines = []


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, compressed or not, each with its \\n; DataError where one is not UTF-8."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, str):
            raise DataError(f"{path}:{number}: {line}")
        yield line.removeprefix(codecs.BOM_UTF8).decode()


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file of cells, objects or parquet, or of a folder of `save_to_disk`: all its splits in their order.

    Of parquet and folders only `columns` are read; a class of the `datasets` library is its name. DataError when the
    file is damaged or of another kind; one that is yielded stands for a row that cannot be read.
    """
    suffix = suffix_of(path)
    if path.is_dir() or suffix == ".parquet":
        return _table_rows(path, columns)
    if suffix in CELLS or suffix in OBJECTS:
        return _cells(path) if suffix in CELLS else _objects(path)
    raise DataError(f"{path}: is no {', '.join((*CELLS, *OBJECTS))}, .parquet or folder of save_to_disk; convert it")


def _cells(path: Path) -> Iterator[Row]:
    """The rows of a file of cells by the names in its first row, every cell as text: 007 stays so.

    In a .tsv quotation marks are text. Blank lines are left out. A DataError stands for a row that has more or fewer
    cells than the first.
    """
    csv.field_size_limit(LONGEST_LINE)
    lines = text_lines(path)
    reader = csv.reader(lines, strict=True)
    rows = ((reader.line_num, row) for row in reader)
    if suffix_of(path) == ".tsv":
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        rows = ((number, text.split("\t")) for number, text in enumerate(texts, start=1))
    rows = (row for row in rows if row[1] not in ([], [""]))
    try:
        _, names = next(rows, (1, []))
        if not names:
            raise DataError(f"{path}: has no first row with the names of columns; get the file again")
        for name in filter(None, names):
            if names.count(name) > 1:
                raise DataError(f"{path}: the first row has '{name}' twice; rename one of them")
        for number, row in rows:
            if len(row) == len(names):
                yield dict(zip(names, row, strict=True))
            else:
                yield DataError(f"{path}:{number}: {len(row)} cells, but {len(names)} columns; correct the row")
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}; correct the row") from None


def _objects(path: Path) -> Iterator[Row]:
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            try:
                yield msgspec.json.decode(line, type=dict)
            except (ValueError, RecursionError) as error:
                yield DataError(f"{path}:{number}: not an object in one line ({error}); correct it")


def _table_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow

    try:
        with reading(path, absent="correct its path"):
            for table in _tables(path, columns):
                classes = {name: classes_of(table.schema, name) for name in columns}
                table = table.select([name for name in columns if name in table.schema.names])
                for row in table.to_pylist():
                    yield {
                        name: _class_named(value, classes[name]) if classes[name] else value
                        for name, value in row.items()
                    }
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if getattr(error, "errno", None):  # the system's, not a library's
            raise
        message = " ".join(str(error).split())
        raise DataError(f"{path}: damaged, or of another kind than its name ({message}); get the file again") from None


def _tables(path: Path, columns: Sequence[str]) -> "Iterator[pyarrow.Table | pyarrow.RecordBatch]":
    """A few rows at a time, so that memory does not grow with the file."""
    if path.is_dir():
        import datasets

        for file in path.rglob("*.arrow"):
            with open(file, "rb") as content:
                content.seek(max(0, file.stat().st_size - len(END_OF_STREAM)))
                if content.read() != END_OF_STREAM:
                    raise ValueError(f"{file.name} was cut: it has no end mark")
        saved = datasets.load_from_disk(str(path))
        for split in saved.values() if isinstance(saved, dict) else [saved]:
            yield from split.with_format("arrow").iter(ROWS_AT_ONCE)
    else:
        import pyarrow.parquet

        unbuffered = {"pre_buffer": False, "buffer_size": BYTES_AT_ONCE}  # or a whole row group would be held
        with pyarrow.parquet.ParquetFile(path, **unbuffered) as file:
            names = [name for name in columns if name in file.schema_arrow.names]
            yield from file.iter_batches(ROWS_AT_ONCE, columns=names, use_threads=False)


def classes_of(schema: "pyarrow.Schema", column: str) -> list[str]:
    """The class names that the `datasets` library wrote of a column into a schema; ValueError where that is damaged."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        return list(features.get(column, {}).get("names", ()))
    except (AttributeError, TypeError):
        raise ValueError("its metadata are not those of the datasets library") from None


def _class_named(number: int | None, names: list[str]) -> str | Exception | None:
    """The name of a class by its number; None of -1, which stands for no label, and an Exception of any other number,
    which would be taken for the name of another class: names of classes may be numbers."""
    if number in range(len(names)):
        return names[number]
    last = len(names) - 1
    expected = f"0 ({names[0]}) to {last} ({names[last]})"
    return None if number in (None, -1) else ValueError(f"is class number {number}, expected {expected}")


def suffix_of(path: Path) -> str:
    """The end of a file's name, but for .gz or .zst."""
    return Path(re.sub(r"\.(gz|zst)$", "", path.name)).suffix
