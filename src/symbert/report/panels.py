"""Parts of figures: a heading, panels of curves, and beneath each its key, a table that no curve can run into."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import Transform, blended_transform_factory

from symbert.report.style import GREY, WIDTH, Look

PANEL, ROW, LINE = 2.4, 0.17, 0.155  # inches: height of a panel, of a key's row, of a heading's line
LABELS = 0.4  # inches: what the labels of each further panel take
CHARACTERS, PAGE_CHARACTERS, NAME_CHARACTERS = 54, 112, 18  # of a heading's line, of a wide one's, of a name in a key
LEFT, NAME, RIGHT = 0.03, 0.14, 0.97  # where headings, names of a key and its last column stand in the figure's width


@dataclass(frozen=True)
class Entry:
    """A row of a key: how the curve is drawn, its name, and a text per column."""

    line: dict[str, Any]
    name: str
    texts: Sequence[str] = ()


BAND = {"alpha": 0.18, "linewidth": 0}
BAND_ENTRY = Entry({"color": GREY, "alpha": 0.3, "linewidth": 7, "solid_capstyle": "butt"}, "lowest to highest seed")


def figure_of(
    title: str, note: str, rows: Sequence[int], panel: float = PANEL
) -> tuple[Figure, list[tuple[Axes, Axes]]]:
    """A headed figure with a panel (inches high) per number in `rows`, each over a key with that many rows."""
    lines = wrap(note, CHARACTERS)
    heights = [LINE * (len(lines) + 1.5)]
    for count in rows:
        heights += [panel, ROW * (count + 1.7)]
    figure = Figure(figsize=(WIDTH, sum(heights) + LABELS * (len(rows) - 1)))
    heading, *axes = figure.subplots(len(heights), 1, gridspec_kw={"height_ratios": heights})
    _draw_heading(heading, title, lines)
    return figure, list(zip(axes[::2], axes[1::2], strict=True))


def page_of(title: str, note: str, heights: Sequence[float], key: int) -> tuple[Figure, list[Axes], Axes]:
    """A headed figure two columns wide with panels (inches high) side by side over one key with `key` rows.

    One panel alone is a column wide.
    """
    columns = min(2, len(heights))
    lines = wrap(note, CHARACTERS if columns == 1 else PAGE_CHARACTERS, break_on_hyphens=False)
    rows = [max(heights[at : at + columns]) for at in range(0, len(heights), columns)]
    ratios = [LINE * (len(lines) + 1.5), *rows, ROW * (key + 0.5)]
    figure = Figure(figsize=(WIDTH * columns, sum(ratios) + LABELS * len(rows)))
    grid = figure.add_gridspec(len(ratios), columns, height_ratios=ratios)
    panels = [figure.add_subplot(grid[1 + at // columns, at % columns]) for at in range(len(heights))]
    _draw_heading(figure.add_subplot(grid[0, :]), title, lines)
    return figure, panels, figure.add_subplot(grid[-1, :])


def _draw_heading(axes: Axes, title: str, lines: Sequence[str]) -> None:
    axes.set_axis_off()
    _write(axes, LEFT, 1, title, va="top", fontsize=9, fontweight="bold")
    _write(axes, LEFT, 0, "\n".join(lines), va="bottom", color=GREY, linespacing=1.15)


def _across(axes: Axes) -> Transform:
    """Coordinates of headings and keys: x is a share of the figure's width, y is the axes' own."""
    return blended_transform_factory(axes.figure.transFigure, axes.transData)


def _write(axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
    """Text that claims no room of its own: headings and keys fit the figure by construction."""
    axes.text(x, y, text, transform=_across(axes), **options).set_in_layout(False)


def prepare(panel: Axes, vertical: str) -> None:
    """Label the axes of a panel over pre-training steps; few ticks, large steps in thousands."""
    panel.set_xlabel("pre-training step")
    panel.set_ylabel(vertical)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short(step)))
    panel.yaxis.set_major_locator(MaxNLocator(6))
    panel.margins(x=0.02, y=0.06)


def draw_seeds(panel: Axes, steps: Sequence[int], values: np.ndarray, look: Look, **changes: Any) -> None:
    """Draw the mean of values (`seed step`) as a curve, and a band from the lowest to the highest seed."""
    if len(values) > 1:
        panel.fill_between(steps, values.min(axis=0), values.max(axis=0), color=look.color, zorder=1.2, **BAND)
    panel.plot(steps, values.mean(axis=0), **look.line(**changes))


def short(step: float) -> str:
    """A step in few characters: 1,240 or 32.8k or 137k."""
    if step < 10_000:
        return f"{step:,.0f}"
    return f"{step / 1000:.{1 if step < 100_000 else 0}f}".removesuffix(".0") + "k"


def draw_key(axes: Axes, columns: Sequence[tuple[str, float]], entries: Sequence[Entry], names: str = "") -> None:
    """Write the key: line, name, and columns given as heading and right edge (a share of the figure's width).

    `names` is the heading of the names, where they need one.
    """
    axes.set_axis_off()
    axes.set_ylim(len(entries) + 0.6, -0.8)
    _write(axes, NAME, 0, names, va="center", color=GREY)
    for heading, right in columns:
        _write(axes, right, 0, heading, ha="right", va="center", color=GREY)
    across = {"transform": _across(axes), "clip_on": False, "in_layout": False}
    for row, entry in enumerate(entries, start=1):
        axes.plot([LEFT, LEFT + 0.045, LEFT + 0.09], [row] * 3, markevery=[1], **across, **entry.line)
        _write(axes, NAME, row, entry.name, va="center")
        for (_, right), text in zip(columns, entry.texts, strict=False):
            _write(axes, right, row, text, ha="right", va="center")


def draw_names(axes: Axes, entries: Sequence[Entry], columns: int) -> None:
    """Write a key of lines and names only, side by side in columns."""
    axes.set_axis_off()
    axes.set_ylim(math.ceil(len(entries) / columns) - 0.5, -0.5)
    inch, across = 1 / axes.figure.get_figwidth(), {"transform": _across(axes), "clip_on": False, "in_layout": False}
    for at, entry in enumerate(entries):
        row, left = at // columns, LEFT + at % columns * (RIGHT - LEFT) / columns
        axes.plot([left, left + 0.16 * inch, left + 0.32 * inch], [row] * 3, markevery=[1], **across, **entry.line)
        _write(axes, left + 0.42 * inch, row, entry.name, va="center")


def seeds_heading(counts: Sequence[int]) -> str:
    """The heading of a key's names: over how many pre-training seeds each curve is the mean; empty for one."""
    few, many = min(counts), max(counts)
    return "" if many == 1 else f"mean of {few if few == many else f'{few}–{many}'} seeds"


def name_of(attention: str) -> str:
    """An operator's name in a key; a long one is cut."""
    return attention if len(attention) <= NAME_CHARACTERS else attention[: NAME_CHARACTERS - 1] + "…"
