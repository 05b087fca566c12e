"""SQuAD 2.0's rows: the stand-in, and the publisher's as far as the mirror has them."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForQuestionAnswering, BertForQuestionAnswering

from glue.laboratory import records_in
from symbert.corpus.wordpiece import encoder
from symbert.glue.export import export_classifier
from symbert.glue.prepare import facts_of
from symbert.glue.sources import published_schema
from symbert.glue.squad import ANSWER, answer_of, best_threshold, exact, f1, measured, texts_of
from symbert.glue.tasks import published_split, task_named
from symbert.glue.train import load_classifier, logits_of, read_rows
from symbert.model.bert import SpanModel

TASK = task_named("squad2")


def table_of(root, split):
    return pq.read_table(root / published_split(TASK, split).location)


@pytest.fixture(scope="module")
def real(mirror):
    """The publisher's rows that the mirror has, and the tokenizer of BERT."""
    file = mirror / published_split(TASK, "validation").location

    table = pq.read_table(file)
    return table.cast(published_schema(TASK).remove_metadata()), encoder(
        mirror / "google-bert/bert-base-uncased/vocab.txt"
    )


def test_every_real_answer_is_recovered_from_its_tokens(real):
    """The first answer of each of 1,000 questions: in normal form for all but those that end inside of a word piece."""
    rows, tokenizer = real
    asked = [row for row in rows.to_pylist() if row["answers"]["text"]]
    assert (rows.num_rows, len(asked)) == (1000, 516)
    recovered = []
    for row in asked:
        context = tokenizer.encode(row["context"], add_special_tokens=False)
        first, last = answer_of(row, context)
        text = row["context"][context.offsets[first][0] : context.offsets[last][1]]
        assert row["answers"]["text"][0].strip() in text
        recovered.append(exact(text, row["answers"]["text"][:1]))
        assert f1(text, row["answers"]["text"][:1]) > 0
    assert np.mean(recovered) > 0.99


FEW = {"max_length": 40, "max_examples": 80, "max_evaluation_examples": 40}


@pytest.fixture
def prepared(laboratory):
    """The prepared stand-in, of some questions in rows of at most 40 tokens."""
    return laboratory.prepare("squad2", **FEW)


def test_a_checkpoint_is_fine_tuned_and_scored_with_the_threshold_of_what_was_held_out(laboratory, prepared):
    scores = laboratory.finetune(["squad2"], [1, 2], rows=FEW)
    rows = read_rows(prepared, TASK, torch.device("cpu"))
    assert facts_of(prepared)["rows"] == {"train": 80, "validation": 40}
    assert len(rows["validation"].truth) == 40 < len(rows["validation"]), "some contexts are longer than a row"
    assert 1 <= len(rows["held_out"].truth) <= 8 and max(each.lengths.max() for each in rows.values()) == 40
    for seed, record in enumerate(records_in(scores), start=1):
        details, kept = record["details"]["squad2"], scores.parent / f"finetuned/squad2/seed-{seed}.json"
        predicted = json.loads(kept.read_text())["predictions"]
        answers = {
            split: np.array([tuple(each) for each in predicted[split]], ANSWER) for split in ("validation", "held_out")
        }
        threshold = best_threshold(rows["held_out"].truth, answers["held_out"])
        assert record["thresholds"] == {"squad2": threshold}
        texts = texts_of(rows["validation"].truth, answers["validation"], threshold)
        assert details == measured(rows["validation"].truth, texts) and record["metrics"]["squad2"] == details["f1"]
        unanswerable = np.mean([not question.answers for question in rows["validation"].truth])
        assert record["majority"] == {"squad2": unanswerable} and 0.3 < unanswerable < 0.7
        assert record["constant_prediction"] == (not any(texts))


def test_stock_transformers_loads_the_exported_model_with_equal_logits(tmp_path, laboratory, prepared, vocabulary):
    start = laboratory.checkpoint()
    (start / "vocab.txt").write_text(vocabulary.read_text())
    scores = laboratory.finetune(["squad2"], rows=FEW, keep=300)
    weights = scores.parent / "finetuned/squad2/seed-1.safetensors"
    export_classifier(weights, start, tmp_path / "out")
    stock = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "out").eval()
    assert type(stock) is BertForQuestionAnswering
    assert "question-answering" in (tmp_path / "out/README.md").read_text()
    ours = load_classifier(start, 2, 0.0, SpanModel).eval()
    ours.load_state_dict(load_file(weights))
    batch = read_rows(prepared, TASK, torch.device("cpu"))["validation"].batch(np.array([0]))
    outputs = stock(batch.input_ids[None], token_type_ids=batch.token_type_ids[None])
    expected = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    torch.testing.assert_close(logits_of(ours, batch, "fp32"), expected, rtol=0, atol=1e-5)
