"""`logit_step` of metrics.jsonl: how far a step moves the logits, against sums in float64 and torch's AdamW."""

import math

import numpy as np
import pytest
import torch

from symbert.model.anatomy import logit_step
from symbert.pretrain.tasks import Loss


def written_out(trainer) -> list[float]:
    """By the run's optimizer on the whole batch in float64, and loops over the pairs of tokens."""
    batch = trainer.task.validation_batch(np.arange(8))
    model = trainer.task.starting_model().double().eval()
    sites = [layer.attention.self for layer in model.bert.encoder.layer]
    hidden = [model.bert.embeddings(batch["input_ids"])]
    for layer in model.bert.encoder.layer[:-1]:
        hidden.append(layer(hidden[-1]))
    hidden = [states.detach() for states in hidden]

    def logits() -> list[np.ndarray]:
        with torch.no_grad():
            sides = [site.query_key_value(states)[:2] for site, states in zip(sites, hidden, strict=True)]
        return [np.einsum("bhxd,bhyd->bhxy", query, key) / math.sqrt(query.shape[-1]) for query, key in sides]

    before, settings = logits(), trainer.settings
    loss = Loss(trainer.task, model)(**trainer.task.inputs(batch, False)) / (batch["targets"] >= 0).sum()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), settings.gradient_clip)
    weights = [each for site in sites for each in site.parameters()]
    decayed = [{"params": [each], "weight_decay": settings.weight_decay * (each.ndim > 1)} for each in weights]
    torch.optim.AdamW(decayed, lr=settings.learning_rate, eps=settings.adam_epsilon).step()
    changes = [np.abs(after - former) for after, former in zip(logits(), before, strict=True)]
    tokens = range(changes[0].shape[-1])
    pairs = [(x, y) for x in tokens for y in tokens if x != y]
    return [float(np.mean([change[:, :, x, y] for x, y in pairs])) for change in changes]


@pytest.mark.parametrize(
    ("attention", "architecture"),
    [("original", "encoder"), ("qk-norm", "encoder"), ("exclusive", "encoder"), ("pairwise", "decoder")],
)
def test_it_is_the_change_by_one_step_of_adamw_at_the_peak_rate(build, attention, architecture):
    # A key's bias, which softmax ignores, has rounding for a gradient: without an epsilon its sign would count.
    trainer = build(attention, architecture=architecture, dropout=0.5, adam_epsilon=1e-6)
    found = trainer.describe_init()["logit_step"]
    assert found == pytest.approx(written_out(trainer), rel=1e-3) and len(found) == 2
    assert trainer.learning_rate(0) == 0 < trainer.settings.learning_rate


def test_logits_that_are_not_divided_by_the_root_of_the_head_move_so_much_further_and_those_of_pairwise_too(build):
    steps = {
        name: np.mean([build(name, seed).describe_init()["logit_step"] for seed in (1, 2)])
        for name in ("original", "original-unscaled", "pairwise", "pairwise-scaled")
    }
    for name in ("original-unscaled", "pairwise"):
        assert steps[name] / steps["original"] == pytest.approx(math.sqrt(32), rel=0.2)
    assert steps["pairwise-scaled"] / steps["original"] == pytest.approx(1, rel=0.2)


def test_it_changes_nothing_of_the_training(build):
    described, plain = build(dropout=0.1), build(dropout=0.1)
    for step in range(3):
        described.describe_init()
        assert described.step(step) == plain.step(step)
    ours, theirs = (trainer.model.state_dict() for trainer in (described, plain))
    assert all(torch.equal(values, theirs[name]) for name, values in ours.items())


def test_a_step_that_logits_do_not_stand_is_not_logged_and_left_to_the_training(build):
    """It ended runs whose warm-up never reached such a rate."""
    model = (trainer := build("original")).task.starting_model().eval()
    site = model.bert.encoder.layer[1].attention.self
    assert logit_step(model, torch.arange(12)[None], lambda: site.query.weight.data.fill_(math.inf)) == []
    assert build("original", learning_rate=1e30).describe_init()["logit_step"] == []
    assert all(map(math.isfinite, trainer.describe_init()["logit_step"]))
