"""Configurations as commands read them, beside what Snakemake makes of the same options."""

from pathlib import Path

import pytest

from symbert.errors import ConfigError
from symbert.experiment.layout import Experiment
from symbert.experiment.project import read_chosen, read_config


def test_options_stand_above_files_above_the_scale_above_the_configuration(root, tmp_path):
    (tmp_path / "own.yaml").write_text("pretrain: {steps: 1200, batch_size: 7}\nsweep: {attention: [shared]}\n")
    config = read_chosen(root, None, [tmp_path / "own.yaml"], ["pretrain={steps: 1400}", "experiment=mine"])
    assert (config.pretrain.steps, config.pretrain.batch_size) == (1400, 7)
    assert config.pretrain.warmup_steps == 10, "of the demo"
    assert config.glue.warmup_ratio == 0.1, "of config.yaml"
    assert (config.sweep.attention, config.experiment) == (["shared"], "mine")


def test_a_value_on_the_command_line_makes_no_object(root):
    """A tag of Python stays a text that the schema refuses; it calls nothing."""
    with pytest.raises(ConfigError, match="scale"):
        read_chosen(root, None, None, ["scale=!!python/object/apply:os.getcwd []"])


def test_the_configuration_that_an_experiment_wrote_runs_it_again(root, project):
    """`snakemake --configfile results/NAME/config.yaml`, whatever config.yaml of the project says by then."""
    sweep = {"attention": ["shared"], "curve": {"sizes": []}}
    chosen = {"experiment": "mine", "sweep": sweep, "pretrain": {"steps": 900}}
    experiment = Experiment(read_config(project, chosen))
    experiment.write()
    again = read_chosen(project, None, [Path("results/mine/config.yaml")], None)
    assert Experiment(again).record == experiment.record
