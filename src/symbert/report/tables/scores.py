"""Scores: Table 3 and those of other suites, every seed, kinds of SQuAD's questions, and minimal pairs of BLiMP."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.glue.blimp import PAIRS_OF_PARADIGM
from symbert.glue.tasks import SUITES, task_named, tasks_of_suite
from symbert.report import captions, published
from symbert.report.collect import JUDGED, Collection, majority_of
from symbert.report.formats import DAGGER, Table, best_of, table_of
from symbert.report.statistics import (
    COUNTED,
    SEEDS,
    STAND_IN,
    Spread,
    is_inferred_from,
    means_of,
    seed_scores,
    spread,
    stand_in_names,
)

Row = dict[str, Any]

MODEL = ["size", "attention", "step"]
STD_OF_SEVERAL = (
    "In a row of one pre-training seed, std is over its fine-tuning seeds; in a row of their mean, over the "
    "pre-training seeds."
)
MAJORITY = "Majority baseline: the most frequent training class, or mean grade, for every row."


@dataclass(frozen=True)
class Line:
    """A row of Table 3, and facts about it beside its cells."""

    row: Row
    size: str | None = None  # the best value is that among rows of a size; None: not compared
    collapsed: frozenset[str] = frozenset()  # score columns in which a run predicts one class throughout


def glue_table(data: Collection, suite: str = "glue") -> Table | None:
    """Table 3 of this experiment, or that of another suite: scores of the last checkpoints, mean and sample standard
    deviation over fine-tuning seeds, and the majority baseline. Where there are several pre-training seeds, the mean
    over them has a row of its own.

    The paper's rows are added where its scores may stand beside these.
    """
    final = data.scores_of(suite)
    if final is None:
        return None
    settings, title = data.settings_of(suite), SUITES[suite].title
    columns = [column for task in tasks_of_suite(suite, settings.tasks) for column in task_named(task).scores.values()]
    with_paper = suite == "glue" and captions.wording_of(settings).other_finetuning is None
    lines, majority = [*model_lines(final, columns, with_paper)], majority_of(final)
    if majority:  # as if the majority were a seed's; of imported scores it is not known
        cell = final.iloc[0][SEEDS].to_dict()
        baseline = final.drop_duplicates("column").assign(**cell, score=lambda scores: scores["majority"])
        lines.append(Line(_row("majority baseline", baseline, columns) | {"finetune_seeds": None}))
    rows = [line.row for line in lines]
    sizes = [line.size if is_inferred_from(final) else None for line in lines]
    is_printed = not published.SCORES.keys().isdisjoint(zip(final["size"], final["attention"], strict=True))
    notes = [
        *_opening(f"{title} scores at step {settings.steps:,}", settings, final),
        *_missing_notes(final, columns),
        STD_OF_SEVERAL if final["pretrain_seed"].nunique() > 1 else "",
        _score_note(suite, columns),
        captions.wording_of(settings).beside_printed if is_printed else "",
        SUITES[suite].note or (MAJORITY if majority else ""),
    ]
    return table_of(
        rows,
        " ".join(filter(None, notes)),
        f"tab:{suite}",
        names=stand_in_names(final),
        best=best_of(rows, sizes, (means_of(final)[0], *columns)),
        marked={(at, column) for at, line in enumerate(lines) for column in line.collapsed},
    )


def model_lines(final: pd.DataFrame, columns: list[str], with_paper: bool) -> Iterator[Line]:
    """Lines of each model: of its seeds and their mean, the paper's beneath, and that of no pre-training.

    There is but one line of a model where none has several pre-training seeds.
    """
    several = final["pretrain_seed"].nunique() > 1
    for (size, attention, step), scores in final.groupby(MODEL, sort=False):
        model = captions.model_name(size, attention, step)
        row = _row(model, scores, columns)
        if several:
            seeds = [
                Line(_row(f"{model}, seed {seed}", part, columns), None, _collapsed(part))
                for seed, part in scores.groupby("pretrain_seed", sort=False)
            ]
            yield from seeds if step else ()
            spreads = {key: _spread(line.row[key] for line in seeds) for key in row if key not in ("model", "std")}
            row |= {key: values and values.mean for key, values in spreads.items()}
            row["model"] = f"{model}, mean of {len(seeds)} seed{'s' if len(seeds) > 1 else ''}"
            mean = spreads[means_of(scores)[0]]
            row["std"] = mean and mean.deviation
        yield Line(row, size if step else None, _collapsed(scores))
        if step and with_paper and (size, attention) in published.SCORES:
            yield Line(_paper_row(size, attention, columns))


def _collapsed(scores: pd.DataFrame) -> frozenset[str]:
    return frozenset(scores.loc[scores["constant_prediction"].eq(True), "column"])


def _row(name: str, scores: pd.DataFrame, columns: list[str]) -> Row:
    """The cells of one pre-trained model; only seeds with all columns that count do so for its means of columns."""
    means = means_of(scores)
    seeds = seed_scores(scores).reindex(columns=[*means, *columns])
    complete = seeds.dropna(subset=[column for column in columns if column in COUNTED])
    score, *others = (_spread(complete[name]) for name in means)
    spreads = {column: _spread(seeds[column]) for column in columns}
    return {
        "model": name,
        means[0]: score and score.mean,
        "std": score and score.deviation,
        **{column: values and values.mean for column, values in spreads.items()},
        **{name: values and values.mean for name, values in zip(means[1:], others, strict=True)},
        "finetune_seeds": len(complete),
    }


def _paper_row(size: str, attention: str, columns: list[str]) -> Row:
    score, std, *scores = published.SCORES[size, attention]
    printed = dict(zip(published.COLUMNS, scores, strict=True))
    whole = set(columns) >= set(published.COLUMNS)  # the paper's mean is of all its columns
    return {
        "model": f"{size}-{attention}, the paper",
        "glue_score": score if whole else None,
        "std": std if whole else None,
        **{column: printed.get(column) for column in columns},
        "mean_of_tasks": None,
        "finetune_seeds": published.FINETUNE_SEEDS,
    }


def _spread(values: Iterable[float | None]) -> Spread | None:
    """The spread of the values that are known; None without any."""
    known = [value for value in values if pd.notna(value)]
    return spread(known) if known else None


def _opening(subject: str, settings: ReportSettings, final: pd.DataFrame) -> list[str]:
    """The start of the caption of a table of models' scores."""
    collapsed = final["constant_prediction"].eq(True).any()
    notes = [f"{DAGGER} The mean has such a run in it."] if collapsed else []
    return [captions.of_scores(subject, settings, final), *notes]


