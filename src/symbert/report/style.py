"""How figures look: sizes, fonts, the colour, marker and line of each operator, panels, legends, and the files.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart; markers and dashes tell
the same story in grey. Figures are as wide as one or two columns of a paper: no text is smaller than 8 pt in print.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from symbert.errors import ConfigError
from symbert.files import publish
from symbert.operators import OPERATORS, Description
from symbert.report.names import attentions
from symbert.report.statistics import CONFIDENCE, FEWEST, Exits, survival_curve

WIDTH = 3.5  # inches: of a column of a paper
PANEL, ROW = 2.7, 0.17  # inches: height of a panel with its labels, of a legend's row
NAME_CHARACTERS = 18  # of an operator in a legend
DPI = 200
INK, GREY, FAINT = "#222222", "#666666", "#DDDDDD"
LINES: dict[str, Any] = {  # by the words that an operator's class has for its line
    "solid": "-",
    "dotted": (0, (1, 1)),
    "dashed": (0, (4, 1.5)),
    "long-dashed": (0, (7, 1.5)),
    "dash-dot": (0, (5, 1.2, 1, 1.2)),
    "dash-dot-dot": (0, (5, 1.2, 1, 1.2, 1, 1.2)),
}
MARK: dict[str, Any] = {"markersize": 6.5, "markeredgecolor": INK, "markeredgewidth": 0.8}  # a point to look at
MAJORITY_LINE: dict[str, Any] = {"color": GREY, "linestyle": LINES["dotted"], "linewidth": 1.2}
LIMIT_LINE: dict[str, Any] = {"color": "#B22222", "linestyle": LINES["dashed"], "linewidth": 1.0}
BAND = {"alpha": 0.18, "linewidth": 0}
BAND_LINE: dict[str, Any] = {"color": GREY, "alpha": 0.3, "linewidth": 7, "solid_capstyle": "butt"}
TICKS = ((1, 2, 5), (1, 3), (1,))  # of each power of ten on a logarithmic axis, from many to few


@dataclass(frozen=True)
class Look:
    """The looks of one operator's curve."""

    color: str
    marker: str
    linestyle: Any

    def line(self, **changes: Any) -> dict[str, Any]:
        """Keyword arguments of a curve with its markers."""
        face = {"markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.5}
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, **face, **changes}


SPARE = (  # looks for operators whose class describes none
    Look("#7A5C00", "<", LINES["dotted"]),
    Look("#5A3E85", ">", LINES["dashed"]),
    Look("#00604A", "h", LINES["dash-dot"]),
    Look("#8C2D04", "p", LINES["long-dashed"]),
)


class Entry(NamedTuple):
    """A row of a legend: how the curve is drawn, and its name."""

    line: dict[str, Any]
    name: str


def house_style() -> AbstractContextManager[None]:
    """The context in which figures are drawn and saved."""
    return rc_context(fname=Path(__file__).with_name("templates") / "figures.mplstyle")


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each operator, in the order of tables: as its class describes it, or else one that no other has.

    A known operator has the same look in every figure. ConfigError for looks that matplotlib does not have.
    """
    ordered, looks, spare = attentions(names), {}, cycle(SPARE)
    for name in attentions([*OPERATORS, *ordered]):
        own = OPERATORS[name].description if name in OPERATORS else Description()
        look = Look(own.color, own.marker, LINES.get(own.line))
        if not (own.color and own.marker and own.line):
            other = next(spare)
            look = Look(own.color or other.color, own.marker or other.marker, LINES.get(own.line, other.linestyle))
        try:
            Line2D([], [], color=look.color, marker=look.marker)
            if own.line and own.line not in LINES:
                raise ValueError(f"'{own.line}' is no line; choose from {', '.join(LINES)}")
        except ValueError as error:
            raise ConfigError(f"{OPERATORS[name].path}: {error}") from None
        looks[name] = look
    return {name: looks[name] for name in ordered}


def figure_of(
    heights: Sequence[float], entries: Sequence[Entry] = (), title: str = "", columns: int = 1, across: int = 2
) -> tuple[Figure, list[Axes]]:
    """Panels (inches high with their labels) in so many columns of a paper, over one legend with `across` entries side
    by side in each."""
    across *= columns
    legend = ROW * (math.ceil(len(entries) / across) + bool(title) + 0.5)
    rows = [max(heights[at : at + columns]) for at in range(0, len(heights), columns)]
    figure = Figure(figsize=(WIDTH * columns, sum(rows) + legend + ROW))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=rows)
    if entries:
        options = {"loc": "outside lower left", "ncols": across, "columnspacing": 1.2, "alignment": "left"}
        figure.legend(*_handles(entries), title=title, **options)
    return figure, [figure.add_subplot(grid[divmod(at, columns)]) for at in range(len(heights))]


def draw_legend(panel: Axes, entries: Sequence[Entry], title: str = "") -> None:
    """A legend of one column above a panel, which takes ROW inches of the panel's height for each of its lines."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3, "borderpad": 0}
    panel.legend(*_handles(entries), title=title, alignment="left", **place)


def _handles(entries: Sequence[Entry]) -> tuple[list[Line2D], list[str]]:
    return [Line2D([], [], **entry.line) for entry in entries], [entry.name for entry in entries]


def entries_of(looks: Mapping[str, Look]) -> list[Entry]:
    """The entries of operators."""
    return [Entry(look.line(), name_of(name)) for name, look in looks.items()]


def name_of(attention: str) -> str:
    """An operator's name in a legend; a long one is cut."""
    return attention if len(attention) <= NAME_CHARACTERS else attention[: NAME_CHARACTERS - 1] + "…"


def band_entries(counts: Sequence[int]) -> list[Entry]:
    """The entry of a legend that says what bands are, by the seeds of each curve; none where no curve has one."""
    names = [
        "95 % confidence of the mean" if max(counts) >= FEWEST else "",
        "lowest to highest seed" + (" of two" if max(counts) >= FEWEST else "") if 2 in counts else "",
    ]
    return [Entry(BAND_LINE, "; ".join(filter(None, names)))] if max(counts) > 1 else []


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


def short(step: float) -> str:
    """A step in few characters: 1,240 or 32.8k or 137k."""
    if step < 10_000:
        return f"{step:,.0f}"
    return f"{step / 1000:.{1 if step < 100_000 else 0}f}".removesuffix(".0") + "k"


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


METADATA = {".png": {"Software": None}, ".pdf": {"CreationDate": None, "Producer": None, "Creator": None}}


def write_figure(figure: Figure, note: str, files: Iterable[Path]) -> None:
    """Write the figure, with a note above its panels, to each file in the format of its suffix: png or pdf.

    The same figure gives the same bytes.
    """
    figure.suptitle(note, x=0.01, horizontalalignment="left", fontsize=8, color=GREY, wrap=True, parse_math=False)
    for path in files:
        picture = BytesIO()  # an error of the disk while matplotlib writes a pdf is an AttributeError
        figure.savefig(picture, format=path.suffix[1:], dpi=DPI, metadata=METADATA[path.suffix])
        figure.set_layout_engine("none")  # its panels have their places now
        with publish(path) as temporary:
            temporary.write_bytes(picture.getvalue())
