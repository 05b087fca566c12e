"""Kept documents as rows of token ids: one stream, cut every `sequence_length` tokens (paper, appendix A).

Rows run over document and part boundaries, so the shards do not depend on how documents are dealt to
parts. Deviation from the authors, who drop the remainder of each thousand documents: here only one
remainder at the very end is lost. Held-out rows that occur among the training rows (boilerplate) are passed over.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from symbert.corpus.arrays import ArrayWriter, open_array, write_header
from symbert.corpus.reasons import are_few, kept_in_words
from symbert.corpus.tokens import OFFSET
from symbert.corpus.wordpiece import SPECIAL_TOKENS, TOKEN, read_vocabulary
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import publish, read_json, sha256_of, write_json
from symbert.progress import Progress
from symbert.settings import PackSettings, hash_of, read_settings

DOCUMENT = np.dtype([("start", np.int64), ("part", np.uint32), ("line", np.uint32)])
"""Where a document comes from: its first token in the split's rows, its part (index) and line of the raw part."""
TOKENS_AT_ONCE = 1 << 16
# What training reads of a manifest, and so what its hash is of.
LEARNED_FROM = ("sequence_length", "vocabulary_size", "vocabulary_sha256", "special_tokens", "rows", "shards")
RECORD = {"part": str, "taken": bool, "documents": int}
RECORD |= {"vocabulary_sha256": str, "tokens_sha256": str, "offsets_sha256": str}
COUNTS = {"read": int, "kept": int, "bad": int, "dropped": {str: int}}
TO_SEE_THEM = "symbert filter-part --keep-rejected shows the others, corpus.filter chooses the filters (docs/corpus.md)"


@dataclass(frozen=True)
class Part:
    """The first `count` documents of a part; its files are mapped only while they are read."""

    token_file: Path
    offset_file: Path
    record: dict[str, Any]
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


def pack_shards(
    tokens: list[Path],
    offsets: list[Path],
    records: list[Path],
    vocabulary: Path,
    settings: Path,
    output: Path,
    counts: list[Path] | None = None,
) -> None:
    """Write `train-<n>.npy` and `validation-<n>.npy`, uint16 [rows, sequence_length], beside `output`, the manifest,
    and `train-documents.npy` and `validation-documents.npy`, which say where each token comes from (DOCUMENT).

    Only the first `max_documents` documents count, or those up to `max_tokens`. The documents of lowest id hash are
    held out until they fill `validation_sequences` rows. Of these rows, those that occur among the training rows are
    passed over (`passed_over_rows`), and the held-out documents' further tokens make up for them as far as they go.
    Held-out tokens that are in no row, and training rows beyond `max_training_rows`, are counted as surplus. Raises
    IntegrityError when a file is not what its record says, DataError when the documents do not fill the validation rows
    and one training row, all held-out rows are passed over, or parts were left out that are needed. With the `counts`
    of filter-part it says why documents were dropped where they do not suffice, and on stderr where fewer than half
    were kept.
    """
    pack = read_settings(settings, PackSettings)
    filtered = [read_json(path, COUNTS, "run filter-part again") for path in counts or ()]
    if are_few(filtered):
        print(f"{output}: {kept_in_words(filtered)}; {TO_SEE_THEM}", file=sys.stderr)
    pieces, vocabulary_sha256 = read_vocabulary(vocabulary), sha256_of(vocabulary)
    parts = _read_parts(tokens, offsets, records, vocabulary_sha256)
    parts = _take(parts, pack, output)
    why = f"; {kept_in_words(filtered)}, {TO_SEE_THEM}" if filtered else ""
    threshold = _validation_threshold(parts, pack, why)
    train = Split("train", parts, lambda id_hashes: id_hashes > threshold)
    validation = Split("validation", parts, lambda id_hashes: id_hashes <= threshold)
    filled = {split.name: split.tokens() for split in (train, validation)}
    rows = {"train": _training_rows(filled["train"], pack, output, why)}
    held_out = _held_out_rows(validation, filled["validation"], pack)
    repeated: set[bytes] = set()  # of the held-out rows; known when the training rows are written
    read = _looked_through(_rows_of(train, rows["train"], pack.sequence_length), held_out, repeated)
    shards = [*_write_shards("train", rows["train"], read, pack, output.parent)]
    chosen, passed_over = _choose(held_out, repeated, pack, output)
    rows["validation"] = len(chosen)
    shards += _write_shards("validation", rows["validation"], iter([chosen]), pack, output.parent)
    indexes = [
        _write_index(split, rows[split.name], passed, pack.sequence_length, output.parent)
        for split, passed in ((train, np.empty(0, np.int64)), (validation, passed_over))
    ]
    _remove_others(output.parent, {file["file"] for file in shards + indexes})
    remainder = filled["train"] % pack.sequence_length
    over = {name: filled[name] - rows[name] * pack.sequence_length for name in rows}
    manifest = {
        "sequence_length": pack.sequence_length,
        "vocabulary_size": len(pieces),
        "vocabulary_sha256": vocabulary_sha256,
        "special_tokens": {name: pieces[token] for name, token in SPECIAL_TOKENS.items()},
        "rows": rows,
        "passed_over_rows": len(passed_over),
        "documents": {index["split"]: index["documents"] for index in indexes},
        "tokens": sum(filled.values()),
        "remainder_tokens": remainder,
        "surplus_tokens": {"train": over["train"] - remainder, "validation": over["validation"]},
        "parts": [part.record["part"] for part in parts],
        "indexes": indexes,
        "shards": shards,
    }
    write_json(output, {**manifest, "hash": hash_of_corpus(manifest)})


