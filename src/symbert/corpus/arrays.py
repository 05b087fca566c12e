"""Arrays on disk (.npy, version 1) that are written piece by piece and read as memory maps."""

from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.lib import format as npy

from symbert.errors import DataError, MissingInputError


class ArrayWriter:
    """A one-dimensional .npy file that grows; the header is completed on leaving the context."""

    def __init__(self, path: Path, dtype: np.dtype) -> None:
        self.length = 0
        self._dtype = dtype
        self._file = open(path, "wb")  # noqa: SIM115 (closed on leaving)

    def __enter__(self) -> "ArrayWriter":
        write_header(self._file, self._dtype, (0,))
        return self

    def append(self, items: np.ndarray) -> None:
        """Add items of the file's type."""
        self._file.write(np.ascontiguousarray(items).data)
        self.length += len(items)

    def __exit__(self, *_: object) -> None:
        self._file.seek(0)
        write_header(self._file, self._dtype, (self.length,))
        self._file.close()


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The .npy header of an array; numpy pads it so that its size is the same however long the array grows."""
    description = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, description)


def open_array(path: Path, dtype: np.dtype) -> np.ndarray:
    """A read-only memory map; MissingInputError or DataError name the file."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; run the rule that makes it") from None
    except (ValueError, EOFError) as error:
        raise DataError(f"{path}: not an array ({error}); delete it and run again") from None
    if array.dtype != dtype or array.ndim != 1:
        raise DataError(f"{path}: {array.ndim} dimensions of {array.dtype}, expected 1 of {dtype}; run tokenize-part")
    return array
