"""Configurations as commands read them, beside what Snakemake makes of the same options."""

import pytest

from symbert.config import experiment_name
from symbert.errors import ConfigError, DataError, MissingInputError, UsageError, explain
from symbert.project import imported, read_chosen, read_config, refuse_repeated_keys


def test_options_stand_above_files_above_the_scale_above_the_configuration(root, tmp_path):
    (tmp_path / "own.yaml").write_text("pretrain: {steps: 1200, batch_size: 7}\nsweep: {attention: [shared]}\n")
    config = read_chosen(root, None, [tmp_path / "own.yaml"], ["pretrain={steps: 1400}", "experiment=mine"])
    assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (1400, 7)
    assert config["pretrain"]["warmup_steps"] == 100, "of the demo"
    assert config["glue"]["warmup_ratio"] == 0.1, "of config.yaml"
    assert (config["sweep"]["attention"], config["experiment"]) == (["shared"], "mine")


def test_the_scale_may_come_from_any_of_them(root, tmp_path):
    (tmp_path / "own.yaml").write_text("scale: laptop\n")
    assert read_chosen(root, None, [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 3000
    assert read_chosen(root, None, None, ["scale=paper"])["pretrain"]["steps"] == 200_000
    assert read_chosen(root, "paper", [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 200_000


def test_an_unknown_scale_names_the_near_match(root):
    with pytest.raises(ConfigError, match="config: 'scale' is 'demoo'; did you mean 'demo'"):
        read_chosen(root, None, None, ["scale=demoo"])


def test_a_scale_is_a_file_of_ones_own_and_its_results_have_its_name(root, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/two-nodes.yaml").write_text(
        "pretrain: {steps: 1200, processes: 2, nodes: 2}\nsweep: {sizes: [small]}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (str(tmp_path / "mine/two-nodes.yaml"), "~/mine/two-nodes.yaml"):
        config = read_chosen(root, path, None, ["pretrain={save_every: 600}", "sweep={curve: {sizes: []}}"])
        assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (1200, 256), (
            "of the file, of config.yaml"
        )
        assert (config["scale"], experiment_name(config)) == ("two-nodes", "two-nodes-embedded")


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("absent.yaml", MissingInputError, r"no file .*absent\.yaml; correct it, or choose from demo, laptop, "),
        (
            "demo.yaml",
            ConfigError,
            r"demo\.yaml would name its results demo, which is no name .* another scale; rename it",
        ),
        ("a b.yaml", ConfigError, "would name its results a b, which is no name of a folder"),
    ],
)
def test_a_scale_that_would_mix_with_another_or_is_not_there_is_refused(root, tmp_path, name, error, words):
    for own in ("demo.yaml", "a b.yaml"):
        (tmp_path / own).write_text("{}\n")
    with pytest.raises(error, match=words):
        read_chosen(root, str(tmp_path / name), None, None)


def test_texts_on_the_command_line_are_read_by_their_types(root):
    config = read_chosen(root, None, None, ["sweep={untrained: true, finetune_seeds: [1, 7]}", "mirror=null"])
    assert config["sweep"]["untrained"] is True and config["sweep"]["finetune_seeds"] == [1, 7]
    assert config["mirror"] is None


def test_an_option_without_a_value_a_file_without_settings_and_another_folder_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="write key=value"):
        read_chosen(root, None, None, ["scale"])
    (tmp_path / "own.yaml").write_text("scale\n")
    with pytest.raises(DataError, match=r"own\.yaml: holds no settings"):
        read_chosen(root, None, [tmp_path / "own.yaml"], None)
    with pytest.raises(MissingInputError, match="install symbert from its checkout"):
        read_config(tmp_path)


def test_what_is_not_yaml_is_named_and_no_bug(root, tmp_path):
    with pytest.raises(UsageError, match=r"--config sweep=\{: the value is not YAML .*; correct it"):
        read_chosen(root, None, None, ["sweep={"])
    (tmp_path / "own.yaml").write_text("a: [1\n")
    with pytest.raises(DataError, match=r"own\.yaml: not YAML .*; correct it"):
        read_chosen(root, None, [tmp_path / "own.yaml"], None)


def test_a_value_on_the_command_line_makes_no_object(root):
    """A tag of Python stays a text that the schema refuses; it calls nothing."""
    with pytest.raises(ConfigError, match="scale"):
        read_chosen(root, None, None, ["scale=!!python/object/apply:os.getcwd []"])


TWICE = "pretrain:\n  steps: 1200\n  batch_size: 7\n  steps: 2400\n"


def test_a_key_that_is_there_twice_does_not_lose_its_first_value_without_a_word(root, tmp_path):
    """YAML keeps the last one: 1,200 steps were asked for, 2,400 trained."""
    own = tmp_path / "own.yaml"
    own.write_text(TWICE)
    expected = f"{own}: 'steps' appears twice, in lines 2 and 4; keep one of them"
    for read in (lambda: read_chosen(root, None, [own], None), lambda: refuse_repeated_keys([own])):
        with pytest.raises(ConfigError) as refused:
            read()
        assert str(refused.value) == expected
    word = "glue={epochs: 1, epochs: 2}"
    for read in (lambda: read_chosen(root, None, None, [word]), lambda: refuse_repeated_keys([], ["--config", word])):
        with pytest.raises(ConfigError) as refused:
            read()
        assert str(refused.value) == "--config glue: 'epochs' appears twice, in line 1; keep one of them"


GLUE_TWICE = "glue={epochs: 1, epochs: 2}"
IN_GLUE = "--config glue: 'epochs' appears twice, in line 1; keep one of them"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([f"--config={GLUE_TWICE}"], IN_GLUE),
        (["--dry-run", "-C", "scale=demo", GLUE_TWICE, "--cores", "2"], IN_GLUE),
        (["--config", "scale=demo", "scale=laptop"], "--config scale appears twice; keep one of them"),
        (["--config", "scale=demo", "-n", "--config=scale=laptop"], "--config scale appears twice; keep one of them"),
    ],
)
def test_no_way_to_write_a_key_twice_on_the_command_line_loses_one_without_a_word(words, told):
    """With an equals sign, or as two words, the last one was taken."""
    with pytest.raises(ConfigError) as refused:
        refuse_repeated_keys([], words)
    assert str(refused.value) == told


