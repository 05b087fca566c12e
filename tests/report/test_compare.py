"""Several results in one table: experiments, imports and scores of others, with differences from one model."""

import csv
import itertools
import json
import statistics

import pytest
from scipy.stats import ttest_ind

from report.written import unchecked
from symbert.cli import main
from symbert.configuration import define_own
from symbert.errors import MissingInputError, UsageError
from symbert.report.collect import collect, read_record
from symbert.report.compare import compare
from symbert.report.published import COLUMNS
from symbert.report.tidy import tables_of, write_csv


@pytest.fixture
def reported(experiment, monkeypatch, counted):
    """Writes an experiment with the tidy scores of its report; returns its folder."""
    monkeypatch.setattr("symbert.report.collect.counted", lambda *_: counted())

    def make(*arguments, **changes):
        folder = experiment(*arguments, **changes)
        return with_scores(folder)

    return make


def with_scores(folder):
    define_own(read_record(folder)[1]["configuration"])
    with unchecked():
        data = collect(read_record(folder)[1])
    write_csv(folder / "report/data/scores.csv", tables_of(data)["scores"])
    record = json.loads((folder / "experiment.json").read_text())
    (folder / f"report/experiment-{record['key']}.json").write_text(json.dumps(record))
    return folder


def table_of(tmp_path, *paths, **options):
    compare(list(paths), output=[tmp_path / "table.csv"], **options)
    with open(tmp_path / "table.csv", encoding="utf-8", newline="") as file:
        return {row.pop("model"): row for row in csv.DictReader(file)}


FIRST, SECOND = [0.50, 0.52, 0.57], [0.60, 0.61, 0.59, 0.99]


def test_experiments_and_scores_of_others_stand_in_one_table(reported, tmp_path, capsys):
    first = reported("first", {"original": FIRST})
    second = reported("second", {"original": SECOND, "pairwise": FIRST})
    theirs = tmp_path / "theirs.csv"
    rows = [f"mine,{column},{seed},{score}" for column in COLUMNS for seed, score in ((1, 0.7), (2, 0.9))]
    theirs.write_text("\n".join(["attention,task,finetune_seed,value", *rows, "other,rte,1,0.4"]))
    rows = table_of(tmp_path, first, second, theirs)
    assert list(rows) == [
        "first: tiny-original",
        "second: tiny-original",
        "second: tiny-pairwise",
        "theirs.csv: mine",
        "theirs.csv: other",
    ]
    printed = capsys.readouterr().out
    assert (
        "GLUE score less that of first: tiny-original" in printed
        and "second: GLUE; theirs.csv: GLUE, measured by others." in printed
    )
    row = rows["second: tiny-original"]
    common = [100 * score for score in SECOND[:3]]
    assert float(row["difference"]) == pytest.approx(statistics.fmean(common) - 100 * statistics.fmean(FIRST), abs=1e-9)
    interval = ttest_ind(common, [100 * score for score in FIRST], equal_var=False).confidence_interval(0.95)
    assert [float(row["low"]), float(row["high"])] == pytest.approx([*interval], abs=1e-9)
    assert (row["common_seeds"], row["finetune_seeds"]) == ("3", "4")
    assert float(row["std"]) == pytest.approx(100 * statistics.stdev(SECOND), abs=1e-9)
    splits = list(itertools.combinations(common + [100 * score for score in FIRST], 3))
    means = [abs(statistics.fmean(part) - (sum(splits[0]) + sum(splits[-1]) - sum(part)) / 3) for part in splits]
    share = sum(mean >= abs(float(row["difference"])) - 1e-9 for mean in means) / len(splits)
    assert float(row["holm_p"]) == pytest.approx(2 * share), "of the two differences that are tested"
    mine, other = rows["theirs.csv: mine"], rows["theirs.csv: other"]
    assert float(mine["difference"]) == pytest.approx(80 - 51, abs=1e-9) and mine["low"] == "", "of two seeds"
    assert float(other["rte"]) == 40 and other["glue_score"] == other["difference"] == ""
    assert (other["finetune_seeds"], other["common_seeds"]) == ("0", "0")
    assert rows["first: tiny-original"]["difference"] == "", "it is the reference"


def test_another_score_and_reference_may_be_chosen(reported, tmp_path):
    first = reported("first", {"original": FIRST, "pairwise": SECOND})
    rows = table_of(tmp_path, first, score="rte", reference="first: tiny-pairwise")
    assert float(rows["first: tiny-original"]["difference"]) == pytest.approx(-7, abs=1e-9)
    with pytest.raises(UsageError, match="--reference is 'tiny', expected one of first: tiny-original, first:"):
        table_of(tmp_path, first, reference="tiny")
    with pytest.raises(UsageError, match="--score is 'wnli', expected one of glue_score, mean_of_tasks, mrpc"):
        table_of(tmp_path, first, score="wnli")


def test_a_folder_without_scores_of_the_last_step_is_named(experiment, tmp_path):
    folder = experiment("first", {})
    with pytest.raises(MissingInputError, match="first: no report with scores of step 1800; run it to its end first"):
        table_of(tmp_path, folder)
    assert main(["compare", str(tmp_path / "gone")]) == 65


def test_a_finished_experiment_is_compared_by_its_name_alone(reported, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    reported("mine", {"original": FIRST, "pairwise": SECOND})
    assert main(["compare", "mine"]) == 0
    by_name = capsys.readouterr().out
    monkeypatch.chdir(tmp_path / "results/mine")
    assert main(["compare", str(tmp_path / "results/mine")]) == 0
    assert capsys.readouterr().out == by_name, "from another folder"
