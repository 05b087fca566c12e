"""Table 3: GLUE scores of this experiment beside the majority baseline."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.glue.tasks import OWN, SUITES, Suite, task_named, tasks_of_suite
from symbert.report import captions, published
from symbert.report.collect import Collection
from symbert.report.formats import DAGGER, Table, best_of, table_of
from symbert.report.scores import majority_of
from symbert.report.statistics import (
    COUNTED,
    SEEDS,
    Spread,
    is_inferred_from,
    means_of,
    seed_scores,
    spread,
    stand_in_names,
)

Row = dict[str, Any]


@dataclass(frozen=True)
class Line:
    """A row of the table, and what is said of it beside its cells."""

    row: Row
    size: str | None = None  # the best value is that among rows of a size; None: not compared
    collapsed: frozenset[str] = frozenset()  # score columns in which a run predicts one class throughout


SEVERAL = (
    "In a row of one pre-training seed, std is over its fine-tuning seeds; in a row of their mean, over the "
    "pre-training seeds."
)


def glue_table(data: Collection) -> Table | None:
    """Table 3 of this experiment: scores of the last checkpoints, mean and sample standard deviation over fine-tuning
    seeds, and the majority baseline. Where there are several pre-training seeds, the mean over them has a row of its
    own.

    The paper's rows are added where its scores may stand beside these.
    """
    if data.scores is None:
        return None
    final, settings = data.scores, data.settings
    tasks = tasks_of_suite("glue", settings.tasks)
    columns = [column for task in tasks for column in task_named(task).scores.values()]
    with_paper = captions.wording_of(settings).other_finetuning is None
    return scores_of_models(final, columns, _caption(final, columns, settings), "tab:glue", with_paper)


def suite_table(data: Collection, suite: str) -> Table | None:
    """Scores of the last checkpoints on the tasks of the suite, mean and sample standard deviation over fine-tuning
    seeds, and the majority baseline. The score of the suite is the mean of its tasks.
    """
    final = data.scores_of(suite)
    if final is None:
        return None
    settings = data.settings_of(suite)
    columns = [column for task in settings.tasks for column in task_named(task).scores.values()]
    return scores_of_models(final, columns, _caption_of_suite(final, settings, SUITES[suite]), f"tab:{suite}")


def _caption_of_suite(final: pd.DataFrame, settings: ReportSettings, suite: Suite) -> str:
    notes = opening(f"{suite.title} scores at step {settings.steps:,}", settings, final)
    notes += [SEVERAL] * (final["pretrain_seed"].nunique() > 1)
    if len(settings.tasks) < len(suite.tasks):
        notes.append(f"Not the whole benchmark: the {suite.title} score is the mean of {', '.join(settings.tasks)}.")
    elif len(suite.tasks) > 1:
        notes.append(f"The {suite.title} score is the mean of its {len(suite.tasks)} tasks.")
    return " ".join([*notes, suite.note]).rstrip()


def scores_of_models(
    final: pd.DataFrame, columns: list[str], caption: str, label: str, with_paper: bool = False
) -> Table:
    """The table of the scores of a suite: lines of each model, and the majority baseline."""
    lines = [*model_lines(final, columns, with_paper)]
    if majority_of(final):  # as if the majority were a seed's; of imported scores it is not known
        cell = final.iloc[0][SEEDS].to_dict()
        baseline = final.drop_duplicates("column").assign(**cell, score=lambda scores: scores["majority"])
        lines.append(Line(_row("majority baseline", baseline, columns) | {"finetune_seeds": None}))
    rows = [line.row for line in lines]
    sizes = [line.size if is_inferred_from(final) else None for line in lines]
    best = best_of(rows, sizes, (means_of(final)[0], *columns))
    marked = {(at, column) for at, line in enumerate(lines) for column in line.collapsed}
    return table_of(rows, caption, label, names=stand_in_names(final), best=best, marked=marked)


def model_lines(final: pd.DataFrame, columns: list[str], with_paper: bool) -> Iterator[Line]:
    """Lines of each model: of its seeds and their mean, the paper's beneath, and that of no pre-training.

    There is but one line of a model where none has several pre-training seeds.
    """
    several = final["pretrain_seed"].nunique() > 1
    for (size, attention, step), scores in final.groupby(["size", "attention", "step"], sort=False):
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


def _caption(final: pd.DataFrame, columns: list[str], settings: ReportSettings) -> str:
    notes = [*opening(f"GLUE scores at step {settings.steps:,}", settings, final), *_missing_notes(final, columns)]
    several = final["pretrain_seed"].nunique() > 1
    notes += [*[SEVERAL] * several, _score_note(columns)]
    is_printed = not published.SCORES.keys().isdisjoint(zip(final["size"], final["attention"], strict=True))
    beside_printed = captions.wording_of(settings).beside_printed
    notes += [beside_printed] if beside_printed and is_printed else []
    if majority_of(final):
        notes.append("Majority baseline: the most frequent training class, or mean grade, for every row.")
    return " ".join(notes)


def opening(subject: str, settings: ReportSettings, final: pd.DataFrame) -> list[str]:
    """The start of the caption of a table of models' scores."""
    collapsed = final["constant_prediction"].eq(True).any()
    notes = [f"{DAGGER} The mean has such a run in it."] if collapsed else []
    return [captions.of_scores(subject, settings, final), *notes]


def _missing_notes(final: pd.DataFrame, columns: list[str]) -> list[str]:
    """Which scores a table with dashes lacks: 'rte of base-original (3 of 5)'; none where all are there."""
    models = ["size", "attention", "step"]
    runs = final.groupby(models)[SEEDS].apply(lambda part: len(part.drop_duplicates()))
    counts = final.groupby([*models, "column"]).size()
    missing = [
        f"{column} of {captions.model_name(size, attention, step)} ({count} of {runs.max()})"
        for (size, attention, step), column in product(runs.index, columns)
        if (count := counts.get((size, attention, step, column), 0)) < runs.max()
    ]
    rest = "the GLUE score is of seeds with every column."
    return [f"Missing scores: {', '.join(missing)}; {rest}"] if missing else []


def _score_note(columns: list[str]) -> str:
    counted = [column for column in columns if column in published.COLUMNS]
    others = " Wnli does not count for it, as in the paper." if "wnli" in columns else ""
    own = ", ".join(column for column in columns if column in OWN)
    others += f" The user's own tasks do not count for it: {own}." if own else ""
    if not counted:
        return f"There is no GLUE score.{others}"
    if len(counted) == len(published.COLUMNS):
        return f"The GLUE score is the mean of the nine score columns; the mean of tasks counts MNLI once.{others}"
    number = f"{len(counted)} column{'s' if len(counted) > 1 else ''}"
    return f"Not the whole benchmark: the GLUE score is the mean of {number} ({', '.join(counted)}).{others}"


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
