"""The recipes in tools/ turn others' files into csv files that `symbert import-scores` reads."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

from symbert.report.imported import import_scores
from symbert.report.tidy import read_losses, read_scores

PAIRWISE = "bert_base_pairwise_20240204-093411"


@pytest.fixture
def convert(root, tmp_path):
    """Runs a recipe on paths; returns the csv file that it writes, or where it fails its last line. What it says is in
    said.txt."""

    def make(recipe: str, *paths: Path) -> Path | str:
        output = tmp_path / f"{recipe}.csv"
        with open(output, "w", encoding="utf-8") as file:
            command = [sys.executable, root / f"tools/convert_{recipe}.py", *paths]
            ended = subprocess.run(command, stdout=file, stderr=subprocess.PIPE, text=True)
        (tmp_path / "said.txt").write_text(ended.stderr)
        return output if ended.returncode == 0 else ended.stderr.splitlines()[-1]

    return make


def rows_of(file: Path) -> list[dict]:
    """The rows of a csv file of scores."""
    return read_scores(file).astype(object).where(lambda frame: frame.notna(), None).to_dict("records")


def test_folders_of_the_trainer_are_converted_by_their_names(convert, tmp_path):
    folders = {
        f"{PAIRWISE}-seed3_mnli_20240207-232501": {
            **{"eval_accuracy": 0.75, "eval_accuracy_mm": 0.8, "eval_samples": 9815, "eval_samples_mm": 9832}
        },
        f"{PAIRWISE}-ckpt3000_mrpc_20240207-232501": {
            **{"eval_accuracy": 0.7, "eval_f1": 0.8, "eval_combined_score": 0.75, "eval_samples": 408}
        },
        "bert_small_vanilla_20240204-093411_cola_20240207-232501": {"eval_matthews_correlation": 0.0},
        "my-run": {},
    }
    for name, results in folders.items():
        if name == "my-run":
            rows = rows_of(convert("trainer", tmp_path / "theirs"))
        (tmp_path / "theirs/deep" / name).mkdir(parents=True)
        results = {"epoch": 5.0, "eval_runtime": 1.5, **results}
        (tmp_path / "theirs/deep" / name / "eval_results.json").write_text(json.dumps(results))
    keys = ("size", "attention", "step", "finetune_seed", "column", "score")
    assert {tuple(row[key] for key in keys) for row in rows} == {
        ("base", "pairwise", None, 3, "mnli_matched", 0.75),
        ("base", "pairwise", None, 3, "mnli_mismatched", 0.8),
        ("base", "pairwise", 3000, 1, "mrpc", 0.75),
        ("small", "original", None, 1, "cola", 0.0),
    }
    known = {row["column"]: (row["partial"], row["constant_prediction"]) for row in rows}
    assert known["mnli_matched"] == (False, None) and known["cola"] == (False, True)
    assert "my-run: not a name like NAME; change NAME" in convert("trainer", tmp_path / "theirs")


def test_the_only_accuracy_of_mnli_is_taken_for_the_split_that_has_its_rows(convert, tmp_path):
    """run_glue once wrote the mismatched accuracy over the matched one (transformers, issue 16474)."""
    cells = {2: 9832, 3: 9815, 4: 500, 5: None}
    for seed, rows in cells.items():
        folder = tmp_path / f"theirs/{PAIRWISE}-seed{seed}_mnli_20240207-232501"
        folder.mkdir(parents=True)
        results = {"eval_accuracy": 0.7, "eval_samples": rows}
        (folder / "eval_results.json").write_text(
            json.dumps({key: value for key, value in results.items() if value is not None})
        )
    rows = rows_of(convert("trainer", tmp_path / "theirs"))
    assert [(row["column"], row["finetune_seed"]) for row in rows] == [("mnli_mismatched", 2), ("mnli_matched", 3)]
    said = {line.split("-seed")[1][0]: line for line in (tmp_path / "said.txt").read_text().splitlines()}
    assert "mnli_matched" in said["2"] and "mnli_mismatched" not in said["2"] and "mnli_mismatched" in said["3"]
    assert all(word in said[seed] for seed in "45" for word in ("mnli_matched", "mnli_mismatched"))


def test_what_a_recipe_cannot_read_is_named_and_without_a_number_it_fails(convert, tmp_path):
    """Metrics of other names gave a csv without a row, and no word."""
    folder = tmp_path / f"theirs/{PAIRWISE}_cola_20240207-232501"
    folder.mkdir(parents=True)
    (folder / "eval_results.json").write_text('{"eval_mcc": 0.3, "eval_samples": 1043}')
    assert "no score was read" in convert("trainer", tmp_path / "theirs")
    assert "cola" in (said := (tmp_path / "said.txt").read_text()) and "eval_mcc" in said
    assert "gone: no eval_results.json below it" in convert("trainer", tmp_path / "theirs/gone")
    harness = {"model_name": "pythia", "results": {"rte": {"acc": 0.5}, "hellaswag": {"acc,none": 0.3}}}
    (tmp_path / "results.json").write_text(json.dumps(harness))
    assert "no score was read" in convert("harness", tmp_path / "results.json")
    assert "rte" in (said := (tmp_path / "said.txt").read_text()) and "hellaswag" in said
    (folder / "eval_results.json").write_text('{"eval_mcc": 0.3, ')
    for recipe, place in (("trainer", tmp_path / "theirs"), ("harness", folder / "eval_results.json")):
        assert f"{folder}/eval_results.json: no JSON, or cut" in convert(recipe, place)
    losses = write_losses(tmp_path / "theirs.csv", [10, 21, 32])
    losses.write_text(losses.read_text().replace("bert_", "gpt_"))
    assert "no loss was read" in convert("losses", losses)
    assert "gpt_" in (said := (tmp_path / "said.txt").read_text()) and "__MIN" not in said
    losses.write_text("")
    assert "no loss was read" in convert("losses", losses)


def write_losses(file: Path, steps: list[int]) -> Path:
    """A dashboard's export of a run, with its columns of the lowest and highest values."""
    column = f"{PAIRWISE} - eval/loss"
    rows = [
        {"Step": step, column: 9 - at / 1000, f"{column}__MIN": 0, f"{column}__MAX": 9} for at, step in enumerate(steps)
    ]
    with open(file, "w", newline="") as lines:
        table = csv.DictWriter(lines, list(rows[0]), quoting=csv.QUOTE_ALL)
        table.writeheader()
        table.writerows(rows)
    return file


