"""Harmful perplexity: how surprising a document is to a model of harmful text; low means more likely harmful.

For text that comes without OSCAR's `harmful_pp` (ungoliant b26f11d): the document is one sentence.
"""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from symbert.errors import DataError, MissingInputError

# The Unicode property White_Space. `str.split` would also split at U+001C to U+001F.
WHITE_SPACE = "\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WORD = re.compile(f"[^{WHITE_SPACE}]+")


def words(text: str) -> list[str]:
    """The words of a text: what stands between Unicode white space."""
    return _WORD.findall(text)


def harmful_perplexity(model: Path) -> Callable[[str], float]:
    """A function that gives the perplexity of a document under a KenLM model (ARPA or binary).

    10^(-(sum of log10 p(word) + log10 p(</s>)) / (words + 1)) in 32-bit floats, from the `<s>` state.
    Raises MissingInputError or DataError, which name the file.
    """
    import kenlm

    if not Path(model).is_file():
        raise MissingInputError(f"{model}: file not found")
    settings = kenlm.Config()
    settings.show_progress = False
    settings.arpa_complain = kenlm.ARPALoadComplain.NONE
    try:
        language_model = kenlm.Model(str(model), settings)
    except (OSError, RuntimeError) as error:
        raise DataError(f"{model}: not a KenLM model ({' '.join(str(error).split())})") from None

    def perplexity(text: str) -> float:
        sentence = words(text)
        # The binding splits at ASCII white space only, hence the single spaces, and ends at a NUL; upstream a word with
        # a NUL is an unknown word, as one with a noncharacter is.
        text = " ".join(sentence).replace("\0", "\uffff")
        log10 = np.float32(language_model.score(text, bos=True, eos=True))
        value = np.float32(10) ** (-log10 / np.float32(len(sentence) + 1))
        return float(str(value))  # the shortest decimal that is this 32-bit float, as upstream writes it

    return perplexity
