"""The lines of a compressed or plain text file, in bounded memory, and never silently fewer than it has."""

import gzip
import io
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from symbert.errors import DataError
from symbert.files import reading

try:
    from compression import zstd  # from Python 3.14 on
except ImportError:
    from backports import zstd

LARGEST_WINDOW = {zstd.DecompressionParameter.window_log_max: 27}  # 128 MiB of memory that a frame may ask for
LONGEST_LINE = 64 << 20  # bytes, with its end
BLOCK = 1 << 16  # bytes that are read at a time: larger ones leave the processor's cache, which takes longer
COMPRESSED_BLOCK = 1 << 15  # likewise, of what is compressed
# How compressed files begin (RFC 1952; RFC 8878, 3.1.1 and 3.1.2).
GZIP, ZSTD, SKIPPABLE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
TOO_LONG = f"longer than {LONGEST_LINE:,} bytes; split the document"
NOT_UTF_8 = "not UTF-8; convert the file to UTF-8"


def read_lines(path: Path) -> Iterator[bytes | str]:
    """The lines of a zstd, gzip or plain file, whatever its name, each with its \\n, the only end of a line.

    A string, TOO_LONG or NOT_UTF_8, stands for a line that is so. Raises DataError naming the file for a truncated or
    damaged stream.
    """
    try:
        with reading(path, absent="download it, or correct corpus.files"), open(path, "rb") as file:
            for block in _blocks(_expanded(path, file)):
                is_text = _is_text(block)  # much at a time: line by line that takes as long as parsing them
                for line in io.BytesIO(block).readlines():
                    if len(line) > LONGEST_LINE:
                        yield TOO_LONG
                    else:
                        yield line if is_text or _is_text(line) else NOT_UTF_8
    except EOFError:
        raise DataError(f"{path}: ends within a compressed frame; get the file again") from None
    except (zstd.ZstdError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path}: damaged stream ({error}); get the file again") from None


class _Frames:
    """The content of zstd frames; `ZstdFile` reads less at a time and copies what it expands, a fifth longer."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame = zstd.ZstdDecompressor(options=LARGEST_WINDOW)

    def read(self, size: int) -> bytes:
        """The next bytes, up to `size`; none at the end. EOFError where the file ends within a frame."""
        expanded = b""
        while not expanded:
            compressed = b""
            if self._frame.eof:
                compressed = self._frame.unused_data or self._file.read(COMPRESSED_BLOCK)
                if not compressed:
                    return b""
                self._frame = zstd.ZstdDecompressor(options=LARGEST_WINDOW)
            elif self._frame.needs_input:
                compressed = self._file.read(COMPRESSED_BLOCK)
                if not compressed:
                    raise EOFError
            expanded = self._frame.decompress(compressed, size)
        return expanded


def _expanded(path: Path, file: io.BufferedReader) -> "BinaryIO | _Frames":
    """The content of a file, whatever its name; programs that fetch compressed files may expand them on the way."""
    begin = file.peek(len(ZSTD))[: len(ZSTD)]
    if begin.startswith(GZIP):
        return gzip.GzipFile(fileobj=file)
    if begin == ZSTD or SKIPPABLE.fullmatch(begin):
        return _Frames(file)
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix in (".gz", ".zst") and not text.startswith(b"{"):
        if len(begin) < len(ZSTD):
            raise EOFError
        if text:
            raise DataError(f"{path}: neither gzip nor zstd nor a line of JSON; get the file again")
    return file


def _blocks(content: "BinaryIO | _Frames") -> Iterator[bytes]:
    """The content in blocks that end where a line does; what is too long for a line may lack some of its middle."""
    begun: list[bytes] = []  # of the last line
    length = 0
    while block := content.read(BLOCK):
        end = block.rfind(b"\n") + 1
        if end:
            whole = b"".join([*begun, block[:end]])
            begun, length = [block[end:]], len(block) - end
            yield whole
        elif length <= LONGEST_LINE:
            begun.append(block)
            length += len(block)
    yield b"".join(begun)


def _is_text(content: bytes) -> bool:
    """Whether it is UTF-8, as Arrow sees it: Python would make a string of it, which takes five times as long."""
    import pyarrow

    ends = pyarrow.py_buffer(struct.pack("=2i", 0, len(content)))
    try:
        pyarrow.Array.from_buffers(pyarrow.string(), 1, [None, ends, pyarrow.py_buffer(content)]).validate(full=True)
        return True
    except pyarrow.ArrowInvalid:
        return False
