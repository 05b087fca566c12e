"""Results of others become an experiment that the report reads; what is not one of their results is named."""

import csv
import json
import math
import os
import re

import pytest

from legibility import assert_legible
from symbert.cli import main
from symbert.errors import ConfigError, DataError, MissingInputError, UsageError
from symbert.report import published
from symbert.report.data import Data, write_exhibit
from symbert.report.figures.figure2 import PRINTED_ENTRY, loss_figure
from symbert.report.figures.figure3_checkpoints import checkpoints_figure
from symbert.report.imported import import_scores
from symbert.report.runs import exits_of, losses_of, read_runs
from symbert.report.scores import read_scores
from symbert.report.style import house_style
from symbert.report.trainer_results import read_losses, read_results, run_named
from symbert.settings import ReportSettings, read_settings
from symbert.tasks import GLUE

MEANS_OF_TASKS = {  # of the authors, MNLI as one
    **{"base-original": "78.35", "base-symmetric": "74.31", "base-pairwise": "79.06"},
    **{"small-original": "72.12", "small-symmetric": "68.87", "small-pairwise": "72.97"},
}
PAIRWISE = "bert_base_pairwise_20240204-093411"
SCORES = {"eval_accuracy": 0.75, "eval_f1": 0.85, "eval_matthews_correlation": 0.25, "eval_pearson": 0.5}
SCORES |= {"eval_spearmanr": 0.7, "eval_accuracy_mm": 0.8}


@pytest.fixture
def directory(tmp_path):
    return tmp_path / "theirs"


@pytest.fixture
def write_result(directory):
    """Writes what run_glue leaves in the directory of a run, with changes (None: without that key)."""

    def make(name, folder="results", **changes):
        task = GLUE.get(name.split("_")[4] if name.count("_") > 3 else "", GLUE["mrpc"])
        rows = [task.official_rows[split] for split in task.scores]
        values = SCORES | {"epoch": 5.0, "eval_samples": rows[0], "eval_samples_mm": rows[-1]} | changes
        path = directory / folder / name / "eval_results.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({key: value for key, value in values.items() if value is not None}))
        return path.parent

    return make


@pytest.fixture
def write_losses(directory):
    """Writes a dashboard's export: an evaluation every 11 entries of the log, and one after the training."""

    def make(names=(PAIRWISE,), evaluations=8, file="loss.csv", end=" - eval/loss", after=2, **cells):
        columns = [f"{name}{end}{kind}" for name in names for kind in ("", "__MIN", "__MAX")]
        steps = [11 * (at + 1) - 1 for at in range(evaluations)]
        steps += [steps[-1] + after] * bool(after)
        rows = [dict.fromkeys(columns, str(9.0 - at)) | {"Step": str(step)} for at, step in enumerate(steps)]
        rows[3] |= {columns[0]: cells.get("cell", rows[3][columns[0]])}
        path = directory / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as lines:
            table = csv.DictWriter(lines, ["Step", *columns], quoting=csv.QUOTE_ALL)
            table.writeheader()
            table.writerows(rows)
        return path

    return make


