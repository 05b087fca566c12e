"""Which documents are kept (paper, appendix A): those against which there is no reason; the first one is counted."""

from collections.abc import Callable
from difflib import get_close_matches

from symbert.corpus.blocklist import Blocklist, Found
from symbert.corpus.document import Document
from symbert.errors import ConfigError
from symbert.settings import FilterSettings

Rules = Callable[[Document, Found], list[str]]
"""Gives all reasons against a document whose URL has the categories found, in the order of REASONS."""


def make_rules(settings: FilterSettings) -> Rules:
    """The rules of the settings, as one function; they are tried for every document, hence no function for each."""
    blocked = frozenset(settings.blocked_categories)
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity
    by_metadata = settings.has("categories") and settings.categories_from in ("metadata", "both")
    by_url = settings.has("categories") and settings.categories_from in ("blocklist", "both")
    by_perplexity, by_quality = settings.has("perplexity"), settings.has("quality_warnings")
    match = settings.match

    def reasons(document: Document, found: Found) -> list[str]:
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


def check_categories(blocked: list[str], blocklist: Blocklist) -> None:
    """ConfigError for a category that the blocklist does not have."""
    for name in sorted(set(blocked) - blocklist.names):
        near = get_close_matches(name, blocklist.names, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"choose from {', '.join(sorted(blocklist.names))}"
        raise ConfigError(f"blocked_categories: {name!r} is no category of the blocklist; {remedy}")
