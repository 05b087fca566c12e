"""Documents: OSCAR-2301's schema, and web text of other publishers, which brings text, perhaps URL and id, only."""

import codecs
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from symbert.corpus.file_formats import FIRST, PARQUET, begin_of, refuse_other_format
from symbert.corpus.lines import LONGEST_LINE, read_lines, zstd
from symbert.errors import ConfigError, DataError, line_of
from symbert.files import reading

if TYPE_CHECKING:
    import pyarrow

    Table = tuple[list[str], pyarrow.Table | pyarrow.RecordBatch]  # the names of all columns, and rows of some

Line = tuple[int, "Document | LongDocument"]
"""A document and its line in the part, from 1."""

Row = dict[str, Any] | DataError
"""Cells by column, an Exception where one cannot be read; or why the whole row cannot."""

Schema = TypeVar("Schema")
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff"
EMPTY_LINES = "put an empty line between documents"
CORRECT = "correct it, or allow max_bad_fraction"
ROWS_AT_ONCE = 256  # of a parquet file
BYTES_AT_ONCE = 1 << 20  # of its columns
PIECE = 1 << 17  # bytes of a text of many lines, at least

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
    def pieces(self) -> Iterable[str]:
        """The text, in pieces of which all but the first begin with a line's end."""
        return (self.content,)

    @property
    def length(self) -> int:
        """Characters of the text."""
        return len(self.content)

    @property
    def url(self) -> str | None:
        """The address of the page, if known."""
        return self.warc_headers.url if self.warc_headers else None

    @property
    def record_id(self) -> str | None:
        """The WARC record id, if known."""
        return self.warc_headers.record_id if self.warc_headers else None


@dataclass
class LongDocument:
    """A document of many lines of a .txt file, without URL and id: its text is held compressed, and read in pieces."""

    metadata: Metadata = field(default_factory=Metadata)
    length: int = 0
    compressed: list[bytes] = field(default_factory=list)
    url: None = None
    record_id: None = None

    def append(self, piece: str) -> None:
        """Add to the end a piece that begins as those of a `Document`."""
        self.length += len(piece)
        self.compressed.append(zstd.compress(piece.encode()))

    @property
    def pieces(self) -> Iterable[str]:
        """As of a `Document`."""
        return (zstd.decompress(piece).decode() for piece in self.compressed)

    @property
    def content(self) -> str:
        """The whole text."""
        return "".join(self.pieces)


class WebText(msgspec.Struct, gc=False):
    """A document without OSCAR's annotations: C4, FineWeb, Dolma, own crawls; or OSCAR's, which are then not read.

    Its cells are of any type, because a text is not refused for a cell that is not read.
    """

    text: Any = None
    content: Any = None
    url: Any = None
    id: Any = None
    warc_headers: Any = None


_OSCAR = msgspec.json.Decoder(Document)
_WEB_TEXT = msgspec.json.Decoder(WebText)


def documents(
    part: Path, annotations: str, on_bad: OnBad, reads_url: bool = True, rows: Iterable[Row] | None = None
) -> Iterator[Line]:
    """The documents of a part, with OSCAR's annotations when they are `published`, without when `computed`.

    A URL that is no text is bad where `reads_url`, and else none. `rows` of a dataset are given.

    Formats: JSON lines (plain, gzip, zstd) and, without annotations, .parquet, .csv, .tsv, .txt, and a folder that
    `save_to_disk` of the `datasets` library wrote. Each bad line goes to `on_bad` as DataError that names file and
    line; a truncated or damaged file raises it. Blank lines are skipped.
    """
    name, suffix = str(part), suffix_of(part)
    is_of_lines = rows is None and not part.is_dir() and suffix not in (".txt", ".parquet", *CELLS)
    if annotations == "published" and not is_of_lines:
        raise ConfigError(f"{part}: has no annotations of OSCAR; set corpus.annotations to computed")
    if is_of_lines:
        rows = read_lines(part)
    elif rows is None:
        rows = _paragraphs(part) if suffix == ".txt" else read_rows(part, WebText.__struct_fields__)
    understand = decode if annotations == "published" else partial(decode_web_text, reads_url=reads_url)
    for number, row in enumerate(rows, start=1):
        place, row = f"{name}:{number}", row.removeprefix(codecs.BOM_UTF8) if isinstance(row, bytes) else row
        try:
            if isinstance(row, str):
                raise DataError(f"{place}: {row}, or allow max_bad_fraction")
            if isinstance(row, DataError):
                raise row
            document = row if isinstance(row, LongDocument) else understand(row, place)
        except DataError as error:
            if not isinstance(row, bytes) or row.strip():
                on_bad(error)
        else:
            yield number, document


