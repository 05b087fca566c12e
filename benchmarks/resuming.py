"""A run at demo scale that is resumed, as fresh processes: how long until it trains again."""

import shutil
import sys
from pathlib import Path

from benchmarks.measure import Command, Contestant, interleave, measure
from benchmarks.packed import write_corpus
from symbert.configuration import PretrainSettings, recorded_settings
from symbert.files import write_json
from symbert.paths import Run

IMPORTS = "import torch"
ROWS, TOKENS, VOCABULARY = 8192, 16, 300  # the demo's rows
INTERRUPTED = (  # the command, killed before it removes its checkpoints
    "import sys; from symbert.cli import main; from symbert.pretrain.checkpoint import CheckpointStore; "
    "CheckpointStore.remove_resumable = lambda store: None; main(sys.argv[1:])"
)


def measure_resuming(folder: Path, settings: PretrainSettings, rounds: int, threads: int) -> list[dict[str, float]]:
    """Wall seconds of `importing` alone, and of `resuming`: a process that does the last step of a run, and ends.

    The latter is more than the time to the first step: it also evaluates, saves and publishes.
    """
    run, before = folder / "resuming/run", folder / "resuming/before"
    words = pretrain(run, settings, threads)
    measure(Contestant("train, to be resumed", [[[sys.executable, "-c", INTERRUPTED, *words]]]), "once")
    shutil.rmtree(max((run / "state/resume").glob("step-*")))  # as if it had been interrupted before its last step
    shutil.copytree(run / "state", before)
    present = [
        Contestant("importing", [[[sys.executable, "-c", IMPORTS]]]),
        Contestant("resuming", [[[sys.executable, "-m", "symbert", *words]]]),
    ]

    def interrupt_again() -> None:
        shutil.rmtree(run / "state")
        shutil.copytree(before, run / "state")

    found = interleave(present, rounds, interrupt_again)
    return [{name: usage.wall for name, usage in round.items()} for round in found]


def pretrain(folder: Path, settings: PretrainSettings, threads: int) -> Command:
    """The words of the command that trains a tiny model in `folder`, whose run.json is written."""
    manifest = write_corpus(folder.parent / "rows", ROWS, TOKENS, VOCABULARY)
    run = Run("tiny", "pairwise", 1)
    facts = {**run.facts, "host": run.host, "model": run.model, "training": recorded_settings(settings)}
    write_json(folder / "run.json", {**facts, "manifest": str(manifest)})
    return ["pretrain", str(folder), "--threads", str(threads)]
