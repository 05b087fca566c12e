"""chrF and BLEU of texts by sacrebleu (Post 2018), from counts that add up over batches and processes.

chrF: Popović 2015. BLEU: Papineni et al. 2002. Both are of a whole set of texts, from 0 to 100.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any


@cache
def _metrics() -> dict[str, tuple[Any, int]]:
    """The metrics by name, each with how many counts it is computed from."""
    from sacrebleu.metrics import BLEU, CHRF  # of no other host

    made = {"chrf": CHRF(), "bleu": BLEU()}
    # Before it has seen a reference, a metric's signature does not know of how many it is.
    return {name: (one, len(one._extract_corpus_statistics(["text"], [["text"]])[0])) for name, one in made.items()}


def count_matches(texts: Sequence[str], references: Sequence[str]) -> list[float]:
    """What both scores are computed from: sums over texts, each with its reference."""
    counts = []
    for metric, length in _metrics().values():
        of_texts = metric._extract_corpus_statistics(texts, [references])
        counts += [sum(column) for column in zip([0] * length, *of_texts, strict=True)]
    return counts


def scores_of(counts: Sequence[float]) -> dict[str, float]:
    """The scores by name, from what `count_matches` counted of all texts."""
    scores, rest = {}, [round(count) for count in counts]
    for name, (metric, length) in _metrics().items():
        scores[name], rest = metric._compute_score_from_stats(rest[:length]).score, rest[length:]
    return scores


def signatures() -> dict[str, str]:
    """How each score is computed, in sacrebleu's words: what a number must be cited with."""
    return {name: str(metric.get_signature()) for name, (metric, _) in _metrics().items()}
