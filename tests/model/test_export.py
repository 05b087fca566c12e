import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, BertForMaskedLM

from model.models import HEADS, IDS, dense, trained
from symbert.errors import ConfigError, DataError, IntegrityError, MissingInputError, UsageError
from symbert.files import read_json
from symbert.model.hf import export, write_model

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
def test_every_operator_is_exported_with_equal_logits(tmp_path, attention):
    model = write_checkpoint(tmp_path / "checkpoint", attention)
    export(tmp_path / "checkpoint", tmp_path / "bert")
    stock, report = BertForMaskedLM.from_pretrained(tmp_path / "bert", output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"]
    torch.testing.assert_close(stock.eval()(IDS).logits, dense(model, IDS), rtol=0, atol=1e-5)


def test_the_directory_is_plain_bert_with_its_tokenizer(checkpoint, tmp_path):
    export(checkpoint, tmp_path / "bert")
    config = read_json(tmp_path / "bert/config.json")
    assert config["model_type"] == "bert" and config["architectures"] == ["BertForMaskedLM"]
    assert not {"attention", "auto_map"} & config.keys()
    assert config["pretraining"] == FACTS
    assert AutoTokenizer.from_pretrained(tmp_path / "bert")("w1 nothing").input_ids == [2, 6, 1, 3]
    assert {path.name for path in (tmp_path / "bert").iterdir()} == {
        *("config.json", "model.safetensors", "README.md", "vocab.txt", "tokenizer_config.json")
    }


def test_the_example_of_the_model_card_runs_in_the_directory(checkpoint, tmp_path, monkeypatch):
    export(checkpoint, tmp_path / "bert")
    monkeypatch.chdir(tmp_path / "bert")
    names = {}
    exec((tmp_path / "bert/README.md").read_text().split("```python\n")[1].split("```")[0], names)
    assert names["model"](**names["tokenizer"]("w1 w2", return_tensors="pt")).logits.shape == (1, 4, 200)


def test_exporting_again_gives_the_same_bytes(checkpoint, tmp_path):
    for name in ("one", "two"):
        export(checkpoint, tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes(), path.name


def refusal(error, *arguments) -> str:
    with pytest.raises(error) as refused:
        export(*arguments)
    return str(refused.value)


def test_the_checkpoint_is_never_overwritten(checkpoint):
    before = (checkpoint / "config.json").read_bytes()
    assert "--output" in refusal(UsageError, checkpoint, checkpoint / ".." / "checkpoint")
    assert (checkpoint / "config.json").read_bytes() == before


@pytest.mark.parametrize("name", ["tokenizer.json", "pytorch_model.bin"])
def test_files_of_an_earlier_export_never_mix_with_a_new_one(checkpoint, tmp_path, name):
    """A second export was believed to replace the first: what it did not write survived and was loaded."""
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / name).write_text("old")
    assert name in refusal(UsageError, checkpoint, tmp_path / "bert")
    assert [path.name for path in (tmp_path / "bert").iterdir()] == [name]


@pytest.mark.parametrize("below", [".", "deeper/bert"])
def test_an_output_that_is_or_lies_below_a_file_is_refused(checkpoint, tmp_path, below):
    (tmp_path / "file").write_text("mine")
    said = refusal(UsageError, checkpoint, tmp_path / "file" / below)
    assert f"{tmp_path / 'file'} is no directory" in said and (tmp_path / "file").read_text() == "mine"


WRONG = {
    "hidden_size": ("64", "no model can be built"),
    "attention": ("pairwize", "'pairwize'"),
    "is_decoder": (True, "'is_decoder' is true, but this model attends in both directions"),
}


@pytest.mark.parametrize("key", WRONG)
def test_a_wrong_setting_of_the_checkpoint_is_no_bug_of_ours(checkpoint, tmp_path, key):
    value, reason = WRONG[key]
    config = read_json(checkpoint / "config.json")
    (checkpoint / "config.json").write_text(json.dumps({**config, key: value}))
    said = refusal(ConfigError, checkpoint, tmp_path / "bert")
    assert said.startswith(f"{checkpoint / 'config.json'}: ") and reason in said
    assert not (tmp_path / "bert").exists()


def test_heads_that_are_not_those_of_the_weights_are_refused(checkpoint, tmp_path):
    config = read_json(checkpoint / "config.json")
    (checkpoint / "config.json").write_text(json.dumps({**config, "num_attention_heads": 4}))
    said = refusal(IntegrityError, checkpoint, tmp_path / "bert")
    assert "model.safetensors: 2 weights are missing, unknown or of another shape than config.json says" in said


def test_a_config_json_that_is_no_object_is_refused(checkpoint, tmp_path):
    (checkpoint / "config.json").write_text("[]")
    said = refusal(DataError, checkpoint, tmp_path / "bert")
    assert f"{checkpoint / 'config.json'}: is [], expected an object; delete it " in said


def test_a_checkpoint_with_few_facts_of_its_run_is_exported(checkpoint, tmp_path):
    config = read_json(checkpoint / "config.json")
    (checkpoint / "config.json").write_text(json.dumps({**config, "pretraining": {"settings_hash": "5e771"}}))
    export(checkpoint, tmp_path / "bert")
    assert "* settings: `5e771`\n" in (tmp_path / "bert/README.md").read_text()


def test_weights_that_are_not_finite_are_refused_by_name(checkpoint, tmp_path):
    """The fold's own check was believed to find them, but attention may give zeros for logits that are NaN."""
    tensors = load_file(checkpoint / "model.safetensors")
    name = "bert.encoder.layer.1.attention.self.pairwise_factors"
    tensors[name][:] = float("nan")
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    said = refusal(IntegrityError, checkpoint, tmp_path / "bert")
    assert f"{checkpoint / 'model.safetensors'}: '{name}' is not finite" in said
    assert not (tmp_path / "bert").exists()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_a_missing_file_of_the_checkpoint_is_named_and_nothing_written(checkpoint, tmp_path, name):
    (checkpoint / name).unlink()
    assert str(checkpoint / name) in refusal(MissingInputError, checkpoint, tmp_path / "bert")
    assert not (tmp_path / "bert").exists()


def test_a_model_that_is_bert_already_is_refused(checkpoint, tmp_path):
    export(checkpoint, tmp_path / "bert")
    said = refusal(ConfigError, tmp_path / "bert", tmp_path / "again")
    assert "'model_type' is bert, expected symbert" in said


def test_damaged_weights_are_refused(checkpoint, tmp_path):
    weights = checkpoint / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    assert str(weights) in refusal(IntegrityError, checkpoint, tmp_path / "bert")


def test_weights_of_an_operator_that_was_edited_since_are_not_exported(checkpoint, tmp_path):
    """They would be folded by another formula than the one that they learned."""
    config = read_json(checkpoint / "config.json")
    config["pretraining"] |= {"settings": {"operator_code": "0123456789abcdef"}}
    (checkpoint / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=r"config.json: trained by other code of 'pairwise'"):
        export(checkpoint, tmp_path / "bert")
    assert not (tmp_path / "bert").exists()
