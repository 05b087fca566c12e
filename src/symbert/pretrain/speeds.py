"""The command that measures how fast operators train: side by side, in one process, on one device.

Trainings are hours apart, and share machines with other jobs, so their own speeds are not comparable. Here every round
takes one optimizer step of each operator, and operators are compared within a round.
"""

import sys
import time
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import to_builtins

from symbert.errors import MemoryExhaustedError
from symbert.files import write_json
from symbert.pretrain.run import Pretraining
from symbert.steps import SETTINGS, Step, read_step

ROUNDS, UNTIMED = 40, 2  # the first ones compile, fill caches, and find the micro-batch that fits the memory


class MeasureSpeeds(Step, frozen=True, kw_only=True):
    """The trainings of a size that are timed side by side, a run of each operator."""

    files: ClassVar[dict[str, str]] = {"speeds": "speeds.json"}

    runs: list[Pretraining]
    micro_batch_size: int | None = None  # at most

    @property
    def place(self) -> str:
        """The folder below results/, without the key."""
        return f"measured/speeds-{self.runs[0].size}"

    def reads(self) -> list[str]:
        """The files that it waits for."""
        return list(dict.fromkeys(file for run in self.runs for file in run.reads()))


class Rounds(msgspec.Struct):
    """The steps of one operator."""

    step_seconds: list[float]  # of each round
    flops_per_step: float


class Speeds(msgspec.Struct, kw_only=True):
    """speeds.json: what was timed, and on what."""

    size: str
    device: str
    processor: str
    versions: dict[str, str]
    precision: str
    compile: bool
    threads: int
    micro_batch_size: int
    peak_flops: float | None  # None where the device's data sheet is not known here
    tokens_per_step: float
    operators: dict[str, Rounds]


def measure_speeds(
    output: Annotated[Path, "speeds.json beside its settings.json"], /, threads: Annotated[int, "threads of torch"]
) -> None:
    """Measure the seconds of optimizer steps of operators of one size, taken in turns, by the settings beside `output`.

    Batches are those of the trainings, in one process, in micro-batches as large as the memory takes beside the models
    of all operators, at most the configured one. `output` (JSON) has per operator the seconds of a step in each round,
    and the operations of a step; it has no operators where their models do not fit the memory side by side.
    """
    import torch  # slow to load, as all that computes with it
    from torch._dynamo import config as compiler

    from symbert.pretrain.compute import describe_machine, explained
    from symbert.pretrain.pace import known_peak
    from symbert.pretrain.train import Trainer

    torch.set_num_threads(threads)
    measured = read_step(output.parent, MeasureSpeeds)
    for run in measured.runs:
        run.operator.refuse_edited(output.parent / SETTINGS)
    size, training, limit = measured.runs[0].size, measured.runs[0].training, measured.micro_batch_size
    try:
        # The compiler keeps a graph for each operator: by itself at most eight.
        with explained(size), compiler.patch(recompile_limit=64):
            trainers = [Trainer(run, micro_batch_size=limit) for run in measured.runs]
            rounds, least = [], trainers[0].micro_batch_size
            while len(rounds) < UNTIMED + ROUNDS:
                rounds.append(_seconds(trainers, len(rounds)))
                if (smaller := min(trainer.micro_batch_size for trainer in trainers)) < least:
                    rounds, least = [], smaller  # all rounds again, with equal micro-batches
                    for trainer in trainers:
                        trainer.micro_batch_size = least
    except MemoryExhaustedError:
        words = "the models of all operators do not fit the memory side by side; Table 2 has no speeds of them"
        print(f"warning: {size}: {words}", file=sys.stderr)
        write_json(output, {"size": size, "operators": {}})
        return
    first = trainers[0]
    machine = describe_machine(first.device)
    speeds = Speeds(
        size=size,
        **{key: machine[key] for key in ("device", "processor", "versions")},
        precision=first.precision,
        compile=training.compile,
        threads=threads,
        micro_batch_size=first.micro_batch_size,
        peak_flops=known_peak(machine["device"], first.precision),
        tokens_per_step=training.batch_size * first.task.tokens,
        operators={
            trainer.run.attention: Rounds(list(seconds), trainer.task.flops(trainer.model))
            for trainer, seconds in zip(trainers, zip(*rounds[UNTIMED:], strict=True), strict=True)
        },
    )
    write_json(output, to_builtins(speeds))


def _seconds(trainers: list[Any], number: int) -> list[float]:
    """The seconds of one step of each `Trainer`; every round begins with another one."""
    from torch import cuda

    seconds = [0.0] * len(trainers)
    for turn in range(len(trainers)):
        at = (number + turn) % len(trainers)
        begun = time.perf_counter()
        trainers[at].step(number % trainers[at].settings.steps)
        if trainers[at].device.type == "cuda":
            cuda.synchronize(trainers[at].device)  # the last update of weights is not waited for
        seconds[at] = time.perf_counter() - begun
    return seconds
