"""Operators, sizes and tasks of the user's own: from the configuration to every command, by name."""

import json
import os

import pytest

from symbert import cli, operators, sizes, tasks
from symbert.checks import check
from symbert.config import merge
from symbert.errors import ConfigError
from symbert.files import read_json
from symbert.own import VARIABLE, inherit_own
from symbert.paths import Experiment

DEEP = {"num_hidden_layers": 12, "hidden_size": 48, "num_attention_heads": 2, "intermediate_size": 256}
RANKED = {"class": "model.wrong_operators:Demanding", "rank": 8}
IRONY = {"train": ".", "validation": ".", "columns": ["text"], "labels": ["no", "yes"], "metric": "accuracy"}
MISCOUNTED = "model.wrong_operators:Miscounted"

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")


@pytest.fixture
def own(config):
    """A configuration with two operators and a size that this project does not have."""
    curve = {"sizes": ["deep"], "steps": {"deep": [300]}}
    sweep = {"sizes": ["tiny", "deep"], "attention": ["original", "ranked", MISCOUNTED], "curve": curve}
    own = {"operators": {"ranked": RANKED}, "sizes": {"deep": DEEP}, "tasks": {"irony": IRONY}}
    return merge(config, {**own, "sweep": {**sweep, "tasks": ["rte", "irony"]}})


def test_the_sweep_has_names_and_the_registries_what_they_stand_for(own):
    check(own)
    assert own["sweep"]["attention"] == ["original", "ranked", "miscounted"]
    assert operators.OPERATORS["ranked"].arguments == {"rank": 8}
    assert operators.OPERATORS["miscounted"].path == MISCOUNTED
    assert sizes.SIZES["deep"].num_hidden_layers == 12
    assert sizes.SIZES["deep"].initializer_range == pytest.approx(0.02 * 4), "a quarter of base's root of the width"
    assert tasks.task_named("irony").scores == {"validation": "irony"} and "irony" not in tasks.GLUE
    before = json.dumps(own)
    check(own)
    assert json.dumps(own) == before


def test_the_settings_of_a_run_say_what_its_names_stand_for(own):
    check(own)
    models = Experiment(own).models
    assert models["model-deep-ranked"]["operator"] == RANKED and models["model-deep-ranked"]["hidden_size"] == 48
    assert "operator" not in models["model-tiny-original"]
    other = models["model-deep-ranked"]["operator_code"]
    assert other not in [models[f"model-deep-{name}"]["operator_code"] for name in ("original", "miscounted")]


def test_a_command_knows_what_the_process_that_starts_it_has_defined(own, tmp_path):
    check(own)
    told = os.environ[VARIABLE]
    for registry in (operators.OPERATORS, sizes.SIZES):
        for name in ("ranked", "miscounted", "deep"):
            registry.pop(name, None)
    os.environ[VARIABLE] = told
    output = tmp_path / "parameters.json"
    words = ["--sizes", "tiny", "deep", "--attention", "ranked", "miscounted", "--output", str(output)]
    assert cli.main(["count-parameters", *words]) == 0
    counted = read_json(output)
    assert counted["deep"]["shape"]["num_hidden_layers"] == 12
    assert counted["tiny"]["attention_parameters"] == {"ranked": 8320, "miscounted": 8320}


def test_a_command_that_is_typed_by_hand_reads_them_from_a_configuration(tmp_path, capsys):
    """Whatever else stands in it."""
    file, output = tmp_path / "mine.yaml", tmp_path / "parameters.json"
    file.write_text(json.dumps({"operators": {"ranked": RANKED}, "sizes": {"deep": DEEP}, "scale": "laptop"}))
    words = ["count-parameters", "--sizes", "deep", "--attention", "ranked", "--output", str(output)]
    assert cli.main(["--own", str(file), *words]) == 0
    assert read_json(output)["deep"]["attention_parameters"].keys() == {"ranked"}
    file.write_text("sizes: {deep: {hidden_size: 48}}")
    assert cli.main(["--own", str(file), *words]) == 64
    said = capsys.readouterr().err
    assert said == f"symbert count-parameters: {file}: missing key 'num_hidden_layers' in 'sizes.deep'; add it\n"
    assert cli.main(["--own", str(tmp_path / "none.yaml"), *words]) == 65


