"""Configurations as commands read them, beside what Snakemake makes of the same options."""

import subprocess
import sys
from pathlib import Path

import pytest

from symbert.configuration import experiment_name
from symbert.errors import ConfigError, DataError, MissingInputError, UsageError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_chosen, read_config


def test_options_stand_above_files_above_the_scale_above_the_configuration(root, tmp_path):
    (tmp_path / "own.yaml").write_text("pretrain: {steps: 1200, batch_size: 7}\nsweep: {attention: [shared]}\n")
    config = read_chosen(root, None, [tmp_path / "own.yaml"], ["pretrain={steps: 1400}", "experiment=mine"])
    assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (1400, 7)
    assert config["pretrain"]["warmup_steps"] == 10, "of the demo"
    assert config["glue"]["warmup_ratio"] == 0.1, "of config.yaml"
    assert (config["sweep"]["attention"], config["experiment"]) == (["shared"], "mine")


def test_the_scale_may_come_from_any_of_them(root, tmp_path):
    (tmp_path / "own.yaml").write_text("scale: laptop\nsource: hub\n")
    assert read_chosen(root, None, [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 3000
    assert read_chosen(root, None, None, ["scale=paper", "source=hub"])["pretrain"]["steps"] == 200_000
    assert read_chosen(root, "paper", [tmp_path / "own.yaml"], None)["pretrain"]["steps"] == 200_000


def test_a_scale_is_a_file_of_ones_own_and_its_results_have_its_name(root, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/two-nodes.yaml").write_text(
        "pretrain: {steps: 1200, warmup_steps: 60, processes: 2, nodes: 2}\nsweep: {sizes: [small]}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    for path in (str(tmp_path / "mine/two-nodes.yaml"), "~/mine/two-nodes.yaml"):
        config = read_chosen(root, path, None, ["pretrain={save_every: 600}", "sweep={curve: {sizes: []}}"])
        assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (1200, 256), (
            "of the file, of config.yaml"
        )
        assert experiment_name({**config, "experiment": None}) == config["experiment"] == "two-nodes-embedded"


@pytest.mark.parametrize(
    ("name", "error"), [("absent.yaml", MissingInputError), ("demo.yaml", ConfigError), ("a b.yaml", ConfigError)]
)
def test_a_scale_that_would_mix_with_another_or_is_not_there_is_refused(root, tmp_path, name, error):
    for own in ("demo.yaml", "a b.yaml"):
        (tmp_path / own).write_text("{}\n")
    with pytest.raises(error, match=name):
        read_chosen(root, str(tmp_path / name), None, None)


def test_texts_on_the_command_line_are_read_by_their_types(root):
    config = read_chosen(root, None, None, ["sweep={untrained: true, finetune_seeds: [1, 7]}", "mirror=null"])
    assert config["sweep"]["untrained"] is True and config["sweep"]["finetune_seeds"] == [1, 7]
    assert config["mirror"] is None


@pytest.mark.parametrize(
    ("options", "content", "error", "message"),
    [
        (["scale"], None, UsageError, "write key=value"),
        (["sweep={"], None, UsageError, r"--config sweep=\{: the value is not YAML"),
        (["scale=demoo"], None, ConfigError, "'scale' is 'demoo'; did you mean 'demo'"),
        (None, "scale\n", DataError, r"own\.yaml: holds no settings"),
        (None, "a: [1\n", DataError, r"own\.yaml: not YAML"),
    ],
)
def test_wrong_options_and_files_are_named(root, tmp_path, options, content, error, message):
    (tmp_path / "own.yaml").write_text(content or "")
    with pytest.raises(error, match=message):
        read_chosen(root, None, [tmp_path / "own.yaml"] if content else None, options)


def test_a_value_on_the_command_line_makes_no_object(root):
    """A tag of Python stays a text that the schema refuses; it calls nothing."""
    with pytest.raises(ConfigError, match="scale"):
        read_chosen(root, None, None, ["scale=!!python/object/apply:os.getcwd []"])


def test_an_edit_of_the_users_file_wins_over_the_scale(project):
    """An edit of `pretrain.steps` did nothing at scale demo, whose file says how many steps it has."""
    with open(project / "config.yaml", "a") as file:
        file.write("pretrain: {steps: 3000}\n")
    assert read_config(project)["pretrain"]["steps"] == 3000
    assert read_config(project, {"pretrain": {"steps": 2500}})["pretrain"]["steps"] == 2500


def test_snakemake_ends_with_64_and_one_line_for_a_wrong_configuration(root, tmp_path):
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"), "-n"]
    command += ["--config", "pretrain={stepz: 5}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    line = "symbert: config: unknown key 'stepz' in 'pretrain'; did you mean 'steps'?"
    assert done.returncode == 64 and line in done.stderr.splitlines()
    assert "Traceback" not in done.stderr and not (tmp_path / "results").exists()


def test_the_configuration_that_an_experiment_wrote_runs_it_again(root, project):
    """`snakemake --configfile results/NAME/config.yaml`, whatever config.yaml of the project says by then."""
    chosen = {
        "experiment": "mine",
        "sweep": {"attention": ["shared"], "curve": {"sizes": []}},
        "pretrain": {"steps": 900},
    }
    experiment = Experiment(read_config(project, chosen))
    experiment.write()
    again = read_chosen(project, None, [Path("results/mine/config.yaml")], None)
    assert Experiment(again).record == experiment.record
