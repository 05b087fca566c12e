import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

from left_overs import assert_nothing_is_left
from model.models import dense
from symbert.cli import main
from symbert.corpus.wordpiece import encoder
from symbert.errors import IntegrityError, MissingInputError, UsageError
from symbert.glue.export import export_classifier
from symbert.glue.train import load_classifier
from symbert.model.loading import load_model

LABELS = {"rte": ["entailment", "not_entailment"], "mnli": ["entailment", "neutral", "contradiction"]}
IDS = torch.arange(5, 17).reshape(2, 6)


@pytest.fixture
def finetuned(laboratory, vocabulary):
    """Fine-tunes an operator on a task and keeps the weights: the checkpoint, and their file."""

    def go(task="mnli", attention="pairwise", **glue):
        start = laboratory.checkpoint(attention)
        (start / "vocab.txt").write_text(vocabulary.read_text())
        (start / "tokenizer.json").write_text(encoder(vocabulary).to_str())
        (start / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
        scores = laboratory.finetune([task], attention=attention, keep=300, **glue)
        return start, scores.parent / "finetuned" / task / "seed-1.safetensors"

    return go


def logits(start, weights) -> torch.Tensor:
    """What the fine-tuned model says, before its export."""
    tensors = load_file(weights)
    model = load_classifier(start, len(tensors["classifier.bias"]), dropout=0.0).eval()
    model.load_state_dict(tensors)
    return dense(model, IDS)


def test_stock_transformers_loads_it_with_equal_logits_and_the_names_of_its_labels(finetuned, tmp_path):
    start, weights = finetuned()
    words = ["--weights", weights, "--checkpoint", start, "--output", tmp_path / "out"]
    assert main(["export-classifier", *map(str, words)]) == 0
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert type(model) is BertForSequenceClassification
    assert model.config.problem_type == "single_label_classification"
    assert list(model.config.id2label.values()) == LABELS["mnli"]
    torch.testing.assert_close(model(IDS).logits, logits(start, weights), rtol=0, atol=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path / "out")("ab")["input_ids"][0] == 2, "[CLS]"
    assert "stand in" in (tmp_path / "out/README.md").read_text(), "not passed off as MNLI"


def test_an_exported_regression_has_one_output_and_the_dropout_that_it_was_trained_with(
    finetuned, tmp_path, monkeypatch
):
    """It stated 0.1 whatever was used."""
    start, weights = finetuned("stsb", dropout=0.25)
    monkeypatch.chdir(tmp_path)
    words = ["--weights", weights, "--checkpoint", start, "--output", tmp_path / "out"]
    assert_nothing_is_left(["export-classifier", *map(str, words)], tmp_path)
    export_classifier(weights, start, tmp_path / "out")
    config = json.loads((tmp_path / "out/config.json").read_text())
    names = ("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout")
    assert [config[name] for name in names] == [0.25] * 3
    assert config["problem_type"] == "regression" and config["id2label"] == {"0": "LABEL_0"}


@pytest.mark.parametrize(("task", "labels"), [("rte", LABELS["rte"]), ("stsb", ["LABEL_0"])])
def test_an_operator_that_no_bert_equals_is_written_as_it_was_trained_with_a_warning(
    finetuned, tmp_path, capsys, task, labels
):
    """That of a regression was not to be loaded: its config.json told of two outputs."""
    start, weights = finetuned(task, "symmetric-others")
    export_classifier(weights, start, tmp_path / "out")
    assert "has no equal BERT" in capsys.readouterr().err
    model = load_model(tmp_path / "out")
    assert model.config.model_type == "symbert" and list(model.config.id2label.values()) == labels
    torch.testing.assert_close(dense(model, IDS), logits(start, weights))


def test_what_does_not_belong_together_or_is_damaged_is_refused_by_name(finetuned, checkpoint, tmp_path):
    start, weights = finetuned("rte")
    out = tmp_path / "out"
    for error, named, arguments in (
        (IntegrityError, r"model\.safetensors", (weights, checkpoint("pairwise", 2), out)),
        (MissingInputError, "glue.keep_finetuned", (weights.with_name("seed-2.safetensors"), start, out)),
        (UsageError, "exists already", (weights, start, start)),
    ):
        with pytest.raises(error, match=named):
            export_classifier(*arguments)
    save_file({"classifier.bias": torch.zeros(2)}, weights)
    with pytest.raises(IntegrityError, match="seed-1"):
        export_classifier(weights, start, out)
    assert not out.exists()
