"""The commands of the corpus stage on the benchmark's folders: `input` and `output` below `folder`."""

import sys
from pathlib import Path

from benchmarks.measure import Command


def build_blocklist(folder: Path) -> Command:
    """The trie of the input's archive; it outlives the rounds."""
    trie = folder / "blocklist.marisa"
    archive = folder / "input/blacklists.tar.gz"
    return _symbert("build-blocklist", archive=archive, output=trie, summary=trie.with_suffix(".json"))


def filter_part(folder: Path, part: str, name: str) -> Command:
    """The kept documents of `input/<part>.jsonl.zst` as `output/<name>.parquet`."""
    return _symbert(
        "filter-part",
        part=folder / f"input/{part}.jsonl.zst",
        name=name,
        blocklist=folder / "blocklist.marisa",
        settings=folder / "input/filter.json",
        output=folder / f"output/{name}.parquet",
        counts=folder / f"output/{name}.counts.json",
    )


def tokenize_part(folder: Path, name: str) -> Command:
    """The ids of `output/<name>.parquet` as `output/<name>.npy`."""
    return _symbert(
        "tokenize-part",
        documents=folder / f"output/{name}.parquet",
        vocabulary=folder / "input/vocab.txt",
        output=folder / f"output/{name}.npy",
        offsets=folder / f"output/{name}.offsets.npy",
        record=folder / f"output/{name}.json",
    )


def pack_shards(folder: Path, name: str) -> Command:
    """The rows of `output/<name>.npy` in `output/shards`."""
    return _symbert(
        "pack-shards",
        tokens=folder / f"output/{name}.npy",
        offsets=folder / f"output/{name}.offsets.npy",
        records=folder / f"output/{name}.json",
        vocabulary=folder / "input/vocab.txt",
        settings=folder / "input/pack.json",
        output=folder / "output/shards/manifest.json",
    )


def _symbert(command: str, **options: Path | str) -> Command:
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "symbert", command, *words]
