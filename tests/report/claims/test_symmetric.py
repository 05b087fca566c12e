"""The rules by which claims about symmetric and pairwise hold, fail or stay open, on numbers made for each case."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f

from symbert.report import claims
from symbert.report.claims import Deviation, Finding, ratio_of
from symbert.report.statistics import Comparison, Crossing, Exits, Interval

SAVED = {("base", "symmetric"): 6.4713, ("base", "pairwise"): 5.9328}
SAVED |= {("small", "symmetric"): 3.6486, ("small", "pairwise"): 3.1935}
SAVED |= {("tiny", "symmetric"): 4.1, ("tiny", "pairwise"): 2}


def counted(saved, kind="parameters", **heads):
    """Data of counts that are smaller than those of original by so many percent."""
    sizes = {size for size, _ in saved}
    counts = {
        size: {
            kind: {"original": 1.0} | {name: 1 - share / 100 for (of, name), share in saved.items() if of == size},
            "shape": {"num_attention_heads": heads.get(size)},
        }
        for size in sizes
    }
    return SimpleNamespace(parameters=counts)


def exits_from(steps):
    """The exits of runs, None for one that stays."""
    left = np.array([step is not None for step in steps])
    return Exits(np.array([step or 200_000 for step in steps], float), left)


@pytest.fixture
def trained(monkeypatch):
    """Data of runs with these losses, or exits from the plateau, by size and operator."""

    def make(key, values):
        monkeypatch.setattr(claims, "losses_of", lambda runs: values)
        if key == "exits":
            monkeypatch.setattr(claims, "exits_of", exits_from)
        return SimpleNamespace(runs=None)

    return make


def test_savings_hold_to_the_printed_digit():
    found = counted(SAVED)
    assert claims.check_parameters(found, "base") == Finding("6.47 %; 5.93 %", True)
    assert claims.check_parameters(found, "small") == Finding("3.65 %; 3.19 %", True)
    assert claims.check_parameters(counted(SAVED | {("base", "pairwise"): 5.94}), "base").holds is False
    assert claims.check_parameters(found, "tiny") == Finding("4.10 %; 2.00 %", False), (
        "the paper prints nothing of tiny"
    )


def test_a_third_is_saved_by_symmetric_and_nearly_by_pairwise_with_many_heads():
    shares = {("base", "symmetric"): 100 / 3, ("small", "pairwise"): 29.17, ("base", "pairwise"): 30.56}
    found = counted(shares, "attention_parameters", small=8, base=12)
    assert claims.check_thirds(found, "base") == Finding("33.33 %; 29.17 % (8 heads) to 30.56 % (12 heads)", True)
    found = counted(shares | {("base", "pairwise"): 29.0}, "attention_parameters")
    assert claims.check_thirds(found, "base").holds is False


@pytest.mark.parametrize(
    ("pairwise", "original", "holds"), [(78.63, 79.9, True), (78.6, 78.74, False), (79, 80.1, False)]
)
def test_scores_reproduce_the_paper_within_two_printed_deviations(monkeypatch, pairwise, original, holds):
    scores = {"pairwise": [pairwise], "original": [original]}
    monkeypatch.setattr(claims, "final_scores_of", lambda data, size, name: scores[name])
    found = claims.check_scores(None, "base")
    assert found == Finding(f"{pairwise:.2f}; {original:.2f}", holds)


@pytest.mark.parametrize(
    ("mean", "welch", "p_value", "ours", "is_higher", "is_lower"),
    [
        (0.66, Interval(0.2, 1.13), 0.0159, "0.7 [0.2, 1.1], p 0.016", True, False),
        (0.62, Interval(-0.16, 1.41), 0.0873, "0.6 [−0.2, 1.4], p 0.087", None, None),
        (-3.92, Interval(-5.06, -2.79), 0.0159, "−3.9 [−5.1, −2.8], p 0.016", False, True),
        (-0.04, None, None, "0.0", None, None),
    ],
)
def test_a_difference_counts_when_the_primary_test_shows_it(
    monkeypatch, mean, welch, p_value, ours, is_higher, is_lower
):
    found = Comparison("base", "pairwise", "original", "score", "seed", 5, mean, 0.1, welch, holm_p=p_value)
    monkeypatch.setattr(claims, "lead", lambda data, size, name: found)
    assert claims.check_higher(None, "base") == Finding(ours, is_higher)
    assert claims.check_lower(None, "base") == Finding(ours, is_lower)


@pytest.fixture
def check_deviations(monkeypatch):
    """What becomes of the claim by the standard deviations of operators."""

    def check(deviations):
        monkeypatch.setattr(claims, "final_scores_of", lambda data, size, name: name)
        monkeypatch.setattr(claims, "deviation", deviations.get)
        return claims.check_deviations(None, "base")

    return check


def test_the_papers_deviations_over_five_seeds_leave_open_which_is_lower(check_deviations):
    printed = {"symmetric": Deviation(0.36, 4), "pairwise": Deviation(0.37, 4), "original": Deviation(0.63, 4)}
    assert check_deviations(printed) == Finding("0.36; 0.37; 0.63", None)
    many = {name: Deviation(found.value, 40) for name, found in printed.items()}
    assert check_deviations(many).holds is True
    assert check_deviations(many | {"pairwise": Deviation(1.2, 40)}).holds is False
    assert check_deviations(many | {"original": Deviation(0.0, 40)}).holds is False


def test_the_interval_of_a_ratio_of_deviations_is_that_of_the_f_distribution():
    found = claims.ratio_interval(Deviation(0.37, 4), Deviation(0.63, 9))
    low, high = (math.sqrt((0.37 / 0.63) ** 2 / f.ppf(q, 4, 9)) for q in (0.975, 0.025))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)


NEVER = Crossing(200_000, None, math.inf)


@pytest.fixture
def halved(monkeypatch):
    """What becomes of the claim, by the crossings of both; then by those without each run that collapsed."""

    def check(pairwise, original, *others):
        crossings = {"pairwise": pairwise, "original": original}
        ratios = {f"run {number}": ratio_of(*pair) for number, pair in enumerate(others, start=1)}
        monkeypatch.setattr(claims, "crossing", lambda curve, size, name: crossings[name])
        monkeypatch.setattr(claims, "ratios_without_collapsed", lambda *curve: ratios)
        return claims.check_half(SimpleNamespace(curve=None), "base")

    return check


@pytest.mark.parametrize(
    ("pairwise", "original", "ratio", "holds"),
    [
        (Crossing(20_000, 30_000, 25_000), Crossing(50_000, 75_000, 60_000), "0.27–0.60", True),
        (Crossing(20_000, 30_001, 25_000), Crossing(50_000, 75_000, 60_000), "0.27–0.60", None),
        (Crossing(45_000, 50_000, 46_000), Crossing(50_000, 75_000, 74_000), "0.60–1.00", False),
        (Crossing(None, 300, 300.0), Crossing(600, 900, 700.0), "< 0.50", True),
        (Crossing(60, 100, 70.0), Crossing(None, 100, 100.0), "> 0.60", False),
        (NEVER, Crossing(50_000, 75_000, 65_515), "> 2.67", False),
        (Crossing(30_000, 35_000, 32_799), NEVER, "< 0.17", True),
        (NEVER, NEVER, "any", None),
    ],
)
def test_half_the_steps_holds_or_fails_by_the_whole_bracket_alone(halved, pairwise, original, ratio, holds):
    """An operator that is not at the line at its last checkpoint needs more; one that is at its first, no more."""
    found = halved(pairwise, original)
    assert found.holds is holds and found.ours.endswith(f"; ratio {ratio}") and found.hangs_on is None


SOON, LATE = Crossing(20_000, 30_000, 25_000), Crossing(50_000, 75_000, 60_000)


def test_half_the_steps_does_not_hang_on_one_run_that_collapsed(halved):
    """Without it original crosses between 40,000 and 75,000: 20,000 / 75,000 = 0.27 to 30,000 / 40,000 = 0.75."""
    other = (SOON, Crossing(40_000, 75_000, 60_000))
    found = halved(SOON, LATE, other)
    ours = "25,000 (20,000–30,000); 60,000 (50,000–75,000); ratio 0.27–0.60; 0.27–0.75 without run 1"
    assert found == Finding(ours, None, "one collapsed run")


@pytest.mark.parametrize("freedom", [(1, 4), (4, 1), (1, 1)])
def test_two_seeds_tell_nothing_of_a_lower_deviation(check_deviations, freedom):
    """With 1 and 1 degrees of freedom the 97.5 % quantile of F is 648: 0.01 against 5 was called lower."""
    assert claims.ratio_interval(*map(Deviation, (0.01, 5.0), freedom)) is None
    few = dict.fromkeys(("symmetric", "pairwise"), Deviation(0.01, freedom[0])) | {"original": Deviation(5, freedom[1])}
    assert check_deviations(few) == Finding("0.01; 0.01; 5.00", None)


@pytest.mark.parametrize(("original", "holds"), [(26_750, True), (27_500, True), (27_750, False), (22_250, False)])
def test_exits_hold_within_a_tenth_of_the_printed_step(trained, original, holds):
    answers = trained("exits", {("base", "original"): [original], ("base", "pairwise"): [12_000]})
    found = claims.check_exits(answers, "base", ("original", "pairwise"))
    assert found == Finding(f"{original:,}; 12,000", holds)
    tiny = trained("exits", {("tiny", "original"): [original]})
    assert claims.check_exits(tiny, "tiny", ("original",)).holds is False, "the paper says nothing of tiny"


@pytest.mark.parametrize(
    ("original", "pairwise", "holds"), [(25_000, 12_000, True), (17_000, 12_000, False), (25_000, 16_000, False)]
)
def test_only_the_plateau_of_original_lengthens(trained, original, pairwise, holds):
    exits = {("base", "symmetric"): [12_000], ("base", "pairwise"): [pairwise], ("base", "original"): [original]}
    exits |= {("small", name): [12_000] for name in ("original", "symmetric", "pairwise")}
    found = claims.check_growth(trained("exits", exits), "base")
    assert found == Finding(f"{original / 12_000:.1f} ×; 1.0 ×; {pairwise / 12_000:.1f} ×", holds)


def test_runs_of_which_most_never_leave_the_plateau_refute_the_claims_about_their_exit(trained):
    exits = {"original": [26_000, None, None], "symmetric": [14_000], "pairwise": [12_000]}
    answers = trained("exits", {(size, name): found for name, found in exits.items() for size in ("base", "small")})
    assert claims.check_exits(answers, "base", ("original", "pairwise")) == Finding("–; 12,000", False)
    assert claims.check_growth(answers, "base") == Finding("–; 1.0 ×; 1.0 ×", False)


@pytest.mark.parametrize(
    ("loss", "ours", "a_tenth_more", "the_same"),
    [(1.787, "0.104", True, False), (1.681, "−0.002", False, True), (1.843, "0.160", False, False)],
)
def test_losses_are_told_apart_by_half_a_tenth(trained, loss, ours, a_tenth_more, the_same):
    losses = {("base", "symmetric"): [[3, loss]], ("base", "original"): [[3, 1.683]]}
    found = trained("losses", {model: pd.DataFrame(values) for model, values in losses.items()})
    assert claims.check_loss(found, "base", "symmetric", 0.1) == Finding(ours, a_tenth_more)
    assert claims.check_loss(found, "base", "symmetric", 0.0) == Finding(ours, the_same)
