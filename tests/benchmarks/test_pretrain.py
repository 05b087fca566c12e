import dataclasses
import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import twins
from benchmarks.packed import write_corpus
from benchmarks.protocol import CPU, OPERATORS, task_of
from benchmarks.trainers import ListedRows, stock_model
from benchmarks.twins import compare_losses, losses_of
from symbert.pretrain.tasks import PackedRows

TINY = dataclasses.replace(CPU, batch_size={"tiny": 4}, micro_batch_size={"tiny": 2}, tokens=32, steps={"tiny": 1})
AUTHORS = """
import json, sys
from pathlib import Path
import torch, transformers
from benchmarks.test_pretrain import TINY
from benchmarks.protocol import task_of
from benchmarks.trainers import Authors
folder = Path(sys.argv[1])
def build():
    return Authors(task_of("tiny", TINY, folder / "manifest.json"), False, folder / "authors")
authors, losses_read, isnan = build(), [], torch.isnan
torch.isnan = lambda tensor: losses_read.append(tensor) or isnan(tensor)
seconds = [authors.seconds(2), authors.seconds(2)]
trainer, keys = authors.trainer, ("weight_decay", "eps", "betas", "fused", "lr")
print(json.dumps({
    "seconds": seconds,
    "losses_read": len(losses_read),
    "steps": trainer.state.global_step,
    "sequences": trainer.state.global_step * trainer.args.train_batch_size * trainer.args.gradient_accumulation_steps,
    "groups": [{key: group[key] for key in keys} for group in trainer.optimizer.param_groups],
}))
transformers.TrainingArguments.n_gpu = property(lambda arguments: 2)
build()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a benchmark of the tiny size works, with its rows."""
    folder = tmp_path_factory.mktemp("bench")
    write_corpus(folder, 64, TINY.tokens, 500)
    return folder


@pytest.fixture(scope="module")
def task(folder):
    """What its contestants train."""
    return task_of("tiny", TINY, folder / "manifest.json")


def test_both_read_the_same_rows(folder):
    ours = PackedRows(folder / "manifest.json", "train")[np.array([5])][0]
    assert ListedRows(folder / "manifest.json")[5]["input_ids"] == ours.tolist()


def test_all_operators_lose_what_the_stock_model_loses_with_their_weights(task):
    said = compare_losses(task, OPERATORS, TINY.recipes)
    assert "the loss of each operator equals that of the stock model" in said


def test_another_loss_than_the_stock_model_s_stops_the_benchmark(task, monkeypatch):
    monkeypatch.setattr(twins, "stock_twin", lambda trainer, task: stock_model("tiny", 500, 0.0))
    ours, stock = losses_of(task, "original", "faithful")
    assert abs(ours - stock) > 1e-4
    with pytest.raises(SystemExit, match="tiny, original, faithful: the contestants do not compute the same"):
        compare_losses(task, ("original",), TINY.recipes)


@pytest.fixture(scope="module")
def authors(root, folder):
    """How a process ended that finds accelerate, which only `make` installs: trained, then saw two GPUs."""
    if not importlib.util.find_spec("accelerate") and not (root / ".venv/bench-pretrain/complete").is_file():
        pytest.skip("accelerate is absent: transformers.Trainer needs it; `make test` installs it")
    places = [root, root / "tests", root / "src", root / ".venv/bench-pretrain"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places))}
    return subprocess.run([sys.executable, "-c", AUTHORS, folder], env=environment, capture_output=True, text=True)


def test_the_authors_way_trains_with_the_paper_s_optimizer_and_reads_no_loss_back(authors):
    assert authors.stdout, authors.stderr
    said = json.loads(authors.stdout)
    assert said["losses_read"] == 0
    assert said["steps"] == TINY.untimed + 2
    assert said["sequences"] == said["steps"] * 4
    assert min(said["seconds"]) > 0
    rate = 1e-4 * said["steps"] / 10_000
    common = {"eps": 1e-12, "betas": [0.9, 0.999], "fused": True, "lr": pytest.approx(rate)}
    assert said["groups"] == [{"weight_decay": decay, **common} for decay in (0.01, 0.0)]


def test_the_authors_way_on_two_gpus_is_refused_because_its_micro_batch_would_be_twice_ours(authors):
    assert authors.returncode == 1
    assert "Trainer computes 4 sequences at a time instead of 2: on 2 GPUs" in authors.stderr