def read(path):
    return json.loads(path.read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (f"{PAIRWISE}-seed3_mnli_20240207-232501", ("base", "pairwise", None, "mnli", 3)),
        ("bert_base_vanilla_20240204-093411-ckpt30000_rte_20240208-171539", ("base", "original", 30_000, "rte", 1)),
        ("bert_small_symmetric_20240204-194202-seed5_cola_1", None),
        ("bert_small_symmetric_20240204-194202-seed5_cola", ("small", "symmetric", None, "cola", 5)),
        ("bert_base_symmetric_20240204-093411-ckpt6000-seed2_sst2", ("base", "symmetric", 6_000, "sst2", 2)),
        ("bert_tiny_shared_20250101-000000-seed2-ckpt6000_qqp", ("tiny", "shared", 6_000, "qqp", 2)),
        ("bert_small_original-gain_20250101-000000_wnli", ("small", "original-gain", None, "wnli", 1)),
        (PAIRWISE, ("base", "pairwise", None, None, 1)),
    ],
)
def test_a_name_says_size_operator_step_task_and_seed(tmp_path, name, expected):
    if expected is None:
        with pytest.raises(DataError, match="is no run's name; expected bert_<size>_<attention>_<date>"):
            run_named(name, tmp_path)
    else:
        run = run_named(name, tmp_path)
        assert tuple(run[key] for key in ("size", "attention", "step", "task", "finetune_seed")) == expected
        assert run["pretrain_seed"] == 1


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("bert_base_pairwize_20240204-093411_rte", "unknown attention 'pairwize'; did you mean 'pairwise'?"),
        ("bert_base_pairwise_20240204-093411_sts-b", "unknown task 'sts-b'; did you mean 'stsb'?"),
        ("bert_large_pairwise_20240204-093411_rte", "unknown size 'large'; choose from tiny, small, base"),
        (f"{PAIRWISE}-epoch3_rte", "unknown tag 'epoch'; choose from ckpt, seed"),
        (f"{PAIRWISE}-seed1-seed2_rte", "is no run's name"),
        ("checkpoint-500", "'checkpoint-500' is no run's name"),
        (PAIRWISE, "the name has no task"),
    ],
)
def test_a_directory_with_another_name_is_named(write_result, directory, name, problem):
    folder = write_result(name)
    with pytest.raises(DataError) as caught:
        read_results(directory)
    assert str(caught.value).startswith(f"{folder}: ") and problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "changes", "problem"),
    [
        ("mrpc", {"eval_f1": None}, "no 'eval_f1' in eval_results.json"),
        ("mnli", {"eval_accuracy_mm": None}, "no 'eval_accuracy_mm'"),
        ("stsb", {"eval_pearson": math.nan}, "'eval_pearson' is nan, expected a number from -1 to 1"),
        ("rte", {"eval_accuracy": 59.4}, "'eval_accuracy' is 59.4"),
        ("cola", {"eval_matthews_correlation": "0.4"}, "'eval_matthews_correlation' is 0.4, expected a number"),
        ("rte", {"eval_samples": 0}, "'eval_samples' is 0, expected a number of rows"),
        ("rte", {"eval_samples": None}, "no 'eval_samples'"),
        ("rte", {"eval_accuracy": True}, "'eval_accuracy' is True, expected a number from -1 to 1"),
        ("rte", {"eval_samples": True}, "'eval_samples' is True, expected a number of rows"),
    ],
)
def test_a_result_that_is_missing_or_no_score_is_named(write_result, directory, task, changes, problem):
    folder = write_result(f"{PAIRWISE}-seed1_{task}", **changes)
    with pytest.raises(DataError) as caught:
        read_results(directory)
    assert str(caught.value).startswith(f"{folder}: ") and problem in str(caught.value)


def test_two_directories_of_one_cell_are_named(write_result, directory):
    """A final run and a run of the checkpoint at its step are two cells: the paper's experiments 2 and 3 have both."""
    write_result(f"{PAIRWISE}-seed1_rte_20240207-000000", "first")
    write_result(f"{PAIRWISE}-ckpt200000_rte_20240207-000000", "first")
    assert len(read_results(directory)) == 2
    second = write_result(f"{PAIRWISE}_rte_20240208-000000", "second")
    with pytest.raises(DataError, match="the same model, step, task and seed as") as caught:
        read_results(directory)
    assert str(second) in str(caught.value) and "first" in str(caught.value)


def test_a_directory_without_results_is_refused(directory):
    with pytest.raises(MissingInputError, match=r"theirs: no eval_results\.json below it"):
        read_results(directory)


