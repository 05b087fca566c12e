"""Text of any language as word pieces that keep its case and its spaces, so that text comes back from them.

A word begins with SPACE, as SentencePiece writes it; what goes on within a word begins with ##. Imports no torch.
"""

from collections.abc import Sequence
from pathlib import Path

from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from symbert.corpus.wordpiece import LONGEST_WORD, learn_pieces
from symbert.files import read_json, write_json

PADDING, UNKNOWN, START, END = range(4)
SPECIAL_TOKENS = ["<pad>", "<unk>", "<s>", "</s>"]  # by id; in text they are cut at their signs, and so are no tokens
SPACE = "▁"
WITHOUT_SPACES = Regex(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
"""A letter of a script that writes no spaces between words is a word."""


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
        return cls(read_json(path, [str], "run pack_pairs again"))

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
