import inspect
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from symbert import cli
from workflow.checkout import heed_signals

WORK = """
import sys, time
from pathlib import Path
from typing import Annotated
from symbert import cli
from symbert.files import publish

def work(path: Annotated[Path, "a file"], /) -> None:
    with publish(path) as temporary:
        temporary.write_text("half")
        try:
            exec("print('works', flush=True); time.sleep(60)")  # as dataclasses has it: Python then ended by SIGINT
        finally:
            time.sleep(0.2)  # of a clean-up

cli.COMMANDS["work"] = "__main__:work"
sys.exit(cli.main())
"""


@pytest.mark.parametrize(
    "arguments", [["--logs"], ["pack"], [], ["import-scores", "--name", "theirs"], ["plan", "--sclae", "x"]]
)
def test_a_wrong_command_line_ends_with_64_and_a_typo_is_told_the_near_name(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(cli.main(arguments))
    assert stop.value.code == 64 and capsys.readouterr().err
    assert cli.main(["prepare-prat"]) == 64 and "'prepare-part'" in capsys.readouterr().err


def test_help_lists_what_a_user_types_and_no_job_of_the_workflow(root, capsys):
    rules = "".join(path.read_text() for path in (root / "workflow/rules").glob("*.smk"))
    assert cli.main(["--help"]) == 0
    listed = re.findall(r"^  ([a-z][\w-]+)  +\S", capsys.readouterr().out, re.M)
    assert listed == list(cli.TYPED) and not {*cli.TYPED} & {*cli.JOBS}
    for job in cli.JOBS:
        assert f" {job} " in rules


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_a_command_says_what_each_option_and_argument_is(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    said = capsys.readouterr().out
    parameters = inspect.signature(cli.load(command)).parameters.values()
    for parameter in parameters:
        is_argument = parameter.kind is parameter.POSITIONAL_ONLY
        name = parameter.name.upper() if is_argument else "--" + parameter.name.replace("_", "-")
        value = "" if is_argument else r"( [A-Z]+( \[.*?\])?)?"
        assert re.search(rf"^  {name}{value}(\n {{6,}}| {{2,}})\w.{{5,}}$", said, re.M), name


def test_a_reader_who_has_seen_enough_is_no_bug(root):
    """`symbert status | head -n 1` said "internal error: BrokenPipeError"."""
    command = [sys.executable, "-m", "symbert", "status"]
    process = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=60) == 65


def test_a_file_of_ones_own_with_the_name_of_a_library_is_not_that_library(folder):
    """`python -m symbert` looked in the folder first; an operator that lies there is found all the same."""
    for library in ("datasets", "numpy", "random", "string", "tokenizers"):
        (folder / f"{library}.py").write_text("# notes\n")
    (folder / "mine.py").write_text(
        "from symbert.model.attention import SharedAttention as Mine\n\n\nclass Own(Mine):\n    pass\n"
    )
    command = [sys.executable, "-m", "symbert", "plan", "--config", "sweep={attention: [original, 'mine:Own']}"]
    told = subprocess.run(command, capture_output=True, text=True)
    assert told.returncode == 0 and told.stdout, told.stderr


def test_a_job_finds_an_operator_of_ones_own_in_the_folder_where_it_runs(folder):
    """Only what reads a configuration looked there: `symbert pretrain` knew "no module mine"."""
    (folder / "mine.py").write_text(
        "from symbert.model.attention import OriginalAttention\n\n\nclass Own(OriginalAttention):\n    pass\n"
    )
    configure = "import sys; sys.path.append('.'); from symbert.operators import operators_of as of; "
    configure += "import msgspec; print(msgspec.json.encode(of({}, ['mine:Own'])['own']).decode())"
    job = "import sys, msgspec; from pathlib import Path; from symbert.operators import Operator; "
    job += "msgspec.json.decode(sys.stdin.read(), type=Operator).refuse_edited(Path('run.json'))"
    planned = subprocess.run([sys.executable, "-P", "-c", configure], capture_output=True, text=True)
    told = subprocess.run([sys.executable, "-P", "-c", job], input=planned.stdout, capture_output=True, text=True)
    assert planned.stdout and told.returncode == 0, planned.stderr + told.stderr


def work(folder: Path, code: str, before: Callable[[], object]) -> subprocess.Popen:
    """A job that writes a file, as Snakemake starts one."""
    (folder / "work.py").write_text(code)
    command = [sys.executable, "-m", "work", "work", "results/result"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, cwd=folder, preexec_fn=before, **pipes)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_job_that_is_asked_to_stop_once_or_often_ends_with_75_and_one_line_and_leaves_nothing(tmp_path, number):
    """SIGTERM ended a job at once: no line, and half a file beside its result."""
    process = work(tmp_path, WORK, heed_signals)
    try:
        assert process.stdout.readline() == "works\n"
        for _ in range(1 if number == signal.SIGINT else 20):
            process.send_signal(number)
            time.sleep(0.001)
        said = process.communicate(timeout=60)[1]
    finally:
        process.kill()
    assert process.returncode == 75 and os.listdir(tmp_path / "results") == []
    assert said == "symbert work: interrupted; the same command resumes\n"


def test_a_job_that_was_started_to_outlive_its_terminal_does(tmp_path):
    """As `nohup` starts it."""
    with work(tmp_path, WORK.replace("60", "0.5"), lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as process:
        assert process.stdout.readline() == "works\n"
        process.send_signal(signal.SIGHUP)
        assert process.wait(60) == 0 and os.listdir(tmp_path / "results") == ["result"]
