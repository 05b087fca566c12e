"""The rules by which a claim holds, fails or stays open, on numbers made for each case."""

import math
from types import SimpleNamespace

import pytest
from scipy.stats import f

from symbert.report import measures
from symbert.report.comparisons import Interval
from symbert.report.evidence import Absent, Deviation, Difference
from symbert.report.measures import Finding
from symbert.report.statistics import Crossing

SAVED = {("base", "symmetric"): 6.4713, ("base", "pairwise"): 5.9328, ("base", "shared"): 66.5366}
SAVED |= {
    ("small", "symmetric"): 3.6486,
    ("small", "pairwise"): 3.1935,
    ("tiny", "symmetric"): 4.1,
    ("tiny", "pairwise"): 2,
}


def evidence(**answers):
    """Evidence in which each question has one answer per operator, or per size and operator."""

    def answer(values):
        return lambda size, attention, *_: values.get((size, attention), values.get(attention))

    return SimpleNamespace(**{question: answer(values) for question, values in answers.items()})


def difference(mean, *interval):
    return Difference(mean, Interval(*interval) if interval else None)


def test_savings_hold_to_the_printed_digit():
    found = evidence(saved=SAVED)
    assert measures.check_parameters(found, "base") == Finding("6.47 %; 5.93 %", True)
    assert measures.check_parameters(found, "small") == Finding("3.65 %; 3.19 %", True)
    assert measures.check_parameters(evidence(saved=SAVED | {("base", "pairwise"): 5.94}), "base").holds is False
    assert measures.check_parameters(found, "tiny") == Finding("4.10 %; 2.00 %", False), (
        "the paper prints nothing of tiny"
    )


def test_a_third_is_saved_by_symmetric_and_nearly_by_pairwise_with_many_heads():
    shares = {"symmetric": 100 / 3, ("small", "pairwise"): 29.17, ("base", "pairwise"): 30.56}
    found = evidence(saved=shares)
    found.heads = {"small": 8, "base": 12}.get
    assert measures.check_thirds(found, "base") == Finding("33.33 %; 29.17 % (8 heads) to 30.56 % (12 heads)", True)
    found.saved = evidence(saved=shares | {("base", "pairwise"): 29.0}).saved
    assert measures.check_thirds(found, "base").holds is False


def test_the_share_that_shared_saves_is_cut_off_as_it_is_printed():
    assert measures.check_attention_parameters(evidence(saved=SAVED), "base") == Finding("66.5366 %", True)
    assert measures.check_attention_parameters(evidence(saved={"shared": 66.5401}), "base").holds is False


@pytest.mark.parametrize(
    ("pairwise", "original", "holds"), [(78.63, 79.9, True), (78.6, 78.74, False), (79, 80.1, False)]
)
def test_scores_reproduce_the_paper_within_two_printed_deviations(pairwise, original, holds):
    found = measures.check_scores(evidence(glue_score={"pairwise": pairwise, "original": original}), "base")
    assert found == Finding(f"{pairwise:.2f}; {original:.2f}", holds)


@pytest.mark.parametrize(
    ("found", "ours", "is_higher", "is_lower"),
    [
        (difference(0.62, 0.05, 1.2), "0.6 [0.1, 1.2]", True, False),
        (difference(0.62, -0.16, 1.41), "0.6 [−0.2, 1.4]", None, None),
        (difference(-3.92, -5.06, -2.79), "−3.9 [−5.1, −2.8]", False, True),
        (difference(-0.04), "0.0", None, None),
        (difference(0.5, 0.0, 1.0), "0.5 [0.0, 1.0]", None, None),
    ],
)
def test_a_difference_counts_when_its_whole_interval_is_on_one_side_of_zero(found, ours, is_higher, is_lower):
    answers = evidence(difference={"pairwise": found})
    assert measures.check_higher(answers, "base", "pairwise") == Finding(ours, is_higher)
    assert measures.check_lower(answers, "base", "pairwise") == Finding(ours, is_lower)


@pytest.mark.parametrize(
    ("noisy", "domain", "holds"),
    [((0.1, 1), (0.2, 3), True), ((0.1, 1), (-1, 1), None), ((-1, 1), (-3, -1), False), ((0.1, 1), (-3, -1), False)],
)
def test_robustness_needs_noise_and_other_domains(noisy, domain, holds):
    answers = {"noise_difference": noisy, "domain_difference": domain}
    found = evidence(**{name: {"shared": difference(0.5, *bounds)} for name, bounds in answers.items()})
    finding = measures.check_robustness(found, "base", "shared")
    assert finding.holds is holds
    assert finding.ours.startswith(f"0.5 [{noisy[0]:.1f}".replace("-", "−")) and "on noise; 0.5 [" in finding.ours


