"""The page of models from elsewhere, without and beside models that were pre-trained here: its numbers by formulas."""

import itertools
import json
import math
import random
import re
import statistics
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import convert, structs, to_builtins
from scipy import stats

from csv_rows import read, read_shown
from report.conftest import COLUMNS, noise_set, record, robustness_record, write
from report.minimal_pairs import minimal_pairs
from symbert.cli import main
from symbert.configuration import Configuration, Model
from symbert.errors import DataError
from symbert.experiment.power import detectable_effect
from symbert.foreign import ForeignModel, Tokenizer
from symbert.glue.metrics import hashed
from symbert.glue.score import ScoreRecord
from symbert.report.collect import collect, read_record
from symbert.report.evaluate import lines_of
from symbert.report.statistics import Comparison, Interval, holm
from symbert.report.tables.robustness import robustness_table
from symbert.report.tables.scores import glue_table, paired_table
from symbert.steps import File

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
NINE = [column for task in TASKS for column in COLUMNS[task]]
SEEDS = (1, 2, 3, 4, 5)
RATES = {"1e-05": [0.60, 0.62], "2e-05": [0.63, 0.67], "5e-05": []}  # the highest one diverges
SHA = "0123456789abcdef" * 4


def model_of(name, family, commit=""):
    """A foreign model: of the hub, with a commit, or in a folder."""
    folder = f"results/published/{name}" if commit else f"./{name}"
    digest = None if commit else SHA
    tokenizer = Tokenizer(family, {"tokenizer.json": File(f"{folder}/tokenizer.json", SHA)})
    content = {file: File(f"{folder}/{file}", digest) for file in ("config.json", "model.safetensors")}
    return ForeignModel(
        name=name, model_type=family, parameters=1234, content=content, tokenizer=tokenizer,
        repository=f"owner/{name}" if commit else "", commit=commit,
    )  # fmt: skip


MODELS = [model_of("first", "bert", "c0ffee" * 6 + "abcd"), model_of("other", "roberta"), model_of("a-third", "mpnet")]
LEVELS = {"first": 0.6, "other": 0.64, "a-third": 0.602, "original": 0.55, "pairwise": 0.56}  # mean scores


def score_of(model, column, seed, run=1):
    """Scores whose differences are 1 % by tasks and seeds."""
    source = random.Random(f"{model} {column} {seed} {run}")
    return LEVELS[model] + 0.02 * NINE.index(column) + source.gauss(0, 0.01)


def scored(model, task, seed, run=1, **changes):
    """A record of a foreign model, as the writer has it; of ours with a size and a step."""
    scores = {column: score_of(model, column, seed, run) for column in COLUMNS[task]}
    facts = record("", model, None, task, seed, metrics=scores, pretrain_seed=run, settings_hash=f"5e77 {model}")
    facts |= {"data_sha256": f"{task} by {model}", "origin": f"owner/{model}@c0ffee", "model_type": "bert"}
    facts |= {"head": "BertForSequenceClassification"}
    if model in ("original", "pairwise"):
        facts |= {"size": "tiny", "step": 1800, "settings_hash": "0123", "data_sha256": task}
        facts |= {"origin": "", "model_type": "", "head": ""}
    return hashed(to_builtins(ScoreRecord(**facts | changes)))


