"""What a stage says of its cost: operations and hours, and the files that it writes. Imports no torch."""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from symbert.sizes import Shape


@dataclass(frozen=True)
class Work:
    """Operations of a model, and the layers of the optimizer steps that they are part of.

    Operations are those of the operator `original`: no other has more, and they differ by a few per cent.
    """

    flops: float = 0.0
    layers: int = 0  # steps × layers of the model

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flops + other.flops, self.layers + other.layers)


@dataclass(frozen=True)
class Hours:
    """Time of devices; beside each GPU one core is busy."""

    gpu: float = 0.0
    core: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.gpu + other.gpu, self.core + other.core)


@dataclass(frozen=True)
class Cost:
    """Hours in all, and those of them that are to come."""

    whole: Hours = field(default_factory=Hours)
    to_come: Hours = field(default_factory=Hours)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.whole + other.whole, self.to_come + other.to_come)


@dataclass(frozen=True)
class Speed:
    """How fast one device computes one kind of model."""

    on_gpu: bool
    flops: float  # model operations per second
    layer_seconds: float  # of a step, per layer, beside its arithmetic
    measured: str | None = None  # where, and on what; None where configured

    def hours(self, work: Work) -> Hours:
        """Of one device."""
        hours = (work.flops / self.flops + work.layers * self.layer_seconds) / 3600
        return Hours(self.on_gpu * hours, hours)

    def cost(self, whole: Work, to_come: Work) -> Cost:
        """The hours of some work, and of the part of it that is to come."""
        return Cost(self.hours(whole), self.hours(to_come))


def configured_speed(rates: dict[str, float], shape: Shape) -> Speed:
    """The speed that `rates` of the configuration gives a size."""
    device = "gpu" if shape.needs_gpu else "core"
    return Speed(shape.needs_gpu, rates[f"{device}_flops"], rates[f"{device}_layer_seconds"])


@dataclass(frozen=True)
class Files:
    """Files of one kind: bytes when all is done, and how many of them are not written yet."""

    stage: str
    kind: str
    key: str  # in the configuration: what to change when there is no room
    folder: Path
    planned: float
    to_come: float
    passing: bool = False  # gone before the shards are written


def size_of(folder: Path) -> int:
    """Bytes of all files in a folder, links not followed; 0 where it does not exist."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # a temporary file, renamed meanwhile
                total += Path(place, name).lstat().st_size
    return total
