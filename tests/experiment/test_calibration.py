import subprocess
import sys
import time

import pytest

from experiment.test_durations import recorded
from symbert.experiment import calibration
from symbert.experiment.calibration import DEMO, Speed, Timed, expected_minutes, in_words, measure

QUIET = DEMO.machine
CHAIN = ("write_embedded_corpus", "build_blocklist", "filter_part", "tokenize_part", "pack_shards", "pretrain_model")
CHAIN += ("extract_checkpoint", "finetune", "measure_robustness", "tabulate_robustness", "write_page")


def test_the_recorded_demo_is_within_what_is_expected_of_its_machine():
    """362 s on two cores."""
    least, most = expected_minutes(2, QUIET)
    assert least < 362 / 60 < most < 1.6 * least


def test_the_timed_demo_is_the_recorded_one():
    """The longest chain is one job of each of these rules, the slowest."""
    taken = [(job.rule, end - start) for start, end, job in recorded()]
    assert DEMO.jobs == sum(seconds for _, seconds in taken)
    assert DEMO.chain == sum(max(seconds for rule, seconds in taken if rule == link) for link in CHAIN)


@pytest.mark.parametrize("cores", [1, 2, 7, 64])
def test_jobs_in_any_order_take_what_lies_between_both_bounds(cores):
    """A hundred jobs of a second after one of ten, each on a core as it is free."""
    timed = Timed(jobs=110, chain=11, machine=QUIET)
    busy = [10.0] * cores
    for _ in range(100):
        first = min(range(cores), key=busy.__getitem__)
        busy[first] += 1.0
    least, most = expected_minutes(cores, QUIET, timed)
    assert least <= (max(busy) if cores > 1 else 110) / 60 <= most


def test_a_machine_takes_as_long_as_its_slower_half_at_most():
    slow = Speed(matmul=3 * QUIET.matmul, loop=2 * QUIET.loop)
    (least, most), (reference_least, reference_most) = expected_minutes(4, slow), expected_minutes(4, QUIET)
    assert (least, most) == pytest.approx((2 * reference_least, 3 * reference_most))


def test_what_is_measured_is_seconds_of_a_piece_of_work():
    """A product has 2 × 64³ operations, of which no core does 10^12 a second, and any does 10^7."""
    begun = time.perf_counter()
    speed = measure(seconds=0.05)
    assert 2 * 64**3 / 1e12 < speed.matmul < 2 * 64**3 / 1e7 and 1e-7 < speed.loop < 1e-2
    assert time.perf_counter() - begun < 60


def test_the_words_name_minutes_cores_and_what_was_measured():
    said = in_words(2, QUIET)
    assert said.startswith("symbert: the demo takes about 5 to 8 minutes from its beginning, with 2 cores of this ")
    assert "9.6 µs" in said and "37.6 µs" in said and max(map(len, said.splitlines())) <= 120
    assert "with 1 core of" in in_words(1, QUIET)


def test_the_command_takes_cores_as_snakemake_does(monkeypatch):
    command = [sys.executable, "-m", "symbert.experiment.calibration", "--cores", "1"]
    assert "with 1 core of" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert 2 * calibration.SECONDS <= 5