def decode(line: bytes, place: str) -> Document:
    """The document in a line of OSCAR-2301; DataError names `place`.

    OSCAR 22.01 is refused: its quality annotations have another name and would silently not be filtered.
    """
    document = _decoded(_oscar_in, line, place)
    metadata = document.metadata
    if metadata.annotation is not msgspec.UNSET and metadata.quality_warnings is msgspec.UNSET:
        raise DataError(
            f"{place}: 'annotation' without 'quality_warnings': OSCAR 22.01; use the files of OSCAR 23.01, "
            "or set corpus.annotations to computed"
        )
    return document


def decode_web_text(row: bytes | dict[str, Any], place: str, reads_url: bool = True) -> Document:
    """The text (`text` or `content`), URL and id in a line or in cells; DataError names `place`.

    An id that is neither a text nor a whole number is none.
    """
    found = _decoded(_web_text_in if isinstance(row, bytes) else _web_text_of, row, place)
    name = "text" if found.text is not None else "content"
    content = getattr(found, name)
    if content is None:
        cells = _object(row) if isinstance(row, bytes) else row
        if null := [name for name in ("text", "content") if name in cells]:
            raise DataError(f"{place}: '{null[0]}' is null; {CORRECT}")
        remedy = CORRECT if isinstance(row, bytes) else "call the column of the text 'text'"
        raise DataError(f"{place}: no 'text' or 'content', found {', '.join(cells) or 'nothing'}; {remedy}")
    if flaw := flaw_of(content):
        raise DataError(f"{place}: '{name}' {flaw}; {CORRECT}")
    headers = found.warc_headers if isinstance(found.warc_headers, dict) else {}
    url = headers.get("warc-target-uri") or found.url
    if url is not None and (flaw := flaw_of(url)):
        if reads_url:
            raise DataError(f"{place}: 'url' {flaw}, and the filter categories reads it; {CORRECT}")
        url = None
    names = (headers.get("warc-record-id"), found.id)
    identity = next((str(name) for name in names if type(name) is int or (name and not flaw_of(name))), None)
    return Document(content, Metadata(), WarcHeaders(url, identity))


def flaw_of(cell: Any) -> str | None:
    """Why a cell is no text, if it is none."""
    if isinstance(cell, UnicodeDecodeError):
        return "is not UTF-8"
    if isinstance(cell, Exception):
        return f"cannot be read ({line_of(cell)})"
    if not isinstance(cell, str):
        return f"is {cell!r:.60}, no text"
    return None if cell.isascii() or _is_encodable(cell) else "has half of a surrogate pair, which is no character"


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _decoded(decoder: Callable[[Any], Schema], row: bytes | dict[str, Any], place: str) -> Schema:
    try:
        return decoder(row)
    except (ValueError, RecursionError) as error:
        raise _not_in_one_line(place, row, error, CORRECT) from None


def _oscar_in(line: bytes) -> Document:
    try:
        return _OSCAR.decode(line)
    except msgspec.DecodeError as error:
        if not isinstance(error, msgspec.ValidationError):
            json.loads(line.decode())  # which says what is wrong: msgspec calls half of a surrogate pair truncated
            raise ValueError("NaN, infinity or half of a surrogate pair is in it") from None
        raise


def _web_text_in(line: bytes) -> WebText:
    try:
        return _WEB_TEXT.decode(line)
    except msgspec.DecodeError:
        return _web_text_of(_object(line))


def _web_text_of(cells: dict[str, Any]) -> WebText:
    return msgspec.convert(cells, WebText)


def _object(line: str | bytes) -> dict[str, Any]:
    """The object in a line of JSON; ValueError or RecursionError where there is none."""
    value = _json(line)
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {value!r:.60}")
    return value


def _not_in_one_line(place: str, line: str | bytes, error: Exception, remedy: str) -> DataError:
    begin = line.strip()[:2]
    begin = begin.decode(errors="replace") if isinstance(begin, bytes) else begin
    jq = "jq -c '.[]'" if begin.startswith("[") else "jq -c ." if begin == "{" else None
    remedy = f"write an object a line, as with: {jq}" if jq else remedy
    return DataError(f"{place}: not an object in one line ({error}); {remedy}")


