"""Figure 3: GLUE score over pre-training checkpoints, the 95 % line, and where each model first reaches it."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symbert.report import captions, order
from symbert.report.panels import RIGHT, Entry, draw_key, figure_of, names_of, prepare, short
from symbert.report.scores import majority_of
from symbert.report.statistics import Crossing, first_crossing, glue_scores, target_line
from symbert.report.style import DASHED, DOTTED, GREY, MARK, Look, looks_of
from symbert.settings import ReportSettings

TARGET_LINE = {"color": "#B22222", "linestyle": DASHED, "linewidth": 1.0}
MAJORITY_LINE = {"color": GREY, "linestyle": DOTTED, "linewidth": 1.2}

Curves = dict[tuple[str, int], pd.Series]  # by operator and pre-training seed: score (percent) by step


def checkpoints_figure(scores: pd.DataFrame, settings: ReportSettings) -> Figure:
    """One panel per size, from a table of `symbert.report.scores`."""
    majority_of(scores)
    sizes = order.sizes(scores["size"])
    looks = looks_of(scores["attention"])
    curves = {size: curves_of(scores[scores["size"] == size]) for size in sizes}
    kind = "stand-in task score" if captions.has_stand_ins(settings) else "GLUE score"
    figure, panels = figure_of(
        f"{kind[0].upper()}{kind[1:]} over checkpoints",
        _note(scores, settings),
        [len(curves[size]) + 2 for size in sizes],
    )
    for size, (panel, key) in zip(sizes, panels, strict=True):
        prepare(panel, f"{kind} (%)")
        panel.set_title(f"BERT-{size}", loc="left")
        baseline = scores[scores["size"] == size].assign(score=lambda rows: rows["majority"])
        names, heading = names_of(list(curves[size]))
        entries = _draw_curves(panel, curves[size], looks, names)
        entries += _draw_majority(panel, glue_scores(baseline).iloc[0])
        draw_key(key, [("95 % reached at", 0.79), ("final score", RIGHT)], entries, heading)
    return figure


def curves_of(scores: pd.DataFrame) -> Curves:
    """The curves of one size, each the mean over fine-tuning seeds."""
    means = glue_scores(scores).groupby(["attention", "pretrain_seed", "step"], sort=False).mean()
    return {model: curve.droplevel([0, 1]) for model, curve in means.groupby(level=[0, 1], sort=False)}


def _note(scores: pd.DataFrame, settings: ReportSettings) -> str:
    partial = captions.partial_tasks(scores)
    return (
        f"{captions.experiment_of(settings)}; pre-trained on {captions.corpus_of(settings)}; "
        f"scored on {captions.tasks_of(settings)}" + (f" (partial: {partial})" if partial else "")
    )


def _draw_curves(panel: Axes, curves: Curves, looks: dict[str, Look], names: list[str]) -> list[Entry]:
    """Draw the line and the curves; a large marker is where a curve, straight between checkpoints, first meets it."""
    line = target_line(curve.iloc[-1] for curve in curves.values())
    panel.axhline(line, zorder=1.5, **TARGET_LINE)
    entries = []
    for name, ((attention, _), curve) in zip(names, curves.items(), strict=True):
        look, crossing = looks[attention], first_crossing(list(curve.index), list(curve), line)
        panel.plot(curve.index, curve, **look.line())
        if crossing:
            height = curve.iloc[0] if crossing.before is None else line
            panel.plot([crossing.step], [height], zorder=4, **look.line(**MARK))
        entries.append(Entry(look.line(), name, [bracket(crossing), f"{curve.iloc[-1]:.2f}"]))
    return [*entries, Entry(TARGET_LINE, "95 % of the highest final score", ["", f"{line:.2f}"])]


def _draw_majority(panel: Axes, majority: float) -> list[Entry]:
    panel.axhline(majority, zorder=1.5, **MAJORITY_LINE)
    return [Entry(MAJORITY_LINE, "majority baseline", ["", f"{majority:.2f}"])]


def bracket(crossing: Crossing | None) -> str:
    """A first crossing in words: 'about 32.8k (30k–35k)', from the checkpoints around it."""
    if crossing is None:
        return "not reached"
    if crossing.before is None:
        return f"≤ {short(crossing.after)}"
    return f"{short(crossing.step)} ({short(crossing.before)}–{short(crossing.after)})"
