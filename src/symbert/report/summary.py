"""The sentences of the page: the first two say what was compared and what was found, the others how sure that is."""

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain

import pandas as pd

from symbert.architectures import ENCODER
from symbert.glue.tasks import PUBLISHED, SUITES
from symbert.operators import name_of
from symbert.report import names, setting
from symbert.report.claims import CHECKS, VERDICTS, judged_claims
from symbert.report.collect import Collection, losses_of
from symbert.report.formats import heading
from symbert.report.statistics import (
    COUNTED,
    FEWEST,
    FEWEST_ESCAPES,
    FINETUNE_SEED,
    PRETRAIN_SEED,
    WITHIN,
    Comparison,
    EscapeComparison,
    contrasts_of,
    escape_contrasts,
    escapes_of,
    headlines,
    loss_contrasts,
    p_in_words,
    stand_in_names,
)
from symbert.sources import SOURCES, is_stand_in

MODEL = ["size", "attention", "pretrain_seed", "step"]  # whose scores are of several fine-tuning seeds
FIRST = 2  # sentences that the page begins with; the others are its notes
ESCAPES = {  # from the plateau, by the verdict on the time to them
    "shorter": "an earlier escape from the plateau of {0}-{1} than of {0}-{2}",
    "longer": "a later escape from the plateau of {0}-{1} than of {0}-{2}",
    WITHIN: "escapes from the plateau of {0}-{1} and {0}-{2} within 25 % of each other",
}


def summary(data: Collection) -> list[str]:
    """What was compared, and what was found, in a sentence each. Then, as notes, the differences that tests with Holm's
    correction support, what becomes of claims, and the models, seeds, steps and data."""
    return [_begun(data), _found(data), _supported(data), *_claims(data), _compared(data), _trained_on(data)]


def _begun(data: Collection) -> str:
    """What this is: the operators and sizes, and what they were trained and scored on."""
    experiment, steps = data.experiment, data.experiment.steps
    tables = [
        table for table in (data.runs, data.architectures, *map(data.own, data.scores.values())) if table is not None
    ]
    cells = pd.concat([table[["size", "attention"]] for table in tables])
    swept = [grid.axes.get("attention", []) for grid, _ in data.grids]
    operators = data.known.attentions([*cells["attention"], *chain.from_iterable(swept)])
    sizes = [names.family(size) for size in data.known.sizes(cells["size"]) if size]
    told = [f"{_listed(operators)}{' in ' * bool(sizes)}{' and '.join(sizes)}"] * bool(operators)
    told += [f"{_listed(list(data.known.models))} from elsewhere"] * bool(data.models)
    settings, is_made_here = experiment.settings, experiment.scale != setting.IMPORTED
    if is_made_here and setting.is_pretrained_here(experiment):
        text = f" on {_of_source(settings['corpus.source'], 'corpus')}" if setting.reads_corpus(data) else ""
        told.append(f"{steps:,} steps of pre-training{text}")
    if is_made_here and (data.scores or data.blimp is not None):
        told.append("scores on stand-in tasks, not GLUE" if is_stand_in(settings["glue.source"]) else "scores on tasks")
    is_demo = experiment.scale == "demo" and is_made_here and setting.has_stand_in_corpus(experiment)
    return f"{'A demo of the whole chain, not evidence' if is_demo else 'Compared'}: {'; '.join(told) or 'nothing'}."


def _found(data: Collection) -> str:
    """What tests show, in words; where no test was made of escapes, where the plateau ends."""
    told = [*_found_in_runs(data)]
    for suite, scores in data.scores.items():
        told += _found_in_scores(data.comparisons[suite], scores)
        told += _found_in_scores(data.paired[suite], scores)
    kind = "operators" if setting.is_pretrained_here(data.experiment) else "models"
    return " ".join(told) or f"No test shows a difference between {kind}; the notes say why."


