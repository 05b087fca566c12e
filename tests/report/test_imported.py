"""Results of others become an experiment that the report reads."""

import json
import re

import pytest

from csv_rows import read_shown
from legibility import assert_legible
from symbert.cli import main
from symbert.errors import ConfigError, DataError, UsageError
from symbert.report import published
from symbert.report.data import Data, write_exhibit
from symbert.report.figures.figure2 import PRINTED_ENTRY, loss_figure
from symbert.report.figures.figure3_checkpoints import checkpoints_figure
from symbert.report.imported import import_scores
from symbert.report.runs import exits_of, losses_of, read_runs
from symbert.report.scores import read_scores
from symbert.report.style import house_style
from symbert.report.tables.milestones import milestones_table
from symbert.report.tables.scores import scores_table
from symbert.report.tables.statistics import statistics_table
from symbert.report.tables.table3_glue import glue_table
from symbert.report.texts.summary import summary
from symbert.settings import ReportSettings, read_settings
from symbert.tasks import GLUE

MEANS_OF_TASKS = {  # of the authors, MNLI as one
    **{"base-original": "78.35", "base-symmetric": "74.31", "base-pairwise": "79.06"},
    **{"small-original": "72.12", "small-symmetric": "68.87", "small-pairwise": "72.97"},
}
PAIRWISE = "bert_base_pairwise_20240204-093411"


def read(path):
    return json.loads(path.read_text())


@pytest.fixture
def imported(directory, tmp_path):
    """Imports the directory; returns the final records."""

    def make():
        import_scores(directory, "theirs", output=tmp_path / "out")
        return read(tmp_path / "out/glue/final.json")

    return make


def test_what_is_unknown_of_a_record_is_null(write_result, imported):
    for task in GLUE:
        write_result(f"{PAIRWISE}-seed2_{task}_20240207-000000")
    records = {record["task"]: record for record in imported()}
    assert records["stsb"]["details"] == {"stsb": {"pearson": 0.5, "spearman": 0.7}}
    assert records["mnli"]["rows"] == {"validation_matched": 9_815, "validation_mismatched": 9_832}
    for record in records.values():
        assert record["majority"] is record["settings_hash"] is None and not record["stand_in"]
        assert not record["partial"] and record["origin"] == "imported"


def test_other_numbers_of_rows_than_glues_are_partial(write_result, imported):
    write_result(f"{PAIRWISE}_rte", eval_samples=276)
    write_result(f"{PAIRWISE}_mnli", eval_samples_mm=9_800)
    write_result(f"{PAIRWISE}_qnli")
    assert {record["task"]: record["partial"] for record in imported()} == {
        "rte": True,
        "mnli": True,
        "qnli": False,
    }


def test_only_matthews_says_whether_one_class_was_predicted_throughout(write_result, imported):
    """Its value is 0 then; an accuracy of a constant prediction is one that others may have, too."""
    write_result(f"{PAIRWISE}-seed1_cola", eval_matthews_correlation=0.0)
    write_result(f"{PAIRWISE}-seed2_cola", eval_matthews_correlation=0.01)
    write_result(f"{PAIRWISE}-seed1_rte")
    found = {(record["task"], record["finetune_seed"]): record["constant_prediction"] for record in imported()}
    assert found == {("cola", 1): True, ("cola", 2): False, ("rte", 1): None}


@pytest.fixture
def results(write_result, write_losses):
    """Final runs of two small operators with two seeds, checkpoints of one of them, and losses."""
    for operator in ("vanilla", "symmetric"):
        for seed, task in ((1, "rte"), (2, "rte"), (1, "wnli"), (2, "wnli")):
            write_result(f"bert_small_{operator}_20240204-194202-seed{seed}_{task}_20240209-000000", "final")
    for step, task in ((1_000, "rte"), (4_000, "rte"), (1_000, "wnli"), (4_000, "wnli")):
        write_result(f"bert_small_symmetric_20240204-194202-ckpt{step}_{task}_20240209-000000", "checkpoints")
    write_losses(["bert_small_vanilla_20240204-194202"], evaluations=16)


