"""Parts of figures: panels of curves, and beneath them a key, a table that no curve can run into."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from matplotlib.transforms import Transform, blended_transform_factory

from symbert.report.statistics import CONFIDENCE, FEWEST, Exits, survival_curve
from symbert.report.style import GREY, WIDTH, Look

PANEL, ROW = 2.4, 0.17  # inches: height of a panel, of a key's row
LABELS = 0.4  # inches: what the labels of each further panel take
HANDLE, CHARACTER = 0.55, 0.064  # inches: in a legend, of a line with the space around it, of a character of a name
NAME_CHARACTERS = 18  # of a name in a key
LEFT, NAME, RIGHT = 0.03, 0.14, 0.97  # where names of a key and its last column stand in the figure's width
TICKS = ((1, 2, 5), (1, 3), (1,))  # of each power of ten on a logarithmic axis, from many to few


@dataclass(frozen=True)
class Entry:
    """A row of a key: how the curve is drawn, its name, and a text per column."""

    line: dict[str, Any]
    name: str
    texts: Sequence[str] = ()


BAND = {"alpha": 0.18, "linewidth": 0}
BAND_LINE: dict[str, Any] = {"color": GREY, "alpha": 0.3, "linewidth": 7, "solid_capstyle": "butt"}


def figure_of(heights: Sequence[Sequence[float]], rows: Sequence[int]) -> tuple[Figure, list[tuple[list[Axes], Axes]]]:
    """A figure one column wide: groups of panels (inches high), each group over a key with so many `rows`."""
    ratios = [ratio for group, count in zip(heights, rows, strict=True) for ratio in (*group, ROW * (count + 1.7))]
    figure = Figure(figsize=(WIDTH, sum(ratios) + LABELS * (len(rows) - 1)))
    axes = iter(figure.subplots(len(ratios), 1, gridspec_kw={"height_ratios": ratios}))
    return figure, [([next(axes) for _ in group], next(axes)) for group in heights]


def page_of(heights: Sequence[float], entries: Sequence[Entry]) -> tuple[Figure, list[Axes]]:
    """A figure two columns wide: panels (inches high) side by side over a legend. One panel alone is a column wide."""
    columns = min(2, len(heights))
    rows = [max(heights[at : at + columns]) for at in range(0, len(heights), columns)]
    names = [entry.name for entry in entries]
    in_row = max(
        1, int(WIDTH * columns / (HANDLE + CHARACTER * max(map(len, names))))
    )  # entries as wide as the longest
    key = ROW * (math.ceil(len(entries) / in_row) + 0.5)
    figure = Figure(figsize=(WIDTH * columns, sum(rows) + LABELS * len(rows) + key))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=rows)
    handles = [Line2D([], [], **entry.line) for entry in entries]
    figure.legend(handles, names, loc="outside lower left", ncols=in_row, frameon=False, columnspacing=1.2)
    return figure, [figure.add_subplot(grid[at // columns, at % columns]) for at in range(len(heights))]


def prepare(panel: Axes, vertical: str) -> None:
    """Label the axes of a panel over pre-training steps; few ticks, large steps in thousands."""
    panel.set_xlabel("pre-training step")
    panel.set_ylabel(vertical)
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    panel.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short(step)))
    panel.yaxis.set_major_locator(MaxNLocator(6))
    panel.margins(x=0.02, y=0.06)


def set_log_steps(panel: Axes, first: float, last: float, most: int = 7) -> None:
    """A logarithmic axis from the first to the last step, with at most so many round steps as plain numbers."""
    margin = (last / first) ** 0.02
    panel.set_xscale("log")
    panel.set_xlim(first / margin, last * margin)
    panel.xaxis.set_major_locator(FixedLocator(round_numbers(first, last, most)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(FuncFormatter(lambda step, _: short(step)))


def round_numbers(low: float, high: float, most: int) -> list[float]:
    """Round numbers for a logarithmic axis: at most so many, unless the powers of ten alone are more."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in TICKS:
        ticks = [tick for power in powers for digit in digits if low <= (tick := digit * 10.0**power) <= high]
        if len(ticks) <= most:
            break
    return ticks


def draw_seeds(panel: Axes, steps: Sequence[float], values: np.ndarray, look: Look, **changes: Any) -> None:
    """Draw the mean of values (`seed step`) as a curve with a band: the 95 % t interval, of two seeds their range."""
    mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
    if len(values) >= FEWEST:
        from scipy.special import stdtrit  # slow to load, and one seed needs it not

        half = stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2) * values.std(axis=0, ddof=1) / math.sqrt(len(values))
        low, high = mean - half, mean + half
    draw_band(panel, steps, mean, low, high, look, **changes)


def draw_band(panel: Axes, steps: Sequence[float], mean: Any, low: Any, high: Any, look: Look, **changes: Any) -> None:
    """Draw a curve, and a band around it where it has a width."""
    if not np.array_equal(low, high):
        panel.fill_between(steps, low, high, color=look.color, zorder=1.2, **BAND)
    panel.plot(steps, mean, **look.line(**changes))


def band_entries(counts: Sequence[int]) -> list[Entry]:
    """The entry of a key that says what bands are, by the seeds of each curve; none where no curve has one."""
    names = [
        "95 % confidence of the mean" if max(counts) >= FEWEST else "",
        "lowest to highest seed" + (" of two" if max(counts) >= FEWEST else "") if 2 in counts else "",
    ]
    return [Entry(BAND_LINE, "; ".join(filter(None, names)))] if max(counts) > 1 else []


def draw_survival(panel: Axes, exits: Exits, first: float, last: float, look: Look) -> None:
    """Draw the share of runs that are on the plateau after each step, from the first step to the last.

    A + stands where a run was last seen that does not leave.
    """
    steps, shares = survival_curve(exits)
    steps, shares = np.concatenate([[first], steps, [last]]), np.concatenate([[1.0], shares, shares[-1:]])
    panel.step(steps, shares, where="post", color=look.color, linestyle=look.linestyle)
    censored = exits.steps[~exits.left]
    heights = shares[np.searchsorted(steps, censored, side="right") - 1]
    panel.plot(censored, heights, marker="+", color=look.color, linestyle="none")
    panel.set_ylim(-0.05, 1.05)
    panel.set_yticks([0, 0.5, 1])


def _across(axes: Axes) -> Transform:
    """Coordinates of headings and keys: x is a share of the figure's width, y is the axes' own."""
    return blended_transform_factory(axes.figure.transFigure, axes.transData)


def _write(axes: Axes, x: float, y: float, text: str, **options: Any) -> None:
    """Text that claims no room of its own: headings and keys fit the figure by construction."""
    axes.text(x, y, text, transform=_across(axes), **options).set_in_layout(False)


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


def seeds_heading(counts: Sequence[int]) -> str:
    """The heading of a key's names: over how many pre-training seeds each curve is the mean; empty for one."""
    few, many = min(counts), max(counts)
    return "" if many == 1 else f"mean of {few if few == many else f'{few}–{many}'} seeds"


def entries_of(looks: Mapping[str, Look]) -> list[Entry]:
    """The entries of operators."""
    return [Entry(look.line(), name_of(name)) for name, look in looks.items()]


def name_of(attention: str) -> str:
    """An operator's name in a key; a long one is cut."""
    return attention if len(attention) <= NAME_CHARACTERS else attention[: NAME_CHARACTERS - 1] + "…"
