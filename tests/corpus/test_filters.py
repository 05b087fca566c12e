import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus.oscar import record
from symbert.configuration import FilterSettings
from symbert.corpus.document import decode
from symbert.corpus.filters import FILTERS, REASONS, check_categories, make_rules
from symbert.errors import ConfigError

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


@pytest.mark.parametrize("absent", ["harmful_pp", "quality_warnings", "categories"])
def test_a_missing_annotation_is_what_null_is(absent):
    line, null = record(), record(**{absent: None})
    del line["metadata"][absent]
    assert reasons(line) == reasons(null) == (["no_perplexity"] if absent == "harmful_pp" else [])


@pytest.mark.parametrize(
    ("categories_from", "expected"),
    [("metadata", ["blocked_category"]), ("blocklist", ["blocked_url"]), ("both", ["blocked_category", "blocked_url"])],
)
def test_categories_come_from_where_the_configuration_says(categories_from, expected):
    line = record(categories=["press", "adult"])
    assert reasons(line, PHISHING, categories_from) == expected
    assert reasons(record(categories=["press"]), NOTHING, categories_from) == []


def test_reasons_come_in_the_documented_order():
    worst = record(categories=["adult"], harmful_pp=1, quality_warnings=["noisy"])
    assert reasons(worst, PHISHING) == ["blocked_category", "blocked_url", "perplexity_too_low", "quality_warning"]
    assert [reason for reason in REASONS if reason in reasons(worst, PHISHING)] == reasons(worst, PHISHING)


def test_the_filters_of_the_paper_are_not_the_only_choice():
    worst = record(categories=["adult"], harmful_pp=1, quality_warnings=["noisy"])
    unknown = record(harmful_pp=None)
    each = {
        "categories": ["blocked_category", "blocked_url"],
        "perplexity": ["perplexity_too_low"],
        "quality_warnings": ["quality_warning"],
    }
    assert tuple(each) == FILTERS
    for size in range(len(FILTERS) + 1):
        for rules in itertools.combinations(FILTERS, size):
            expected = [reason for rule in rules for reason in each[rule]]
            assert reasons(worst, PHISHING, rules=list(rules)) == expected
            assert reasons(unknown, rules=list(rules)) == ["no_perplexity"] * ("perplexity" in rules)
    assert reasons(worst, PHISHING, rules=list(FILTERS)) == reasons(worst, PHISHING)


@given(st.none() | st.floats(0, 2e5), st.lists(st.sampled_from(["adult", "press"])), st.lists(st.just("tiny")))
def test_a_further_fault_never_saves_a_document(value, categories, warnings):
    """Filters are monotone: adding a blocked category or a warning adds reasons and removes none."""
    line = record(harmful_pp=value, categories=categories, quality_warnings=warnings)
    for worse in ({"categories": [*categories, "adult"]}, {"quality_warnings": [*warnings, "noisy"]}):
        changed = {**line, "metadata": {**line["metadata"], **worse}}
        assert set(reasons(line)) <= set(reasons(changed))
    for found in (None, PHISHING):
        assert set(reasons(line)) <= set(reasons(line, found))


def test_a_misspelt_category_is_refused_with_the_near_one():
    with pytest.raises(ConfigError, match=r"'phising' .* did you mean 'phishing'"):
        check_categories(["phising"], frozenset({"phishing", "adult"}))