def _missing_notes(final: pd.DataFrame, columns: list[str]) -> list[str]:
    """Which scores a table with dashes lacks: 'rte of base-original (3 of 5)'; none where all are there."""
    runs = final.groupby(MODEL)[SEEDS].apply(lambda part: len(part.drop_duplicates()))
    counts = final.groupby([*MODEL, "column"]).size()
    missing = [
        f"{column} of {captions.model_name(*model)} ({count} of {runs.max()})"
        for model, column in product(runs.index, columns)
        if (count := counts.get((*model, column), 0)) < runs.max()
    ]
    return [f"Missing scores: {', '.join(missing)}; the mean is of seeds with every column."] if missing else []


def _score_note(suite: str, columns: list[str]) -> str:
    """Which columns the score of the suite is the mean of; nothing of a suite of one column."""
    title, whole = SUITES[suite].title, {column for column in SUITES[suite].columns if column in COUNTED}
    counted, others = ([column for column in columns if (column in COUNTED) == counts] for counts in (True, False))
    notes = [] if counted else [f"There is no {title} score."]
    if counted and len(whole) > 1:
        start = "Not the whole benchmark: the" if whole - {*counted} else "The"
        notes.append(f"{start} {title} score is the mean of {', '.join(counted)}.")
    if {"mnli_matched", "mnli_mismatched"} <= {*counted}:
        notes.append("The mean of tasks counts MNLI once.")
    if others:
        notes.append(f"Not counted: {', '.join(others)}.")
    return " ".join(notes)


