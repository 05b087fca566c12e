"""The sentences that the page begins with: what the data support, what was compared, and on what."""

from collections.abc import Iterable, Iterator

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
    exit_contrasts,
    exits_of,
    headlines,
    loss_contrasts,
    p_in_words,
    stand_in_names,
)
from symbert.sources import SOURCES

EXITS = {  # from the plateau, by the verdict on the time to them
    "shorter": "an earlier exit from the plateau of {} than of {}",
    "longer": "a later exit from the plateau of {} than of {}",
    WITHIN: "exits from the plateau of {} and {} within 25 % of each other",
}


def summary(data: Collection) -> list[str]:
    """What the data support, by tests with Holm's correction; what was compared; and on what."""
    return [_supported(data), _compared(data), _trained_on(data)]


def _supported(data: Collection) -> str:
    """What leaves the plateau first, the differences that tests support, and why there are no others."""
    unscored = "there are no scores" if data.blimp is None else "judgements of minimal pairs are not tested"
    answers = [*map(_of_scores, data.scored)] or [([], unscored)]
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.facts.contrasts)
    judged = sorted(contrasts.items(), key=lambda contrast: contrast[1].verdict == WITHIN)  # differences first
    exits = [_exit_in_words(*pair, result) for pair, result in judged if result.verdict in EXITS]
    losses = [
        f"a {'higher' if pair.difference > 0 else 'lower'} validation loss of {pair.size}-{pair.model} than of "
        f"{pair.size}-{pair.reference} ({abs(pair.difference):.3f} nats, corrected p {p_in_words(pair.holm_p)})"
        for pair in loss_contrasts(models, data.facts.contrasts)
        if pair.is_significant
    ]
    few = f"a test of exits from the plateau takes {FEWEST_EXITS} pre-training seeds"
    is_tested = any(result.seeds >= FEWEST_EXITS for result in contrasts.values())
    undecided = "no difference of exits from the plateau is significant" if is_tested else few
    if not models:
        undecided = "there are no losses" if data.hosts is None else "no test compares the losses of other hosts"
    answers.append(([*exits, *losses], "" if exits or losses else undecided))
    shown = [words for differences, _ in answers for words in differences]
    reasons = "; ".join(dict.fromkeys(reason for _, reason in answers if reason))
    first = "".join(_first_exits(models))
    if not shown:
        return f"{first}The data support no difference between operators: {reasons}."
    return f"{first}The data support {'; '.join(shown)}; all else is undecided{reasons and f': {reasons}'}."


def _first_exits(models: dict[tuple[str, str], pd.DataFrame]) -> Iterator[str]:
    """A sentence per size: 'In BERT-tiny pairwise leaves the plateau first, at step 500 (original 900).'"""
    for size in dict.fromkeys(size for size, _ in models):
        medians = {name: exits_of(losses).median for (of, name), losses in models.items() if of == size}
        known = {name: step for name, step in medians.items() if step is not None}
        if len(medians) > 1 and known:
            earliest = min(known.values())
            first = [name for name, step in known.items() if step == earliest]
            rest = [f"{name} {f'{step:,}' if step else 'never'}" for name, step in medians.items() if name not in first]
            details = ["medians over seeds"] * (max(map(len, models.values())) > 1) + [", ".join(rest)] * bool(rest)
            leave = "leaves" if len(first) == 1 else "leave"
            at = f"first, at step {earliest:,}" if rest else f"at the same step, {earliest:,}"
            told = f" ({'; '.join(details)})" if details else ""
            yield f"In {names.family(size)} {_listed(first)} {leave} the plateau {at}{told}. "