def test_without_a_configuration_nothing_is_inherited():
    before = dict(operators.OPERATORS)
    inherit_own()
    assert before == operators.OPERATORS


def test_values_of_the_command_line_are_the_numbers_that_they_spell(config):
    changed = merge(config, {"sizes": {"deep": {key: str(value) for key, value in DEEP.items()}}})
    changed = merge(changed, {"operators": {"ranked": {**RANKED, "rank": "8"}}, "sweep": {"attention": ["ranked"]}})
    check(changed)
    assert operators.OPERATORS["ranked"].arguments == {"rank": 8} and sizes.SIZES["deep"].hidden_size == 48


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sizes": {"deep": {**DEEP, "hiden_size": 3}}}, "unknown key 'hiden_size' in 'sizes.deep'; did you mean"),
        ({"sizes": {"deep": {"hidden_size": 48}}}, "missing key 'num_hidden_layers' in 'sizes.deep'"),
        ({"sizes": {"deep": {**DEEP, "num_attention_heads": 5}}}, "is 5, which does not divide 'hidden_size'"),
        ({"tasks": {"irony": {**IRONY, "labels": None}}}, "'tasks.irony' has no labels, but not kind: regression"),
        ({"tasks": {"irony": {**IRONY, "labels": ["a", "a"]}}}, "'labels' has one twice (a, a)"),
        ({"tasks": {"irony": {**IRONY, "metric": "acuracy"}}}, "is 'acuracy'; did you mean 'accuracy'?"),
        ({"tasks": {"irony": {**IRONY, "labels": [0, 1, 2], "metric": "f1"}}}, "is f1, which needs two labels;"),
        ({"tasks": {"irony": {**IRONY, "columns": ["a", "b", "c"]}}}, "'tasks.irony.columns' is ['a', 'b', 'c'],"),
        ({"tasks": {"irony": {"train": "."}}}, "missing key 'validation' in 'tasks.irony'; add it"),
        ({"tasks": {"rte": IRONY}}, "'tasks' has 'rte', which is a task or column of this project"),
        ({"tasks": {"a/b": IRONY}}, "more than letters, digits, '_' and '-'; choose another name"),
        ({"tasks": {"irony": IRONY}, "sweep": {"tasks": ["irny"]}}, "'sweep.tasks.0' is 'irny'; did you mean 'irony'?"),
        ({"sizes": {"tiny": DEEP}}, "'sizes' has 'tiny', which is a size of this project"),
        ({"operators": {"ranked": {"rank": 8}}}, "'operators.ranked' has no class; add class:"),
        ({"operators": {"original": RANKED}}, "'original' is symbert.model.attention:OriginalAttention already"),
        ({"sweep": {"attention": ["no_such_module:Gated"]}}, "no module no_such_module for the operator"),
        ({"sweep": {"attention": ["model.wrong_operators:Gated"]}}, "no class Gated in it"),
        ({"sweep": {"attention": ["symbert.model.attention:SharedAttention", "shared"]}}, "has 'shared' twice"),
        (
            {"operators": {"demanding": RANKED}, "sweep": {"attention": [RANKED["class"]]}},
            "'demanding' is model.wrong_operators:Demanding already; give model.wrong_operators:Demanding a name",
        ),
    ],
)
def test_a_mistake_is_one_line_with_the_remedy(config, changes, message):
    with pytest.raises(ConfigError) as refused:
        check(merge(config, changes))
    assert message in str(refused.value) and "\n" not in str(refused.value)
