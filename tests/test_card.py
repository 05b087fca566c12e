import pytest
import yaml

from symbert.card import SETTINGS, model_card
from symbert.model.bert import build_config
from symbert.model.fold import plain_config
from symbert.operators import OPERATORS
from symbert.settings import PretrainSettings
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
TRAINED = {**build_config("tiny", "pairwise").to_dict(), "architectures": ["SymBertForMaskedLM"], "pretraining": FACTS}


def test_a_card_says_what_the_model_is_and_how_it_was_made():
    card = model_card(TRAINED)
    for fact in (
        "# BERT tiny-pairwise, step 600 of 1,200",
        "2 layers, hidden size 64 and 2 heads",
        "Q(x) S Q(y)ᵀ",
        "with seed 7",
        "OSCAR-2301 (`c0ffee`)",
        "settings: `5e771`",
        "123,456",
        "5.4322 nats",
    ):
        assert fact in card, fact


def test_a_card_prints_the_settings_that_say_most_beside_their_hash():
    settings = {"steps": 1200, "batch_size": 16, "learning_rate": 1e-6, "adam_beta2": 0.98, "precision": "bf16"}
    card = model_card({**TRAINED, "pretraining": {**FACTS, "settings": settings}})
    assert "* settings: batch_size 16, steps 1200, learning_rate 1e-06, precision bf16 (`5e771`)\n" in card


def test_every_printed_setting_is_one_of_the_configuration():
    assert set(SETTINGS) <= set(PretrainSettings.__struct_fields__)


@pytest.mark.parametrize("missing", [*FACTS, None])
def test_a_fact_that_the_run_did_not_note_is_left_out(missing):
    """None of all facts too: a config.json may be of an earlier version, or edited."""
    facts = {name: fact for name, fact in FACTS.items() if name != missing}
    card = model_card({**TRAINED, "pretraining": facts})
    assert "None" not in card and "(``)" not in card
    assert card == model_card({**TRAINED, "pretraining": {**facts, **({missing: None} if missing else {})}})
    if missing not in ("settings_hash", "validation_loss", "attention"):
        assert "* validation loss at the last step: 5.4322 nats" in card


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


def test_ours_needs_this_projects_code_and_a_folded_model_does_not():
    folded = {**plain_config(build_config("tiny", "pairwise")).to_dict(), "architectures": ["BertForMaskedLM"]}
    ours, plain = model_card(TRAINED), model_card(folded)
    assert "import symbert.model.bert " in ours and "in the form that is trained" in ours
    assert "import symbert" not in plain and "folded exactly into plain BERT" in plain
    assert "`pairwise`" in plain  # where it comes from is still said


def test_a_classifier_is_loaded_as_one():
    card = model_card({**TRAINED, "architectures": ["SymBertForSequenceClassification"]})
    assert "AutoModelForSequenceClassification.from_pretrained" in card
    assert yaml.safe_load(card.split("---\n")[1])["pipeline_tag"] == "text-classification"


@pytest.mark.parametrize("attention", OPERATORS)
def test_a_model_that_no_run_made_has_a_card_too(attention):
    config = build_config("tiny", attention).to_dict()
    card = model_card(config)
    assert f"# BERT with {attention} attention\n" in card and OPERATORS[attention].summary in card
    assert "corpus:" not in card and "None" not in card
