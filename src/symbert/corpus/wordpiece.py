"""Text as WordPiece ids, as `BertTokenizerFast` of bert-base-uncased gives them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from symbert.errors import DataError, MissingInputError

SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
TOKEN = np.dtype(np.uint16)
LARGEST_VOCABULARY = np.iinfo(TOKEN).max + 1


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
    pieces = list(_lines(path))
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


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", newline="\n") as file:  # pieces may contain U+2028
            for line in file:
                yield line.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); get the file again") from None