@pytest.fixture
def elsewhere(write_result, directory, tmp_path):
    """Two runs of RTE outside the directory of results, which has one of its own."""
    write_result(f"{PAIRWISE}-seed1_rte")
    folders = [write_result(f"{PAIRWISE}-seed{seed}_rte", "../elsewhere") for seed in (2, 3)]
    return folders[0].parent


def seeds_of(directory):
    return sorted(record["finetune_seed"] for record in read_results(directory))


def test_linked_results_are_not_skipped_without_a_word(elsewhere, directory, write_losses, tmp_path):
    """A folder of runs, a run, and a file; all of them are of the import, and of its hash."""
    (directory / "runs").symlink_to(elsewhere)
    assert seeds_of(directory) == [1, 2, 3]
    (directory / "runs").unlink()
    (directory / f"{PAIRWISE}-seed2_rte").symlink_to(elsewhere / f"{PAIRWISE}-seed2_rte")
    (directory / f"{PAIRWISE}-seed4_rte").mkdir()
    result = elsewhere / f"{PAIRWISE}-seed3_rte/eval_results.json"
    (directory / f"{PAIRWISE}-seed4_rte/eval_results.json").symlink_to(result)
    assert seeds_of(directory) == [1, 2, 4]
    losses = write_losses(evaluations=800, file="../elsewhere/loss.csv")
    (directory / "losses").symlink_to(losses.parent)
    import_scores(directory, "theirs", tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert (told["files"], told["loss_files"]) == (5, ["losses/loss.csv"])
    assert told["directories"] == {"base-pairwise": {"final": 4}}, "of the linked folder of losses, too"


def test_a_link_to_what_is_read_already_counts_once_and_a_loop_ends(elsewhere, directory):
    (directory / "latest").symlink_to(directory / f"results/{PAIRWISE}-seed1_rte")
    (directory / "results/all").symlink_to(directory)
    (elsewhere / "back").symlink_to(directory)
    (directory / "runs").symlink_to(elsewhere)
    (directory / "again").symlink_to(elsewhere)
    records = read_results(directory)
    assert [record["finetune_seed"] for record in records] == [2, 3, 1]
    assert [record["origin"]["directory"] for record in records][2] == f"results/{PAIRWISE}-seed1_rte"


def test_a_broken_link_among_results_is_named(elsewhere, directory):
    for name, goal in (("runs", "gone/away"), ("loop", "loop")):
        link = directory / name
        link.symlink_to(goal)
        with pytest.raises(MissingInputError) as caught:
            read_results(directory)
        assert str(caught.value) == f"{link}: a link to {goal}, which is not there; mend the link or remove it"
        link.unlink()


def test_a_folder_of_results_that_may_not_be_read_is_not_skipped(elsewhere, directory, monkeypatch):
    """Pathlib's patterns leave it out."""
    locked = directory / "results"

    def scandir(path="."):
        if str(path) == str(locked):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    scan = os.scandir
    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(os, "listdir", lambda path: [entry.name for entry in os.scandir(path)])
    with pytest.raises(PermissionError, match="results"):
        read_results(directory)


def test_scores_are_means_of_the_tasks_metrics_and_what_is_unknown_is_null(write_result, directory):
    for task in GLUE:
        write_result(f"{PAIRWISE}-seed2_{task}_20240207-000000")
    records = {record["task"]: record for record in read_results(directory)}
    metrics = {column: score for record in records.values() for column, score in record["metrics"].items()}
    assert metrics == pytest.approx(
        dict.fromkeys(["mnli_matched", "rte", "qnli", "sst2", "wnli"], 0.75)
        | {"mrpc": 0.8, "qqp": 0.8, "stsb": 0.6, "cola": 0.25, "mnli_mismatched": 0.8}
    )
    assert records["stsb"]["details"] == {"stsb": {"pearson": 0.5, "spearman": 0.7}}
    assert records["mnli"]["rows"] == {"validation_matched": 9_815, "validation_mismatched": 9_832}
    for task, record in records.items():
        assert record["origin"] == {"directory": f"results/{PAIRWISE}-seed2_{task}_20240207-000000"}
        assert record["majority"] is record["settings_hash"] is None and not record["stand_in"]
        assert not record["partial"]


def test_other_numbers_of_rows_than_glues_are_partial(write_result, directory):
    write_result(f"{PAIRWISE}_rte", eval_samples=276)
    write_result(f"{PAIRWISE}_mnli", eval_samples_mm=9_800)
    write_result(f"{PAIRWISE}_qnli")
    assert {record["task"]: record["partial"] for record in read_results(directory)} == {
        "rte": True,
        "mnli": True,
        "qnli": False,
    }


def test_only_matthews_says_whether_one_class_was_predicted_throughout(write_result, directory):
    """Its value is 0 then; an accuracy of a constant prediction is one that others may have, too."""
    write_result(f"{PAIRWISE}-seed1_cola", eval_matthews_correlation=0.0)
    write_result(f"{PAIRWISE}-seed2_cola", eval_matthews_correlation=0.01)
    write_result(f"{PAIRWISE}-seed1_rte")
    found = {
        (record["task"], record["finetune_seed"]): record["constant_prediction"] for record in read_results(directory)
    }
    assert found == {("cola", 1): True, ("cola", 2): False, ("rte", 1): None}


def test_evaluations_are_at_even_steps_and_the_one_after_the_training_is_left_out(write_losses):
    run = read_losses(write_losses(evaluations=8), 200_000)
    assert run.values.tolist() == [["base", "pairwise", 1, 25_000 * at, 10.0 - at] for at in range(1, 9)]
    assert read_losses(write_losses(evaluations=8, after=0), 200_000).equals(run)


def test_a_table_of_something_else_has_no_losses(write_losses):
    file = write_losses(end=" - train/loss")
    assert read_losses(file, 200_000).empty
    for content in (b"", b"caf\xe9;1\n\xff", b"a,b\n" + 200_000 * b"x", 200_000 * b"x"):
        file.write_bytes(content)
        assert read_losses(file, 200_000).empty


def test_a_table_of_losses_that_is_cut_off_by_a_field_without_an_end_is_named(write_losses):
    file = write_losses()
    with open(file, "ab") as lines:
        lines.write(b'"' + 200_000 * b"x")
    with pytest.raises(DataError, match="EOF inside string .*; export it again") as caught:
        read_losses(file, 200_000)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "steps", "problem"),
    [
        ({}, 200_001, "8 evaluations in '.* - eval/loss' do not share 200001 steps"),
        ({"cell": "NaN"}, 200_000, "is NaN at Step 43; expected two numbers"),
        ({"cell": "low"}, 200_000, "is low at Step 43"),
        ({"cell": ""}, 200_000, "the evaluations in '.*' are not evenly spaced"),
        (
            {"names": (f"{PAIRWISE}-seed1_mnli_20240207-232501",)},
            200_000,
            "is of a fine-tuning run; expected losses of",
        ),
        ({"names": ("bert_base_pairwize_20240204-093411",)}, 200_000, "unknown attention 'pairwize'"),
    ],
)
def test_losses_that_are_no_curve_are_named(write_losses, cells, steps, problem):
    file = write_losses(**cells)
    with pytest.raises(DataError, match=problem) as caught:
        read_losses(file, steps)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


