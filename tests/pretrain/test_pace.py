import re

import pytest
import torch

from symbert.pretrain.pace import KEPT, Pace, in_words, memory_mb

CPU = torch.device("cpu")


class Clock:
    """A clock that goes on when told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Paced:
    """A pace of 1,000 tokens and 6 GFLOP a step on a device of 60 GFLOP/s, and steps of chosen seconds."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.pace = Pace(1000, 6e9, 60e9, CPU, self.clock)

    def steps(self, *seconds: float) -> Pace:
        for span in seconds:
            self.clock.now += span
            self.pace.step()
        return self.pace


def test_the_note_is_about_the_median_step():
    assert Paced().steps(9, 0.5, 0.2, 0.2, 0.2, 7).note().startswith("5,000 tokens/s, MFU 50 % of 60 GFLOP/s, ")


def test_the_note_ends_with_the_memory_of_the_process():
    number, unit = Paced().steps(1, 1).note().split(", ")[-1].split()
    assert unit == "MB" and 100 < float(number.replace(",", "")) < 100_000  # Python with PyTorch in it


def test_the_note_is_about_the_newest_steps_and_the_summary_about_all():
    pace = Paced().steps(1, *[1.0] * 150, *[0.5] * 100, *[0.25] * 40)
    assert pace.note().startswith("2,000 tokens/s")
    assert pace.summary()["tokens_per_second"] == 1000


def test_the_summary_has_seconds_rate_and_use_of_the_device():
    summary = Paced().steps(50, 0.5, 0.2, 0.4).summary()
    assert summary.pop("memory_mb") == pytest.approx(memory_mb(CPU), rel=0.2)
    assert summary == {
        "step_seconds": pytest.approx(0.4),
        "tokens_per_second": pytest.approx(2500),
        "mfu": pytest.approx(0.25),
        "peak_flops": 60e9,
        "steps_timed": 3,
    }


@pytest.mark.parametrize("spans", [(), (5.0,)])
def test_the_first_step_of_a_session_is_not_timed(spans):
    pace = Paced().steps(*spans)
    summary = pace.summary()
    assert summary["step_seconds"] is summary["tokens_per_second"] is summary["mfu"] is None
    assert summary["steps_timed"] == 0
    assert re.fullmatch(r"[\d,]+ MB", pace.note())


def test_what_is_done_between_steps_is_not_timed_after_a_restart():
    paced = Paced()
    paced.pace.restart()  # before the first step: nothing to restart
    paced.steps(1, 0.5)
    paced.clock.now += 100
    paced.pace.restart()
    assert list(paced.steps(0.5).seconds) == [0.5, 0.5]


def test_a_long_session_keeps_few_times_and_counts_all():
    pace = Paced().steps(*[1.0] * (KEPT + 11))
    assert len(pace.seconds) == KEPT and pace.summary()["steps_timed"] == KEPT + 10


@pytest.mark.parametrize(
    ("rate", "words"),
    [
        (60e9, "60 GFLOP/s"),
        (790.4e12, "790 TFLOP/s"),
        (1.23e15, "1.2 PFLOP/s"),
        (9.6e9, "9.6 GFLOP/s"),
        (5e5, "0.5 MFLOP/s"),
    ],
)
def test_a_rate_in_words(rate, words):
    assert in_words(rate) == words
