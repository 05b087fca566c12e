"""Why a document is dropped, by the names under which drops are counted.

In the order in which the rules are tried; the first that holds is counted.
"""

from collections import Counter
from typing import Any

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
