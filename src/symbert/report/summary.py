"""The three sentences that the page begins with: what was compared, on what, and what the data support."""

from collections.abc import Iterable

import pandas as pd

from symbert.glue.tasks import OWN, SUITES
from symbert.hosts import ENCODER, HOSTS
from symbert.report import names, setting
from symbert.report.collect import Collection, SuiteScores, losses_of
from symbert.report.formats import heading, two_decimals
from symbert.report.statistics import (
    FEWEST,
    FEWEST_EXITS,
    FINETUNE_SEED,
    WITHIN,
    Comparison,
    ExitComparison,
    comparisons,
    exit_contrasts,
    loss_contrasts,
    p_in_words,
    stand_in_names,
)
from symbert.sources import SOURCES

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
OF_ONE_PRETRAINING = "which with one pre-training seed holds of these trained models, not of their operators"
EXITS = {  # from the plateau, by the verdict on the time to them
    "shorter": "an earlier exit from the plateau of {} than of {}",
    "longer": "a later exit from the plateau of {} than of {}",
    WITHIN: "exits from the plateau of {} and {} within 25 % of each other",
}


def summary(data: Collection) -> list[str]:
    """What was compared, on what, and what the data support: a difference to original in the headline score where the
    primary test with Holm's correction shows it, one in the exit from the plateau where the log-rank test with Holm's
    correction and the interval of the ratio of medians agree, which takes five pre-training seeds, and one in the last
    validation loss where the sign-flip test with Holm's correction shows it, which takes six.
    """
    return [_compared(data), _trained_on(data), _supported(data)]


def _compared(data: Collection) -> str:
    scored = [suite.trained for suite in data.scored]
    others = data.hosts
    frames = [frame for frame in (*scored, data.runs, others) if frame is not None and len(frame)]
    if not frames:
        return "There are neither scores nor losses of any model."
    of_encoder = pd.concat([data.runs, *scored])
    columns = pd.concat([frame[["attention", "pretrain_seed"]] for frame in frames])
    operators, number = names.attentions(columns["attention"]), columns["pretrain_seed"].nunique()
    seeds = f"{_counted(number, 'pre-training seed')} each"
    if scored:
        finetuned = _counted(max(scores["finetune_seed"].nunique() for scores in scored), "fine-tuning seed")
        of = max(scores["pretrain_seed"].nunique() for scores in scored)
        seeds = f"{_counted(number, 'pre-training seed')} and {finetuned} each"
        if of < number:
            seeds = f"{_counted(number, 'pre-training seed')} each, of which {_number(of)} had {finetuned}"
    families = [names.family(size) for size in names.sizes(of_encoder["size"])]
    if others is not None:
        shapes = dict.fromkeys(zip(others["host"], others["size"], strict=True))
        families += [f"{host}s ({size})" for host, size in shapes]
    models = f"in {_listed(families)}, with {seeds}"
    has_untrained = any((suite.scores["step"] == 0).any() for suite in data.scored)
    beside = ", beside models without pre-training" if has_untrained else ""
    if len(operators) == 1:
        return f"One attention operator, {operators[0]}, was trained {models}{beside}."
    number = _number(len(operators)).capitalize()
    return f"{number} attention operators, {_listed(operators)}, were compared {models}{beside}."


def _trained_on(data: Collection) -> str:
    """How long models were trained, on what text, and on which tasks they were scored."""
    settings, steps = data.facts.settings, data.facts.steps
    if data.facts.scale == setting.IMPORTED:
        return "How these models were pre-trained, the imported files do not say."
    shape = f"{settings['pretrain.batch_size']} × {settings['corpus.pack.sequence_length']}"
    parallel = "a stand-in of parallel text" if data.facts.stand_in_text else "parallel text"
    parts = []
    for host in data.hosts_trained:
        long = f"for {settings.get(f'hosts.{host}.steps', steps):,} steps"
        on = _of_source(settings["corpus.source"], "corpus") if HOSTS[host].reads_corpus else parallel
        parts.append(f"{long} in batches of {shape} tokens on {on}" if host == ENCODER else f"{host}s {long} on {on}")
    scored = [suite.suite for suite in data.scored if set(suite.tasks) - OWN.keys()]
    own = [task for suite in data.scored for task in suite.tasks if task in OWN]
    if scored:
        titles = " and ".join(SUITES[suite].title for suite in scored)
        parts.append(f"scored on {_of_source(settings['glue.source'], 'tasks').replace('GLUE', titles)}")
    parts += [f"scored on {', '.join(own)} of the user's own"] * bool(own)
    return f"Pre-trained {'; '.join(parts)}."


