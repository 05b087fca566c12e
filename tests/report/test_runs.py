"""Runs and their timing are read from their files, or refused by name."""

import json

import hypothesis.strategies as st
import pandas as pd
import pytest
import torch
from hypothesis import given

from symbert.errors import DataError, IntegrityError
from symbert.files import sha256_of
from symbert.layout import Run
from symbert.pretrain.pace import Pace
from symbert.pretrain.record import INCIDENTAL, SCIENTIFIC, SOFT
from symbert.report.runs import exits_of, losses_of, read_runs, read_timings, runs_alone, size_of

POINTS = [(50, 6.0), (100, 5.5)]
TRUE_STD = {"logit_std": [0.3, True], "attention_entropy": [4.0, 4.1]}


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


def test_only_validation_lines_are_read(write_run):
    done, metrics = write_run("tiny", "original", POINTS)
    assert read_runs([done], [metrics], 1800)[["step", "loss"]].values.tolist() == [[50, 6.0], [100, 5.5]]


def test_the_start_of_a_run_is_the_mean_over_its_layers(write_run):
    done, metrics = write_run("tiny", "original", POINTS, initial=((0.25, 0.5), (4.0, 4.5)))
    run = read_runs([done], [metrics], 1800)
    assert run[["logit_std", "attention_entropy"]].values.tolist() == [[0.375, 4.25]] * 2, "alike in every row"


def test_a_run_without_an_initial_line_has_no_start(write_run):
    done, metrics = write_run("tiny", "original", POINTS)
    metrics.write_text("".join(metrics.read_text().splitlines(keepends=True)[1:]))
    run = read_runs([done], [metrics], 1800)
    assert run[["logit_std", "attention_entropy"]].isna().all(axis=None) and run["step"].tolist() == [50, 100]


@pytest.mark.parametrize("initial", [{}, {"logit_std": [], "attention_entropy": []}, {"logit_std": 0.3}, TRUE_STD])
def test_an_initial_line_without_layers_is_refused(write_run, initial):
    done, metrics = write_run("tiny", "original", POINTS)
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text(json.dumps({"split": "initial", "step": 0} | initial) + "\n" + "".join(lines[1:]))
    assert refused([done], [metrics]).startswith(f"{metrics}: the initial line has no 'logit_std'")


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


def test_a_run_of_another_length_is_refused(write_run):
    done, metrics = write_run("tiny", "original", POINTS, steps=900)
    assert refused([done], [metrics]).startswith(f"{done}: the run has 900 steps, expected 1800")


@pytest.mark.parametrize("points", [[], [(100, 5.5), (50, 6.0)], [(50, 6.0), (50, 6.0)]])
def test_losses_that_are_missing_or_out_of_order_are_refused(write_run, points):
    done, metrics = write_run("tiny", "original", points)
    assert refused([done], [metrics]).startswith(f"{metrics}: expected validation losses at increasing steps")


@pytest.mark.parametrize("loss", [float("nan"), True, "5.5"])
def test_a_loss_that_is_no_finite_number_is_refused_and_jsons_true_is_none(write_run, loss):
    """True counted as 1.0."""
    done, metrics = write_run("tiny", "original", [(50, 6.0), (100, loss)])
    told = f": the validation 'loss' at step 100 is {loss!r}, expected a finite number" if type(loss) is float else None
    assert refused([done], [metrics]) == f"{metrics}{told or f':4: has the loss {loss!r}'}; run pretrain again"


def test_a_step_that_is_jsons_true_is_refused(write_run):
    done, metrics = write_run("tiny", "original", [(True, 6.0)])
    assert refused([done], [metrics]) == f"{metrics}:3: has the step True; run pretrain again"


def test_a_broken_line_is_named(write_run):
    done, metrics = write_run("tiny", "original", POINTS)
    metrics.write_text(metrics.read_text() + '{"split": "valid')
    assert refused([done], [metrics]).startswith(f"{metrics}:5: not JSON")


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


@pytest.fixture
def timed(write_run, write_timing):
    """Runs and timing files of two operators, the timings' files in the other order."""
    files = [write_run("tiny", name, POINTS) for name in ("original", "pairwise")]
    timings = [write_timing(done, 0.02 + 0.01 * at) for at, (done, _) in enumerate(files)]
    return read_runs([done for done, _ in files], [metrics for _, metrics in files], 1800), timings[::-1]


def test_timings_come_in_the_order_of_runs(timed):
    runs, files = timed
    timings = read_timings(files, runs, 32)[["attention", "step_seconds", "of_original_percent"]]
    assert timings.values.tolist() == [["original", 0.02, 100.0], ["pairwise", 0.03, pytest.approx(150)]]


