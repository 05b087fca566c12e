"""The packed corpus: its rows in memory-mapped shards, verified once."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from symbert.console import Progress
from symbert.corpus.shards import LEARNED_FROM, hash_of_corpus
from symbert.errors import IntegrityError, MissingInputError
from symbert.files import read_json, verify_sha256

REMEDY = "run snakemake -R pack (of parallel text: -R pack_pairs)"


class PackedRows:
    """The rows of one split; `rows[index]` gathers their ids `batch token`."""

    def __init__(self, manifest: Path, split: str) -> None:
        shards = [shard for shard in _read_shards(manifest, split=str, rows=int) if shard["split"] == split]
        if not shards:
            raise MissingInputError(f"{manifest}: names no shard of the split '{split}'; {REMEDY}")
        self.arrays = [_open_shard(Path(manifest).parent / shard["file"], shard["rows"]) for shard in shards]
        self.starts = np.cumsum([0] + [len(array) for array in self.arrays])
        self.sequence_length: int = self.arrays[0].shape[1]

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, index: NDArray[np.int64]) -> NDArray[np.int64]:
        shard = np.searchsorted(self.starts, index, side="right") - 1
        within = index - self.starts[shard]
        ids = np.empty((len(index), self.sequence_length), np.int64)
        for row, number, place in zip(ids, shard.tolist(), within.tolist(), strict=True):
            row[:] = self.arrays[number][place]
        return ids


def _read_shards(manifest: Path, **fields: type) -> list[dict[str, Any]]:
    """The shards that a manifest lists, each with its file and these fields."""
    return read_json(manifest, {"shards": [{"file": str, **fields}]}, REMEDY)["shards"]


def _open_shard(path: Path, rows: int) -> NDArray[np.uint16]:
    if not path.is_file():
        raise MissingInputError(f"{path}: shard named by the manifest is missing; {REMEDY}")
    try:
        array = np.lib.format.open_memmap(path, mode="r")
    except ValueError as error:
        raise IntegrityError(f"{path}: not an array ({error}); {REMEDY}") from None
    if len(array) != rows:
        raise IntegrityError(f"{path}: {len(array)} rows, the manifest says {rows}; {REMEDY}")
    return np.asarray(array)  # a plain view of the mapping: np.memmap takes five times as long to give a row


def verify_manifest(manifest: Path) -> str:
    """The corpus's hash; IntegrityError when the manifest was changed since the corpus was packed."""
    content = read_json(manifest, {"hash": str, **dict.fromkeys(LEARNED_FROM)}, REMEDY)
    written, computed = content["hash"], hash_of_corpus(content)
    if written != computed:
        raise IntegrityError(
            f"{manifest}: hash expected {written}, found {computed}: edited, or of another version; {REMEDY}"
        )
    return written


def verify_shards(manifest: Path) -> None:
    """Compare each shard with the manifest's sha256; IntegrityError or MissingInputError name the first that differs.

    Every session does so: a bit that flips on a disk changes neither size nor time of the file.
    """
    shards = _read_shards(manifest, sha256=str)
    progress = Progress("verify shards", len(shards), "shards")
    for number, shard in enumerate(shards, start=1):
        path = Path(manifest).parent / shard["file"]
        if not path.is_file():
            raise MissingInputError(f"{path}: shard named by the manifest is missing; {REMEDY}")
        verify_sha256(path, shard["sha256"], REMEDY)
        progress.update(number)
