"""The recipes of docs/getting-started.md as a user types them: those that take seconds are run, at tiny settings where
they train; those that need a hub, a GPU or a cluster are planned."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from documented import blocks_of, custom_files
from foreign import make_model
from workflow.checkout import TINY, Checkout, check_out

pytestmark = pytest.mark.campaign

PAGE = "docs/getting-started.md"
SHORT = """\
corpus: {pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}}
pretrain: {steps: 20, schedule_steps: null, batch_size: 8, warmup_steps: 5, evaluate_every: 5, save_every: 5}
sweep:
  pretrain_seeds: [1, 2, 3]
  curve: {sizes: []}
  tune: {learning_rate: [5.0e-4, 1.0e-3], seeds: [101]}
"""  # of the tuned sweep, after its file
PLANNED = ("source=hub", "google-bert/")  # in a command that nothing here can run to its end


@pytest.fixture(scope="module")
def checkout(root, tmp_path_factory) -> Checkout:
    """A copy of the project with what the page calls the user's own."""
    copy = check_out(root, tmp_path_factory.mktemp("recipes") / "copy")
    for name, text in custom_files(root, PAGE).items():
        (copy.directory / name).write_text(text)
    for name in ("CITATION.cff", "LICENSE"):  # which an archive has
        shutil.copy(root / name, copy.directory / name)
    (copy.directory / "tiny.yaml").write_text(TINY)
    (copy.directory / "short.yaml").write_text(SHORT)
    make_model(copy.directory / "DIR", "bert")
    return copy


def recipes(root: Path) -> dict[str, list[str]]:
    """The command lines of each recipe by its heading."""
    found = {}
    for part in re.split(r"^##+ ", (root / PAGE).read_text(encoding="utf-8"), flags=re.M)[1:]:
        blocks = [text for kind, text in blocks_of(part) if kind == "bash"]
        found[part.splitlines()[0]] = [line for block in blocks for line in block.splitlines()]
    return {heading: lines for heading, lines in found.items() if lines}


def runnable(line: str) -> list[str] | None:
    """The command for this machine: the target `paper` by its command, trainings at tiny settings, and a dry run of
    what needs a hub; None where it has none."""
    words = shlex.split(line, comments=True)
    if words[0] == "export" or (
        words[:2] == ["symbert", "evaluate"] and any(word.startswith(PLANNED) for word in words)
    ):
        return None
    if words[0] == "make":
        return ["symbert", *words[1:]]
    if words[0] == "snakemake" and any(word.startswith(PLANNED) for word in words):
        return [*words, *(["--dry-run"] if "--dry-run" not in words else [])]
    if words[0] == "snakemake" and "--configfile" in words:
        words.insert(words.index("--configfile") + 2, "short.yaml")
    elif words[0] == "snakemake":
        words[1:1] = ["--configfile", "tiny.yaml"]
    return words


def test_every_recipe_does_what_it_says(root, checkout):
    done = recipes(root)
    assert len(done) == 7, "six, and what comes afterwards"
    for heading, lines in done.items():
        for words in filter(None, map(runnable, lines)):
            command = [sys.executable, "-m", *words] if words[0] in ("symbert", "snakemake") else words
            run = subprocess.run(
                command, cwd=checkout.directory, env=checkout.environment, capture_output=True, text=True
            )
            is_unknown = words[:2] == ["symbert", "status"]  # of an experiment that is only planned here
            assert run.returncode == (65 if is_unknown else 0), (heading, words, (run.stdout + run.stderr)[-3000:])
            assert "Traceback" not in run.stdout + run.stderr, (heading, words)
    results = checkout.directory / "results"
    for experiment in ("paper", "demo-embedded", "gated", "equal-tuning", "DIR"):
        assert (results / experiment / "report/report.html").is_file(), experiment
    assert "gated" in (results / "gated/report/tables/table3_glue.csv").read_text()
    assert "gated" in (results / "equal-tuning/report/report.html").read_text()
    assert (checkout.directory / "demo-embedded.zip").is_file()