@pytest.fixture
def experiment(tmp_path, monkeypatch, configuration, report_settings):
    """Writes experiment.json, the models and their records, with the changes of a model's; returns the folder."""

    def make(ours=(), runs=(1,), models=MODELS, tasks=TASKS, seeds=SEEDS, robustness=(), **changes) -> Path:
        monkeypatch.chdir(tmp_path)

        def written(name, records):
            return str(write(Path(f"results/scores/{name}.json"), records))

        files = [
            written(f"{name}-{run}", [scored(name, task, seed, run, **changes.get(name, {}))
                    for task, seed in itertools.product(tasks, seeds)])
            for name, run in [*((model.name, 1) for model in models), *itertools.product(ours, runs)]
        ]  # fmt: skip
        for model in models:
            write(Path(model.settings_file), to_builtins(model))
        inputs = {"scores": {"glue": files}, "models": [model.settings_file for model in models]}
        inputs |= {"robustness": [written("robustness", [*robustness])]} if robustness else {}
        sweep = {"attention": [*ours], "sizes": ["tiny"], "pretrain_seeds": [*runs], "suites": ["glue"], "tasks": tasks}
        sweep |= {"finetune_seeds": [*seeds], "curve": {"finetune_seeds": [1], "sizes": [], "steps": {}}}
        told = {"experiment": "encoders", "key": "0123abcd", "inputs": inputs, "settings": {}}
        told["configuration"] = {**configuration, "sweep": configuration["sweep"] | sweep, "tasks": {}}
        said = report_settings({"glue.source": "mirror"}, experiment="encoders", title="Encoders", scale="encoders")
        of_glue = {key: value for key, value in said.settings.items() if key.startswith("glue.")}
        alone = {"steps": None, "settings": of_glue}  # without pre-training
        told["report"] = to_builtins(said) | (alone if not ours else {})
        return write(tmp_path / "results/encoders/experiment.json", told).parent

    return make


def mean_scores(model, runs=(1,)):
    """The GLUE score in percent by seed, and every column's."""
    columns = {
        column: np.array([100 * statistics.fmean(score_of(model, column, seed, run) for run in runs) for seed in SEEDS])
        for column in NINE
    }
    return {"glue_score": np.mean([*columns.values()], axis=0), **columns}


def test_models_are_compared_with_the_first_of_the_configuration_by_pairs_of_seeds(experiment):
    """By formulas: Student's interval of the mean difference, and the sign flips of 40 fine-tunings."""
    folder = experiment(ours=["original", "pairwise"])
    rows = paired_table(collect(read_record(folder)[1])).frame.to_dict("records")
    models = ["other", "a-third", "tiny-original", "tiny-pairwise"]
    assert list(dict.fromkeys(row["model"] for row in rows)) == models
    theirs, headlines = mean_scores("first"), [row for row in rows if row["p"] is not None]
    for row in rows:
        difference = mean_scores(row["model"].removeprefix("tiny-"))[row["score"]] - theirs[row["score"]]
        interval = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
        assert row["reference"] == "first" and row["difference"] == pytest.approx(difference.mean())
        assert (row["low"], row["high"]) == pytest.approx(interval)
    assert [(row["score"], row["fine_tunings"]) for row in headlines] == [("glue_score", 40)] * 4
    assert [row["holm_p"] for row in headlines] == holm([row["p"] for row in headlines])
    assert [row["significant"] for row in headlines] == [True, False, True, True]
    n = 40  # fine-tunings
    for row in headlines:
        name = row["model"].removeprefix("tiny-")
        ours = mean_scores(name)
        runs = [sum((ours[column] - theirs[column])[at] for column in COLUMNS[task]) * n / 45
                for task, at in itertools.product(TASKS, range(5))]  # fmt: skip
        errors = ((ours["glue_score"] - theirs["glue_score"]).std(ddof=1) / 5**0.5, np.std(runs, ddof=1) / n**0.5)
        found = [detectable_effect(error, freedom, 0.05 / 4) for error, freedom in zip(errors, (4, 39), strict=True)]
        assert row["detectable"] == pytest.approx(max(found))


