"""`symbert evaluate` beside Snakemake, for which a script stands: what it is asked, and how both end."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from symbert.errors import ConfigError, MissingInputError, UsageError
from symbert.experiment.given import read_words
from symbert.report import evaluate as module
from symbert.report.evaluate import evaluate, name_of
from workflow.checkout import heed_signals, wait_for

SNAKEMAKE = """
import json, signal, sys, time
from pathlib import Path

def end(number, frame):  # as Snakemake does, after its jobs
    time.sleep(0.3)
    Path("ended").touch()
    sys.exit(1)

signal.signal(signal.SIGTERM, end)
Path("begun").write_text(json.dumps(sys.argv[1:]))
if '"rte"' in sys.argv[-1]:
    time.sleep(60)
sys.exit(64)
"""


@pytest.fixture
def started(folder):
    """Starts the command, where a script stands for Snakemake: with the task rte it works until it is asked to end."""
    (folder / "snakemake").mkdir()
    (folder / "snakemake/__init__.py").touch()
    (folder / "snakemake/__main__.py").write_text(SNAKEMAKE)
    path = os.pathsep.join([str(folder), os.environ["PYTHONPATH"]])

    def started(*words: str) -> subprocess.Popen:
        return subprocess.Popen(
            [sys.executable, "-m", "symbert", "evaluate", *words],
            env=os.environ | {"PYTHONPATH": path},
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=heed_signals,
        )

    return started


def test_sigterm_is_passed_on_to_snakemake_whose_end_is_waited_for(started):
    with started("owner/some-model", "--tasks", "rte") as process:
        wait_for(Path("begun").exists, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 1 and Path("ended").exists()
        assert process.stdout.read() == "", "no table"


def test_one_model_and_no_pretraining_are_asked_for_and_an_exit_code_is_passed_on(started):
    rates = ("--learning-rate", "1e-5", "3e-5")
    with started("owner/some-model", "--tasks", "boolq", "mrpc", "--seeds", "3", "--cores", "2", *rates) as process:
        assert process.wait(60) == 64
    asked = json.loads(Path("begun").read_text())
    assert asked[asked.index("--cores") + 1] == "2"
    assert read_words(asked[asked.index("--config") + 1 :]) == {
        "scale": "encoders",
        "source": "hub",
        "experiment": "some-model",
        "models": {"some-model": {"path": "owner/some-model", "learning_rate": ["1e-05", "3e-05"]}},
        "sweep": {
            "attention": [],
            "suites": ["superglue", "glue"],
            "tasks": ["boolq", "mrpc"],
            "finetune_seeds": ["1", "2", "3"],
        },
    }


@pytest.mark.parametrize(
    ("path", "name"),
    [("google-bert/bert-base-uncased", "bert-base-uncased"), ("../a model/", "a-model"), ("results/.hidden", "hidden")],
)
def test_a_model_is_called_by_the_last_part_of_its_path(path, name):
    assert name_of(path) == name


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"tasks": ["rte", "mrcp"]}, ConfigError, "mrpc"),
        ({"source": "huub"}, UsageError, "hub"),
        ({"source": "mirror"}, ConfigError, "mirror"),
        ({"seeds": 0}, UsageError, "--seeds"),
        ({"name": "original"}, ConfigError, "original"),
        ({"learning_rate": [0.0]}, ConfigError, "learning_rate"),
    ],
)
def test_a_mistake_is_told_before_snakemake_starts(changes, error, said, monkeypatch):
    monkeypatch.setattr(module, "snakemake", lambda words: pytest.fail("started"))
    with pytest.raises(error, match=said):
        evaluate("owner/model", **{"tasks": ["rte"]} | changes)


def test_an_installation_without_a_snakefile_says_where_there_is_one(folder, monkeypatch):
    monkeypatch.setattr(module, "PROJECT", folder)
    with pytest.raises(MissingInputError, match="clone"):
        evaluate("owner/model", ["rte"])
