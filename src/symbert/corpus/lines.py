"""The lines of a compressed or plain text file, in bounded memory, and never silently fewer than it has."""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import zstandard

from symbert.errors import DataError, MissingInputError

LARGEST_WINDOW = 128 << 20  # bytes of memory that a frame may ask for
LONGEST_LINE = 64 << 20  # bytes, with its end
CHUNK = 8 << 10  # compressed bytes at a time; zstd expands at most about 32,000-fold
BUFFER = 1 << 20  # bytes of lines


def read_lines(path: Path) -> Iterator[bytes | None]:
    """The lines of a .zst, .gz or plain file, each with its \\n, the only end of a line; None: beyond LONGEST_LINE.

    Raises DataError naming the file for a truncated or damaged stream.
    """
    with _expanded(path) as stream:
        while line := stream.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = stream.readline(LONGEST_LINE)
                yield None
            else:
                yield line


@contextmanager
def _expanded(path: Path) -> Iterator[io.BufferedReader]:
    """The file's content; zstd: of all frames, one after another, the last of which must be complete."""
    expand = {".zst": _Frames, ".gz": gzip.GzipFile}.get(path.suffix)
    try:
        with open(path, "rb") as file:
            if expand and not path.stat().st_size:
                raise EOFError  # which the gzip module takes for a whole file
            yield io.BufferedReader(expand(fileobj=file), BUFFER) if expand else file
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; run download-part, or correct corpus.files") from None
    except EOFError:
        raise DataError(f"{path}: ends within a compressed frame; get the file again") from None
    except (zstandard.ZstdError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged stream ({error}); get the file again") from None


class _Frames(io.RawIOBase):
    """The content of zstd frames; EOFError when the file ends within one, which the library's own reader keeps to
    itself."""

    def __init__(self, fileobj: BinaryIO) -> None:
        self._file = fileobj
        self._decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        self._frame = self._decompressor.decompressobj()
        self._compressed = self._content = b""
        self._given = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:
        while self._given == len(self._content):
            if not (self._compressed or (chunk := self._file.read(CHUNK))):
                if not self._frame.eof:
                    raise EOFError
                return 0
            if self._frame.eof:
                self._frame = self._decompressor.decompressobj()
            self._content = self._frame.decompress(self._compressed or chunk)
            self._compressed, self._given = self._frame.unused_data, 0
        size = min(len(buffer), len(self._content) - self._given)
        buffer[:size] = self._content[self._given : self._given + size]
        self._given += size
        return size