def test_losses_of_a_dashboard_are_at_even_steps_and_the_one_after_the_training_is_left_out(
    convert, tmp_path, monkeypatch
):
    steps = [11 * at - 1 for at in range(1, 801)]
    losses = convert("losses", write_losses(tmp_path / "theirs.csv", [*steps, steps[-1] + 2]))
    assert f"1 of '{PAIRWISE} - eval/loss'" in (tmp_path / "said.txt").read_text()
    (tmp_path / "scores.csv").write_text("attention,task,finetune_seed,value\npairwise,rte,1,0.5\n")
    monkeypatch.chdir(tmp_path)
    import_scores(tmp_path / "scores.csv", "theirs", losses)
    points = read_losses(tmp_path / "results/theirs/losses.csv")
    assert points["step"].tolist() == [250 * (at + 1) for at in range(800)]
    assert points["loss"].tolist() == [9 - at / 1000 for at in range(800)]
    del steps[3]
    assert "not evenly spaced" in convert("losses", write_losses(tmp_path / "theirs.csv", steps))


def test_results_of_the_harness_are_converted(convert, tmp_path):
    """Its rows are partial where it read fewer; 100 of 408 here."""
    tasks = {"mrpc": {"acc": 0.7, "f1": 0.8}, "cola": {"mcc": 0.1}, "mnli": {"acc": 0.35}, "hellaswag": {"acc": 0.3}}
    results = {
        task: {"alias": task, "acc_stderr,none": 0.01} | {f"{key},none": value for key, value in metrics.items()}
        for task, metrics in tasks.items()
    }
    content = {"results": results, "versions": dict.fromkeys(tasks, 1.0), "model_name": "./models/pythia-70m/"}
    content["n-samples"] = {task: {"original": 408, "effective": 100} for task in tasks}
    (tmp_path / "results.json").write_text(json.dumps(content))
    rows = rows_of(convert("harness", tmp_path / "results.json"))
    scores = {row["column"]: row["score"] for row in rows}
    assert scores == pytest.approx({"mrpc": 0.75, "cola": 0.1, "mnli_matched": 0.35})
    assert {(row["attention"], row["partial"]) for row in rows} == {("pythia-70m", True)}
    assert "warning" not in (tmp_path / "said.txt").read_text()
    (tmp_path / "results.json").write_text(json.dumps({**content, "tokenizer_pad_token": ["[PAD]", "0"]}))
    assert len(rows_of(convert("harness", tmp_path / "results.json"))) == len(rows)
    assert "masked model" in (tmp_path / "said.txt").read_text(), "it was believed that the harness refuses one"
