import inspect
import json
import subprocess
import sys
import typing

import pytest

from symbert import cli
from symbert.files import read_json
from symbert.options import OPTIONS, line_of

ANSWERS = {
    "plan",
    "status",
    "prune",
    "bundle",
    "fetch-mirror",
    "locate-sample",
    "export",
    "export-classifier",
    "check-operator",
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
            assert options == {"action": "store_true"} or options["type"] in cli.METAVARS, (command, name)


def test_every_rule_of_the_workflow_calls_the_command_of_its_name(root):
    text = "".join(path.read_text() for path in sorted((root / "workflow/rules").glob("*.smk")))
    of_loops = {"exhibit", "finetune", "measure-blimp"}  # of several rules, each for a table, a suite or a host
    assert all(f"-m symbert --log {{log:q}} {command} " in text for command in of_loops)
    for command in cli.COMMANDS.keys() - ANSWERS - of_loops:
        rule = text.split(f"rule {command.replace('-', '_')}:")
        assert len(rule) == 2, f"no rule for {command}"
        shell = rule[1].split("\nrule ")[0]
        if command == "pretrain-model":  # of each host a rule, which start it alike
            assert 'f"{GPUS_GIVEN} exec {LAUNCHER} pretrain-model ' in text and "TRAIN" in shell
        else:
            assert f"-m symbert --log {{log:q}} {command} " in shell


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
    assert code == 65
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1 and said[0].startswith("symbert extract-checkpoint: ") and "step 1 was not kept" in said[0]


def test_a_positional_only_parameter_is_an_argument_without_a_name(capsys):
    for words in (["import-scores", "gone.csv", "--name", "theirs"], ["import-scores", "--name", "theirs", "gone.csv"]):
        assert cli.main(words) == 65
        assert "symbert import-scores: gone.csv: file not found" in capsys.readouterr().err


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


def help_of(capsys, *arguments: str) -> str:
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


def test_every_command_stands_in_one_group_with_a_line_of_its_docstring(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    text = help_of(capsys)
    assert sum(map(len, cli.GROUPS.values())) == len(cli.COMMANDS), "a name in two groups"
    for group, commands in cli.GROUPS.items():
        listed = text.partition(f"\n{group}:\n")[2].partition("\n\n")[0]
        shown = [line.split() for line in listed.splitlines() if line[2] != " "]
        assert [words[0] for words in shown] == list(commands)
        for words, place in zip(shown, commands.values(), strict=True):
            assert inspect.getdoc(cli.load(words[0])).split()[: len(words) - 1] == words[1:], place
    assert max(map(len, text.splitlines())) <= 100


def test_the_list_of_commands_imports_none_of_their_modules():
    program = "import sys; from symbert.cli import main\ntry: main(['--help'])\n"
    program += "except SystemExit: print(sorted({'torch', 'pandas', 'numpy', 'yaml'} & sys.modules.keys()))"
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_option_of_a_command_has_a_line(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")
    text = help_of(capsys, command)
    assert max(map(len, text.splitlines())) <= 100
    for name, parameter in inspect.signature(cli.load(command)).parameters.items():
        is_argument = parameter.kind is parameter.POSITIONAL_ONLY
        shown = f"\n  {name.upper()} " if is_argument else f"\n  --{name.replace('_', '-')}"
        assert shown in text and line_of(command, name).split()[0] in text.partition(shown)[2]


def test_no_line_tells_of_an_option_that_no_command_has():
    options = {command: set(inspect.signature(cli.load(command)).parameters) for command in cli.COMMANDS}
    general = {name for command, names in options.items() for name in names if f"{command} {name}" not in OPTIONS}
    assert OPTIONS.keys() == general | {key for key in OPTIONS if " " in key}
    for key in OPTIONS.keys() - general:
        command, _, name = key.partition(" ")
        assert name in options[command], key


def test_a_list_of_files_may_be_a_file_of_their_names(tmp_path, capsys):
    """Names end with a NUL, so that they may hold anything else; a name in a list names no other list."""
    parts = [tmp_path / name for name in ("a b.json", "@c.json", "d\ne.json")]
    for number, part in enumerate(parts):
        part.write_text(json.dumps({"documents": 10**number, "tokens": 5}))
    names = tmp_path / "names"
    names.write_bytes(b"".join(bytes(part) + b"\0" for part in parts))
    output = tmp_path / "count.json"
    assert cli.main(["count-batch", "--records", f"@{names}", str(parts[0]), "--output", str(output)]) == 0
    assert json.loads(output.read_text()) == {"documents": 112, "tokens": 20}
    assert cli.main(["count-batch", "--records", "@none", "--output", str(output)]) == 65
    assert capsys.readouterr().err == "symbert count-batch: none: file not found\n"


def test_write_settings_writes_the_given_values(tmp_path):
    assert cli.main(["write-settings", "--values", '{"parts": 2}', "--output", str(tmp_path / "s.json")]) == 0
    assert read_json(tmp_path / "s.json") == {"parts": 2}


def test_a_reader_who_has_seen_enough_is_no_bug(root):
    """`symbert status | head -n 1` said "internal error: BrokenPipeError"."""
    command = [sys.executable, "-m", "symbert", "status"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 65
