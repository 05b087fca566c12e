"""Scores of others, from a csv file to tables, figures and the page."""

from itertools import product

import pytest

from csv_rows import read_shown
from symbert.cli import main
from symbert.tasks import GLUE
from workflow.checkout import Checkout, check_out

ACCURACY = {"original": 0.75, "pairwise": 0.5, "mine": 0.6}  # mine is no operator of this project
HOLE = ("mine", 2, "rte")


def write_results(file):
    """Three models and two seeds on every task, one of which lacks a score, and one score of a model without a size."""
    lines = ["size,attention,task,finetune_seed,metric,value,rows", ",roberta,rte,1,,0.7,"]
    for (attention, accuracy), seed, task in product(ACCURACY.items(), (1, 2), GLUE.values()):
        values = dict.fromkeys(("accuracy", "f1", "matthews"), accuracy)
        values |= dict.fromkeys(("pearson", "spearman"), accuracy + seed / 100)
        if (attention, seed, task.name) != HOLE:
            for (split, column), metric in product(task.scores.items(), task.metrics):
                rows = task.official_rows[split]
                lines.append(f"base,{attention},{column},{seed},{metric},{values[metric]!r},{rows}")
    file.write_text("\n".join([*lines, ""]))


@pytest.fixture(scope="module")
def reported(root, tmp_path_factory) -> Checkout:
    """A checkout that reports on imported scores."""
    copy = check_out(root, tmp_path_factory.mktemp("imported") / "run")
    theirs = tmp_path_factory.mktemp("theirs") / "theirs.csv"
    write_results(theirs)
    results = copy.directory / "results/imported-theirs"
    assert main(["import-scores", str(theirs), "--name", "theirs", "--output", str(results)]) == 0
    outcome = copy.snakemake("all", "--config", "imported=theirs")
    assert outcome.code == 0, outcome.output[-5000:]
    return copy


def test_every_table_is_made_of_imported_scores_and_nothing_is_trained(reported):
    report = reported.directory / "results/imported-theirs/report"
    names = {path.stem for path in report.glob("tables/*.csv")}
    assert names >= {"table3_glue", "table3_published", "scores", "statistics", "milestones", "claims"}
    assert not [*report.glob("figures/*.png")], "no losses, no checkpoints"
    assert (report / "report.html").is_file()
    assert not (reported.directory / "results/imported-theirs/corpus").exists()


def test_the_imported_scores_are_those_of_table_3(reported):
    """original: 8 columns of 0.75 and stsb of 0.76 and 0.77; their mean is (8 · 75 + 76.5) / 9."""
    rows = read_shown(reported.directory / "results/imported-theirs/report/tables/table3_glue.csv")
    rows = {row["model"]: row for row in rows}
    assert [rows["base-original"][key] for key in ("glue_score", "std")] == ["75.17", "0.08"]
    assert rows["base-pairwise"]["glue_score"] == "50.17" and "base-original, the paper" in rows


def test_models_of_unknown_operators_and_with_holes_have_their_rows(reported):
    """A GLUE score of seed 1 alone, and none of a model with one task."""
    table = (reported.directory / "results/imported-theirs/report/tables/table3_glue.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    cells = {row[0]: row[1:] for row in rows if row}
    assert cells["base-mine"][:2] == ["60.11", "–"] and cells["base-mine"][-1] == "1"
    assert set(cells["roberta"]) == {"–", "70.00", "0"}
    assert "rte of base-mine (1 of 2)" in table


def test_imported_scores_reported_on_twice_are_nothing_to_do(reported):
    assert reported.snakemake("all", "--config", "imported=theirs").jobs == {}


def test_scores_that_were_not_imported_stop_before_any_job(reported):
    outcome = reported.snakemake("--dry-run", "--config", "imported=others")
    assert outcome.code != 0 and "symbert import-scores FILE.csv --name others" in outcome.output
