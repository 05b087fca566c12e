import dataclasses
import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from symbert.config import sections
from symbert.errors import ConfigError
from symbert.settings import SECTIONS, PackSettings, TaskSettings, hash_of, read_settings, settings_from

PACK = {
    "sequence_length": 64,
    "validation_sequences": 2,
    "max_documents": 3,
    "max_training_rows": None,
    "max_tokens": None,
    "sequences_per_shard": 4,
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_the_configuration_fills_its_class(config, section):
    values = sections(config, "embedded")[section]
    settings = dataclasses.asdict(settings_from(values, SECTIONS[section], section))
    assert settings == {**({"schedule_steps": None} if section == "pretrain" else {}), **values}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sequence_lenght": 1}, "unknown key 'sequence_lenght'"),
        ({"sequence_length": "64"}, "'sequence_length' is '64'"),
        ({"sequence_length": True}, "'sequence_length' is True"),
        ({"sequence_length": 6.4}, "'sequence_length' is 6.4"),
    ],
)
def test_a_wrong_key_or_type_is_refused_by_name(tmp_path, changes, named):
    path = tmp_path / "pack.json"
    path.write_text(json.dumps({**PACK, **changes}))
    with pytest.raises(ConfigError, match=named):
        read_settings(path, PackSettings)


def test_a_missing_key_is_refused_by_name(tmp_path):
    path = tmp_path / "pack.json"
    path.write_text(json.dumps({key: value for key, value in PACK.items() if key != "max_documents"}))
    with pytest.raises(ConfigError, match="missing key 'max_documents'"):
        read_settings(path, PackSettings)


@pytest.mark.parametrize("value", [None, "1e-4", True])
def test_a_wrong_type_within_a_map_is_refused(config, value):
    report = sections(config, "embedded")["report"]
    report["pretrain"]["learning_rate"] = value
    with pytest.raises(ConfigError, match="'pretrain' is .*learning_rate"):
        settings_from(report, SECTIONS["report"], "here")


def test_null_is_allowed_only_where_the_class_says_so():
    task = {"max_length": 128, "max_examples": None, "max_evaluation_examples": None, "allow_partial": False}
    assert settings_from(task, TaskSettings, "here").max_examples is None
    with pytest.raises(ConfigError, match="max_length"):
        settings_from({**task, "max_length": None}, TaskSettings, "here")


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6), st.randoms())
def test_a_hash_ignores_key_order_and_sees_every_value(values, random):
    shuffled = list(values.items())
    random.shuffle(shuffled)
    assert hash_of(dict(shuffled)) == hash_of(values)
    for key in values:
        assert hash_of({**values, key: values[key] + 1}) != hash_of(values)


def test_the_schema_the_configuration_and_the_scales_have_the_same_keys(root):
    schema = yaml.safe_load((root / "workflow/schemas/config.schema.yaml").read_text())
    values = yaml.safe_load((root / "config.yaml").read_text())

    def compare(node, part, where):
        assert set(node["properties"]) == set(part) == set(node["required"]), where
        for key, child in node["properties"].items():
            assert child.get("description"), f"{where}.{key} has no description"
            if "properties" in child:
                compare(child, part[key], f"{where}.{key}")

    compare(schema, values, "config")