def hash_of_corpus(manifest: dict[str, Any]) -> str:
    """What a run knows its corpus by: a hash of all that training reads; KeyError where the manifest lacks some."""
    return hash_of({key: manifest[key] for key in LEARNED_FROM})


def _read_parts(tokens: list[Path], offsets: list[Path], records: list[Path], vocabulary_sha256: str) -> list[Part]:
    """The parts, verified."""
    parts: list[Part] = []
    progress = Progress("pack: verify", len(tokens), "parts")
    for token_file, offset_file, record_file in zip(tokens, offsets, records, strict=True):
        record = read_json(record_file, RECORD, f"delete {record_file} and run tokenize-part")
        _verify(token_file, offset_file, record_file, record, vocabulary_sha256)
        parts.append(Part(Path(token_file), Path(offset_file), record, record["documents"]))
        progress.update(len(parts))
    return parts


def _verify(token_file: Path, offset_file: Path, record_file: Path, record: dict[str, Any], vocabulary: str) -> None:
    remedy = f"delete {record_file} and run tokenize-part"
    if record["vocabulary_sha256"] != vocabulary:
        raise DataError(
            f"{record_file}: vocabulary of sha256 {record['vocabulary_sha256']}, expected {vocabulary}; {remedy}"
        )
    for file, key in ((token_file, "tokens_sha256"), (offset_file, "offsets_sha256")):
        if not Path(file).is_file():
            raise MissingInputError(f"{file}: file not found; {remedy}")
        found = sha256_of(file)
        if found != record[key]:
            raise IntegrityError(f"{file}: sha256 expected {record[key]}, found {found}; {remedy}")
    table, ids = open_array(offset_file, OFFSET), open_array(token_file, TOKEN)
    bounds = np.append(table["start"], len(ids))
    if bounds[0] != 0 or (np.diff(bounds) < 2).any() or len(table) != record["documents"]:
        raise DataError(f"{offset_file}: does not fit {token_file}; {remedy}")


def _take(parts: list[Part], pack: PackSettings, output: Path) -> list[Part]:
    """The parts, cut after the document that reaches `max_documents` or `max_tokens`.

    DataError when a part before that point was left out, because less was asked for when it was its turn: the
    shards must not depend on what was asked for before.
    """
    taken: list[Part] = []
    documents, tokens = pack.max_documents, pack.max_tokens
    for part in parts:
        if documents and tokens != 0 and not part.record["taken"]:
            _refuse_gap([part.record["part"] for part in parts if not part.record["taken"]], output)
        count = min(part.count, documents)
        if tokens is not None:
            ends = replace(part, count=count).bounds()[1:]
            count = min(count, int(np.searchsorted(ends, tokens)) + 1) if tokens else 0
            tokens = max(0, tokens - int(ends[count - 1])) if count else tokens
        documents -= count
        taken.append(replace(part, count=count))
    return taken


def _refuse_gap(left_out: list[str], output: Path) -> None:
    names = ", ".join(left_out[:3]) + (f" and {len(left_out) - 3} more" if len(left_out) > 3 else "")
    raise DataError(
        f"{output}: parts that were left out when less was asked for are needed now: {names}; delete their files in "
        "corpus/filtered, and in corpus/raw if they are kept there, and run again"
    )


def _validation_threshold(parts: list[Part], pack: PackSettings, why: str) -> np.uint64:
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


def _training_rows(tokens: int, pack: PackSettings, output: Path, why: str) -> int:
    rows = tokens // pack.sequence_length
    if not rows:
        raise DataError(
            f"{output}: no training row is left beside the validation rows; take more parts or lower "
            f"corpus.pack.validation_sequences{why}"
        )
    return rows if pack.max_training_rows is None else min(rows, pack.max_training_rows)


