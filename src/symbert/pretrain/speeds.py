"""The command that measures how fast operators train: side by side, in one process, on one device.

Trainings are hours apart, and share machines with other jobs, so their own speeds are not comparable. Here every round
takes one optimizer step of each operator, and operators are compared within a round.
"""

import sys
import time
from pathlib import Path

import torch

from symbert.configuration import PretrainSettings, settings_from
from symbert.errors import MemoryExhaustedError
from symbert.files import read_json, write_json
from symbert.paths import Run
from symbert.pretrain.compute import explained, facts_of_machine
from symbert.pretrain.pace import known_peak
from symbert.pretrain.run import define_model
from symbert.pretrain.train import Trainer

ROUNDS, UNTIMED = 40, 2  # the first ones compile, fill caches, and find the micro-batch that fits the memory
SETTINGS = {"size": str, "models": {str: {"operator_code": str}}, "training": dict, "manifest": str}


def measure_speeds(output: Path, /, threads: int) -> None:
    """Measure the seconds of optimizer steps of operators of one size, taken in turns, by the settings beside `output`.

    Batches are those of the trainings, in one process, in micro-batches as large as the memory takes beside the models
    of all operators, at most the configured one. `output` (JSON) has per operator the seconds of a step in each round,
    and the operations of a step; it has no operators where their models do not fit the memory side by side.
    `peak_flops` is null where the device's data sheet is not known here.
    """
    from torch._dynamo import config as compiler  # slow to load

    torch.set_num_threads(threads)
    file = output.parent / "settings.json"
    settings = read_json(file, SETTINGS, "run snakemake again")
    size, manifest = settings["size"], Path(settings["manifest"])
    for name, model in settings["models"].items():
        define_model(size, name, model, file)
    chosen, runs = settings_from(settings["training"], PretrainSettings, str(file)), settings["models"]
    try:
        # The compiler keeps a graph for each operator: by itself at most eight.
        with explained(size), compiler.patch(recompile_limit=64):
            limit = settings.get("micro_batch_size")
            trainers = [Trainer(Run(size, name, 1), chosen, manifest, micro_batch_size=limit) for name in runs]
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
    machine = facts_of_machine(first.device)
    measured = {
        "size": size,
        **{key: machine[key] for key in ("device", "processor", "versions")},
        "precision": first.precision,
        "recipe": chosen.recipe,
        "threads": threads,
        "micro_batch_size": first.micro_batch_size,
        "peak_flops": known_peak(machine["device"], first.precision),
        "tokens_per_step": chosen.batch_size * first.task.tokens,
        "operators": {
            trainer.run.attention: {"step_seconds": list(seconds), "flops_per_step": trainer.task.flops(trainer.model)}
            for trainer, seconds in zip(trainers, zip(*rounds[UNTIMED:], strict=True), strict=True)
        },
    }
    write_json(output, measured)


def _seconds(trainers: list[Trainer], number: int) -> list[float]:
    """The seconds of one step of each trainer; every round begins with another one."""
    seconds = [0.0] * len(trainers)
    for turn in range(len(trainers)):
        at = (number + turn) % len(trainers)
        begun = time.perf_counter()
        trainers[at].step(number % trainers[at].settings.steps)
        if trainers[at].device.type == "cuda":
            torch.cuda.synchronize(trainers[at].device)  # the last update of weights is not waited for
        seconds[at] = time.perf_counter() - begun
    return seconds
