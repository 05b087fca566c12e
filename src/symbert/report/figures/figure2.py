"""Figure 2: validation loss over pre-training steps, and each operator's exit from the initial plateau."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from symbert.configuration import ReportSettings
from symbert.report import captions, published, style
from symbert.report.collect import Collection
from symbert.report.runs import losses_of, size_of
from symbert.report.statistics import FEWEST, Exits, exits_of
from symbert.report.style import GREY, MARK, PANEL, Entry, Look, Plot, looks_of

MARKERS = 9  # along a curve
ROW, SURVIVAL = 0.17, 0.9  # inches: of each operator in the panel of exits, which is above the largest marker; a panel
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}
PRINTED_ENTRY = Entry({"color": GREY, "marker": "o", **HOLLOW}, "hollow: the authors' runs")
RULE = (
    "The exit is the first evaluation after the last one on the plateau, by the rule of the table of milestones, which "
    "works on the logarithm of the step as the axis does."
)
OF_SEVERAL = "Large markers are medians over seeds, ticks single seeds; a + is a run that is on the plateau at its end."


def loss_figures(data: Collection) -> dict[str, Plot]:
    """The figure of each size: validation loss, and beneath it where each operator leaves the initial plateau."""
    runs = data.runs.groupby("size", sort=False)
    return {size: loss_figure(of_size, data.settings) for size, of_size in runs}


def loss_figure(runs: pd.DataFrame, settings: ReportSettings) -> Plot:
    """The figure of the runs of one size.

    The authors' losses are hollow markers where they may stand beside these. From three pre-training seeds there is a
    panel with the share of runs that are still on the plateau.
    """
    size = size_of(runs)
    losses = {attention: seeds for (_, attention), seeds in losses_of(runs).items()}
    looks, counts = looks_of(losses), [*map(len, losses.values())]
    wording = captions.wording_of(settings)
    beside = wording.other_training is None
    printed = {name: published.LOSSES[size, name] for name in losses if beside and (size, name) in published.LOSSES}
    entries = [
        Entry(looks[name].line(), f"{style.name_of(name)}: {exit_of(exits_of(seeds))}; {seeds.iloc[:, -1].mean():.3f}")
        for name, seeds in losses.items()
    ]
    entries += [*style.band_entries(counts), *[PRINTED_ENTRY] * bool(printed)]
    heights = [PANEL, ROW * (len(losses) + 0.5), *[SURVIVAL] * (max(counts) >= FEWEST)]
    title = "median exit; final loss" if max(counts) > 1 else "exit; final loss"
    figure, (curves, exits, *shares) = style.figure_of(heights, entries, title)
    _draw_curves(curves, losses, printed, looks)
    _draw_exits(exits, curves, losses, looks)
    for panel in shares:
        for name, seeds in losses.items():
            style.draw_survival(panel, exits_of(seeds), seeds.columns[0], seeds.columns[-1], looks[name])
        panel.set_ylabel("on the plateau")
    steps = [step for seeds in losses.values() for step in seeds.columns]
    for panel in (curves, exits, *shares):
        style.set_log_steps(panel, min(steps), max(steps))
        panel.tick_params(labelbottom=False)
        panel.set_xlabel("")
    panel.tick_params(labelbottom=True)
    panel.set_xlabel("pre-training step")
    shown = f"BERT-{size}, on {wording.corpus}; {captions.seeds_of(max(counts))}."
    return Plot(figure, f"{shown}\n\n{wording.experiment}. {RULE}{f' {OF_SEVERAL}' if max(counts) > 1 else ''}")


def _draw_curves(
    panel: Axes, losses: dict[str, pd.DataFrame], printed: dict[str, tuple[float, ...]], looks: dict[str, Look]
) -> None:
    """Draw losses, and those that the authors `printed`; no small markers where the authors' hollow ones are."""
    style.prepare(panel, "validation loss (nats per token)")
    for position, (name, seeds) in enumerate(losses.items()):
        steps = seeds.columns.tolist()
        marks = [] if name in printed else _marks(steps, position / len(losses))
        style.draw_seeds(panel, steps, seeds.to_numpy(), looks[name], markevery=marks)
    for name, values in printed.items():
        look = looks[name]
        panel.plot(published.LOSS_STEPS, values, zorder=3, **look.line(markeredgecolor=look.color) | HOLLOW)


def exit_of(exits: Exits) -> str:
    """Where seeds leave the plateau, in words: '1,240', or median and range '1,240 (1,100–1,350)'; a dash for never."""
    if exits.earliest is None:
        return "–"
    if len(exits.steps) == 1:
        return f"{exits.median:,}"
    median, first, last = (step and style.short(step) for step in (exits.median, exits.earliest, exits.latest))
    return f"{median or '–'} ({first}–{last or 'never'})"


def _marks(steps: Sequence[int], offset: float) -> list[int]:
    """Evaluations that get a marker: evenly along the axis, shifted from curve to curve so that none hides another."""
    position = np.log(np.array(steps) / steps[0])
    places = (np.arange(MARKERS) + offset) / MARKERS * position[-1]
    return sorted({int(np.abs(position - place).argmin()) for place in places})


def _draw_exits(panel: Axes, curves: Axes, losses: dict[str, pd.DataFrame], looks: dict[str, Look]) -> None:
    """Draw a row per operator: a large marker at the median exit of its seeds, ticks at each; lines up to the curves.

    Where most seeds stay on the plateau, there are but ticks of those that leave.
    """
    bottom = curves.get_ylim()[0]
    for row, (name, seeds) in enumerate(losses.items()):
        exits, look = exits_of(seeds), looks[name]
        left = sorted(exits.steps[exits.left])
        if len(seeds) > 1 and left:
            ticks: dict[str, Any] = {"linewidth": 0.8, "marker": "|", "markersize": 5, "color": look.color}
            panel.plot(left, [row] * len(left), zorder=2.5, **ticks)
        if exits.median is not None:
            loss = float(np.interp(exits.median, seeds.columns, seeds.to_numpy().mean(axis=0)))
            line = {"color": look.color, "linewidth": 0.8, "linestyle": ":", "zorder": 1.5}
            curves.vlines(exits.median, bottom, loss, **line)
            panel.vlines(exits.median, -1, row, **line)
            panel.plot([exits.median], [row], zorder=4, **look.line(**MARK))
    curves.set_ylim(bottom=bottom)
    panel.set_ylim(len(losses) - 0.3, -0.7)
    panel.set_yticks([])
    panel.set_ylabel("exit")