def test_a_model_alone_is_told_on_the_terminal_with_mean_deviation_and_interval_over_seeds(experiment):
    """By scipy; mnli has two columns, and a seed that learned nothing is named."""
    rows = {"train": 2000, "validation": 100, "validation_matched": 200, "validation_mismatched": 3000}
    facts = {"constant_prediction": True, "learning_rate": 3e-5, "tuned": RATES, "rows": rows}
    folder = experiment(models=MODELS[:2], tasks=["rte", "mnli"], other=facts)
    config = convert(read_record(folder)[1]["configuration"], Configuration)
    config = structs.replace(config, experiment="other", models={"other": Model("owner/other")})
    title, _, header, *lines = lines_of(folder, config)
    assert "5 fine-tuning seeds" in title
    assert re.split("  +", header) == ["score", "mean", "std", "low", "high", "majority", "rows", "trained on", "rate"]
    shown = [line.split() for line in lines[:3]]
    assert [row[0] for row in shown] == ["rte", "mnli_matched", "mnli_mismatched"]
    assert [row[6:8] for row in shown] == [["100", "2,000"], ["200", "2,000"], ["3,000", "2,000"]]
    for column, *cells in shown:
        percent = [100 * score_of("other", column, seed) for seed in SEEDS]
        interval = stats.t.interval(0.95, 4, statistics.fmean(percent), stats.sem(percent))
        expected = [statistics.fmean(percent), statistics.stdev(percent), *interval]
        assert cells[:4] == [f"{value:.2f}" for value in expected] and cells[-1] == "3e-05"
    assert lines[3:] and all(str(seed) in lines[3] for seed in SEEDS) and "rte, mnli" in lines[3]


def test_of_an_interval_with_zero_no_p_value_makes_a_difference_significant():
    """Fine-tunings of a seed share the draw of the head: were they alike, the test would count too many."""
    tested = {"p": 0.001, "holm_p": 0.001}
    pair = Comparison("", "other", "first", "glue_score", "fine-tuning seed", 5, **tested, fine_tunings=40)
    assert not replace(pair, interval=Interval(-0.1, 1)).is_significant
    assert replace(pair, interval=Interval(0.1, 1)).is_significant


def test_a_p_value_is_the_share_of_all_signs_of_fine_tunings_and_columns_of_one_have_one_sign(experiment):
    """Two tasks, of which mnli has two columns, and three seeds: 64 choices, gone through here."""
    folder = experiment(models=MODELS[:2], tasks=["rte", "mnli"], seeds=(1, 2, 3))
    (pair, *_) = collect(read_record(folder)[1]).paired["glue"]
    values = [
        sum(score_of("other", column, seed) - score_of("first", column, seed) for column in COLUMNS[task])
        for task, seed in itertools.product(("rte", "mnli"), (1, 2, 3))
    ]
    sums = [abs(math.fsum(sign * value for sign, value in zip(signs, values, strict=True)))
            for signs in itertools.product((1, -1), repeat=6)]  # fmt: skip
    assert pair.p == sum(total >= sums[0] - 1e-12 for total in sums) / 64
    assert (pair.fine_tunings, pair.smallest_p) == (6, 2 / 64)
    assert pair.difference == pytest.approx(100 * sum(values) / 9)


def test_the_score_of_several_pre_trainings_is_their_mean_and_no_unit_of_the_comparison(experiment):
    folder = experiment(ours=["original"], runs=(1, 2), models=MODELS[:1])
    data = collect(read_record(folder)[1])
    (pair, *_), models = data.paired["glue"], glue_table(data).frame["model"].tolist()
    assert models[:3] == ["tiny-original, seed 1", "tiny-original, seed 2", "tiny-original, mean of 2 seeds"]
    assert models[3:] == ["first", "majority baseline"]
    difference = mean_scores("original", (1, 2))["glue_score"] - mean_scores("first")["glue_score"]
    assert (pair.n, pair.unit) == (5, "fine-tuning seed")
    assert (pair.difference, pair.std) == pytest.approx((difference.mean(), difference.std(ddof=1)))


def test_differences_between_operators_are_what_they_are_without_foreign_models(experiment):
    beside = collect(read_record(experiment(ours=["original", "pairwise"]))[1])
    alone = collect(read_record(experiment(ours=["original", "pairwise"], models=[]))[1])
    assert beside.comparisons == alone.comparisons and len(alone.comparisons["glue"]) == 10
    assert alone.paired["glue"] == []


