import pytest
import torch

from model.models import configured
from symbert.architectures import ARCHITECTURES, Rows
from symbert.model.bert import MaskedModel, layer_weights
from symbert.pretrain import pace as pace_module
from symbert.pretrain.pace import Pace, known_peak, memory_mb

CPU = torch.device("cpu")


def test_the_summary_has_seconds_rate_and_use_of_the_device(monkeypatch):
    """Of 1,000 tokens and 6 GFLOP a step on a device of 60 GFLOP/s, without the first step and the pauses."""
    now = 1000.0
    monkeypatch.setattr(pace_module.time, "perf_counter", lambda: now)
    pace = Pace(1000, 6e9, 60e9, CPU)
    pace.restart()  # before the first step: nothing to restart
    for pause, seconds in ((0, 50), (0, 0.5), (100, 0.2), (0, 0.4)):
        now += pause
        pace.restart()
        now += seconds
        pace.step()
        if seconds == 50:
            first = pace.summary()
            assert (first["step_seconds"], first["tokens_per_second"], first["steps_timed"]) == (None, None, 0)
            assert pace.note().endswith(" MB")
    summary = pace.summary()
    assert summary.pop("memory_mb") == pytest.approx(memory_mb(CPU), rel=0.2)
    assert summary == {
        "step_seconds": pytest.approx(0.4),
        "tokens_per_second": pytest.approx(2500),
        "flops_per_second": pytest.approx(15e9),
        "mfu": pytest.approx(0.25),
        "peak_flops": 60e9,
        "steps_timed": 3,
    }


def test_where_no_data_sheet_tells_the_peak_no_share_of_it_is_told():
    """Training was said to use 477 % of a CPU in bf16, whose products PyTorch computes slower alone than in a model."""
    assert known_peak("NVIDIA H100 80GB HBM3", "fp16") == 989e12  # NVIDIA's data sheet, without sparsity
    assert known_peak("cpu", "bf16") is known_peak("Another card", "bf16") is None
    pace = Pace(1000, 6e9, None, CPU)
    pace.step()
    pace.step()
    assert pace.summary()["mfu"] is None and pace.summary()["flops_per_second"] > 0
    assert "tokens/s, MFU –, " in pace.note()


def test_the_papers_runs_take_this_many_operations():
    """In 10¹⁸ operations for 200,000 steps of 256 × 512 tokens, 15 % masked; the others are spared 0.32 and 0.71."""
    for size, attention, exaflop in (("small", "original", 2.37), ("base", "pairwise", 13.7), ("base", "shared", 12.5)):
        with torch.device("meta"):
            model = MaskedModel(configured(size, attention))
        rows = Rows(model.config.vocab_size, 512, 0.15)
        total = 200_000 * ARCHITECTURES["encoder"].step_flops(model.config, layer_weights(model), rows, 256) / 1e18
        assert total == pytest.approx(exaflop, rel=0.004), (size, attention)
