import json

import pyarrow.parquet
import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from transformers import AutoModelForSequenceClassification, AutoTokenizer, BertForSequenceClassification

from glue.laboratory import records_in
from left_overs import assert_nothing_is_left
from model.models import dense
from symbert.cli import main
from symbert.corpus.wordpiece import encoder
from symbert.errors import IntegrityError, MissingInputError, UsageError
from symbert.files import write_json
from symbert.glue.export import export, export_classifier
from symbert.glue.metrics import hashed
from symbert.glue.train import load_classifier
from symbert.model.loading import load_model
from symbert.sources import DEMO

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
    words = ["--weights", weights, "--checkpoint", start, "--output", tmp_path / "out", "--base-model", "someone/tiny"]
    assert main(["export-classifier", *map(str, words)]) == 0
    data = ModelCard.load(tmp_path / "out/README.md").data
    assert (data.pipeline_tag, data.base_model, data.eval_results) == ("text-classification", "someone/tiny", None)
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out").eval()
    assert type(model) is BertForSequenceClassification
    assert model.config.problem_type == "single_label_classification"
    assert list(model.config.id2label.values()) == LABELS["mnli"]
    torch.testing.assert_close(model(IDS).logits, logits(start, weights), rtol=0, atol=1e-5)
    assert AutoTokenizer.from_pretrained(tmp_path / "out")("ab")["input_ids"][0] == 2, "[CLS]"
    assert "stand in" in (tmp_path / "out/README.md").read_text(), "not passed off as MNLI"


def test_stock_transformers_predicts_from_the_text_what_was_scored(finetuned, tmp_path):
    """Whatever length the classifier had learned, the tokenizer cut at 512 tokens."""
    start, weights = finetuned("stsb", rows={"max_length": 16, "max_evaluation_examples": None})
    export_classifier(weights, start, tmp_path / "out")
    rows = pyarrow.parquet.read_table(DEMO / "nyu-mll/glue/stsb/validation-00000-of-00001.parquet").to_pydict()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    batch = tokenizer(rows["sentence1"], rows["sentence2"], truncation=True, padding=True, return_tensors="pt")
    assert batch["input_ids"].shape[1] == 16, "some are cut"
    with torch.no_grad():
        grades = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")(**batch).logits.squeeze(1)
    expected = torch.tensor(json.loads(weights.with_suffix(".json").read_text())["predictions"]["validation"])
    torch.testing.assert_close(grades, expected, rtol=0, atol=1e-5)


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


def test_an_encoder_is_exported_with_the_means_of_its_scores(laboratory, tmp_path):
    """Files of two selections may have the same records."""
    files = [laboratory.finetune(["mnli"], seeds) for seeds in ((1, 2), (2, 3))]
    files.append(laboratory.finetune(["mrpc"]))
    for file in files:  # as if the rows were the published ones
        write_json(file, [hashed({**record, "stand_in": False}) for record in records_in(file)])
    start = laboratory.checkpoint()
    words = ["--checkpoint", start, "--output", tmp_path / "out", "--scores", *files]
    assert main(["export", *map(str, words)]) == 0
    seeds = {record["finetune_seed"]: record["metrics"] for file in files[:2] for record in records_in(file)}
    found = {
        (each.dataset_config, each.dataset_split, each.metric_type): each.metric_value
        for each in ModelCard.load(tmp_path / "out/README.md").data.eval_results
    }
    assert len(seeds) == 3 and len(found) == 4
    for split in ("matched", "mismatched"):
        mean = sum(metrics[f"mnli_{split}"] for metrics in seeds.values()) / 3
        assert found["mnli", f"validation_{split}", "accuracy"] == pytest.approx(mean, abs=5e-5)
    (record,) = records_in(files[2])
    assert found["mrpc", "validation", "f1"] == pytest.approx(record["details"]["mrpc"]["f1"], abs=5e-5)


def test_scores_of_other_weights_or_of_two_protocols_are_not_put_on_a_card(laboratory, tmp_path):
    others = laboratory.finetune(["rte"], weights=2)
    with pytest.raises(IntegrityError, match="give the scores of this checkpoint"):
        export(laboratory.checkpoint(), tmp_path / "out", [others])
    files = [laboratory.finetune(["rte"], epochs=epochs) for epochs in (1, 2)]
    with pytest.raises(UsageError, match="rte by the protocols .* give the files of one"):
        export(laboratory.checkpoint(), tmp_path / "out", files)
    assert not (tmp_path / "out").exists()
