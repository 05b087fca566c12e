import json
import subprocess
import sys
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.config import sections
from symbert.errors import ConfigError
from symbert.glue.challenges import COLLECTIONS
from symbert.glue.noise import EDITS
from symbert.settings import (
    SECTIONS,
    Challenge,
    GlueSettings,
    NoiseKind,
    PackSettings,
    Recipe,
    hash_of,
    number,
    read_settings,
    settings_from,
    values_of,
)
from symbert.training.recipe import RECIPES

PACK = {
    "sequence_length": 64,
    "validation_sequences": 2,
    "max_documents": 3,
    "sequences_per_shard": 4,
}


def test_the_words_of_a_key_are_those_of_its_registry_in_the_stage():
    """They are read from its source: importing torch takes seconds."""
    assert get_args(Recipe) == tuple(RECIPES)
    assert get_args(NoiseKind) == (*EDITS, "mixed")
    assert get_args(Challenge) == tuple(COLLECTIONS)
    program = "import sys, symbert.settings; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize("section", SECTIONS)
def test_every_section_of_the_configuration_fills_its_class(config, section):
    values = sections(config)[section]
    settings = values_of(settings_from(values, SECTIONS[section], section))
    assert settings == values


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"sequence_lenght": 1}, "unknown key 'sequence_lenght'"),
        ({"sequence_length": "64"}, "'sequence_length' is '64'"),
        ({"sequence_length": True}, "'sequence_length' is True"),
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


WORDS = [
    ("corpus_source", "source", "disk", "'source' is 'disk'; choose from embedded, mirror, hub, files"),
    ("filter", "categories_from", "metadta", "'categories_from' is 'metadta'; did you mean 'metadata'?"),
    ("pretrain", "precision", "fp8", "'precision' is 'fp8'; did you mean 'fp32'?"),
    ("robustness", "sets", ["hans", "anli"], "'sets.1' is 'anli'; did you mean 'hans'?"),
]


@pytest.mark.parametrize(("section", "key", "value", "refused"), WORDS)
def test_a_word_that_no_key_knows_is_refused_in_a_settings_file_too(write_section, section, key, value, refused):
    """It was believed that the configuration's check had seen every file: an edited one kept other documents."""
    path = write_section(section, **{key: value})
    with pytest.raises(ConfigError) as refusal:
        read_settings(path, SECTIONS[section])
    assert str(refusal.value) == f"{path}: {refused}"


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("pack", "sequence_length", 4, "an integer ≥ 8 and ≤ 512"),
        ("pretrain", "dropout", 1, "a number ≥ 0 and < 1"),
        ("pretrain", "schedule_steps", 0, "an integer ≥ 1 | null"),
        ("robustness", "sets", "hans", "a list of hans | ax | advglue"),
        ("report", "pretrain", [], "a map of a text to true or false | a number | a text | null"),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_range(write_section, section, key, value, expected):
    path = write_section(section, **{key: value})
    with pytest.raises(ConfigError) as refusal:
        read_settings(path, SECTIONS[section])
    shown = "null" if value is None else repr(value)
    assert str(refusal.value) == f"{path}: '{key}' is {shown}, expected {expected}; correct it"


class LaterSettings(GlueSettings):
    """Fine-tuning with a key that is new."""

    layer_decay: number(gt=0, le=1) = 1.0


def test_a_new_key_makes_nothing_stale_where_it_has_the_value_of_before(config):
    """A sixth place to touch was the paper's values: with a new key, its own run was not recognised."""
    values = sections(config)["glue"]
    before = settings_from(values, GlueSettings, "here")
    for neutral in ({}, {"layer_decay": 1}, {"layer_decay": float("1.0")}):
        same = settings_from({**values, **neutral}, LaterSettings, "here")
        assert values_of(same) == values and hash_of(same) == hash_of(before)
    changed = settings_from({**values, "layer_decay": 0.9}, LaterSettings, "here")
    assert values_of(changed) == {**values, "layer_decay": 0.9} and hash_of(changed) != hash_of(before)


@given(st.dictionaries(st.text(max_size=5), st.integers(), max_size=6), st.randoms())
def test_a_hash_ignores_key_order_and_sees_every_value(values, random):
    shuffled = list(values.items())
    random.shuffle(shuffled)
    assert hash_of(dict(shuffled)) == hash_of(values)
    for key in values:
        assert hash_of({**values, key: values[key] + 1}) != hash_of(values)