def test_an_experiment_without_pre_training_has_a_page_that_speaks_of_its_models_alone(experiment):
    folder = experiment()
    assert main(["report", str(folder)]) == 0
    made = {file.stem for file in folder.glob("report/tables/*.csv")}
    assert made == {"table3_glue", "models", "paired", "settings", "provenance"}
    assert not [*folder.glob("report/figures/*")]
    rows = read_shown(folder / "report/tables/table3_glue.csv")
    assert [row["model"] for row in rows] == [*(model.name for model in MODELS), "majority baseline"]
    assert [row["family"] for row in rows] == ["bert", "roberta", "mpnet", ""]
    for row, model in zip(rows, MODELS, strict=False):
        assert float(row["glue_score"]) == pytest.approx(mean_scores(model.name)["glue_score"].mean(), abs=0.005)
    settings = {row["setting"].partition(".")[0] for row in read(folder / "report/tables/settings.csv")}
    assert settings == {"glue", "precision", "compile"}
    top = (folder / "report/texts/summary.txt").read_text()
    assert "a higher GLUE score of other than of first" in top and "pre-training" not in top and "Steps" not in top
    assert "none of the 19 claims" in (folder / "report/texts/claims.txt").read_text()


def test_of_a_model_alone_no_difference_is_spoken_of(experiment):
    folder = experiment(models=MODELS[:1])
    main(["report", str(folder)])
    told = (folder / "report/texts/summary.txt").read_text()
    assert "first" in told.splitlines()[0] and "support" not in told and "each" not in told
    assert not (folder / "report/tables/paired.csv").exists()


def test_where_a_model_comes_from_is_told_with_commit_head_and_digests(experiment):
    folder = experiment(tasks=["rte"], other={"head": "RobertaForSequenceClassification"})
    assert main(["report", str(folder)]) == 0
    rows = {row["model"]: row for row in read(folder / "report/tables/models.csv")}
    assert [*rows] == ["first", "other", "a-third"], "in the order of the configuration"
    assert (rows["first"]["origin"], rows["first"]["commit"]) == ("owner/first", MODELS[0].commit)
    assert (rows["other"]["family"], rows["other"]["head"]) == ("roberta", "RobertaForSequenceClassification")
    told = {row["what"]: row["value"] for row in read(folder / "report/tables/provenance.csv")}
    assert MODELS[0].commit in told["first: model"] and SHA in told["first: tokenizer"]
    assert told["other: weights"] == "SHA-256 -other-None"


