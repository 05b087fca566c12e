"""The check of a GPU, with the CPU in its place."""

import math

import pytest
import torch

from benchmarks import gpu_check, gpu_steps
from benchmarks.gpu_check import check_pretraining, main
from benchmarks.gpu_steps import Arm, compare
from benchmarks.packed import write_corpus
from symbert.pretrain.train import StepResult

CPU = torch.device("cpu")
HEAD = "| size | operator | recipe | precision | loss | gradient norm | | tokens/s | MFU | peak MB | attention kernel |"


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("rows"), rows=64, tokens=64, vocabulary_size=1000)


@pytest.fixture
def short(monkeypatch):
    """Two steps are compared, one of two sequences is timed."""
    monkeypatch.setattr(gpu_steps, "STEPS", 2)
    monkeypatch.setattr(gpu_check, "STEPS", 2)
    monkeypatch.setattr(gpu_steps, "TIMED_SEQUENCES", {"tiny": 2})
    monkeypatch.setattr(gpu_steps, "UNTIMED", 1)
    monkeypatch.setattr(gpu_steps, "TIMED", 2)


def steps_of(*pairs):
    return [StepResult(loss, norm, 0.1) for loss, norm in pairs]


def test_what_is_equal_is_the_same_and_has_its_speed(manifest, short):
    said = []
    chosen = [Arm("tiny", "pairwise", "faithful", precision) for precision in ("fp32", "bf16")]
    assert check_pretraining(chosen, manifest, CPU, said.append) == 0
    head, first, second = said
    assert HEAD in head
    assert first.startswith("| tiny | pairwise | faithful | fp32 | 0.0e+00 | 0.0e+00 | same | ")
    cells = [cell.strip() for cell in second.strip("|").split("|")]
    assert len(cells) == HEAD.count("|") - 1
    assert 0 < float(cells[4]) < 1e-3 and 0 < float(cells[5]) < 2e-2, "bf16 rounds"
    assert cells[6] == "same" and float(cells[7].replace(",", "")) > 0 and cells[10] in ("flash", "products")


def test_a_loss_that_is_slightly_wrong_is_flagged(manifest, short, monkeypatch):
    """Of the device alone: its second loss is 0.2 % too large."""
    real = gpu_check.compared_steps

    def wrong_in_bf16(arm, *others):
        first, second = real(Arm(arm.size, arm.attention, arm.recipe, "fp32"), *others)
        factor = 1 + 2e-3 * (arm.precision == "bf16")
        return [first, StepResult(second.loss * factor, second.gradient_norm, second.learning_rate)]

    monkeypatch.setattr(gpu_check, "compared_steps", wrong_in_bf16)
    said = []
    chosen = [Arm("tiny", "original", "faithful", precision) for precision in ("fp32", "bf16")]
    assert check_pretraining(chosen, manifest, CPU, said.append, speed=False) == 1
    assert said[1].endswith("| 0.0e+00 | 0.0e+00 | same | – | – | – | – |")
    assert said[2].endswith("| 2.0e-03 | 0.0e+00 | **differs** | – | – | – | – |")


def test_what_fails_is_a_row_and_the_others_follow(manifest, short, capsys):
    said = []
    chosen = [Arm("tiny", "original", "faithful", precision) for precision in ("fp16", "fp32")]
    assert check_pretraining(chosen, manifest, CPU, said.append, speed=False) == 1
    assert "**failed**: ConfigError: config: 'precision' is fp16, which needs a GPU" in said[1]
    assert "same" in said[2] and "Traceback" in capsys.readouterr().err


def test_what_is_not_finite_differs():
    assert compare(steps_of((math.nan, 1.0)), steps_of((10.0, 1.0))).loss == math.inf
    assert not compare(steps_of((10.0, math.nan)), steps_of((10.0, 1.0))).is_allowed("bf16")


def test_steps_after_one_that_fp16_leaves_out_are_not_compared():
    found = steps_of((10.0, 1.0), (9.0, math.inf), (9.0, 1.0))
    difference = compare(found, steps_of((10.0, 1.0), (9.0, 1.0), (8.0, 1.0)))
    assert (difference.loss, difference.norm, difference.steps) == (0.0, 0.0, 2)


def test_a_gpu_without_a_kernel_of_attention_is_flagged_though_its_losses_are_the_same(monkeypatch, tmp_path):
    """`fast` had "products" on an H100, in a row like any other."""
    same, kernels = steps_of(*[(10.0, 1.0)] * gpu_steps.STEPS), iter(["products", "cuDNN"])
    monkeypatch.setattr(gpu_check, "compared_steps", lambda *_: same)
    monkeypatch.setattr(gpu_check, "peak_of", lambda *_: 1.0)
    monkeypatch.setattr(gpu_check, "measure_speed", lambda *_: gpu_steps.Speed(1000.0, 0.2, 26_310.0, next(kernels)))
    said, chosen = [], [Arm("base", "pairwise", "fast", precision) for precision in ("bf16", "fp16")]
    assert check_pretraining(chosen, tmp_path, torch.device("cuda"), said.append) == 1
    assert said[1].endswith("| same | 1,000 | 20 % | 26,310 | **products** |")
    assert said[2].endswith("| same | 1,000 | 20 % | 26,310 | cuDNN |")


def test_without_a_gpu_it_says_so_in_a_line(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("sys.argv", ["gpu-check", "--output", str(tmp_path / "page.md")])
    monkeypatch.setattr(gpu_check, "pick_device", lambda: CPU)
    assert main() == 64
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "no GPU is visible" in said and "srun" in said
