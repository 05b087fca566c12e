"""What seeds can show: the least difference that a test finds in four of five repetitions.

After the runs, the report computes it from the spread of their seeds; before them, `symbert plan` from a spread that
others published. Imports no torch.
"""

import math
from collections.abc import Callable, Iterator
from itertools import count

from symbert.architectures import ENCODER
from symbert.configuration import Configuration, finetuned_pretrain_seeds, source_of
from symbert.experiment.sweep import Grid, grids_of
from symbert.glue.tasks import GLUE
from symbert.sources import is_stand_in

LEVEL = 0.05  # at or below which a p value, corrected where there are several, is called significant
POWER = 0.8  # chance of finding a difference of the size that is named
FEWEST = 3  # units of which anything is inferred: an interval of two spans 12.7 standard errors, whatever they are
FEWEST_ESCAPES = 5  # seeds: a bootstrap of three has ten different draws, and its bounds are too narrow
ARRANGEMENTS = 2**14  # of units or signs: with as many or fewer all are counted, of more so many are drawn
DEVIATION = 0.39  # points: of the GLUE score over fine-tuning seeds, pooled over the six models of table 3 of
PUBLISHED_IN = "arXiv 2406.06366"
NINE = {*GLUE} - {"wnli"}  # the tasks of the nine columns of the GLUE score


def detectable_effect(error: float, freedom: float, level: float) -> float:
    """The difference of two means that a two-sided t test at `level` finds with 80 % power, either way.

    `error` is the standard error of the difference, with `freedom` degrees of freedom, as its interval has them: of
    paired differences Student's, of two groups Welch's. It is the shift of the noncentral t distribution of which a
    fifth lies below the bound of the test (Cohen, "Statistical Power Analysis for the Behavioral Sciences", 1988).
    """
    from scipy.special import nctdtrinc, stdtrit  # type: ignore[import-untyped]  # slow, and few commands test

    return error * float(nctdtrinc(freedom, 1 - POWER, stdtrit(freedom, 1 - level / 2)))


def smallest_sign_flip_p(count: int) -> float:
    """The least p that the sign-flip test of so many differences can give."""
    return 2 / 2**count if 2**count <= ARRANGEMENTS else 1 / (1 + ARRANGEMENTS)


def smallest_split_p(count: int) -> float:
    """The least p that the permutation test of two groups of so many units can give."""
    splits = math.comb(2 * count, count)
    return 2 / splits if splits <= ARRANGEMENTS else 1 / (1 + ARRANGEMENTS)


def lines_of_seeds(config: Configuration) -> Iterator[str]:
    """What the seeds of an experiment can show: of scores the difference that they find if a seed moves the GLUE score
    as it did the authors', and where no test can be significant, how many seeds it takes."""
    sweep, seeds, trained = config.sweep, len(config.sweep.finetune_seeds), len(config.sweep.pretrain_seeds)
    if grids := grids_of(config):
        yield from _of_grids(grids)
        return
    operators = sweep.attention if ENCODER in sweep.architectures else []
    runs, others = len(finetuned_pretrain_seeds(config)) if operators else 0, len(operators) - 1
    effects = {}  # points of the GLUE score, by what is compared
    if runs and others > 0:
        unit, units = ("fine-tuning", seeds) if runs == 1 else ("pre-training", runs)
        lacking = _lacking(unit, units, others, smallest_split_p)
        yield from (f"scores of operators: {line}" for line in lacking)
        error = DEVIATION * math.sqrt(2 / units / (seeds if runs > 1 else 1))
        if not lacking:
            least = "" if runs == 1 else "at least "
            effects["operators"] = f"{least}{detectable_effect(error, 2 * units - 2, LEVEL / others):.1f}"
    compared = len(config.models) - 1 + len(operators) * len(sweep.sizes) * bool(runs)
    if config.models and compared > 0:
        tests = seeds * len(sweep.tasks)
        if seeds < FEWEST or compared * smallest_sign_flip_p(tests) > LEVEL:
            yield f"scores of models from elsewhere: {seeds} fine-tuning seeds are too few for a test"
        else:
            error = DEVIATION * math.sqrt(2 / seeds)
            effects["models from elsewhere"] = f"{detectable_effect(error, seeds - 1, LEVEL / compared):.1f}"
    if effects and NINE.issubset(sweep.tasks) and not is_stand_in(source_of(config, "glue")):
        told = ", ".join(f"{effect} points between {kind}" for kind, effect in effects.items())
        yield (
            f"scores: differences of {told} are found with 80 % power, if fine-tuning seeds move each GLUE score "
            f"by {DEVIATION} (standard deviation; {PUBLISHED_IN}); other pre-trainings move it more"
        )
    if others > 0:
        count_of = others if sweep.contrasts is None else len(sweep.contrasts)
        yield from (f"losses: {line}" for line in _lacking("pre-training", trained, count_of, smallest_sign_flip_p))
        if trained < FEWEST_ESCAPES and count_of:
            yield f"escapes: {trained} pre-training seed{'s' * (trained > 1)}, and a test takes {FEWEST_ESCAPES}"


def _of_grids(grids: list[Grid]) -> Iterator[str]:
    """What the seeds of grids can show of losses and escapes; of several grids each by its name."""
    for grid in grids:
        name, tests, seeds = f"{grid.name}: " if grids[1:] else "", len(list(grid.pairs())), len(grid.seeds)
        yield from (f"{name}losses: {line}" for line in _lacking("pre-training", seeds, tests, smallest_sign_flip_p))
        if seeds < FEWEST_ESCAPES and tests:
            yield f"{name}escapes: {seeds} pre-training seed{'s' * (seeds > 1)}, and a test takes {FEWEST_ESCAPES}"


def _lacking(unit: str, seeds: int, tests: int, smallest: Callable[[int], float]) -> list[str]:
    """A line where so many seeds cannot show anything by so many tests."""
    needed = next(number for number in count(FEWEST) if tests * smallest(number) <= LEVEL)
    if seeds >= needed or not tests:
        return []
    return [f"{seeds} {unit} seed{'s' * (seeds > 1)} cannot make a difference significant, {needed} can"]
