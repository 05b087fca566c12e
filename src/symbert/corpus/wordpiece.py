"""Text as WordPiece ids, as `BertTokenizerFast` of bert-base-uncased gives them: `tokenizers` defines the ids."""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from importlib import metadata
from itertools import chain
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing
from tokenizers.trainers import WordPieceTrainer

from symbert.corpus.file_formats import FIRST, refuse_other_format
from symbert.errors import DataError
from symbert.files import reading, write_text

SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
TOKEN = np.dtype(np.uint16)
LARGEST_VOCABULARY = np.iinfo(TOKEN).max + 1
CODE_POINTS = 0x110000
CHUNK = 16_000  # characters, at most 64,000 bytes
COMMON_BREAKS = r"(?:[ \t\n!-/:-@\[\\^-`{-~\u4e00-\u9fff]|(?<![A-Za-z])\])"
"""Before one of these no word and no special token goes on, and no accent moves across: text can be cut there. They are
blanks, the punctuation of ASCII but a bracket that may end a special token, and ideographs."""
BREAK, LAST_BREAK = re.compile(COMMON_BREAKS), re.compile(f"(?s:.+)(?={COMMON_BREAKS})")
LONGEST_WORD = 100  # characters; a longer one is [UNK]
LONG_RUN = re.compile(f"([A-Za-z0-9]{{{LONGEST_WORD + 1}}})[A-Za-z0-9]+")
"""In a word that is [UNK] and in no special token: its ids are those of its first 101 characters."""
UNCHANGED = re.compile("[!-@\\[-~]+")  # pieces of which no letter is changed: ASCII without capitals
RAREST_CHARACTER = 1e-5  # share of the text below which a character is unknown


