"""Figure 3: GLUE score over pre-training checkpoints, the 95 % line, and where each operator first reaches it."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symbert.report import captions, order
from symbert.report.panels import (
    BAND_ENTRY,
    RIGHT,
    Entry,
    draw_key,
    draw_seeds,
    figure_of,
    name_of,
    prepare,
    seeds_heading,
    short,
)
from symbert.report.scores import majority_of
from symbert.report.statistics import Crossing, first_crossing, glue_scores, target_line
from symbert.report.style import DASHED, DOTTED, GREY, MARK, Look, looks_of
from symbert.settings import ReportSettings

TARGET_LINE = {"color": "#B22222", "linestyle": DASHED, "linewidth": 1.0}
MAJORITY_LINE = {"color": GREY, "linestyle": DOTTED, "linewidth": 1.2}
COLUMNS = [("95 % reached at", 0.79), ("final score", RIGHT)]

Curves = dict[str, pd.DataFrame]  # by operator: score (percent), a row per pre-training seed, a column per step


def checkpoints_figure(scores: pd.DataFrame, settings: ReportSettings) -> Figure:
    """One panel per size, from a table of `symbert.report.scores`."""
    majority_of(scores)
    sizes = order.sizes(scores["size"])
    looks = looks_of(scores["attention"])
    curves = {size: curves_of(scores[scores["size"] == size]) for size in sizes}
    kind = "stand-in task score" if captions.has_stand_ins(settings) else "GLUE score"
    figure, panels = figure_of(
        f"{kind[0].upper()}{kind[1:]} over checkpoints",
        _note(scores, settings, any(map(_has_band, curves.values()))),
        [len(curves[size]) + 2 + _has_band(curves[size]) for size in sizes],
    )
    for size, (panel, key) in zip(sizes, panels, strict=True):
        prepare(panel, f"{kind} (%)")
        panel.set_title(f"BERT-{size}", loc="left")
        baseline = scores[scores["size"] == size].assign(score=lambda rows: rows["majority"])
        entries = _draw_curves(panel, curves[size], looks)
        entries += _draw_majority(panel, glue_scores(baseline).iloc[0])
        draw_key(key, COLUMNS, entries, seeds_heading([len(seeds) for seeds in curves[size].values()]))
    return figure


def curves_of(scores: pd.DataFrame) -> Curves:
    """The curves of one size, each seed's the mean over its fine-tuning seeds."""
    means = glue_scores(scores).groupby(["attention", "pretrain_seed", "step"], sort=False).mean()
    curves = means.groupby(level="attention", sort=False)
    return {attention: curve.droplevel("attention").unstack("step") for attention, curve in curves}


def _has_band(curves: Curves) -> bool:
    return any(len(seeds) > 1 for seeds in curves.values())


def _note(scores: pd.DataFrame, settings: ReportSettings, several: bool) -> str:
    partial = captions.partial_tasks(scores)
    return (
        f"{captions.experiment_of(settings)}; pre-trained on {captions.corpus_of(settings)}; "
        f"scored on {captions.tasks_of(settings)}{f' (partial: {partial})' if partial else ''}"
        f"{'' if several else f'; {captions.seeds_of(1)}'}"
    )


def _draw_curves(panel: Axes, curves: Curves, looks: dict[str, Look]) -> list[Entry]:
    """Draw the line and the curves; a large marker is where a curve, straight between checkpoints, first meets it."""
    means = {attention: seeds.mean() for attention, seeds in curves.items()}
    line = target_line(mean.iloc[-1] for mean in means.values())
    panel.axhline(line, zorder=1.5, **TARGET_LINE)
    entries = []
    for attention, mean in means.items():
        look, crossing = looks[attention], first_crossing(list(mean.index), list(mean), line)
        draw_seeds(panel, list(mean.index), curves[attention].to_numpy(), look)
        if crossing:
            height = mean.iloc[0] if crossing.before is None else line
            panel.plot([crossing.step], [height], zorder=4, **look.line(**MARK))
        entries.append(Entry(look.line(), name_of(attention), [bracket(crossing), f"{mean.iloc[-1]:.2f}"]))
    entries += [BAND_ENTRY] * _has_band(curves)
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
