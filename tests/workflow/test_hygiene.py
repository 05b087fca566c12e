"""What a reader and a catalog expect of the workflow's files, and what Linux allows of its commands."""

import re
import shlex

import pytest
import yaml

from symbert.cli import main
from symbert.operators import OPERATORS
from workflow.checkout import check_out
from workflow.test_imported import write_results

LONGEST_COMMAND = 100_000  # characters; Linux takes arguments of 131,072 bytes, and bash gets the command as one
ALL = ", ".join(OPERATORS)


def read(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def experiments(root):
    """The experiments that continuous integration runs: what each changes, by its name."""
    matrix = read(root / ".github/workflows/ci.yml")["jobs"]["experiment"]["strategy"]["matrix"]["include"]
    return {entry["name"]: shlex.split(entry["config"].replace("$OPERATORS", ALL)) for entry in matrix}


def test_the_catalog_finds_what_it_reads(root):
    """The keys that its documentation lists, of the types that it names."""
    usage = read(root / ".snakemake-workflow-catalog.yml")["usage"]
    assert set(usage) == {"mandatory-flags", "software-stack-deployment"}
    assert all(isinstance(usage["mandatory-flags"][key], str) for key in ("desc", "flags"))
    deployment = usage["software-stack-deployment"]
    assert deployment.keys() == {"conda", "apptainer", "apptainer+conda", "report"} and deployment["report"] is True
    assert all(isinstance(value, bool) for value in deployment.values())


@pytest.mark.parametrize("name", ["every operator", "no pre-training, kept classifiers, no noise"])
def test_an_experiment_of_continuous_integration_is_planned(checkout, experiments, name):
    outcome = checkout.tiny("all", "--dry-run", "--config", *experiments[name])
    models = {"every operator": len(OPERATORS), "no pre-training, kept classifiers, no noise": 2}[name]
    assert outcome.code == 0 and outcome.jobs["pretrain_model"] == models, outcome.output
    assert ("measure_robustness" in outcome.jobs) == (name == "every operator")


def test_the_experiment_with_ones_own_text_is_planned(finished, experiments):
    """The finished chain has made the folder that this entry prepares."""
    outcome = finished.tiny("all", "--dry-run", "--config", *experiments["one's own text, the rest from a mirror"])
    assert outcome.code == 0 and outcome.jobs["filter_part"] == 4, outcome.output
    assert outcome.jobs["download_harmful_model"] == 1 and "write_embedded_corpus" not in outcome.jobs


def test_the_experiment_with_imported_scores_is_planned(root, experiments, tmp_path):
    copy = check_out(root, tmp_path / "run")
    write_results(tmp_path / "theirs.csv")
    results = copy.directory / "results/imported-theirs"
    assert main(["import-scores", str(tmp_path / "theirs.csv"), "--name", "theirs", "--output", str(results)]) == 0
    outcome = copy.tiny("all", "--dry-run", "--config", *experiments["imported scores"])
    assert outcome.code == 0 and outcome.jobs["tabulate_table3_glue"] == 1, outcome.output
    assert len(experiments) == 4, "plan the new entry of ci.yml here"


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
