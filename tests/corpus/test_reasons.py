"""What is said of the reasons for which documents were dropped."""

import pytest

from symbert.corpus.filters import are_few, check_categories, kept_in_words
from symbert.errors import ConfigError


def test_a_category_that_the_blocklist_lacks_is_named_with_a_near_one():
    check_categories(["adult"], frozenset({"adult", "press"}))
    with pytest.raises(ConfigError, match=r"blocked_categories: 'adlut' is no category of the blocklist.*adult"):
        check_categories(["press", "adlut"], frozenset({"adult", "press"}))


def test_counts_of_all_parts_are_said_with_the_commonest_reason_first():
    parts = [
        {"read": 1000, "kept": 499, "bad": 1, "dropped": {"no_perplexity": 100, "quality_warning": 400}},
        {"read": 1001, "kept": 501, "bad": 2, "dropped": {"no_perplexity": 498, "quality_warning": 0}},
    ]
    reasons = "no_perplexity 598, quality_warning 400, bad 3"
    assert kept_in_words(parts) == f"1,000 of 2,001 documents were kept ({reasons})"
    assert are_few(parts) and not are_few([{**parts[0], "kept": 500}]), "half is not few"
    assert kept_in_words([{"read": 1, "kept": 1, "bad": 0, "dropped": {}}]) == "1 of 1 documents were kept"
