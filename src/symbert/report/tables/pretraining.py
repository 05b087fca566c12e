"""Tables of pre-training: milestones, exits from the plateau, the points of a sweep, and hosts but the encoder."""

import math
from typing import Any

import pandas as pd

from symbert.configuration import SWEPT
from symbert.experiment.sweep import Grid
from symbert.hosts import HOSTS
from symbert.report import captions, published
from symbert.report.collect import Collection, losses_of
from symbert.report.formats import Rounded, Table, decimal_of, frame_of, table_of
from symbert.report.order import model_rank
from symbert.report.statistics import (
    EQUIVALENT,
    FEWEST,
    FEWEST_EXITS,
    PLATEAU_HEIGHT,
    TARGET,
    Exits,
    compare_exits,
    exit_contrasts,
    exits_of,
    first_crossing,
    loss_contrasts,
    mean_curves,
    median_exit,
    p_in_words,
    spread,
)

Row = dict[str, Any]

RANGE = ("earliest_exit", "latest_exit")
LOSSES = ("validation_loss", "plateau_exit", *RANGE)
CROSSINGS = ("target_score", "before", "after", "crossing")
PRINTED_EXITS = ("paper_plateau_exit", "authors_plateau_exit")
PRINTED_CROSSINGS = ("authors_before", "authors_after", "authors_crossing")
MILESTONES = ("size", "attention", *LOSSES, *CROSSINGS, *PRINTED_EXITS, *PRINTED_CROSSINGS)
SUBJECT = (
    "Milestones of learning: the last validation loss, the exit from the initial plateau, and the checkpoints between "
    f"which a model first reaches {100 * TARGET:.0f} % of the highest final score."
)
RULES = {  # by the first of the columns that they are about
    "validation_loss": "Validation loss: nats per masked token at the last step. Plateau exit: the first evaluation "
    "after the initial plateau, whose last one is where, over the logarithm of the step, the loss stands highest above "
    f"a straight line from an earlier evaluation to the last, by more than {100 * PLATEAU_HEIGHT:.0f} % of it, lone "
    "spikes aside; a dash where no run leaves the plateau.",
    "earliest_exit": "Losses are means over pre-training seeds; plateau exits are medians, the step at which at most "
    "half of the runs are still on the plateau; a dash is later than the last step.",
    "target_score": f"Target score: {100 * TARGET:.0f} % of the highest score at the last checkpoint among the "
    "operators of a size; curves are means over seeds. Before and after: the neighbouring checkpoints between which a "
    "curve first reaches it (no before: the first one does); crossing: where the straight line between them does.",
    "paper_plateau_exit": "Paper plateau exit: in the paper's words.",
    "authors_plateau_exit": "Authors plateau exit: what the same rule finds in the losses that they published.",
    "authors_before": "Authors before, after and crossing: what the same rules find in the scores that they published.",
}


def milestones_table(data: Collection) -> Table | None:
    """Milestones of pre-training: the last validation loss, the exit from the initial plateau by a defined rule beside
    the paper's words, and the checkpoints between which a model first reaches 95 % of the highest final score.
    """
    models, scores = losses_of(data.runs), data.curve
    if not models and scores is None:
        return None
    curves: dict[tuple[str, str], tuple[pd.Series, float]] = {}  # the mean over seeds, and the line that it is to reach
    for size, of_size in [] if scores is None else scores.groupby("size", sort=False):
        means, line = mean_curves(of_size)
        curves |= {(size, attention): (mean, line) for attention, mean in means.items()}
    names = sorted({*models, *curves}, key=lambda name: model_rank(*name))
    rows = [_milestones(name, models.get(name), *curves.get(name, (None, None))) for name in names]
    frame = pd.DataFrame(rows, columns=list(MILESTONES), dtype=object)
    # Readers see no numbers of the authors where there are none of this experiment, and no range of one seed.
    hidden = set() if models else {*LOSSES, *PRINTED_EXITS}
    hidden |= set() if curves else {*CROSSINGS, *PRINTED_CROSSINGS}
    hidden |= set(RANGE) if all(len(losses) == 1 for losses in models.values()) else set()
    readable = frame.drop(columns=list(hidden)).dropna(axis="columns", how="all")
    seeds = data.runs if models or scores is None else scores
    caption = [f"{SUBJECT}\n\n{captions.wording_of(data.settings).experiment}."]
    caption += [captions.pretraining_of(data.settings, seeds["pretrain_seed"].nunique())] if len(seeds) else []
    caption += [] if scores is None else [captions.finetuning_of(data.settings, scores)]
    caption += [rule for column, rule in RULES.items() if column in readable]
    note = " ".join(_absent(frame, models, curves, scores))
    return Table(frame, " ".join(caption), "tab:milestones", readable=readable, note=note)


