"""The tokenized documents of all parts, verified, and their two sides: for training, and held out for validation."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from symbert.configuration import PackSettings
from symbert.console import Progress
from symbert.corpus.tokens import OFFSET, open_array
from symbert.corpus.wordpiece import TOKEN
from symbert.errors import DataError
from symbert.files import read_json, verify_sha256

DOCUMENT = np.dtype([("start", np.int64), ("part", np.uint32), ("line", np.uint32)])
"""Where a document comes from: its first token in the split's rows, its part (index) and line of the raw part."""
TOKENS_AT_ONCE = 1 << 16
COUNTS = {"read": int, "kept": int, "bad": int, "dropped": {str: int}}
RECORD = {"documents": int, "vocabulary_sha256": str, "tokens_sha256": str, "offsets_sha256": str}


@dataclass(frozen=True)
class Part:
    """The first `count` documents of a part; its files are mapped only while they are read."""

    name: str
    token_file: Path
    offset_file: Path
    counts: dict[str, Any]  # of its documents by outcome
    count: int

    def tokens(self) -> np.ndarray:
        """The part's tokens, a memory map."""
        return open_array(self.token_file, TOKEN)

    def documents(self) -> np.ndarray:
        """OFFSET of each document."""
        return open_array(self.offset_file, OFFSET)[: self.count]

    def bounds(self) -> np.ndarray:
        """The first token of each document, and where the last one ends: [documents + 1]."""
        table = open_array(self.offset_file, OFFSET)
        return np.append(table["start"][: self.count + 1], len(self.tokens()))[: self.count + 1]


@dataclass(frozen=True)
class Split:
    """One side: the documents whose id hash `chooses` picks, in order."""

    name: str
    parts: list[Part]
    chooses: Callable[[np.ndarray], np.ndarray]

    def tokens(self) -> int:
        """How many tokens the documents on this side have."""
        masks = (self.chooses(part.documents()["id_hash"]) for part in self.parts)
        return sum(int(np.diff(part.bounds())[mask].sum()) for part, mask in zip(self.parts, masks, strict=True))

    def slices(self) -> Iterator[np.ndarray]:
        """Their tokens in order; documents that are neighbours come together."""
        for part in self.parts:
            mask, tokens = self.chooses(part.documents()["id_hash"]), part.tokens()
            edges = np.flatnonzero(np.diff(mask, prepend=False, append=False))
            for first, after in part.bounds()[edges].reshape(-1, 2):
                for start in range(first, after, TOKENS_AT_ONCE):
                    yield tokens[start : min(start + TOKENS_AT_ONCE, after)]

    def index(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """DOCUMENT of each document and the token after its last one, part by part."""
        start = 0
        for number, part in enumerate(self.parts):
            documents = part.documents()
            mask = self.chooses(documents["id_hash"])
            lengths = np.diff(part.bounds())[mask]
            rows = np.empty(len(lengths), DOCUMENT)
            rows["start"], rows["part"] = start + np.cumsum(lengths) - lengths, number
            rows["line"] = documents["line"][mask]
            start += int(lengths.sum())
            yield rows, rows["start"] + lengths


def read_parts(folder: Path, names: list[str], vocabulary_sha256: str) -> list[Part]:
    """The parts in a folder, verified: DataError, MissingInputError or IntegrityError name a file that does not fit its
    record."""
    parts: list[Part] = []
    progress = Progress("pack: verify", len(names), "parts")
    for name in names:
        token_file, offset_file, record_file = (folder / f"{name}{end}" for end in (".npy", ".offsets.npy", ".json"))
        remedy = f"delete {token_file} and run again"
        facts = read_json(record_file, {"counts": COUNTS, "record": RECORD}, remedy)
        record = facts["record"]
        if record["vocabulary_sha256"] != vocabulary_sha256:
            raise DataError(
                f"{record_file}: vocabulary of sha256 {record['vocabulary_sha256']}, expected {vocabulary_sha256}; "
                f"{remedy}"
            )
        verify_sha256(token_file, record["tokens_sha256"], remedy)
        verify_sha256(offset_file, record["offsets_sha256"], remedy)
        table, ids = open_array(offset_file, OFFSET), open_array(token_file, TOKEN)
        bounds = np.append(table["start"], len(ids))
        if bounds[0] != 0 or (np.diff(bounds) < 2).any() or len(table) != record["documents"]:
            raise DataError(f"{offset_file}: does not fit {token_file}; {remedy}")
        parts.append(Part(name, token_file, offset_file, facts["counts"], record["documents"]))
        progress.update(len(parts))
    return parts


def take(parts: list[Part], max_documents: int) -> list[Part]:
    """The parts, cut after the document that reaches `max_documents`."""
    taken: list[Part] = []
    for part in parts:
        taken.append(replace(part, count=min(part.count, max_documents)))
        max_documents -= taken[-1].count
    return taken


def validation_threshold(parts: list[Part], pack: PackSettings, why: str) -> np.uint64:
    """The largest id hash of the validation documents; equal ids are never on both sides.

    Of the parts seen so far only the documents are kept that would be held out, so that memory does not grow.
    """
    needed = pack.validation_sequences * pack.sequence_length
    id_hashes, lengths = np.empty(0, np.uint64), np.empty(0, np.int64)
    for part in parts:
        id_hashes = np.concatenate([id_hashes, part.documents()["id_hash"]])
        lengths = np.concatenate([lengths, np.diff(part.bounds())])
        order = np.argsort(id_hashes, kind="stable")
        order = order[: np.searchsorted(np.cumsum(lengths[order]), needed) + 1]
        id_hashes, lengths = id_hashes[order], lengths[order]
    if lengths.sum() < needed or not len(lengths):
        raise DataError(
            f"{len(lengths):,} documents have {int(lengths.sum()):,} tokens, fewer than the {needed:,} held out; "
            f"take more parts or lower corpus.pack.validation_sequences{why}"
        )
    return id_hashes[-1]