def test_a_table_of_losses_without_rows_is_named(write_losses):
    file = write_losses()
    file.write_text(file.read_text().splitlines()[0])
    with pytest.raises(DataError, match="are not evenly spaced; export all of them"):
        read_losses(file, 200_000)


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
    assert told["directories"] == {"small-original": {"final": 4}, "small-symmetric": {"checkpoint": 4, "final": 4}}
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
    assert run["step"].tolist() == [250 * at for at in range(1, 17)] and told["left_out"] == []


def test_final_runs_without_checkpoints_are_at_the_papers_last_step(write_result, directory, tmp_path):
    write_result(f"{PAIRWISE}-seed1_rte")
    import_scores(directory, "theirs", tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert (told["steps"], told["steps_from"], told["sweep"]["curve"]["sizes"]) == (200_000, "the paper", [])
    import_scores(directory, "theirs", tmp_path / "out", steps=50_000)
    told = read(tmp_path / "out/import.json")
    assert (told["steps"], told["steps_from"]) == (50_000, "the command")
    assert [record["step"] for record in read(tmp_path / "out/glue/final.json")] == [50_000]


def test_without_final_runs_those_of_the_last_checkpoint_are_compared(write_result, directory, tmp_path):
    for step in (1_000, 4_000):
        write_result(f"{PAIRWISE}-ckpt{step}-seed2_rte")
    import_scores(directory, "theirs", tmp_path / "out")
    assert [record["step"] for record in read(tmp_path / "out/glue/final.json")] == [4_000]
    for steps, problem in ((3_000, "there is a checkpoint 4000"), (5_000, "no run of base-pairwise is at the last")):
        with pytest.raises(UsageError, match=problem):
            import_scores(directory, "theirs", tmp_path / "out", steps)


@pytest.mark.parametrize("steps", [0, -5])
def test_a_length_that_is_none_is_refused(write_result, directory, tmp_path, steps):
    write_result(f"{PAIRWISE}-seed1_rte")
    with pytest.raises(UsageError, match=f"--steps is {steps}, expected at least 1"):
        import_scores(directory, "theirs", tmp_path / "out", steps)


def test_losses_are_not_stretched_over_the_steps_until_the_last_checkpoint_scored(
    write_result, write_losses, directory, tmp_path
):
    """With checkpoints up to 1,000 of 2,000 steps, every plateau seemed to end twice as early."""
    write_result(f"{PAIRWISE}-ckpt1000_rte")
    write_result(f"{PAIRWISE}_rte")
    file = write_losses(evaluations=8)
    told = f"{file}: 8 evaluations in 1000 steps, known from the last checkpoint, are not 250 steps apart"
    with pytest.raises(UsageError, match=f"{re.escape(told)} .*; give --steps"):
        import_scores(directory, "theirs", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    import_scores(directory, "theirs", tmp_path / "out", steps=2_000)
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
    import_scores(directory, "theirs", tmp_path / "out")
    final = [(entry["attention"], entry["step"], entry["metrics"]) for entry in read(tmp_path / "out/glue/final.json")]
    assert final == [("original", 4_000, {"rte": 0.5}), ("pairwise", 4_000, {"rte": 0.75})]
    write_result("bert_small_pairwise_20240204-093411-ckpt1000_rte")
    with pytest.raises(UsageError, match="no run of small-pairwise is at the last step, 4000; add it"):
        import_scores(directory, "more", tmp_path / "more")


def test_checkpoints_that_were_scored_without_wnli_are_a_curve(write_result, directory, tmp_path):
    """It does not count for the score, but Figure 3, milestones and claims all refused."""
    for task in ("rte", "wnli"):
        write_result(f"{PAIRWISE}-seed1_{task}")
    for step in (1_000, 4_000):
        write_result(f"{PAIRWISE}-ckpt{step}_rte")
    import_scores(directory, "theirs", tmp_path / "out")
    told = read(tmp_path / "out/import.json")
    assert (told["left_out"], told["sweep"]["tasks"]) == (["wnli"], ["rte"])
    for name, steps in (("final", {4_000}), ("curve", {1_000, 4_000})):
        assert set(read_scores([tmp_path / f"out/glue/{name}.json"], ["rte"], [1])["step"]) == steps
    write_result(f"{PAIRWISE}-ckpt1000_cola")
    import_scores(directory, "more", tmp_path / "more")
    assert read(tmp_path / "more/import.json")["sweep"]["tasks"] == ["cola", "rte"], "a task that counts is demanded"


def test_an_experiment_of_ones_own_is_not_overwritten(write_result, directory, tmp_path):
    write_result(f"{PAIRWISE}-seed1_rte")
    settings = tmp_path / "own/settings/report.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}")
    with pytest.raises(ConfigError, match="own: not empty, and no import; choose another --name or --output"):
        import_scores(directory, "theirs", tmp_path / "own")
    assert [path.name for path in settings.parent.iterdir()] == ["report.json"] and settings.read_text() == "{}"


def test_an_import_of_other_files_is_not_mixed_with_it(write_result, directory, tmp_path):
    write_result(f"{PAIRWISE}-seed1_rte")
    import_scores(directory, "theirs", tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")}
    import_scores(directory, "theirs", tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")} == before, "the same files"
    write_result(f"{PAIRWISE}-seed2_rte")
    with pytest.raises(ConfigError, match=r"import\.json: of other files than these; choose another --name"):
        import_scores(directory, "theirs", tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*.json")} == before


@pytest.mark.parametrize("name", ["../mine", "", ".hidden", "a/b"])
def test_a_name_that_is_no_folders_is_refused(directory, name):
    with pytest.raises(UsageError, match="--name is"):
        import_scores(directory, name)


def test_losses_of_one_model_in_two_files_are_refused(results, write_losses, directory, tmp_path):
    write_losses(["bert_small_vanilla_20250101-000000"], file="again.csv")
    with pytest.raises(DataError, match="losses: small-original has several curves; keep one csv file"):
        import_scores(directory, "theirs", tmp_path / "out")


def test_a_column_of_losses_that_stands_twice_is_not_read_once_without_a_word(results, directory, tmp_path):
    file = directory / "loss.csv"
    header, *rows = file.read_text().splitlines()
    table = [header + "," + header.split(",")[1], *(row + ',"1.0"' for row in rows)]
    file.write_text("\n".join(table) + "\n")
    with pytest.raises(DataError, match="losses: small-original has several curves"):
        import_scores(directory, "theirs", tmp_path / "out")


@pytest.fixture(scope="module")
def published_import(authors_data, tmp_path_factory):
    """What is imported from the files that the paper's authors published, and its settings."""
    output = tmp_path_factory.mktemp("imported")
    import_scores(authors_data, "published", output)
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
    with open(outputs[0], encoding="utf-8", newline="") as file:
        rows = {row["model"]: row for row in csv.DictReader(file)}
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
        found = assert_legible(checkpoints_figure(data).figure)
    assert {"79.05", "78.93", "75.10", "32.8k (30k–35k)", "65.5k (50k–75k)"} <= set(found)
    assert "majority baseline" not in found
    (note,) = (" ".join(text.split()) for text in found if text.startswith("Others' results (imported-published;"))
    assert "one class predicted throughout in 1 of 36 fine-tuning runs of which it is known" in note


def test_the_authors_losses_draw_figure_2(published_import, authors_losses):
    folder, _ = published_import
    files = sorted((folder / "pretrain").glob("base-*/*/done.json"))
    metrics = [file.with_name("metrics.jsonl") for file in files]
    data = Data(settings=folder / "settings/report.json", done=files, metrics=metrics)
    losses = losses_of(data.runs)
    found = {attention: seeds.loc[1].tolist() for (_, attention), seeds in losses.items()}
    assert found == authors_losses, "800 evaluations, not the 801st"
    for model, seeds in losses.items():
        assert seeds.loc[1, list(published.LOSS_STEPS)].tolist() == pytest.approx(published.LOSSES[model], abs=0.0051)
        assert exits_of(seeds) == [published.RAW_PLATEAU_EXITS[model]]
    with house_style():
        found = assert_legible(loss_figure(data).figure)
    assert {"26,750", "14,250", "11,750", "1.683", "1.788", "1.681", PRINTED_ENTRY.name} <= set(found)
