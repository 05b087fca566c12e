"""Configurations as commands read them, beside what Snakemake makes of the same options."""

import pytest

from symbert.errors import ConfigError, DataError, MissingInputError, UsageError
from symbert.project import read_chosen, read_config


def test_options_stand_above_files_above_the_scale_above_the_configuration(root, tmp_path):
    (tmp_path / "own.yaml").write_text("pretrain: {steps: 1200, batch_size: 7}\nsweep: {attention: [shared]}\n")
    config = read_chosen(root, None, [tmp_path / "own.yaml"], ["pretrain={steps: 3000}", "experiment=mine"])
    assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (3000, 7)
    assert config["pretrain"]["learning_rate"] == 1e-3, "of the demo"
    assert config["glue"]["epochs"] == 5, "of config.yaml"
    assert (config["sweep"]["attention"], config["experiment"]) == (["shared"], "mine")


def test_the_scale_may_come_from_any_of_them(root, tmp_path):
    (tmp_path / "own.yaml").write_text("scale: laptop\n")
    assert read_chosen(root, None, [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 3000
    assert read_chosen(root, None, None, ["scale=paper"])["pretrain"]["steps"] == 200_000
    assert read_chosen(root, "paper", [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 200_000


def test_texts_on_the_command_line_are_read_by_the_schema(root):
    config = read_chosen(root, None, None, ["sweep={untrained: true, finetune_seeds: [1, 7]}", "mirror=null"])
    assert config["sweep"]["untrained"] is True and config["sweep"]["finetune_seeds"] == [1, 7]
    assert config["mirror"] is None


def test_an_option_without_a_value_a_file_without_settings_and_another_folder_are_refused(root, tmp_path):
    with pytest.raises(UsageError, match="write key=value"):
        read_chosen(root, None, None, ["scale"])
    (tmp_path / "own.yaml").write_text("scale\n")
    with pytest.raises(DataError, match=r"own\.yaml: holds no settings"):
        read_chosen(root, None, [tmp_path / "own.yaml"], None)
    with pytest.raises(MissingInputError, match="run this in the project's folder"):
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
