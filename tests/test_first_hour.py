"""tests/first_hour.sh with programs that only look like the real ones: what it runs, and what it does not let pass."""

import os
import subprocess
from pathlib import Path

import pytest

STUB = """#!/bin/bash
echo "$(basename "$0") $*" >> "$LOG"
case "$(basename "$0") $*" in
  git*) mkdir -p "${@: -1}/results" ;;
  "make reproduce") mkdir -p .venv/bin results/demo-embedded/report
    ln -s "$(command -v stub)" .venv/bin/python; touch .venv/bin/activate
    echo page > results/demo-embedded/report/report.html ;;
  *bert*export*) mkdir -p bert; echo {} > bert/config.json ;;
  *experiment=*) all=$*; name=${all#*experiment=}; name=${name%% *} ;;
  *configfile*) name=$(sed -n 's/^experiment: //p' "${@: -1}") ;;
  *plan*) code=65 ;;
esac
if [ -n "$name" ] && [ "$name" != "$LOST" ]; then
  mkdir -p "results/$name/report"; echo page > "results/$name/report/report.html"
fi
case "$*" in *"$AT"*) printf "$SAID"; code=${CODE:-$code} ;; esac
exit "${code:-0}"
"""
NOTHING = {"AT": "-", "SAID": "", "LOST": ""}


@pytest.fixture
def first_hour(root, tmp_path):
    """Run the script with stubs; gives how it ended and the lines of all commands that it gave."""
    bin_folder, log = tmp_path / "bin", tmp_path / "log"
    bin_folder.mkdir()
    for name in ("stub", "git", "make", "symbert", "snakemake"):
        (bin_folder / name).write_text(STUB)
        (bin_folder / name).chmod(0o755)

    def run(**words: str) -> tuple[subprocess.CompletedProcess, list[str]]:
        environment = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}", "LOG": str(log), **NOTHING, **words}
        command = [str(root / "tests/first_hour.sh"), str(tmp_path / "hour")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        return done, log.read_text().splitlines()

    return run


def test_the_first_hour_is_what_readme_shows_in_its_order(first_hour, root):
    done, commands = first_hour()
    assert done.returncode == 0, done.stderr
    assert commands[0] == f"git clone --quiet {root} symbert"
    assert commands[1:5] == ["make reproduce", "make test", "symbert probe original symmetric", commands[4]]
    assert commands[4].startswith("symbert anatomy results/demo-embedded/pretrain/")
    assert [line for line in commands if "configfile" in line] == [
        f"snakemake --cores 2 --configfile {name}.yaml" for name in ("deep", "irony", "crawl")
    ]
    assert commands[-1].startswith("python -m screens results/demo-embedded/report/report.html ")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"AT": "probe", "SAID": "Traceback (most recent call last):\\n"}, "the console has a traceback"),
        ({"AT": "deep.yaml", "SAID": "x" * 201}, "the console has lines of more than 200 characters"),
        ({"AT": "reproduce", "CODE": "3"}, "a command ended with an error"),
        ({"LOST": "irony"}, "results/irony/report/report.html is missing"),
    ],
)
def test_the_first_hour_does_not_let_pass(first_hour, words, told):
    done, _ = first_hour(**words)
    assert done.returncode == 1 and told in done.stderr, done.stderr


def test_a_progress_bar_that_is_written_over_is_no_long_line(first_hour):
    bar = "".join(f"\\r\\033[32m{share:3d} %% {'#' * 60}\\033[0m" for share in range(0, 100, 10))
    done, _ = first_hour(AT="irony.yaml", SAID=bar + "\\n")
    assert done.returncode == 0, done.stderr


def test_an_error_of_symbert_may_be_a_long_line(first_hour):
    """Where the disk is too small for the paper's experiment, `symbert plan` names every place and key in one."""
    done, _ = first_hour(AT="scale paper", SAID=f"symbert plan: config: {'storage, ' * 30}free space\\n")
    assert done.returncode == 0, done.stderr


def test_a_finished_demo_is_taken_and_a_line_left_out(first_hour, tmp_path):
    (tmp_path / "demo-embedded").mkdir()
    (tmp_path / "demo-embedded/mark").touch()
    done, commands = first_hour(FINISHED=str(tmp_path / "demo-embedded"), SKIP="make test")
    assert done.returncode == 0 and "make test" not in commands and "make reproduce" in commands
    assert (Path(tmp_path) / "hour/symbert/results/demo-embedded/mark").is_file()
