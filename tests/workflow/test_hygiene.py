"""What continuous integration runs, and what Linux allows of the workflow's commands."""

import re
import shlex

import pytest
import yaml

from symbert.operators import OPERATORS

LONGEST_COMMAND = 4_000  # characters: a command names a file or a folder, not what it reads
ALL = ", ".join(OPERATORS)


@pytest.mark.parametrize("name", ["every operator", "no pre-training, kept classifiers, no noise"])
def test_an_experiment_of_continuous_integration_is_planned(root, checkout, name):
    steps = yaml.safe_load((root / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]["experiment"]
    words = {entry["name"]: entry["config"] for entry in steps["strategy"]["matrix"]["include"]}
    outcome = checkout.tiny("--dry-run", "--config", *shlex.split(words[name].replace("$OPERATORS", ALL)))
    models = {"every operator": len(OPERATORS), "no pre-training, kept classifiers, no noise": 2}[name]
    assert outcome.code == 0 and outcome.jobs["pretrain"] == models, outcome.output
    assert ("score_robustness" in outcome.jobs) == (name == "every operator")


@pytest.mark.campaign
def test_no_command_of_the_largest_sweep_is_long(checkout):
    """All operators, three pre-training seeds, 18 checkpoints of each, 8 tasks."""
    sweep = f"sweep={{sizes: [base], attention: [{ALL}], pretrain_seeds: [1, 2, 3]}}"
    settings = ("scale=paper", "source=hub", "corpus={parts: 300}", sweep)
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--config", *settings)
    assert outcome.code == 0, outcome.output[-2000:]
    commands = re.findall(r"-m symbert --log .*", outcome.output)
    assert len(commands) > 1_000 and max(map(len, commands)) < LONGEST_COMMAND
