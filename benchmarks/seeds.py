"""Seeds of fine-tuning on a CPU, for `glue`: five as one computation, beside one seed and five one by one."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import NamedTuple

import torch

from benchmarks.finetuners import DEVICE, PRECISION, Enough, Finetuning
from benchmarks.gpu_seeds import SEEDS, classifiers
from benchmarks.measure import Figure, spread
from benchmarks.promises import Seconds, ratio
from benchmarks.tables import table
from symbert.glue.batches import read_rows
from symbert.glue.train import train, train_together

ONE, ONE_BY_ONE, AT_ONCE = "one seed", "five one by one", "five at once"
WAYS = (ONE, ONE_BY_ONE, AT_ONCE)
PROMISED = {"tiny": 1.8, "small": 3.5}  # times as long as one seed, at most, by size
STEPS = {"tiny": (10, 30), "small": (1, 2)}  # not timed, and the last that is, of each training
OPERATIONS = {  # of torch, by what they are for; all others are the rest
    "products": ("mm", "addmm", "bmm", "baddbmm"),
    "softmax, dropout": ("softmax", "dropout", "bernoulli", "rand"),
    "AdamW": ("adamw",),
    "GELU, LayerNorm": ("gelu", "layer_norm"),
}


class Cost(NamedTuple):
    """Seconds of a step, of all seeds together."""

    wall: float
    cpu: float


class Clock:
    """Told how many steps of a training are done, it times those after the first ones and stops it at the last."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.cost = Cost(0.0, 0.0)
        self._begun = Cost(0.0, 0.0)

    def tell(self, step: int) -> None:
        """What `train` calls after each step."""
        now = Cost(time.perf_counter(), time.process_time())
        if step == self.first:
            self._begun = now
        if step == self.last:
            steps = self.last - self.first
            self.cost = Cost(*((end - begin) / steps for end, begin in zip(now, self._begun, strict=True)))
            raise Enough


class Seeds:
    """Classifiers of one size, a seed each, on the rows of a task."""

    def __init__(self, size: str, finetuning: Finetuning) -> None:
        self.size, self.settings = size, finetuning.settings
        self.rows = read_rows(finetuning.data, finetuning.task, DEVICE)["train"]
        self.models = classifiers(size, SEEDS, finetuning.settings, DEVICE)

    def measure(self, way: str) -> Cost:
        """A step of these seeds in one of WAYS."""
        costs = []
        if way == AT_ONCE:
            costs.append(self._timed(lambda tell: train_together(self.models, *self._task, tell)))
        for seed in {ONE: SEEDS[:1], ONE_BY_ONE: SEEDS, AT_ONCE: ()}[way]:
            costs.append(self._timed(lambda tell, seed=seed: train(self.models[seed], *self._task, seed, tell)))
        return Cost(*map(sum, zip(*costs, strict=True)))

    def operations(self, way: str) -> dict[str, float]:
        """Seconds of the calling thread in torch's operations, by what they are for, in the steps of `measure`."""
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            self.measure(way)
        seconds = Counter(dict.fromkeys((*OPERATIONS, "rest"), 0.0))
        for event in profile.key_averages():
            seconds[purpose_of(event.key)] += event.self_cpu_time_total / 1e6
        return dict(seconds)

    @property
    def _task(self) -> tuple:
        return self.rows, self.settings, PRECISION

    def _timed(self, training: Callable[[Callable[[int], None]], object]) -> Cost:
        clock = Clock(*STEPS[self.size])
        with suppress(Enough):
            training(clock.tell)
        return clock.cost


def purpose_of(operation: str) -> str:
    """What one of torch's operations is for."""
    name = operation.removeprefix("aten::")
    for purpose, parts in OPERATIONS.items():
        if name in parts or (purpose != "products" and any(part in name for part in parts)):
            return purpose
    return "rest"


def measure_round(every: Sequence[Seeds], number: int) -> Seconds:
    """Seconds of each size and way, beginning with another way each round."""
    found = Seconds()
    for seeds in every:
        for way in WAYS[number % len(WAYS) :] + WAYS[: number % len(WAYS)]:
            cost = seeds.measure(way)
            found[f"{seeds.size}: {way}"], found[f"{seeds.size}: {way}: CPU"] = cost
    return found


def figures() -> list[Figure[Seconds]]:
    """What is promised of five at once, and what is gained beside one by one."""
    return [
        figure
        for size, most in PROMISED.items()
        for figure in (
            Figure(f"{size}: {AT_ONCE} / {ONE}", "×", ratio(f"{size}: {AT_ONCE}", f"{size}: {ONE}"), at_most=most),
            Figure(f"{size}: {AT_ONCE} / {ONE}, CPU s", "×", ratio(f"{size}: {AT_ONCE}: CPU", f"{size}: {ONE}: CPU")),
            Figure(f"{size}: {ONE_BY_ONE} / {AT_ONCE}", "×", ratio(f"{size}: {ONE_BY_ONE}", f"{size}: {AT_ONCE}")),
        )
    ]


def seconds_table(rounds: Sequence[Seconds]) -> str:
    """Milliseconds of a step."""
    rows = []
    for name in (f"{size}: {way}" for size in PROMISED for way in WAYS):
        wall, cpu = (spread([1000 * round[key] for round in rounds]) for key in (name, f"{name}: CPU"))
        rows.append(f"| {name} | {wall.median:.1f} | {wall.low:.1f}–{wall.high:.1f} | {cpu.median:.1f} |")
    return table("| a step of MRPC | ms | range | CPU ms |", "|---|---:|---:|---:|", rows)


def operations_table(every: Sequence[Seeds]) -> str:
    """Where the time of torch's operations goes, once: products are the floor of what is computed at once."""
    names, rows = [*OPERATIONS, "rest"], []
    for seeds in every:
        for way in (ONE, AT_ONCE):
            found = seeds.operations(way)
            shares = (f"{100 * found[name] / sum(found.values()):.0f}" for name in names)
            rows.append(f"| {seeds.size}: {way} | {' | '.join(shares)} |")
    return table(f"| % of the operations of a step | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}", rows)
