"""Documents of OSCAR-2301, read from a part: a zstd stream of JSON lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec
import zstandard

from symbert.errors import DataError, MissingInputError

LARGEST_WINDOW = 128 << 20  # bytes of memory that a frame may ask for
LONGEST_LINE = 64 << 20  # bytes
CHUNK = 8 << 10  # compressed bytes at a time; zstd expands at most about 32,000-fold


class WarcHeaders(msgspec.Struct, rename={"url": "warc-target-uri", "record_id": "warc-record-id"}):
    """Where and when a document was crawled; only the fields that are used."""

    url: str | None = None
    record_id: str | None = None


class Metadata(msgspec.Struct):
    """OSCAR's annotations; missing, null and empty lists mean the same."""

    harmful_pp: float | None = None
    quality_warnings: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    categories: list[str] | None = None
    annotation: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET  # the name before OSCAR 23.01


class Document(msgspec.Struct):
    """One line of a part: text, one paragraph a line, and what is known about it."""

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


_DECODER = msgspec.json.Decoder(Document)


def documents(part: Path) -> Iterator[tuple[int, Document]]:
    """Line number (from 1) and document of each line of a part, in bounded memory.

    Raises DataError naming file and line for a bad line, for a truncated or damaged stream, and for
    OSCAR 22.01, whose quality annotations have another name and would silently not be filtered.
    """
    for number, line in enumerate(_lines(part), start=1):
        yield number, decode(line, f"{part}:{number}")


def decode(line: bytes, place: str) -> Document:
    """The document in one JSON line; DataError names `place`."""
    try:
        document = _DECODER.decode(str(line, "utf-8"))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: not an OSCAR document ({error}); download the part again") from None
    metadata = document.metadata
    if metadata.annotation is not msgspec.UNSET and metadata.quality_warnings is msgspec.UNSET:
        raise DataError(f"{place}: 'annotation' without 'quality_warnings': OSCAR 22.01; use the files of OSCAR 23.01")
    return document


def _lines(part: Path) -> Iterator[bytes]:
    """The stream cut at every \\n, and nowhere else: texts contain U+2028 and the like."""
    pending: list[bytes] = []
    length = number = 0
    for data in _decompressed(part):
        first, *rest = data.split(b"\n")
        pending.append(first)
        length += len(first)
        for piece in rest:
            yield b"".join(pending)
            pending, length = [piece], len(piece)
            number += 1
        if length > LONGEST_LINE:
            raise DataError(f"{part}:{number + 1}: line of more than {LONGEST_LINE:,} bytes; download the part again")
    if length:
        yield b"".join(pending)


def _decompressed(part: Path) -> Iterator[bytes]:
    """The bytes of all frames, one after another; DataError unless the last frame is complete."""
    try:
        with open(part, "rb") as file:
            yield from _frames(file)
    except FileNotFoundError:
        raise MissingInputError(f"{part}: file not found; run download-part") from None
    except EOFError:
        raise DataError(f"{part}: ends within a zstd frame; download the part again") from None
    except zstandard.ZstdError as error:
        raise DataError(f"{part}: damaged zstd stream ({error}); download the part again") from None


def _frames(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    frame = decompressor.decompressobj()
    while chunk := file.read(CHUNK):
        while chunk:
            if frame.eof:
                frame = decompressor.decompressobj()
            yield frame.decompress(chunk)
            chunk = frame.unused_data
    if not frame.eof:
        raise EOFError
