"""Micro-steps as they are recorded on a GPU, computed on a CPU by recorders that repeat what they were given."""

import pytest
import torch
from torch import nn

from model.models import define
from pretrain.test_train import REFUSAL, refuse_more_than, weights
from recorders import Repeating, failing
from symbert.model.attention import SymmetricAttention
from symbert.pretrain import train
from symbert.pretrain.compute import World

CUT = {"batch_size": 8, "micro_batch_size": 3, "dropout": 0.1, "compile": True, "warmup_steps": 0}


@pytest.fixture
def uncompiled(monkeypatch):
    """What is to be compiled runs as it is: one shape for all batches of a size is what matters here."""
    monkeypatch.setattr(torch, "compile", lambda module, **options: module)


@pytest.fixture
def recorders(uncompiled, monkeypatch):
    """Has trainers record by these, which replay what `graph_of` makes of a recording."""
    made = []

    def use(graph_of=lambda run: run):
        monkeypatch.setattr(train, "recorder_on", lambda device: made.append(Repeating(graph_of)) or made[-1])
        return made

    return use


def test_graphs_take_the_steps_of_a_model_without_them_to_the_bit(build, recorders):
    """Two sizes of micro-batches, of which the second is recorded where there are gradients already."""
    plain, made = build(**CUT), recorders()
    graphed = build(**CUT)
    assert [graphed.step(step) for step in range(3)] == [plain.step(step) for step in range(3)]
    assert torch.equal(weights(graphed), weights(plain)) and graphed.evaluate() == plain.evaluate()
    assert [(recorder.recorded, recorder.refusal) for recorder in made] == [(2, "")]


def micro_steps(run):
    return run.func.__self__


def holding(*names):
    """A graph that holds on to what some tensors had in its recording."""

    def graph_of(run):
        steps = micro_steps(run)
        tensors = {
            "rows": [*steps.present.values()],
            "weights": steps.parameters,
            "count": [steps.count],
        }
        held = [tensor for name in names for tensor in tensors[name]]
        kept = [tensor.detach().clone() for tensor in held]

        def replay():
            now = [tensor.detach().clone() for tensor in held]
            exchange(held, kept)
            run()
            exchange(held, now)

        return replay

    return graph_of


@torch.no_grad()
def exchange(tensors, values):
    for tensor, value in zip(tensors, values, strict=True):
        tensor.data.copy_(value)


def overwriting(run):
    """A graph that adds to no gradient."""

    def replay():
        micro_steps(run).begin()
        run()

    return replay


BAD = {
    "failing": failing,
    "empty": lambda run: lambda: None,
    "twice": lambda run: lambda: (run(), run()),
    "overwriting": overwriting,
    **{name: holding(name) for name in ("rows", "weights", "count")},
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recording_is_found_said_in_one_line_and_not_used(build, recorders, capsys, name):
    plain, made = build(**CUT), recorders(BAD[name])
    graphed = build(**CUT)
    assert [graphed.step(step) for step in range(2)] == [plain.step(step) for step in range(2)]
    assert torch.equal(weights(graphed), weights(plain))
    said = capsys.readouterr().err
    assert made[0].recorded == 1 and made[0].refusal in said and said.count("\n") == 1


def test_where_memory_runs_out_smaller_micro_batches_are_recorded(build, recorders, monkeypatch):
    plain, made = build(**{**CUT, "micro_batch_size": 2}), recorders()
    expected = [plain.step(step) for step in range(2)]
    graphed = build(**{**CUT, "micro_batch_size": 8})
    refuse_more_than(2, REFUSAL, monkeypatch)
    assert [graphed.step(step) for step in range(2)] == expected and graphed.micro_batch_size == 2
    assert [(recorder.recorded, recorder.refusal) for recorder in made] == [(0, ""), (0, ""), (1, "")]


class Idle(SymmetricAttention):
    """As `symmetric`, with a matrix that nothing reads."""

    token_wise = True

    def __init__(self, config):
        super().__init__(config)
        self.idle = nn.Parameter(torch.ones(3, 3))


def test_weights_that_have_no_gradient_stay_as_they_are(build, recorders, monkeypatch):
    """A gradient of zero would have them decay."""
    define(monkeypatch, "idle", Idle)
    recorders()
    trainer = build("idle", **CUT)
    trainer.step(0)
    idle = [values for name, values in trainer.model.named_parameters() if name.endswith("idle")]
    assert len(idle) == 2 and all((values == 1).all() for values in idle)


def test_only_a_compiled_model_of_one_process_is_recorded(build, recorders, monkeypatch):
    made = recorders()
    monkeypatch.setattr(train, "distribute", lambda loss, *others: loss)
    build(**{**CUT, "compile": False})
    build(world=World(0, 2, torch.device("cpu")), compile=True)
    assert not made and build(**CUT).micro_steps and len(made) == 1


# --- on a GPU ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_replays_are_the_steps_without_graphs_and_differ_in_dropout(build):
    graphed, plain = build(**CUT), build(**CUT)
    plain.micro_steps = None
    results = [[each.loss for each in trainer.steps(range(4))] for trainer in (graphed, plain)]
    assert graphed.micro_steps.graphs and not graphed.micro_steps.recorder.refusal
    assert results[0] == pytest.approx(results[1], rel=1e-2) and len({*results[0]}) == 4