def test_the_mean_over_tuning_seeds_is_told_by_rate_and_whether_the_best_lies_at_the_edge(experiment):
    tuned = {"other": {"learning_rate": 2e-5, "tuned": RATES}, "a-third": {"learning_rate": 1e-5, "tuned": RATES}}
    folder = experiment(**tuned)
    assert main(["report", str(folder)]) == 0
    lines = (folder / "report/tables/rates.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert rows[0] == ["model", "task", "chosen", "edge", "1e-05", "2e-05", "5e-05"]
    assert rows[2] == ["other", "mrpc", "2e-05", "–", "61.00", "65.00", "diverged"]
    assert rows[-1] == ["a-third", "sst2", "1e-05", "lowest", "61.00", "65.00", "diverged"]
    scores = read(folder / "report/tables/rates.csv")
    of_rate = [
        float(row["score"])
        for row in scores
        if (row["task"], row["model"], float(row["rate"])) == ("rte", "other", 1e-5)
    ]
    assert of_rate == [60, 62] and len(scores) == 2 * 8 * 5
    page = (folder / "report/report.html").read_text()
    assert f"{len(TASKS)} at the edge" in page and "those of first are fixed" in page


def test_records_of_one_fine_tuning_with_two_rates_are_refused(experiment):
    folder = experiment(models=MODELS[:1])
    file = Path("results/scores/first-1.json")
    records = json.loads(file.read_text())
    records[0] = scored("first", "mrpc", 1, learning_rate=2e-5)
    records[1] = scored("first", "mrpc", 2, learning_rate=1e-5)
    write(file, records)
    with pytest.raises(DataError, match=r"other learning_rate: first.*mrpc, finetune_seed 2 has 1e-05, expected 2e-05"):
        collect(read_record(folder)[1])


def test_a_model_of_which_a_score_is_missing_is_named(experiment):
    folder = experiment()
    file = Path("results/scores/other-1.json")
    write(file, json.loads(file.read_text())[1:])
    with pytest.raises(DataError, match="missing: other, pretrain_seed 1, .*mrpc, finetune_seed 1"):
        collect(read_record(folder)[1])


def test_the_scores_of_a_page_are_imported_as_those_of_a_page_of_others(experiment):
    folder = experiment(tasks=["rte", "mnli"])
    assert main(["report", str(folder)]) == 0
    assert main(["import-scores", str(folder / "report/data/scores.csv"), "--name", "theirs"]) == 0
    ours, theirs = (read(Path(f"results/{name}/report/tables/table3_glue.csv")) for name in ("encoders", "theirs"))
    ours = [{key: cell for key, cell in row.items() if key != "family"} for row in ours]
    assert sorted(ours, key=str) == sorted(theirs, key=str) and len(ours) == 4


def test_noise_on_a_foreign_model_stands_beside_that_on_ours(experiment):
    sets = {column: noise_set(column, 0.1, 0.5) for column in NINE}

    def robust(model, task, seed):
        made = robustness_record({**record("", model, None, task, seed), **scored(model, task, seed)},
                                 *(sets[column] for column in COLUMNS[task]))  # fmt: skip
        return {key: value for key, value in made.items() if value is not None}

    cells = itertools.product(["first", "other", "a-third", "original"], TASKS, SEEDS)
    folder = experiment(ours=["original"], robustness=[robust(*cell) for cell in cells])
    rows = robustness_table(collect(read_record(folder)[1])).frame.to_dict("records")
    assert [row["model"] for row in rows if "std" not in row["model"]] == [
        *("tiny-original", "first", "other", "a-third"), "majority baseline"
    ]  # fmt: skip
    assert {row["mixed_10"] for row in rows if "std" not in row["model"]} == {50.0}


def test_models_may_be_judged_on_minimal_pairs_alone_and_each_is_there(experiment):
    folder = experiment(models=MODELS[:2], tasks=[])
    told = json.loads((folder / "experiment.json").read_text())
    told["inputs"] |= {"scores": {}, "blimp": ["results/first.json", "results/other.json"]}
    told["configuration"]["sweep"]["suites"] = ["blimp"]
    for name in ("first", "other"):
        judged = minimal_pairs(name, size="", data_sha256=f"pairs of {name}", right=5 + (name == "other"))
        write(Path(f"results/{name}.json"), {key: value for key, value in judged.items() if key != "step"})
    write(folder / "experiment.json", told)
    assert main(["report", str(folder)]) == 0
    rows = read(folder / "report/tables/blimp.csv")
    assert [row["attention"] for row in rows] == ["first", "other"]
    assert float(rows[1]["accuracy"]) - float(rows[0]["accuracy"]) == pytest.approx(10 * 65 / 67), "but for ellipsis"
    assert "first, other" in (folder / "report/texts/summary.txt").read_text()
    told["inputs"]["blimp"].pop()
    write(folder / "experiment.json", told)
    with pytest.raises(DataError, match="missing: other"):
        collect(read_record(folder)[1])


def test_an_archive_of_it_has_what_its_page_was_made_of_and_not_where_a_folder_lay(experiment, tmp_path):
    content = {name: File(f"/secret/place/mine/{name}", SHA) for name in MODELS[1].content}
    models = [MODELS[0], structs.replace(MODELS[1], content=content)]
    folder = experiment(models=models, other={"origin": "/secret/place/mine"}, tasks=["rte"])
    assert main(["report", str(folder)]) == 0
    assert main(["bundle", str(folder), "--output", str(tmp_path / "page.zip")]) == 0
    packed = zipfile.ZipFile(tmp_path / "page.zip")
    names = set(packed.namelist())
    assert {f"{Path(model.folder).relative_to('results')}/settings.json" for model in models} <= names
    assert {"scores/first-1.json", "tables/paired.csv", "report.html", "ro-crate-metadata.json"} <= names
    assert "| `models/` |" in packed.read("README.md").decode()
    assert not [name for name in names if b"secret/place" in packed.read(name)]
    assert b"mine" in packed.read("tables/models.csv")
