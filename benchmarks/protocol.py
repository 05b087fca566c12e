"""How much `make bench-pretrain` trains on a kind of device, and what is promised there."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.trainers import Task
from symbert.configuration import PretrainSettings, training_of
from symbert.experiment.project import read_yaml
from symbert.hosts import ENCODER

ROOT = Path(__file__).parents[1]
OPERATORS = ("original", "symmetric", "pairwise", "shared")
STOCK, COMPILED = "stock Trainer", "Trainer, compiled"  # without and with torch_compile; targets are set beside STOCK
PAPER_BATCH = 256  # sequences


@dataclass(frozen=True)
class Protocol:
    """What is trained in a round, and how fast this project must be."""

    recipes: tuple[str, ...]
    peers: tuple[str, ...]
    batch_size: dict[str, int]  # sequences of an optimizer step, by size
    micro_batch_size: dict[str, int]  # sequences computed at a time, by size
    tokens: int  # of a row
    steps: dict[str, int]  # timed, of each contestant in each round, by size
    untimed: int  # steps before them
    workers: int  # processes that collate for the authors' way
    speed: dict[str, float]  # promised ratio of tokens/s to STOCK's, by size
    promising: str  # the recipe of which it is promised


CPU = Protocol(
    recipes=("faithful",),
    peers=(STOCK,),
    batch_size={"small": 4, "base": 2},
    micro_batch_size={"small": 4, "base": 2},
    tokens=512,
    steps={"small": 3, "base": 2},
    untimed=1,
    workers=0,  # no core is left for them
    speed={"small": 1.7, "base": 1.2},
    promising="faithful",
)
CUDA = Protocol(
    recipes=("faithful", "fast"),
    peers=(STOCK, COMPILED),
    batch_size={"small": PAPER_BATCH, "base": PAPER_BATCH},
    micro_batch_size={"small": 128, "base": 64},
    tokens=512,
    steps={"small": 10, "base": 10},
    untimed=3,
    workers=8,  # as for each process in the authors' scripts
    speed={"small": 2.5, "base": 1.5},
    promising="fast",
)


def settings_of(**changes: Any) -> PretrainSettings:
    """The paper's settings of pre-training, with changes."""
    return replace(training_of(read_yaml(ROOT / "workflow/defaults.yaml"), ENCODER), **changes)


def task_of(size: str, protocol: Protocol, manifest: Path) -> Task:
    """What the contestants of a size train."""
    return Task(
        size=size,
        settings=settings_of(batch_size=protocol.batch_size[size]),
        manifest=manifest,
        tokens=protocol.tokens,
        micro_batch_size=protocol.micro_batch_size[size],
        untimed=protocol.untimed,
        workers=protocol.workers,
    )
