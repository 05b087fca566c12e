"""The model card says no more than what is true of a checkpoint, and the hub reads it."""

import pytest
import yaml
from huggingface_hub import ModelCard
from huggingface_hub.repocard_data import eval_results_to_model_index

from model.models import configured
from symbert.model.card import Result, model_card
from symbert.sources import SOURCES

FACTS = {
    **{"size": "tiny", "attention": "pairwise", "pretrain_seed": 7, "steps": 1200, "step": 600, "parameters": 123_456},
    **{"validation_loss": 5.43218, "corpus_hash": "c0ffee", "settings_hash": "5e771", "corpus_source": "hub"},
}
TRAINED = {**configured("tiny", "pairwise").to_dict(), "architectures": ["SymBertForMaskedLM"]}
EXPORTED = {**TRAINED, "model_type": "bert", "pretraining": FACTS}
RESULT = Result(
    **{"task": "mrpc", "pipeline": "text-classification", "title": "GLUE mrpc", "repository": "nyu-mll/glue"},
    **{"folder": "mrpc", "split": "validation", "rows": 408, "published_rows": 408, "stand_in": False},
    **{"metric": "f1", "values": {1: 0.80, 2: 0.85}},
)


def with_values(result: Result, **values) -> Result:
    return Result(**{name: getattr(result, name) for name in result.__struct_fields__} | values)


def test_a_card_has_its_facts_its_licence_and_the_terms_of_its_corpus_and_claims_no_other():
    for source in SOURCES:
        card = model_card({**TRAINED, "pretraining": {**FACTS, "corpus_source": source}})
        front = yaml.safe_load(card.split("---\n")[1])
        assert front["license"] == "mit" and front["tags"] == ["symbert", "pairwise"]
        assert front.get("language") == (None if source in ("files", "dataset") else "en"), "of an unknown text none"
        assert front.get("datasets") == (["oscar-corpus/OSCAR-2301"] if source in ("mirror", "hub") else None)
        assert ("Common Crawl" in card) == (source in ("mirror", "hub")), source
        assert ("stands in for OSCAR" in card) == (source == "embedded")
        assert SOURCES[source].terms in card.split("## Licence")[1]
        assert "* pretrain_seed: 7\n" in card and "Not pre-trained" not in card
    started = model_card({**TRAINED, "pretraining": {"size": "tiny", "pretrain_seed": 7, "step": 0}})
    assert "Not pre-trained" in started and "steps:" not in started


@pytest.mark.parametrize("step", [0, 600])
def test_a_card_claims_neither_licence_nor_untrained_positions_of_a_checkpoint_that_a_run_began_from(step):
    """Which is anyone's: BERT's weights are Apache-2.0, and learned from rows of 512 tokens."""
    begun = {**FACTS, "step": step, "sequence_length": 64, "settings": {"begun_from": "c0ffee"}}
    card = model_card({**EXPORTED, "pretraining": begun})
    assert "license" not in yaml.safe_load(card.split("---\n")[1]) and "MIT" not in card
    assert "never trained" not in card and "Not pre-trained" not in card
    assert ("Trained on from a checkpoint" in card) == (step > 0)
    assert SOURCES["hub"].terms in card.split("## Licence")[1]


@pytest.mark.parametrize(
    ("architecture", "pipeline"),
    [
        ("BertForMaskedLM", "fill-mask"),
        ("BertLMHeadModel", "text-generation"),
        ("BertForSequenceClassification", "text-classification"),
        ("BertForQuestionAnswering", "question-answering"),
    ],
)
def test_the_hub_knows_the_task_and_the_library_of_a_model(architecture, pipeline):
    data = ModelCard(model_card({**EXPORTED, "architectures": [architecture]})).data
    assert (data.pipeline_tag, data.library_name) == (pipeline, "transformers")
    assert ModelCard(model_card({**TRAINED, "pretraining": FACTS})).data.library_name == "symbert", "with this project"


