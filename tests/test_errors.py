"""A failure ends with one of four exit codes, and its message begins with the file or key."""

import errno
import inspect
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from symbert import cli
from symbert.errors import DataError, explain
from symbert.files import reading, writing

NO_FILE = "tasks={a: {train: no.csv, validation: no.csv, columns: [a], metric: f1, labels: [0, 1]}}"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["plan", "--config", "parts"], 64, "--config parts"),
        (["status", "none"], 65, "results/none/config.yaml"),
        (["plan", "--config", "sorce=hub"], 64, "'sorce'"),
        (["plan", "--config", "sweep={"], 64, "'sweep'"),
        (["status", "--config", "pretrain={steps: 0}"], 64, "'pretrain.steps'"),
        (["status", "--config", "scale=demoo"], 64, "did you mean 'demo'"),
        (["status", "--config", "source=mirror", "mirror=/no/such/place"], 65, "/no/such/place"),
        (["status", "--config", NO_FILE, "sweep={tasks: [a]}"], 65, "no.csv: file not found; correct its path"),
        (
            ["status", "--config", "corpus={blocklist_url: 'https://host:port'}"],
            64,
            "corpus.blocklist_url: is no address",
        ),
        (
            ["status", "--config", "corpus={blocklist_url: 'http://host/x'}"],
            64,
            "corpus.blocklist_url: 'http://host/x'",
        ),
        (["status", "--configfile", "tiny.yaml"], 65, "tiny.yaml"),
        (["status", "--configfile", "word.yaml"], 65, "word.yaml: holds no settings"),
        (["status", "--configfile", "cut.json"], 65, "cut.json, line 2: not YAML"),
        (["pack", "none/manifest.json"], 65, "none/settings.json"),
        (["download", "results/published/file"], 65, "results/published: no settings.json"),
    ],
)
def test_a_failure_of_a_command_is_one_line_that_names_the_key_or_file(words, code, told, project, capsys):
    project.joinpath("cut.json").write_text('{"documents": ')
    project.joinpath("word.yaml").write_text("scale\n")
    assert cli.main(words) == code
    said = capsys.readouterr().err
    assert said.startswith(f"symbert {words[0]}: ") and told in said and said.count("\n") == 1


SEVERAL = "in \"x.yaml\", line 1:\n\n    a:  [b\r\n      ^\u2028 expected ']'\n"


@pytest.mark.parametrize("error", [DataError(SEVERAL), OSError(errno.EIO, SEVERAL), ValueError(SEVERAL)])
def test_an_error_of_several_lines_is_one_and_nothing_of_it_is_lost(error, monkeypatch, capsys):
    """Snakemake showed the first line only."""
    monkeypatch.setattr(cli, "load", lambda command: mock.Mock(side_effect=error, __signature__=inspect.Signature()))
    monkeypatch.setattr("typing.get_type_hints", lambda function, **_: {})
    assert cli.main(["plan"]) == explain(error)[0]
    last = capsys.readouterr().err.removesuffix("\n").splitlines()[-1]
    assert last.startswith("symbert plan: ") and last.split() == [
        *last.split()[: -len(SEVERAL.split())],
        *SEVERAL.split(),
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no full device")
def test_a_failure_ends_with_its_code_though_the_disk_of_the_log_is_full(tmp_path):
    """Python ended with 1 and "lost sys.stderr", and a job at its time limit was not queued again."""
    with open("/dev/full", "w") as log:
        ended = subprocess.run(
            [sys.executable, "-m", "symbert", "pack", "none/manifest.json"], cwd=tmp_path, stderr=log
        )
    assert ended.returncode == 65


def broken() -> None:
    """Divide by zero."""
    raise ZeroDivisionError


def test_a_bug_ends_with_70_and_its_traceback(monkeypatch, capsys):
    monkeypatch.setattr(cli, "load", lambda command: broken)
    assert cli.main(["plan"]) == 70
    said = capsys.readouterr().err
    assert "in broken" in said and said.splitlines()[-1].startswith("symbert plan: internal error: ZeroDivisionError")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOTDIR, errno.EIO, errno.ESTALE])
def test_an_error_of_the_system_is_data_and_names_its_file(number, tmp_path):
    file, reason = tmp_path / "part.jsonl", os.strerror(number)
    of_a_library = OSError(number, "words"), RuntimeError(f"Rust says so (os error {number})")  # name no file
    for context in (reading, writing):
        for error in of_a_library:
            with pytest.raises(OSError) as failure, context(file):
                raise error
            assert explain(failure.value) == (65, f"{file}: {reason}")


def test_an_error_that_is_none_of_the_system_is_a_bug():
    assert explain(OSError("cannot load the config"))[0] == explain(KeyError("x"))[0] == 70
    assert explain(ChildProcessError(errno.ECHILD, "No child processes"))[0] == 70
    assert explain(OSError(errno.ENOSPC, "No space left on device"))[0] == 65  # by a library
