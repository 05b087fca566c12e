"""Configurations as commands read them, beside what Snakemake makes of the same options."""

import subprocess
import sys
from pathlib import Path

import pytest

from symbert.errors import ConfigError, DataError, UsageError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_chosen, read_config


def test_options_stand_above_files_above_the_scale_above_the_configuration(root, tmp_path):
    (tmp_path / "own.yaml").write_text("pretrain: {steps: 1200, batch_size: 7}\nsweep: {attention: [shared]}\n")
    config = read_chosen(root, None, [tmp_path / "own.yaml"], ["pretrain={steps: 1400}", "experiment=mine"])
    assert (config["pretrain"]["steps"], config["pretrain"]["batch_size"]) == (1400, 7)
    assert config["pretrain"]["warmup_steps"] == 10, "of the demo"
    assert config["glue"]["warmup_ratio"] == 0.1, "of config.yaml"
    assert (config["sweep"]["attention"], config["experiment"]) == (["shared"], "mine")


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