def encoder(vocabulary: Path) -> Tokenizer:
    """The uncased BERT tokenizer of a vocabulary file; a pair is encoded [CLS] a [SEP] b [SEP], and pieces are decoded
    as the words that they are of."""
    pieces = read_vocabulary(vocabulary)
    tokenizer = uncased(WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS.values()))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, pieces[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def uncased(model: WordPiece) -> Tokenizer:
    """A tokenizer that cuts text into words as the uncased BERT does."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    return tokenizer


def write_vocabulary(texts: Sequence[str], size: int, path: Path) -> None:
    """Train an uncased WordPiece vocabulary of `size` pieces, [PAD] with id 0: a function of the arguments, byte for
    byte. More than `size` stand where the letters alone are as many."""
    tokenizer = uncased(WordPiece(unk_token="[UNK]"))
    counts = Counter(character for text in texts for character in text)
    rare = {ord(character): None for character, count in counts.items() if count < RAREST_CHARACTER * counts.total()}
    texts = [text.translate(rare) for text in texts]
    inner_letters: set[str] = set()
    for word in {word for text in texts for word in text.split()}:
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(word)):
            inner_letters.update(piece[1:])
    # Given first, because the trainer numbers the letters within words as it meets them in a hash map.
    first = [*SPECIAL_TOKENS.values(), *(f"##{letter}" for letter in sorted(inner_letters))]
    tokenizer.train_from_iterator(
        texts,
        WordPieceTrainer(
            vocab_size=size, min_frequency=2, special_tokens=first, show_progress=False, continuing_subword_prefix="##"
        ),
    )
    pieces = tokenizer.get_vocab()
    write_text(path, "".join(f"{piece}\n" for piece in sorted(pieces, key=pieces.__getitem__)))


def read_vocabulary(path: Path) -> dict[str, int]:
    """Piece to id, one piece a line; DataError when it is no vocabulary of BERT or ids exceed 16 bits."""
    try:
        with reading(path, absent="download it"):
            content = Path(path).read_bytes()
        refuse_other_format(path, content[:FIRST])
        text = content.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); get the file again") from None
    if text.startswith("\ufeff"):
        raise DataError(f"{path}: begins with a byte order mark, which would belong to the first piece; delete it")
    pieces = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]  # U+2028 may be in one
    for line, piece in enumerate(pieces, start=1):
        if not piece.strip(" \t"):
            raise DataError(f"{path}:{line}: an empty line, which would be a piece; delete it, or get the file again")
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    for token in SPECIAL_TOKENS.values():
        if token not in vocabulary:
            raise DataError(f"{path}: no {token} in it; expected a vocabulary of BERT, one piece a line")
    if len(vocabulary) < len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if vocabulary[piece] != number)
        raise DataError(f"{path}: the piece {twice!r} occurs twice; get the file again")
    if len(pieces) > LARGEST_VOCABULARY:
        raise DataError(
            f"{path}: {len(pieces):,} pieces; token ids have 16 bits, use at most {LARGEST_VOCABULARY:,} pieces"
        )
    return vocabulary


def warn_of_misfit(path: Path, tokenizer: Tokenizer) -> None:
    """Say on stderr where more than a hundredth of a vocabulary's pieces can never occur."""
    lost, count = never_occurring(tokenizer), tokenizer.get_vocab_size()
    if 100 * len(lost) > count:
        print(
            f"warning: {path}: {len(lost):,} of {count:,} pieces can never occur, such as {lost[-1]!r}: text is "
            "lower-cased and loses its accents; take an uncased vocabulary",
            file=sys.stderr,
        )


def never_occurring(tokenizer: Tokenizer) -> list[str]:
    """The pieces of which a tokenizer changes the letters in every text, as capitals and accents of a cased vocabulary;
    sorted."""
    normalize = tokenizer.normalizer.normalize_str
    stems = {piece: piece.removeprefix("##") for piece in tokenizer.get_vocab() if not UNCHANGED.fullmatch(piece)}
    for token in SPECIAL_TOKENS.values():
        stems.pop(token, None)
    return sorted(piece for piece, stem in stems.items() if normalize(stem).strip() != stem)  # blanks around ideographs


class Reference:
    """tokenizers."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.name = f"tokenizers {metadata.version('tokenizers')}"
        self.referred = 0
        self.tokenizer = tokenizer

    def encode(self, text: str) -> np.ndarray:
        """The ids of a text, [CLS] ... [SEP]."""
        return np.concatenate([*self.stream([text])])

    def stream(self, pieces: Iterable[str]) -> Iterator[np.ndarray]:
        """The same, one after the other, of a text in pieces that begin where a line ends."""
        return joined(self.encoded(pieces))

    def encoded(self, pieces: Iterable[str]) -> Iterator[np.ndarray]:
        """The ids of its chunks, each [CLS] ... [SEP]."""
        return (np.array(self.tokenizer.encode_batch_fast([chunk])[0].ids, TOKEN) for chunk in self.chunks(pieces))

    def chunks(self, pieces: Iterable[str]) -> Iterator[str]:
        """A text cut so that the ids of the chunks, put together, are those of the text. A chunk has at most CHUNK
        characters, but where no break occurs in as many. Of such a one the long words of ASCII are shortened, for
        tokenizers takes 60 to 400 bytes of memory a character, and a text may have 64 MB of base64 in a line."""
        chunks = chain.from_iterable(map(_cut, pieces))
        return (chunk if len(chunk) <= CHUNK else LONG_RUN.sub(r"\1", chunk) for chunk in chunks)


def _cut(text: str) -> Iterator[str]:
    """A text cut before some of its breaks: the last one within CHUNK characters, or else the next one."""
    start = 0
    while len(text) - start > CHUNK:
        if found := LAST_BREAK.match(text, start, start + CHUNK + 1):
            after = found.end()
        else:
            found = BREAK.search(text, start + CHUNK + 1)
            after = found.start() if found else len(text)
        yield text[start:after]
        start = after
    if start < len(text) or not text:
        yield text[start:]


def joined(chunks: Iterable[np.ndarray]) -> Iterator[np.ndarray]:
    """The ids of chunks as one text's: [CLS] of the first and [SEP] of the last are kept."""
    held = None
    for ids in chunks:
        ids = ids.astype(TOKEN, copy=False)
        if held is not None:
            yield held[:-1]
            ids = ids[1:]
        held = ids
    if held is not None:
        yield held
