"""The rules by which claims about shared hold, fail or stay open, on numbers made for each case."""

from types import SimpleNamespace

import pandas as pd
import pytest

from symbert.report.claims import evidence, shared
from symbert.report.claims.evidence import Finding, MissingEvidence
from symbert.report.comparisons import Interval
from symbert.report.robustness import read_robustness
from symbert.report.runs import read_runs, read_timings
from symbert.report.scores import read_scores

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]


@pytest.mark.parametrize(("share", "ours", "holds"), [(66.5366, "66.5366 %", True), (66.5401, "66.5401 %", False)])
def test_the_share_that_shared_saves_is_cut_off_as_it_is_printed(share, ours, holds):
    counts = {"base": {"attention_parameters": {"original": 1.0, "shared": 1 - share / 100}}}
    assert shared.check_attention_parameters(SimpleNamespace(parameters=counts), "base") == Finding(ours, holds)


@pytest.mark.parametrize(
    ("share", "ours", "holds"), [(0.9, "10.0 %", True), (0.96, "4.0 %", False), (1.03, "−3.0 %", False)]
)
def test_a_tenth_less_time_is_at_least_half_of_that(write_run, write_timing, share, ours, holds):
    files = [write_run("base", name, [(50, 5.0)]) for name in ("original", "shared")]
    done, metrics = map(list, zip(*files, strict=True))
    timing = [
        write_timing(file, step_seconds=seconds) for file, seconds in zip(done, (0.02, 0.02 * share), strict=True)
    ]
    timings = read_timings(timing, read_runs(done, metrics, 1800), 32)
    assert shared.check_step_time(SimpleNamespace(timings=timings), "base") == Finding(ours, holds)
    with pytest.raises(MissingEvidence, match="^no step times of base-shared$"):
        shared.check_step_time(SimpleNamespace(timings=timings[:1]), "base")


@pytest.mark.parametrize(
    ("noisy", "domain", "holds"),
    [((0.1, 1), (0.2, 3), True), ((0.1, 1), (-1, 1), None), ((-1, 1), (-3, -1), False), ((0.1, 1), (-3, -1), False)],
)
def test_robustness_needs_noise_and_other_domains(monkeypatch, noisy, domain, holds):
    leads = iter([SimpleNamespace(difference=0.5, span=Interval(*span)) for span in (noisy, domain)])
    scores = pd.DataFrame({"clean": [0.5], "mixed_10": [0.5]})
    for name, answer in {"noise_scores": scores, "domain_scores": scores}.items():
        monkeypatch.setattr(shared, name, lambda robustness, answer=answer: answer)
    monkeypatch.setattr(evidence, "lead_in", lambda *scores: next(leads))
    finding = shared.check_robustness(SimpleNamespace(robustness=scores), "base")
    assert finding.holds is holds
    assert finding.ours.startswith(f"0.5 [{noisy[0]:.1f}".replace("-", "−")) and "on noise; 0.5 [" in finding.ours


@pytest.fixture
def measured(robustness_records, write_scores):
    """Data of the robustness of original and of shared, which scores 10 points higher."""

    def make(**options):
        models = [("base", "original", 0.7), ("base", "shared", 0.8)]
        scores, records = robustness_records(models, **options)
        clean = read_scores(write_scores(scores), TASKS, [1, 2])
        robustness = read_robustness(write_scores(records, "robustness"), clean, None)
        return SimpleNamespace(trained=clean, robustness=robustness)

    return make


def test_differences_on_noise_and_out_of_domain_are_means_over_all_of_them(measured):
    """The lead over 0.5 is 10 points larger, and noise leaves 90 % and 60 % of it; the sets follow the clean score."""
    found = measured(shares=(0.1, 0.4), sets=("hans", "adv_mnli", "adv_sst2"))
    assert shared.check_robustness(found, "base").ours == "7.5 on noise; 10.0 out of domain"


@pytest.mark.parametrize(
    ("options", "reason"),
    [({"shares": ()}, "no noise was measured"), ({"sets": ()}, "no out-of-domain set was measured")],
)
def test_noise_and_other_domains_may_be_measured_alone(measured, options, reason):
    with pytest.raises(MissingEvidence, match=f"^{reason}$"):
        shared.check_robustness(measured(**options), "base")


def test_robustness_may_not_be_measured_at_all():
    with pytest.raises(MissingEvidence, match="^robustness was not measured$"):
        shared.check_robustness(SimpleNamespace(robustness=None), "base")


def test_a_difference_may_be_of_some_columns(record, write_scores):
    scores = {**dict.fromkeys(("rte", "mrpc", "stsb", "cola"), (0.5, 0.6)), "sst2": (0.9, 0.8)}
    records = [
        record("base", name, 1800, task, 1, pair[at])
        for task, pair in scores.items()
        for at, name in enumerate(("original", "shared"))
    ]
    found = SimpleNamespace(trained=read_scores(write_scores(records), list(scores), [1]))
    assert shared.check_small_tasks(found, "base") == Finding("10.0", None), "one seed has no interval"