def _found_in_runs(data: Collection) -> Iterator[str]:
    """A sentence on the escapes of each size, and each reference."""
    models, level = losses_of(data.runs), data.escape_loss
    if level is None or not models:
        return
    contrasts, untested = escape_contrasts(models, level, data.experiment.contrasts), []
    for size in dict.fromkeys(size for size, _ in models):
        place = f" in {names.family(size)}" if len({size for size, _ in models}) > 1 else ""
        tested = {pair[1:]: result for pair, result in contrasts.items() if pair[0] == size}
        for reference in dict.fromkeys(reference for _, reference in tested):
            shares = {
                _described(data, name): _share(result)
                for (name, other), result in sorted(tested.items(), key=lambda each: each[1].low)
                if other == reference and result.verdict in ("shorter", "longer")
            }
            if shares:
                (first, share), *others = shares.items()
                told = [f"{first} takes {share} of the steps of {reference}"]
                told += [f"{name} {share}" for name, share in others]
                yield f"To escape the plateau{place}, {_listed(told)}."
            close = [name for (name, of), result in tested.items() if of == reference and result.verdict == WITHIN]
            if close:
                escape = "escapes" if len(close) == 1 else "escape"
                yield f"{_listed(close)} {escape} the plateau{place} within 25 % of the steps of {reference}."
        if not any(result.seeds >= FEWEST_ESCAPES for result in tested.values()):
            of_size = {name: escapes_of(losses, level) for (of, name), losses in models.items() if of == size}
            told = [f"{name} {each.median.in_a_sentence}" for name, each in of_size.items()]
            untested.append(f"escapes from the plateau{place}: {_listed(told)}")
    if untested:
        yield f"Without a test, {'; '.join(untested)}."


def _share(result: EscapeComparison) -> str:
    """The median escape as a share of that of the reference; a bound of it where one has not escaped."""
    if not math.isnan(result.ratio):
        return f"{100 * result.ratio:.0f} %"
    return (
        f"less than {100 * result.high:.0f} %" if result.verdict == "shorter" else f"more than {100 * result.low:.0f} %"
    )


def _described(data: Collection, name: str) -> str:
    """An operator; one that is another with a width of its own says of which, and which."""
    operator = data.known.operators.get(name)
    if operator is None or operator.init_scale is None or operator.is_built_in:
        return name
    width = f"{operator.init_scale} initial logits" if isinstance(operator.init_scale, str) else "other initial logits"
    return f"{name} ({name_of(operator.path.partition(':')[2])} with {width})"


def _found_in_scores(pairs: list[Comparison], scores: pd.DataFrame) -> Iterator[str]:
    """A sentence on the significant differences of a suite's headline score from each reference."""
    headline, shown = headlines(pairs), defaultdict(list)
    for pair in pairs:
        if pair.is_significant and pair.score == headline[pair.size]:
            shown[pair.reference].append(pair)
    for reference, of_reference in shown.items():
        is_stand_in = of_reference[0].score in stand_in_names(scores)
        score = "mean score on the stand-in tasks" if is_stand_in else heading(of_reference[0].score)
        told = [
            f"{abs(pair.difference):.1f} points {'higher' if pair.difference > 0 else 'lower'} with "
            f"{names.model_name(pair.size, pair.model)}"
            for pair in of_reference
        ]
        than = "without pre-training" if reference == names.UNTRAINED else f"with {reference}"
        is_foreign = of_reference[0].fine_tunings is not None
        seed = ", of one pre-training seed" if of_reference[0].unit == FINETUNE_SEED and not is_foreign else ""
        yield f"The {score} is {_listed(told)} than {than}{seed}."


def _claims(data: Collection) -> Iterator[str]:
    """How many of the papers' claims about runs and scores hold, and which are refuted or open; nothing where none is
    judged."""
    judging = {name for name, (_, obstacle) in CHECKS.items() if obstacle and not obstacle(data)}  # of runs and scores
    rows = judged_claims(data, judging)
    by_verdict = {verdict: [row for row in rows if row["verdict"] == verdict] for verdict in VERDICTS.values()}
    if judged := sum(map(len, by_verdict.values())):
        held = len(by_verdict.pop(VERDICTS[True]))
        told = [f"Of the papers' claims about pre-training and scores, {judged} can be judged here, and {held} hold"]
        for verdict, of_verdict in by_verdict.items():
            claims = "; ".join(f"{row['claim']} ({row['models']}: {row['here']})" for row in of_verdict)
            told += [f"{verdict.capitalize()}: {claims}"] * bool(claims)
        yield ". ".join([*told, ""]).rstrip()


