"""One table of the scores of experiments, imports and csv files of others' scores."""

from pathlib import Path

import pandas as pd

from symbert.errors import DataError, MissingInputError, UsageError
from symbert.glue import tasks
from symbert.report import names
from symbert.report.collect import read_record
from symbert.report.formats import Table, Words, heading, table_of, to_markdown, write_table
from symbert.report.statistics import compared, corrected, seed_scores
from symbert.report.tables.scores import model_lines
from symbert.report.tidy import length_of, parted, read_scores

CAPTION = (
    "Scores of several results in percent: means over fine-tuning seeds, or over pre-training seeds where there are "
    "several; std is the sample standard deviation of the GLUE score. A dash: not measured; a mean of columns is of "
    "the seeds that have them all. Last columns: {score} less that of {reference}, in points, over the seeds that "
    "both have, with Welch’s 95 % interval. The {tested} is tested: two-sided permutation test over all splits of the "
    "seeds of both models, with Holm’s correction for the differences of the table. Stand-ins are compared with "
    "stand-ins only."
)


def compare(
    results: list[Path], /, score: str | None = None, reference: str | None = None, output: list[Path] | None = None
) -> None:
    """Print Table 3 of several results together: experiments and imports by name or folder, and csv files as
    `import-scores` reads them.

    The last columns are differences from the first model, or from the `reference`, in the GLUE score or another column
    (`score`), over the seeds in which both have it. The suffix of each `output` decides its format: .csv, .md or .tex.
    """
    places = [path.resolve() for path in results]
    if twice := [path for path, place in zip(results, places, strict=True) if places.count(place) > 1]:
        raise UsageError(f"{twice[-1]} is given twice; give each experiment or file once")
    labels = [place.name for place in places]
    labels = labels if len(set(labels)) == len(labels) else list(map(str, results))
    final = [final_scores_in(path) for path in results]
    table, words = comparison_of(dict(zip(labels, final, strict=True)), score, reference)
    print(to_markdown(table, words), end="")
    write_table(table, words, output or [])


def comparison_of(
    final: dict[str, pd.DataFrame], score: str | None = None, reference: str | None = None
) -> tuple[Table, Words]:
    """Table 3 of final scores by their source, a row per model, with differences in one score from the reference, or
    the first model. UsageError for a reference or a score that there is not, with those that there are."""
    scores = pd.concat([_labelled(table, label) for label, table in final.items()])
    models = seed_scores(scores).droplevel(["size", "step"]).groupby("attention", sort=False)
    seeds = {model: part.droplevel("attention") for model, part in models}
    shown = next(iter(seeds.values())).columns
    first, score = reference or next(iter(seeds)), score or shown[0]
    for option, word, options in (("reference", first, seeds), ("score", score, shown)):
        if word not in options:
            raise UsageError(f"--{option} is '{word}', expected one of {', '.join(options)}")
    is_stand_in = scores.groupby("attention")["stand_in"].any()
    others = [model for model in seeds if model != first and is_stand_in[model] == is_stand_in[first]]
    pairs = corrected(pair for model in others for pair in compared("", model, first, seeds[model], seeds[first]))
    differences = {pair.model: pair for pair in pairs if pair.score == score}
    rows = []
    for line in model_lines(scores, list(scores["column"].unique()), with_paper=False):
        pair = line.model and differences.get(line.model[1])  # a line of a single pre-training seed is not compared
        low, high = (pair and pair.interval) or (None, None)
        last = {"difference": pair and pair.difference, "low": low, "high": high, "holm_p": pair and pair.holm_p}
        rows.append({**line.row, **last, "common_seeds": pair and pair.n})
    flags = {"partial": "partial", "is_imported": "measured by others"}
    told = [
        f"{label}: {', '.join(['stand-ins' if part['stand_in'].any() else 'GLUE', *of_part])}"
        for label, part in final.items()
        for of_part in [[words for flag, words in flags.items() if part[flag].any()]]
    ]
    caption = CAPTION.format(score=heading(score), reference=first, tested=heading(shown[0]))
    return table_of(rows, decimals={"holm_p": 4}), Words("compare", caption, "; ".join(told) + ".")


def _labelled(scores: pd.DataFrame, label: str) -> pd.DataFrame:
    """The same with the name of the source before that of each model, all of one size and step."""
    models = [names.model_name(*model) for model in zip(scores["size"], scores["attention"], strict=True)]
    return scores.assign(size="", attention=[f"{label}: {model}" for model in models], step=1)


def final_scores_in(path: Path) -> pd.DataFrame:
    """The final scores on GLUE and the user's own tasks of a report, an import or a csv file; MissingInputError where
    there are none."""
    file, steps, is_imported = path, None, True
    if not path.is_file() and path.suffix != ".csv":
        folder, record = read_record(path)
        for name, definition in record["configuration"]["tasks"].items():
            tasks.define(name, definition)
        file, steps = folder / "report/data/scores.csv", record["report"]["steps"]
        is_imported = "origin" in record["inputs"]
        if not ((folder / f"report/experiment-{record['key']}.json").is_file() and file.is_file()):
            raise MissingInputError(f"{folder}: no report with scores of step {steps}; run it to its end first")
    scores = read_scores(file)
    final, _ = parted(scores, length_of(scores["step"], steps))
    final = final[final["task"].isin([*tasks.GLUE, *tasks.OWN])]
    if final.empty:
        raise DataError(f"{path}: no score on GLUE in it; give one, or leave the file out")
    return final.assign(is_imported=is_imported)
