import json

import pytest
from transformers import BertConfig

from symbert.errors import ConfigError
from symbert.files import write_json
from symbert.model.configuration import DEFAULTS, Configuration, configuration_of, read_configuration
from symbert.model.hf import SymBertConfig
from symbert.operators import define

OWN = {"class": "pairwise", "start": "wide"}


@pytest.mark.parametrize("attention", ["original", "wider"])
def test_config_json_is_the_file_that_hugging_face_writes(tmp_path, attention, nothing_of_ones_own):
    define("wider", OWN)
    config = configuration_of("small", attention, 300, dropout=0.0)
    write_json(tmp_path / "ours.json", config.to_dict())
    values = json.loads((tmp_path / "ours.json").read_text())
    SymBertConfig.from_dict(values).to_json_file(tmp_path / "theirs.json", use_diff=False)
    assert (tmp_path / "ours.json").read_bytes() == (tmp_path / "theirs.json").read_bytes()
    assert values.get("operator") == (
        {**OWN, "class": "symbert.model.attention:PairwiseAttention"} if attention == "wider" else None
    )


def test_what_is_not_said_has_the_values_of_hugging_faces_bert():
    stock = BertConfig().to_dict()
    ours = {"attention", "pretraining", "model_type", "architectures"}
    read = json.loads(json.dumps({**stock, "id2label": stock["id2label"]}))
    expected = {key: read[key] for key in DEFAULTS.keys() - ours}
    assert {key: value for key, value in Configuration().to_dict().items() if key in expected} == expected
    assert Configuration().to_dict().keys() >= stock.keys()


def test_a_checkpoint_is_read_with_all_that_it_says(tmp_path):
    write_json(tmp_path / "config.json", {**configuration_of("tiny", "shared", 90).to_dict(), "finetuning": {"a": 1}})
    config = read_configuration(tmp_path)
    assert (config.attention, config.vocab_size, config.finetuning) == ("shared", 90, {"a": 1})
    assert config._name_or_path == str(tmp_path)


def test_another_kind_of_model_is_refused(tmp_path):
    write_json(tmp_path / "config.json", {**configuration_of("tiny", "shared", 90).to_dict(), "model_type": "bert"})
    with pytest.raises(ConfigError, match="config.json: 'model_type' is bert, expected symbert"):
        read_configuration(tmp_path)


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [({"pretraining": "x"}, "has the pretraining 'x'"), ({"attention": None}, "has the attention None")],
)
def test_facts_of_another_kind_are_no_bug_of_ours(tmp_path, changes, flaw):
    """It was believed that the facts of a run are an object where they are said: a text was an internal error."""
    write_json(tmp_path / "config.json", {**configuration_of("tiny", "shared", 90).to_dict(), **changes})
    with pytest.raises(ConfigError, match=f"config.json: {flaw}; delete it "):
        read_configuration(tmp_path)


def test_a_plain_bert_attends_as_the_original_where_it_is_taken(tmp_path):
    BertConfig(vocab_size=90, hidden_dropout_prob=0.2).save_pretrained(tmp_path)
    config = read_configuration(tmp_path, ("symbert", "bert"))
    assert (config.model_type, config.attention, config.vocab_size) == ("symbert", "original", 90)
    assert config.hidden_dropout_prob == 0.2 and config.pretraining is None


def test_an_operator_that_was_edited_since_is_refused(tmp_path):
    facts = {"settings": {"operator_code": "0" * 16}}
    write_json(tmp_path / "config.json", {**configuration_of("tiny", "shared", 90).to_dict(), "pretraining": facts})
    with pytest.raises(ConfigError, match="trained by other code of 'shared'"):
        read_configuration(tmp_path)
