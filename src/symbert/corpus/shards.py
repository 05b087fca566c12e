"""Kept documents as rows of token ids: one stream, cut every `sequence_length` tokens (paper, appendix A).

Rows run over document and part boundaries, so the shards do not depend on how documents are dealt to
parts. Deviation from the authors, who drop the remainder of each thousand documents: here only one
remainder at the very end is lost. Held-out rows that occur among the training rows (boilerplate) are passed over.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from symbert.configuration import PackSettings
from symbert.console import Progress
from symbert.corpus.counts import Counts, are_few, kept_in_words
from symbert.corpus.document import EMPTY_LINES
from symbert.corpus.parts import PartRecord, PrepareParts
from symbert.corpus.tokens import OFFSET, ArrayWriter, open_array
from symbert.corpus.wordpiece import LARGEST_VOCABULARY, SPECIAL_TOKENS, TOKEN, read_vocabulary
from symbert.errors import DataError
from symbert.files import hash_of, publish, read_struct, sha256_of, together, verify_sha256, write_json
from symbert.sources import first_parts, located, verified
from symbert.steps import Step, read_step

TOKENS_AT_ONCE = 1 << 16
LONG = 100  # lines
MUCH = 0.1  # of all tokens


class Pack(Step, frozen=True):
    """The rows of parts, which lie beside the manifest."""

    place: ClassVar[str] = "corpus/shards"
    files: ClassVar[dict[str, str]] = {"manifest": "manifest.json"}
    memory: ClassVar[int] = 2000  # MB
    minutes: ClassVar[int] = 480

    parts: PrepareParts
    texts: int | list[str]  # how many of OSCAR's first parts, or the names of parts, in their order
    pack: PackSettings

    @property
    def names(self) -> list[str]:
        """The names of the parts, in the order in which documents are taken from them."""
        return first_parts(self.texts) if isinstance(self.texts, int) else self.texts

    def reads(self) -> list[str]:
        """The files of the parts, and the vocabulary."""
        parts = [file for name in self.names for file in self.parts.paths(part=name).values()]
        return [*parts, located(self.parts.vocabulary.path)]


class Shard(msgspec.Struct, frozen=True):
    """A file of rows, uint16 [rows, sequence_length]."""

    file: str  # beside the manifest
    split: str  # train | validation
    rows: int
    sha256: str


class Learned(msgspec.Struct, frozen=True):
    """What training reads of a manifest."""

    sequence_length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special_tokens: dict[str, int]
    rows: dict[str, int]  # by split
    shards: list[Shard]

    def learned_hash(self) -> str:
        """The hash of it: of a corpus."""
        values = msgspec.to_builtins(self)
        return hash_of({name: values[name] for name in Learned.__struct_fields__})


class Manifest(Learned, frozen=True, kw_only=True):
    """manifest.json of rows."""

    hash: str  # of what training reads
    unigram_entropy: float  # nats, of the validation rows


class Packed(Manifest, frozen=True, kw_only=True):
    """manifest.json of rows of parts."""

    passed_over_rows: int  # held out, but also among the training rows
    documents: dict[str, int]  # that rows are of, by split
    tokens: int
    unknown_tokens: int
    remainder_tokens: int  # of training, after the last row
    surplus_tokens: dict[str, int]  # of the held-out documents, after the last row that is wanted
    parts: list[str]


@together()
def pack(output: Annotated[Path, "manifest.json beside its settings.json"], /) -> None:
    """Write `train-<n>.npy` and `validation-<n>.npy`, uint16 [rows, sequence_length], beside `output`, the manifest of
    a `Pack`.

    Of the first `max_documents` documents, those of lowest id hash are held out until they fill `validation_sequences`
    rows. Rows of them that are also training rows are passed over, and the held-out documents' further tokens make up
    for them as far as they go. A line on stderr says why documents were dropped where fewer than half were kept, that
    those of .txt files are long, and that a tenth of the tokens is in no row, or [UNK]. Raises IntegrityError when a
    file does not fit its record, DataError when the documents do not suffice.
    """
    step = read_step(output.parent, Pack)
    pack = step.pack
    output.unlink(missing_ok=True)  # no manifest describes the shards while they are written
    for earlier in [*output.parent.glob("train-*.npy"), *output.parent.glob("validation-*.npy")]:
        earlier.unlink()
    vocabulary, length = verified(step.parts.vocabulary.path), pack.sequence_length
    pieces, vocabulary_sha256 = read_vocabulary(vocabulary), sha256_of(vocabulary)
    parts = read_parts(Path(step.parts.folder), step.names, vocabulary_sha256, pack.max_documents)
    if are_few(filtered := [part.counts for part in parts]):
        _warn(output, f"{kept_in_words(filtered)}; corpus.filter chooses the filters")
    if long := long_documents(parts):
        _warn(output, long)
    threshold = validation_threshold(parts, pack)
    train, validation = Split(parts, threshold, False), Split(parts, threshold, True)
    filled = {"train": train.tokens(), "validation": validation.tokens()}
    rows = {"train": filled["train"] // length}
    if not rows["train"]:
        fact = "no training row is left beside the validation rows, for documents are held out whole"
        raise DataError(f"{output}: {fact}; {more_text(parts, length)}")
    # Validation may have twice as many rows as are wanted, or as many as the held-out tokens fill.
    count = min(filled["validation"] // length, 2 * pack.validation_sequences)
    held_out = np.concatenate([*validation.rows(count, length)])
    repeated: set[bytes] = set()  # of the held-out rows; known when the training rows are written
    blocks = _looked_through(train.rows(rows["train"], length), held_out, repeated)
    shards = [*_write_shards("train", rows["train"], blocks, pack, output.parent)]
    chosen, passed_over = _choose(held_out, repeated, pack, output)
    rows["validation"] = len(chosen)
    shards += _write_shards("validation", rows["validation"], iter([chosen]), pack, output.parent)
    surplus, total = filled["validation"] - rows["validation"] * length, sum(filled.values())
    if surplus > total * MUCH:
        fact = f"{surplus:,} of {total:,} tokens are neither trained on nor validated: documents are held out whole"
        _warn(output, f"{fact}; {long or 'cut long documents into shorter ones'}")
    unknown = train.count(pieces["[UNK]"]) + validation.count(pieces["[UNK]"])
    if unknown > total * MUCH:
        fact = f"{unknown:,} of {total:,} tokens are [UNK]: {vocabulary} has no pieces for their characters"
        _warn(output, f"{fact}; take a vocabulary of the text's language")
    special_tokens = {name: pieces[token] for name, token in SPECIAL_TOKENS.items()}
    learned = Learned(length, len(pieces), vocabulary_sha256, special_tokens, rows, shards)
    manifest = Packed(
        **msgspec.structs.asdict(learned),
        hash=learned.learned_hash(),
        unigram_entropy=unigram_entropy(chosen, special_tokens),
        passed_over_rows=len(passed_over),
        documents={
            "train": train.documents_in(rows["train"], np.empty(0, np.int64), length),
            "validation": validation.documents_in(rows["validation"], passed_over, length),
        },
        tokens=total,
        unknown_tokens=unknown,
        remainder_tokens=filled["train"] % length,
        surplus_tokens={"validation": surplus},
        parts=step.names,
    )
    write_json(output, manifest)


def unigram_entropy(rows: np.ndarray, special_tokens: dict[str, int]) -> float:
    """The entropy (nats) of how often each token is in rows, special ones but [UNK] left out: the loss of the best
    prediction without context."""
    counts = np.bincount(rows.ravel(), minlength=LARGEST_VOCABULARY)
    counts[[token for name, token in special_tokens.items() if name != "unk"]] = 0
    shares = counts[counts > 0] / counts.sum()
    return float((shares * -np.log(shares)).sum())


@dataclass(frozen=True)
class Part:
    """The first `count` documents of a part; its files are mapped only while they are read."""

    token_file: Path
    offset_file: Path
    counts: Counts
    count: int
    lines: int = 0  # of its documents, where it is a .txt file

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


def read_parts(folder: Path, names: list[str], vocabulary_sha256: str, max_documents: int) -> list[Part]:
    """The parts in a folder, verified, and cut after the document that reaches `max_documents`.

    DataError, MissingInputError or IntegrityError name a file that does not fit its record.
    """
    parts: list[Part] = []
    progress = Progress("pack: verify", len(names), "parts")
    for name in names:
        token_file, offset_file, record_file = (folder / f"{name}{end}" for end in (".npy", ".offsets.npy", ".json"))
        remedy = f"delete {token_file} and run again"
        made = read_struct(record_file, PartRecord, remedy)
        record = made.record
        if record.vocabulary_sha256 != vocabulary_sha256:
            found = f"vocabulary of sha256 {record.vocabulary_sha256}, expected {vocabulary_sha256}"
            raise DataError(f"{record_file}: {found}; {remedy}")
        verify_sha256(token_file, record.tokens_sha256, remedy)
        verify_sha256(offset_file, record.offsets_sha256, remedy)
        count = min(record.documents, max_documents)
        parts.append(Part(token_file, offset_file, made.counts, count, record.lines or 0))
        max_documents -= parts[-1].count
        progress.update(len(parts))
    return parts


def long_documents(parts: list[Part], most: int = LONG) -> str:
    """That the documents of some .txt files have more lines each, on average, if it is so, and what separates them."""
    long = [(part.lines, part.counts.kept) for part in parts if part.lines > most * part.counts.kept]
    if not long:
        return ""
    lines, documents = map(sum, zip(*long, strict=True))
    return f"{lines:,} lines of .txt files are {documents:,} document{'s' * (documents > 1)}; {EMPTY_LINES}"


def more_text(parts: list[Part], length: int) -> str:
    """The remedy where the documents do not suffice: fewer validation rows only where a single one would help."""
    threshold = largest_held_out(parts, length)
    helps = threshold is not None and Split(parts, threshold, False).tokens() >= length
    lower = " or lower corpus.pack.validation_sequences" if helps else ""
    return long_documents(parts, most=1) or f"take more text{lower}"


def _warn(output: Path, fact: str) -> None:
    print(f"warning: {output}: {fact}", file=sys.stderr)


def validation_threshold(parts: list[Part], pack: PackSettings) -> np.uint64:
    """The largest id hash of the validation documents; equal ids are never on both sides."""
    needed = pack.validation_sequences * pack.sequence_length
    threshold = largest_held_out(parts, needed)
    if threshold is None:
        documents, tokens = sum(part.count for part in parts), sum(int(part.bounds()[-1]) for part in parts)
        fact = f"the text has {tokens:,} tokens (documents: {documents:,}), fewer than the {needed:,} held out"
        raise DataError(f"{fact}; {more_text(parts, pack.sequence_length)}")
    return threshold


def largest_held_out(parts: list[Part], needed: int) -> np.uint64 | None:
    """The largest id hash of the documents of lowest hash that have the needed tokens; None where all have fewer.

    Of the parts seen so far only the documents are kept that would be held out, so that memory does not grow.
    """
    id_hashes, lengths = np.empty(0, np.uint64), np.empty(0, np.int64)
    for part in parts:
        id_hashes = np.concatenate([id_hashes, part.documents()["id_hash"]])
        lengths = np.concatenate([lengths, np.diff(part.bounds())])
        order = np.argsort(id_hashes, kind="stable")
        order = order[: np.searchsorted(np.cumsum(lengths[order]), needed) + 1]
        id_hashes, lengths = id_hashes[order], lengths[order]
    return id_hashes[-1] if len(lengths) and lengths.sum() >= needed else None


@dataclass(frozen=True)
class Split:
    """The documents on one side of the threshold, in order: held out for validation up to it, for training above."""

    parts: list[Part]
    threshold: np.uint64
    is_held_out: bool

    def mask(self, part: Part) -> np.ndarray:
        """Which documents of a part are on this side."""
        return (part.documents()["id_hash"] <= self.threshold) == self.is_held_out

    def count(self, token: int) -> int:
        """How often a token occurs in them."""
        return sum(int(np.count_nonzero(tokens == token)) for tokens in self.slices())

    def tokens(self) -> int:
        """How many tokens the documents on this side have."""
        return sum(int(np.diff(part.bounds())[self.mask(part)].sum()) for part in self.parts)

    def slices(self) -> Iterator[np.ndarray]:
        """Their tokens in order; documents that are neighbours come together."""
        for part in self.parts:
            tokens = part.tokens()
            edges = np.flatnonzero(np.diff(self.mask(part), prepend=False, append=False))
            for first, after in part.bounds()[edges].reshape(-1, 2):
                for start in range(first, after, TOKENS_AT_ONCE):
                    yield tokens[start : min(start + TOKENS_AT_ONCE, after)]

    def rows(self, count: int, length: int) -> Iterator[np.ndarray]:
        """The first `count` rows of the stream of their tokens, [rows, length], about TOKENS_AT_ONCE at a time."""
        rest = np.empty(0, TOKEN)
        for tokens in self.slices():
            tokens = np.concatenate([rest, tokens])
            rows = min(len(tokens) // length, count)
            yield tokens[: rows * length].reshape(rows, length)
            rest, count = tokens[rows * length :], count - rows
            if not count:
                return

    def documents_in(self, rows: int, passed_over: np.ndarray, length: int) -> int:
        """How many documents are, at least in part, in the first `rows` rows that are not passed over."""
        count, start = 0, 0
        for part in self.parts:
            edges = start + np.cumsum(np.append(0, np.diff(part.bounds())[self.mask(part)]))
            reached = (edges[:-1] // length, -(-edges[1:] // length))  # the row of its first token, and after its last
            first, after = (np.minimum(row - np.searchsorted(passed_over, row), rows) for row in reached)
            count += int((first < after).sum())
            start = edges[-1]
        return count


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
            f"{output}: all {len(held_out)} held-out rows occur among the training rows; take more text or raise "
            "corpus.pack.sequence_length"
        )
    if len(chosen) >= pack.validation_sequences:
        chosen = chosen[: pack.validation_sequences]
        passed_over = passed_over[passed_over < chosen[-1]]
    return held_out[chosen], passed_over


def _write_shards(
    split: str, rows: int, blocks: Iterator[np.ndarray], pack: PackSettings, directory: Path
) -> Iterator[Shard]:
    """Publish the shards of a split."""
    block = np.empty((0, pack.sequence_length), TOKEN)
    progress = Progress(f"pack: {split}", rows, "rows")
    for number, first in enumerate(range(0, rows, pack.sequences_per_shard)):
        wanted, path = min(pack.sequences_per_shard, rows - first), directory / f"{split}-{number:05}.npy"
        with publish(path) as temporary, ArrayWriter(temporary, TOKEN, (pack.sequence_length,)) as shard:
            while missing := wanted - shard.length:
                if not len(block):
                    block = next(blocks)
                shard.append(block[:missing])
                block = block[missing:]
        yield Shard(path.name, split, wanted, sha256_of(path))
        progress.update(first + wanted)