def test_a_key_given_twice_to_a_command_is_refused_as_snakemakes_is(root):
    with pytest.raises(ConfigError) as refused:
        read_chosen(root, None, None, ["scale=demo", "scale=laptop"])
    assert str(refused.value) == "--config scale appears twice; keep one of them"
    assert explain(refused.value)[0] == 64


def test_words_of_other_options_of_snakemake_are_no_keys_of_the_configuration():
    words = ["--resources", "gpu=1", "--set-threads", "a=1", "a=2", "-n", "--config", "scale=demo", "--cores", "2"]
    refuse_repeated_keys([], words)


@pytest.mark.parametrize(
    "text",
    [
        "a: &few {steps: 1}\nb: {<<: *few, steps: 2}\nc: {steps: 3}\n",  # a merged key may be given another value
        "a: &itself [*itself]\n",
        '{\n\t"a": 1\n}\n',  # JSON, which Snakemake reads too
        "",
    ],
)
def test_keys_that_are_there_once_in_each_mapping_are_no_repetition(tmp_path, text):
    (tmp_path / "own.yaml").write_text(text)
    refuse_repeated_keys([tmp_path / "own.yaml"], ["--cores", "2", "all", "--config", "mirror=a: b: c"])


def test_the_files_of_the_project_have_no_key_twice(root):
    refuse_repeated_keys([root / "config.yaml", *(root / "workflow").rglob("*.yaml")])


def test_imported_scores_that_were_not_imported_are_named_with_the_command(tmp_path):
    with pytest.raises(MissingInputError, match="symbert import-scores DIR --name theirs"):
        imported(tmp_path / "imported-theirs")
