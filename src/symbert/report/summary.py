"""The sentences that the page begins with: what the data support, what was compared, and on what."""

from collections.abc import Iterator

import pandas as pd

from symbert.glue.tasks import OWN, SUITES
from symbert.hosts import ENCODER
from symbert.report import names, setting
from symbert.report.collect import Collection, losses_of
from symbert.report.formats import heading
from symbert.report.statistics import (
    FEWEST,
    FEWEST_ESCAPES,
    FINETUNE_SEED,
    WITHIN,
    Comparison,
    escape_contrasts,
    escapes_of,
    headlines,
    loss_contrasts,
    p_in_words,
    stand_in_names,
)
from symbert.sources import SOURCES, is_stand_in

ESCAPES = {  # from the plateau, by the verdict on the time to them
    "shorter": "an earlier escape from the plateau of {0}-{1} than of {0}-{2}",
    "longer": "a later escape from the plateau of {0}-{1} than of {0}-{2}",
    WITHIN: "escapes from the plateau of {0}-{1} and {0}-{2} within 25 % of each other",
}


def summary(data: Collection) -> list[str]:
    """What the data support, by tests with Holm's correction; what was compared; and on what."""
    return [_supported(data), _compared(data), _trained_on(data)]


def _supported(data: Collection) -> str:
    """What escapes the plateau first, the differences that tests support, and why there are no others."""
    models = losses_of(data.runs)
    answers = [_of_scores(data, suite) for suite in data.scores]
    answers = [*(answers or [([], "there are no scores")]), _of_runs(data, models)]
    shown = [words for differences, _ in answers for words in differences]
    reasons = "; ".join(dict.fromkeys(reason for _, reason in answers if reason))
    first = "".join(_escapes(data, models))
    if not shown:
        return f"{first}The data support no difference between operators: {reasons}."
    return f"{first}The data support {'; '.join(shown)}; all else is undecided{reasons and f': {reasons}'}."


def _escapes(data: Collection, models: dict[tuple[str, str], pd.DataFrame]) -> Iterator[str]:
    """When the models of each size escape the plateau, which first, and which diverge.

    The first one is named of three seeds or more, where another evaluation lies between its median and the next.
    """
    if models and data.escape_loss is None:
        key = "--escape-loss" if data.facts.scale == setting.IMPORTED else "sweep.escape_loss"
        yield f"No escapes from the plateau are stated, as {key} is missing. "
        return
    for size in dict.fromkeys(size for size, _ in models):
        escapes = {name: escapes_of(losses, data.escape_loss) for (of, name), losses in models.items() if of == size}
        earliest = min(each.median.at for each in escapes.values())
        first = [name for name, each in escapes.items() if each.median.before <= earliest]
        steps = ", ".join(f"{name} {escapes[name].median.in_a_sentence}" for name in dict.fromkeys([*first, *escapes]))
        fewest, most = (count(len(each.at) for each in escapes.values()) for count in (min, max))
        told = f"{steps}; {'medians over seeds' if most > 1 else 'one seed'}; level {data.escape_loss:.2f} nats"
        if fewest >= FEWEST and len(first) < len(escapes):
            escape = "escapes" if len(first) == 1 else "escape"
            yield f"In {names.family(size)} {' and '.join(first)} {escape} the plateau first ({told}). "
        else:
            yield f"Escapes from the plateau in {names.family(size)}: {told}. "
        for name, each in escapes.items():
            if each.diverged.any():
                diverged = f"{each.diverged.sum()} of {len(each.at)} runs"
                yield f"Of {name} {diverged} diverged: after the escape they end above the level. "


def _of_runs(data: Collection, models: dict[tuple[str, str], pd.DataFrame]) -> tuple[list[str], str]:
    """Differences of escapes and of last losses that their tests support; where there are none, why."""
    level, named = data.escape_loss, data.facts.contrasts
    contrasts = {} if level is None else escape_contrasts(models, level, named)
    judged = sorted(contrasts.items(), key=lambda contrast: contrast[1].verdict == WITHIN)  # differences first
    shown = [
        f"{ESCAPES[result.verdict].format(*pair)} "
        f"(ratio of medians {result.ratio:.2f}, 95 % interval {result.low:.2f} to {result.high:.2f})"
        for pair, result in judged
        if result.verdict in ESCAPES
    ]
    shown += [
        f"a {'higher' if pair.difference > 0 else 'lower'} validation loss of {pair.size}-{pair.model} than of "
        f"{pair.size}-{pair.reference} ({abs(pair.difference):.3f} nats, corrected p {p_in_words(pair.holm_p)})"
        for pair in loss_contrasts(models, named)
        if pair.is_significant
    ]
    if shown:
        return shown, ""
    if not models:
        return [], "there are no losses of encoders"
    if level is None:
        return [], "escapes from the plateau are not known"
    if any(result.seeds >= FEWEST_ESCAPES for result in contrasts.values()):
        return [], "no difference of escapes from the plateau is significant"
    return [], f"a test of escapes from the plateau takes {FEWEST_ESCAPES} pre-training seeds"


