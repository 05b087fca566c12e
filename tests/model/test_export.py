"""`symbert export`: plain BERT with equal logits, or a refusal that leaves nothing behind."""

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file
from transformers import BertForMaskedLM

from model.models import HEADS, IDS, dense, trained
from symbert.errors import ConfigError, DataError, IntegrityError, MissingInputError, UsageError
from symbert.files import read_json
from symbert.glue.export import export
from symbert.model.hf import write_model

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{n}" for n in range(195))]
FACTS = {"attention": "pairwise", "size": "tiny", "step": 20, "steps": 30}


def write_checkpoint(path, attention="pairwise", head="masked"):
    model = trained(attention, head)
    model.config.pretraining = {**FACTS, "attention": attention}
    model.config.id2label = dict(enumerate("abc"))
    write_model(model, path)
    (path / "README.md").unlink()
    (path / "vocab.txt").write_text("\n".join(WORDS) + "\n")
    (path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
    return model


@pytest.fixture
def checkpoint(tmp_path):
    write_checkpoint(tmp_path / "checkpoint")
    return tmp_path / "checkpoint"


FRESH = """
import sys, torch, transformers
from safetensors.torch import save_file
for auto in sys.argv[1:]:
    model = getattr(transformers, auto).from_pretrained(f"{auto}/bert").eval()
    save_file({"logits": model(torch.arange(24).reshape(2, 12)).logits}, f"{auto}/logits")
    assert type(model).__name__ == auto.replace("AutoModel", "Bert"), type(model)
assert not [name for name in sys.modules if name.startswith("symbert")]
"""
AUTO = {"masked": "AutoModelForMaskedLM", "classification": "AutoModelForSequenceClassification"}


def test_a_process_that_knows_nothing_of_this_project_computes_equal_logits(tmp_path):
    """With either head, in one process: its imports take longer than all else."""
    models = {}
    for head in HEADS:
        folder = tmp_path / AUTO[head]
        models[folder] = write_checkpoint(folder / "checkpoint", "pairwise", head)
        export(folder / "checkpoint", folder / "bert")
    words = [sys.executable, "-c", FRESH, *(folder.name for folder in models)]
    subprocess.run(words, check=True, capture_output=True, cwd=tmp_path)
    for folder, model in models.items():
        found = load_file(folder / "logits")["logits"]
        torch.testing.assert_close(found, dense(model, IDS), rtol=0, atol=1e-5)


@pytest.mark.parametrize("attention", ["original", "pairwise", "shared"])
def test_an_operator_is_exported_with_equal_logits_and_the_same_bytes_again(tmp_path, attention):
    model = write_checkpoint(tmp_path / "checkpoint", attention)
    for name in ("bert", "again"):
        export(tmp_path / "checkpoint", tmp_path / name)
    stock, report = BertForMaskedLM.from_pretrained(tmp_path / "bert", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    torch.testing.assert_close(stock.eval()(IDS).logits, dense(model, IDS), rtol=0, atol=1e-5)
    files = {path.name: path.read_bytes() for path in (tmp_path / "bert").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert files.keys() == {"config.json", "model.safetensors", "README.md", "vocab.txt", "tokenizer_config.json"}


def test_the_directory_is_plain_bert_with_its_tokenizer_and_its_cards_example_runs(
    checkpoint, tmp_path, monkeypatch, capsys
):
    export(checkpoint, tmp_path / "bert")
    assert capsys.readouterr().out == f"{tmp_path / 'bert'}: BertForMaskedLM\n"
    config = read_json(tmp_path / "bert/config.json")
    assert config["model_type"] == "bert" and config["architectures"] == ["BertForMaskedLM"]
    assert not {"attention", "auto_map"} & config.keys() and config["pretraining"].pop("operator")["name"] == "pairwise"
    assert config["pretraining"] == FACTS
    monkeypatch.chdir(tmp_path / "bert")
    names = {}
    exec((tmp_path / "bert/README.md").read_text().split("```python\n")[1].split("```")[0], names)
    assert names["tokenizer"]("w1 nothing").input_ids == [2, 6, 1, 3]
    assert names["model"](**names["tokenizer"]("w1 w2", return_tensors="pt")).logits.shape == (1, 4, 200)


def test_outputs_that_hold_something_are_refused_and_left_alone(checkpoint, tmp_path):
    """A second export was believed to replace the first: what it did not write survived and was loaded."""
    (tmp_path / "old").mkdir()
    (tmp_path / "old/pytorch_model.bin").write_text("old")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for output in ("checkpoint/../checkpoint", "old", "old/pytorch_model.bin"):
        with pytest.raises(UsageError):
            export(checkpoint, tmp_path / output)
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def changed(**values):
    def change(checkpoint):
        config = read_json(checkpoint / "config.json")
        (checkpoint / "config.json").write_text(json.dumps({**config, **values}))

    return change


def cut(checkpoint):
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])


MISTAKES = [
    (changed(hidden_size="64"), ConfigError, "config.json: no model can be built"),
    (changed(attention="pairwize"), ConfigError, "config.json: .*'pairwize'"),
    (changed(num_attention_heads=4), IntegrityError, "model.safetensors: 2 weights"),
    (
        lambda checkpoint: (checkpoint / "config.json").write_text("[]"),
        DataError,
        "config.json: expected 'object', got 'array'",
    ),
    (lambda checkpoint: (checkpoint / "config.json").unlink(), MissingInputError, "config.json"),
    (lambda checkpoint: (checkpoint / "model.safetensors").unlink(), MissingInputError, "model.safetensors"),
    (cut, IntegrityError, "model.safetensors"),
]


@pytest.mark.parametrize(("spoil", "error", "named"), MISTAKES)
def test_a_damaged_or_wrong_checkpoint_is_named_and_nothing_is_written(checkpoint, tmp_path, spoil, error, named):
    spoil(checkpoint)
    with pytest.raises(error, match=named.replace("[]", r"\[\]")):
        export(checkpoint, tmp_path / "bert")
    assert not (tmp_path / "bert").exists()
