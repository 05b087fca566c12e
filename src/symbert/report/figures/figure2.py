"""Figure 2: validation loss over pre-training steps, with each operator's exit from the initial plateau."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symbert.report import captions, panels, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.panels import Entry
from symbert.report.runs import exits_of, losses_of, size_of
from symbert.report.statistics import spread
from symbert.report.style import GREY, MARK, Look, looks_of

MARKERS = 9  # along a curve
RANGE: dict[str, Any] = {"linewidth": 1.0, "marker": "|", "markersize": 4, "zorder": 2.5}
RANGE_ROW = 0.03  # of the panel's height: each operator's range of exits has a row above the axis
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}
PRINTED_ENTRY = Entry({"color": GREY, "marker": "o", **HOLLOW}, "hollow: the authors' runs")


@exhibit(
    chapter="Pre-training", place=1, heading="Figure 2: validation loss", reads=("settings", "runs"), per_size=True
)
def loss_figure(data: Data) -> Figure:
    """Curves of validation loss over pre-training steps, one per operator; a large marker on each shows where it leaves
    the initial plateau, and the key beneath gives that step and the last loss.

    The authors' losses are hollow markers where they may stand beside these.
    """
    settings, size = data.settings, size_of(data.runs)
    losses = {attention: seeds for (_, attention), seeds in losses_of(data.runs).items()}
    looks = looks_of(losses)
    beside = captions.wording_of(settings).other_training is None
    printed = {name: published.LOSSES[size, name] for name in losses if beside and (size, name) in published.LOSSES}
    entries = [
        Entry(
            looks[name].line(),
            panels.name_of(name),
            [exit_of(exits_of(seeds)), f"{seeds.to_numpy()[:, -1].mean():.3f}"],
        )
        for name, seeds in losses.items()
    ]
    counts = [*map(len, losses.values())]
    entries += [panels.BAND_ENTRY] * (max(counts) > 1) + [PRINTED_ENTRY] * bool(printed)
    chance = f"; {captions.seeds_of(1)}" if max(counts) == 1 else ""  # several are named in the key
    note = f"{captions.wording_of(settings).experiment}, on {captions.wording_of(settings).corpus}{chance}"
    figure, [(panel, key)] = panels.figure_of(f"Pre-training loss of BERT-{size}", note, [len(entries)])
    panels.prepare(panel, "validation loss (nats per token)")
    _draw_curves(panel, losses, printed, looks)
    panels.draw_key(
        key, [("leaves plateau at", 0.79), ("final loss", panels.RIGHT)], entries, panels.seeds_heading(counts)
    )
    return figure


def _draw_curves(
    panel: Axes, losses: dict[str, pd.DataFrame], printed: dict[str, tuple[float, ...]], looks: dict[str, Look]
) -> None:
    """Draw losses, those that the authors `printed`, and exits; no small markers where the authors' hollow ones are."""
    for position, (name, seeds) in enumerate(losses.items()):
        steps = seeds.columns.tolist()
        marks = [] if name in printed else _marks(steps, position / len(losses))
        panels.draw_seeds(panel, steps, seeds.to_numpy(), looks[name], markevery=marks)
    for name, values in printed.items():
        look = looks[name]
        panel.plot(published.LOSS_STEPS, values, zorder=3, **look.line(markeredgecolor=look.color) | HOLLOW)
    bottom, top = panel.get_ylim()
    for row, name in enumerate(reversed(losses), start=1):
        _mark_exit(panel, losses[name], looks[name], bottom + RANGE_ROW * row * (top - bottom))


def exit_of(exits: Sequence[int | None]) -> str:
    """Where seeds leave the plateau, in words: '1,240', '1,240 (1,100–1,350)', '1,100–never', or a dash."""
    left = [step for step in exits if step is not None]
    if not left:
        return "–"
    if len(left) < len(exits):
        return f"{panels.short(min(left))}–never"
    reached = spread(left)
    if reached.count == 1:
        return f"{reached.mean:,}"
    return f"{panels.short(reached.mean)} ({panels.short(reached.lowest)}–{panels.short(reached.highest)})"


def _marks(steps: Sequence[int], offset: float) -> list[int]:
    """Evaluations that get a marker, shifted from curve to curve so that they do not hide each other."""
    every = max(1, len(steps) // MARKERS)
    return list(range(int(offset * every), len(steps), every))


def _mark_exit(panel: Axes, losses: pd.DataFrame, look: Look, height: float) -> None:
    """A large marker where the curve leaves the plateau, a line down to the step, and the seeds' range at `height`.

    Nothing is drawn where a seed does not leave the plateau.
    """
    exits = exits_of(losses)
    if None in exits:
        return
    bottom, reached = panel.get_ylim()[0], spread(exits)
    loss = float(np.interp(reached.mean, losses.columns, losses.to_numpy().mean(axis=0)))
    panel.vlines(reached.mean, bottom, loss, color=look.color, linewidth=0.8, linestyle=":", zorder=1.5)
    if reached.count > 1:
        panel.plot([reached.lowest, reached.highest], [height, height], color=look.color, **RANGE)
    panel.plot([reached.mean], [loss], zorder=4, **look.line(**MARK))
    panel.set_ylim(bottom=bottom)