def _supported(data: Collection) -> str:
    """When models escape the plateau, the differences that tests support, and why there are no others."""
    models = losses_of(data.runs)
    answers = [_of_scores(data, suite) for suite, scores in data.scores.items() if len(data.own(scores))]
    answers += [_of_foreign(data, suite) for suite in data.scores if data.models]
    no_scores = "there are no scores" if data.blimp is None else "minimal pairs are not tested"
    answers = answers or [([], [no_scores])]
    if setting.is_pretrained_here(data.experiment):
        answers.append(_of_runs(data, models))
    shown = [words for differences, _ in answers for words in differences]
    reasons = "; ".join(dict.fromkeys(reason for _, reasons in answers for reason in reasons))
    escapes = "".join(_escapes(data, models))
    if not shown:
        kind = "operators" if setting.is_pretrained_here(data.experiment) else "models"
        if len(data.models) == 1 and kind == "models":
            return f"{data.models[0].name} was measured alone: there are no differences."
        return f"{escapes}The data support no difference between {kind}: {reasons}."
    return f"{escapes}The data support {'; '.join(shown)}; all else is undecided{reasons and f': {reasons}'}."


def _escapes(data: Collection, models: dict[tuple[str, str], pd.DataFrame]) -> Iterator[str]:
    """When the models of each size escape the plateau, and which diverge."""
    if models and data.escape_loss is None:
        key = "--escape-loss" if data.experiment.scale == setting.IMPORTED else "sweep.escape_loss"
        yield f"No escapes from the plateau are stated, as {key} is missing. "
        return
    for size in dict.fromkeys(size for size, _ in models):
        escapes = {name: escapes_of(losses, data.escape_loss) for (of, name), losses in models.items() if of == size}
        steps = ", ".join(f"{name} {each.median.in_a_sentence}" for name, each in escapes.items())
        seeds = "medians over seeds" if max(len(each.at) for each in escapes.values()) > 1 else "one seed"
        yield f"Escapes from the plateau in {names.family(size)}: {steps}; {seeds}; level {data.escape_loss:.2f} nats. "
        for name, each in escapes.items():
            if each.diverged.any():
                diverged = f"{each.diverged.sum()} of {len(each.at)} runs"
                yield f"Of {name} {diverged} diverged: above the level again at the end. "


def _of_runs(data: Collection, models: dict[tuple[str, str], pd.DataFrame]) -> tuple[list[str], list[str]]:
    """Differences of escapes and of last losses that their tests support; where there are none, why."""
    level, named = data.escape_loss, data.experiment.contrasts
    contrasts = {} if level is None else escape_contrasts(models, level, named)
    judged = sorted(contrasts.items(), key=lambda contrast: contrast[1].verdict == WITHIN)  # differences first
    shown = [
        f"{ESCAPES[result.verdict].format(*pair)} ({result.in_words})"
        for pair, result in judged
        if result.verdict in ESCAPES
    ]
    shown += [
        f"a {'higher' if pair.difference > 0 else 'lower'} validation loss of {pair.size}-{pair.model} than of "
        f"{pair.size}-{pair.reference} ({abs(pair.difference):.3f} nats, corrected p {p_in_words(pair.holm_p)})"
        for pair in loss_contrasts(models, named)
        if pair.is_significant
    ]
    if not models:
        return [], ["there are no losses of encoders"]
    if level is None:
        return shown, ["escapes from the plateau are not known"]
    is_tested = any(result.seeds >= FEWEST_ESCAPES for result in contrasts.values())
    none = ["no difference of escapes from the plateau is significant"] if is_tested and not shown else []
    return shown, [*none, *_runs_without_test(models, named)]


def _runs_without_test(models: dict[tuple[str, str], pd.DataFrame], named: list[list[str]] | None) -> Iterator[str]:
    """Why escapes of models are not tested, by the seeds that they have."""
    untested = []
    for size in dict.fromkeys(size for size, _ in models):
        if len(operators := [name for of, name in models if of == size]) == 1:
            yield f"no other operator has losses beside {names.model_name(size, *operators)}"
    if named == []:
        yield "no contrast of escapes is named"
    for size, *pair in contrasts_of(models, named):
        ours, theirs = (models[size, name].index for name in pair)
        model, reference = (names.model_name(size, name) for name in pair)
        if not ours.equals(theirs):
            untested.append((f"other pre-training seeds than {reference}", model))
        elif len(ours) < FEWEST_ESCAPES:
            untested.append(
                (f"{_count(len(ours), PRETRAIN_SEED)}, and a test of escapes takes {FEWEST_ESCAPES}", model)
            )
    yield from _joined(untested)


