"""Documents as one stream of token ids, and where in it each document begins; both are .npy files."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from symbert.errors import DataError
from symbert.files import MEGABYTE, reading

BLANKS = " \t\n\v\f\r"
OFFSET = np.dtype([("start", np.int64), ("id_hash", np.uint64), ("line", np.uint32)])
"""Of a document: its first token, the hash of its id or text, and its line in the part."""


class ArrayWriter:
    """A .npy file that grows by items of one shape; the header is completed on leaving the context."""

    def __init__(self, path: Path, dtype: np.dtype, item: tuple[int, ...] = ()) -> None:
        self.length = 0
        self._dtype, self._item = dtype, item
        self._file = open(path, "wb")  # noqa: SIM115 (closed on leaving)

    def __enter__(self) -> "ArrayWriter":
        self._write_header()
        return self

    def append(self, items: np.ndarray) -> None:
        """Add items of the file's type."""
        self._file.write(np.ascontiguousarray(items).data)
        self.length += len(items)

    def __exit__(self, *_: object) -> None:
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def _write_header(self) -> None:
        """numpy pads a header so that its size is the same however long the array grows."""
        shape = (self.length, *self._item)
        description = {"descr": npy.dtype_to_descr(self._dtype), "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(self._file, description)


def open_array(path: Path, dtype: np.dtype, dimensions: int = 1) -> np.ndarray:
    """A read-only memory map; MissingInputError or DataError name the file."""
    try:
        with reading(path, absent="run the rule that makes it"):
            array = np.lib.format.open_memmap(path, mode="r")  # np.load would open archives, too
    except ValueError as error:
        raise DataError(f"{path}: not an array ({error}); delete it and run again") from None
    if array.dtype != dtype or array.ndim != dimensions:
        raise DataError(
            f"{path}: {array.ndim} dimensions of {array.dtype}, expected {dimensions} of {dtype}; delete it"
        )
    return array


def id_hash(record_id: str) -> int:
    """The first 64 bits of the SHA-256 of a document's id."""
    return hash_of_text([record_id])


def hash_of_text(pieces: Iterable[str]) -> int:
    """The first 64 bits of the SHA-256 of a text."""
    return int.from_bytes(sha256_of_text(pieces).digest()[:8], "big")


def sha256_of_text(pieces: Iterable[str]) -> "hashlib._Hash":
    """The SHA-256 of a text."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece.encode())
    return digest


def count_words(text: str) -> int:
    """Runs of characters between ASCII white space, counted a megabyte at a time."""
    ends = 0  # of words before a blank
    for start in range(0, len(text), MEGABYTE):
        codes = np.frombuffer(text[start : start + MEGABYTE + 1].encode(), np.uint8)
        is_blank = (codes == ord(" ")) | (codes - ord("\t") <= ord("\r") - ord("\t"))  # below \t it wraps around
        ends += int(np.count_nonzero(is_blank[1:] > is_blank[:-1]))
    return ends + (text[-1] not in BLANKS if text else 0)