def _milestones(name: tuple[str, str], losses: pd.DataFrame | None, curve: pd.Series | None, line: float | None) -> Row:
    """The row of a model: mean loss and median exit over pre-training seeds."""
    row: Row = dict(zip(("size", "attention"), name, strict=True))
    if losses is not None:
        row["validation_loss"] = decimal_of(spread(losses.iloc[:, -1]).mean, 3)
        exits = exits_of(losses)
        row |= {"plateau_exit": exits.median, "earliest_exit": exits.earliest, "latest_exit": exits.latest}
    if curve is not None:
        row["target_score"] = line
        first = first_crossing(curve.index.tolist(), curve.tolist(), line)
        if first is not None:
            row |= {"before": first.before, "after": first.after, "crossing": decimal_of(first.step, 0)}
    exits = published.PLATEAU_EXITS.get(name), published.RAW_PLATEAU_EXITS.get(name)
    row |= dict(zip(PRINTED_EXITS, exits, strict=True))
    return row | dict(zip(PRINTED_CROSSINGS, published.RAW_CROSSINGS.get(name, (None,) * 3), strict=True))


def _absent(frame: pd.DataFrame, models: dict, curves: dict, scores: pd.DataFrame | None) -> list[str]:
    """Sentences about milestones that no model has."""
    if not models:
        notes = ["No validation losses were given."]
    else:
        notes = ["No model leaves the plateau."] if frame["plateau_exit"].isna().all() else []
    if scores is None:
        return [*notes, "No scores over checkpoints were given."]
    if not curves:
        return [*notes, "None of the scores over checkpoints counts for the GLUE score."]
    scored = scores[["size", "attention"]].drop_duplicates().itertuples(index=False, name=None)
    partial = ", ".join(captions.model_name(*name) for name in scored if name not in curves)
    return [*notes, f"No checkpoint of {partial} was scored on every column."] if partial else notes


EXPLANATION = (
    "Left: how many of the runs, one per pre-training seed, leave the plateau; one that stays is censored at its last "
    "step. Median, earliest and latest exit in steps; a dash is later than the last step."
)
UNDECIDED = (
    f"within 25 % where the 90 % interval, not corrected for their number, lies between {1 / EQUIVALENT:.2f} and "
    f"{EQUIVALENT:.2f}, else undecided, as is every comparison of fewer than {FEWEST_EXITS} seeds."
)
COMPARED = (
    " Ratio: the median exit by that of the reference, with a 95 % bootstrap interval over seeds. p: log-rank test; "
    "Holm: corrected for the comparisons of a size. Verdict: shorter or longer where p (Holm) and the interval agree, "
    f"{UNDECIDED}"
)
JUDGED = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")


def exits_table(data: Collection) -> Table | None:
    """Exits from the initial plateau over pre-training seeds, and the operators that are compared by them."""
    if data.runs.empty or not data.pretrain_seeds:
        return None
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.settings.contrasts)
    rows: list[Row] = []  # one per contrast of a model; one without numbers of a model that is compared with none
    for (size, name), losses in models.items():
        described = {"size": size, "attention": name, **_numbers(exits_of(losses))}
        judged = [
            {
                "reference": reference,
                "ratio": _finite(result.ratio),
                "ratio_low": _finite(result.low),
                "ratio_high": _finite(result.high),
                "p_value": decimal_of(result.p_value, 4),
                "holm_p_value": decimal_of(result.holm_p_value, 4),
                "verdict": result.verdict,
            }
            for (*model, reference), result in contrasts.items()
            if model == [size, name]
        ]
        rows += [described | row for row in judged or [dict.fromkeys(JUDGED)]]
    is_tested = any(result.seeds >= FEWEST_EXITS for result in contrasts.values())
    named = "that were named beforehand" if data.settings.contrasts else "with the first of each size"
    subject = f"Exits from the initial plateau{f', and the comparisons of operators {named}' if is_tested else ''}."
    trained = captions.pretraining_of(data.settings, len(data.pretrain_seeds))
    caption = f"{subject} {trained}\n\n{EXPLANATION}{COMPARED if is_tested else ''}"
    shown = frame_of(rows).drop(columns=list(JUDGED)).drop_duplicates()
    return table_of(rows, caption, "tab:exits", readable=None if is_tested else shown)


