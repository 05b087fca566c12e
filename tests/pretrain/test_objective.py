"""What all objectives have in common: batches that are cut by sequences, and a summed loss."""

import json
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

from symbert.hosts import HOSTS, Rows
from symbert.model.bert import Layers
from symbert.paths import Run
from symbert.pretrain.run import parameters_of
from symbert.pretrain.tasks import IGNORED, Batch, Loss, sequences_of
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES


@dataclass(frozen=True)
class Pairs(Batch):
    """Numbers, two to a sequence, and a class for each."""

    numbers: Tensor
    targets: Tensor


PAIRS = Pairs(torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), torch.tensor([[0, 1], [1, IGNORED], [IGNORED, 0]]))


class Signs:
    """Two classes, whose logits are a number and its negative."""

    def logits(self, model: nn.Module, numbers: Tensor) -> Tensor:
        return torch.stack([model(numbers), -model(numbers)], dim=-1)


def test_the_loss_is_the_sum_over_the_targets_that_count():
    """−log σ(±2x) by hand, of the four targets that are not ignored."""
    loss = Loss(Signs(), nn.Identity())(**vars(PAIRS))
    signed = torch.tensor([2.0, -4.0, -6.0, 12.0], dtype=torch.float64)
    assert loss.item() == pytest.approx(torch.log1p(torch.exp(-signed)).sum().item(), rel=1e-6)
    parts = [Loss(Signs(), nn.Identity())(**vars(PAIRS.part(row, row + 1))) for row in range(3)]
    assert sum(parts).item() == pytest.approx(loss.item(), rel=1e-6)


def test_an_epoch_has_every_row_once_and_the_next_one_another_order():
    epochs, rows = sequences_of(0, 20, 10, seed=3)
    assert epochs.tolist() == [0] * 10 + [1] * 10
    assert sorted(rows[:10]) == sorted(rows[10:]) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_plan_reckons_with_is_counted_on_the_model(manifest_read_by, brief, host):
    """Parameters of every operator, and operations of a step with `original`, by formula and by the model's weights."""
    settings, manifest = brief(), manifest_read_by(host)
    packed = json.loads(manifest.read_text())
    mean = packed.get("mean_tokens", {"source": 16, "target": 0})
    rows = Rows(packed["vocabulary_size"], mean["source"], settings.mask_probability, mean["target"])
    for attention in ("original", "pairwise", "shared"):
        run = Run("tiny", attention, 1, host)
        trainer = Trainer(run, settings, manifest)
        model = trainer.model
        assert parameters_of(run, rows.vocabulary_size) == sum(parameter.numel() for parameter in model.parameters()), (
            attention
        )
        if attention == "original":
            planned = HOSTS[host].step_flops(SIZES["tiny"], SIZES["tiny"].layer_weights, rows, settings.batch_size)
            assert planned == pytest.approx(trainer.task.flops(model), rel=1e-12)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "encoder-decoder"])  # whose rows differ in length
def test_the_tokens_of_a_pace_are_all_that_layers_read(manifest_read_by, brief, host):
    trainer = Trainer(Run("tiny", "original", 1, host), brief(), manifest_read_by(host))
    read = []
    for module in trainer.model.modules():
        if isinstance(module, Layers):
            module.register_forward_pre_hook(lambda _, inputs: read.append(inputs[0].shape[1]))
    trainer.step(0)
    assert trainer.task.tokens == sum(read)


@pytest.mark.parametrize("host", HOSTS)
def test_every_host_trains_and_resumes_with_the_same_batches(manifest_read_by, brief, host):
    """Three steps, and the third alone with the weights of the second."""
    settings, manifest = brief(dropout=0.1), manifest_read_by(host)
    one, other = (Trainer(Run("tiny", "pairwise", 1, host), settings, manifest) for _ in range(2))
    for step in range(2):
        one.step(step)
    other.model.load_state_dict(one.model.state_dict())
    other.optimizer.load_state_dict(one.optimizer.state_dict())
    assert other.step(2) == one.step(2)
    measured = one.evaluate()
    measure = HOSTS[host].measure
    assert list(measured) == ["loss", *([measure] if measure else []), *HOSTS[host].further_measures]
