import importlib.util
import json
import os
import subprocess
import sys

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import learned
from benchmarks.finetuners import (
    MAX_LENGTH,
    UNTIMED,
    PaddedRows,
    stock_classifier,
)
from benchmarks.glue import prepare, write_checkpoint
from benchmarks.learned import compare
from symbert.sources import DEMO

LIMITS = {"max_examples": 960, "max_evaluation_examples": 24}  # 300 steps: the Trainer evaluates after every second
MEASURE = """
import json, sys
from pathlib import Path
import torch
from benchmarks import glue
from benchmarks.test_glue import finetuning_in
torch.set_num_threads(1)
folder = Path(sys.argv[1])
finetuning, checkpoints = finetuning_in(folder), {"original": folder / "original"}
said = glue.compare(finetuning, checkpoints, folder)
built = glue.build(finetuning, checkpoints, folder)
trainer, seen = built["mrpc: stock Trainer"].trainer, []
compute_loss = trainer.compute_loss
def see(model, inputs, *options, **named):
    seen.append((trainer.state.global_step, model.training, *inputs["input_ids"].shape))
    return compute_loss(model, inputs, *options, **named)
trainer.compute_loss = see
found = glue.measure_round(built, 0)
keys = ("weight_decay", "eps", "betas", "fused", "lr")
print(json.dumps({
    "said": said,
    "found": found,
    "seen": seen,
    "groups": [{key: group[key] for key in keys} for group in trainer.optimizer.param_groups],
    "clip": trainer.args.max_grad_norm,
    "dropout": trainer.model.config.attention_probs_dropout_prob,
    "attention": trainer.model.config._attn_implementation,
}))
"""


def finetuning_in(folder):
    """The demo's MRPC of few rows in the paper's protocol."""
    return prepare("mrpc", DEMO, folder / "rows", **LIMITS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where a benchmark of the tiny size works, with its checkpoints."""
    folder = tmp_path_factory.mktemp("bench")
    for attention in ("original", "pairwise"):
        write_checkpoint("tiny", attention, folder / attention)
    return folder


@pytest.fixture(scope="module")
def finetuning(folder):
    """What its contestants fine-tune."""
    return finetuning_in(folder)


@pytest.fixture(scope="module")
def measured(root, folder):
    """What a process that finds accelerate measures, and what its Trainer computed meanwhile."""
    if not importlib.util.find_spec("accelerate") and not (root / ".venv/bench-pretrain/complete").is_file():
        pytest.skip("accelerate is absent: transformers.Trainer needs it; `make test` installs it")
    places = [root, root / "tests", root / "src", root / ".venv/bench-pretrain"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places))}
    command = [sys.executable, "-c", MEASURE, folder]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rows_of(data, split):
    return pq.read_table(data).filter(pc.field("split") == split)


def test_the_authors_rows_are_those_of_the_prepared_file_padded_to_128(finetuning):
    rows = rows_of(finetuning.data, "validation").to_pylist()
    padded = PaddedRows(finetuning.data, "validation")
    assert len(padded) == len(rows) == 24
    for ours, theirs in zip(rows, padded, strict=True):
        length = len(ours["input_ids"])
        rest = [0] * (MAX_LENGTH - length)
        assert theirs["input_ids"] == ours["input_ids"] + rest
        assert theirs["token_type_ids"] == ours["token_type_ids"] + rest
        assert theirs["attention_mask"] == [1] * length + rest
        assert theirs["label"] == ours["label"]


def test_outputs_other_than_the_stock_model_s_stop_the_benchmark(finetuning, folder, monkeypatch):
    swapped = {"original": "pairwise", "pairwise": "original"}
    other = lambda path, *rest: stock_classifier(path.with_name(swapped[path.name]), *rest)  # noqa: E731
    monkeypatch.setattr(learned, "stock_classifier", other)
    with pytest.raises(SystemExit, match="mrpc, .*: the contestants do not compute the same: outputs .* differ by"):
        compare(finetuning, {name: folder / name for name in swapped}, folder)


def test_another_loss_than_the_trainer_s_stops_the_benchmark(finetuning, folder, monkeypatch):
    monkeypatch.setattr(learned, "losses_of", lambda *_: (0.7, 0.6, 0.61))
    with pytest.raises(SystemExit, match="mrpc: the contestants do not learn the same: loss 0.7, then 0.6 and 0.61"):
        compare(finetuning, {"original": folder / "original"}, folder)


def test_the_authors_way_trains_and_evaluates_as_their_scripts_do(measured):
    training, evaluating = [16, MAX_LENGTH], [24, MAX_LENGTH]
    assert [(step, *shape) for step, is_training, *shape in measured["seen"] if is_training] == [
        (step, *training) for step in range(UNTIMED + 2)
    ]
    assert [(step, *shape) for step, is_training, *shape in measured["seen"] if not is_training] == [(2, *evaluating)]
    rate = 1e-5 * 3 / 30  # of the fourth step, while the rate grows over a tenth of 300 steps
    common = {"weight_decay": 0.0, "eps": 1e-8, "betas": [0.9, 0.999], "fused": True, "lr": pytest.approx(rate)}
    assert measured["groups"] == [common] * 2
    assert (measured["clip"], measured["dropout"], measured["attention"]) == (1.0, 0.1, "sdpa")


def test_this_project_and_the_trainer_learn_the_same(measured):
    assert "after 5 steps on 8 rows this project's loss equals the Trainer's" in measured["said"]


@pytest.fixture(autouse=True)
def one_thread():
    """Small matrices need no more."""
    torch.set_num_threads(1)
