import pytest
import torch
from msgspec.structs import replace

from symbert.model.bert import SymBertForMaskedLM, build_config
from symbert.pretrain.optimizer import build_optimizer, learning_rate
from symbert.settings import PretrainSettings, read_settings


@pytest.fixture
def settings(write_section) -> PretrainSettings:
    paper = {"steps": 200_000, "warmup_steps": 10_000, "learning_rate": 1e-4, "adam_epsilon": 1e-12}
    return read_settings(write_section("pretrain", **paper), PretrainSettings)


@pytest.mark.parametrize(
    ("step", "rate"), [(0, 0.0), (5_000, 0.5e-4), (10_000, 1e-4), (105_000, 0.5e-4), (199_999, 1e-4 / 190_000)]
)
def test_the_rate_rises_and_falls_linearly(settings, step, rate):
    assert learning_rate(step, settings) == pytest.approx(rate, rel=1e-9)


def test_the_schedule_is_hugging_faces(settings):
    from transformers import get_linear_schedule_with_warmup

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=settings.learning_rate)
    schedule = get_linear_schedule_with_warmup(theirs, settings.warmup_steps, settings.steps)
    for step in (0, 1, 9_999, 10_000, 10_001, 150_000, 199_999):
        expected = settings.learning_rate * schedule.lr_lambdas[0](step)
        assert learning_rate(step, settings) == pytest.approx(expected, rel=1e-12)


def test_the_first_part_of_a_longer_schedule_has_its_rates(settings):
    """30,000 of the paper's 200,000 steps: each at the rate that it has there, the last one far from 0."""
    part = replace(settings, steps=30_000, schedule_steps=200_000)
    for step in (0, 9_999, 10_000, 29_999):
        assert learning_rate(step, part) == learning_rate(step, settings)
    assert learning_rate(29_999, part) == pytest.approx(1e-4 * 170_001 / 190_000)


def test_a_schedule_that_is_not_named_ends_with_the_training(settings):
    assert settings.schedule_steps is None
    named = replace(settings, schedule_steps=settings.steps)
    assert all(learning_rate(step, named) == learning_rate(step, settings) for step in (0, 15_000, 199_999))


def test_no_warm_up_starts_at_the_peak(settings):
    assert learning_rate(0, replace(settings, warmup_steps=0)) == 1e-4


def test_biases_and_layer_norms_are_not_decayed_and_the_factors_are(settings):
    model = SymBertForMaskedLM(build_config("tiny", "pairwise", vocabulary_size=50))
    groups = build_optimizer(model, settings).param_groups
    decayed = {id(p): group["weight_decay"] for group in groups for p in group["params"]}
    for name, parameter in model.named_parameters():
        free = name.endswith("bias") or "LayerNorm" in name
        assert decayed[id(parameter)] == (0.0 if free else 0.01), name


def test_a_step_follows_adamws_formula(settings):
    """Loshchilov and Hutter 2019, algorithm 2, in float64 for one matrix and one vector."""
    module = torch.nn.Linear(3, 2).double()
    optimizer = build_optimizer(module, settings)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    for group in optimizer.param_groups:
        group["lr"] = 0.01
    gradients = [torch.randn(2, 3, dtype=torch.float64), torch.randn(2, dtype=torch.float64)]
    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
        parameter.grad = gradient.clone()
    optimizer.step()
    for (name, after), gradient in zip(module.named_parameters(), gradients, strict=True):
        decay = 0.01 if name == "weight" else 0.0
        direction = gradient / (gradient.abs() + settings.adam_epsilon)  # bias-corrected moments at the first step
        expected = before[name] * (1 - 0.01 * decay) - 0.01 * direction
        torch.testing.assert_close(after.detach(), expected, rtol=1e-9, atol=1e-12)
