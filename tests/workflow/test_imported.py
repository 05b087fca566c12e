"""Scores of others, from the directories that Hugging Face's Trainer leaves to tables, figures and the page."""

import json

import pytest

from csv_rows import read_shown
from symbert.cli import main
from symbert.tasks import GLUE
from workflow.checkout import Checkout, check_out

RUN = "bert_base_{attention}_20240204-093411-seed{seed}_{task}_20240207-232501"
ACCURACY = {"vanilla": 0.75, "pairwise": 0.5, "mine": 0.6}  # mine is no operator of this project
HOLE = ("mine", 2, "rte")


def write_results(directory):
    """Three models and two seeds on every task but one, as `run_glue` names and writes them, and one score in a csv."""
    for attention, accuracy in ACCURACY.items():
        for seed in (1, 2):
            for task in GLUE.values():
                values = dict.fromkeys(("accuracy", "accuracy_mm", "f1", "matthews_correlation"), accuracy)
                values |= dict.fromkeys(("pearson", "spearmanr"), accuracy + seed / 100)
                rows = [task.official_rows[split] for split in task.scores]
                values |= {"samples": rows[0], "samples_mm": rows[-1]}
                path = directory / RUN.format(attention=attention, seed=seed, task=task.name) / "eval_results.json"
                path.parent.mkdir(parents=True)
                if (attention, seed, task.name) != HOLE:
                    path.write_text(json.dumps({f"eval_{key}": value for key, value in values.items()}))
    (directory / "scores.csv").write_text("model,task,finetune_seed,score\nroberta,rte,1,70 %\n")


@pytest.fixture(scope="module")
def reported(root, tmp_path_factory) -> Checkout:
    """A checkout that reports on imported scores."""
    copy = check_out(root, tmp_path_factory.mktemp("imported") / "run")
    theirs = tmp_path_factory.mktemp("theirs")
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
    assert outcome.code == 65 and "symbert import-scores DIR --name others" in outcome.output
