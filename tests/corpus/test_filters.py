import itertools
import json

import numpy as np
from msgspec.structs import replace

from corpus.oscar import papers_filter, record
from symbert.corpus.counts import Characters, Counts, are_few, kept_in_words
from symbert.corpus.document import decode
from symbert.corpus.filters import FILTERS, make_rules

NOTHING = frozenset()  # the categories of a URL that is in no list; None: of no URL
PHISHING = frozenset({"phishing"})


def reasons(line: dict, found: frozenset[str] | None = NOTHING, **changes) -> list[str]:
    """All reasons against a document, in order."""
    return make_rules(replace(papers_filter(), **changes))(decode(json.dumps(line).encode(), "x:1"), found)


def below(value: float) -> float:
    """The 32-bit float below."""
    return float(np.nextafter(np.float32(value), np.float32(0)))


LOW, HIGH = ["perplexity_too_low"], ["perplexity_too_high"]
WINDOW = [(None, ["no_perplexity"]), (0.0, LOW), (-1.0, LOW), (below(5.0), LOW), (5.0, LOW), (5.000001, [])]
WINDOW += [(below(100_000.0), []), (100_000.0, HIGH), (100_000.01, HIGH)]


def test_the_perplexity_window_is_open_at_both_edges():
    for value, expected in WINDOW:
        assert reasons(record(harmful_pp=value)) == expected, value


def test_categories_come_from_where_the_configuration_says():
    both = ["blocked_category", "blocked_url"]
    for source, expected in (("metadata", both[:1]), ("blocklist", both[1:]), ("both", both)):
        assert reasons(record(categories=["press", "adult"]), PHISHING, categories_from=source) == expected
        assert reasons(record(categories=["press"]), NOTHING, categories_from=source) == []


WORST = record(categories=["adult"], harmful_pp=1, quality_warnings=["noisy"])
REASONS_OF_THE_WORST = {
    "categories": ["blocked_category", "blocked_url"],
    "perplexity": ["perplexity_too_low"],
    "quality_warnings": ["quality_warning"],
}


def test_every_choice_of_filters_gives_its_reasons_in_order():
    assert tuple(REASONS_OF_THE_WORST) == FILTERS
    for rules in itertools.chain.from_iterable(itertools.permutations(FILTERS, size) for size in range(4)):
        expected = [reason for rule in FILTERS if rule in rules for reason in REASONS_OF_THE_WORST[rule]]
        assert reasons(WORST, PHISHING, rules=list(rules)) == expected
        assert reasons(record(harmful_pp=None), rules=list(rules)) == ["no_perplexity"] * ("perplexity" in rules)


def test_counts_of_all_parts_are_said_with_the_commonest_reason_first():
    def counts(read: int, kept: int, bad: int, **dropped: int) -> Counts:
        return Counts("", "", read, kept, bad, [], 0, dropped, {}, Characters(0, 0, {}))

    parts = [
        counts(1000, 499, 1, no_perplexity=100, quality_warning=400),
        counts(1001, 501, 2, no_perplexity=498, quality_warning=0),
    ]
    reasons = "no_perplexity 598, quality_warning 400, bad 3"
    assert kept_in_words(parts) == f"1,000 of 2,001 documents were kept ({reasons})"
    assert are_few(parts) and not are_few([*parts, parts[1]])
    assert kept_in_words([counts(1, 1, 0)]) == "1 of 1 documents were kept"
