import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from symbert.model.bert import SymBertForMaskedLM, build_config
from symbert.operators import OPERATORS
from symbert.pretrain.flops import PRODUCT_SIZE, measure_peak, model_flops

SEQUENCES, TOKENS, MASKED = 3, 20, 11
CPU = torch.device("cpu")


def counted(model: SymBertForMaskedLM) -> int:
    """Operations of a forward and backward pass, by PyTorch's own counter."""
    ids = torch.randint(0, 50, (SEQUENCES, TOKENS))
    with FlopCounterMode(display=False) as counter:
        logits = model.masked_logits(ids, torch.arange(MASKED))
        F.cross_entropy(logits, ids.flatten()[:MASKED]).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("attention", OPERATORS)
def test_the_formula_is_what_pytorch_counts(attention):
    config = build_config("tiny", attention, vocabulary_size=50)
    config._attn_implementation = "eager"  # plain products, which the counter sees on every device
    assert model_flops(SymBertForMaskedLM(config), SEQUENCES, TOKENS, MASKED) == counted(SymBertForMaskedLM(config))


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ("small", {"original": 2.68, "symmetric": 2.52, "pairwise": 2.54, "shared": 2.35}),
        ("base", {"original": 15.4, "symmetric": 14.3, "pairwise": 14.4, "shared": 13.2}),
    ],
)
def test_the_papers_runs_take_this_many_operations(size, expected):
    """In 10¹⁸ operations for 200,000 steps of 256 × 512 tokens, 15 % of them masked."""
    for attention, exaflop in expected.items():
        with torch.device("meta"):
            model = SymBertForMaskedLM(build_config(size, attention))
        total = 200_000 * model_flops(model, 256, 512, 0.15 * 256 * 512) / 1e18
        assert total == pytest.approx(exaflop, abs=0.0051 if size == "small" else 0.051), attention


def test_a_dense_head_would_nearly_double_the_operations_of_small():
    with torch.device("meta"):
        model = SymBertForMaskedLM(build_config("small", "original"))
    masked, dense = (model_flops(model, 256, 512, share * 256 * 512) for share in (0.15, 1))
    assert dense / masked == pytest.approx(1.79, abs=0.01)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_peak_is_the_rate_of_the_fastest_product(precision, monkeypatch):
    monkeypatch.setitem(PRODUCT_SIZE, "cpu", 100)
    clock = iter([0.0, 9.0, 10.0, 10.5, 20.0, 20.25, *range(30, 60)])
    monkeypatch.setattr("symbert.pretrain.flops.time.perf_counter", lambda: next(clock))
    assert measure_peak(CPU, precision) == 2 * 100**3 / 0.25


def test_the_first_product_is_not_measured(monkeypatch):
    """It waits for the library to be loaded; here it would be the fastest."""
    monkeypatch.setitem(PRODUCT_SIZE, "cpu", 10)
    clock = iter([0.0, 0.001, *range(1, 40)])
    monkeypatch.setattr("symbert.pretrain.flops.time.perf_counter", lambda: next(clock))
    assert measure_peak(CPU, "fp32") == 2 * 10**3 / 1


def test_measuring_the_peak_leaves_the_random_numbers_of_the_training_alone(monkeypatch):
    monkeypatch.setitem(PRODUCT_SIZE, "cpu", 10)
    before = torch.get_rng_state()
    assert measure_peak(CPU, "fp32") > 0
    assert torch.equal(torch.get_rng_state(), before)
