"""Ids by Hugging Face's own tokenizer of bert-base-uncased, which knows nothing of this project; and hard texts."""

from functools import cache
from pathlib import Path

from hypothesis import strategies as st
from transformers import BertTokenizerFast

TEXTS = [
    "The Café's naïve façade — unbelievable!",
    "中文 and 日本語 mixed, 한국어 too, ｆｕｌｌ ｗｉｄｔｈ",
    "tabs\tnew\nlines\r\n and \u00a0 blanks\u2028there\u3000\u1680\u0085\x0b\x0c\x1c",
    "control \x00 \x07 \u200b \ufeff \u00ad \ufffd \x7f characters",
    "literal [SEP] and [MASK], [cls] and ##ing, x[UNK]y [[PAD]] [SEP [S\u00c9P] [ SEP ]",
    "a" * 101 + " " + "b" * 100 + " " + "é" * 100 + " " + "é" * 101,
    "emoji 👩‍👩‍👧 and flags 🇫🇷, new ones 🫨 🪿, none \U0001fbff \u0378",
    "ﬁne Ⅳ ½ İstanbul ıI ẞ ß ŉ ǰ ΑΣ ΑΣΑ ς",
    "q\u0307\u0323 q\u0323\u0307 \u0301 first, 가 가 \u302e\u302f d\u0334\u0301",
    "\U00020000 \U000e0001 \U0010fffd \ue000 \U0001d15e \u0e33",
    "",
    "   ",
    "word " * 4000 + "é\n" * 9000 + "中" * 17_000 + ", " + "x" * 33_000 + " " + "ж" * 33_000,
]

HARD = [
    *("[SEP]", "[sep]", "[MASK", "[[CLS]", "##ing", "##", "x" * 99, "é" * 100, "function" * 13, "[PAD][PAD]"),
    *("\u0301", "\u0323", "\u302e", "\U0001d165", "\u200d", "\ufe0f", "\u00ad", "\ufeff", "\ufffd", "\x00", "\x7f"),
    *("\u00a0", "\u2028", "\u0085", "\u3000", "\t", "\n", "\r", " ", "İ", "ı", "ß", "ẞ", "ﬁ", "Σ", "ς", "中", "\uf900"),
    *("]", "[", "/", "^", "`", "~", "_", "=", "a" * 101, "1" * 60),
    *("각", "ᄀ", "ᅡ", "ᆨ", "\U0002f800", "\U0001f468", "\U0001f1eb", "\U0010ffff", "\ue000", "\u0378", "Ⅳ", "ŉ"),
]
hard_texts = st.lists(
    st.one_of(st.sampled_from(HARD), st.text(max_size=8), st.sampled_from(["the ", "value", "."]))
).map("".join)


def stock_ids(vocabulary: Path, texts: list[str]) -> list[list[int]]:
    """Ids of each text."""
    return _tokenizer(str(vocabulary))(texts)["input_ids"] if texts else []


@cache
def _tokenizer(vocabulary: str) -> BertTokenizerFast:
    return BertTokenizerFast(vocab=vocabulary, do_lower_case=True)


class PanicException(BaseException):
    """As the binding of a Rust library raises it."""


class Liar:
    """tokie with a mistake: it drops what it should keep, or breaks down on it."""

    def __init__(self, tokenizer, dropped, is_fragile=False):
        self.tokenizer, self.dropped, self.is_fragile = tokenizer, dropped, is_fragile

    def encode_batch_flat(self, texts):
        if self.is_fragile and any(self.dropped in text for text in texts):
            raise PanicException("out of bounds")
        return self.tokenizer.encode_batch_flat([text.replace(self.dropped, "") for text in texts])
