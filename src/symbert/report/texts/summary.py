"""The three sentences that the page begins with: what was compared, on what, and what the data support."""

from collections.abc import Iterable

import pandas as pd

from symbert.report import captions, order
from symbert.report.comparisons import FINETUNE_SEED, Comparison, comparisons
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.exits import ExitContrast, exit_contrasts
from symbert.report.formats import heading, two_decimals
from symbert.report.inference import FEWEST, p_in_words
from symbert.report.runs import losses_of
from symbert.report.statistics import stand_in_names
from symbert.report.survival import FEWEST as FEWEST_SEEDS
from symbert.report.survival import WITHIN

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
OF_ONE_PRETRAINING = "which with one pre-training seed holds of these trained models, not of their operators"
EXITS = {  # from the plateau, by the verdict on the time to them
    "shorter": "an earlier exit from the plateau of {} than of {}",
    "longer": "a later exit from the plateau of {} than of {}",
    WITHIN: "exits from the plateau of {} and {} within 25 % of each other",
}


@exhibit(
    chapter="At a glance",
    heading="What was compared, on what, and what the data support",
    reads=("settings",),
    may_read=("scores", "runs"),
)
def summary(data: Data) -> list[str]:
    """What was compared, on what, and what the data support: a difference to original in the headline score where the
    primary test with Holm's correction shows it, one in the exit from the plateau where the log-rank test with Holm's
    correction and the interval of the ratio of medians agree, which takes five pre-training seeds.
    """
    return [_compared(data), _trained_on(data), _supported(data)]


def _compared(data: Data) -> str:
    frames = [frame for frame in (data.trained, data.runs) if frame is not None and len(frame)]
    columns = pd.concat([frame[["size", "attention", "pretrain_seed"]] for frame in frames]) if frames else data.runs
    operators, sizes = order.attentions(columns["attention"]), order.sizes(columns["size"])
    if not operators:
        return "There are neither scores nor losses of any model."
    number = columns["pretrain_seed"].nunique()
    seeds = f"{_counted(number, 'pre-training seed')} each"
    if data.trained is not None:
        finetuned = _counted(data.trained["finetune_seed"].nunique(), "fine-tuning seed")
        of = data.trained["pretrain_seed"].nunique()
        seeds = f"{_counted(number, 'pre-training seed')} and {finetuned} each"
        if of < number:
            seeds = f"{_counted(number, 'pre-training seed')} each, of which {NUMBERS[of]} had {finetuned}"
    models = f"in {_listed(captions.family(size) for size in sizes)}, with {seeds}"
    if len(operators) == 1:
        return f"One attention operator, {operators[0]}, was trained {models}."
    number = NUMBERS[len(operators)] if len(operators) < len(NUMBERS) else str(len(operators))
    return f"{number.capitalize()} attention operators, {_listed(operators)}, were compared {models}."


def _trained_on(data: Data) -> str:
    wording = captions.wording_of(data.settings)
    return f"{wording.pretraining}{f'; scored on {wording.tasks}' if data.trained is not None else ''}."


def _supported(data: Data) -> str:
    """The differences that tests support, and why there are no others."""
    (scores, no_scores), (exits, no_exits) = _of_scores(data), _of_exits(data)
    reasons = "; ".join(filter(None, [no_scores, no_exits]))
    if not scores and not exits:
        return f"The data support no difference between operators: {reasons}."
    return f"The data support {'; '.join([*scores, *exits])}; all else is undecided{reasons and f': {reasons}'}."


def _of_scores(data: Data) -> tuple[list[str], str]:
    """Differences of the headline score that the primary test supports; where there are none, why."""
    if data.scores is None:
        return [], "there are no scores"
    compared = [one for one in comparisons(data.scores) if one.reference == "original"]
    compared = [one for one in compared if one.score == compared[0].score]
    if not compared:
        return [], "no other operator has scores beside original"
    if all(one.p is None for one in compared):
        units = f"{compared[0].unit}s"
        return [], f"a test of scores takes {NUMBERS[FEWEST]} {units}"
    name = heading(stand_in_names(data.scores).get(compared[0].score, compared[0].score))
    directions: dict[str, list[str]] = {}
    for one in compared:
        if one.is_significant:
            directions.setdefault("higher" if one.difference > 0 else "lower", []).append(_score_in_words(one))
    if not directions:
        return [], f"no difference in the {name} is significant"
    shown = [f"a {direction} {name} than original of {_listed(models)}" for direction, models in directions.items()]
    return [" and ".join(shown) + (f", {OF_ONE_PRETRAINING}" if compared[0].unit == FINETUNE_SEED else "")], ""


def _score_in_words(one: Comparison) -> str:
    return f"{one.size}-{one.model} ({two_decimals(abs(one.difference))} points, corrected p {p_in_words(one.p.holm)})"


def _of_exits(data: Data) -> tuple[list[str], str]:
    """Differences of exits from the plateau that tests support; where there are none, why."""
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.settings.contrasts)
    shown = [_exit_in_words(one) for one in contrasts if one.verdict in EXITS]
    if shown or not models:
        return shown, "" if shown else "there are no losses"
    if all(one.result.seeds < FEWEST_SEEDS for one in contrasts):
        return [], f"a test of exits from the plateau takes {NUMBERS[FEWEST_SEEDS]} pre-training seeds"
    return [], "no difference of exits from the plateau is significant"


def _exit_in_words(one: ExitContrast) -> str:
    models = EXITS[one.verdict].format(f"{one.size}-{one.model}", f"{one.size}-{one.reference}")
    result = one.result
    return f"{models} (ratio of medians {result.ratio:.2f}, 95 % interval {result.low:.2f} to {result.high:.2f})"


def _counted(number: int, unit: str) -> str:
    return f"{NUMBERS[number] if number < len(NUMBERS) else f'{number:,}'} {unit}{'' if number == 1 else 's'}"


def _listed(names: Iterable[str]) -> str:
    """Names in words: 'a', 'a and b', 'a, b and c'."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
