"""One table of the scores of experiments, imports and csv files of others' scores."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.configuration import ReportSettings, settings_from
from symbert.errors import DataError, MissingInputError, UsageError
from symbert.glue import tasks
from symbert.report import captions
from symbert.report.collect import read_record
from symbert.report.formats import Table, best_of, decimal_of, heading, to_markdown, write_table
from symbert.report.formats import table_of as table_of_rows
from symbert.report.statistics import Comparison, compared, corrected, seed_scores
from symbert.report.tables.scores import model_lines
from symbert.report.tidy import length_of, parted, read_scores

METHODS = (
    "Scores in percent: means over fine-tuning seeds, or over pre-training seeds where there are several; std is the "
    "sample standard deviation of the GLUE score. A dash is a score that was not measured, and a mean of columns is of "
    "seeds that have all of them: their number is in the column of fine-tuning seeds. Differences are in points, over "
    "the seeds in which both have the score, with Welch's 95 % interval, which does not use which seeds belong "
    "together. The {tested} is tested: two-sided permutation test over all splits of the seeds of both models, with "
    "Holm's correction for the differences of the table. Stand-ins are compared with stand-ins only."
)


@dataclass(frozen=True)
class Source:
    """The final scores of a folder or file, a table of a collection, and what is said of them."""

    path: Path
    scores: pd.DataFrame
    words: str

    @property
    def name(self) -> str:
        """The name of the folder or file."""
        return self.path.resolve().name


def compare(
    results: list[Path],
    /,
    score: str | None = None,
    reference: str | None = None,
    output: list[Path] | None = None,
) -> None:
    """Print Table 3 of several results together: experiments and imports by name or folder, and csv files as
    `import-scores` reads them.

    The last columns are differences from the first model, or from the `reference`, in the GLUE score or another column
    (`score`), over the seeds in which both have it. The suffix of each `output` decides its format: .csv, .md, .tex or
    .html.
    """
    sources = [_read(path) for path in results]
    places = [source.path.resolve() for source in sources]
    if twice := [str(path) for path, place in zip(results, places, strict=True) if places.count(place) > 1]:
        raise UsageError(f"{twice[-1]} is given twice; give each experiment or file once")
    table = comparison_of(sources, score, reference)
    print(to_markdown(table), end="")
    if output:
        write_table(table, output)


def comparison_of(sources: list[Source], score: str | None = None, reference: str | None = None) -> Table:
    """Table 3 of all sources, a row per model, with differences in one score from the reference, or the first model.

    UsageError for a reference or a score that there is not, with those that there are.
    """
    names = [source.name for source in sources]
    labels = names if len(set(names)) == len(names) else [str(source.path) for source in sources]
    scores = pd.concat([_labelled(source.scores, label) for label, source in zip(labels, sources, strict=True)])
    known = [column for task in (*tasks.GLUE, *tasks.OWN) for column in tasks.task_named(task).scores.values()]
    columns = [column for column in known if column in set(scores["column"])]
    seeds = dict(list(seed_scores(scores).droplevel(["size", "step"]).groupby("attention", sort=False)))
    seeds = {model: part.droplevel("attention") for model, part in seeds.items()}
    shown = next(iter(seeds.values())).columns
    first, score = reference or next(iter(seeds)), score or shown[0]
    for option, word, known in (("reference", first, seeds), ("score", score, shown)):
        if word not in known:
            raise UsageError(f"--{option} is '{word}', expected one of {', '.join(known)}")
    is_stand_in = scores.groupby("attention")["stand_in"].any()
    others = [model for model in seeds if model != first and is_stand_in[model] == is_stand_in[first]]
    every = corrected(one for model in others for one in compared("", model, first, seeds[model], seeds[first]))
    differences = {one.model: one for one in every if one.score == score}
    lines = list(model_lines(scores, columns, with_paper=False))
    models = iter(seeds)  # of each of which one line is compared, in this order, and no line of a single seed
    model_of = [None if line.size is None else next(models) for line in lines]
    rows = [line.row | _cells(differences.get(model)) for line, model in zip(lines, model_of, strict=True)]
    said = " ".join(f"{label}: {source.words}." for label, source in zip(labels, sources, strict=True))
    subject = f"Scores of several results, and differences in {heading(score)} from {first}"
    groups = [model and str(is_stand_in[model]) for model in model_of]
    best = best_of(rows, groups, ("glue_score", *columns))
    methods = METHODS.format(tested=heading(shown[0]))
    return table_of_rows(rows, f"{subject}. {said}\n\n{methods}", "tab:compare", best=best)


def _labelled(scores: pd.DataFrame, label: str) -> pd.DataFrame:
    """The same with the name of the source before that of each model, all of one size and step."""
    names = [captions.model_name(*model) for model in zip(scores["size"], scores["attention"], strict=True)]
    return scores.assign(size="", attention=[f"{label}: {name}" for name in names], step=1)


def _cells(one: Comparison | None) -> dict[str, Any]:
    """The last cells of a row: the difference, its Welch interval, p with Holm's correction, and the common seeds."""
    if one is None:
        return dict.fromkeys(("difference", "low", "high", "holm_p", "common_seeds"))
    low, high = one.welch or (None, None)
    p_value = decimal_of(one.holm_p, 4)
    return {"difference": one.difference, "low": low, "high": high, "holm_p": p_value, "common_seeds": one.n}


def _read(path: Path) -> Source:
    """The final scores on GLUE and the user's own tasks of a report or a csv file; MissingInputError where there are
    none."""
    if path.is_file() or path.suffix == ".csv":
        scores = read_scores(path)
        length, _ = length_of(scores["step"])
        final = of_glue(parted(scores, length)[0])
        if final.empty:
            raise DataError(f"{path}: no score on GLUE in it; give one, or leave the file out")
        return Source(path, final, "others' scores")
    folder, record = read_record(path)
    settings = settings_from(record["report"], ReportSettings, f"{folder}/experiment.json: 'report'")
    for name, definition in record["configuration"]["tasks"].items():
        tasks.define(name, definition)
    if "origin" in record["inputs"]:
        final = of_glue(parted(read_scores(record["inputs"]["scores"]["glue"][0]), settings.steps)[0])
        return Source(folder, final, _words(settings, final))
    made, file = folder / f"report/experiment-{record['key']}.json", folder / "report/data/scores.csv"
    scores = of_glue(read_scores(file)) if made.is_file() and file.is_file() else None
    if scores is None or not scores["step"].isna().any():
        raise MissingInputError(f"{folder}: no report with scores of step {settings.steps}; run it to its end first")
    final = scores[scores["step"].isna()]
    return Source(folder, final, _words(settings, final))


def of_glue(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores on GLUE and the user's own tasks."""
    return scores[scores["task"].isin([*tasks.GLUE, *tasks.OWN])]


def _words(settings: ReportSettings, scores: pd.DataFrame) -> str:
    """What is said of an experiment: how it was computed, and which tasks are stand-ins or partial."""
    notes = [captions.wording_of(settings).experiment]
    for kind, names in (("stand-ins", captions.stand_in_tasks(scores)), ("partial", captions.partial_tasks(scores))):
        notes += [f"{kind}: {names}"] if names else []
    return "; ".join(notes)
