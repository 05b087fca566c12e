"""Kept documents as rows of token ids: one stream, cut every `sequence_length` tokens (paper, appendix A).

Rows run over document and part boundaries, so the shards do not depend on how documents are dealt to
parts. Deviation from the authors, who drop the remainder of each thousand documents: here only one
remainder at the very end is lost.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from symbert.corpus.arrays import open_array, write_header
from symbert.corpus.wordpiece import OFFSET, SPECIAL_TOKENS, TOKEN, read_vocabulary
from symbert.errors import DataError
from symbert.files import publish, sha256_of, write_json
from symbert.settings import PackSettings, hash_of, read_settings

TOKENS_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Part:
    """Tokens of a part (memory map) and, per document, the bounds of its tokens and the hash of its id."""

    tokens: np.ndarray
    bounds: np.ndarray  # [documents + 1]
    id_hashes: np.ndarray  # [documents]

    @property
    def lengths(self) -> np.ndarray:
        """Tokens of each document."""
        return np.diff(self.bounds)


@dataclass(frozen=True)
class Split:
    """The documents of one side: a mask over the documents of each part."""

    name: str
    masks: list[np.ndarray]
    parts: list[Part]

    @property
    def documents(self) -> int:
        """How many documents are on this side."""
        return sum(int(mask.sum()) for mask in self.masks)

    @property
    def tokens(self) -> int:
        """How many tokens they have."""
        return sum(int(part.lengths[mask].sum()) for part, mask in zip(self.parts, self.masks, strict=True))

    def slices(self) -> Iterator[np.ndarray]:
        """Their tokens in order; documents that are neighbours come together."""
        for part, mask in zip(self.parts, self.masks, strict=True):
            edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
            for first, after in part.bounds[edges].reshape(-1, 2):
                for start in range(first, after, TOKENS_AT_ONCE):
                    yield part.tokens[start : min(start + TOKENS_AT_ONCE, after)]


def pack_shards(tokens: list[Path], offsets: list[Path], vocabulary: Path, settings: Path, output: Path) -> None:
    """Write `train-<n>.npy` and `validation-<n>.npy`, uint16 [rows, sequence_length], beside `output`, the manifest.

    Only the first `max_documents` documents count. The documents of lowest id hash are held out until they
    fill `validation_sequences` rows; tokens beyond are counted as surplus. Raises DataError when the
    documents do not fill the validation rows and one training row.
    """
    pack = read_settings(settings, PackSettings)
    pieces = read_vocabulary(vocabulary)
    parts = _read_parts(tokens, offsets, pack.max_documents)
    held_out = _validation_threshold(parts, pack)
    train = Split("train", [part.id_hashes > held_out for part in parts], parts)
    validation = Split("validation", [part.id_hashes <= held_out for part in parts], parts)
    rows = {"train": train.tokens // pack.sequence_length, "validation": pack.validation_sequences}
    if not rows["train"]:
        raise DataError(
            f"{output}: no training row is left beside the validation rows; take more parts or lower "
            "corpus.pack.validation_sequences"
        )
    shards = [shard for split in (train, validation) for shard in _write_shards(split, rows, pack, output.parent)]
    _remove_others(output.parent, {shard["file"] for shard in shards})
    vocabulary_sha256 = sha256_of(vocabulary)
    write_json(
        output,
        {
            "sequence_length": pack.sequence_length,
            "vocabulary_size": len(pieces),
            "vocabulary_sha256": vocabulary_sha256,
            "special_tokens": {name: pieces[token] for name, token in SPECIAL_TOKENS.items()},
            "rows": rows,
            "documents": {split.name: split.documents for split in (train, validation)},
            "tokens": train.tokens + validation.tokens,
            "remainder_tokens": train.tokens - rows["train"] * pack.sequence_length,
            "surplus_tokens": validation.tokens - rows["validation"] * pack.sequence_length,
            "shards": shards,
            "hash": hash_of([shard["sha256"] for shard in shards], vocabulary_sha256),
        },
    )


def _read_parts(tokens: list[Path], offsets: list[Path], max_documents: int) -> list[Part]:
    """The parts, cut after `max_documents` documents in all."""
    parts: list[Part] = []
    for token_file, offset_file in zip(tokens, offsets, strict=True):
        ids, table = open_array(token_file, TOKEN), open_array(offset_file, OFFSET)
        bounds = np.append(table["start"], len(ids))
        if bounds[0] != 0 or (np.diff(bounds) < 2).any():
            raise DataError(f"{offset_file}: does not fit {token_file}; delete both and run tokenize-part")
        count = min(len(table), max_documents)
        max_documents -= count
        parts.append(Part(ids, bounds[: count + 1], table["id_hash"][:count]))
    return parts


def _validation_threshold(parts: list[Part], pack: PackSettings) -> np.uint64:
    """The largest id hash of the validation documents; equal ids are never on both sides."""
    id_hashes = np.concatenate([part.id_hashes for part in parts])
    lengths = np.concatenate([part.lengths for part in parts])
    order = np.argsort(id_hashes, kind="stable")
    filled = np.cumsum(lengths[order])
    needed = pack.validation_sequences * pack.sequence_length
    last = int(np.searchsorted(filled, needed))
    if last == len(filled):
        raise DataError(
            f"{len(lengths):,} documents have {int(lengths.sum()):,} tokens, fewer than the {needed:,} held out; "
            "take more parts or lower corpus.pack.validation_sequences"
        )
    return id_hashes[order[last]]


class _Stream:
    """Tokens that are taken from the front, a given number at a time."""

    def __init__(self, slices: Iterator[np.ndarray]) -> None:
        self._slices = slices
        self._rest = np.empty(0, TOKEN)

    def take(self, count: int) -> Iterator[np.ndarray]:
        while count:
            if not len(self._rest):
                self._rest = next(self._slices)
            piece, self._rest = self._rest[:count], self._rest[count:]
            count -= len(piece)
            yield piece


def _write_shards(split: Split, rows: dict[str, int], pack: PackSettings, directory: Path) -> Iterator[dict[str, Any]]:
    """Publish the shards of a split; what the manifest says of each."""
    stream = _Stream(split.slices())
    for number, first in enumerate(range(0, rows[split.name], pack.sequences_per_shard)):
        shape = min(pack.sequences_per_shard, rows[split.name] - first), pack.sequence_length
        path = directory / f"{split.name}-{number:05}.npy"
        with publish(path) as temporary, open(temporary, "wb") as file:
            write_header(file, TOKEN, shape)
            for piece in stream.take(shape[0] * shape[1]):
                file.write(piece.tobytes())
        yield {"file": path.name, "split": split.name, "rows": shape[0], "sha256": sha256_of(path)}


def _remove_others(directory: Path, files: set[str]) -> None:
    """Shards of an earlier, larger corpus do not stay beside the manifest."""
    for path in [*directory.glob("train-*.npy"), *directory.glob("validation-*.npy")]:
        if path.name not in files:
            path.unlink()
