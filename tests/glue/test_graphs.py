"""Steps as they are recorded on a GPU, computed on a CPU by recorders that repeat what they were given."""

import gc
from dataclasses import replace as replace_field

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from foreign import make_model
from glue.protocol import SETTINGS
from glue.test_stock import loaded, rows_of
from model.models import Averaged, define
from recorders import Repeating, failing
from symbert.errors import DivergedError
from symbert.glue import stock
from symbert.glue import train as module
from symbert.glue.graphs import GraphSteps, PaddedBert, trainee_of
from symbert.glue.tasks import GLUE, SUITES
from symbert.glue.train import HEADS, Packed, predict, train
from symbert.model.attention import SymmetricAttention
from symbert.model.bert import initialize
from symbert.model.configuration import Configuration
from symbert.pretrain.graphs import CudaGraphs

TASKS = {
    "classes": GLUE["mnli"],
    "grades": GLUE["stsb"],
    "choices": SUITES["superglue"].tasks["copa"],
    "candidates": SUITES["superglue"].tasks["record"],
    "spans": SUITES["squad2"].tasks["squad2"],
}
EXACT = replace(SETTINGS, dropout=0.0, gradient_clip=0.5, adam_epsilon=1e-3)


def model_of(task, attention="pairwise", dropout=0.0, layers=2):
    """A model of a task, in float64, the same each time; a head whose losses are large enough to clip."""
    config = Configuration(
        attention=attention,
        vocab_size=200,
        hidden_size=16,
        num_hidden_layers=layers,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=96,
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
    )
    model = HEADS[task.head].model(config, task.num_labels)
    initialize(model, 1)
    model.new_layers[-1].weight.data *= 30
    return model.double()


