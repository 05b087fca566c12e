"""Runs and their timing are read from their files, or refused by name."""

import json

import pandas as pd
import pytest

from symbert.errors import DataError, IntegrityError
from symbert.files import sha256_of
from symbert.report.runs import exits_of, losses_of, read_runs, size_of

POINTS = [(50, 6.0), (100, 5.5)]


def test_runs_are_sorted_and_paired_by_directory(write_run):
    runs = [
        write_run("tiny", name, [(50, 6.0 + n)], seed=2 - n % 2)
        for n, name in enumerate(["pairwise", "original", "original"])
    ]
    done, metrics = zip(*runs, strict=True)
    found = read_runs(list(done), list(metrics)[::-1], 1800)
    assert found[["attention", "pretrain_seed", "loss"]].values.tolist() == [
        ["original", 1, 7.0],
        ["original", 2, 8.0],
        ["pairwise", 2, 6.0],
    ]


def refused(done, metrics, steps=1800):
    with pytest.raises(DataError) as caught:
        read_runs(done, metrics, steps)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_losses_that_are_not_those_of_the_run_are_not_reported(write_run):
    """An edited loss was printed as the run's: only the copy in the state had a checksum."""
    done, metrics = write_run("tiny", "original", POINTS)
    found = sha256_of(metrics)
    told = json.loads(done.read_text())
    done.write_text(json.dumps(told | {"metrics_sha256": found}))
    assert read_runs([done], [metrics], 1800)["loss"].tolist() == [6.0, 5.5]
    metrics.write_text(metrics.read_text().replace("5.5", "4.5"))
    with pytest.raises(IntegrityError) as refused:
        read_runs([done], [metrics], 1800)
    assert str(refused.value) == (
        f"{metrics}: sha256 expected {found}, found {sha256_of(metrics)}; delete it and run pretrain again"
    )
    done.write_text(json.dumps(told))
    losses = read_runs([done], [metrics], 1800)["loss"]
    assert losses.tolist() == [6.0, 4.5], "of a run of before, which does not say"


def test_files_of_different_runs_are_refused(write_run):
    first, second = write_run("tiny", "original", POINTS), write_run("tiny", "pairwise", POINTS)
    assert "not of the same runs" in refused([first[0]], [second[1]])
    assert "is there twice" in refused([first[0]] * 2, [first[1]] * 2)


def test_runs_of_several_sizes_are_read_but_not_drawn_in_one_figure(write_run):
    first, second = write_run("small", "original", POINTS), write_run("tiny", "original", POINTS)
    runs = read_runs([first[0], second[0]], [first[1], second[1]], 1800)
    assert list(runs["size"].unique()) == ["tiny", "small"]
    with pytest.raises(DataError, match="sizes tiny and small in one figure; draw one size at a time"):
        size_of(runs)
    assert size_of(runs[runs["size"] == "tiny"]) == "tiny"


def test_the_seeds_of_a_model_are_one_model(runs_of):
    falls, steps = [5.6] * 9 + [4.0, 3.0, 2.6], range(50, 650, 50)
    runs = runs_of(("tiny", "original", 1, steps, falls), ("tiny", "original", 2, steps, [5.0] * 12))
    models = losses_of(pd.concat([runs, runs_of(("tiny", "pairwise", 1, [50], [4.0]))]))
    assert list(models) == [("tiny", "original"), ("tiny", "pairwise")]
    original = models["tiny", "original"]
    assert original.shape == (2, 12) and original.loc[2].tolist() == [5.0] * 12
    assert exits_of(original) == [500, None]


@pytest.mark.parametrize("others", [[50, 90], [50], [50, 100, 150]])
def test_seeds_that_were_evaluated_at_different_steps_are_refused(runs_of, others):
    losses = [6.0, 5.0, 4.0][: len(others)]
    runs = runs_of(("tiny", "original", 1, [50, 100], [6.0, 5.0]), ("tiny", "original", 2, others, losses))
    with pytest.raises(DataError, match="tiny-original seed 2 was evaluated at other steps than tiny-original seed 1"):
        losses_of(runs)


def test_a_run_of_another_length_without_losses_or_with_a_broken_line_is_refused(write_run):
    done, metrics = write_run("tiny", "original", POINTS, steps=900)
    assert refused([done], [metrics]).startswith(f"{done}: the run has 900 steps, expected 1800")
    for points in ([], [(100, 5.5), (50, 6.0)], [(50, 6.0), (50, 6.0)]):
        done, metrics = write_run("tiny", "original", points)
        assert refused([done], [metrics]).startswith(f"{metrics}: expected validation losses at increasing steps")
    done, metrics = write_run("tiny", "original", POINTS)
    metrics.write_text(metrics.read_text() + '{"split": "valid')
    assert refused([done], [metrics]).startswith(f"{metrics}:5: not JSON")


@pytest.mark.parametrize("loss", [float("nan"), True, "5.5"])
def test_a_loss_that_is_no_finite_number_is_refused_and_jsons_true_is_none(write_run, loss):
    """True counted as 1.0."""
    done, metrics = write_run("tiny", "original", [(50, 6.0), (100, loss)])
    told = f": the validation 'loss' at step 100 is {loss!r}, expected a finite number" if type(loss) is float else None
    assert refused([done], [metrics]) == f"{metrics}{told or f':4: has the loss {loss!r}'}; run pretrain again"


def test_a_wanted_run_that_is_not_there_is_named(write_run):
    done, metrics = write_run("tiny", "original", [(50, 5.0)])
    assert not read_runs([done], [metrics], 1800, [("tiny", "original", 1)]).empty
    with pytest.raises(DataError, match="tiny-low_rank8 seed 1 is missing; run pretrain"):
        read_runs([done], [metrics], 1800, [("tiny", "original", 1), ("tiny", "low_rank8", 1)])


def test_runs_of_two_attention_dropouts_share_no_table(write_run):
    """What the device decides of the recipe fast; runs of faithful say nothing of it."""
    pairs = [write_run("tiny", "original", POINTS, seed=seed) for seed in (1, 2, 3)]
    for (done, _), dropout in zip(pairs, (0.1, 0.1, 0.125), strict=True):
        done.write_text(json.dumps(json.loads(done.read_text()) | {"settings": {"attention_dropout": dropout}}))
    done, metrics = map(list, zip(*pairs, strict=True))
    assert set(read_runs(done[:2], metrics[:2], 1800)["pretrain_seed"]) == {1, 2}
    with pytest.raises(DataError) as caught:
        read_runs(done, metrics, 1800)
    assert str(caught.value) == (
        "runs: tiny-original seed 1 has attention_dropout 0.1, tiny-original seed 3 has 0.125, as their devices decide "
        "for the recipe fast; run pretrain again on one kind of device"
    )
