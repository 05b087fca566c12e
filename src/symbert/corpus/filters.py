"""Which documents are kept (paper, appendix A): those against which no chosen filter has a reason.

To add a filter: its function for each reason, and an entry in REASONS_BY_FILTER.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

from symbert.declared import suggestion
from symbert.errors import ConfigError

Holds = Callable[[Any, Any], bool]
"""Whether a reason holds against a `corpus.document.Document`, given what `corpus.blocklist` finds of its URL."""
Counts = list[dict[str, Any]]  # of documents by outcome, of each part


def _blocked_category(settings: Any) -> Holds | None:
    if settings.categories_from == "blocklist":
        return None
    blocked = frozenset(settings.blocked_categories)
    return lambda document, listed: not blocked.isdisjoint(document.metadata.categories or ())


def _blocked_url(settings: Any) -> Holds | None:
    if settings.categories_from == "metadata":
        return None
    blocked = frozenset(settings.blocked_categories)
    return lambda document, listed: not blocked.isdisjoint(listed or ())


def _no_perplexity(settings: Any) -> Holds:
    return lambda document, listed: document.metadata.harmful_pp is None


def _perplexity_too_low(settings: Any) -> Holds:
    low = settings.min_harmful_perplexity
    return lambda document, listed: document.metadata.harmful_pp is not None and document.metadata.harmful_pp <= low


def _perplexity_too_high(settings: Any) -> Holds:
    high = settings.max_harmful_perplexity
    return lambda document, listed: document.metadata.harmful_pp is not None and document.metadata.harmful_pp >= high


def _quality_warning(settings: Any) -> Holds:
    return lambda document, listed: bool(document.metadata.quality_warnings)


REASONS_BY_FILTER: dict[str, dict[str, Callable[[Any], Holds | None]]] = {
    "categories": {"blocked_category": _blocked_category, "blocked_url": _blocked_url},
    "perplexity": {
        "no_perplexity": _no_perplexity,
        "perplexity_too_low": _perplexity_too_low,
        "perplexity_too_high": _perplexity_too_high,
    },
    "quality_warnings": {"quality_warning": _quality_warning},
}
"""What makes the test of a reason of the `FilterSettings`, or None where they leave it out. Of the reasons that hold
against a document the first in this order is counted."""
FILTERS = tuple(REASONS_BY_FILTER)
REASONS = tuple(reason for reasons in REASONS_BY_FILTER.values() for reason in reasons)


def make_rules(settings: Any) -> Callable[[Any, Any], list[str]]:
    """A function that gives all reasons against a document, in the order of REASONS."""
    chosen = [pair for name in FILTERS if settings.has(name) for pair in REASONS_BY_FILTER[name].items()]
    tests = [(reason, holds) for reason, make in chosen if (holds := make(settings))]
    return lambda document, listed: [reason for reason, holds in tests if holds(document, listed)]


def check_categories(blocked: list[str], known: frozenset[str]) -> None:
    """ConfigError for a category that the blocklist does not know."""
    for name in sorted(set(blocked) - known):
        raise ConfigError(
            f"blocked_categories: {name!r} is no category of the blocklist{suggestion(name, sorted(known))}"
        )


def are_few(counts: Counts) -> bool:
    """Whether fewer than half of the documents were kept."""
    return 2 * sum(part["kept"] for part in counts) < sum(part["read"] for part in counts)


def kept_in_words(counts: Counts) -> str:
    """Such as `1 of 137 documents were kept (perplexity_too_high 99, quality_warning 37)`, the commonest first."""
    kept, read = (sum(part[key] for part in counts) for key in ("kept", "read"))
    dropped = Counter({"bad": sum(part["bad"] for part in counts)})
    for part in counts:
        dropped.update(part["dropped"])
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in dropped.most_common() if number)
    return f"{kept:,} of {read:,} documents were kept{f' ({reasons})' if reasons else ''}"