def test_an_import_is_an_experiment_that_the_report_reads(results, directory, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["import-scores", "theirs", "--name", "small"]) == 0
    imported = tmp_path / "results/imported-small"
    told = read(imported / "import.json")
    assert told["sweep"] == {
        "sizes": ["small"],
        "attention": ["original", "symmetric"],
        "pretrain_seeds": [1],
        "finetune_seeds": [1, 2],
        "tasks": ["rte", "wnli"],
        "curve": {"sizes": ["small"], "finetune_seeds": [1], "steps": {"small": [1_000, 4_000]}},
    }
    assert (told["name"], told["directory"], told["files"]) == ("small", "theirs", 13)
    assert told["kinds"] == ["runs of Hugging Face's Trainer"]
    assert told["loss_files"] == ["loss.csv"]
    run = "pretrain/small-original/seed-1"
    assert told["inputs_of_size"] == {"small": {"done": [f"{run}/done.json"], "metrics": [f"{run}/metrics.jsonl"]}}
    assert told["inputs"]["scores"] == ["glue/final.json"] and told["inputs"]["curve"] == ["glue/curve.json"]
    assert (told["steps"], told["steps_from"]) == (4_000, "the last checkpoint")
    settings = read_settings(imported / "settings/report.json", ReportSettings)
    assert (settings.experiment, settings.steps, settings.settings_hash) == ("imported-small", 4_000, None)
    final = read_scores([imported / "glue/final.json"], settings.tasks, [1, 2], settings.settings_hash)
    assert len(final) == 8 and set(final["step"]) == {4_000}
    curve = read_scores([imported / "glue/curve.json"], settings.tasks, [1], settings.settings_hash)
    assert len(curve) == 4
    folder = imported / "pretrain/small-original/seed-1"
    run = read_runs([folder / "done.json"], [folder / "metrics.jsonl"], settings.steps)
    assert run["step"].tolist() == [250 * at for at in range(1, 17)]


