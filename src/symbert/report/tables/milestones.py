"""How early each model learns: the end of the plateau in its loss, and where its GLUE score first nears the best."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from symbert.report import captions, published
from symbert.report.collect import Collection
from symbert.report.formats import Table, decimal_of, frame_of, table_of
from symbert.report.order import model_rank
from symbert.report.runs import losses_of
from symbert.report.statistics import (
    EQUIVALENT,
    FEWEST_EXITS,
    PLATEAU_HEIGHT,
    TARGET,
    ExitComparison,
    Exits,
    exit_contrasts,
    exits_of,
    first_crossing,
    mean_curves,
    spread,
)

RANGE = ("earliest_exit", "latest_exit")
LOSSES = ("validation_loss", "plateau_exit", *RANGE)
CROSSINGS = ("target_score", "before", "after", "crossing")
PRINTED_EXITS = ("paper_plateau_exit", "authors_plateau_exit")
PRINTED_CROSSINGS = ("authors_before", "authors_after", "authors_crossing")
SUBJECT = (
    "Milestones of learning: the last validation loss, the exit from the initial plateau, and the checkpoints between "
    f"which a model first reaches {100 * TARGET:.0f} % of the highest final score."
)
COLUMNS = ("size", "attention", *LOSSES, *CROSSINGS, *PRINTED_EXITS, *PRINTED_CROSSINGS)
NO_LOSSES, NO_SCORES = "No validation losses were given.", "No scores over checkpoints were given."
NO_EXITS = "No model leaves the plateau."
NOT_COUNTED = "None of the scores over checkpoints counts for the GLUE score."
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


def milestones_table(data: Collection) -> Table:
    """Milestones of pre-training: the last validation loss, the exit from the initial plateau by a defined rule beside
    the paper's words, and the checkpoints between which a model first reaches 95 % of the highest final score.
    """
    models = losses_of(data.runs)
    curves: dict[tuple[str, str], tuple[pd.Series, float]] = {}  # the mean over seeds, and the line that it is to reach
    for size, scores in [] if data.curve is None else data.curve.groupby("size", sort=False):
        means, line = mean_curves(scores)
        curves |= {(size, attention): (mean, line) for attention, mean in means.items()}
    names = sorted({*models, *curves}, key=lambda name: model_rank(*name))
    rows = [_row(name, models.get(name), *curves.get(name, (None, None))) for name in names]
    frame = pd.DataFrame(rows, columns=list(COLUMNS), dtype=object)
    # Readers see no numbers of the authors where there are none of this experiment, and no range of one seed.
    hidden = set() if models else {*LOSSES, *PRINTED_EXITS}
    hidden |= set() if curves else {*CROSSINGS, *PRINTED_CROSSINGS}
    hidden |= set(RANGE) if all(len(losses) == 1 for losses in models.values()) else set()
    readable = frame.drop(columns=list(hidden)).dropna(axis="columns", how="all")
    absent = [] if models else [NO_LOSSES]
    absent += [NO_EXITS] if models and frame["plateau_exit"].isna().all() else []
    absent += [] if curves else [NO_SCORES if data.curve is None else NOT_COUNTED]
    scored = [] if data.curve is None else data.curve[["size", "attention"]].drop_duplicates().to_records(index=False)
    partial = [captions.model_name(*name) for name in scored if tuple(name) not in curves]
    absent += [f"No checkpoint of {', '.join(partial)} was scored on every column."] if curves and partial else []
    seeds = set(data.runs["pretrain_seed"]) or set([] if data.curve is None else data.curve["pretrain_seed"])
    notes = [f"{SUBJECT}\n\n{captions.wording_of(data.settings).experiment}."]
    notes += [captions.pretraining_of(data.settings, len(seeds))] if seeds else []
    notes += [] if data.curve is None else [captions.finetuning_of(data.settings, data.curve)]
    notes += [rule for column, rule in RULES.items() if column in readable]
    return Table(frame, " ".join(notes), "tab:milestones", readable=readable, note=" ".join(absent))


def _row(
    name: tuple[str, str], losses: pd.DataFrame | None, curve: pd.Series | None, line: float | None
) -> dict[str, Any]:
    """The row of a model: mean loss and median exit over pre-training seeds."""
    row = dict(zip(("size", "attention"), name, strict=True))
    if losses is not None:
        row["validation_loss"] = decimal_of(spread(losses.iloc[:, -1]).mean, 3)
        exits = exits_of(losses)
        row |= {"plateau_exit": exits.median, "earliest_exit": exits.earliest, "latest_exit": exits.latest}
    if curve is not None:
        row["target_score"] = line
        steps, scores = curve.index.tolist(), curve.tolist()
        if (first := first_crossing(steps, scores, line)) is not None:
            row |= {"before": first.before, "after": first.after, "crossing": decimal_of(first.step, 0)}
    exits = published.PLATEAU_EXITS.get(name), published.RAW_PLATEAU_EXITS.get(name)
    row |= dict(zip(PRINTED_EXITS, exits, strict=True))
    return row | dict(zip(PRINTED_CROSSINGS, published.RAW_CROSSINGS.get(name, (None,) * 3), strict=True))


EXPLANATION = (
    "Left: how many of the runs, one per pre-training seed, leave the plateau; one that stays is censored at its last "
    "step. Median, earliest and latest exit in steps; a dash is later than the last step."
)
COMPARED = (
    " Ratio: the median exit by that of the reference, with a 95 % bootstrap interval over seeds. p: log-rank test; "
    "Holm: corrected for the comparisons of a size. Verdict: shorter or longer where p (Holm) and the interval agree, "
    "within 25 % where the 90 % interval, not corrected for their number, lies between "
    f"{1 / EQUIVALENT:.2f} and {EQUIVALENT:.2f}, else undecided, as is every comparison of fewer than {FEWEST_EXITS} "
    "seeds."
)

JUDGED = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")


def exits_table(data: Collection) -> Table | None:
    """Exits from the initial plateau over pre-training seeds, and the operators that are compared by them."""
    if data.runs.empty or not data.pretrain_seeds:
        return None
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.settings.contrasts)
    rows = [row for (size, name), losses in models.items() for row in _rows(size, name, exits_of(losses), contrasts)]
    is_tested = any(result.seeds >= FEWEST_EXITS for result in contrasts.values())
    named = "that were named beforehand" if data.settings.contrasts else "with the first of each size"
    subject = f"Exits from the initial plateau{f', and the comparisons of operators {named}' if is_tested else ''}."
    trained = captions.pretraining_of(data.settings, len(data.pretrain_seeds))
    caption = f"{subject} {trained}\n\n{EXPLANATION}{COMPARED if is_tested else ''}"
    shown = frame_of([{key: value for key, value in row.items() if key not in JUDGED} for row in rows])
    return table_of(rows, caption, "tab:exits", readable=None if is_tested else shown.drop_duplicates())


def _rows(
    size: str, name: str, exits: Exits, contrasts: dict[tuple[str, str, str], ExitComparison]
) -> Iterator[dict[str, Any]]:
    """A row per contrast of a model; one without numbers of a model that is compared with none."""
    described = {
        "size": size,
        "attention": name,
        "runs": len(exits.steps),
        "left": int(exits.left.sum()),
        "median_exit": exits.median,
        "earliest_exit": exits.earliest,
        "latest_exit": exits.latest,
    }
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
    yield from (described | row for row in judged or [dict.fromkeys(JUDGED)])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
