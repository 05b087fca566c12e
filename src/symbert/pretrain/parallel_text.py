"""Text in two languages, line beside line, as rows of token ids. Imports no torch.

Its word pieces keep case and spaces, so that text comes back from them: a word begins with SPACE, as SentencePiece
writes it; what goes on within a word begins with ##.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from symbert.configuration import ParallelSettings, settings_from
from symbert.console import Progress
from symbert.corpus.lines import read_lines
from symbert.corpus.shards import hash_of_corpus
from symbert.corpus.tokens import ArrayWriter
from symbert.corpus.wordpiece import LONGEST_WORD, TOKEN, learn_pieces
from symbert.errors import ConfigError, DataError
from symbert.files import publish, read_json, sha256_of, verify_sha256, write_json

PADDING, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = ["<pad>", "<unk>", "<s>", "</s>"]  # by id; in text they are cut at their signs, and so are no tokens
SPACE = "▁"
WITHOUT_SPACES = Regex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
"""A letter of a script that writes no spaces between words is a word."""
VOCABULARY, REFERENCES = "vocabulary.json", "references.json"  # beside the manifest
PAIRS_AT_ONCE = 10_000
LEARNED_PAIRS = 1_000_000  # of the training text, the first ones, from which pieces are learned
# Why a pair is left out; where several hold, the first.
REASONS = ("empty_source", "empty_target", "source_too_long", "target_too_long", "held_out")

Pair = tuple[str, str]
Ids = list[int]


class TextPieces:
    """Lines as ids, and ids as lines. White space within a line is one space; unknown words come back as <unk>."""

    def __init__(self, pieces: list[str]) -> None:
        self.pieces = pieces
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        self._tokenizer = _cutting(
            models.WordPiece(vocabulary, unk_token=SPECIAL_TOKENS[UNKNOWN], max_input_chars_per_word=LONGEST_WORD)
        )

    @classmethod
    def learned_from(cls, lines: Sequence[str], size: int) -> "TextPieces":
        """The `size` pieces that cut these lines best; more where the letters alone are as many."""
        tokenizer = _cutting(models.WordPiece(unk_token=SPECIAL_TOKENS[UNKNOWN]))
        return cls(learn_pieces(tokenizer, lines, size, SPECIAL_TOKENS))

    @classmethod
    def read(cls, path: Path) -> "TextPieces":
        """Those that were written to a file."""
        return cls(read_json(path, [str], "run snakemake -R pack_pairs"))

    def write(self, path: Path) -> None:
        """The pieces by id, as a JSON list."""
        write_json(path, self.pieces)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each line, without START and END."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch_fast(lines, add_special_tokens=False)]

    def decode(self, ids: Sequence[int]) -> str:
        """The line that ids stand for, up to the first END, as somebody would write it."""
        kept = ids[: ids.index(END)] if END in ids else ids
        words = [self.pieces[number].removeprefix("##") for number in kept if number not in (PADDING, START)]
        return "".join(words).replace(SPACE, " ").strip()


def _cutting(model: models.WordPiece) -> Tokenizer:
    """A tokenizer that cuts lines at spaces, at punctuation, and into letters where a script has no spaces."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(SPACE),
            pre_tokenizers.Punctuation("isolated"),
            pre_tokenizers.Split(WITHOUT_SPACES, "isolated"),
        ]
    )
    return tokenizer


def pack_pairs(output: Path, /) -> None:
    """Write the pairs of the settings beside `output` as rows, the pieces that they are made of, and `output`, the
    manifest.

    `<split>-source.npy` and `<split>-target.npy` are uint16 [pairs, tokens] with padding at the end: a source ends with
    END, a target has START and END. `references.json` has the held-out targets as text. A pair is left out where a side
    is empty or takes more than `max_length` tokens of the model, and a training pair that is held out, too; the
    manifest counts them by reason. Raises DataError, naming file and line, for files that are empty, unequal, damaged
    or not UTF-8, and where no pair is left; IntegrityError for one that changed since the settings were written;
    ConfigError for a vocabulary that is smaller than the alphabet.
    """
    settings = output.parent / "settings.json"
    text = settings_from(read_json(settings, {"pairs": dict})["pairs"], ParallelSettings, str(settings))
    for name, expected in text.sha256.items():
        verify_sha256(text.path(name), expected, "run snakemake again")
    files = {
        "train": (text.path("source"), text.path("target")),
        "validation": (text.path("validation_source"), text.path("validation_target")),
    }
    lines = {split: _count_lines(*paths) for split, paths in files.items()}
    pieces = _learned_pieces(*files["train"], text.vocabulary_size)
    held_out, references = set(_pairs(*files["validation"])), []
    packing = {"validation": (set(), references), "train": (held_out, None)}
    packed = {
        split: _pack(split, *files[split], text.max_length, lines[split], pieces, *others, output.parent)
        for split, others in packing.items()
    }
    pieces.write(output.parent / VOCABULARY)
    write_json(output.parent / REFERENCES, references)
    shards = [shard for split in packed for shard in packed[split]["shards"]]
    reference_text = {"file": REFERENCES, "split": "references", "rows": len(references)}
    manifest = {
        "sequence_length": text.max_length,
        "vocabulary_size": len(pieces.pieces),
        "vocabulary_sha256": sha256_of(output.parent / VOCABULARY),
        "special_tokens": {token: number for number, token in enumerate(SPECIAL_TOKENS)},
        "rows": {split: packed[split]["rows"] for split in files},
        "lines": lines,
        "left_out": {split: packed[split]["left_out"] for split in files},
        "mean_tokens": packed["train"]["mean_tokens"],
        "text_sha256": text.sha256,
        **({"stand_in": True} if text.stand_in else {}),
        "shards": [*shards, {**reference_text, "sha256": sha256_of(output.parent / REFERENCES)}],
    }
    write_json(output, {**manifest, "hash": hash_of_corpus(manifest)})


