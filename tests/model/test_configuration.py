import json

import pytest
from transformers import BertConfig

from model.models import configured, defined
from symbert.errors import ConfigError, DataError
from symbert.files import write_json
from symbert.model.configuration import DEFAULTS, Configuration, read_configuration
from symbert.operators import operator_of

SHARED = "symbert.model.attention:SharedAttention"


def test_config_json_is_the_file_that_hugging_face_writes(tmp_path):
    wider = defined("wider", **{"class": "pairwise", "init_scale": "wide"})
    config = configured("small", wider, 300, dropout=0.0)
    write_json(tmp_path / "ours.json", config.to_dict())
    values = json.loads((tmp_path / "ours.json").read_text())
    BertConfig.from_dict(values).to_json_file(tmp_path / "theirs.json", use_diff=False)
    theirs = (tmp_path / "theirs.json").read_text()
    assert (tmp_path / "ours.json").read_text() == theirs.replace('"model_type": "bert"', '"model_type": "symbert"')
    assert operator_of(values) == wider


def test_what_is_not_said_has_the_values_of_hugging_faces_bert():
    stock = BertConfig().to_dict()
    ours = {"attention", "pretraining", "model_type", "architectures"}
    read = json.loads(json.dumps({**stock, "id2label": stock["id2label"]}))
    expected = {key: read[key] for key in DEFAULTS.keys() - ours}
    assert {key: value for key, value in Configuration().to_dict().items() if key in expected} == expected
    assert Configuration().to_dict().keys() >= stock.keys()


def test_a_checkpoint_is_read_with_all_that_it_says(tmp_path):
    write_json(tmp_path / "config.json", {**configured("tiny", "shared", 90).to_dict(), "finetuning": {"a": 1}})
    config = read_configuration(tmp_path)
    assert (config.attention, config.vocab_size, config.finetuning) == ("shared", 90, {"a": 1})
    assert config._name_or_path == str(tmp_path)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "roberta"}, "'model_type'"),
        ({"pretraining": "x"}, "pretraining"),  # it was an internal error
        ({"attention": None}, "attention"),
        ({"operator": {"name": "shared", "path": SHARED, "versions": {"SharedAttention": 2}}}, "the code of 'shared'"),
        ({"operator": {"class": SHARED}}, "'operator'"),
    ],
)
def test_a_checkpoint_of_another_kind_is_refused(tmp_path, changes, named):
    write_json(tmp_path / "config.json", {**configured("tiny", "shared", 90).to_dict(), **changes})
    with pytest.raises((ConfigError, DataError), match=f"config.json: .*{named}"):
        read_configuration(tmp_path)


def test_a_plain_bert_attends_as_the_original_where_it_is_taken(tmp_path):
    BertConfig(vocab_size=90, hidden_dropout_prob=0.2).save_pretrained(tmp_path)
    config = read_configuration(tmp_path)
    assert (config.model_type, config.attention, config.vocab_size) == ("symbert", "original", 90)
    assert config.hidden_dropout_prob == 0.2 and config.pretraining is None
