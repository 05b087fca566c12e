"""How long the runs of each model stay on the plateau, with the statistics of survival."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from symbert.report import captions
from symbert.report.comparisons import holm
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.order import attentions
from symbert.report.runs import exits_of, losses_of
from symbert.report.survival import EQUIVALENT, Exits, compare, median_exit

EXPLANATION = (
    "Left: how many of the runs, one per pre-training seed, leave the plateau; one that stays is censored at its last "
    "step. Median, earliest and latest exit in steps; a dash is later than the last step. Ratio: the median exit by "
    "that of the reference, with a 95 % bootstrap interval over seeds. p: log-rank test; Holm: corrected for the "
    "comparisons of a size. Verdict: shorter or longer where p (Holm) and the interval agree, equal where the 90 % "
    f"interval lies between {1 / EQUIVALENT:.2f} and {EQUIVALENT:.2f}, else undecided."
)

JUDGED = ("reference", "ratio", "ratio_low", "ratio_high", "p_value", "holm_p_value", "verdict")


@exhibit(
    chapter="Pre-training", place=5, heading="Exits from the plateau", reads=("settings", "runs", "pretrain_seeds")
)
def exits_table(data: Data) -> Table:
    """Exits from the initial plateau over pre-training seeds, and the operators that are compared by them."""
    models = losses_of(data.runs)
    rows = []
    for size in dict.fromkeys(size for size, _ in models):
        names = attentions(name for of, name in models if of == size)
        contrasts = data.settings.contrasts
        pairs = [(name, names[0]) for name in names[1:]] if contrasts is None else contrasts
        rows += [{"size": size} | row for row in _rows({name: _exits(models[size, name]) for name in names}, pairs)]
    caption = (
        "Exits from the initial plateau, and the comparisons of operators that were named beforehand. "
        f"{captions.pretraining_of(data.settings, len(data.pretrain_seeds))}\n\n{EXPLANATION}"
    )
    return table_of(rows, caption, "tab:exits")


def _rows(exits: dict[str, Exits], pairs: Sequence[Sequence[str]]) -> Iterator[dict[str, Any]]:
    """A row per comparison, by its first operator; one without numbers of an operator that is the first of none."""
    compared = [(first, second, compare(exits[first], exits[second])) for first, second in pairs]
    corrected = holm([one.p_value for *_, one in compared]).tolist()
    for name, steps in exits.items():
        described = {"attention": name} | _described(steps)
        judged = [
            {
                "reference": second,
                "ratio": _finite(one.ratio),
                "ratio_low": _finite(one.low),
                "ratio_high": _finite(one.high),
                "p_value": decimal_of(one.p_value, 4),
                "holm_p_value": decimal_of(p_value, 4),
                "verdict": one.verdict(p_value),
            }
            for (first, second, one), p_value in zip(compared, corrected, strict=True)
            if first == name
        ]
        yield from (described | row for row in judged or [dict.fromkeys(JUDGED)])


def _exits(losses: pd.DataFrame) -> Exits:
    return Exits.of(exits_of(losses), [losses.columns[-1]] * len(losses))


def _described(exits: Exits) -> dict[str, Any]:
    left, median = exits.steps[exits.left], float(median_exit(exits.steps, exits.left))
    return {
        "runs": len(exits.steps),
        "left": len(left),
        "median_exit": int(median) if math.isfinite(median) else None,
        "earliest_exit": int(left.min()) if len(left) else None,
        "latest_exit": int(left.max()) if exits.left.all() else None,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