def test_positions_that_were_never_trained_are_said():
    def card(length):
        return model_card({**EXPORTED, "pretraining": {**FACTS, "sequence_length": length}})

    assert "rows of 64 tokens" in card(64) and "never trained" not in card(EXPORTED["max_position_embeddings"])
    untrained = model_card({**EXPORTED, "pretraining": {**FACTS, "step": 0, "sequence_length": 64}})
    assert "Not pre-trained" in untrained and "Pre-trained on rows" not in untrained
    tuned = {"pretraining": {**FACTS, "sequence_length": 64}, "finetuning": {"task": "mrpc", "max_length": 128}}
    tuned = model_card({**EXPORTED, **tuned})
    assert "never trained" not in tuned and "max_length: 128" in tuned, "longer rows were learned, and are not cut"


def test_parameters_that_were_counted_in_pretraining_are_not_passed_off_as_those_of_an_export_or_a_classifier():
    """A plain BERT has the key that `symmetric` saved, a classifier no head for masked tokens."""
    tuned = {**TRAINED, "pretraining": FACTS, "finetuning": {"task": "mrpc"}}
    for config in (EXPORTED, tuned):
        card = model_card(config)
        assert "* parameters in pre-training: 123456\n" in card and "* parameters: " not in card
    assert "* parameters: 123456\n" in model_card({**TRAINED, "pretraining": FACTS})


def test_a_learning_rate_of_pretraining_is_not_read_as_that_of_the_classifier():
    pretraining = {**FACTS, "settings": {"learning_rate": 1e-4}}
    card = model_card({**EXPORTED, "pretraining": pretraining, "finetuning": {"task": "mrpc", "finetune_seed": 3}})
    before, after = card.split("## Fine-tuning\n")
    assert "* learning_rate: 0.0001\n" in before.split("## Pre-training\n")[1] and "learning_rate" not in after
    assert "* finetune_seed: 3\n" in after and "finetune_seed" not in before
    assert "## Pre-training" not in model_card({**EXPORTED, "pretraining": pretraining})


def test_a_masked_model_tells_what_adapters_and_the_harness_do_with_it():
    card = model_card(EXPORTED)
    assert "pooler" in card and "lm-evaluation-harness" in card
    assert "pooler" not in model_card({**EXPORTED, "architectures": ["BertForSequenceClassification"]})


def test_scores_are_results_as_the_hub_writes_them():
    accuracy = with_values(RESULT, metric="accuracy", values={3: 0.7})
    part = with_values(RESULT, task="cola", folder="cola", title="GLUE cola", metric="matthews", rows=100)
    card = ModelCard(model_card(EXPORTED, [RESULT, accuracy, part]))
    results = card.data.eval_results
    told = [(each.dataset_type, each.dataset_config, each.metric_type, each.metric_value) for each in results]
    assert told == [
        ("nyu-mll/glue", "mrpc", "f1", 0.825),
        ("nyu-mll/glue", "mrpc", "accuracy", 0.7),
        ("nyu-mll/glue", "cola", "matthews_correlation", 0.825),
    ]
    assert results[0].metric_name == "f1, mean of 2 fine-tuning seeds" and "seed 3" in results[1].metric_name
    assert "100 of 408 rows" in results[2].dataset_name, "not passed off as the whole task"
    front = yaml.safe_load(model_card(EXPORTED, [RESULT, accuracy, part]).split("---\n")[1])
    written = eval_results_to_model_index(card.data.model_name, results)
    assert front["model-index"] == written, "the hub's own writer gives the same"
    assert "0.8000 to 0.8500" in card.text


def test_scores_on_stand_ins_and_on_the_users_own_rows_are_no_results_of_a_published_task():
    stand_in, own = with_values(RESULT, stand_in=True), with_values(RESULT, repository="", title="irony")
    card = model_card(EXPORTED, [stand_in, own])
    assert ModelCard(card).data.eval_results is None
    assert "stand-in rows" in card and "| irony |" in card


def test_a_classifier_names_the_rows_that_it_learned_and_the_encoder_that_it_was():
    config = {**EXPORTED, "architectures": ["BertForSequenceClassification"]}
    config["finetuning"] = {"task": "mrpc", "finetune_seed": 1, "base_model": "someone/tiny-pairwise"}
    data = ModelCard(model_card(config, [RESULT])).data
    assert data.datasets == ["oscar-corpus/OSCAR-2301", "nyu-mll/glue"] and data.base_model == "someone/tiny-pairwise"
    assert ModelCard(model_card(EXPORTED, [RESULT])).data.datasets == ["oscar-corpus/OSCAR-2301"], "an encoder none"
