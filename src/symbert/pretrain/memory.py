"""Want of memory, of the machine or the device, as an error that names the key that needs less."""

from collections.abc import Iterator
from contextlib import contextmanager

from symbert.errors import MemoryExhaustedError

WORDS = ("out of memory", "can't allocate memory")  # of CUDA's and of the CPU's allocator


@contextmanager
def memory_explained(what: str, sequences: int) -> Iterator[None]:
    """MemoryExhaustedError in the place of any allocator's error; `sequences` are computed at a time in `what`."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in WORDS):
            raise
        raise MemoryExhaustedError(
            f"{what}: out of memory with {sequences} sequences at a time; set 'pretrain.micro_batch_size' below that "
            "(the batch stays the same), or free the device; the last checkpoint is kept"
        ) from None
