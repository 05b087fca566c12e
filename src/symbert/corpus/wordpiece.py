"""Text as WordPiece ids, as `BertTokenizerFast` of bert-base-uncased gives them, by two encoders.

`tokenizers` defines the ids, `tokie` (https://github.com/chonkie-inc/tokie) gives the same more than ten times as fast.
It is young, so it stands behind a guard: text in which the two were seen to differ (`symbert.corpus.characters`) goes
to tokenizers, and so does text that it would cut by itself.
"""

import re
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from symbert.errors import DataError, MissingInputError
from symbert.files import read_json

SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
TOKEN = np.dtype(np.uint16)
LARGEST_VOCABULARY = np.iinfo(TOKEN).max + 1
CODE_POINTS = 0x110000
SCAN = {"versions": dict, "problem": (str, type(None)), "differing": [[int]]}  # what scan-characters wrote
PIECE = 16_000  # characters, at most 64,000 bytes
BREAK = re.compile("[ \t\n,.\u4e00-\u9fff]")
"""Before one of these no word and no special token goes on, and no accent moves across: text can be cut there."""
_RUN = re.compile("[A-Za-z0-9]{1000,}")
_LONGEST_WORD = 100  # characters; a longer one is [UNK]


def encoder(vocabulary: Path) -> Tokenizer:
    """The uncased BERT tokenizer of a vocabulary file; a pair is encoded [CLS] a [SEP] b [SEP]."""
    pieces = read_vocabulary(vocabulary)
    tokenizer = Tokenizer(WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS.values()))
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, pieces[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def read_vocabulary(path: Path) -> dict[str, int]:
    """Piece to id, one piece a line; DataError when it is no vocabulary of BERT or ids exceed 16 bits."""
    if not Path(path).is_file():
        raise MissingInputError(f"{path}: file not found; run download-vocabulary")
    try:
        text = Path(path).read_bytes().decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); get the file again") from None
    pieces = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]  # U+2028 may be in one
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    for token in SPECIAL_TOKENS.values():
        if token not in vocabulary:
            raise DataError(f"{path}: no {token} in it; expected a vocabulary of BERT, one piece a line")
    if len(vocabulary) < len(pieces):
        raise DataError(f"{path}: {len(pieces) - len(vocabulary)} pieces occur twice; get the file again")
    if len(pieces) > LARGEST_VOCABULARY:
        raise DataError(
            f"{path}: {len(pieces):,} pieces; token ids have 16 bits, use at most {LARGEST_VOCABULARY:,} pieces"
        )
    return vocabulary


class DisagreementError(Exception):
    """tokie gave other ids than tokenizers, or broke down."""


class Reference:
    """tokenizers."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = f"tokenizers {_version('tokenizers')}"
        self.referred = 0
        self.tokenizer = tokenizer

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, [CLS] ... [SEP]."""
        return _join([np.array(self.tokenizer.encode_batch_fast([piece])[0].ids, TOKEN) for piece in pieces(text)])


class Guarded:
    """tokie, and tokenizers for what tokie is not trusted with; `referred` counts texts of which that was a part."""

    def __init__(self, tokie: Any, reference: Reference, agreeing: np.ndarray) -> None:
        self.name = f"tokie {_version('tokie')}"
        self.referred = 0
        self._tokie = tokie
        self._reference = reference
        self._agreeing = agreeing  # [CODE_POINTS], bool
        self._differing_ascii = [chr(point) for point in np.flatnonzero(~agreeing[:128])]

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, [CLS] ... [SEP]; DisagreementError when tokie breaks down."""
        cut = pieces(text)
        accepted = [self._accepts(piece) for piece in cut]
        self.referred += not all(accepted)
        return _join(
            [
                encode_piece(self._tokie, piece) if fine else self._reference.encode(piece)
                for piece, fine in zip(cut, accepted, strict=True)
            ]
        )

    def _accepts(self, piece: str) -> bool:
        # From 65,536 bytes on tokie cuts a text for its threads, within words where it finds no blank (seen on 0.1.4).
        if len(piece) > PIECE:
            return False
        if piece.isascii():
            return not any(character in piece for character in self._differing_ascii)
        return bool(self._agreeing[np.frombuffer(piece.encode("utf-32-le"), np.uint32)].all())


def encode_piece(tokie: Any, piece: str) -> np.ndarray:
    """tokie's ids of a text of at most PIECE characters; DisagreementError when it breaks down."""
    # One text at a time: given several, tokie starts a thread per processor, whatever RAYON_NUM_THREADS says.
    try:
        return tokie.encode_batch_flat([piece])[0]
    except BaseException as error:  # a panic in Rust is no Exception
        if type(error).__name__ != "PanicException":
            raise
        raise DisagreementError(f"tokie broke down ({error})") from None


def pieces(text: str) -> list[str]:
    """A text cut before some BREAK, so that the ids of the pieces, put together, are those of the text.

    A piece has at most PIECE characters, or goes on to the first BREAK after that, long runs in it cut short: the
    word around is [UNK] anyway.
    """
    cut, start = [], 0
    while len(text) - start > PIECE:
        places = range(start + PIECE, start, -1)
        after = next((place for place in places if BREAK.match(text, place)), None)
        if after is None:
            found = BREAK.search(text, start + PIECE)
            after = found.start() if found else len(text)
        cut.append(_shortened(text[start:after]))
        start = after
    return [*cut, text[start:]] if start < len(text) or not cut else cut


def _shortened(piece: str) -> str:
    return piece if len(piece) <= PIECE else _RUN.sub(lambda run: run[0][: _LONGEST_WORD + 1], piece)


def _join(parts: list[np.ndarray]) -> np.ndarray:
    """The ids of pieces as one text's: [CLS] of the first and [SEP] of the last are kept."""
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([parts[0][:-1], *(part[1:-1] for part in parts[1:-1]), parts[-1][1:]])


def load_tokie(tokenizer: Tokenizer) -> Any:
    """tokie's tokenizer with the settings of `tokenizer`; None where tokie is not installed."""
    try:
        import tokie
    except ImportError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "tokenizer.json"))
        tokenizer.save(path)
        return tokie.Tokenizer.from_json(path)


def versions(vocabulary_sha256: str) -> dict[str, str | None]:
    """What a comparison of the two encoders holds for."""
    libraries = {name: _version(name) for name in ("tokie", "tokenizers")}
    return {**libraries, "vocabulary_sha256": vocabulary_sha256}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def guarded(reference: Reference, characters: Path | None, vocabulary_sha256: str) -> Guarded | None:
    """tokie behind its guard; None, and a line that says why, where it cannot be trusted: the ids are the same.

    `characters` is what `scan-characters` found for these versions and this vocabulary.
    """
    tokie = load_tokie(reference.tokenizer)
    scan = read_json(characters, SCAN) if characters else {}
    if tokie is None:
        problem = "tokie is not installed (no wheel for this platform, or: pip install -c envs/constraints.txt tokie)"
    elif not characters:
        problem = "no --characters given; run scan-characters"
    elif scan["versions"] != versions(vocabulary_sha256):
        problem = f"{characters}: made by other versions or for another vocabulary; delete it and run scan-characters"
    else:
        problem = scan["problem"]
    if problem:
        print(f"{problem}: tokenizers alone gives the ids, the same, at a tenth of the speed", file=sys.stderr)
        return None
    agreeing = np.ones(CODE_POINTS, bool)
    for first, last in scan["differing"]:
        agreeing[first : last + 1] = False
    return Guarded(tokie, reference, agreeing)