def test_final_runs_without_checkpoints_are_at_the_papers_last_step(write_result, directory, tmp_path):
    write_result(f"{PAIRWISE}-seed1_rte")
    import_scores(directory, "theirs", output=tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert (told["steps"], told["steps_from"], told["sweep"]["curve"]["sizes"]) == (200_000, "the paper", [])
    import_scores(directory, "theirs", output=tmp_path / "out", steps=50_000)
    told = read(tmp_path / "out/import.json")
    assert (told["steps"], told["steps_from"]) == (50_000, "the command")
    assert [record["step"] for record in read(tmp_path / "out/glue/final.json")] == [50_000]


def test_without_final_runs_those_of_the_last_checkpoint_are_compared(write_result, directory, tmp_path):
    for step in (1_000, 4_000):
        write_result(f"{PAIRWISE}-ckpt{step}-seed2_rte")
    import_scores(directory, "theirs", output=tmp_path / "out")
    assert [record["step"] for record in read(tmp_path / "out/glue/final.json")] == [4_000]
    for steps, problem in ((3_000, "there is a checkpoint 4000"), (5_000, "no run of base-pairwise is at the last")):
        with pytest.raises(UsageError, match=problem):
            import_scores(directory, "theirs", output=tmp_path / "out", steps=steps)


@pytest.mark.parametrize("steps", [0, -5])
def test_a_length_that_is_none_is_refused(write_result, directory, tmp_path, steps):
    write_result(f"{PAIRWISE}-seed1_rte")
    with pytest.raises(UsageError, match=f"--steps is {steps}, expected at least 1"):
        import_scores(directory, "theirs", output=tmp_path / "out", steps=steps)


def test_losses_are_not_stretched_over_the_steps_until_the_last_checkpoint_scored(
    write_result, write_losses, directory, tmp_path
):
    """With checkpoints up to 1,000 of 2,000 steps, every plateau seemed to end twice as early."""
    write_result(f"{PAIRWISE}-ckpt1000_rte")
    write_result(f"{PAIRWISE}_rte")
    file = write_losses(evaluations=8)
    told = f"{file}: 8 evaluations in 1000 steps, known from the last checkpoint, are not 250 steps apart"
    with pytest.raises(UsageError, match=f"{re.escape(told)} .*; give --steps"):
        import_scores(directory, "theirs", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    import_scores(directory, "theirs", output=tmp_path / "out", steps=2_000)
    folder = tmp_path / "out/pretrain/base-pairwise/seed-1"
    run = read_runs([folder / "done.json"], [folder / "metrics.jsonl"], 2_000)
    assert run["step"].tolist() == [250 * at for at in range(1, 9)]


def test_a_model_scored_at_its_last_checkpoint_is_compared_with_the_final_runs_of_another(
    write_result, directory, tmp_path
):
    """It was missing from Table 3 without a word."""
    write_result("bert_base_vanilla_20240204-093411_rte", eval_accuracy=0.5)
    write_result("bert_base_vanilla_20240204-093411-ckpt4000_rte", eval_accuracy=0.6)
    for step in (1_000, 4_000):
        write_result(f"{PAIRWISE}-ckpt{step}_rte")
    import_scores(directory, "theirs", output=tmp_path / "out")
    final = [(entry["attention"], entry["step"], entry["metrics"]) for entry in read(tmp_path / "out/glue/final.json")]
    assert final == [("original", 4_000, {"rte": 0.5}), ("pairwise", 4_000, {"rte": 0.75})]
    write_result("bert_small_pairwise_20240204-093411-ckpt1000_rte")
    with pytest.raises(UsageError, match="no run of small-pairwise is at the last step, 4000; add it"):
        import_scores(directory, "more", output=tmp_path / "more")


def test_checkpoints_that_were_scored_without_wnli_are_a_curve(write_result, directory, tmp_path):
    """It does not count for the score, but Figure 3, milestones and claims all refused; now any hole is a dash."""
    for task in ("rte", "wnli"):
        write_result(f"{PAIRWISE}-seed1_{task}")
    for step in (1_000, 4_000):
        write_result(f"{PAIRWISE}-ckpt{step}_rte")
    import_scores(directory, "theirs", output=tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert told["sweep"]["tasks"] == ["rte", "wnli"]
    for name, steps in (("final", {4_000}), ("curve", {1_000, 4_000})):
        assert set(read_scores([tmp_path / f"out/glue/{name}.json"], ["rte", "wnli"], [1])["step"]) == steps


def test_an_experiment_of_ones_own_is_not_overwritten(write_result, directory, tmp_path):
    write_result(f"{PAIRWISE}-seed1_rte")
    settings = tmp_path / "own/settings/report.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    with pytest.raises(ConfigError, match="own: not empty, and no import; choose another --name or --output"):
        import_scores(directory, "theirs", output=tmp_path / "own")
    assert [path.name for path in settings.parent.iterdir()] == ["report.json"] and settings.read_text() == "{}"


def test_importing_again_after_a_file_was_added_or_removed_replaces_all(
    write_result, write_losses, directory, tmp_path
):
    """It was refused. What an earlier import left behind would be of no import."""
    write_result(f"{PAIRWISE}-seed1_rte")
    import_scores(directory, "theirs", output=tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")}
    import_scores(directory, "theirs", output=tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")} == before, "the same files"
    added = write_result(f"{PAIRWISE}-seed2_rte")
    losses = write_losses(evaluations=800)
    import_scores(directory, "theirs", output=tmp_path / "out")
    assert [record["finetune_seed"] for record in read(tmp_path / "out/glue/final.json")] == [1, 2]
    assert (tmp_path / "out/pretrain/base-pairwise/seed-1/done.json").is_file()
    (added / "eval_results.json").unlink()
    losses.unlink()
    import_scores(directory, "theirs", output=tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")} == before


@pytest.mark.parametrize("name", ["../mine", "", ".hidden", "a/b"])
def test_a_name_that_is_no_folders_is_refused(directory, name):
    with pytest.raises(UsageError, match="--name is"):
        import_scores(directory, name)


def test_losses_of_one_model_in_two_files_are_refused(results, write_losses, directory, tmp_path):
    write_losses(["bert_small_vanilla_20250101-000000"], file="again.csv")
    with pytest.raises(DataError, match="losses: small-original has several curves; keep one csv file"):
        import_scores(directory, "theirs", output=tmp_path / "out")


def test_a_column_of_losses_that_stands_twice_is_not_read_once_without_a_word(results, directory, tmp_path):
    file = directory / "loss.csv"
    header, *rows = file.read_text().splitlines()
    table = [header + "," + header.split(",")[1], *(row + ',"1.0"' for row in rows)]
    file.write_text("\n".join(table) + "\n")
    with pytest.raises(DataError, match="losses: small-original has several curves"):
        import_scores(directory, "theirs", output=tmp_path / "out")


@pytest.fixture(scope="module")
def published_import(authors_data, tmp_path_factory):
    """What is imported from the files that the paper's authors published, and its settings."""
    output = tmp_path_factory.mktemp("imported")
    import_scores(authors_data, "published", output=output)
    return output, read_settings(output / "settings/report.json", ReportSettings)


def test_the_authors_files_are_read_as_the_tests_read_them(published_import, authors_models, authors_curve):
    folder, settings = published_import
    for name, expected in (("final", authors_models), ("curve", authors_curve)):
        records = [record for record in read(folder / f"glue/{name}.json") if record["task"] != "wnli"]
        keys = ("size", "attention", "step", "task", "finetune_seed")
        assert {tuple(record[key] for key in keys): record["metrics"] for record in records} == {
            tuple(record[key] for key in keys): pytest.approx(record["metrics"], abs=1e-12) for record in expected
        }
        assert not any(record["partial"] for record in records)
    assert settings.tasks == [*GLUE], "with wnli, which the score leaves out"


def test_the_authors_files_print_table_3_to_the_last_digit(published_import, tmp_path):
    folder, _ = published_import
    outputs = [tmp_path / "table.csv", tmp_path / "table.md"]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=[folder / "glue/final.json"],
        settings=folder / "settings/report.json",
        finetune_seeds=[1, 2, 3, 4, 5],
    )
    rows = {row["model"]: row for row in read_shown(outputs[0])}
    for (size, attention), values in published.SCORES.items():
        model = f"{size}-{attention}"
        ours, printed = rows.pop(model), rows.pop(f"{model}, the paper")
        columns = ("glue_score", "std", *published.COLUMNS)
        expected = [f"{value:.2f}" for value in values]
        assert [ours[column] for column in columns] == [printed[column] for column in columns] == expected
        assert ours["mean_of_tasks"] == MEANS_OF_TASKS[model]
        assert ours["wnli"] and not printed["wnli"]
    assert not rows, "others' scores have no majority baseline"
    text = outputs[1].read_text()
    assert "Others' results (imported-published; nothing was computed here)" in text
    assert "How the models were pre-trained, the imported files do not say" in text
    assert "is known for cola only" in text and "Wnli does not count for it, as in the paper." in text
    assert "recipe" not in text and "ajority" not in text and "stand-in" not in text


def test_the_authors_files_draw_figure_3(published_import):
    folder, _ = published_import
    data = Data(settings=folder / "settings/report.json", curve=[folder / "glue/curve.json"], curve_seeds=[1])
    with house_style():
        plot = checkpoints_figure(data)
        found = assert_legible(plot.figure)
    assert {"79.05", "78.93", "75.10", "32.8k (30k–35k)", "65.5k (50k–75k)"} <= set(found)
    assert "majority baseline" not in found
    assert "Others' results (imported-published;" in plot.caption
    assert "one class predicted throughout in 1 of 36 fine-tuning runs of which it is known" in plot.caption


def test_the_authors_losses_draw_figure_2(published_import, authors_losses):
    folder, _ = published_import

    def data_of(models):
        files = sorted((folder / "pretrain").glob(f"{models}/*/done.json"))
        metrics = [file.with_name("metrics.jsonl") for file in files]
        return Data(settings=folder / "settings/report.json", done=files, metrics=metrics)

    losses = losses_of(data_of("*").runs)
    found = {model: seeds.loc[1].tolist() for model, seeds in losses.items()}
    assert found == authors_losses, "800 evaluations, not the 801st"
    for model, seeds in losses.items():
        assert seeds.loc[1, list(published.LOSS_STEPS)].tolist() == pytest.approx(published.LOSSES[model], abs=0.0051)
        assert exits_of(seeds) == [published.RAW_PLATEAU_EXITS[model]]
    with house_style():
        found = assert_legible(loss_figure(data_of("base-*")).figure)
    assert {"26,750", "14,250", "11,750", "1.683", "1.788", "1.681", PRINTED_ENTRY.name} <= set(found)


@pytest.fixture
def holey(tmp_path):
    """Data of an import in which small-original lacks the rte of seed 2, and 'other' all but rte, also on a curve."""
    rows = [
        f"small-{name},{task},{seed},{50 + seed}," for name in ("original", "mine") for task in GLUE for seed in (1, 2)
    ]
    rows += [f"small-{name},mnli-mm,{seed},{50 + seed}," for name in ("original", "mine") for seed in (1, 2)]
    rows = [row for row in rows if not row.startswith("small-original,rte,2")] + ["other,rte,1,70,"]
    cells = [(step, task) for step in (100, 200, 300) for task in ("rte", "cola")]
    rows += [f"small-original,{task},1,{step / 10},{step}" for step, task in cells if (step, task) != (200, "rte")]
    rows += ["other,rte,1,40,300"]
    (tmp_path / "scores.csv").write_text("\n".join(["model,task,finetune_seed,score,step", *rows]))
    import_scores(tmp_path / "scores.csv", "holey", output=tmp_path / "out")
    seeds = read(tmp_path / "out/import.json")["sweep"]
    return Data(
        settings=tmp_path / "out/settings/report.json",
        scores=[tmp_path / "out/glue/final.json"],
        finetune_seeds=seeds["finetune_seeds"],
        curve=[tmp_path / "out/glue/curve.json"],
        curve_seeds=seeds["curve"]["finetune_seeds"],
    )


def rows_of(table, *keys):
    return {tuple(row[key] for key in keys): row for row in table.frame.to_dict("records")}


def test_a_hole_is_a_dash_with_n_in_every_table(holey):
    """It was the end of the report. A mean of fewer columns would be no GLUE score."""
    glue = rows_of(glue_table(holey), "model")
    assert (glue["small-original",]["glue_score"], glue["small-original",]["finetune_seeds"]) == (pytest.approx(51), 1)
    assert (glue["small-mine",]["glue_score"], glue["small-mine",]["finetune_seeds"]) == (pytest.approx(51.5), 2)
    assert (glue["other",]["glue_score"], glue["other",]["rte"], glue["other",]["finetune_seeds"]) == (None, 70, 0)
    compared = rows_of(statistics_table(holey), "model", "score")
    assert [compared["mine", score]["n"] for score in ("glue_score", "rte", "cola")] == [1, 1, 2]
    assert scores_table(holey).frame["glue_score"].notna().sum() == (1 + 1) + (2 + 2), "seeds, means, and one std"
    milestones = milestones_table(holey)
    assert "No checkpoint of other was scored on every column." in milestones.note
    (row,) = milestones.frame.to_dict("records")
    assert (row["before"], row["after"]) == (100, 300), "step 200 lacks rte"
    with house_style():
        assert_legible(checkpoints_figure(holey).figure)
    assert "were compared in BERT-small and models without a size" in " ".join(summary(holey))


def test_a_model_that_shares_no_seed_with_original_has_a_row_with_n_0(holey, tmp_path):
    rows = ["small-original,rte,1,50", "small-mine,rte,2,60", "small-mine,cola,1,60", "small-original,cola,1,50"]
    (tmp_path / "scores.csv").write_text("\n".join(["model,task,finetune_seed,score", *rows]))
    import_scores(tmp_path / "scores.csv", "holey", output=tmp_path / "out")
    data = Data(**{option: value for option, value in holey.files.items() if "curve" not in option})
    compared = rows_of(statistics_table(data), "model", "score")
    assert (compared["mine", "rte"]["n"], compared["mine", "rte"]["difference"]) == (0, None)
    assert (compared["mine", "cola"]["n"], compared["mine", "cola"]["difference"]) == (1, pytest.approx(10))