def rows_for(task, count=44, longest=80):
    """Rows of which few are long, so that batches have several lengths; the last batch of 16 is smaller."""
    rows = rows_of(task, 200, count, longest)
    rows.lengths[2:] = np.minimum(rows.lengths[2:], 20)
    if task.head == "spans":
        last = torch.from_numpy(rows.lengths - 1)
        return replace_field(rows, labels=torch.stack([last // 2, last], dim=1))
    if task.head == "choices":
        return replace_field(rows, labels=torch.tensor([0, 1, 1, 0]).repeat(count // 4))
    return replace_field(rows, labels=rows.labels.double() / 3) if task.head == "grades" else rows


def trained(trainee, rows, settings=EXACT, seed=3):
    train(trainee, rows, settings, seed, lambda step: None)
    return trainee.model.state_dict()


def assert_same(found, expected, tolerance=1e-9):
    for name, values in expected.items():
        torch.testing.assert_close(found[name], values, rtol=0, atol=tolerance, msg=name)


@pytest.fixture
def losses(monkeypatch):
    """The mean loss of each epoch."""
    seen = []
    for kind in (module.Steps, GraphSteps):
        mean = kind.mean_loss
        monkeypatch.setattr(kind, "mean_loss", lambda steps, mean=mean: seen.append(mean(steps)) or seen[-1])
    return seen


@pytest.mark.parametrize("head", TASKS)
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_losses_weights_and_predictions_are_those_of_rows_laid_end_to_end(head, weight_decay, losses):
    task = TASKS[head]
    rows, settings, recorder = rows_for(task), replace(EXACT, weight_decay=weight_decay), Repeating()
    packed, graphed = Packed(model_of(task)), PaddedBert(model_of(task), recorder=recorder)
    assert_same(trained(graphed, rows, settings), trained(packed, rows, settings))
    assert losses[:2] == pytest.approx(losses[2:], abs=1e-9) and losses[0] != losses[1]
    assert 1 <= recorder.recorded <= 3 and not recorder.refusal
    if head == "spans":
        index = np.arange(20)
        with torch.no_grad():
            found, expected = (trainee.logits(trainee.batch(rows, index)) for trainee in (graphed, packed))
        assert found.shape[1] % 32 == 0 and found[:, expected.shape[1] :].isneginf().all()
        torch.testing.assert_close(found[:, : expected.shape[1]], expected, rtol=0, atol=1e-9)
    else:
        predicted, expected = (predict(trainee, rows) for trainee in (graphed, packed))
        assert predicted.tolist() == pytest.approx(expected.tolist(), abs=1e-9)


def test_an_operator_with_a_forward_of_its_own_that_is_token_wise_is_recorded(losses):
    task = TASKS["classes"]
    packed, recorder = Packed(model_of(task, "symmetric-others")), Repeating()
    graphed = trainee_of(model_of(task, "symmetric-others"), "fp32", False, recorder)
    rows = rows_for(task)
    assert_same(trained(graphed, rows), trained(packed, rows))
    assert recorder.recorded > 1 and not recorder.refusal


@pytest.mark.parametrize("family", ["roberta", "electra"])
def test_a_stock_model_is_trained_as_without_graphs(family, tmp_path):
    folder, task = make_model(tmp_path / family, family), GLUE["mnli"]
    rows = rows_for(task)
    rows = replace_field(rows, token_type_ids=torch.zeros_like(rows.token_type_ids))
    recorder = Repeating()
    plain, graphed = (stock.Padded(loaded(folder, task).double(), recorder=each) for each in (None, recorder))
    assert_same(trained(graphed, rows), trained(plain, rows))
    assert recorder.recorded == 2 and not recorder.refusal


def test_recording_draws_no_dropout_and_moves_nothing():
    """In each step another dropout, which follows from the seed alone, to the bit as where nothing is recorded."""
    task, settings = TASKS["classes"], replace(SETTINGS, dropout=0.2)
    rows, plain = rows_for(task), Repeating()
    plain.refusal = "none wanted"
    recorders = [Repeating(), plain]
    found, expected = (
        trained(PaddedBert(model_of(task, dropout=0.2), recorder=recorder), rows, settings) for recorder in recorders
    )
    assert [recorder.recorded > 1 for recorder in recorders] == [True, False]
    assert all(torch.equal(found[name], values) for name, values in expected.items())
    other = trained(PaddedBert(model_of(task, dropout=0.2), recorder=Repeating()), rows, settings, seed=4)
    assert not torch.equal(other["classifier.weight"], found["classifier.weight"])


def holding_weights(run):
    """As where rounded weights were kept from before: the weights of the recording give the gradient."""
    steps = run.func.__self__
    kept = [parameter.detach().clone() for parameter in steps.parameters]

    def replay():
        now = [parameter.detach().clone() for parameter in steps.parameters]
        with torch.no_grad():
            for parameter, values in zip(steps.parameters, kept, strict=True):
                parameter.copy_(values)
        update = steps.updater.update

        def back(rate):
            with torch.no_grad():
                for parameter, values in zip(steps.parameters, now, strict=True):
                    parameter.copy_(values)
            update(rate)

        steps.updater.update = back
        run()
        steps.updater.update = update

    return replay


def holding_rows(run):
    steps = run.func.__self__
    kept = steps.index.clone()

    def replay():
        steps.index.copy_(kept)
        run()

    return replay


def holding_rate(run):
    steps = run.func.__self__

    def replay():
        steps.rate.zero_()
        run()

    return replay


def speechless(run):
    raise AssertionError


BAD = {
    "failing": failing,
    "speechless": speechless,
    "empty": lambda run: lambda: None,
    "twice": lambda run: lambda: (run(), run()),
    "weights": holding_weights,
    "rows": holding_rows,
    "rate": holding_rate,
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recording_is_found_said_in_one_line_and_not_used(name, capsys):
    task = TASKS["classes"]
    rows, recorder = rows_for(task), Repeating(BAD[name])
    graphed, packed = PaddedBert(model_of(task), recorder=recorder), Packed(model_of(task))
    assert_same(trained(graphed, rows), trained(packed, rows))
    said = capsys.readouterr().err
    assert recorder.recorded == 1 and recorder.refusal in said and said.count("\n") == 1
    trained(PaddedBert(model_of(task), recorder=recorder), rows)
    assert recorder.recorded == 1 and not capsys.readouterr().err


def test_after_a_recording_that_fails_later_no_graph_is_replayed(capsys):
    """The second length cannot be recorded: weights are as without graphs, dropout too."""
    task, settings, replayed = TASKS["classes"], replace(SETTINGS, dropout=0.2), []
    recorder, plain = Repeating(), Repeating()
    plain.refusal = "none wanted"

    def first_alone(run):
        if recorder.recorded > 1:
            failing(run)
        return lambda: replayed.append(recorder.recorded) or run()

    recorder.graph_of = first_alone
    rows = rows_for(task)
    found, expected = (
        trained(PaddedBert(model_of(task, dropout=0.2), recorder=each), rows, settings) for each in (recorder, plain)
    )
    assert recorder.recorded == 2 and {*replayed} == {1} and capsys.readouterr().err.count("\n") == 1
    assert all(torch.equal(found[name], values) for name, values in expected.items())


def test_an_operator_that_mixes_tokens_keeps_its_way(monkeypatch, capsys):
    define(monkeypatch, "mixing", Averaged)
    recorder = Repeating()
    chosen = [trainee_of(model_of(TASKS["grades"], "mixing"), "fp32", False, recorder) for _ in range(2)]
    assert {type(trainee) for trainee in chosen} == {Packed}
    said = capsys.readouterr().err
    assert "Averaged" in said and said.count("\n") == 1
    assert type(trainee_of(model_of(TASKS["grades"]), "fp32", False, None)) is Packed


def test_a_loss_that_is_not_finite_ends_the_epoch_in_which_it_falls(monkeypatch):
    task, steps = TASKS["classes"], []
    monkeypatch.setattr(module, "learning_rate", lambda step, *_: float("inf") if step == 1 else 1e-3)
    with pytest.raises(DivergedError, match="in epoch 1"):
        train(PaddedBert(model_of(task), recorder=Repeating()), rows_for(task), EXACT, 1, steps.append)
    assert steps == [1, 2, 3]


def test_all_layers_seeds_and_tasks_share_one_compiled_code_of_a_length(monkeypatch):
    """Code is traced and counted, and runs as it is."""
    seen, compile_ = [], torch.compile
    backend = lambda graph, inputs: seen.append(graph) or graph.forward  # noqa: E731
    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", lambda function, **options: compile_(function, backend=backend, **options))
    for head in ("classes", "classes", "grades"):
        task, recorder = TASKS[head], Repeating()
        rows = rows_for(task, longest=60)
        found = trained(PaddedBert(model_of(task, layers=3), "fp32", True, recorder), rows)
        assert len(seen) == 2 * recorder.recorded == 4, "a layer for all tokens, and one for the first"
    expected = trained(PaddedBert(model_of(task, layers=3), recorder=Repeating()), rows)
    assert_same(found, expected)


# --- on a GPU ---------------------------------------------------------------------------------------------------------

on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


class Waiting(SymmetricAttention):
    """As `symmetric`, and waits for the device in each pass, which no graph can record."""

    token_wise = True

    def forward(self, hidden, attention_mask=None, **kwargs):
        assert hidden.sum().item() == hidden.sum().item()
        return super().forward(hidden, attention_mask, **kwargs)


def on_device(rows, device):
    tensors = {name: getattr(rows, name).to(device) for name in ("input_ids", "token_type_ids", "labels")}
    return replace_field(rows, **tensors)


@on_gpu
@pytest.mark.parametrize("head", TASKS)
@pytest.mark.parametrize("is_compiled", [False, True])
def test_gpu_replays_are_the_steps_of_a_cpu(head, is_compiled):
    task, device = TASKS[head], torch.device("cuda", 0)
    rows, recorder = rows_for(task), CudaGraphs(device)
    if head == "grades":
        rows = replace_field(rows, labels=rows.labels.float())
    expected = trained(Packed(model_of(task).float()), rows)
    graphed = PaddedBert(model_of(task).float().to(device), "fp32", is_compiled, recorder)
    found = trained(graphed, on_device(rows, device))
    assert not recorder.refusal
    assert_same({name: values.cpu() for name, values in found.items()}, expected, 2e-4)


@on_gpu
def test_gpu_a_job_records_for_one_fine_tuning_after_another():
    """The graphs of the one before are gone: their memory was the pool's last, and no other could be recorded."""
    task, device = TASKS["classes"], torch.device("cuda", 0)
    rows, recorder, found = on_device(rows_for(task), device), CudaGraphs(device), []
    for _ in range(3):
        found.append(trained(PaddedBert(model_of(task).float().to(device), recorder=recorder), rows))
        gc.collect()
    assert not recorder.refusal
    assert_same(found[2], found[0], 2e-4)


@on_gpu
def test_gpu_dropout_differs_from_replay_to_replay_and_follows_from_the_seed():
    task, device = TASKS["classes"], torch.device("cuda", 0)
    rows, losses = on_device(rows_for(task), device), []
    for _ in range(2):
        recorder = CudaGraphs(device)
        trainee = PaddedBert(model_of(task, dropout=0.3).float().to(device).train(), "bf16", False, recorder)
        torch.manual_seed(5)
        steps = trainee.steps(rows, SETTINGS)
        for _ in range(3):
            steps.step(np.arange(16), 0.0)
            losses.append(steps.mean_loss())
        assert not recorder.refusal
    assert len({*losses[:3]}) == 3 and losses[:3] == pytest.approx(losses[3:], rel=1e-3)


@on_gpu
def test_gpu_an_operator_that_waits_for_the_device_is_trained_without_graphs(monkeypatch, capsys):
    """With dropout afterwards: a generator that still waits for the end of a recording would refuse to draw."""
    define(monkeypatch, "waiting", Waiting)
    task, device = TASKS["classes"], torch.device("cuda", 0)
    rows, recorder = rows_for(task), CudaGraphs(device)
    found = trained(
        PaddedBert(model_of(task, "waiting").float().to(device), recorder=recorder), on_device(rows, device)
    )
    expected = trained(Packed(model_of(task, "symmetric").float()), rows)
    assert recorder.refusal and capsys.readouterr().err.count("\n") == 1
    assert_same({name: values.cpu() for name, values in found.items()}, expected, 2e-4)
    dropped = PaddedBert(model_of(task, "waiting", dropout=0.2).float().to(device), recorder=recorder)
    assert all(values.isfinite().all() for values in trained(dropped, on_device(rows, device)).values())
