"""The exits at each point of a sweep, and the contrasts that were named before the runs."""

import math
from typing import Any

from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.formats import Table, frame_of
from symbert.report.grids import answers_of, has_answers, in_words
from symbert.report.statistics import EQUIVALENT, FEWEST_EXITS, median_exit, p_in_words

EXITS = (
    "Exit: the median over pre-training seeds, with its range; never: later than the last step. The exit of a run is "
    "the first evaluation after the initial plateau, by the rule of the table of milestones."
)
JUDGED = (
    "Ratio of the medians, the first by the second, with bootstrap intervals over seeds. p: log-rank test, with Holm's "
    "correction over the contrasts of a grid. Verdict: shorter or longer where p and the 95 % interval agree, within "
    f"25 % where the 90 % interval, not corrected for their number, lies between {1 / EQUIVALENT:.2f} and "
    f"{EQUIVALENT:.2f}, else undecided, as is every comparison of fewer than {FEWEST_EXITS} seeds."
)


def exits_table(data: Collection) -> Table | None:
    """Exits from the initial plateau at each point of the sweep."""
    if not data.grids:
        return None
    rows, shown = [], []
    for runs in data.grids:
        for cell in runs.cells:
            exits = cell.exits
            numbers = {"runs": len(exits.steps), "left": int(exits.left.sum()), "median_exit": exits.median}
            numbers |= {"earliest_exit": exits.earliest, "latest_exit": exits.latest}
            rows.append({"grid": runs.grid.name, **_axes(data, cell.point), **numbers})
            at = {"at": runs.place(cell.point), "attention": cell.point["attention"]}
            shown.append({"grid": runs.grid.name, **at, "runs": len(exits.steps), "exit": cell.exits.in_words})
    wording = captions.wording_of(data.settings)
    caption = f"Exits from the initial plateau at each point of the sweep. {wording.experiment}.\n\n{EXITS}"
    return Table(frame_of(rows), caption, "tab:grid-exits", readable=frame_of(shown))


def contrasts_table(data: Collection) -> Table | None:
    """The exits of two values of an axis compared, at every point of the other axes."""
    if not any(has_answers(runs.grid) for runs in data.grids):
        return None
    rows, shown = [], []
    for runs in data.grids:
        for answer in answers_of(runs) if has_answers(runs.grid) else ():
            contrast, result = answer.contrast, answer.result
            sides = (answer.first.exits, answer.second.exits)
            medians = [float(median_exit(exits.steps, exits.left)) for exits in sides]
            verdict = {"expected": contrast.expected, "verdict": result.verdict}
            rows.append(
                {
                    "contrast": contrast.name,
                    **_axes(data, answer.place),
                    "first_median_exit": medians[0],
                    "second_median_exit": medians[1],
                    **vars(result),
                    **verdict,
                }
            )
            sides = (" ".join(in_words(*value) for value in side.items()) for side in (contrast.first, contrast.second))
            at = [in_words(axis, value) for axis, value in answer.place.items() if axis in runs.varied]
            shown.append(
                {
                    "grid": runs.grid.name,
                    "contrast": " / ".join(sides),
                    "at": ", ".join(at) or None,
                    "exit": answer.first.exits.in_words,
                    "of the second": answer.second.exits.in_words,
                    "ratio of medians, 95 %": f"{_ratio(result.ratio)} [{_ratio(result.low)}, {_ratio(result.high)}]",
                    "90 %": f"[{_ratio(result.narrow_low)}, {_ratio(result.narrow_high)}]",
                    "Holm p": p_in_words(result.holm_p_value),
                    "expected": contrast.expected,
                    "verdict": result.verdict,
                }
            )
    wording = captions.wording_of(data.settings)
    caption = f"The exits of two values of an axis compared. {wording.experiment}.\n\n{EXITS} {JUDGED}"
    return Table(frame_of(rows), caption, "tab:grid-contrasts", readable=frame_of(shown))


def _axes(data: Collection, point: dict[str, Any]) -> dict[str, Any]:
    """The values of a point by every axis that a grid has; None where this one has it not."""
    axes = dict.fromkeys(axis for runs in data.grids for axis in runs.grid.axes)
    return {axis: point.get(axis) for axis in axes}


def _ratio(ratio: float) -> str:
    return "–" if math.isnan(ratio) else "∞" if math.isinf(ratio) else f"{ratio:.2f}"