def published_table(data: Collection) -> Table:
    """Table 3 as the paper prints it (arXiv 2406.06366): the paper's own numbers, not this experiment's."""
    columns = ("glue_score", "std", *published.COLUMNS)
    rows = [
        {"model": f"{size}-{name}", **dict(zip(columns, printed, strict=True))}
        for (size, name), printed in published.SCORES.items()
    ]
    best = best_of(rows, [size for size, _ in published.SCORES], ("glue_score", *published.COLUMNS))
    caption = (
        f"The paper's own numbers, not this experiment's: GLUE scores in percent as printed in table 3 of "
        f"{published.PAPER}; mean and sample standard deviation over {published.FINETUNE_SEEDS} fine-tuning seeds of "
        "one pre-trained model."
    )
    return table_of(rows, caption, "tab:published", best=best)


def scores_table(data: Collection, suite: str = "glue") -> Table | None:
    """Scores of every fine-tuning seed: the score of the suite, GLUE's mean of tasks (MNLI's two columns as one) and
    each column; then their mean and sample standard deviation. Table 3 and the statistics are made of these rows.
    """
    final = data.scores_of(suite)
    if final is None:
        return None
    settings, several = data.settings_of(suite), final["pretrain_seed"].nunique() > 1
    constant = final[final["constant_prediction"].eq(True)]  # one class is predicted throughout
    collapsed = constant.groupby(SEEDS)["task"].agg(lambda tasks: ", ".join(tasks.unique()))
    seeds = seed_scores(final).rename(columns=stand_in_names(final))
    seeds = seeds.assign(collapsed=collapsed) if len(collapsed) else seeds
    models = seeds.groupby(level=MODEL, sort=False)
    rows = [row for model, part in models for row in _seed_rows(captions.model_name(*model), part, several)]
    notes = [captions.of_scores(f"The scores of every seed at step {settings.steps:,}", settings, final)]
    if several:
        notes.append(
            "Mean and std in the column of fine-tuning seeds are over those of one pre-training seed; in the column of "
            "pre-training seeds, over the means of these."
        )
    if len(collapsed):
        notes.append("Collapsed: the tasks for which a seed predicts one class throughout.")
    return table_of(rows, " ".join(notes), f"tab:{'' if suite == 'glue' else f'{suite}_'}scores")


def _seed_rows(name: str, scores: pd.DataFrame, several: bool) -> Iterator[Row]:
    """Rows of a model's seeds by pre-training seed; over several of these, mean and deviation of their means too."""
    parts = scores.groupby(level="pretrain_seed", sort=False)
    for pretrain_seed, part in parts:
        model = {"model": name} | ({"pretrain_seed": pretrain_seed} if several else {})
        for seed, row in zip(part.index.get_level_values("finetune_seed"), part.to_dict("records"), strict=True):
            yield model | {"finetune_seed": seed} | row
        yield from _summary(model, "finetune_seed", part)
    if several:
        yield from _summary({"model": name}, "pretrain_seed", parts.mean(numeric_only=True))


def _summary(model: Row, axis: str, scores: pd.DataFrame) -> Iterator[Row]:
    """Rows of the mean and of the sample standard deviation along an axis; none where it has one value."""
    if len(scores) < 2:
        return
    spreads = {column: _spread(values) for column, values in scores.select_dtypes("number").items()}
    yield model | {axis: "mean"} | {column: values and values.mean for column, values in spreads.items()}
    yield model | {axis: "std"} | {column: values and values.deviation for column, values in spreads.items()}


ANSWERS = ("exact", "f1", "has_answer_exact", "has_answer_f1", "no_answer_f1")


