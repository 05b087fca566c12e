"""Speeds of operators are measured in turns, on the batches of the trainings."""

from pathlib import Path

import pytest
from msgspec import to_builtins

from pretrain.corpora import planned
from symbert.cli import main
from symbert.files import read_json, write_json
from symbert.pretrain import speeds
from symbert.pretrain.speeds import MeasureSpeeds
from symbert.pretrain.train import Trainer
from symbert.report.collect import read_speeds

OPERATORS = ["original", "symmetric", "pairwise"]


@pytest.fixture
def measured(manifest, brief, folder, monkeypatch):
    """Measures two rounds; returns the file that was written."""
    monkeypatch.setattr(speeds, "ROUNDS", 2)

    def measure(micro_batch_size=None):
        runs = [planned(manifest, brief(steps=2), name) for name in OPERATORS]
        step = MeasureSpeeds(runs=runs, micro_batch_size=micro_batch_size)
        write_json(Path(step.settings_file), to_builtins(step))
        assert main(["measure-speeds", step.paths()["speeds"], "--threads", "1"]) == 0
        return Path(step.paths()["speeds"])

    return measure


def test_operators_take_their_steps_in_turns_and_each_round_begins_with_another_one(measured, monkeypatch):
    taken, step = [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda self, at: taken.append(self.run.attention) or step(self, at))
    file = measured()
    found = read_json(file)
    assert taken == [OPERATORS[(number + turn) % 3] for number in range(4) for turn in range(3)]
    times = [found["operators"][name]["step_seconds"] for name in OPERATORS]
    assert all(len(seconds) == 2 and min(seconds) > 0 for seconds in times)
    assert (found["micro_batch_size"], found["tokens_per_step"]) == (8, 8 * 16)
    table = read_speeds([file])
    assert table["attention"].tolist() == OPERATORS and table["of_original_percent"][0] == 100


def test_micro_batches_are_halved_until_all_operators_fit_also_late_and_all_are_timed_in_equal_ones(
    measured, monkeypatch
):
    """A model that needs several GPUs, on which nothing fits, ended the measurement as an internal error."""
    sizes, step, compute = [], Trainer.step, Trainer._loss_of

    def fails_late(self, batch):
        if self.run.attention == "symmetric" and len(batch["input_ids"]) > (4 if len(sizes) > 9 else 6):
            raise RuntimeError("CUDA out of memory")
        return compute(self, batch)

    def fails_always(*given):
        raise RuntimeError("CUDA out of memory")

    def noted(self, at):
        result = step(self, at)
        sizes.append(self.micro_batch_size)
        return result

    monkeypatch.setattr(Trainer, "_loss_of", fails_late)
    monkeypatch.setattr(Trainer, "step", noted)
    assert read_json(measured(6))["micro_batch_size"] == 3
    assert sizes[-12:] == [3] * 12  # two untimed rounds, then two timed ones
    assert read_json(measured())["micro_batch_size"] == 4
    monkeypatch.setattr("symbert.pretrain.train.distribute", fails_always)
    file = measured()
    assert read_json(file)["operators"] == {} and read_speeds([file]).empty
