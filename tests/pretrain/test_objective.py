"""What the objectives of all hosts have in common."""

import json

import pytest

from symbert.hosts import HOSTS, Rows
from symbert.model.bert import Encoder
from symbert.paths import Run
from symbert.pretrain.run import parameters_of
from symbert.pretrain.train import Trainer
from symbert.sizes import SIZES


@pytest.mark.parametrize("host", HOSTS)
def test_what_a_plan_reckons_with_is_counted_on_the_model(manifest_read_by, brief, host):
    """Parameters by formula, and operations of a step with `original` by formula and by the model's weights."""
    settings, manifest = brief(), manifest_read_by(host)
    packed = json.loads(manifest.read_text())
    mean = packed.get("mean_tokens", {"source": 16, "target": 0})
    rows = Rows(packed["vocabulary_size"], mean["source"], settings.mask_probability, mean["target"])
    for attention in ("shared", "pairwise", "original"):
        run = Run("tiny", attention, 1, host)
        trainer = Trainer(run, settings, manifest)
        counted = sum(parameter.numel() for parameter in trainer.model.parameters())
        assert parameters_of(run, rows.vocabulary_size) == counted, attention
    planned = HOSTS[host].step_flops(SIZES["tiny"], SIZES["tiny"].layer_weights, rows, settings.batch_size)
    assert planned == pytest.approx(trainer.task.flops(trainer.model), rel=1e-12)


@pytest.mark.parametrize("host", [host for host in HOSTS if host != "encoder-decoder"])  # whose rows differ in length
def test_the_tokens_of_a_pace_are_all_that_layers_read(manifest_read_by, brief, host):
    trainer = Trainer(Run("tiny", "original", 1, host), brief(), manifest_read_by(host))
    read = []
    for module in trainer.model.modules():
        if isinstance(module, Encoder):
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
