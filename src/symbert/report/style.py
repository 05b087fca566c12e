"""How figures look: sizes, fonts, the colour, marker and line of each operator, panels, legends, and the files.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart; markers and dashes tell
the same story in grey. Figures are as wide as one or two columns of a paper: no text is smaller than 8 pt in print.
"""

import math
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullLocator

from symbert.errors import ConfigError
from symbert.files import publish
from symbert.operators import Description
from symbert.report.names import Known
from symbert.report.statistics import CONFIDENCE, FEWEST

WIDTH = 3.5  # inches: of a column of a paper
PANEL, ROW = 2.7, 0.17  # inches: height of a panel with its labels, of a legend's row
DPI = 200
INK, GREY = "#222222", "#666666"
LINES: dict[str, Any] = {  # by the words that an operator's class has for its line
    "solid": "-",
    "dotted": (0, (1, 1)),
    "dashed": (0, (4, 1.5)),
    "long-dashed": (0, (7, 1.5)),
    "dash-dot": (0, (5, 1.2, 1, 1.2)),
    "dash-dot-dot": (0, (5, 1.2, 1, 1.2, 1, 1.2)),
}
WHOLE = {"clip_on": False, "in_layout": False}  # of markers at the edge of a panel, which are drawn to their end
MARK: dict[str, Any] = {"markersize": 6.5, "markeredgecolor": INK, "markeredgewidth": 0.8}  # a point to look at
MAJORITY_LINE: dict[str, Any] = {"color": GREY, "linestyle": LINES["dotted"], "linewidth": 1.2}
LIMIT_LINE: dict[str, Any] = {"color": "#B22222", "linestyle": LINES["dashed"], "linewidth": 1.0}


@dataclass(frozen=True)
class Look:
    """The looks of one operator's curve."""

    color: str
    marker: str
    linestyle: Any

    def line(self, **changes: Any) -> dict[str, Any]:
        """Keyword arguments of a curve with its markers."""
        face = {"markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.5, **WHOLE}
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, **face, **changes}


# Looks for operators whose class describes none, each unlike the one before in all three: of 4 colours, 7 markers and 6
# lines 84 differ, and 42 of one colour.
SPARE = list(
    islice(
        zip(
            cycle(("#7A5C00", "#5A3E85", "#00604A", "#8C2D04")),
            cycle(("<", ">", "h", "p", "8", "v", "H")),
            cycle(("dotted", "dashed", "dash-dot", "long-dashed", "dash-dot-dot", "solid")),
            strict=False,
        ),
        84,
    )
)


def house_style() -> AbstractContextManager[None]:
    """The context in which figures are drawn and saved."""
    return rc_context(fname=Path(__file__).with_name("templates") / "figures.mplstyle")


def looks_of(names: Iterable[str], known: Known) -> dict[str, Look]:
    """The look of each operator, in the order of tables: as its class describes it, but for what another has already.

    A known operator has the same look in every figure. ConfigError for looks that matplotlib does not have.
    """
    ordered, looks, spare = known.attentions(names), {}, cycle(SPARE)
    for name in known.attentions([*known.operators, *ordered]):
        own = known.operators[name].description if name in known.operators else Description()
        look = Look(own.color, own.marker, LINES.get(own.line))
        if look in looks.values() or not (own.color and own.marker and own.line):
            some = (
                Look(own.color or color, own.marker * keep or marker, LINES.get(own.line * keep or line))
                for keep in (True, False)  # a class under several names has its marker once
                for color, marker, line in islice(spare, len(SPARE))
            )
            look = next((each for each in some if each not in looks.values()), look)
        try:
            Line2D([], [], color=look.color, marker=look.marker)
        except ValueError as error:
            raise ConfigError(f"{known.operators[name].path}: {error}") from None
        looks[name] = look
    return {name: looks[name] for name in ordered}


def figure_of(heights: Sequence[float], columns: int = 1) -> tuple[Figure, list[Axes]]:
    """A figure with panels, inches high with their labels, in so many columns of a paper."""
    rows = [max(heights[at : at + columns]) for at in range(0, len(heights), columns)]
    figure = Figure(figsize=(WIDTH * columns, sum(rows) + ROW))
    grid = figure.add_gridspec(len(rows), columns, height_ratios=rows)
    return figure, [figure.add_subplot(grid[divmod(at, columns)]) for at in range(len(heights))]