def _pack(
    split: str,
    source: Path,
    target: Path,
    longest: int,
    lines: int,
    pieces: TextPieces,
    held_out: set[Pair],
    references: list[str] | None,
    folder: Path,
) -> dict[str, Any]:
    """Write the rows of a split, and add its targets to `references`; what the manifest says of them."""
    left_out, tokens, rows = dict.fromkeys(REASONS, 0), np.zeros(2, np.int64), 0
    progress = Progress(f"pack pairs: {split}", lines, "pairs")
    paths = [folder / f"{split}-{side}.npy" for side in ("source", "target")]
    with (
        publish(paths[0]) as one,
        publish(paths[1]) as other,
        ArrayWriter(one, TOKEN, (longest,)) as sources,
        ArrayWriter(other, TOKEN, (longest + 1,)) as targets,
    ):
        for number, (pair, read, written) in enumerate(_encoded(_pairs(source, target), pieces), start=1):
            progress.update(number)
            if reason := _why_left_out(pair, read, written, longest, held_out):
                left_out[reason] += 1
                continue
            sources.append(_row(read, longest))
            targets.append(_row(written, longest + 1))
            tokens += len(read), len(written) - 1  # which the two sides of the model read
            rows += 1
            if references is not None:
                references.append(pair[1])
    why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    if not rows:
        raise DataError(
            f"{source}: none of its {lines:,} pairs with {target} is left ({why}); correct the files, or raise "
            "'parallel.max_length'"
        )
    told = f"pack pairs: {split}: {rows:,} of {lines:,} pairs{why and f'; left out: {why}'}"
    print(f"warning: {told}" if 2 * rows < lines else told, file=sys.stderr)
    return {
        "rows": rows,
        "left_out": left_out,
        "mean_tokens": dict(zip(("source", "target"), (tokens / rows).tolist(), strict=True)),
        "shards": [{"file": path.name, "split": path.stem, "rows": rows, "sha256": sha256_of(path)} for path in paths],
    }


def _why_left_out(pair: Pair, read: Ids, written: Ids, longest: int, held_out: set[Pair]) -> str | None:
    holds = (not pair[0], not pair[1], len(read) > longest, len(written) - 1 > longest, pair in held_out)
    return next((reason for reason, is_so in zip(REASONS, holds, strict=True) if is_so), None)


def _row(ids: Ids, tokens: int) -> np.ndarray:
    """Ids as a row with padding at its end."""
    row = np.full((1, tokens), PADDING, TOKEN)
    row[0, : len(ids)] = ids
    return row


def _encoded(pairs: Iterator[Pair], pieces: TextPieces) -> Iterator[tuple[Pair, Ids, Ids]]:
    """Each pair with the ids of its source and of its target."""
    while block := list(islice(pairs, PAIRS_AT_ONCE)):
        sources, targets = (pieces.encode(side) for side in zip(*block, strict=True))
        for pair, source, target in zip(block, sources, targets, strict=True):
            yield pair, [*source, END], [START, *target, END]


def _learned_pieces(source: Path, target: Path, size: int) -> TextPieces:
    """One vocabulary of both sides."""
    learned_from = [line for pair in islice(_pairs(source, target), LEARNED_PAIRS) for line in pair]
    pieces = TextPieces.learned_from(learned_from, size)
    if len(pieces.pieces) > size:
        raise ConfigError(
            f"config: 'parallel.vocabulary_size' is {size}, but the letters of the text alone are "
            f"{len(pieces.pieces)} pieces; raise it"
        )
    return pieces


def _pairs(source: Path, target: Path) -> Iterator[Pair]:
    return zip(_lines(source), _lines(target), strict=True)


def _count_lines(source: Path, target: Path) -> int:
    """How many pairs two files have; DataError where they have none, or not the same number of lines."""
    lines, others = (sum(1 for _ in _lines(path)) for path in (source, target))
    for path, count in ((source, lines), (target, others)):
        if not count:
            raise DataError(f"{path}: is empty; give it a line for each sentence")
    if lines != others:
        raise DataError(
            f"{source}: {lines:,} lines, but {target} has {others:,}; make each line the translation of the other's"
        )
    return lines


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or compressed, with one space wherever there is white space within."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, str):
            raise DataError(f"{path}: line {number:,}: {line}")
        yield " ".join(line.decode("utf-8-sig").split())
