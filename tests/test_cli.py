import inspect
import subprocess
import sys
import typing
from pathlib import Path

import pytest

from symbert import cli
from symbert.errors import SymbertError, explain
from symbert.files import read_json

ANSWERS = {
    "plan",
    "status",
    "prune",
    "plan-corpus",
    "fetch-mirror",
    "locate-sample",
    "export",
    "export-classifier",
    "check-operator",
    "describe-keys",
    "draw-rules",
    "import-scores",
    "compare",
}  # commands of the user's own, which no rule runs


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_is_a_documented_function_with_readable_options(command):
    function = cli.load(command)
    assert inspect.getdoc(function)
    assert function.__name__.removeprefix("write_") == command.replace("-", "_").removeprefix("write_")
    for name, hint in typing.get_type_hints(function).items():
        if name != "return":
            options = cli._value_options(hint)
            assert options == {"action": "store_true"} or options["type"] in (Path, str, int, float), (command, name)


def test_every_rule_of_the_workflow_calls_the_command_of_its_name(root):
    text = "".join(path.read_text() for path in sorted((root / "workflow/rules").glob("*.smk")))
    assert "-m symbert --log {log:q} exhibit " in text, "of the rules that a loop makes"
    for command in cli.COMMANDS.keys() - ANSWERS - {"exhibit"}:
        rule = text.split(f"rule {command.replace('-', '_')}:")
        assert len(rule) == 2, f"no rule for {command}"
        words = "-m symbert --log {log:q}" if command != "pretrain-model" else 'LAUNCHER}"\n        "'
        assert f"{words} {command} " in rule[1].split("\nrule ")[0]


def test_an_error_is_one_line_with_its_exit_code(tmp_path, capsys):
    options = {
        "state": tmp_path,
        "step": 1,
        "vocabulary": "v",
        "done": "d",
        "corpus-source": "embedded",
        "output": tmp_path / "o",
    }
    code = cli.main(["extract-checkpoint", *(word for key in options for word in (f"--{key}", str(options[key])))])
    assert code == 66
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and said[0].startswith("symbert extract-checkpoint: ") and "step 1 was not kept" in said[0]


def test_a_positional_only_parameter_is_an_argument_without_a_name(tmp_path, capsys):
    assert cli.main(["import-scores", str(tmp_path), "--name", "theirs"]) == 66
    assert f"symbert import-scores: {tmp_path}: no scores in it; known are csv and parquet" in capsys.readouterr().err
    assert cli.main(["import-scores", "--name", "theirs", str(tmp_path)]) == 66


@pytest.mark.parametrize(
    "arguments", [["filter-prat"], ["--log"], ["write-settings"], [], ["import-scores", "--name", "theirs"]]
)
def test_a_wrong_command_line_ends_with_64(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 64
    assert capsys.readouterr().err


def test_help_ends_with_0(capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(["--help"])
    assert stop.value.code == 0
    assert "pack-shards" in capsys.readouterr().out


def test_write_settings_writes_the_given_values(tmp_path):
    assert cli.main(["write-settings", "--values", '{"parts": 2}', "--output", str(tmp_path / "s.json")]) == 0
    assert read_json(tmp_path / "s.json") == {"parts": 2}


def test_an_output_that_cannot_be_created_ends_with_73():
    denied = PermissionError(13, "Permission denied", "/nowhere/out.json")
    assert explain(denied) == (
        73,
        "/nowhere/out.json: Permission denied; make the directory writable or choose another",
    )


def test_a_full_disk_ends_with_74():
    code, message = explain(OSError(28, "No space left on device", "out.json"))
    assert code == 74 and "free space" in message


def test_a_bug_ends_with_70_and_says_how_to_see_it():
    code, message = explain(ZeroDivisionError("division by zero"))
    assert code == 70 and "--debug" in message


def test_every_error_class_has_an_exit_code_of_its_own():
    codes = [kind.exit_code for kind in SymbertError.__subclasses__()]
    assert len(codes) == len(set(codes)) == 13


def test_a_reader_who_has_seen_enough_is_no_bug(root):
    """`symbert plan-corpus | head -n 1` said "internal error: BrokenPipeError"."""
    command = [sys.executable, "-m", "symbert", "plan-corpus"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 74