def _json(text: str | bytes) -> Any:
    """A JSON value. What msgspec refuses Python's json may read, as it writes it: NaN, halves of surrogate pairs."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text if isinstance(text, str) else text.decode())


def _paragraphs(part: Path) -> "Iterator[dict[str, Any] | LongDocument | str]":
    """The texts of a .txt file: lines between lines that are empty, blank or of no width, without their ends."""
    lines = text_lines(part)
    first = next(lines, "")
    if _has_json_texts(first):
        raise DataError(f"{part}: is JSON, whatever its name says; if it is an object a line, call it .jsonl")
    content, count, size, long = bytearray(), 0, 0, LongDocument()  # of the lines so far, no more than are too long
    for line in chain([first], lines, [""]):
        text = line.removesuffix("\n").removesuffix("\r")
        if text.strip().strip(ZERO_WIDTH):
            if len(content) > PIECE:
                long.append(content.decode())
                content.clear()
            if size <= LONGEST_LINE:
                before = len(content)
                content += b"\n" * (count > 0) + text.encode()
                size += len(content) - before
            count += 1
        elif count:
            if size > LONGEST_LINE:
                yield f"{count:,} lines are one document, longer than {LONGEST_LINE:,} bytes; {EMPTY_LINES}"
            elif long.length:
                long.append(content.decode())
                yield long
            else:
                yield {"text": content.decode()}
            content, count, size, long = bytearray(), 0, 0, LongDocument()


def _has_json_texts(line: str) -> bool:
    """Whether a line is a JSON object, or a list of objects, of which the first has a text."""
    try:
        value = _json(line)
    except (ValueError, RecursionError):
        return False
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and any(isinstance(cell, str) for cell in value.values())


def text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file, compressed or not, each with its \\n; DataError where one is not UTF-8.

    A mark of UTF-8 at the beginning is left out.
    """
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, str):
            raise DataError(f"{path}:{number}: {line}")
        yield (line.removeprefix(codecs.BOM_UTF8) if number == 1 else line).decode()