def answers_table(data: Collection, suite: str) -> Table | None:
    """SQuAD 2.0: exact match and F1 in percent, mean over seeds, of all questions, of those with an answer and of those
    without one, where both are the share that is left unanswered.
    """
    scores = data.scores_of(suite)
    if scores is None or suite != "squad2":
        return None
    settings = data.settings_of(suite)
    details = pd.DataFrame(list(scores["details"]), index=scores.index).reindex(columns=list(ANSWERS))
    models = scores[MODEL].join(100 * details).groupby(MODEL, sort=False)
    counts = models.size()
    rows = [
        {"model": captions.model_name(*model), **means.to_dict(), "fine_tunings": int(counts[model])}
        for model, means in models.mean().iterrows()
    ]
    sizes = [size if step else None for size, _, step in counts.index]
    notes = _opening(f"SQuAD 2.0, kinds of questions, at step {settings.steps:,}", settings, scores)
    notes.append("The threshold of no answer is that of the highest F1 on training questions that were held out.")
    return table_of(rows, " ".join(notes), "tab:squad2_answers", best=best_of(rows, sizes, ANSWERS))


def blimp_table(data: Collection) -> Table | None:
    """Share of minimal pairs in which a model finds the acceptable sentence likelier, without fine-tuning: the mean
    over all paradigms and that of each phenomenon, at the last step; the csv has all steps and seeds.
    """
    judgements = data.blimp
    if judgements is None:
        return None
    rows, last = accuracies(judgements), judgements.groupby("host", sort=False)["step"].max()
    if judgements["stand_in"].any():
        rows = rows.add_suffix(STAND_IN)
    is_last = rows.index.get_level_values("step") == last[rows.index.get_level_values("host")].to_numpy()
    models = rows[is_last].groupby(level=["host", "size", "attention"], sort=False)
    readable, seeds = models.mean(), judgements["pretrain_seed"].nunique()
    if seeds > 1:
        readable.insert(1, "std", models[rows.columns[0]].std())
    readable.insert(0, "model", [captions.host_model(*model) for model in readable.index])
    hosts, ties = list(last.index), 100 * judgements["ties"].sum() / judgements["pairs"].sum()
    steps = ", ".join(f"{step:,} ({host})" for host, step in last.items()) if last.nunique() > 1 else f"{last.max():,}"
    of_several = "; mean over pre-training seeds, std is their sample standard deviation" if seeds > 1 else ""
    of_decoders = ", of a decoder each given those before it" if "decoder" in hosts else ""
    caption = (
        f"Accuracy in percent on {pairs_in_words(judgements)}, at step {steps} "
        f"({captions.seeds_of(seeds)}){of_several}. Chance is 50."
        f"\n\n{captions.wording_of(data.settings).experiment}. {captions.training_of_hosts(data.settings, hosts)}. No "
        "fine-tuning. How likely a sentence is: the sum of the log probabilities of its tokens, each masked alone "
        f"(Salazar et al. 2020){of_decoders}. A tie counts half, as a coin would: {ties:.2f} % of all pairs, such as "
        "those whose sentences have the same word pieces."
    )
    return Table(rows.reset_index(), caption, "tab:blimp", readable=readable)


def accuracies(judgements: pd.DataFrame) -> pd.DataFrame:
    """A row per checkpoint: `accuracy`, the mean over paradigms, and that of each phenomenon."""
    checkpoint = list(JUDGED)
    models = judgements.groupby(checkpoint, sort=False)["accuracy"].mean().to_frame()
    phenomena = judgements.groupby([*checkpoint, "phenomenon"], sort=False)["accuracy"].mean()
    return models.join(phenomena.unstack(sort=False))


def pairs_in_words(judgements: pd.DataFrame) -> str:
    """Which pairs were judged: '67 paradigms of 1,000 minimal pairs of BLiMP'."""
    pairs, paradigms = judgements["pairs"], judgements["paradigm"].nunique()
    count = f"{pairs.min():,}" if pairs.min() == pairs.max() else f"{pairs.min():,} to {pairs.max():,}"
    if judgements["stand_in"].any():
        return (
            f"{paradigms} paradigms of {count} stand-in pairs made from documentation text, not BLiMP: the worse "
            "sentence has two words exchanged"
        )
    of_all = f" of the {PAIRS_OF_PARADIGM:,}" if judgements["partial"].any() else ""
    return f"{paradigms} paradigms of {count}{of_all} minimal pairs of BLiMP"
