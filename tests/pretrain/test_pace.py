import re

import pytest
import torch
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from symbert.hosts import HOSTS, Rows
from symbert.model.bert import MaskedModel, layer_weights
from symbert.model.configuration import configuration_of
from symbert.pretrain import pace as pace_module
from symbert.pretrain.pace import Pace, known_peak, memory_mb

CPU = torch.device("cpu")


class Paced:
    """A pace of 1,000 tokens and 6 GFLOP a step on a device of 60 GFLOP/s, and steps of chosen seconds."""

    def __init__(self, monkeypatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(pace_module.time, "perf_counter", lambda: self.now)
        self.pace = Pace(1000, 6e9, 60e9, CPU)

    def steps(self, *seconds: float) -> Pace:
        for span in seconds:
            self.now += span
            self.pace.step()
        return self.pace


def test_the_summary_has_seconds_rate_and_use_of_the_device(monkeypatch):
    summary = Paced(monkeypatch).steps(50, 0.5, 0.2, 0.4).summary()
    assert summary.pop("memory_mb") == pytest.approx(memory_mb(CPU), rel=0.2)
    assert summary == {
        "step_seconds": pytest.approx(0.4),
        "tokens_per_second": pytest.approx(2500),
        "flops_per_second": pytest.approx(15e9),
        "mfu": pytest.approx(0.25),
        "peak_flops": 60e9,
        "steps_timed": 3,
    }


@pytest.mark.parametrize("spans", [(), (5.0,)])
def test_the_first_step_of_a_session_is_not_timed(spans, monkeypatch):
    pace = Paced(monkeypatch).steps(*spans)
    summary = pace.summary()
    assert summary["step_seconds"] is summary["tokens_per_second"] is summary["mfu"] is None
    assert summary["steps_timed"] == 0
    assert re.fullmatch(r"[\d,]+ MB", pace.note())


def test_what_is_done_between_steps_is_not_timed_after_a_restart(monkeypatch):
    paced = Paced(monkeypatch)
    paced.pace.restart()  # before the first step: nothing to restart
    paced.steps(1, 0.5)
    paced.now += 100
    paced.pace.restart()
    assert list(paced.steps(0.5).seconds) == [0.5, 0.5]


SEQUENCES, TOKENS, MASKED = 3, 20, 11
CPU = torch.device("cpu")


def model_flops(model: MaskedModel, sequences: int, tokens: int, masked: float) -> float:
    rows = Rows(model.config.vocab_size, tokens, masked / (sequences * tokens))
    return HOSTS["encoder"].step_flops(model.config, layer_weights(model), rows, sequences)


def counted(model: MaskedModel) -> int:
    """Operations of a forward and backward pass, by PyTorch's own counter."""
    ids = torch.randint(0, 50, (SEQUENCES, TOKENS))
    with FlopCounterMode(display=False) as counter:
        logits = model.masked_logits(ids, torch.arange(MASKED))
        F.cross_entropy(logits, ids.flatten()[:MASKED]).backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_the_formula_is_what_pytorch_counts(attention):
    config = configuration_of("tiny", attention, vocabulary_size=50)
    config._attn_implementation = "eager"  # plain products, which the counter sees on every device
    assert model_flops(MaskedModel(config), SEQUENCES, TOKENS, MASKED) == counted(MaskedModel(config))


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
            model = MaskedModel(configuration_of(size, attention))
        total = 200_000 * model_flops(model, 256, 512, 0.15 * 256 * 512) / 1e18
        assert total == pytest.approx(exaflop, abs=0.0051 if size == "small" else 0.051), attention


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_slow_product_of_a_cpu_is_no_peak_to_take_a_share_of(precision):
    """Training was said to use 477 % of a CPU in bf16, whose products PyTorch computes slower alone than in a model."""
    assert known_peak("cpu", precision) is None
    pace = Pace(1000, 6e9, known_peak("cpu", precision), CPU)
    pace.step()
    pace.step()
    summary = pace.summary()
    assert summary["mfu"] is summary["peak_flops"] is None and summary["flops_per_second"] > 0
    assert "tokens/s, MFU –, " in pace.note()


def test_the_peak_is_of_the_device_and_the_precision():
    assert known_peak("NVIDIA H200", "bf16") == known_peak("NVIDIA H100 80GB HBM3", "fp16") == 989e12
    assert known_peak("NVIDIA A100-SXM4-80GB", "fp32") == 19.5e12 and known_peak("Another card", "bf16") is None
