"""The rules by which claims about shared hold, fail or stay open, on numbers made for each case."""

from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest

from symbert.report import claims
from symbert.report.claims import Finding, MissingEvidence
from symbert.report.speeds import read_speeds
from symbert.report.statistics import Comparison, Interval


@pytest.mark.parametrize(("share", "ours", "holds"), [(66.5366, "66.5366 %", True), (66.5401, "66.5401 %", False)])
def test_the_share_that_shared_saves_is_cut_off_as_it_is_printed(share, ours, holds):
    counts = {"base": {"attention_parameters": {"original": 1.0, "shared": 1 - share / 100}}}
    assert claims.check_attention_parameters(SimpleNamespace(parameters=counts), "base") == Finding(ours, holds)


@pytest.mark.parametrize(
    ("shares", "ours", "holds"),
    [
        ((0.9, 0.91, 0.92), "9.0 % [6.5, 11.5]", True),
        ((0.9, 0.93, 0.98), "6.3 % [−3.7, 16.4]", None),
        ((1.03, 1.03, 1.04), "−3.3 % [−4.8, −1.9]", False),
        ((0.9, 0.9), "10.0 %", None),
    ],
)
def test_a_tenth_less_time_is_judged_by_an_interval_over_rounds(write_speeds, shares, ours, holds):
    """Rounds may be slow or quick: the share is that of a round."""
    pace = (0.02, 0.09, 0.04)
    original = pace[: len(shares)]
    file = write_speeds("base", original=original, shared=[a * b for a, b in zip(original, shares, strict=True)])
    found = SimpleNamespace(speeds=read_speeds([file]))
    assert claims.check_step_time(found, "base") == Finding(ours, holds)
    with pytest.raises(MissingEvidence, match="^no step times of small-shared$"):
        claims.check_step_time(found, "small")


@pytest.mark.parametrize(
    ("noisy", "domain", "holds"),
    [((0.5, 0.01), (2.0, 0.02), True), ((0.5, 0.01), (0.5, 0.2), None), ((0.5, 0.3), (-2.0, 0.01), False)],
)
def test_robustness_needs_noise_and_other_domains(monkeypatch, noisy, domain, holds):
    leads = iter(
        Comparison("base", "shared", "original", "score", "seed", 5, difference, 1.0, Interval(-0.3, 1.3))
        for difference, _ in (noisy, domain)
    )
    p_values = iter((noisy[1], domain[1]))
    scores = pd.DataFrame({"clean": [0.5], "mixed_10": [0.5]})
    for name, answer in {"noise_scores": scores, "domain_scores": scores}.items():
        monkeypatch.setattr(claims, name, lambda robustness, answer=answer: answer)
    monkeypatch.setattr(claims, "lead_in", lambda *scores: replace(next(leads), holm_p=next(p_values)))
    finding = claims.check_robustness(SimpleNamespace(robustness=scores), "base")
    assert finding.holds is holds
    assert finding.ours.startswith(f"0.5 [−0.3, 1.3], p {noisy[1]:.3f} on noise; ")