def _numbers(exits: Exits) -> Row:
    numbers = {"runs": len(exits.steps), "left": int(exits.left.sum()), "median_exit": exits.median}
    return numbers | {"earliest_exit": exits.earliest, "latest_exit": exits.latest}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def losses_table(data: Collection) -> Table | None:
    """Differences of the last validation loss, paired by pre-training seed, from three seeds on."""
    contrasts = loss_contrasts(losses_of(data.runs), data.settings.contrasts) if data.pretrain_seeds else {}
    if not contrasts:
        return None
    rows = [
        {
            **dict(zip(("size", "model", "reference"), contrast, strict=True)),
            "seeds": result.seeds,
            "difference": decimal_of(result.difference, 3),
            "low": decimal_of(result.interval.low, 3),
            "high": decimal_of(result.interval.high, 3),
            "p": decimal_of(result.p, 4),
            "holm_p": decimal_of(result.holm_p, 4),
        }
        for contrast, result in contrasts.items()
    ]
    caption = (
        "Differences of the last validation loss: model less reference, nats per masked token. "
        f"{captions.pretraining_of(data.settings, len(data.pretrain_seeds))}\n\nPaired by pre-training seed: runs of a "
        "seed start from equal shared parameters, and see the same batches and masks. Low and high: Student’s 95 % "
        "interval of the mean. p: two-sided sign-flip test over all choices of signs, of which three seeds cannot have "
        "less than 0.25, five 0.0625, and six 0.03125; Holm: corrected for the comparisons of a size."
    )
    return table_of(rows, caption, "tab:losses")


POINTS = (
    "Exit: the median over pre-training seeds, with its range; never: later than the last step. The exit of a run is "
    "the first evaluation after the initial plateau, by the rule of the table of milestones."
)
ANSWERED = (
    "Ratio of the medians, the first by the second, with bootstrap intervals over seeds. p: log-rank test, with Holm's "
    "correction over the contrasts of a grid. Verdict: shorter or longer where p and the 95 % interval agree, "
    f"{UNDECIDED}"
)


def grid_exits_table(data: Collection) -> Table | None:
    """Exits from the initial plateau at each point of the sweep."""
    if not data.grids:
        return None
    rows, shown = [], []
    for grid, of_points in data.grids:
        for point, losses in zip(grid.points, of_points, strict=True):
            exits, place = exits_of(losses), place_of(grid, point)
            rows.append({"grid": grid.name, **_axes(data, point), **_numbers(exits)})
            model = {"grid": grid.name, "at": place, "attention": point["attention"]}
            shown.append(model | {"runs": len(exits.steps), "exit": exits.in_words})
    experiment = captions.wording_of(data.settings).experiment
    caption = f"Exits from the initial plateau at each point of the sweep. {experiment}.\n\n{POINTS}"
    return Table(frame_of(rows), caption, "tab:grid-exits", readable=frame_of(shown))


