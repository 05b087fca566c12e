import pytest
import yaml

from symbert.model.card import model_card
from symbert.model.configuration import configuration_of
from symbert.sources import SOURCES

FACTS = {
    "size": "tiny",
    "attention": "pairwise",
    "pretrain_seed": 7,
    "steps": 1200,
    "step": 600,
    "validation_loss": 5.43218,
    "parameters": 123_456,
    "corpus_hash": "c0ffee",
    "settings_hash": "5e771",
    "corpus_source": "hub",
}
TRAINED = {
    **configuration_of("tiny", "pairwise").to_dict(),
    "architectures": ["SymBertForMaskedLM"],
    "pretraining": FACTS,
}


def test_a_model_with_rotary_positions_is_not_loaded_by_a_class_that_refuses_it():
    card = model_card({**TRAINED, "position_embedding_type": "rotary"})
    assert "load_model(Path(" in card and "AutoModel" not in card


def test_the_front_matter_is_yaml_with_a_licence():
    front = yaml.safe_load(model_card(TRAINED).split("---\n")[1])
    assert front["license"] == "mit" and front["library_name"] == "transformers"
    assert front["pipeline_tag"] == "fill-mask"


def test_a_stand_in_corpus_is_not_passed_off_as_oscar():
    card = model_card({**TRAINED, "pretraining": {**FACTS, "corpus_source": "embedded"}})
    assert "It is not a model for use: its corpus stands in for OSCAR" in card and "OSCAR-2301" not in card
    assert "stands in" not in model_card(TRAINED)


def test_a_model_before_its_first_step_is_not_passed_off_as_pre_trained():
    card = model_card({**TRAINED, "pretraining": {"size": "tiny", "pretrain_seed": 7, "step": 0}})
    assert "# BERT tiny-pairwise\n" in card and "Not pre-trained: these are the weights that a run with seed 7" in card
    assert "Pre-trained on" not in card and "repeats what its corpus says" not in card
    assert "Not pre-trained" not in model_card(TRAINED)


@pytest.mark.parametrize("source", SOURCES)
def test_the_terms_of_oscar_are_said_of_oscar_alone(source):
    card = model_card({**TRAINED, "pretraining": {**FACTS, "corpus_source": source}})
    assert ("Common Crawl" in card) == (source in ("mirror", "hub"))
    assert SOURCES[source].terms in card.split("## Licence")[1] and "MIT" in card


def test_the_task_of_another_host_is_a_sentence():
    card = model_card({**TRAINED, "architectures": ["DecoderModel"], "pretraining": {**FACTS, "model_host": "decoder"}})
    assert "Trained with seed 7. Decoders predict the next token" in card