def _of_scores(data: Collection, suite: str) -> tuple[list[str], list[str]]:
    """Differences of the headline score of a suite that the test supports; where there are none, why."""
    headline = headlines(data.comparisons[suite])
    pairs = [pair for pair in data.comparisons[suite] if pair.score == headline[pair.size]]
    stand_ins = stand_in_names(data.scores[suite])
    scores = {pair.score: heading(stand_ins.get(pair.score, pair.score)) for pair in pairs if pair.p is not None}
    shown = [_score_in_words(pair, scores[pair.score]) for pair in pairs if pair.is_significant]
    none = [f"no difference in the {' or the '.join(scores.values())} is significant"] if scores and not shown else []
    return shown, [*none, *_scores_without_test(data.own(data.scores[suite]), pairs)]


def _of_foreign(data: Collection, suite: str) -> tuple[list[str], list[str]]:
    """Differences of the headline score of a suite from the first foreign model that the paired test supports; where
    there are none, why."""
    pairs = [pair for pair in data.paired[suite] if pair.score == data.paired[suite][0].score]
    if not pairs:
        return [], [f"no other model has scores beside {data.known.models[0]}"]
    shown = [pair for pair in pairs if pair.is_significant]
    score = heading(stand_in_names(data.scores[suite]).get(pairs[0].score, pairs[0].score))
    if tested := [pair for pair in pairs if pair.p is not None]:
        least = [pair.detectable for pair in tested if pair.detectable is not None]
        could = f"the test finds differences of {max(least):.1f} points" if least else "so few fine-tunings show none"
        none = [f"no difference in the {score} from {pairs[0].reference} is significant ({could})"]
        return [_paired_in_words(pair, score) for pair in shown], [] if shown else none
    return [], [f"{_count(pairs[0].n, FINETUNE_SEED)} in common, and a test of scores takes {FEWEST}"]


def _paired_in_words(pair: Comparison, score: str) -> str:
    direction, of = "higher" if pair.difference > 0 else "lower", names.model_name(pair.size, pair.model)
    size = f"{abs(pair.difference):.2f} points on these tasks, corrected p {p_in_words(pair.holm_p)}"
    return f"a {direction} {score} of {of} than of {pair.reference} ({size})"


def _scores_without_test(scores: pd.DataFrame, pairs: list[Comparison]) -> Iterator[str]:
    """Why scores of models are not tested, by the seeds and the columns that they have."""
    compared, untested = {(pair.size, pair.model): pair for pair in pairs if pair.reference == "original"}, []
    for size, of_size in scores.groupby("size", sort=False):
        original, columns = names.model_name(size, "original"), dict.fromkeys(of_size["column"])
        counted = [column for column in columns if column in COUNTED] or [*columns][:1]
        models = of_size[of_size["step"] > 0].groupby("attention", sort=False)["column"].unique()
        if "original" not in models:
            yield f"{original}, with which others are compared, has no scores"
            continue
        if len(models) == 1:
            yield f"no other operator has scores beside {original}"
        for name in models.index.drop("original"):
            model, pair = names.model_name(size, name), compared.get((size, name))
            if pair and pair.p is not None:
                continue
            lacks = {of: [each for each in counted if each not in models[of]] for of in ("original", name)}
            untested += [
                (f"no {' and no '.join(of)}", names.model_name(size, each)) for each, of in lacks.items() if of
            ]
            if not any(lacks.values()):
                seeds = _count(pair.n, pair.unit) if pair else "no seeds"
                whole = " with every column" if len(counted) > 1 else ""
                untested.append(
                    (f"{seeds}{whole} in common with {original}, and a test of scores takes {FEWEST}", model)
                )
    yield from _joined(untested)


def _count(number: int, unit: str) -> str:
    return f"{number or 'no'} {unit}{'' if number == 1 else 's'}"


