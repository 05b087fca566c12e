"""How long the runs of each model stay on the plateau, with the statistics of survival."""

import math
from collections.abc import Iterator
from typing import Any

from symbert.report import captions
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.exits import ExitContrast, exit_contrasts
from symbert.report.formats import Table, decimal_of, frame_of, table_of
from symbert.report.runs import losses_of, survival_of
from symbert.report.survival import EQUIVALENT, FEWEST, Exits

EXPLANATION = (
    "Left: how many of the runs, one per pre-training seed, leave the plateau; one that stays is censored at its last "
    "step. Median, earliest and latest exit in steps; a dash is later than the last step."
)
COMPARED = (
    " Ratio: the median exit by that of the reference, with a 95 % bootstrap interval over seeds. p: log-rank test; "
    "Holm: corrected for the comparisons of a size. Verdict: shorter or longer where p (Holm) and the interval agree, "
    "within 25 % where the 90 % interval, not corrected for their number, lies between "
    f"{1 / EQUIVALENT:.2f} and {EQUIVALENT:.2f}, else undecided, as is every comparison of fewer than {FEWEST} seeds."
)

JUDGED = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")


@exhibit(
    chapter="Pre-training", place=5, heading="Exits from the plateau", reads=("settings", "runs", "pretrain_seeds")
)
def exits_table(data: Data) -> Table:
    """Exits from the initial plateau over pre-training seeds, and the operators that are compared by them."""
    models = losses_of(data.runs)
    contrasts = exit_contrasts(models, data.settings.contrasts)
    rows = [row for (size, name), losses in models.items() for row in _rows(size, name, survival_of(losses), contrasts)]
    is_tested = any(one.result.seeds >= FEWEST for one in contrasts)
    named = "that were named beforehand" if data.settings.contrasts else "with the first of each size"
    subject = f"Exits from the initial plateau{f', and the comparisons of operators {named}' if is_tested else ''}."
    trained = captions.pretraining_of(data.settings, len(data.pretrain_seeds))
    caption = f"{subject} {trained}\n\n{EXPLANATION}{COMPARED if is_tested else ''}"
    shown = frame_of([{key: value for key, value in row.items() if key not in JUDGED} for row in rows])
    return table_of(rows, caption, "tab:exits", readable=None if is_tested else shown.drop_duplicates())


def _rows(size: str, name: str, exits: Exits, contrasts: list[ExitContrast]) -> Iterator[dict[str, Any]]:
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
            "reference": one.reference,
            "ratio": _finite(one.result.ratio),
            "ratio_low": _finite(one.result.low),
            "ratio_high": _finite(one.result.high),
            "p_value": decimal_of(one.result.p_value, 4),
            "holm_p_value": decimal_of(one.corrected, 4),
            "verdict": one.verdict,
        }
        for one in contrasts
        if (one.size, one.model) == (size, name)
    ]
    yield from (described | row for row in judged or [dict.fromkeys(JUDGED)])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
