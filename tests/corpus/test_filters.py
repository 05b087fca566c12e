import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.oscar import record
from symbert.configuration import FilterSettings
from symbert.corpus.document import decode
from symbert.corpus.filters import FILTERS, make_rules

NOTHING = frozenset()  # the categories of a URL that is in no list; None: of no URL
PHISHING = frozenset({"phishing"})


def reasons(
    line: dict,
    found: frozenset[str] | None = NOTHING,
    categories_from: str = "both",
    rules: list | None = None,
) -> list[str]:
    """All reasons against a document, in order."""
    settings = FilterSettings(
        annotations="published",
        blocked_categories=["phishing", "adult"],
        categories_from=categories_from,
        match="exact",
        min_harmful_perplexity=5.0,
        max_harmful_perplexity=100_000.0,
        max_bad_fraction=0.0,
        rules=list(FILTERS) if rules is None else rules,
    )
    document = decode(json.dumps(line).encode(), "x:1")
    return make_rules(settings)(document, found)


def below(value: float) -> float:
    """The 32-bit float below."""
    return float(np.nextafter(np.float32(value), np.float32(0)))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["no_perplexity"]),
        (0.0, ["perplexity_too_low"]),
        (-1.0, ["perplexity_too_low"]),
        (below(5.0), ["perplexity_too_low"]),
        (5.0, ["perplexity_too_low"]),
        (5.000001, []),
        (below(100_000.0), []),
        (100_000.0, ["perplexity_too_high"]),
        (100_000.01, ["perplexity_too_high"]),
    ],
)
def test_the_perplexity_window_is_open_at_both_edges(value, expected):
    assert reasons(record(harmful_pp=value)) == expected


@pytest.mark.parametrize(
    ("categories_from", "expected"),
    [("metadata", ["blocked_category"]), ("blocklist", ["blocked_url"]), ("both", ["blocked_category", "blocked_url"])],
)
def test_categories_come_from_where_the_configuration_says(categories_from, expected):
    line = record(categories=["press", "adult"])
    assert reasons(line, PHISHING, categories_from) == expected
    assert reasons(record(categories=["press"]), NOTHING, categories_from) == []


WORST = record(categories=["adult"], harmful_pp=1, quality_warnings=["noisy"])
REASONS_OF_THE_WORST = {
    "categories": ["blocked_category", "blocked_url"],
    "perplexity": ["perplexity_too_low"],
    "quality_warnings": ["quality_warning"],
}


def test_every_choice_of_filters_gives_its_reasons_in_order():
    assert tuple(REASONS_OF_THE_WORST) == FILTERS
    for size in range(len(FILTERS) + 1):
        for rules in itertools.permutations(FILTERS, size):
            expected = [reason for rule in FILTERS if rule in rules for reason in REASONS_OF_THE_WORST[rule]]
            assert reasons(WORST, PHISHING, rules=list(rules)) == expected
            assert reasons(record(harmful_pp=None), rules=list(rules)) == ["no_perplexity"] * ("perplexity" in rules)


@given(st.none() | st.floats(0, 2e5), st.lists(st.sampled_from(["adult", "press"])), st.lists(st.just("tiny")))
def test_a_further_fault_never_saves_a_document(value, categories, warnings):
    """Filters are monotone: adding a blocked category or a warning adds reasons and removes none."""
    line = record(harmful_pp=value, categories=categories, quality_warnings=warnings)
    for worse in ({"categories": [*categories, "adult"]}, {"quality_warnings": [*warnings, "noisy"]}):
        changed = {**line, "metadata": {**line["metadata"], **worse}}
        assert set(reasons(line)) <= set(reasons(changed))
    for found in (None, PHISHING):
        assert set(reasons(line)) <= set(reasons(line, found))