def _rows_of(split: Split, count: int, length: int) -> Iterator[np.ndarray]:
    """The first `count` rows of a split's stream, [rows, length], about TOKENS_AT_ONCE at a time."""
    rest = np.empty(0, TOKEN)
    for tokens in split.slices():
        tokens = np.concatenate([rest, tokens])
        rows = min(len(tokens) // length, count)
        yield tokens[: rows * length].reshape(rows, length)
        rest, count = tokens[rows * length :], count - rows
        if not count:
            return


def _held_out_rows(validation: Split, tokens: int, pack: PackSettings) -> np.ndarray:
    """The rows that validation may have: twice as many as are wanted, or as many as the held-out tokens fill."""
    count = min(tokens // pack.sequence_length, 2 * pack.validation_sequences)
    return np.concatenate([*_rows_of(validation, count, pack.sequence_length)])


def _contents(rows: np.ndarray) -> list[bytes]:
    return rows.view(np.dtype((np.void, rows.shape[1] * rows.itemsize))).ravel().tolist()


def _looked_through(blocks: Iterator[np.ndarray], held_out: np.ndarray, repeated: set[bytes]) -> Iterator[np.ndarray]:
    """The blocks as they are; of the held-out rows, those that occur in them are added to `repeated`."""
    wanted = frozenset(_contents(held_out))
    for block in blocks:
        repeated |= wanted.intersection(_contents(block))
        yield block


def _choose(
    held_out: np.ndarray, repeated: set[bytes], pack: PackSettings, output: Path
) -> tuple[np.ndarray, np.ndarray]:
    """The validation rows, and which of the held-out rows were passed over for them."""
    is_repeated = np.array([content in repeated for content in _contents(held_out)])
    chosen, passed_over = (np.flatnonzero(mask) for mask in (~is_repeated, is_repeated))
    if not len(chosen):
        raise DataError(
            f"{output}: all {len(held_out)} held-out rows occur among the training rows; take more parts or raise "
            "corpus.pack.sequence_length"
        )
    if len(chosen) >= pack.validation_sequences:
        chosen = chosen[: pack.validation_sequences]
        passed_over = passed_over[passed_over < chosen[-1]]
    return held_out[chosen], passed_over


class _Stream:
    """Rows that are taken from the front, a given number at a time."""

    def __init__(self, blocks: Iterator[np.ndarray]) -> None:
        self._blocks = blocks
        self._rest = np.empty(0, TOKEN)

    def take(self, count: int) -> Iterator[np.ndarray]:
        while count:
            if not len(self._rest):
                self._rest = next(self._blocks)
            block, self._rest = self._rest[:count], self._rest[count:]
            count -= len(block)
            yield block


def _write_shards(
    split: str, rows: int, blocks: Iterator[np.ndarray], pack: PackSettings, directory: Path
) -> Iterator[dict[str, Any]]:
    """Publish the shards of a split; what the manifest says of each."""
    stream = _Stream(blocks)
    progress = Progress(f"pack: {split}", rows, "rows")
    for number, first in enumerate(range(0, rows, pack.sequences_per_shard)):
        shape = min(pack.sequences_per_shard, rows - first), pack.sequence_length
        path = directory / f"{split}-{number:05}.npy"
        with publish(path) as temporary, open(temporary, "wb") as file:
            write_header(file, TOKEN, shape)
            for block in stream.take(shape[0]):
                file.write(block.data)
        yield {"file": path.name, "split": split, "rows": shape[0], "sha256": sha256_of(path)}
        progress.update(first + shape[0])


def _write_index(split: Split, rows: int, passed_over: np.ndarray, length: int, directory: Path) -> dict[str, Any]:
    """Publish DOCUMENT of the documents that are, at least in part, in the rows of a split; their first tokens are
    counted in these rows, end to end."""
    path = directory / f"{split.name}-documents.npy"
    with publish(path) as temporary, ArrayWriter(temporary, DOCUMENT) as index:
        for documents, ends in split.index():
            documents["start"], ends = (
                _in_rows(tokens, rows, passed_over, length) for tokens in (documents["start"], ends)
            )
            index.append(documents[documents["start"] < ends])
    return {"file": path.name, "split": split.name, "documents": index.length, "sha256": sha256_of(path)}


def _in_rows(tokens: np.ndarray, rows: int, passed_over: np.ndarray, length: int) -> np.ndarray:
    """Where tokens of a split's stream are in its rows; one that is in none: where the next one is that is."""
    row, place = np.divmod(tokens, length)
    place[np.isin(row, passed_over)] = 0
    return np.minimum((row - np.searchsorted(passed_over, row)) * length + place, rows * length)


def _remove_others(directory: Path, files: set[str]) -> None:
    """Shards of an earlier, larger corpus do not stay beside the manifest."""
    for path in [*directory.glob("train-*.npy"), *directory.glob("validation-*.npy")]:
        if path.name not in files:
            path.unlink()
