"""The corpus figure: how harmful perplexity, length and tokens are distributed over the documents read and kept."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from symbert.corpus.counts import EDGES
from symbert.errors import DataError
from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.corpus_counts import REMEDY, Row
from symbert.report.panels import RIGHT, Entry, draw_key, figure_of, round_numbers
from symbert.report.plots import Plot
from symbert.report.style import LIMIT_LINE

PANEL = 1.15  # inches
COLORS = {"read": "#B8B8B8", "kept": "#0072B2"}
FILTERED = ("harmful_perplexity", "characters")  # quantities of which read and kept are counted
TICKS = 7  # at most, on an axis
MARGIN = 1.25  # factor between the outermost bin or mark and the edge of a panel


def corpus_figure(data: Collection) -> Plot | None:
    """Histograms of the documents read and kept: harmful perplexity, length in characters, and tokens; the table of
    documents gives the counts.

    DataError where a histogram is not complete.
    """
    if not data.parts:
        return None
    counts, records = ([part[half] for part in data.parts] for half in ("counts", "record"))
    perplexity, characters = ({side: _bins(counts, name, side) for side in COLORS} for name in FILTERED)
    for record in records:
        _check(record["part"], "tokens", record["histogram"], record["documents"])
    tokens = {"kept": np.sum([record["histogram"] for record in records], axis=0)}
    settings = data.settings
    wording = captions.wording_of(settings)
    figure, panels = figure_of([[PANEL]] * 3, [3, 2, 1])
    without = characters["read"].sum() - perplexity["read"].sum()
    missing = f" ({compact(without)} documents have none)" if without else ""
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity
    window = () if low is None or high is None else (low, high)
    _fill(panels[0], f"harmful perplexity{missing}", "harmful_perplexity", perplexity, window)
    _fill(panels[1], "characters per document", "characters", characters)
    _fill(panels[2], "tokens per document, [CLS] and [SEP] included", "tokens", tokens)
    explanation = f"{wording.experiment}."
    return Plot(figure, f"The corpus: {wording.corpus}.\n\n{explanation}")


def _bins(counts: list[Row], quantity: str, side: str) -> np.ndarray:
    """Documents of all parts by bin; a document may lack a perplexity, never a length."""
    for part in counts:
        documents = part["read"] - part["bad"] if side == "read" else part["kept"]
        bins = part["histograms"][quantity][side]
        _check(part["part"], quantity, bins, documents, may_lack=quantity == "harmful_perplexity")
    return np.sum([part["histograms"][quantity][side] for part in counts], axis=0)


def _check(part: str, quantity: str, bins: list[int], documents: int, may_lack: bool = False) -> None:
    expected = len(EDGES[quantity]) + 1
    if len(bins) != expected:
        raise DataError(f"part {part}: {len(bins)} bins of {quantity}, expected {expected}; {REMEDY}")
    if sum(bins) > documents or (sum(bins) < documents and not may_lack):
        raise DataError(
            f"part {part}: the histogram of {quantity} has {sum(bins)} documents, expected {documents}; {REMEDY}"
        )


def _fill(
    place: tuple[list[Axes], Axes],
    label: str,
    quantity: str,
    sides: dict[str, np.ndarray],
    window: Sequence[float] = (),
) -> None:
    """Draw documents by bins, those kept over those read, and their key beneath; `window` is what is kept, exclusive.

    What lies outside of all edges is drawn as one bin at each end.
    """
    ([panel], key), edges = place, np.array(EDGES[quantity])
    bounds = np.concatenate([[edges[0] ** 2 / edges[1]], edges, [edges[-1] ** 2 / edges[-2]]])
    marks, entries = list(window), []
    for side, bins in sides.items():
        panel.stairs(bins, bounds, fill=True, color=COLORS[side])
        filled = np.flatnonzero(bins)
        marks += [bounds[filled[0]], bounds[filled[-1] + 1]] if len(filled) else []
        median = f"≈ {float(f'{median_of(bins, bounds):.2g}'):,.0f}" if len(filled) else "–"
        line = {"color": COLORS[side], "linewidth": 5.5, "solid_capstyle": "butt"}
        entries.append(Entry(line, side, [f"{bins.sum():,}", median]))
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
        axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    draw_key(key, [("documents", 0.72), ("median", RIGHT)], entries)


def median_of(bins: np.ndarray, bounds: np.ndarray) -> float:
    """The median, with the documents of a bin spread evenly over its logarithm."""
    below = np.concatenate([[0], np.cumsum(bins)])
    return float(10 ** np.interp(bins.sum() / 2, below, np.log10(bounds)))


def compact(value: float) -> str:
    """A number in few characters: 950, 1.5k, 20k, 137M, 70G."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"
