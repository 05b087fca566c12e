"""Why a document is dropped, by the names under which drops are counted.

In the order in which the rules are tried; the first that holds is counted.
"""

REASONS = (
    "blocked_category",
    "blocked_url",
    "no_perplexity",
    "perplexity_too_low",
    "perplexity_too_high",
    "quality_warning",
)
