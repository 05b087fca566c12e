"""A run's own timing is read, paired with the run, and says what it was measured on."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.runs import read_runs
from symbert.report.timings import read_timings

POINTS = [(50, 6.0), (100, 5.5)]


@pytest.fixture
def timed(write_run, write_timing):
    """Runs and timing files of two operators, the timings' files in the other order."""
    files = [write_run("tiny", name, POINTS) for name in ("original", "pairwise")]
    timings = [write_timing(done, 0.02 + 0.01 * at) for at, (done, _) in enumerate(files)]
    return read_runs([done for done, _ in files], [metrics for _, metrics in files], 1800), timings[::-1]


def test_timings_come_in_the_order_of_runs(timed):
    runs, files = timed
    assert [(timing.attention, timing.step_seconds) for timing in read_timings(files, runs)] == [
        ("original", 0.02),
        ("pairwise", 0.03),
    ]


def test_a_run_without_timing_and_a_timing_without_run_are_named(timed):
    runs, files = timed
    for some_runs, some_files in ((runs, files[:1]), (runs[1:], files)):
        with pytest.raises(DataError, match="tiny-original seed 1 has not all of done, metrics and timing; give the"):
            read_timings(some_files, some_runs)


def test_a_missing_key_is_named(timed):
    runs, files = timed
    record = json.loads(files[0].read_text())
    files[0].write_text(json.dumps({key: value for key, value in record.items() if key != "mfu"}))
    with pytest.raises(DataError, match=r"timing\.json: no 'mfu' in it; run pretrain again"):
        read_timings(files, runs)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "cpu, fp32, 1 thread"),
        ({"threads": 4, "precision": "bf16"}, "cpu, bf16, 4 threads"),
        (
            {"device": "A card", "processes": 2, "micro_batch_size": 64},
            "A card, fp32, 1 thread, 2 processes, micro-batches of 64",
        ),
    ],
)
def test_a_machine_is_told_with_all_that_changes_its_speed(write_run, write_timing, changes, words):
    done, metrics = write_run("tiny", "original", POINTS)
    (timing,) = read_timings([write_timing(done, **changes)], read_runs([done], [metrics], 1800))
    assert timing.machine == words
