import pytest
import torch
from msgspec.structs import replace

from pretrain.corpora import brief
from symbert.configuration import GlueSettings, PretrainSettings
from symbert.errors import ConfigError
from symbert.model.bert import MaskedModel
from symbert.model.configuration import configuration_of
from symbert.training.optimizer import Updater, build_optimizer, linear_rate


@pytest.fixture
def settings() -> PretrainSettings:
    return brief(adam_epsilon=1e-12)


PEAK, WARMUP, END = 1e-4, 10_000, 200_000  # the paper's


def test_the_schedule_is_hugging_faces():
    from transformers import get_linear_schedule_with_warmup

    theirs = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    schedule = get_linear_schedule_with_warmup(theirs, WARMUP, END)
    for step in (0, 1, 9_999, 10_000, 10_001, 150_000, 199_999):
        expected = PEAK * schedule.lr_lambdas[0](step)
        assert linear_rate(step, PEAK, WARMUP, END) == pytest.approx(expected, rel=1e-12)


def test_no_warm_up_starts_at_the_peak():
    assert linear_rate(0, PEAK, 0, END) == PEAK


def test_after_its_end_the_rate_is_zero_and_warm_up_alone_has_no_end():
    assert linear_rate(END + 1, PEAK, WARMUP, END) == 0 and linear_rate(99, PEAK, 100, 100) == PEAK * 0.99


def test_biases_and_layer_norms_are_not_decayed_and_the_factors_are(settings):
    model = MaskedModel(configuration_of("tiny", "pairwise", vocabulary_size=50))
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


def test_adamw_is_pytorchs_to_the_bit_and_goes_on_from_its_state(settings):
    def trained(optimizer_of) -> tuple[list[torch.Tensor], torch.optim.Optimizer]:
        torch.manual_seed(0)
        module = torch.nn.Linear(5, 3)
        optimizer = optimizer_of(module)
        for step in range(4):
            if step == 2:
                state = optimizer.state_dict()
                optimizer = optimizer_of(module)
                optimizer.load_state_dict(state)
            module(torch.randn(7, 5)).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            assert module.weight.grad is None
        return [*module.parameters()], optimizer

    def pytorchs(module: torch.nn.Module) -> torch.optim.Optimizer:
        groups = build_optimizer(module, settings).param_groups
        return torch.optim.AdamW([{**group, "lr": 0.01} for group in groups], fused=True)

    def ours(module: torch.nn.Module) -> torch.optim.Optimizer:
        optimizer = build_optimizer(module, settings)
        for group in optimizer.param_groups:
            group["lr"] = 0.01
        return optimizer

    (expected, _), (found, optimizer) = trained(pytorchs), trained(ours)
    assert all(map(torch.equal, expected, found)) and not any(p.grad_fn for p in found)
    assert [state["step"].item() for state in optimizer.state.values()] == [4, 4]


def test_adamw_has_the_settings_of_its_stage(settings):
    """Fine-tuning has none for the betas: it takes PyTorch's."""
    module = torch.nn.Linear(3, 2)
    ours = build_optimizer(module, replace(settings, adam_beta1=0.8, adam_beta2=0.95))
    assert (ours.defaults["betas"], ours.defaults["eps"]) == ((0.8, 0.95), 1e-12)
    fine_tuning = GlueSettings(
        epochs=1,
        batch_size=8,
        learning_rate=1e-3,
        warmup_ratio=0.1,
        weight_decay=0.0,
        adam_epsilon=1e-7,
        gradient_clip=1.0,
        dropout=0.0,
        precision="auto",
        recipe="faithful",
    )
    theirs = build_optimizer(module, fine_tuning)
    assert (theirs.defaults["betas"], theirs.defaults["eps"]) == ((0.9, 0.999), 1e-7)


def test_an_optimizer_that_is_not_there_is_named_with_the_key(settings):
    for path, said in (("nowhere:f", "No module named 'nowhere'"), ("json:f", "has no attribute 'f'")):
        with pytest.raises(ConfigError, match=f"'pretrain.optimizer' is {path}: .*{said}.*; write adamw, or correct"):
            build_optimizer(torch.nn.Linear(3, 2), settings, path)


def test_an_updater_adds_gradients_up_clips_them_and_clears_them():
    model = torch.nn.Linear(2, 1, bias=False)
    model.weight.data.fill_(0.0)
    updater = Updater(model, torch.optim.SGD(model.parameters(), lr=9.0), 1.0, "fp32", torch.device("cpu"))
    for _ in range(2):
        updater.backward(model(torch.tensor([[3.0, 4.0]])).sum())
    assert updater.clip().item() == pytest.approx(10.0)
    updater.update(learning_rate=0.5)
    assert model.weight.detach()[0].tolist() == pytest.approx([-0.3, -0.4]) and model.weight.grad is None
