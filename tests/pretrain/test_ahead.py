"""Steps of a device that computes beside the process, with the CPU in its place: a thread makes batches, a step starts
before the numbers of the one before are read, and the result is that of one step after the other."""

import math
import os
import signal
import threading

import pytest
import torch

from pretrain.corpora import losses, options
from pretrain.test_sharding import in_processes
from symbert.cli import main
from symbert.files import read_json, sha256_of
from symbert.pretrain import compute
from symbert.pretrain.compute import Ahead, Reading
from symbert.pretrain.tasks import MaskedTokens
from symbert.pretrain.train import Trainer


@pytest.fixture
def beside(monkeypatch):
    """The CPU is taken for a device that computes beside this process."""
    monkeypatch.setattr(compute, "computes_beside", lambda device: True)


def outcome(run):
    return [sha256_of(file) for file in (run / "metrics.jsonl", run / "state/weights/step-00000030.safetensors")]


def test_a_step_is_started_before_the_numbers_of_the_one_before_are_read_and_no_bit_differs(
    beside, tmp_path, manifest, brief, monkeypatch, finished
):
    """But where weights are evaluated and saved, each tenth step."""
    events, start, numbers, makers = [], Trainer.start, Reading.numbers, set()
    batch_of = MaskedTokens.training_batch

    def started(trainer, step, flags):
        found = start(trainer, step, flags)
        found.reading.step = step
        events.append(("start", step))
        return found

    def read(reading):
        if ("read", reading.step) not in events:
            events.append(("read", reading.step))
        return numbers(reading)

    monkeypatch.setattr(Trainer, "start", started)
    monkeypatch.setattr(Reading, "numbers", read)
    monkeypatch.setattr(
        MaskedTokens, "training_batch", lambda *given: makers.add(threading.current_thread()) or batch_of(*given)
    )
    assert main(options(manifest, brief(), tmp_path / "run")) == 0
    assert outcome(tmp_path / "run") == outcome(finished)
    assert makers and threading.main_thread() not in makers
    for step in range(29):
        is_early = events.index(("start", step + 1)) < events.index(("read", step))
        assert is_early == ((step + 1) % 10 != 0), step


def test_a_divergence_is_named_by_its_step_and_no_weight_changes_from_it_on(beside, build):
    """The step after it is started before that is known, on a finite gradient."""
    trainer, expected, taken = build(), build(), []

    def spoil(gradient):
        taken.append(gradient)
        return gradient * math.inf if len(taken) == 3 else gradient

    trainer.model.bert.embeddings.LayerNorm.weight.register_hook(spoil)
    with pytest.raises(match="gradient norm (inf|nan) at step 2"):
        list(trainer.steps(range(9)))
    assert len(taken) == 4
    list(expected.steps(range(2)))
    before, after = (each.model.state_dict() for each in (expected, trainer))
    assert all(torch.equal(after[name], values) for name, values in before.items())
    moments = [state["step"].item() for state in trainer.optimizer.state.values()]
    assert set(moments) == {2.0}


def test_a_diverged_step_is_neither_logged_nor_saved(
    beside, tmp_path, manifest, brief, monkeypatch, capsys, signals_kept
):
    """Not even the one that is evaluated and saved, the tenth; the signal to stop comes in it."""
    start = Trainer.start

    def diverging(trainer, step, flags):
        if step == 9:
            trainer.model.cls.predictions.bias.data[7] = math.nan
            os.kill(os.getpid(), signal.SIGTERM)
        return start(trainer, step, flags)

    monkeypatch.setattr(Trainer, "start", diverging)
    assert main(options(manifest, brief(), tmp_path / "run")) == 65
    assert "loss nan" in capsys.readouterr().err
    status = read_json(tmp_path / "run/state/status.json")
    assert (status["state"], status["step"]) == ("diverged", 9) and "at step 9;" in status["reason"]
    assert not list((tmp_path / "run/state").rglob("step-*"))


def test_a_run_that_is_asked_to_stop_saves_the_step_that_is_started_and_goes_on_to_the_same_bits(
    beside, tmp_path, manifest, brief, monkeypatch, finished, signals_kept
):
    """In the middle, in the step before one that is saved anyway, in that one, and in the last."""
    words, start, computed, stops = options(manifest, brief(), tmp_path / "run"), Trainer.start, [], [4, 18, 29]

    def interrupted(trainer, step, flags):
        computed.append(step)
        if step in stops:
            os.kill(os.getpid(), signal.SIGTERM)
        return start(trainer, step, flags)

    monkeypatch.setattr(Trainer, "start", interrupted)
    assert [main(words) for _ in range(3)] == [75, 75, 0]
    assert computed == list(range(30)) and outcome(tmp_path / "run") == outcome(finished)
    sessions = read_json(tmp_path / "run/state/provenance.json")["sessions"]
    assert [session["step"] for session in sessions] == [6, 20, 30]
    assert losses(tmp_path / "run")["train"] == losses(finished)["train"]


@pytest.mark.campaign
def test_of_two_processes_one_is_asked_to_stop_and_both_save_the_step_that_is_started(
    beside, tmp_path, manifest, brief, monkeypatch, signals_kept
):
    """They go on to the bits of two that read each step at once."""
    settings, start = brief(steps=12, save_every=12, evaluate_every=6, dropout=0.0), Trainer.start
    words = {name: options(manifest, settings, tmp_path / name) for name in ("ahead", "at once")}

    def interrupted(trainer, step, flags):
        if step == 3 and trainer.world.rank == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        return start(trainer, step, flags)

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "start", interrupted)
        assert in_processes(lambda: main(words["ahead"]), 2) == [75, 75]
    assert in_processes(lambda: main(words["ahead"]), 2) == [0, 0]
    sessions = read_json(tmp_path / "ahead/state/provenance.json")["sessions"]
    assert [session["step"] for session in sessions] == [5, 12]
    with monkeypatch.context() as patched:
        patched.setattr(compute, "computes_beside", lambda device: False)
        assert in_processes(lambda: main(words["at once"]), 2) == [0, 0]
    for name in ("metrics.jsonl", "state/weights/step-00000012.safetensors"):
        assert sha256_of(tmp_path / "ahead" / name) == sha256_of(tmp_path / "at once" / name), name


def test_what_is_made_ahead_is_that_of_the_number_and_its_error_comes_when_it_is_wanted():
    made = Ahead(lambda number: 60 / number)
    assert [made(number) for number in (2, 3, 6, 6, -2)] == [30, 20, 10, 10, -30]
    assert made(-1) == -60  # that of 0 fails meanwhile
    with pytest.raises(ZeroDivisionError):
        made(0)
