"""On what and with what the figures were measured; nothing that names the machine."""

import importlib.metadata
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from timeit import timeit

MATRIX = 64  # rows and columns; larger ones BLAS shares among threads
REPEATED = 10_000  # a third of a second
PACKAGES = (
    "backports.zstd",
    "zstandard",
    "msgspec",
    "pyarrow",
    "marisa-trie",
    "tokenizers",
    "tokie",
    "numpy",
    "datasets",
    "transformers",
    "torch",
)


def facts() -> list[str]:
    """The machine, and what the corpus stage is measured with."""
    return [machine(), versions(PACKAGES)]


def machine() -> str:
    """Processor, memory, load, and the speed of a core: figures of other machines compare by it."""
    import numpy  # not before the processes are started

    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    matrix = numpy.full((MATRIX, MATRIX), 1 / MATRIX, dtype=numpy.float32)
    product = timeit(lambda: matrix @ matrix, number=REPEATED) / REPEATED
    loop = timeit("for number in range(1000): total += number", "total = 0", number=REPEATED) / REPEATED
    return (
        f"{_processor()}, {os.cpu_count()} cores, {memory:.0f} GB; load {os.getloadavg()[0]:.2f} at the start; "
        f"a product of {MATRIX} × {MATRIX} matrices takes {1e6 * product:.1f} µs, "
        f"a Python loop over 1,000 numbers {1e6 * loop:.1f} µs"
    )


def versions(packages: Iterable[str]) -> str:
    """System, Python, and the packages with their versions."""
    found = ", ".join(f"{name} {_version(name)}" for name in packages)
    return f"{platform.system()}, Python {platform.python_version()}; {found}"


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "absent"