def contrasts_table(data: Collection) -> Table | None:
    """The exits of two values of an axis compared, at every point of the other axes; of three seeds or more."""
    rows, shown = [], []
    for grid, of_points in data.grids:
        cells = [(point, exits_of(losses)) for point, losses in zip(grid.points, of_points, strict=True)]
        compared = [
            (contrast, {axis: value for axis, value in point.items() if axis not in contrast.first}, first, second)
            for contrast in (grid.contrasts if len(grid.seeds) >= FEWEST else ())
            for point, first in cells
            if contrast.first.items() <= point.items()
            for other, second in cells
            if other == {**point, **contrast.second}
        ]
        results = compare_exits((first, second) for *_, first, second in compared)
        for (contrast, place, first, second), result in zip(compared, results, strict=True):
            verdict = {"expected": contrast.expected, "verdict": result.verdict}
            medians = (float(median_exit(exits.steps, exits.left)) for exits in (first, second))
            row = dict(zip(("first_median_exit", "second_median_exit"), medians, strict=True))
            rows.append({"contrast": contrast.name, **_axes(data, place), **row, **vars(result), **verdict})
            sides = (" ".join(in_words(*value) for value in side.items()) for side in (contrast.first, contrast.second))
            at = [in_words(axis, value) for axis, value in place.items() if len(grid.axes[axis]) > 1]
            shown.append(
                {
                    "grid": grid.name,
                    "contrast": " / ".join(sides),
                    "at": ", ".join(at) or None,
                    "exit": first.in_words,
                    "of the second": second.in_words,
                    "ratio of medians, 95 %": f"{_ratio(result.ratio)} [{_ratio(result.low)}, {_ratio(result.high)}]",
                    "90 %": f"[{_ratio(result.narrow_low)}, {_ratio(result.narrow_high)}]",
                    "Holm p": p_in_words(result.holm_p_value),
                    **verdict,
                }
            )
    if not rows:
        return None
    experiment = captions.wording_of(data.settings).experiment
    caption = f"The exits of two values of an axis compared. {experiment}.\n\n{POINTS} {ANSWERED}"
    return Table(frame_of(rows), caption, "tab:grid-contrasts", readable=frame_of(shown))


def place_of(grid: Grid, point: Row) -> str:
    """Where a point lies beside its operator, in words, by the axes that have several values."""
    axes = [axis for axis, values in grid.axes.items() if len(values) > 1 and axis != "attention"]
    return ", ".join(in_words(axis, point[axis]) for axis in axes or [next(iter(grid.axes))])


def in_words(axis: str, value: Any) -> str:
    """A value of an axis; a text, a host, a size and an operator need no name of their axis."""
    return f"{axis.replace('_', ' ')} {value}" if axis in SWEPT and axis != "text" else str(value)


def _axes(data: Collection, point: Row) -> Row:
    """The values of a point by every axis that a grid has; None where this one has it not."""
    return {axis: point.get(axis) for axis in dict.fromkeys(axis for grid, _ in data.grids for axis in grid.axes)}


def _ratio(ratio: float) -> str:
    return "–" if math.isnan(ratio) else "∞" if math.isinf(ratio) else f"{ratio:.2f}"


def hosts_table(data: Collection) -> Table | None:
    """Validation loss at the last step, and what else the host is measured by, per host, size and operator."""
    if data.hosts is None:
        return None
    runs = data.hosts
    hosts = [HOSTS[host] for host in dict.fromkeys(runs["host"])]
    names = list(dict.fromkeys(name for host in hosts for name in (host.measure, *host.further_measures)))
    several = runs["pretrain_seed"].nunique() > 1
    rows = []
    for (host, size, attention), seeds in runs.groupby(["host", "size", "attention"], sort=False):
        loss = spread(seeds["validation_loss"])
        measured = [{HOSTS[host].measure: row.measure, **row.further_measures} for row in seeds.itertuples()]
        row = {"host": host, "size": size, "attention": attention}
        row |= {name: int(seeds[name].iloc[0]) for name in ("parameters", "steps")}
        row |= {"pretrain_seeds": loss.count} if several else {}
        row |= {"validation_loss": decimal_of(loss.mean, 3)}
        row |= {"std": decimal_of(loss.deviation, 3)} if several else {}
        rows.append(row | {name: _mean([each[name] for each in measured if name in each]) for name in names})
    signatures = {name: text for row in runs["signatures"] for name, text in row.items()}
    cited = f" By sacrebleu: {'; '.join(f'{name} {text}' for name, text in signatures.items())}." if signatures else ""
    return table_of(
        rows,
        f"Operators in other hosts than the encoder ({captions.seeds_of(runs['pretrain_seed'].nunique())})."
        f"\n\n{captions.wording_of(data.settings).experiment}. Validation loss: nats per target at the last step"
        f"{'; std is the sample standard deviation over pre-training seeds, all else a mean' if several else ''}. "
        f"{captions.tasks_of_hosts(data.settings, runs['host'])}{cited}",
        "tab:hosts",
    )


def _mean(values: list[float]) -> Rounded | None:
    """None for a measure of other hosts."""
    return decimal_of(spread(values).mean, 3) if values else None
