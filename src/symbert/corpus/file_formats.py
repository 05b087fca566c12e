"""What a file is by its first bytes, whatever its name says."""

import re
from pathlib import Path

from symbert.errors import DataError

AGAIN = "get the file again, or convert it"
PARQUET = "Parquet"
FORMATS = (  # words, how such files begin, and the remedy
    ("a pointer of Git LFS", rb"version https?://(git-lfs|hawser)\.github\.com/spec/", "run: git lfs pull"),
    ("a pointer of git-annex", rb"/annex/objects/", "run: git annex get"),
    (PARQUET, rb"PAR1", AGAIN),
    ("Arrow", rb"ARROW1\0\0", AGAIN),
    ("a zip archive", rb"PK(\x03\x04|\x05\x06)", "unpack it"),
    ("a tar archive", rb"(?s:.{257})ustar[\0 ]", "unpack it"),
    ("gzip", rb"\x1f\x8b", "expand it"),
    ("bzip2", rb"BZh[1-9](1AY&SY|\x17\x72\x45\x38)", "expand it"),
    ("xz", rb"\xfd7zXZ\0", "expand it"),
    ("lz4", rb"\x04\x22\x4d\x18", "expand it"),
    ("a 7-Zip archive", rb"7z\xbc\xaf\x27\x1c", "unpack it"),
    ("PDF", rb"%PDF-\d", AGAIN),
    ("RTF", rb"\{\\rtf\d", AGAIN),
    ("an old Office document", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", AGAIN),
    ("HTML", rb"(?i:(\xef\xbb\xbf)?\s*(<\?xml[^>]*>\s*)?<(!doctype\s+html|html[\s>]))", AGAIN),
    ("an SQLite database", rb"SQLite format 3\0", AGAIN),
    ("HDF5", rb"\x89HDF\r\n", AGAIN),
    ("an array of numpy", rb"\x93NUMPY", AGAIN),
    ("UTF-32", rb"\xff\xfe\0\0|\0\0\xfe\xff", "convert it to UTF-8, as with: iconv -f UTF-32 -t UTF-8"),
    ("UTF-16", rb"\xff\xfe|\xfe\xff", "convert it to UTF-8, as with: iconv -f UTF-16 -t UTF-8"),
)
FIRST = 4096  # bytes that are looked at


def refuse_other_format(path: Path, begin: bytes, expected: str = "") -> None:
    """DataError where a file that begins so is of one of FORMATS but the expected one, is UTF-16 or UTF-32 without a
    mark, or has lines that end in CR alone."""
    for name, pattern, remedy in FORMATS:
        if name != expected and re.match(pattern, begin):
            raise DataError(f"{path}: is {name}, whatever its name says; {remedy}")
    if not expected and is_wide(begin[:FIRST]):
        raise DataError(f"{path}: is UTF-16 or UTF-32 without a mark; convert it to UTF-8")
    lines = begin.rstrip(b"\r\n")
    if not expected and b"\r" in lines and b"\n" not in lines:
        raise DataError(rf"{path}: its lines end in CR alone; write LF, as with: tr '\r' '\n' < {path.name} > NEW")


def begin_of(path: Path) -> bytes:
    """The first bytes of a file."""
    with open(path, "rb") as file:
        return file.read(FIRST)


def is_wide(begin: bytes) -> bool:
    """Whether text is UTF-16 or UTF-32 without a mark: zero bytes are at odd places alone or at even ones alone, at all
    of these or at no fewer than four and one in fifty; or they are half of all bytes."""
    few, many = sorted((begin[::2].count(0), begin[1::2].count(0)))
    is_often = many >= max(4, len(begin) / 50) or many == len(begin) // 2 > 0
    return is_often and (few == 0 or few + many >= len(begin) / 2)
