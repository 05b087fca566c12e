"""The lines of a compressed or plain text file, in bounded memory, and never silently fewer than it has."""

import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow
import zstandard

from symbert.errors import DataError
from symbert.files import reading

LARGEST_WINDOW = 128 << 20  # bytes of memory that a frame may ask for
LONGEST_LINE = 64 << 20  # bytes, with its end
CHUNK = 8 << 10  # compressed bytes at a time; zstd expands at most about 32,000-fold
BUFFER = 1 << 20  # bytes of lines
# How compressed files begin (RFC 1952; RFC 8878, 3.1.1 and 3.1.2).
GZIP, ZSTD, SKIPPABLE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
TOO_LONG = f"longer than {LONGEST_LINE:,} bytes; split the document"
NOT_UTF_8 = "not UTF-8; convert the file to UTF-8"


def read_lines(path: Path) -> Iterator[bytes | str]:
    """The lines of a zstd, gzip or plain file, whatever its name, each with its \\n, the only end of a line.

    A string, TOO_LONG or NOT_UTF_8, stands for a line that is so. Raises DataError naming the file for a truncated or
    damaged stream.
    """
    with _opened(path) as content:
        lines = io.BufferedReader(content, BUFFER)
        while line := lines.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = lines.readline(LONGEST_LINE)
                yield TOO_LONG
            else:
                yield line if content.is_text or _is_text(line) else NOT_UTF_8


@contextmanager
def _opened(path: Path) -> Iterator["_Text"]:
    try:
        with reading(path, absent="run download-part, or correct corpus.files"), open(path, "rb") as file:
            expand = _expander(path, file.peek(len(ZSTD))[: len(ZSTD)])
            yield _Text(expand(fileobj=file) if expand else file)
    except EOFError:
        raise DataError(f"{path}: ends within a compressed frame; get the file again") from None
    except (zstandard.ZstdError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged stream ({error}); get the file again") from None


def _expander(path: Path, begin: bytes) -> Callable[..., BinaryIO | io.RawIOBase] | None:
    """What expands a file that begins so; None for a plain one. A name alone compresses nothing: programs that fetch
    files may expand them on the way."""
    if begin.startswith(GZIP):
        return gzip.GzipFile
    if begin == ZSTD or SKIPPABLE.fullmatch(begin):
        return _Frames
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix in (".gz", ".zst") and not text.startswith(b"{"):
        if len(begin) < len(ZSTD):
            raise EOFError
        if text:
            raise DataError(f"{path}: neither gzip nor zstd nor a line of JSON; get the file again")
    return None


class _Text(io.RawIOBase):
    """A stream that looks whether it is UTF-8, much at a time: line by line that takes as long as parsing them."""

    def __init__(self, content: BinaryIO | io.RawIOBase) -> None:
        self._content = content
        self._begun = b""  # a character that goes on in what is read next
        self.is_text = True

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        size = self._content.readinto(buffer)
        if self.is_text:
            self.is_text = self._goes_on(memoryview(buffer)[:size]) if size else not self._begun
        return size

    def _goes_on(self, data: memoryview) -> bool:
        """Whether what was begun and `data` are UTF-8, but for a character that is begun at the end."""
        missing = _length(self._begun[0]) - len(self._begun) if self._begun else 0
        first, data = self._begun + bytes(data[:missing]), data[missing:]
        end = len(data) - _begun_bytes(data)
        self._begun = bytes(data[end:])
        return _is_text(first) and _is_text(data[:end])


def _begun_bytes(data: memoryview) -> int:
    """How many bytes at the end are the beginning of a character."""
    for back in range(1, min(4, len(data) + 1)):
        if data[-back] < 0x80:
            return 0
        if data[-back] >= 0xC0:
            return back if back < _length(data[-back]) else 0
    return 0


def _length(byte: int) -> int:
    """Of the character in UTF-8 that a byte begins."""
    return 1 + (byte >= 0xC0) + (byte >= 0xE0) + (byte >= 0xF0)


def _is_text(data: bytes | memoryview) -> bool:
    offsets = pyarrow.py_buffer(np.array([0, len(data)], np.int32))
    try:
        pyarrow.StringArray.from_buffers(1, offsets, pyarrow.py_buffer(data)).validate(full=True)
        return True
    except pyarrow.ArrowInvalid:
        return False


class _Frames(io.RawIOBase):
    """The content of all zstd frames of a file, one after another; EOFError when it ends within one, which the
    library's own reader keeps to itself."""

    def __init__(self, fileobj: BinaryIO) -> None:
        self._file = fileobj
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._compressed = b""
        self._content = memoryview(b"")  # that was not given yet

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        """Fill the buffer, unless the file ends."""
        filled = 0
        while filled < len(buffer) and (self._content or self._expand()):
            size = min(len(buffer) - filled, len(self._content))
            buffer[filled : filled + size] = self._content[:size]
            self._content = self._content[size:]
            filled += size
        return filled

    def _expand(self) -> bool:
        """Get some content; false when there is no more."""
        while not self._content:
            compressed = self._compressed or self._file.read(CHUNK)
            if not compressed:
                if not self._frame.eof:
                    raise EOFError
                return False
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()
            self._content = memoryview(self._frame.decompress(compressed))
            self._compressed = self._frame.unused_data
        return True