def test_the_papers_deviations_over_five_seeds_leave_open_which_is_lower():
    printed = {"symmetric": Deviation(0.36, 4), "pairwise": Deviation(0.37, 4), "original": Deviation(0.63, 4)}
    assert measures.check_deviations(evidence(deviation=printed), "base") == Finding("0.36; 0.37; 0.63", None)
    many = {name: Deviation(found.value, 40) for name, found in printed.items()}
    assert measures.check_deviations(evidence(deviation=many), "base").holds is True
    assert measures.check_deviations(evidence(deviation=many | {"pairwise": Deviation(1.2, 40)}), "base").holds is False
    assert measures.check_deviations(evidence(deviation=many | {"original": Deviation(0.0, 40)}), "base").holds is False


def test_the_interval_of_a_ratio_of_deviations_is_that_of_the_f_distribution():
    found = measures.ratio_interval(Deviation(0.37, 4), Deviation(0.63, 9))
    low, high = (math.sqrt((0.37 / 0.63) ** 2 / f.ppf(q, 4, 9)) for q in (0.975, 0.025))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9)


def test_two_models_without_any_deviation_leave_open_which_is_lower():
    still = dict.fromkeys(("symmetric", "pairwise", "original"), Deviation(0.0, 4))
    assert measures.check_deviations(evidence(deviation=still), "base") == Finding("0.00; 0.00; 0.00", None)
    one = still | {"original": Deviation(0.6, 4)}
    assert measures.check_deviations(evidence(deviation=one), "base").holds is True


NEVER = Crossing(200_000, None, math.inf)


def halved(pairwise, original, *others):
    """What becomes of the claim, by the crossings of both; then by those without each run that collapsed."""
    named = {f"run {number}": pair for number, pair in enumerate(others, start=1)}
    found = SimpleNamespace(
        crossing=lambda size, name, without=None: named.get(without, (pairwise, original))[name == "original"],
        collapsed=lambda size: list(named),
    )
    return measures.check_half(found, "base")


@pytest.mark.parametrize("step", [30_001, 32_799, 35_000])
def test_half_the_steps_is_not_decided_by_a_straight_line_between_checkpoints(step):
    """The authors' brackets: 30,000 / 75,000 = 0.40 to 35,000 / 50,000 = 0.70, and 0.6 lies between."""
    found = halved(Crossing(30_000, 35_000, step), Crossing(50_000, 75_000, 65_515))
    ours = f"{step:,} (30,000–35,000); 65,515 (50,000–75,000); ratio 0.40–0.70"
    assert found == Finding(ours, None)


@pytest.mark.parametrize(
    ("pairwise", "original", "ratio", "holds"),
    [
        (Crossing(20_000, 30_000, 25_000), Crossing(50_000, 75_000, 60_000), "0.27–0.60", True),
        (Crossing(20_000, 30_001, 25_000), Crossing(50_000, 75_000, 60_000), "0.27–0.60", None),
        (Crossing(45_000, 50_000, 46_000), Crossing(50_000, 75_000, 74_000), "0.60–1.00", False),
        (Crossing(44_999, 50_000, 46_000), Crossing(50_000, 75_000, 74_000), "0.60–1.00", None),
        (Crossing(None, 300, 300.0), Crossing(600, 900, 700.0), "< 0.50", True),
        (Crossing(None, 100, 100.0), Crossing(None, 100, 100.0), "any", None),
        (Crossing(None, 100, 100.0), Crossing(100, 200, 120.0), "< 1.00", None),
        (Crossing(None, 60, 60.0), Crossing(60, 200, 100.0), "< 1.00", None),
        (Crossing(40, 60, 50.0), Crossing(None, 100, 100.0), "> 0.40", None),
        (Crossing(60, 100, 70.0), Crossing(None, 100, 100.0), "> 0.60", False),
        (NEVER, Crossing(50_000, 75_000, 65_515), "> 2.67", False),
        (Crossing(30_000, 35_000, 32_799), NEVER, "< 0.17", True),
        (Crossing(125_000, 150_000, 130_000), NEVER, "< 0.75", None),
        (NEVER, NEVER, "any", None),
    ],
)
def test_half_the_steps_holds_or_fails_by_the_whole_bracket_alone(pairwise, original, ratio, holds):
    """An operator that is not at the line at its last checkpoint needs more; one that is at its first, no more."""
    found = halved(pairwise, original)
    assert found.holds is holds and found.ours.endswith(f"; ratio {ratio}") and found.hangs_on is None


SOON, LATE = Crossing(20_000, 30_000, 25_000), Crossing(50_000, 75_000, 60_000)


