"""The lines of a compressed or plain text file, in bounded memory, and never silently fewer than it has."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path

from symbert.corpus.file_formats import FIRST, refuse_other_format
from symbert.errors import DataError
from symbert.files import reading

try:
    from compression import zstd  # from Python 3.14 on
except ImportError:
    from backports import zstd

WINDOW = zstd.DecompressionParameter.window_log_max
LARGEST_WINDOW = {WINDOW: 27}  # 128 MiB of memory that a frame may ask for
AT_ONCE = 1 << 18  # bytes that are expanded
LONGEST_LINE = 64 << 20  # bytes, with its end
# How compressed files begin (RFC 1952; RFC 8878, 3.1.1 and 3.1.2).
GZIP, ZSTD, SKIPPABLE = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", re.compile(rb"[\x50-\x5f]\x2a\x4d\x18")
TOO_LONG = f"longer than {LONGEST_LINE:,} bytes; split the document"
NOT_UTF_8 = "not UTF-8; convert the file to UTF-8"


def read_lines(path: Path) -> Iterator[bytes | str]:
    """The lines of a zstd, gzip or plain file, whatever its name, each with its \\n, the only end of a line.

    A string, TOO_LONG or NOT_UTF_8, stands for a line that is so. Raises DataError naming the file for a truncated or
    damaged stream, and for one of another kind than text.
    """
    try:
        with reading(path, absent="download it, or correct its path"), open(path, "rb") as file:
            content = _expanded(path, file)
            refuse_other_format(path, content.peek(FIRST))
            while line := content.readline(LONGEST_LINE + 1):
                is_too_long = len(line) > LONGEST_LINE
                while is_too_long and line and not line.endswith(b"\n"):
                    line = content.readline(LONGEST_LINE)
                yield TOO_LONG if is_too_long else line if _is_text(line) else NOT_UTF_8
    except EOFError:
        raise DataError(f"{path}: ends within a compressed frame; get the file again") from None
    except (zstd.ZstdError, gzip.BadGzipFile, zlib.error) as error:
        if "too much memory" in str(error):
            limit = f"a window of more than {1 << LARGEST_WINDOW[WINDOW] >> 20} MiB, as of zstd --long"
            remedy = f"compress it again: zstd -dc --long=31 {path.name} | zstd -o NEW"
            raise DataError(f"{path}: {limit}; {remedy}") from None
        if "Dictionary mismatch" in str(error):
            remedy = f"compress it without one: zstd -dc -D DICTIONARY {path.name} | zstd -o NEW"
            raise DataError(f"{path}: needs the dictionary that it was compressed with; {remedy}") from None
        raise DataError(f"{path}: damaged stream ({error}); get the file again") from None


def _expanded(path: Path, file: io.BufferedReader) -> io.BufferedIOBase:
    """The content of a file, whatever its name; programs that fetch compressed files may expand them on the way."""
    begin = file.peek(len(ZSTD))[: len(ZSTD)]
    if begin.startswith(GZIP):
        return io.BufferedReader(gzip.GzipFile(fileobj=file), AT_ONCE)
    if begin == ZSTD or SKIPPABLE.fullmatch(begin):
        return io.BufferedReader(zstd.ZstdFile(file, options=LARGEST_WINDOW), AT_ONCE)
    text = begin.lstrip(b"\xef\xbb\xbf \t\r\n")
    if path.suffix in (".gz", ".zst") and not text.startswith(b"{"):
        if len(begin) < len(ZSTD):
            raise EOFError
        if text:
            refuse_other_format(path, file.peek(FIRST))
            raise DataError(f"{path}: neither gzip nor zstd nor a line of JSON; get the file again")
    return file


def _is_text(line: bytes) -> bool:
    try:
        return line.isascii() or bool(line.decode())
    except UnicodeDecodeError:
        return False
