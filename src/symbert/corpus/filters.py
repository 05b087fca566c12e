"""Which documents are kept (paper, appendix A): those against which no chosen filter has a reason.

To add a filter: an entry in REASONS_BY_FILTER.
"""

import sys
from collections.abc import Callable, Collection
from typing import Any

from symbert.declared import suggestion
from symbert.errors import ConfigError

Holds = Callable[[Any, frozenset[str] | None, Any], bool]
"""Whether a reason holds against a `corpus.document.Document`, given the categories of its URL in the blocklist,
under `FilterSettings`."""


def _meet(found: Collection[str] | None, blocked: list[str]) -> bool:
    return bool(found) and not set(found).isdisjoint(blocked)


REASONS_BY_FILTER: dict[str, dict[str, Holds]] = {
    "categories": {
        "blocked_category": lambda document, listed, settings: (
            settings.categories_from != "blocklist" and _meet(document.metadata.categories, settings.blocked_categories)
        ),
        "blocked_url": lambda document, listed, settings: (
            settings.categories_from != "metadata" and _meet(listed, settings.blocked_categories)
        ),
    },
    "perplexity": {
        "no_perplexity": lambda document, listed, settings: document.metadata.harmful_pp is None,
        "perplexity_too_low": lambda document, listed, settings: (
            (value := document.metadata.harmful_pp) is not None and value <= settings.min_harmful_perplexity
        ),
        "perplexity_too_high": lambda document, listed, settings: (
            (value := document.metadata.harmful_pp) is not None and value >= settings.max_harmful_perplexity
        ),
    },
    "quality_warnings": {
        "quality_warning": lambda document, listed, settings: bool(document.metadata.quality_warnings),
    },
}
"""Of the reasons that hold against a document the first in this order is counted."""
FILTERS = tuple(REASONS_BY_FILTER)
REASONS = tuple(reason for reasons in REASONS_BY_FILTER.values() for reason in reasons)


def make_rules(settings: Any) -> Callable[[Any, Any], list[str]]:
    """A function that gives all reasons against a document, in the order of REASONS."""
    chosen = [pair for name in FILTERS if settings.has(name) for pair in REASONS_BY_FILTER[name].items()]
    return lambda document, listed: [reason for reason, holds in chosen if holds(document, listed, settings)]


def check_categories(blocked: list[str], known: frozenset[str], without_entries: frozenset[str]) -> None:
    """ConfigError for a category that the blocklist does not know; a line on stderr for one of no entries."""
    for name in sorted(set(blocked) - known):
        raise ConfigError(
            f"blocked_categories: {name!r} is no category of UT1's archive{suggestion(name, sorted(known))}"
        )
    for name in sorted(without_entries.intersection(blocked)):
        print(
            f"warning: blocked_categories: {name!r} has no entries in UT1's archive, so no URL is of it",
            file=sys.stderr,
        )
