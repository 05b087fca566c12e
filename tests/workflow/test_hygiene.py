"""What a reader and a catalog expect of the workflow's files, and what Linux allows of its commands."""

import re
import shlex

import pytest
import yaml

from symbert.operators import OPERATORS

LONGEST_COMMAND = 100_000  # characters; Linux takes arguments of 131,072 bytes, and bash gets the command as one
ALL = ", ".join(OPERATORS)


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def experiments(root):
    """The experiments that continuous integration runs: what each changes, by its name."""
    matrix = read(root / ".github/workflows/ci.yml")["jobs"]["experiment"]["strategy"]["matrix"]["include"]
    return {entry["name"]: shlex.split(entry["config"].replace("$OPERATORS", ALL)) for entry in matrix}


@pytest.mark.parametrize("name", ["every operator", "no pre-training, kept classifiers, no noise"])
def test_an_experiment_of_continuous_integration_is_planned(checkout, experiments, name):
    outcome = checkout.tiny("all", "--dry-run", "--config", *experiments[name])
    models = {"every operator": len(OPERATORS), "no pre-training, kept classifiers, no noise": 2}[name]
    assert outcome.code == 0 and outcome.jobs["pretrain_model"] == models, outcome.output
    assert ("measure_robustness" in outcome.jobs) == (name == "every operator")


@pytest.mark.campaign
def test_no_command_of_the_largest_sweep_is_longer_than_linux_allows(checkout):
    """Seven operators, three pre-training seeds, 18 checkpoints each, 8 tasks: 3,024 score files in one table."""
    sweep = f"sweep={{sizes: [base], attention: [{ALL}], pretrain_seeds: [1, 2, 3]}}"
    settings = ("scale=paper", "source=hub", "corpus={parts: 300}", sweep)
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "--config", *settings)
    assert outcome.code == 0, outcome.output[-2000:]
    commands = re.findall(r"-m symbert --log \S+ (?:exhibit )?([a-z0-9_-]+) (.*)", outcome.output)
    longest = {}
    for name, words in commands:
        longest[name] = max(longest.get(name, 0), len(words.encode()))
    assert {"table-claims", "table-milestones", "pack-shards", "finetune"} <= longest.keys()
    assert max(longest.values()) < LONGEST_COMMAND, longest
    assert longest["table-claims"] < 4_000, longest  # folders and tasks are written once
