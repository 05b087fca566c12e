"""Text in two languages, line beside line, as rows of token ids. Imports no torch.

Its word pieces keep case and spaces, so that text comes back from them: a word begins with SPACE, as SentencePiece
writes it; a piece within a word begins with ##.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from symbert.configuration import ParallelSettings, settings_from
from symbert.console import Progress
from symbert.corpus.lines import read_lines
from symbert.corpus.shards import Learned
from symbert.corpus.tokens import ArrayWriter
from symbert.corpus.wordpiece import LONGEST_WORD, TOKEN, learn_pieces
from symbert.errors import ConfigError, DataError
from symbert.files import publish, read_json, sha256_of, together, verify_sha256, write_json
from symbert.sources import verified

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


@together()
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
    settings, folder = output.parent / "settings.json", output.parent
    text = settings_from(read_json(settings, {"pairs": dict})["pairs"], ParallelSettings, str(settings))
    for name, expected in text.sha256.items():
        verify_sha256(verified(str(text.path(name))), expected, "run snakemake again")
    training = text.path("source"), text.path("target")
    held_out = text.path("validation_source"), text.path("validation_target")
    learned_from = [line for pair in islice(_pairs(*training), LEARNED_PAIRS) for line in pair]
    pieces = TextPieces.learned_from(learned_from, text.vocabulary_size)
    if len(pieces.pieces) > text.vocabulary_size:
        raise ConfigError(
            f"config: 'parallel.vocabulary_size' is {text.vocabulary_size}, but the letters of the text alone are "
            f"{len(pieces.pieces)} pieces; raise it"
        )
    references: list[str] = []
    packed = {
        "train": _pack("train", training, text.max_length, pieces, folder, set(_pairs(*held_out)), []),
        "validation": _pack("validation", held_out, text.max_length, pieces, folder, set(), references),
    }
    write_json(folder / VOCABULARY, pieces.pieces)
    write_json(folder / REFERENCES, references)
    reference_text = {"file": REFERENCES, "split": "references", "rows": len(references)}
    shards = [shard for split in ("validation", "train") for shard in packed[split]["shards"]]
    manifest = {
        "sequence_length": text.max_length,
        "vocabulary_size": len(pieces.pieces),
        "vocabulary_sha256": sha256_of(folder / VOCABULARY),
        "special_tokens": {token: number for number, token in enumerate(SPECIAL_TOKENS)},
        **{fact: {split: packed[split][fact] for split in packed} for fact in ("rows", "lines", "left_out")},
        "mean_tokens": packed["train"]["mean_tokens"],
        "text_sha256": text.sha256,
        **({"stand_in": True} if text.stand_in else {}),
        "shards": [*shards, {**reference_text, "sha256": sha256_of(folder / REFERENCES)}],
    }
    write_json(output, {**manifest, "hash": msgspec.convert(manifest, Learned).learned_hash()})


def _pack(
    split: str,
    files: tuple[Path, Path],
    longest: int,
    pieces: TextPieces,
    folder: Path,
    held_out: set[Pair],
    references: list[str],
) -> dict[str, Any]:
    """Write the rows of a split, and add its targets to `references`; returns the facts of the manifest."""
    left_out, tokens, rows, number = dict.fromkeys(REASONS, 0), np.zeros(2, np.int64), 0, 0
    progress = Progress(f"pack pairs: {split}", None, "pairs")
    paths = [folder / f"{split}-{side}.npy" for side in ("source", "target")]
    with (
        publish(paths[0]) as source_file,
        publish(paths[1]) as target_file,
        ArrayWriter(source_file, TOKEN, (longest,)) as sources,
        ArrayWriter(target_file, TOKEN, (longest + 1,)) as targets,
    ):
        for number, (pair, source, target) in enumerate(_encoded(_pairs(*files), pieces), start=1):
            progress.update(number)
            is_empty, is_long = (not pair[0], not pair[1]), (len(source) > longest, len(target) - 1 > longest)
            reasons = zip(REASONS, (*is_empty, *is_long, pair in held_out), strict=True)
            if reason := next((reason for reason, holds in reasons if holds), None):
                left_out[reason] += 1
                continue
            sources.append(_row(source, longest))
            targets.append(_row(target, longest + 1))
            tokens += len(source), len(target) - 1  # which the two sides of the model read
            rows += 1
            if split == "validation":
                references.append(pair[1])
    why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    if not rows:
        raise DataError(
            f"{files[0]}: none of its {number:,} pairs with {files[1]} is left ({why}); correct the files, or raise "
            "'parallel.max_length'"
        )
    told = f"pack pairs: {split}: {rows:,} of {number:,} pairs{why and f'; left out: {why}'}"
    print(f"warning: {told}" if 2 * rows < number else told, file=sys.stderr)
    return {
        "rows": rows,
        "lines": number,
        "left_out": left_out,
        "mean_tokens": dict(zip(("source", "target"), (tokens / rows).tolist(), strict=True)),
        "shards": [{"file": path.name, "split": path.stem, "rows": rows, "sha256": sha256_of(path)} for path in paths],
    }


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


def _pairs(source: Path, target: Path) -> Iterator[Pair]:
    """The lines of two files; DataError where one has more lines."""
    for number, (one, other) in enumerate(zip_longest(_lines(source), _lines(target)), start=1):
        if one is None or other is None:
            raise DataError(
                f"{source}, {target}: one of them alone has line {number:,}; make lines translations of each other"
            )
        yield one, other


def _lines(path: Path) -> Iterator[str]:
    """The lines of a file, plain or compressed, with one space wherever there is white space within."""
    for number, line in enumerate(read_lines(path), start=1):
        if isinstance(line, str):
            raise DataError(f"{path}: line {number:,}: {line}")
        yield " ".join(line.decode("utf-8-sig").split())
