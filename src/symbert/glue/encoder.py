"""How texts become token ids: by BERT's word pieces, or by the tokenizer of a foreign model.

Imports no torch; `transformers` is imported where a foreign tokenizer is read.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import tokenizers

from symbert.corpus.wordpiece import SPECIAL_TOKENS, encoder
from symbert.errors import DataError, line_of
from symbert.files import known_sha256
from symbert.foreign import Tokenizer
from symbert.sources import verified
from symbert.steps import File

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

PROBE = "Über Paris: don't, it's 12."  # capitals, an accent, punctuation
Texts = Sequence[str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Frame:
    """The special tokens of a pair, and the types of its tokens: those before, of the first text, between, of the
    second text, after."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[int, int, int, int, int]

    @property
    def special(self) -> int:
        """How many special tokens a pair has."""
        return len(self.before) + len(self.between) + len(self.after)

    def types_of(self, first: int, second: int) -> list[int]:
        """The types of all tokens of a pair whose texts have so many."""
        counts = len(self.before), first, len(self.between), second, len(self.after)
        return [kind for kind, count in zip(self.types, counts, strict=True) for _ in range(count)]


@dataclass(frozen=True)
class Encoder:
    """A tokenizer with its special tokens and pair format."""

    tokenizer: tokenizers.Tokenizer
    mask: int | None  # the id of the mask
    has_types: bool = True  # token types; without, all are 0
    cuts: str = "right"  # the side from which long texts are cut

    def rows(self, texts: Texts, max_length: int) -> tuple[list[list[int]], list[list[int]]]:
        """Ids and types of texts or pairs; the longer text of a pair is cut first."""
        self.tokenizer.enable_truncation(max_length, strategy="longest_first", direction=self.cuts)
        encodings = self.tokenizer.encode_batch_fast(texts)
        ids = [encoding.ids for encoding in encodings]
        return ids, [encoding.type_ids if self.has_types else [0] * len(encoding) for encoding in encodings]

    def texts(self, texts: Sequence[str]) -> list[tokenizers.Encoding]:
        """Texts without special tokens, and not cut."""
        self.tokenizer.no_truncation()
        return self.tokenizer.encode_batch(texts, add_special_tokens=False)

    @property
    def can_mask(self) -> bool:
        """Whether a mask can take the place of each token of a text, which stand between one special token and one."""
        self.tokenizer.no_truncation()
        special = self.tokenizer.encode("a").special_tokens_mask
        return self.mask is not None and sum(special) == special[0] + special[-1] == 2

    def frame(self) -> Frame:
        """The special tokens around and between the texts of a pair."""
        self.tokenizer.no_truncation()
        pair = self.tokenizer.encode("a", "a")
        first, second = ([n for n, of in enumerate(pair.sequence_ids) if of == text] for text in (0, 1))
        parts = slice(0, first[0]), slice(first[-1] + 1, second[0]), slice(second[-1] + 1, None)
        before, between, after = (pair.ids[part] for part in parts)
        starts = [0, first[0], first[-1] + 1, second[0], second[-1] + 1]
        types = [*(pair.type_ids if self.has_types else [0] * len(pair)), 0]
        return Frame(before, between, after, tuple(types[start] for start in starts))


def encoder_of(vocabulary: File | None, tokenizer: Tokenizer | None) -> Encoder:
    """The encoder of models that are pre-trained here, or of a foreign one; DataError as `load_tokenizer`."""
    if tokenizer is None:
        pieces = encoder(verified(vocabulary.path))
        return Encoder(pieces, pieces.token_to_id(SPECIAL_TOKENS["mask"]))
    loaded = load_tokenizer(tokenizer)
    backend = loaded.backend_tokenizer
    backend.no_padding()
    if begins_no_row(loaded):
        print(f"warning: {tokenizer.folder}: the tokenizer begins no row with its {loaded.cls_token}", file=sys.stderr)
    has_types = "token_type_ids" in loaded.model_input_names
    return Encoder(backend, loaded.mask_token_id, has_types, loaded.truncation_side)


def begins_no_row(loaded: "PreTrainedTokenizerFast") -> bool:
    """Whether a tokenizer has a token for classification, and puts it into no row."""
    return loaded.cls_token_id is not None and loaded.cls_token_id not in loaded.backend_tokenizer.encode("a").ids


def reads_otherwise(loaded: "PreTrainedTokenizerFast", tokenizer: Tokenizer) -> bool:
    """Whether transformers cuts text otherwise than tokenizer.json says, of which some of its classes take the
    vocabulary alone: a cased one is then lower-cased (findings/tokenizer-class.sh)."""
    if "tokenizer.json" not in tokenizer.files:
        return False
    written = tokenizers.Tokenizer.from_file(tokenizer.files["tokenizer.json"].path)
    written.no_truncation()
    written.no_padding()
    first, second = (
        each.encode(PROBE, add_special_tokens=False).tokens for each in (written, loaded.backend_tokenizer)
    )
    return first != second


def load_tokenizer(tokenizer: Tokenizer) -> "PreTrainedTokenizerFast":
    """The tokenizer that transformers makes of its files, and of no others.

    DataError where a file was changed since the start, where transformers cannot read them or has no fast tokenizer for
    them, and where they hold no vocabulary.
    """
    from transformers import AutoConfig, AutoTokenizer, logging

    logging.set_verbosity_error()  # what it warns of ends in an error, or is as it has to be
    for file in tokenizer.files.values():
        if file.sha256 and known_sha256(file.path) != file.sha256:
            raise DataError(f"{file.path}: changed since the workflow was started; start it again")
    with TemporaryDirectory() as folder:
        for name, file in tokenizer.files.items():
            Path(folder, name).symlink_to(Path(file.path).absolute())
        try:
            config = AutoConfig.for_model(tokenizer.model_type, tokenizer_class=tokenizer.tokenizer_class or None)
            loaded = AutoTokenizer.from_pretrained(
                folder, config=config, local_files_only=True, trust_remote_code=False
            )
        except Exception as error:  # of many types, some of Rust
            fact, remedy = f"transformers cannot read its tokenizer ({line_of(error)})", "get its files again"
            if "tokenizer.json" not in tokenizer.files and any(name.endswith(".model") for name in tokenizer.files):
                remedy = "pip install sentencepiece protobuf, or add its tokenizer.json"
            raise DataError(f"{tokenizer.folder}: {fact}; {remedy}") from None
    if not loaded.is_fast:
        raise DataError(
            f"{tokenizer.folder}: its tokenizer, {type(loaded).__name__}, is written in Python, rows need one of the "
            "package tokenizers; add a tokenizer.json of the same vocabulary"
        )
    if loaded.get_vocab().keys() <= set(loaded.all_special_tokens):
        files = ", ".join(tokenizer.files)
        raise DataError(f"{tokenizer.folder}: no vocabulary in {files}; add its tokenizer.json")
    return loaded
