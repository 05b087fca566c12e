"""The corpus figure: how harmful perplexity, length and tokens are distributed over the documents read and kept."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from symbert.corpus.counts import EDGES
from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.style import LIMIT_LINE, ROW, Entry, Plot, draw_legend, figure_of, round_numbers

PANEL = 1.5  # inches
COLORS = {"read": "#B8B8B8", "kept": "#0072B2"}
TICKS = 7  # at most, on an axis
SHORT = EngFormatter(sep="")  # 950, 1.5k, 20k, 137M, 70G
MARGIN = 1.25  # factor between the outermost bin or mark and the edge of a panel


def corpus_figure(data: Collection) -> Plot | None:
    """Histograms of the documents read and kept: harmful perplexity, length in characters, and tokens."""
    if not data.parts:
        return None
    histograms = [part["counts"]["histograms"] for part in data.parts]
    perplexity, characters = (
        {side: np.sum([of_part[quantity][side] for of_part in histograms], axis=0) for side in COLORS}
        for quantity in ("harmful_perplexity", "characters")
    )
    tokens = {"kept": np.sum([part["record"]["histogram"] for part in data.parts], axis=0)}
    settings = data.settings
    without = characters["read"].sum() - perplexity["read"].sum()
    missing = f" ({SHORT(without)} documents have none)" if without else ""
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity
    window = () if low is None or high is None else (low, high)
    figure, panels = figure_of([PANEL + ROW * lines for lines in (2 + bool(window), 2, 1)])
    _fill(panels[0], f"harmful perplexity{missing}", "harmful_perplexity", perplexity, window)
    _fill(panels[1], "characters per document", "characters", characters)
    _fill(panels[2], "tokens per document, [CLS] and [SEP] included", "tokens", tokens)
    wording = captions.wording_of(settings)
    return Plot(figure, f"The corpus: {wording.corpus}.\n\n{wording.experiment}.")


def _fill(panel: Axes, label: str, quantity: str, sides: dict[str, np.ndarray], window: Sequence[float] = ()) -> None:
    """Draw documents by bins, those kept over those read; `window` is the range of documents kept, exclusive.

    Documents beyond all edges are drawn as one bin at each end.
    """
    edges = np.array(EDGES[quantity])
    bounds = np.concatenate([[edges[0] ** 2 / edges[1]], edges, [edges[-1] ** 2 / edges[-2]]])
    marks, entries = list(window), []
    for side, bins in sides.items():
        panel.stairs(bins, bounds, fill=True, color=COLORS[side])
        filled = np.flatnonzero(bins)
        marks += [bounds[filled[0]], bounds[filled[-1] + 1]] if len(filled) else []
        median = f", median ≈ {float(f'{median_of(bins, bounds):.2g}'):,.0f}" if len(filled) else ""
        line = {"color": COLORS[side], "linewidth": 5.5, "solid_capstyle": "butt"}
        entries.append(Entry(line, f"{side}: {bins.sum():,} documents{median}"))
    for edge in window:
        panel.axvline(edge, **LIMIT_LINE)
    entries += [Entry(LIMIT_LINE, "kept only between {:,g} and {:,g}".format(*window))] if window else []
    panel.set_xscale("log")
    panel.set_xlim((min(marks) / MARGIN, max(marks) * MARGIN) if marks else (1 / MARGIN, 10 * MARGIN))
    panel.set_ylim(bottom=0)
    panel.set_xlabel(label)
    panel.set_ylabel("documents")
    panel.xaxis.set_major_locator(FixedLocator(round_numbers(*panel.get_xlim(), TICKS)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(MaxNLocator(3))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(SHORT)
    draw_legend(panel, entries)


def median_of(bins: np.ndarray, bounds: np.ndarray) -> float:
    """The median, with the documents of a bin spread evenly over its logarithm."""
    below = np.concatenate([[0], np.cumsum(bins)])
    return float(10 ** np.interp(bins.sum() / 2, below, np.log10(bounds)))
