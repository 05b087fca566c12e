"""A small bigram model in ARPA form, for the embedded source (the kenlm package has no estimator).

Unigrams are relative frequencies, with one occurrence set aside for unknown words. Bigrams come from
the harmful text alone, with absolute discounting (Ney, Essen and Kneser 1994): p(w|h) = (c(hw) - D) / c(h)
for a seen bigram, and the mass left over is spread by unigram probability. So harmful text has a low perplexity,
other known words an ordinary one, and unknown words a high one. For every h the p(w|h) sum to 1.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from symbert.corpus.perplexity import words
from symbert.files import write_text

DISCOUNT = 0.5
FEWEST_OCCURRENCES = 2  # rarer words are unknown
BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


@dataclass(frozen=True)
class Bigrams:
    """Probabilities of words and of seen bigrams, and the back-off weight of each history."""

    unigrams: dict[str, float]
    bigrams: dict[tuple[str, str], float]
    backoffs: dict[str, float]


def estimate(texts: Iterable[str], harmful: Iterable[str]) -> Bigrams:
    """A model of ordinary texts and harmful texts, each of which is one sentence."""
    sentences = [[BEGIN, *words(text), END] for text in harmful]
    counts = Counter(word for text in texts for word in (*words(text), END))
    rare = [word for word, count in counts.items() if count < FEWEST_OCCURRENCES]
    for word in (*rare, BEGIN, UNKNOWN):
        del counts[word]
    counts.update(word for sentence in sentences for word in sentence[1:])
    total = counts.total() + 1
    unigrams = {word: count / total for word, count in sorted(counts.items())}
    unigrams[UNKNOWN] = 1 / total

    pairs = Counter(pair for sentence in sentences for pair in pairwise(sentence))
    histories = Counter(first for sentence in sentences for first in sentence[:-1])
    bigrams = {pair: (count - DISCOUNT) / histories[pair[0]] for pair, count in sorted(pairs.items())}
    left = dict.fromkeys(histories, 1.0)
    unseen = dict.fromkeys(histories, 1.0)
    for (history, word), probability in bigrams.items():
        left[history] -= probability
        unseen[history] -= unigrams[word]
    return Bigrams(unigrams, bigrams, {history: left[history] / unseen[history] for history in sorted(left)})


def write_arpa(model: Bigrams, path: Path) -> None:
    """Write the model as text that KenLM reads: log10 probability, words, log10 back-off weight."""
    unigrams = {BEGIN: 0.0, **model.unigrams}
    lines = ["\\data\\", f"ngram 1={len(unigrams)}", f"ngram 2={len(model.bigrams)}", "", "\\1-grams:"]
    for word, probability in unigrams.items():
        log10 = math.log10(probability) if probability else -99.0  # <s> is never predicted
        lines.append(f"{log10:.6f}\t{word}\t{math.log10(model.backoffs.get(word, 1.0)):.6f}")
    lines += ["", "\\2-grams:"]
    lines += [f"{math.log10(probability):.6f}\t{' '.join(pair)}" for pair, probability in model.bigrams.items()]
    write_text(path, "\n".join([*lines, "", "\\end\\", ""]))