def add_legend(figure: Figure, title: str = "", across: int = 2) -> None:
    """Add a legend of all labelled curves beneath the panels: `across` entries side by side in a column of a paper."""
    entries = {}
    for panel in figure.axes:
        entries |= dict(zip(*reversed(panel.get_legend_handles_labels()), strict=True))
    across *= round(figure.get_figwidth() / WIDTH)
    lines = math.ceil(len(entries) / across) + bool(title) + 0.5
    figure.set_figheight(figure.get_figheight() + ROW * lines)
    options = {"loc": "outside lower left", "ncols": across, "columnspacing": 1.2, "alignment": "left"}
    figure.legend(entries.values(), entries.keys(), title=title, **options)


def add_legend_above(panel: Axes, title: str = "") -> None:
    """Add a legend of one column above a panel, which takes ROW inches of the panel's height for each of its lines."""
    place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.3, "borderpad": 0}
    panel.legend(title=title, alignment="left", **place)


def prepare(
    panel: Axes,
    vertical: str,
    horizontal: str = "pre-training step",
    logarithmic: bool = False,
    ticks: Sequence[float] = (),
) -> None:
    """Label the axes of a panel; few ticks, large numbers in thousands, of a logarithmic axis round ones, or these
    `ticks` of one."""
    panel.set_xlabel(horizontal)
    panel.set_ylabel(vertical)
    panel.margins(x=0.02, y=0.06)
    panel.yaxis.set_major_locator(MaxNLocator(6))
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if logarithmic:
        panel.set_xscale("log")
        low, high = panel.get_xlim()
        digits = (1, 2, 5) if high < 100 * low else (1, 3) if high < 10_000 * low else (1,)
        panel.xaxis.set_major_locator(LogLocator(subs=digits))
        panel.xaxis.set_minor_locator(NullLocator())
    panel.xaxis.set_major_formatter(EngFormatter(sep=""))
    if ticks:
        panel.set_xscale("log")
        panel.set_xlim(min(ticks) / 1.15, max(ticks) * 1.15)
        panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        panel.xaxis.set_minor_locator(NullLocator())


def name_rows(panel: Axes, names: Iterable[str]) -> None:
    """Name the rows of a panel, from 0 on, at its left."""
    names = list(names)
    panel.set_yticks(range(len(names)), names)
    panel.tick_params(axis="y", length=0)


def draw_seeds(panel: Axes, seeds: pd.DataFrame, look: Look, label: str, **changes: Any) -> None:
    """Draw the mean of rows as a curve over columns, with a band: the 95 % t interval, of two rows their range."""
    steps, values = list(seeds.columns), seeds.to_numpy()
    mean, low, high = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
    if len(values) >= FEWEST:
        from scipy.special import stdtrit  # slow to load, and one seed needs it not

        half = stdtrit(len(values) - 1, (1 + CONFIDENCE) / 2) * values.std(axis=0, ddof=1) / math.sqrt(len(values))
        low, high = mean - half, mean + half
    if not np.array_equal(low, high):
        panel.fill_between(steps, low, high, color=look.color, zorder=1.2, alpha=0.18, linewidth=0)
    panel.plot(steps, mean, label=label, **look.line(**changes))


METADATA = {".png": {"Software": None}, ".pdf": {"CreationDate": None, "Producer": None, "Creator": None}}


def write_figure(figure: Figure, note: str, files: Iterable[Path]) -> None:
    """Write the figure, with a note above its panels, to each file in the format of its suffix: png or pdf.

    The same figure gives the same bytes.
    """
    figure.suptitle(note, x=0.01, horizontalalignment="left", fontsize=8, color=GREY, wrap=True, parse_math=False)
    figure.set_dpi(DPI)
    for path in files:
        picture = BytesIO()  # an error of the disk while matplotlib writes a pdf is an AttributeError
        if path.suffix == ".png":  # a canvas draws once, `savefig` twice
            FigureCanvasAgg(figure).print_png(picture, metadata=METADATA[".png"])
        else:
            FigureCanvasPdf(figure).print_pdf(picture, metadata=METADATA[".pdf"])
        figure.set_layout_engine("none")  # its panels have their places now
        with publish(path) as temporary:
            temporary.write_bytes(picture.getvalue())
