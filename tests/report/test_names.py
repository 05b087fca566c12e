"""Tables and figures list models in one order."""

from hypothesis import given
from hypothesis import strategies as st

from symbert.report.names import attentions, model_rank


@given(st.permutations(["original", "symmetric", "pairwise", "shared", "zeta", "alpha"]))
def test_operators_come_in_the_papers_order_and_new_ones_last_by_name(names):
    assert attentions([*names, "original"]) == ["original", "symmetric", "pairwise", "shared", "alpha", "zeta"]


def test_a_models_size_counts_before_its_operator():
    models = [("base", "original"), ("small", "pairwise"), ("small", "original")]
    assert sorted(models, key=lambda model: model_rank(*model)) == models[::-1]
