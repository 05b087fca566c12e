"""What this project trains and fine-tunes beside Hugging Face's Trainer."""

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import torch

from benchmarks import glue, pretrain
from symbert.pretrain.tasks import PackedRows
from symbert.sources import DEMO


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
    return glue.prepare("mrpc", DEMO, folder / "rows", max_examples=32, max_evaluation_examples=24)


def test_both_read_the_same_rows(folder, finetuning):
    ours = PackedRows(folder / "manifest.json", "train")[np.array([5])][0]
    assert pretrain.ListedRows(folder / "manifest.json")[5]["input_ids"] == ours.tolist()
    rows = pq.read_table(finetuning.data).filter(pc.field("split") == "validation").to_pylist()
    for ours, padded in zip(rows, glue.padded_rows(finetuning, "validation"), strict=True):
        length = len(ours["input_ids"])
        pads = [0] * (128 - length)
        assert padded["input_ids"] == ours["input_ids"] + pads
        assert padded["token_type_ids"] == ours["token_type_ids"] + pads
        assert padded["attention_mask"] == [1] * length + pads
        assert padded["label"] == ours["label"]
    assert len(rows) == 24


def test_a_family_that_reads_padded_rows_computes_what_its_peer_does(finetuning, folder):
    checkpoints = {glue.FAMILY: glue.write_foreign(folder / glue.FAMILY)}
    assert "outputs of each model equal those of the stock one" in glue.compare(finetuning, checkpoints, folder)


def test_a_wrong_loss_or_output_stops_the_benchmark(finetuning, folder, monkeypatch):
    task = pretrain.Task("tiny", 4, 2, False, folder / "manifest.json")  # batches of 4, computed by 2
    assert "the loss of each operator equals that of the stock model" in pretrain.compare(task)
    monkeypatch.setattr(pretrain, "fold", lambda model: pretrain.stock_model("tiny", 500, 0.0))
    with pytest.raises(SystemExit, match="tiny, symmetric, not compiled: the contestants do not compute the same"):
        pretrain.compare(task)
    stock_classifier = glue.stock_classifier
    monkeypatch.setattr(glue, "stock_classifier", lambda path, *rest: stock_classifier(folder / "pairwise", *rest))
    with pytest.raises(SystemExit, match="mrpc, original: the contestants do not compute the same: outputs"):
        glue.compare(finetuning, {"original": folder / "original"}, folder)
