import os
import time

import pytest

from symbert.experiment.times import MARK, SKEW, mark_complete, mend_times, recall_times, unmark


@pytest.fixture
def results(tmp_path):
    """Results with a file that is older than another, and one on another disk."""
    for number, name in enumerate(("results/old", "results/deep/new", "shards/rows")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        os.utime(path, (1000 + number, 1000 + number))
    return tmp_path / "results"


def times(results) -> set[int]:
    """Of all files but the mark."""
    return {int(path.stat().st_mtime) for path in results.parent.rglob("*") if path.is_file() and path.name != MARK}


def test_complete_results_that_lost_their_times_are_given_one(results):
    mark_complete(results)
    os.utime(results / MARK, (5, 5))
    assert mend_times(results, results.parent / "shards") and len(times(results)) == 1
    assert not mend_times(results), "from now on they count again"


@pytest.mark.parametrize("mark", ["kept", "none", "removed", "odd"])
def test_times_that_mean_something_stay(results, mark):
    """Those of results that were not complete, too: what is outdated in them must be made anew."""
    if mark != "none":
        mark_complete(results)
    if mark == "removed":
        unmark(results)
    if mark == "odd":
        (results / MARK).write_text('{"time": "noon"}')
    assert not mend_times(results, results.parent / "shards") and times(results) == {1000, 1001, 1002}


def test_an_archive_that_keeps_whole_seconds_has_kept_the_times(results):
    mark_complete(results)
    when = int((results / MARK).stat().st_mtime)
    os.utime(results / MARK, (when, when))
    assert not mend_times(results)


def test_a_clock_that_was_ahead_does_not_end_all_that_follows(results):
    now = time.time()
    os.utime(results / "deep/new", (now + 86400, now + 86400))
    os.utime(results / "old", (now + SKEW / 2, now + SKEW / 2))
    assert recall_times(results, results, results.parent / "shards", results.parent / "absent") == 1
    assert abs((results / "deep/new").stat().st_mtime - now) < SKEW / 2
    assert (results / "old").stat().st_mtime == pytest.approx(now + SKEW / 2), "a file server's clock"
    assert (results.parent / "shards/rows").stat().st_mtime == 1002
    assert recall_times(results) == 0
