"""Runs are read from their two files, or refused by name."""

import pytest

from symbert.errors import DataError
from symbert.report.runs import read_runs

POINTS = [(50, 6.0), (100, 5.5)]


def test_runs_are_sorted_and_paired_by_directory(write_run):
    runs = [
        write_run("tiny", name, [(50, 6.0 + n)], seed=2 - n % 2)
        for n, name in enumerate(["pairwise", "original", "original"])
    ]
    done, metrics = zip(*runs, strict=True)
    found = read_runs(list(done), list(metrics)[::-1], 1800)
    assert [(run.attention, run.pretrain_seed, run.losses) for run in found] == [
        ("original", 1, [7.0]),
        ("original", 2, [8.0]),
        ("pairwise", 2, [6.0]),
    ]


def test_only_validation_lines_are_read(write_run):
    done, metrics = write_run("tiny", "original", POINTS)
    (run,) = read_runs([done], [metrics], 1800)
    assert (run.steps, run.losses) == ([50, 100], [6.0, 5.5])


def refused(done, metrics, steps=1800):
    with pytest.raises(DataError) as caught:
        read_runs(done, metrics, steps)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_of_different_runs_are_refused(write_run):
    first, second = write_run("tiny", "original", POINTS), write_run("tiny", "pairwise", POINTS)
    assert "not of the same runs" in refused([first[0]], [second[1]])
    assert "is there twice" in refused([first[0]] * 2, [first[1]] * 2)


def test_two_sizes_in_one_figure_are_refused(write_run):
    first, second = write_run("tiny", "original", POINTS), write_run("small", "original", POINTS)
    assert "sizes tiny and small in one figure" in refused([first[0], second[0]], [first[1], second[1]])


def test_a_run_of_another_length_is_refused(write_run):
    done, metrics = write_run("tiny", "original", POINTS, steps=900)
    assert refused([done], [metrics]).startswith(f"{done}: the run has 900 steps, expected 1800")


@pytest.mark.parametrize("points", [[], [(100, 5.5), (50, 6.0)], [(50, 6.0), (50, 6.0)]])
def test_losses_that_are_missing_or_out_of_order_are_refused(write_run, points):
    done, metrics = write_run("tiny", "original", points)
    assert refused([done], [metrics]).startswith(f"{metrics}: expected validation losses at increasing steps")


def test_a_loss_that_is_not_finite_is_refused(write_run):
    done, metrics = write_run("tiny", "original", [(50, float("nan"))])
    assert "not a finite number" in refused([done], [metrics])


def test_a_broken_line_is_named(write_run):
    done, metrics = write_run("tiny", "original", POINTS)
    metrics.write_text(metrics.read_text() + '{"split": "valid')
    assert refused([done], [metrics]).startswith(f"{metrics}:4: not JSON")
