"""Learning rates of pre-training, chosen for each cell of a grid on seeds that no comparison reads. Imports no torch.

A cell is a text, an architecture, a size, an operator, and values of other keys. Its best rate has the lowest mean
outcome over the tuning seeds: the last validation loss, or the steps to the escape from the plateau, where a run that
does not escape, or ends above the level again, counts as one that escapes in its last step. A rate at which the loss of
a run is not finite comes after all at which that of none is; of equal rates the lower one is taken. The common rate of
cells that differ in their operator alone is the best one of the first operator, as of a baseline that was tuned and
whose rate all others got.
"""

import math
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Annotated, ClassVar

import msgspec
from msgspec import structs, to_builtins

from symbert.configuration import Outcome
from symbert.corpus.shards import Manifest
from symbert.errors import DataError, DivergedError
from symbert.files import check_shape, read_json_lines, read_json_or_empty, read_struct, write_json
from symbert.pretrain.run import METRICS, OF_RUN, Pretraining, Validated
from symbert.steps import Step, read_step

ESCAPED = 0.8  # share of the unigram entropy of validation rows that is the level of an escape where none is set


class ChooseRates(Step, frozen=True, kw_only=True):
    """The choice of a learning rate for each cell."""

    place: ClassVar[str] = "tuned/rates"
    files: ClassVar[dict[str, str]] = {"rates": "rates.json"}

    cells: list[Pretraining]  # at the first rate and seed
    rates: list[float]  # the lowest first
    seeds: list[int]
    by: Outcome
    escape_loss: float | None = None  # nats; None: by the unigram entropy of a cell's validation rows

    def reads(self) -> list[str]:
        """The losses of all runs but those that diverged in an earlier start, which have none."""
        runs = (run(*values).folder for values in product(self.cells, self.rates, self.seeds))
        return [f"{folder}/{name}" for folder in runs if not has_diverged(folder) for name in ("done.json", METRICS)]


def run(cell: Pretraining, rate: float, seed: int) -> Pretraining:
    """The training of a cell at a rate, with a seed."""
    training = structs.replace(cell.training, learning_rate=rate)
    return structs.replace(cell, training=training, pretrain_seed=seed)


class Tried(msgspec.Struct, kw_only=True):
    """How the runs of a cell ended at a rate, in the order of the tuning seeds."""

    rate: float
    losses: list[float | None]  # last validation losses, nats; None: it was not finite
    escapes: list[int | None]  # steps to the first validation at or below the level; None: not within those of the run
    diverged: list[bool]  # the loss was not finite, or above the level at the end of a run that had escaped
    mean: float | None  # of the outcome by which rates are chosen; None: a loss was not finite


class Choice(msgspec.Struct, kw_only=True):
    """The rates of a cell."""

    architecture: str
    size: str
    attention: str
    best: float
    common: float
    tried: list[Tried]

    @property
    def edge(self) -> str:
        """Whether the best rate is the "lowest" or "highest" that was tried, beyond which a better one may lie; empty
        where it lies within."""
        rates = [tried.rate for tried in self.tried]
        return {min(rates): "lowest", max(rates): "highest"}.get(self.best, "")


def has_diverged(folder: str | Path) -> bool:
    """Whether the training in a folder ended because a number was not finite."""
    folder = Path(folder)
    state = read_json_or_empty(folder / "state/status.json").get("state")
    return state == "diverged" and not (folder / "done.json").is_file()


def read_rates(file: Path) -> list[Choice]:
    """What `choose_rates` wrote, cell by cell."""
    return read_struct(file, Chosen).cells


class Chosen(msgspec.Struct):
    """rates.json."""

    cells: list[Choice]


def choose_rates(output: Annotated[Path, "rates.json beside its settings.json"], /) -> None:
    """Choose a learning rate for each cell of a `ChooseRates`, and write them to `output`, rates.json.

    DivergedError where at every rate of a cell the loss of a run was not finite.
    """
    step = read_step(output.parent, ChooseRates)
    write_json(output, to_builtins(Chosen(choices_of(step))))


def choices_of(step: ChooseRates) -> list[Choice]:
    """The rates of each cell, by the losses of its runs."""
    best, choices = dict[str, float](), []
    for cell in step.cells:
        level = step.escape_loss or ESCAPED * read_struct(cell.manifest, Manifest).unigram_entropy
        tried = [_tried(step, cell, rate, level) for rate in step.rates]
        chosen = min(tried, key=lambda one: (math.inf if one.mean is None else one.mean, one.rate))
        if chosen.mean is None:
            raise DivergedError(f"{cell}: the loss was not finite at any rate; add lower ones to 'tune.learning_rate'")
        place = structs.replace(cell, operator=step.cells[0].operator)  # alike of cells that differ in their operator
        common = best.setdefault(place.key, chosen.rate)
        named = {"architecture": cell.architecture, "size": cell.size, "attention": cell.attention}
        choices.append(Choice(**named, best=chosen.rate, common=common, tried=tried))
    return choices


def _tried(step: ChooseRates, cell: Pretraining, rate: float, level: float) -> Tried:
    """The outcomes of a cell at a rate."""
    tried = Tried(rate=rate, losses=[], escapes=[], diverged=[], mean=None)
    for training in (run(cell, rate, seed) for seed in step.seeds):
        losses = _losses_of(training)
        last = losses.get(training.training.steps)
        escape = next((at for at, loss in losses.items() if loss <= level), None)
        tried.losses.append(last)
        tried.escapes.append(escape)
        tried.diverged.append(last is None or (escape is not None and last > level))
    losses = [loss for loss in tried.losses if loss is not None]
    escaped = [at or cell.training.steps for at in tried.escapes]
    escapes = [cell.training.steps if diverged else at for at, diverged in zip(escaped, tried.diverged, strict=True)]
    if len(losses) == len(step.seeds):
        tried.mean = fmean(losses if step.by == "final_loss" else escapes)
    return tried


def _losses_of(training: Pretraining) -> dict[int, float]:
    """The validation losses of a run by step; none of one that ended because a number was not finite."""
    file = Path(training.folder) / METRICS
    if has_diverged(training.folder):
        return {}
    losses = {}
    for number, line in enumerate(read_json_lines(file, OF_RUN), start=1):
        if line.get("split") == "validation":
            check_shape(line, Validated, f"{file}:{number}", OF_RUN)
            losses[line["step"]] = line["loss"]
    if training.training.steps not in losses:
        raise DataError(f"{file}: no loss at step {training.training.steps}, the last; {OF_RUN}")
    return losses
