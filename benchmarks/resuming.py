"""A run at demo scale that is resumed, as fresh processes: how long until it trains again."""

import json
import shutil
import sys
from pathlib import Path

from msgspec import to_builtins

from benchmarks.measure import Command, Contestant, interleave, measure
from benchmarks.packed import write_corpus
from symbert.settings import PretrainSettings

IMPORTS = "import torch"
ROWS, TOKENS, VOCABULARY = 8192, 16, 300  # the demo's rows


def measure_resuming(folder: Path, settings: PretrainSettings, rounds: int, threads: int) -> list[dict[str, float]]:
    """Wall seconds of `importing` alone, and of `resuming`: a process that does the last step of a run, and ends.

    The latter is more than the time to the first step: it also evaluates, saves and publishes.
    """
    train = pretrain(folder / "resuming", settings, threads)
    measure(Contestant("train, to be resumed", [[train]]), "once")
    present = [
        Contestant("importing", [[[sys.executable, "-c", IMPORTS]]]),
        Contestant("resuming", [[train]]),
    ]
    found = interleave(present, rounds, lambda: forget_newest(folder / "resuming"))
    return [{name: usage.wall for name, usage in round.items()} for round in found]


def pretrain(folder: Path, settings: PretrainSettings, threads: int) -> Command:
    """The command that trains a tiny model into `folder`."""
    manifest = write_corpus(folder / "rows", ROWS, TOKENS, VOCABULARY)
    (folder / "settings.json").write_text(json.dumps(to_builtins(settings)))
    options = {
        "manifest": manifest,
        "settings": folder / "settings.json",
        "size": "tiny",
        "attention": "pairwise",
        "seed": 1,
        "state": folder / "run/state",
        "done": folder / "run/done.json",
        "metrics": folder / "run/metrics.jsonl",
        "timing": folder / "run/timing.json",
        "threads": threads,
        "on-settings-change": "refuse",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return [sys.executable, "-m", "symbert", "pretrain-model", *words]


def forget_newest(folder: Path) -> None:
    """Leave the run as if it had been interrupted before its last step."""
    newest = max((folder / "run/state/resume").glob("step-*"))
    shutil.rmtree(newest)