def test_half_the_steps_does_not_hang_on_one_run_that_collapsed():
    """Without it original crosses between 40,000 and 75,000: 20,000 / 75,000 = 0.27 to 30,000 / 40,000 = 0.75."""
    other = (SOON, Crossing(40_000, 75_000, 60_000))
    found = halved(SOON, LATE, other)
    ours = "25,000 (20,000–30,000); 60,000 (50,000–75,000); ratio 0.27–0.60; 0.27–0.75 without run 1"
    assert found == Finding(ours, None, "one collapsed run")


@pytest.mark.parametrize(
    ("other", "told"), [((SOON, LATE), ""), ((SOON, Crossing(75_000, 125_000, 80_000)), "; 0.16–0.40 without run 1")]
)
def test_a_collapsed_run_that_changes_no_verdict_leaves_it(other, told):
    """And one that changes nothing is not told of."""
    found = halved(SOON, LATE, other)
    assert found == Finding(f"25,000 (20,000–30,000); 60,000 (50,000–75,000); ratio 0.27–0.60{told}", True)


def test_an_operator_whose_only_run_collapsed_hangs_on_it():
    def crossing(size, name, without=None):
        if without:
            raise Absent("no checkpoints of base-original were scored")
        return SOON if name == "pairwise" else LATE

    found = measures.check_half(SimpleNamespace(crossing=crossing, collapsed=lambda size: ["run 1"]), "base")
    assert found.hangs_on == "one collapsed run" and found.ours.endswith("ratio 0.27–0.60; any without run 1")


@pytest.mark.parametrize("freedom", [(1, 4), (4, 1), (1, 1)])
def test_two_seeds_tell_nothing_of_a_lower_deviation(freedom):
    """With 1 and 1 degrees of freedom the 97.5 % quantile of F is 648: 0.01 against 5 was called lower."""
    assert measures.ratio_interval(*map(Deviation, (0.01, 5.0), freedom)) is None
    few = dict.fromkeys(("symmetric", "pairwise"), Deviation(0.01, freedom[0])) | {"original": Deviation(5, freedom[1])}
    assert measures.check_deviations(evidence(deviation=few), "base") == Finding("0.01; 0.01; 5.00", None)


@pytest.mark.parametrize(("original", "holds"), [(26_750, True), (27_500, True), (27_750, False), (22_250, False)])
def test_exits_hold_within_a_tenth_of_the_printed_step(original, holds):
    answers = evidence(plateau_exit={"original": original, "pairwise": 12_000})
    found = measures.check_exits(answers, "base", ("original", "pairwise"))
    assert found == Finding(f"{original:,}; 12,000", holds)
    assert measures.check_exits(answers, "tiny", ("original",)).holds is False, "the paper says nothing of tiny"


@pytest.mark.parametrize(
    ("original", "pairwise", "holds"), [(25_000, 12_000, True), (17_000, 12_000, False), (25_000, 16_000, False)]
)
def test_only_the_plateau_of_original_lengthens(original, pairwise, holds):
    exits = {"symmetric": 12_000, "pairwise": pairwise, "original": original}
    exits |= {("small", name): 12_000 for name in ("original", "symmetric", "pairwise")}
    found = measures.check_growth(evidence(plateau_exit=exits), "base")
    assert found == Finding(f"{original / 12_000:.1f} ×; 1.0 ×; {pairwise / 12_000:.1f} ×", holds)


def test_a_run_that_never_leaves_the_plateau_refutes_the_claims_about_its_exit():
    answers = evidence(plateau_exit={"original": None, "symmetric": 14_000, "pairwise": 12_000})
    assert measures.check_exits(answers, "base", ("original", "pairwise")) == Finding("–; 12,000", False)
    assert measures.check_growth(answers, "base") == Finding("–; 1.0 ×; 1.0 ×", False)


@pytest.mark.parametrize(
    ("loss", "ours", "a_tenth_more", "the_same"),
    [(1.787, "0.104", True, False), (1.681, "−0.002", False, True), (1.843, "0.160", False, False)],
)
def test_losses_are_told_apart_by_half_a_tenth(loss, ours, a_tenth_more, the_same):
    found = evidence(loss={"symmetric": loss, "original": 1.683})
    assert measures.check_loss(found, "base", "symmetric", 0.1) == Finding(ours, a_tenth_more)
    assert measures.check_loss(found, "base", "symmetric", 0.0) == Finding(ours, the_same)


@pytest.mark.parametrize(
    ("share", "ours", "holds"), [(90, "10.0 %", True), (96, "4.0 %", False), (103, "−3.0 %", False)]
)
def test_a_tenth_less_time_is_at_least_half_of_that(share, ours, holds):
    assert measures.check_step_time(evidence(step_time={"shared": share}), "base") == Finding(ours, holds)
