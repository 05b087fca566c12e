"""Runs and their timing are read from their files, or refused by name."""

import pytest

from report.conftest import tell_digest
from report.written import read_runs
from symbert.errors import DataError, IntegrityError
from symbert.files import sha256_of
from symbert.report.collect import losses_of

POINTS = [(50, 6.0), (100, 5.5)]


def refused(*folders, steps=1800):
    with pytest.raises(DataError) as caught:
        read_runs(list(folders), steps)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_losses_that_are_not_those_of_the_run_are_not_reported(write_run):
    """An edited loss was printed as the run's: only the copy in the state had a checksum."""
    folder = write_run("tiny", "original", POINTS)
    metrics = folder / "metrics.jsonl"
    found = sha256_of(metrics)
    assert read_runs([folder], 1800)["loss"].tolist() == [6.0, 5.5]
    metrics.write_text(metrics.read_text().replace("5.5", "4.5"))
    with pytest.raises(IntegrityError) as refused:
        read_runs([folder], 1800)
    assert f"{metrics}: sha256 expected {found}, found {sha256_of(metrics)}; restore it" in str(refused.value)


@pytest.mark.parametrize("others", [[50, 90], [50], [50, 100, 150]])
def test_seeds_that_were_evaluated_at_different_steps_are_refused(runs_of, others):
    losses = [6.0, 5.0, 4.0][: len(others)]
    runs = runs_of(("tiny", "original", 1, [50, 100], [6.0, 5.0]), ("tiny", "original", 2, others, losses))
    with pytest.raises(DataError, match="tiny-original seed 2 was evaluated at other steps than 1"):
        losses_of(runs)


def test_a_run_of_another_length_without_losses_or_with_a_broken_line_is_refused(write_run):
    folder = write_run("tiny", "original", POINTS, steps=900)
    log = folder / "metrics.jsonl"
    assert refused(folder).startswith(f"{folder / 'done.json'}: the run has 900 steps, expected 1800")
    for points in ([], [(100, 5.5), (50, 6.0)], [(50, 6.0), (50, 6.0)]):
        assert refused(write_run("tiny", "original", points)).startswith(
            f"{log}: expected validation losses at increas"
        )
    write_run("tiny", "original", POINTS)
    log.write_text(log.read_text() + '{"split": "valid')
    tell_digest(folder)
    assert refused(folder).startswith(f"{log}:5: not JSON (Input data was truncated")


@pytest.mark.parametrize("loss", [True, "5.5"])
def test_a_loss_that_is_no_finite_number_is_refused_and_jsons_true_is_none(write_run, loss):
    """True counted as 1.0."""
    folder = write_run("tiny", "original", [(50, 6.0), (100, loss)])
    assert refused(folder).startswith(f"{folder / 'metrics.jsonl'}:4: 'loss': expected 'float'")
