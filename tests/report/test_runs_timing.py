"""A run's own timing is read, paired with the run, and says what it was measured on."""

import json

import pytest
import torch

from symbert.errors import DataError
from symbert.layout import Run
from symbert.pretrain.pace import Pace
from symbert.pretrain.record import INCIDENTAL, SCIENTIFIC, SOFT
from symbert.report.runs import read_runs, read_timings

POINTS = [(50, 6.0), (100, 5.5)]


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


def test_the_timing_of_these_tests_has_the_keys_that_pretraining_writes(write_run, write_timing):
    done, _ = write_run("tiny", "original", POINTS)
    measured = Pace(1, 1.0, 1.0, torch.device("cpu")).summary()
    facts = {*Run("tiny", "original", 1).__dict__, *SOFT, *SCIENTIFIC, *INCIDENTAL, *measured}
    assert json.loads(write_timing(done).read_text()).keys() == {*facts, "started", "until", "step", "sessions"}
