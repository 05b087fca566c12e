"""JSON files that the report reads and that hold something else ended its commands with 70, "internal error"."""

import json
from pathlib import Path

import pytest

from damage import assert_named, options
from symbert.errors import DataError
from symbert.project import imported

TASKS = ["cola", "rte"]


@pytest.fixture
def files(
    tmp_path, report_settings, corpus_files, counted, write_run, write_timing, write_speeds, write_sessions,
    robustness_records, write_scores
):  # fmt: skip
    """A file of each kind, by the option that it is given as."""
    settings = report_settings(tasks=TASKS)
    counts, records = corpus_files(1)
    done, metrics = write_run("tiny", "original", [(50, 5.0), (1800, 3.0)])
    scores, robustness = robustness_records([("tiny", "original", 0.6)], tasks=TASKS)
    manifest = {"documents": {"train": 900, "validation": 50}, "tokens": 640_060, "sequence_length": 64}
    manifest |= {"rows": {"train": 9900, "validation": 100}}
    manifest |= {"remainder_tokens": 10, "surplus_tokens": {"train": 30, "validation": 20}}
    told = {"name": "theirs", "files": {"theirs.csv": "0"}, "steps": 1800, "steps_from": "the command"}
    return {
        "settings": [settings],
        "sections": [settings],
        "counts": counts,
        "records": records,
        "manifest": [write(tmp_path / "manifest.json", manifest)],
        "parameters": [counted()],
        "done": [done],
        "metrics": [metrics],
        "timing": [write_timing(done)],
        "speeds": [write_speeds(original=[0.02])],
        "sessions": [write_sessions(done, ("a", "cpu", 1, 60))],
        "scores": write_scores(scores),
        "robustness": write_scores(robustness, "robustness"),
        "import": [write(tmp_path / "import.json", told)],
    }


def write(path: Path, value) -> Path:
    path.write_text(json.dumps(value))
    return path


SEEDS = ["--finetune-seeds", "1", "2"]
EXHIBITS = {
    "table-corpus": ("counts", "records", "manifest", "settings"),
    "table-claims": ("parameters", "done", "metrics", "speeds", "settings"),
    "table-robustness": ("scores", "robustness", "settings"),
    "table-provenance": ("sections",),
    "figure-figure2": ("done", "metrics", "settings"),
}


def words_of(command, names, files, tmp_path):
    seeds = SEEDS if "scores" in names else []
    suffix = "png" if command.startswith("figure") else "csv"
    return [
        "exhibit",
        command,
        *options(**{name: files[name] for name in names}),
        *seeds,
        "--output",
        tmp_path / f"out.{suffix}",
    ]


@pytest.mark.parametrize(
    ("command", "damaged"), [(command, name) for command, names in EXHIBITS.items() for name in names]
)
def test_a_file_of_the_report_that_is_something_else_is_named(tmp_path, files, capsys, command, damaged):
    words = words_of(command, EXHIBITS[command], files, tmp_path)
    assert_named(words, files[damaged][0], capsys)


@pytest.mark.parametrize("damaged", ["done", "timing", "sessions"])
def test_a_record_of_a_runs_machine_that_is_something_else_is_named(tmp_path, files, capsys, damaged):
    given = {"provenance": files["done"] + files["timing"], "sessions": files["sessions"]}
    words = ["exhibit", "table-runs", *options(**given, output=tmp_path / "out.csv")]
    assert_named(words, files[damaged][0], capsys)


def test_an_import_that_is_something_else_is_named(tmp_path, files, capsys):
    given = options(origin=files["import"], output=tmp_path / "out.csv")
    assert_named(["exhibit", "table-runs", *given], files["import"][0], capsys)
    for content in ("[]", "null", "{}", "3", '{"sweep": {}, "inputs": {}}'):
        files["import"][0].write_text(content)
        with pytest.raises(DataError, match=r"import\.json: .*; remove .* and run symbert import-scores again"):
            imported(tmp_path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b'{"split": "validation", "step": 60, "loss": 4.\xff}', "not UTF-8"),
        (b'{"split": "validation", "step": 60, "loss"', "not JSON"),
        (b'{"split": "validation", "step": 60}', "has no 'loss'"),
    ],
)
def test_a_damaged_line_of_a_log_is_told_with_file_line_and_remedy(tmp_path, files, capsys, line, told):
    """Only what was no JSON was."""
    from symbert.cli import main

    (log,) = files["metrics"]
    lines = log.read_bytes().splitlines()
    log.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
    assert main([str(word) for word in words_of("figure-figure2", EXHIBITS["figure-figure2"], files, tmp_path)]) == 65
    said = capsys.readouterr().err
    assert f"{log}:3: {told}" in said and "; run pretrain again" in said