def _of_scores(data: Collection, suite: str) -> tuple[list[str], str]:
    """Differences of the headline score of a suite that the test supports; where there are none, why."""
    headline = headlines(data.comparisons[suite])
    pairs = [pair for pair in data.comparisons[suite] if pair.score == headline[pair.size]]
    if not pairs:
        return [], "no other operator has scores beside original"
    if all(pair.p is None for pair in pairs):
        return [], f"a test of scores takes {FEWEST} {pairs[0].unit}s"
    stand_ins = stand_in_names(data.scores[suite])
    scores = {score: heading(stand_ins.get(score, score)) for score in dict.fromkeys(headline.values())}
    only = ", of these trained models: one pre-training seed" if pairs[0].unit == FINETUNE_SEED else ""
    shown = [_score_in_words(pair, scores[pair.score], only) for pair in pairs if pair.is_significant]
    return shown, "" if shown else f"no difference in the {' or the '.join(scores.values())} is significant"


def _score_in_words(pair: Comparison, score: str, only: str) -> str:
    direction = "higher" if pair.difference > 0 else "lower"
    than = "without pre-training" if pair.reference == names.UNTRAINED else f"of {pair.size}-{pair.reference}"
    size = f"{abs(pair.difference):.2f} points, corrected p {p_in_words(pair.holm_p)}"
    return f"a {direction} {score} of {pair.size}-{pair.model} than {than} ({size}{only})"


def _compared(data: Collection) -> str:
    """Operators, models and seeds."""
    tables = [table for table in (*data.scores.values(), data.runs, data.hosts) if table is not None and len(table)]
    if not tables:
        return "There are neither scores nor losses of any model."
    columns = ["host", "size", "attention", "pretrain_seed"]
    rows = pd.concat([table.assign(host=table.get("host", ENCODER))[columns] for table in tables])
    hosts = {host: names.sizes(sizes) for host, sizes in rows.groupby("host", sort=False)["size"]}
    models = (
        names.family(size) if host == ENCODER else f"{host} {size}" for host, sizes in hosts.items() for size in sizes
    )
    finetuned = max((scores["finetune_seed"].nunique() for scores in data.scores.values()), default=0)
    seeds = f"{rows['pretrain_seed'].nunique()} of pre-training{f', {finetuned} of fine-tuning' if finetuned else ''}"
    return f"Compared: {', '.join(names.attentions(rows['attention']))}; models: {', '.join(models)}; seeds: {seeds}."


def _trained_on(data: Collection) -> str:
    """How long models were trained, on what text, and on which tasks they were scored."""
    facts, settings = data.facts, data.facts.settings
    if facts.scale == setting.IMPORTED:
        return "How these models were pre-trained, the imported files do not say."
    steps = ", ".join(f"{host} {settings.get(f'hosts.{host}.steps', facts.steps):,}" for host in data.hosts_trained)
    shape = f"{settings['pretrain.batch_size']} × {settings['corpus.pack.sequence_length']}"
    parts = [f"Steps of {shape} tokens: {steps}"]
    if setting.reads_corpus(data):
        parts.append(f"corpus: {_of_source(settings['corpus.source'], 'corpus')}")
    tasks = {task: SUITES[suite].title for suite, scores in data.scores.items() for task in scores["task"]}
    suites = [*dict.fromkeys(title for task, title in tasks.items() if task not in OWN)]
    if suites := [*suites, *["BLiMP"] * (data.blimp is not None)]:
        named = (" or " if is_stand_in(settings["glue.source"]) else ", ").join(suites)  # not GLUE or BLiMP
        parts.append(f"scores: {_of_source(settings['glue.source'], 'tasks').replace('GLUE', named)}")
    if own := [task for task in tasks if task in OWN]:
        parts.append(f"the user's own tasks: {', '.join(own)}")
    return f"{'; '.join(parts)}."


def _of_source(source: str, stage: str) -> str:
    """The corpus or the tasks of a source, in words."""
    return getattr(SOURCES[source], stage) if source in SOURCES else f"the user's own (source {source})"