def _of_scores(suite: SuiteScores) -> tuple[list[str], str]:
    """Differences of the headline score of a suite that the test supports; where there are none, why."""
    headline, references = headlines(suite.comparisons), ("original", names.UNTRAINED)
    pairs = [pair for pair in suite.comparisons if pair.score == headline[pair.size] and pair.reference in references]
    if not pairs:
        return [], "no other operator has scores beside original"
    if all(pair.p is None for pair in pairs):
        return [], f"a test of scores takes {FEWEST} {pairs[0].unit}s"
    stand_ins = stand_in_names(suite.scores)
    scores = {score: heading(stand_ins.get(score, score)) for score in dict.fromkeys(headline.values())}
    only = ", of these trained models: one pre-training seed" if pairs[0].unit == FINETUNE_SEED else ""
    shown = [_score_in_words(pair, scores[pair.score], only) for pair in pairs if pair.is_significant]
    return shown, "" if shown else f"no difference in the {' or the '.join(scores.values())} is significant"


def _score_in_words(pair: Comparison, score: str, only: str) -> str:
    direction = "higher" if pair.difference > 0 else "lower"
    than = "without pre-training" if pair.reference == names.UNTRAINED else f"of {pair.size}-{pair.reference}"
    size = f"{two_decimals(abs(pair.difference))} points, corrected p {p_in_words(pair.holm_p)}"
    return f"a {direction} {score} of {pair.size}-{pair.model} than {than} ({size}{only})"


def _exit_in_words(size: str, model: str, reference: str, result: ExitComparison) -> str:
    models = EXITS[result.verdict].format(f"{size}-{model}", f"{size}-{reference}")
    return f"{models} (ratio of medians {result.ratio:.2f}, 95 % interval {result.low:.2f} to {result.high:.2f})"


def _compared(data: Collection) -> str:
    scored = [suite.trained for suite in data.scored]
    frames = [frame for frame in (*scored, data.runs, data.hosts) if frame is not None and len(frame)]
    if not frames:
        return "There are neither scores nor losses of any model."
    columns = pd.concat([frame[["attention", "pretrain_seed"]] for frame in frames])
    operators, number = names.attentions(columns["attention"]), columns["pretrain_seed"].nunique()
    seeds = f"{_counted(number, 'pre-training seed')} each"
    if scored:
        finetuned = _counted(max(scores["finetune_seed"].nunique() for scores in scored), "fine-tuning seed")
        of = max(scores["pretrain_seed"].nunique() for scores in scored)
        seeds = f"{_counted(number, 'pre-training seed')} and {finetuned} each"
        if of < number:
            seeds = f"{_counted(number, 'pre-training seed')} each, of which {of:,} had {finetuned}"
    families = [names.family(size) for size in names.sizes(pd.concat([data.runs, *scored])["size"])]
    if data.hosts is not None:
        shapes = data.hosts[["host", "size"]].drop_duplicates().itertuples(index=False)
        families += [f"{host}s ({size})" for host, size in shapes]
    has_untrained = any((suite.scores["step"] == 0).any() for suite in data.scored)
    models = f"in {_listed(families)}, with {seeds}{', beside models without pre-training' if has_untrained else ''}"
    were = "was trained" if len(operators) == 1 else "were compared"
    return f"{_counted(len(operators), 'attention operator')}, {_listed(operators)}, {were} {models}."


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
    titles = [SUITES[suite.suite].title for suite in data.scored if set(suite.tasks) - OWN.keys()]
    own = [task for suite in data.scored for task in suite.tasks if task in OWN]
    if titles:
        parts.append(f"scored on {_of_source(settings['glue.source'], 'tasks').replace('GLUE', ' and '.join(titles))}")
    parts += [f"scored on {', '.join(own)} of the user's own"] * bool(own)
    return f"Pre-trained {'; '.join(parts)}."


def _of_source(source: str, stage: str) -> str:
    """The corpus or the tasks of a source, in words."""
    return getattr(SOURCES[source], stage) if source in SOURCES else f"the user's own (source {source})"


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _listed(names: Iterable[str]) -> str:
    """Names in words: 'a', 'a and b', 'a, b and c'."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