def _listed(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _joined(reasons: list[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each reason, with all models that it is true of."""
    for reason in dict.fromkeys(reason for reason, _ in reasons):
        models = list(dict.fromkeys(model for of, model in reasons if of == reason))
        yield f"{_listed(models)} {'has' if len(models) == 1 else 'have'} {reason}"


def _score_in_words(pair: Comparison, score: str) -> str:
    direction = "higher" if pair.difference > 0 else "lower"
    of, other = (names.model_name(pair.size, name) for name in (pair.model, pair.reference))
    than = "without pre-training" if pair.reference == names.UNTRAINED else f"of {other}"
    only = ", of these trained models: one pre-training seed" if pair.unit == FINETUNE_SEED else ""
    size = f"{abs(pair.difference):.2f} points, corrected p {p_in_words(pair.holm_p)}"
    return f"a {direction} {score} of {of} than {than} ({size}{only})"


def _compared(data: Collection) -> str:
    """Operators, models and seeds."""
    tables = [*map(data.own, data.scores.values()), data.runs, data.architectures]
    tables = [table for table in tables if table is not None and len(table)]
    cells = [scores.groupby(MODEL)["finetune_seed"].nunique() for scores in data.scores.values()]
    of_finetuning = [f"{setting.in_words(pd.concat(cells))} of fine-tuning"] if cells else []
    foreign = f"from elsewhere: {', '.join(data.known.models)}"
    if not tables and data.models:
        kind = "Measured" if len(data.models) == 1 else "Compared"
        return "; ".join([f"{kind}, {foreign}", *(f"seeds: {seeds}" for seeds in of_finetuning)]) + "."
    if not tables:
        return "There are neither scores nor losses of any model."
    columns = ["architecture", "size", "attention", "pretrain_seed"]
    rows = pd.concat([table.assign(architecture=table.get("architecture", ENCODER))[columns] for table in tables])
    families: dict[str, list[str]] = defaultdict(list)  # of models, by their operators
    for architecture, of_architecture in rows.groupby("architecture", sort=False):
        for size in data.known.sizes(of_architecture["size"]):
            operators = ", ".join(
                data.known.attentions(of_architecture.loc[of_architecture["size"] == size, "attention"])
            )
            family = (
                (names.family(size) if size else "without a size")
                if architecture == ENCODER
                else f"{architecture} {size}"
            )
            families[operators].append(family)
    models = [f"{operators}; models: {', '.join(of)}" for operators, of in families.items()]
    if len(families) > 1:
        models = [f"{operators} ({', '.join(of)})" for operators, of in families.items()]
    models += [foreign] * bool(data.models)
    seeds = f"{setting.in_words(rows.groupby(columns[:3])['pretrain_seed'].nunique())} of pre-training"
    is_one = len(rows[columns[:3]].drop_duplicates()) + len(data.models) == 1
    told = ", ".join([seeds, *of_finetuning])
    return f"{'Measured' if is_one else 'Compared'}: {'; '.join(models)}; seeds: {told}."


def _trained_on(data: Collection) -> str:
    """How long models were trained, on what text, and on which tasks they were scored."""
    experiment, settings = data.experiment, data.experiment.settings
    if experiment.scale == setting.IMPORTED:
        return "How these models were pre-trained, the imported files do not say."
    shapes: dict[str, list[str]] = defaultdict(list)  # steps of architectures, by what a step reads
    for architecture in data.architectures_trained if setting.is_pretrained_here(experiment) else ():
        batch = settings.get(f"architectures.{architecture}.batch_size", settings["pretrain.batch_size"])
        tokens = f"{batch} × {settings['corpus.pack.sequence_length']} tokens"
        steps = f"{architecture} {settings.get(f'architectures.{architecture}.steps', experiment.steps):,}"
        shapes[tokens].append(steps)
    parts = (
        [f"Steps of {'; of '.join(': '.join([shape, ', '.join(of)]) for shape, of in shapes.items())}"]
        if shapes
        else []
    )
    if setting.reads_corpus(data):
        parts.append(f"corpus: {_of_source(settings['corpus.source'], 'corpus')}")
    tasks = {task: SUITES[suite].title for suite, scores in data.scores.items() for task in scores["task"]}
    suites = [*dict.fromkeys(title for task, title in tasks.items() if task in PUBLISHED)]
    if suites := [*suites, *["BLiMP"] * (data.blimp is not None)]:
        named = (" or " if is_stand_in(settings["glue.source"]) else ", ").join(suites)  # not GLUE or BLiMP
        parts.append(f"scores: {_of_source(settings['glue.source'], 'tasks').replace('GLUE', named)}")
    if custom := [task for task in tasks if task not in PUBLISHED]:
        parts.append(f"the user's own tasks: {', '.join(custom)}")
    told = "; ".join(parts)
    return f"{told[:1].upper()}{told[1:]}."


def _of_source(source: str, stage: str) -> str:
    """The corpus or the tasks of a source, in words."""
    return getattr(SOURCES[source], stage) if source in SOURCES else f"the user's own (source {source})"
