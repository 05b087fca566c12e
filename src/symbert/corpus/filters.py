"""Which documents are kept (paper, appendix A): those against which there is no reason; the first one is counted."""

from collections import Counter
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from symbert.errors import ConfigError
from symbert.settings import FilterSettings

if TYPE_CHECKING:
    from symbert.corpus.blocklist import Blocklist, Found
    from symbert.corpus.document import Document

Counts = list[dict[str, Any]]  # what filter-part counted, of each part

REASONS = (
    "blocked_category",
    "blocked_url",
    "no_perplexity",
    "perplexity_too_low",
    "perplexity_too_high",
    "quality_warning",
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


Rules = Callable[["Document", "Found"], list[str]]
"""Gives all reasons against a document whose URL has the categories found, in the order of REASONS."""


def make_rules(settings: FilterSettings) -> Rules:
    """The rules of the settings, as one function; they are tried for every document, hence no function for each."""
    blocked = frozenset(settings.blocked_categories)
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity
    by_metadata = settings.has("categories") and settings.categories_from in ("metadata", "both")
    by_url = settings.has("categories") and settings.categories_from in ("blocklist", "both")
    by_perplexity, by_quality = settings.has("perplexity"), settings.has("quality_warnings")
    match = settings.match

    def reasons(document: "Document", found: "Found") -> list[str]:
        metadata = document.metadata
        against = []
        if by_metadata and metadata.categories and not blocked.isdisjoint(metadata.categories):
            against.append("blocked_category")
        if by_url and found.suffix and not blocked.isdisjoint(getattr(found, match)):
            against.append("blocked_url")
        if not by_perplexity:
            pass
        elif metadata.harmful_pp is None:
            against.append("no_perplexity")
        elif metadata.harmful_pp <= low:
            against.append("perplexity_too_low")
        elif metadata.harmful_pp >= high:
            against.append("perplexity_too_high")
        if by_quality and metadata.quality_warnings:
            against.append("quality_warning")
        return against

    return reasons


def check_categories(blocked: list[str], blocklist: "Blocklist") -> None:
    """ConfigError for a category that the blocklist does not have."""
    for name in sorted(set(blocked) - blocklist.names):
        near = get_close_matches(name, blocklist.names, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(sorted(blocklist.names))}"
        raise ConfigError(f"blocked_categories: {name!r} is no category of the blocklist; {remedy}")
