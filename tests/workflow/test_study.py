"""A study by its workflow: run, gone on with, and its runs shared with another study."""

import csv
from pathlib import Path

import pytest
import yaml

from study.test_design import TINY
from workflow.checkout import Checkout, check_out


def write_study(directory: Path, name: str, seeds: list[int]) -> None:
    """A study of one operator at one rate."""
    axes = {"text": ["copies"], "size": ["tiny"], "attention": ["pairwise"]}
    study = {**TINY, "grids": {"both": {"axes": axes, "seeds": seeds}}, "contrasts": {}}
    (directory / "studies").mkdir(exist_ok=True)
    (directory / f"studies/{name}.yaml").write_text(yaml.safe_dump(study))
    (directory / f"studies/{name}.md").write_text("Which exits?\n")


@pytest.fixture(scope="module")
def checkout(root, tmp_path_factory) -> Checkout:
    """A copy of the project with a study of one seed, which has been run."""
    checkout = check_out(root, tmp_path_factory.mktemp("study") / "project")
    write_study(checkout.directory, "first", [1])
    outcome = checkout.snakemake("--config", "study=first")
    assert outcome.code == 0, outcome.output
    return checkout


def test_a_study_ends_with_its_page_and_the_table_of_its_runs(checkout):
    results = checkout.directory / "results/studies/first"
    (run,) = csv.DictReader((results / "runs.csv").open())
    assert len(run["losses"].split()) == 8  # 40 steps, evaluated every 5
    assert f"| pairwise   | {run['exit']} " in (results / "README.md").read_text()


@pytest.mark.campaign
def test_another_study_trains_only_the_runs_that_no_study_has(checkout):
    """A study with seeds 1 and 2 finds seed 1 finished, and its curve is the same."""
    runs = checkout.directory / "results/studies/runs"
    (first,) = runs.glob("*/seed-1.json")
    written = first.stat().st_mtime_ns
    write_study(checkout.directory, "second", [1, 2])
    outcome = checkout.snakemake("--config", "study=second")
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"train_cell": 1, "collect_runs": 1, "write_study": 1, "all": 1}
    assert first.stat().st_mtime_ns == written
    assert sorted(path.name for path in runs.glob("*/seed-*.json")) == ["seed-1.json", "seed-2.json"]
    rows = [
        (checkout.directory / f"results/studies/{name}/runs.csv").read_text().splitlines()[1]
        for name in ("first", "second")
    ]
    assert rows[0] == rows[1]


def test_a_study_that_there_is_not_is_refused_in_one_line(checkout):
    outcome = checkout.snakemake("--config", "study=third")
    assert outcome.code == 65
    assert "third.yaml: no such study; there are first" in outcome.output
