import signal
import subprocess
import sys
import time

import pytest

from experiment.test_durations import recorded
from symbert.experiment import calibration
from symbert.experiment.calibration import DEMO, Speed, Timed, expectation, expected_minutes, measure, outcome

QUIET = DEMO.machine
CHAIN = ("write_embedded_corpus", "build_blocklist", "filter_part", "tokenize_part", "pack_shards", "pretrain_model")
CHAIN += ("extract_checkpoint", "finetune", "measure_robustness", "tabulate_robustness", "write_page")


def test_the_recorded_demo_is_within_what_is_expected_of_its_machine():
    """323 s on two cores; and the other two rounds, in which the same machine had other speeds."""
    least, most = expected_minutes(2, QUIET)
    assert least < 323 / 60 < most < 1.6 * least
    for seconds, matmul, loop in ((297, 8.4e-6, 2.95e-5), (340, 7.0e-6, 3.07e-5)):
        least, most = expected_minutes(2, Speed(matmul, loop))
        assert least < seconds / 60 < most


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
    said = expectation(2, QUIET)
    assert said.startswith("symbert: the demo takes about 4 to 7 minutes from its beginning, with 2 cores of this ")
    assert "6.3 µs" in said and "29.7 µs" in said and max(map(len, said.splitlines())) <= 120
    assert "with 1 core of" in expectation(1, QUIET)


def test_what_a_run_took_is_said_beside_what_it_takes_on_the_machine_of_the_timed_demo():
    """Matrices take three times as long there, Python twice: 12 minutes are between 4 and 6 of that machine."""
    slow = Speed(matmul=3 * QUIET.matmul, loop=2 * QUIET.loop)
    said = outcome(2, slow, seconds=720)
    assert said.startswith("symbert: this took 12.0 minutes with 2 cores of this machine, where a product of 64 × 64 ")
    assert "18.9 µs" in said and "59.4 µs" in said and said.endswith("at 6.3 and 29.7 µs it takes 4.0 to 6.0 minutes")
    assert max(map(len, said.splitlines())) <= 160


COMMAND = [sys.executable, "-m", "symbert.experiment.calibration", "--cores", "1"]


def test_the_command_takes_cores_as_snakemake_does():
    said = subprocess.run(COMMAND, check=True, capture_output=True, text=True).stdout
    assert "with 1 core of" in said and "this took" not in said
    assert 2 * calibration.SECONDS <= 5


@pytest.mark.parametrize("code", [0, 3])
def test_a_command_is_timed_with_its_own_options_and_its_exit_code_is_kept(code, monkeypatch, capsys):
    monkeypatch.setattr(calibration, "measure_cores", lambda cores: QUIET)
    before = signal.getsignal(signal.SIGINT)
    script = f"import sys, time; time.sleep(0.1); sys.exit({code} if sys.argv[1:] == ['--cores', '7'] else 9)"
    monkeypatch.setattr(sys, "argv", ["calibration", "--cores", "2", sys.executable, "-c", script, "--cores", "7"])
    try:
        assert calibration.main() == code
    finally:
        signal.signal(signal.SIGINT, before)
    assert ("this took 0.0 minutes with 2 cores" in capsys.readouterr().out) == (code == 0)
