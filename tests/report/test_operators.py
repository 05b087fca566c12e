"""The exact formulas of Table 1 count real parameters."""

import pytest

from symbert.report.operators import ERRATUM, OPERATORS


@pytest.mark.parametrize(("hidden", "heads"), [(768, 12), (512, 8), (64, 2), (64, 1)])
def test_the_formulas_count_weights_biases_and_factors(hidden, heads):
    projection, head = hidden * hidden + hidden, hidden // heads
    counts = {name: operator.count(hidden, heads) for name, operator in OPERATORS.items()}
    assert counts["original"] == counts["original-gain"] == 3 * projection
    assert counts["symmetric"] == 2 * projection
    assert counts["pairwise"] == counts["pairwise-identity"] == counts["pairwise-scaled"]
    assert counts["pairwise"] == 2 * projection + heads * head * head
    assert counts["shared"] == projection + 3 * hidden


def test_sharing_all_three_projections_saves_the_share_that_its_authors_claim():
    saved = 1 - OPERATORS["shared"].count(768, 12) / OPERATORS["original"].count(768, 12)
    assert 100 * saved == pytest.approx(66.5366, abs=5e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_the_formula_for_readers_is_the_one_that_counts(name):
    words = (
        OPERATORS[name].exact.text.replace("²", "**2").replace("3h", "3*h").replace("2(", "2*(").replace("3(", "3*(")
    )
    assert eval(words, {"h": 768, "n": 12}) == OPERATORS[name].count(768, 12)


def test_the_erratum_states_a_true_equation():
    assert 103_017_018 - 102_427_194 == 589_824 == 12 * 768**2 // 12
    assert all(number in ERRATUM for number in ("103,017,018", "102,427,194", "589,824", "12 × 768²/12"))
