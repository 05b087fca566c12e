"""The commands of the corpus stage on the benchmark's folders: `input` and `output` below `folder`."""

import sys
from pathlib import Path

from benchmarks.measure import Command


def build_blocklist(folder: Path) -> Command:
    """The trie of the input's archive; it outlives the rounds."""
    return _symbert("build-blocklist", folder / "ut1/blocklist.marisa")


def prepare_part(folder: Path, part: str, name: str) -> Command:
    """The kept documents of `input/<part>.jsonl.zst` as token ids, `output/parts/<name>.npy`."""
    return _symbert("prepare-part", folder / f"input/{part}.jsonl.zst", folder / f"output/parts/{name}.npy")


def pack(folder: Path) -> Command:
    """The rows of `output/parts/part.npy` in `output/shards`."""
    return _symbert("pack", folder / "output/shards/manifest.json")


def _symbert(command: str, *files: Path) -> Command:
    return [sys.executable, "-m", "symbert", command, *map(str, files)]