def test_a_run_without_timing_and_a_timing_without_run_are_named(timed):
    runs, files = timed
    for some_runs, some_files in ((runs, files[:1]), (runs[runs["attention"] == "pairwise"], files)):
        with pytest.raises(DataError, match="tiny-original seed 1 has not all of done, metrics and timing; give the"):
            read_timings(some_files, some_runs, 32)


def test_a_missing_key_is_named(timed):
    runs, files = timed
    record = json.loads(files[0].read_text())
    files[0].write_text(json.dumps({key: value for key, value in record.items() if key != "mfu"}))
    with pytest.raises(DataError, match=r"timing\.json: has no 'mfu'; run pretrain again"):
        read_timings(files, runs, 32)


@pytest.mark.parametrize("key", ["step_seconds", "processes", "mfu"])
def test_jsons_true_is_no_number_of_a_timing(timed, key):
    """It counted as 1: a step of a second, one process."""
    runs, files = timed
    files[0].write_text(json.dumps(json.loads(files[0].read_text()) | {key: True}))
    with pytest.raises(DataError) as caught:
        read_timings(files, runs, 32)
    assert str(caught.value) == f"{files[0]}: has the {key} True; run pretrain again"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "cpu (A chip, AVX2), fp32, 1 thread"),
        ({"threads": 4, "precision": "bf16"}, "cpu (A chip, AVX2), bf16, 4 threads"),
        ({"micro_batch_size": 31}, "cpu (A chip, AVX2), fp32, 1 thread, micro-batches of 31"),
        (
            {"device": "A card", "processes": 2, "micro_batch_size": 8},
            "A card, fp32, 1 thread, 2 processes, micro-batches of 8",
        ),
    ],
)
def test_a_machine_is_told_with_all_that_changes_its_speed(write_run, write_timing, changes, words):
    done, metrics = write_run("tiny", "original", POINTS)
    timings = read_timings([write_timing(done, **changes)], read_runs([done], [metrics], 1800), 32)
    assert timings["machine"].tolist() == [words]


@pytest.mark.parametrize(("processes", "share"), [(1, 32), (2, 16), (3, 10)])
def test_a_process_that_computes_its_whole_share_at_once_has_no_micro_batches(
    write_run, write_timing, processes, share
):
    """A real file has a number there always: the demo's table spoke of micro-batches of 128 for a batch of 128."""
    done, metrics = write_run("tiny", "original", POINTS)
    files, runs = [write_timing(done, processes=processes, micro_batch_size=share)], read_runs([done], [metrics], 1800)
    (machine,) = read_timings(files, runs, 32)["machine"]
    assert "micro-batches" not in machine


def test_another_processor_is_another_machine_unless_a_card_computes(write_run, write_timing):
    """`device` is cpu on every processor: runs on two hosts were compared as if on one."""
    done, metrics = write_run("tiny", "original", POINTS)

    def machine(**changes):
        return read_timings([write_timing(done, **changes)], read_runs([done], [metrics], 1800), 32)["machine"].item()

    assert machine() != machine(processor="Another chip, AVX512")
    assert machine(device="A card") == machine(device="A card", processor="Another chip, AVX512")


MOMENTS = st.sampled_from([None, *(f"2026-01-01T00:00:0{second}+00:00" for second in range(6))])
SESSIONS = st.lists(st.tuples(st.sampled_from([None, "here", "there"]), MOMENTS, MOMENTS), min_size=1, max_size=6)


@given(SESSIONS)
def test_a_run_is_alone_where_no_other_session_on_its_host_overlaps(sessions):
    """Each beside each other one, as once in the code: half the time of a table of 2,048 runs."""
    sessions = [
        (host, *([start, end] if None in (start, end) else sorted([start, end]))) for host, start, end in sessions
    ]

    def naive(one):
        host, start, end = sessions[one]
        others = [other for place, other in enumerate(sessions) if place != one and other[0] == host]
        if None in (host, start, end) or any(None in other for other in others):
            return False
        return all(ended <= start or begun >= end for _, begun, ended in others)

    runs = [("tiny", "original", seed) for seed in range(len(sessions))]
    expected = {run for number, run in enumerate(runs) if naive(number)}
    assert runs_alone(dict(zip(runs, sessions, strict=True))) == expected


def test_the_timing_of_these_tests_has_the_keys_that_pretraining_writes(write_run, write_timing):
    done, _ = write_run("tiny", "original", POINTS)
    measured = Pace(1, 1.0, 1.0, torch.device("cpu")).summary()
    facts = {*Run("tiny", "original", 1).__dict__, *SOFT, *SCIENTIFIC, *INCIDENTAL, *measured}
    facts -= {"shard_parameters"}  # only of several processes
    assert json.loads(write_timing(done).read_text()).keys() == {*facts, "started", "until", "step", "sessions"}
