"""One command makes the report of an experiment: complete, the same again, and of nothing that is damaged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from csv_rows import read_shown
from damage import assert_named
from symbert.cli import main
from symbert.report.report import report

TASKS = ["cola", "rte"]


@pytest.fixture
def finished(
    tmp_path, monkeypatch, experiment, robustness_records, write_scores, write_run, write_timing, write_sessions,
    write_speeds, corpus_files, counted
):  # fmt: skip
    """An experiment of one operator with every file that a demo has; returns a function that gives its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setattr("symbert.report.collect.counted", lambda *_: counted(("tiny", "small", "base"), ["original"]))
    run = write_run("tiny", "original", [(50, 5.0), (1800, 3.0)])
    write_timing(run)
    write_sessions(run, ("a", "cpu", 1, 60))
    scores, robustness = robustness_records([("tiny", "original", 0.6)], tasks=TASKS)
    manifest = {"documents": {"train": 900, "validation": 50}, "tokens": 640_060, "sequence_length": 64}
    manifest |= {"rows": {"train": 9900, "validation": 100}, "remainder_tokens": 10}
    manifest |= {"surplus_tokens": {"train": 30, "validation": 20}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    inputs = {
        "scores": {"glue": write_scores(scores)},
        "robustness": write_scores(robustness, "robustness"),
        "runs": [run],
        "speeds": [write_speeds(original=[0.02])],
        "parts": corpus_files(1, 2),
        "manifest": tmp_path / "manifest.json",
    }
    inputs = json.loads(json.dumps(inputs, default=lambda path: str(path.relative_to(tmp_path))))
    return lambda **more: experiment("mine", {"original": (0.6, 0.6)}, TASKS, inputs | more)


def files_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_that_is_made_again_has_the_same_bytes_and_nothing_of_an_earlier_configuration(finished):
    folder = finished()
    report(folder)
    before = files_of(folder / "report")
    for surplus in ("experiment-ffffffff.json", "tables/hosts.csv", "figures/hosts.png"):
        (folder / "report" / surplus).write_text("{}")
    report(Path("mine"))
    assert files_of(folder / "report") == before
    report(finished(robustness=[]))
    assert not [path for path in files_of(folder / "report") if "robustness" in path.name]


DAMAGED = ("experiment.json", "done.json", "metrics.jsonl", "timing.json", "provenance.json", "manifest.json")
DAMAGED += ("en_meta_part_1.json", "speeds-tiny.json", "scores/*-rte.json", "robustness/*-rte.json")


@pytest.mark.parametrize("name", DAMAGED)
def test_a_file_that_is_something_else_or_missing_is_named(finished, tmp_path, capsys, name):
    folder = finished()
    file = next(tmp_path.rglob(name))
    assert_named(["report", folder], file, capsys, ("[]", "{}", "{"))
    if name != "provenance.json":  # of sessions, which may be removed
        file.unlink()
        assert main(["report", str(folder)]) == 65 and file.name in capsys.readouterr().err.splitlines()[-1]
    assert not (folder / "report/report.html").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"split": "validation", "step": 60, "loss": 4.\xff}', "JSON is malformed"),
        (b'{"split": "validation", "step": 60, "loss"', "Input data was truncated"),
        (b'{"split": "validation", "step": 60}', "'loss' is None"),
    ],
)
def test_a_damaged_line_of_a_log_is_told_with_file_and_line(finished, tmp_path, capsys, line, told):
    (log,) = tmp_path.rglob("metrics.jsonl")
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
    assert main(["report", str(finished())]) == 65
    assert f"{log.relative_to(tmp_path)}:3: {told}" in capsys.readouterr().err


def test_the_tables_of_the_paper_need_no_experiment(tmp_path):
    assert main(["report", "--paper", str(tmp_path / "paper")]) == 0
    assert {file.name for file in tmp_path.glob("paper/*/*.csv")} == {
        f"{name}.csv" for name in ("table1_operators", "table2_parameters", "table3_published")
    }
    assert {row["match"] for row in read_shown(tmp_path / "paper/tables/table2_parameters.csv")} == {"yes"}


def test_the_exhibits_never_import_torch():
    code = "import symbert.report.report, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