def _of_source(source: str, stage: str) -> str:
    """The corpus or the tasks of a source, in words."""
    return getattr(SOURCES[source], stage) if source in SOURCES else f"the user's own (source {source})"


def _supported(data: Collection) -> str:
    """The differences that tests support, and why there are no others."""
    unscored = "judgements of minimal pairs are not tested" if data.blimp is not None else "there are no scores"
    answers = [*map(_of_scores, data.scored)] or [([], unscored)]
    answers.append(_of_losses(data))
    shown = [words for differences, _ in answers for words in differences]
    reasons = "; ".join(dict.fromkeys(reason for _, reason in answers if reason))
    if not shown:
        return f"The data support no difference between operators: {reasons}."
    return f"The data support {'; '.join(shown)}; all else is undecided{reasons and f': {reasons}'}."


def _of_scores(data: SuiteScores) -> tuple[list[str], str]:
    """Differences of the headline score of a suite that the test supports; where there are none, why."""
    every = comparisons(data.scores)
    compared = [pair for pair in every if pair.reference == "original" and pair.score == every[0].score]
    untrained = [pair for pair in every if pair.reference == names.UNTRAINED and pair.score == every[0].score]
    if not compared and not untrained:
        return [], "no other operator has scores beside original"
    if all(pair.p is None for pair in (*compared, *untrained)):
        units = f"{every[0].unit}s"
        return [], f"a test of scores takes {NUMBERS[FEWEST]} {units}"
    name = heading(stand_in_names(data.scores).get(every[0].score, every[0].score))
    shown = [*_in_words(compared, f"{name} than original"), *_in_words(untrained, f"{name} than without pre-training")]
    if not shown:
        return [], f"no difference in the {name} is significant"
    is_open = compared and not any(pair.is_significant for pair in compared)
    reason = f"no difference in the {name} between operators is significant" if is_open else ""
    return [" and ".join(shown) + (f", {OF_ONE_PRETRAINING}" if every[0].unit == FINETUNE_SEED else "")], reason


def _in_words(compared: list[Comparison], than: str) -> list[str]:
    """'a higher GLUE score than original of tiny-pairwise (…)', and the lower ones."""
    directions: dict[str, list[str]] = {}
    for pair in compared:
        if pair.is_significant:
            directions.setdefault("higher" if pair.difference > 0 else "lower", []).append(_score_in_words(pair))
    return [f"a {direction} {than} of {_listed(models)}" for direction, models in directions.items()]


def _score_in_words(pair: Comparison) -> str:
    return (
        f"{pair.size}-{pair.model} ({two_decimals(abs(pair.difference))} points, corrected p {p_in_words(pair.holm_p)})"
    )


def _of_losses(data: Collection) -> tuple[list[str], str]:
    """Differences of exits from the plateau and of last losses that tests support; where there are none, why."""
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.facts.contrasts)
    shown = [_exit_in_words(*names, result) for names, result in contrasts.items() if result.verdict in EXITS]
    shown += [
        f"a {'higher' if result.difference > 0 else 'lower'} validation loss of {size}-{model} than of "
        f"{size}-{reference} ({abs(result.difference):.3f} nats, corrected p {p_in_words(result.holm_p)})"
        for (size, model, reference), result in loss_contrasts(models, data.facts.contrasts).items()
        if result.is_significant
    ]
    if not models:
        return [], "no test compares the losses of other hosts" if data.hosts is not None else "there are no losses"
    if shown:
        return shown, ""
    if all(result.seeds < FEWEST_EXITS for result in contrasts.values()):
        return [], f"a test of exits from the plateau takes {NUMBERS[FEWEST_EXITS]} pre-training seeds"
    return [], "no difference of exits from the plateau is significant"


def _exit_in_words(size: str, model: str, reference: str, result: ExitComparison) -> str:
    models = EXITS[result.verdict].format(f"{size}-{model}", f"{size}-{reference}")
    return f"{models} (ratio of medians {result.ratio:.2f}, 95 % interval {result.low:.2f} to {result.high:.2f})"


def _counted(number: int, unit: str) -> str:
    return f"{_number(number)} {unit}{'' if number == 1 else 's'}"


def _number(number: int) -> str:
    return NUMBERS[number] if number < len(NUMBERS) else f"{number:,}"


def _listed(names: Iterable[str]) -> str:
    """Names in words: 'a', 'a and b', 'a, b and c'."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
