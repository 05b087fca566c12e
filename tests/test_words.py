"""Bash writes out what was written in short: every path, in its order, however odd its name."""

import subprocess
import sys

import pytest
from hypothesis import example, settings
from hypothesis import given as drawn
from hypothesis import strategies as some

from symbert.words import braced, given

NAMES = some.text(some.sampled_from("ab,{}'\"$*?~ \n\\!.-1ü"), max_size=4)
PATHS = some.lists(some.lists(NAMES, min_size=1, max_size=4).map("/".join).filter(bool), max_size=8)


def written_out(word):
    """What a command is given for a word, as bash gives it."""
    done = subprocess.run(["bash", "-c", f"set -- {word}; printf '%s\\0' \"$@\""], capture_output=True, check=True)
    return done.stdout.decode().split("\0")[:-1]


@settings(max_examples=150)
@drawn(PATHS.filter(bool))
@example(["a", "a", "a/b", "a"])
@example(["{1..3}", "x,y", "it's", "it's, here"])
@example(["/absolute/a.json", "/absolute/b.json", "~/c", "$HOME", "`ls`", "-n"])
@example(["a b/{x}.json", "a b/{y}.json", "c/{x}.json", "c/{y}.json"])
@example(["part.npy", "part_1.npy", "part_10.npy"])
def test_bash_gives_back_every_path_in_its_order(paths):
    assert written_out(braced(paths)) == paths


def test_the_scores_of_a_large_sweep_are_a_short_word():
    """Seven operators, three seeds, 18 checkpoints and 8 tasks, a path each: 200 kB, of which no one byte is lost."""
    tasks = ("mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2")
    operators = ("original", "symmetric", "pairwise", "shared", "gain", "identity", "scaled")
    paths = [
        f"results/paper-hub/glue/base-{operator}/seed-{seed}/step-{step}/{task}.json"
        for operator in operators
        for seed in (1, 2, 3)
        for step in range(2000, 38000, 2000)
        for task in tasks
    ]
    word = braced(paths)
    assert len(" ".join(paths)) > 190_000 and len(word) < 400
    assert written_out(word) == paths


@pytest.mark.parametrize(
    "files", [["@a"], ["a b", "@c", "-d", "e\nf", "{g,h}"], [f"{'a long name ' * 20}{n}.json" for n in range(10_000)]]
)
def test_a_command_reads_every_file_of_a_list_however_many_and_odd(files, tmp_path):
    """2,900 long names were more than Linux hands to a command."""
    script = tmp_path / "script.sh"  # as Snakemake does with a long command
    command = 'import sys; from symbert.cli import _listed; print("\\0".join(map(str, _listed(sys.argv[2]))), end="")'
    script.write_text(f"'{sys.executable}' -c '{command}' {given('counts')(None, {'counts': files})}")
    done = subprocess.run(["bash", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\0") == files
