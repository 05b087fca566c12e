"""What this project trains and fine-tunes beside Hugging Face's Trainer. Only `make` installs accelerate for it."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import glue, pretrain
from benchmarks.pretrain import Task
from symbert.pretrain.tasks import PackedRows
from symbert.sources import DEMO

TINY = ("tiny", 4, 2, "faithful")  # batches of 4, computed by 2
LIMITS = {"max_examples": 960, "max_evaluation_examples": 24}  # 300 steps: the Trainer evaluates after every second
TRAIN = """
import json, sys
from pathlib import Path
import torch
from benchmarks import glue, pretrain
from benchmarks.test_trainers import LIMITS, TINY, DEMO
torch.set_num_threads(1)
folder, losses_read, isnan, shapes = Path(sys.argv[1]), [], torch.isnan, []
pretraining = pretrain.Authors(pretrain.Task(*TINY, folder / "manifest.json"), folder / "authors")
torch.isnan = lambda tensor: losses_read.append(tensor) or isnan(tensor)
seconds = [pretraining.seconds(2), pretraining.seconds(2)]
torch.isnan = isnan
finetuning = glue.prepare("mrpc", DEMO, folder / "rows", **LIMITS)
agreement = glue.compare(finetuning, {"original": folder / "original"}, folder)
stock = glue.stock_classifier(folder / "original", 2, finetuning.settings.dropout)
authors, ours = glue.Authors(finetuning, stock, folder / "authors"), glue.Ours(finetuning, folder / "original")
compute_loss = authors.trainer.compute_loss
def see(model, inputs, *options, **named):
    shapes.append((model.training, authors.trainer.state.global_step, *inputs["input_ids"].shape))
    return compute_loss(model, inputs, *options, **named)
authors.trainer.compute_loss = see
seconds += [*authors.measure(), *ours.measure()]
def facts(trainer):
    keys, arguments = ("weight_decay", "eps", "betas", "fused", "lr"), trainer.args
    sequences = arguments.train_batch_size * arguments.gradient_accumulation_steps
    groups = [{key: group[key] for key in keys} for group in trainer.optimizer.param_groups]
    return [trainer.state.global_step, sequences, arguments.max_grad_norm, groups]
print(json.dumps({"seconds": seconds, "losses_read": len(losses_read), "agreement": agreement, "shapes": shapes,
    "pretraining": facts(pretraining.trainer), "finetuning": facts(authors.trainer),
    "dropout": stock.config.attention_probs_dropout_prob, "attention": stock.config._attn_implementation}))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows and checkpoints of the tiny size."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("bench")
    pretrain.write_corpus(folder, 64, 32, 500)
    for attention in ("original", "pairwise"):
        glue.write_checkpoint("tiny", attention, folder / attention)
    return folder


@pytest.fixture(scope="module")
def finetuning(folder):
    return glue.prepare("mrpc", DEMO, folder / "rows", **LIMITS)


@pytest.fixture
def task(folder):
    return Task(*TINY, folder / "manifest.json")


def test_both_read_the_same_rows(task, finetuning):
    ours = PackedRows(task.manifest, "train")[np.array([5])][0]
    assert pretrain.ListedRows(task.manifest)[5]["input_ids"] == ours.tolist()
    rows = pq.read_table(finetuning.data).filter(pc.field("split") == "validation").to_pylist()
    for ours, padded in zip(rows, glue.padded_rows(finetuning, "validation"), strict=True):
        length = len(ours["input_ids"])
        pads = [0] * (128 - length)
        assert padded["input_ids"] == ours["input_ids"] + pads
        assert padded["token_type_ids"] == ours["token_type_ids"] + pads
        assert padded["attention_mask"] == [1] * length + pads
        assert padded["label"] == ours["label"]
    assert len(rows) == 24


def test_a_wrong_loss_or_output_stops_the_benchmark(task, finetuning, folder, monkeypatch):
    assert "the loss of each operator equals that of the stock model" in pretrain.compare(task)
    monkeypatch.setattr(pretrain, "fold", lambda model: pretrain.stock_model("tiny", 500, 0.0))
    with pytest.raises(SystemExit, match="tiny, symmetric, faithful: the contestants do not compute the same"):
        pretrain.compare(task)
    stock_classifier = glue.stock_classifier
    monkeypatch.setattr(glue, "stock_classifier", lambda path, *rest: stock_classifier(folder / "pairwise", *rest))
    with pytest.raises(SystemExit, match="mrpc, original: the contestants do not compute the same: outputs"):
        glue.compare(finetuning, {"original": folder / "original"}, folder)


def test_the_trainer_trains_and_evaluates_as_the_authors_scripts_do(root, folder):
    if not importlib.util.find_spec("accelerate") and not (root / ".venv/bench-pretrain/complete").is_file():
        pytest.skip("accelerate is absent: transformers.Trainer needs it; `make test` installs it")
    places = [root, root / "tests", root / "src", root / ".venv/bench-pretrain"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places))}
    done = subprocess.run([sys.executable, "-c", TRAIN, folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    assert min(printed["seconds"]) > 0 and len(printed["seconds"]) == 6
    assert printed["losses_read"] == 0
    assert "outputs of each operator equal those of the stock model" in printed["agreement"]
    common = {"eps": 1e-12, "betas": [0.9, 0.999], "fused": True, "lr": pytest.approx(1e-4 * 3 / 10_000)}
    groups = [{"weight_decay": decay, **common} for decay in (0.01, 0.0)]
    assert printed["pretraining"] == [3, 4, 1.0, groups]
    rate = 1e-5 * 3 / 30  # of the fourth step, while the rate grows over a tenth of 300 steps
    common = {"weight_decay": 0.0, "eps": 1e-8, "betas": [0.9, 0.999], "fused": True, "lr": pytest.approx(rate)}
    assert printed["finetuning"] == [3, 16, 1.0, [common] * 2]
    assert printed["shapes"] == [
        *([True, step, 16, 128] for step in range(2)), [False, 2, 24, 128], [True, 2, 16, 128]
    ]  # fmt: skip
    assert (printed["dropout"], printed["attention"]) == (0.1, "sdpa")