def read_rows(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file of cells, objects or parquet, or of a folder of `save_to_disk`: all its splits in their order.

    A row has all columns, of which parquet and folders fill `columns` alone; a class of the `datasets` library is its
    name, and JSON its value. DataError when the file is damaged or of another kind, or has one of `columns` twice; one
    that is yielded stands for a row that cannot be read.
    """
    suffix = suffix_of(path)
    if path.is_dir() or suffix == ".parquet":
        return rows_of_tables(path, _tables(path, columns), columns)
    if suffix in CELLS or suffix in OBJECTS:
        return _cells(path, columns) if suffix in CELLS else _objects(path)
    raise DataError(f"{path}: is no {', '.join((*CELLS, *OBJECTS))}, .parquet or folder of save_to_disk; convert it")


def _cells(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """The rows of a file of cells by the names in its first row, every cell as text: 007 stays so.

    In a .tsv quotation marks are text. Rows without a filled cell are left out, as blank lines are. A DataError stands
    for a row that has more or fewer cells than the first.
    """
    csv.field_size_limit(LONGEST_LINE)
    lines, separator = text_lines(path), "," if suffix_of(path) == ".csv" else "\t"
    if separator == ",":
        reader = csv.reader(lines, strict=True)
        rows = ((reader.line_num, row) for row in reader)
    else:
        texts = (line.removesuffix("\n").removesuffix("\r") for line in lines)
        rows = ((number, text.split("\t")) for number, text in enumerate(texts, start=1))
    number, names = 0, []
    try:
        for number, row in rows:
            if not any(row):
                continue
            if not names:
                names = row
                if len(names) == 1 and re.search(r"[,;|\t]", names[0]):
                    raise DataError(f"{path}:{number}: one column, {names[0]!r}; separate cells by {separator!r}")
                refuse_twice(path, names, columns)
            elif len(row) == len(names):
                yield dict(zip(names, row, strict=True))
            else:
                yield DataError(f"{path}:{number}: {len(row)} cells, but {len(names)} columns; correct the row")
    except csv.Error as error:
        raise DataError(f"{path}:{number + 1}: {error}; correct the row that begins there") from None
    if not names:
        raise DataError(f"{path}: has no first row with the names of columns; get the file again")


def _objects(path: Path) -> Iterator[Row]:
    for number, line in enumerate(text_lines(path), start=1):
        if line.strip():
            try:
                yield _object(line.removeprefix("\ufeff"))
            except (ValueError, RecursionError) as error:
                yield _not_in_one_line(f"{path}:{number}", line, error, "correct it")


def rows_of_tables(path: Path, tables: "Iterable[Table]", columns: Sequence[str]) -> Iterator[Row]:
    """The rows of tables that are read from a file, with all its columns, of which `columns` alone are filled.

    DataError when the file is damaged, and where it has one of `columns` twice."""
    import pyarrow

    try:
        with reading(path, absent="correct its path"):
            for names, table in tables:
                refuse_twice(path, names, columns)
                rows = [dict.fromkeys(names) for _ in range(table.num_rows)]
                for name in filter(names.__contains__, columns):
                    for row, cell in zip(rows, _cells_of(table, name), strict=True):
                        row[name] = cell
                yield from rows
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        if getattr(error, "errno", None):  # the system's, not a library's
            raise
        message = line_of(error)
        raise DataError(f"{path}: damaged, or of another kind than its name ({message}); get the file again") from None


def _tables(path: Path, columns: Sequence[str]) -> "Iterator[Table]":
    """The names of all columns, and at least the given columns of a few rows at a time, so that memory does not grow
    with the file."""
    if path.is_dir():
        import datasets

        for file in path.rglob("*.arrow"):
            with open(file, "rb") as content:
                refuse_other_format(file, content.read(FIRST), expected="Arrow")
                content.seek(max(0, file.stat().st_size - len(END_OF_STREAM)))
                if content.read() != END_OF_STREAM:
                    raise ValueError(f"{file.name} was cut: it has no end mark")
        for folder in _splits(path):
            if _noted(folder / "state.json", "_data_files"):  # a table without files the library cannot load
                split = datasets.load_from_disk(str(folder)).with_format("arrow")
                yield from ((split.column_names, rows) for rows in split.iter(ROWS_AT_ONCE))
    else:
        import pyarrow.parquet

        refuse_other_format(path, begin_of(path), expected=PARQUET)
        unbuffered = {"pre_buffer": False, "buffer_size": BYTES_AT_ONCE}  # or a whole row group would be held
        with pyarrow.parquet.ParquetFile(path, **unbuffered) as file:
            names = file.schema_arrow.names
            chosen = [name for name in columns if name in names]
            yield from ((names, rows) for rows in file.iter_batches(ROWS_AT_ONCE, columns=chosen, use_threads=False))


def _splits(path: Path) -> list[Path]:
    """The folders of the splits that `save_to_disk` wrote, or of the only one."""
    note = path / "dataset_dict.json"
    return [path / name for name in _noted(note, "splits")] if note.is_file() else [path]


def _noted(note: Path, key: str) -> list[Any]:
    return msgspec.json.decode(note.read_bytes(), type=dict[str, Any]).get(key) or []


def _cells_of(table: "pyarrow.Table | pyarrow.RecordBatch", name: str) -> list[Any]:
    """The cells of a column: of one of JSON the values, of one of classes their names; an Exception stands for one that
    cannot be read."""
    column, classes = table.column(name), classes_of(table.schema, name)
    try:
        cells = column.to_pylist()
    except (ValueError, OverflowError):  # such as a text that is not UTF-8, and a date that Python cannot write
        cells = [_tried(cell.as_py) for cell in column]
    if is_json(table.schema, name):
        return [_tried(_json, cell) if isinstance(cell, str) else cell for cell in cells]
    return [_class_named(cell, classes) for cell in cells] if classes else cells


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except (ValueError, OverflowError, RecursionError) as error:
        return error


def refuse_twice(path: Path, names: Sequence[str], columns: Sequence[str]) -> None:
    """DataError where one of the columns that are read has a name that another one has."""
    for name in columns:
        if names.count(name) > 1:
            raise DataError(f"{path}: two columns are called '{name}'; rename one of them")


def classes_of(schema: "pyarrow.Schema", column: str) -> list[str]:
    """The class names that the `datasets` library wrote of a column into a schema; ValueError where that is damaged."""
    return list(_feature_of(schema, column).get("names", ()))


def is_json(schema: "pyarrow.Schema", column: str) -> bool:
    """Whether a column's cells are JSON, by Arrow's type or the `datasets` library's: texts stand in quotation marks
    there. ValueError where the metadata are damaged."""
    return "arrow.json" in str(schema.field(column).type) or _feature_of(schema, column).get("_type") == "Json"


def _feature_of(schema: "pyarrow.Schema", column: str) -> dict[str, Any]:
    """What the `datasets` library wrote of a column into a schema."""
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        return dict(features.get(column, {}))
    except (AttributeError, TypeError, ValueError):
        raise ValueError("its metadata are not those of the datasets library") from None


def _class_named(number: int | None, names: list[str]) -> str | Exception | None:
    """The name of a class by its number; None of -1, which stands for no label, and an Exception of any other number,
    which would be taken for the name of another class: names of classes may be numbers."""
    if number in range(len(names)):
        return names[number]
    last = len(names) - 1
    expected = f"0 ({names[0]}) to {last} ({names[last]})"
    return None if number in (None, -1) else ValueError(f"class number {number}, expected {expected}")


def suffix_of(path: Path) -> str:
    """The end of a file's name, but for .gz or .zst."""
    return Path(re.sub(r"\.(gz|zst)$", "", path.name)).suffix
