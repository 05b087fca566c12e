"""The check of a GPU, with the CPU in its place."""

import math

import torch

from benchmarks import gpu_check
from benchmarks.gpu_check import Arm, check, check_finetuning, difference_of
from benchmarks.pretrain import write_corpus
from symbert.pretrain.train import StepResult


def steps_of(*pairs):
    return [StepResult(loss, norm, 0.1) for loss, norm in pairs]


def test_equal_wrong_and_failing_arms_are_told_apart(tmp_path, monkeypatch):
    """The CPU is compared with itself; of `original` in bf16 the second loss is 0.2 % too large."""
    for name, value in {"STEPS": 2, "UNTIMED": 1, "TIMED": 2, "TIMED_SEQUENCES": {"tiny": 2}}.items():
        monkeypatch.setattr(gpu_check, name, value)
    real = gpu_check.compared_steps

    def compared_steps(arm, *others):
        first, second = real(arm._replace(precision="fp32") if arm.attention == "original" else arm, *others)
        factor = 1 + 2e-3 * (arm.attention == "original" and arm.precision == "bf16")
        return [first, StepResult(second.loss * factor, second.gradient_norm, second.learning_rate)]

    monkeypatch.setattr(gpu_check, "compared_steps", compared_steps)
    rows, pairs = [], (("pairwise", "fp16"), ("pairwise", "fp32"), ("pairwise", "bf16"), ("original", "bf16"))
    arms = [Arm("tiny", attention, "eager", precision) for attention, precision in pairs]
    manifest = write_corpus(tmp_path, rows=64, tokens=64, vocabulary_size=1000)
    assert check(arms, manifest, torch.device("cpu"), rows.append) == 2
    head, failed, same, rounded, wrong = rows
    assert "**failed**: ConfigError: config: 'precision' is fp16, which needs a GPU" in failed
    assert same.startswith("| tiny | pairwise | eager | fp32 | 0.0e+00 | 0.0e+00 | same | ")
    cells = [cell.strip() for cell in rounded.strip("|").split("|")]
    assert len(cells) == head.splitlines()[-2].count("|") - 1
    assert 0 < float(cells[4]) < 1e-3 and 0 < float(cells[5]) < 2e-2, "bf16 rounds"
    assert cells[6] == "same" and float(cells[7].replace(",", "")) > 0
    assert "| 2.0e-03 | 0.0e+00 | **differs** |" in wrong


def test_what_is_not_finite_differs_and_steps_after_one_that_fp16_leaves_out_are_not_compared():
    assert difference_of(steps_of((math.nan, 1.0)), steps_of((10.0, 1.0)))[0] == math.inf
    assert difference_of(steps_of((10.0, math.nan)), steps_of((10.0, 1.0)))[1] == math.inf
    steps = steps_of((10.0, 1.0), (9.0, math.inf), (9.0, 1.0))
    assert difference_of(steps, steps_of((10.0, 1.0), (9.0, 1.0), (8.0, 1.0))) == (0.0, 0.0, 2)


def test_fine_tuned_arms_are_compared_with_the_cpu_by_losses_and_weights(monkeypatch):
    """The CPU is compared with itself; `original` forgets a step in bf16."""
    monkeypatch.setattr(gpu_check, "FINETUNING_STEPS", 2)
    real = gpu_check.finetuned

    def finetuned(arm, device):
        found = real(arm, device)
        is_wrong = arm.attention == "original" and arm.precision == "bf16"
        return found._replace(after=found.before) if is_wrong else found

    monkeypatch.setattr(gpu_check, "finetuned", finetuned)
    rows, pairs = [], (("pairwise", "fp32"), ("pairwise", "bf16"), ("original", "bf16"))
    arms = [Arm("tiny", attention, "eager", precision) for attention, precision in pairs]
    assert check_finetuning(arms, torch.device("cpu"), rows.append) == 1
    head, same, rounded, wrong = (
        [cell.strip() for cell in row.split("\n")[-2 if "\n" in row else 0].split("|")] for row in rows
    )
    assert {len(head), len(same), len(rounded), len(wrong)} == {len(head)}
    assert same[5:8] == ["0.0e+00", "0.0e+00", "same"] and same[-2] == "end to end"
    assert float(rounded[5]) > 0 and 0 < float(rounded[6]) < 0.5 and rounded[7] == "same"
    assert wrong[6:8] == ["1.0e+00", "**differs**"]
