"""The corpus figure: how harmful perplexity, length and tokens are distributed over the documents read and kept."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from symbert.corpus.counts import EDGES
from symbert.errors import DataError
from symbert.report import captions
from symbert.report.corpus_counts import Row, not_read
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.panels import RIGHT, Entry, draw_key, figure_of
from symbert.report.style import DASHED

PANEL = 1.15  # inches
COLORS = {"read": "#B8B8B8", "kept": "#0072B2"}
FILTERED = ("harmful_perplexity", "characters")  # quantities of which read and kept are counted
MARGIN = 1.25  # factor between the outermost bin or mark and the edge of a panel
WINDOW = {"color": "#B22222", "linestyle": DASHED, "linewidth": 1.0}


@dataclass(frozen=True)
class Distribution:
    """Documents by bins of one quantity; the first and the last bin hold what lies outside its edges."""

    quantity: str
    side: str  # read | kept
    counts: np.ndarray

    @property
    def bounds(self) -> np.ndarray:
        """Bounds of the bins, [bins + 1]; what lies outside is drawn as one bin at each end."""
        edges = np.array(EDGES[self.quantity])
        return np.concatenate([[edges[0] ** 2 / edges[1]], edges, [edges[-1] ** 2 / edges[-2]]])

    @property
    def documents(self) -> int:
        """How many documents are counted."""
        return int(self.counts.sum())

    @property
    def median(self) -> float | None:
        """The median, with the documents of a bin spread evenly over its logarithm; None without documents."""
        if not self.documents:
            return None
        below = np.concatenate([[0], np.cumsum(self.counts)])
        return float(10 ** np.interp(self.documents / 2, below, np.log10(self.bounds)))


@exhibit(
    chapter="Corpus",
    place=1,
    heading="Perplexity, length and tokens of documents",
    reads=("settings", "counts", "records"),
)
def corpus_figure(data: Data) -> Figure:
    """Histograms of the documents read and kept: harmful perplexity, length in characters, and tokens; the table of
    documents gives the counts.

    DataError where a histogram is not complete.
    """
    counts, settings = data.counts, data.settings
    perplexity, characters = ([_distribution(counts, name, side) for side in COLORS] for name in FILTERED)
    for record in data.records:
        _check(record["part"], "tokens", record["histogram"], record["documents"], "tokenize-part")
    tokens = Distribution("tokens", "kept", np.sum([record["histogram"] for record in data.records], axis=0))
    skipped = not_read(counts)
    note = f"{captions.experiment_of(settings)}; {captions.corpus_of(settings)}{f'; {skipped}' if skipped else ''}"
    figure, panels = figure_of("Documents of the corpus", note, [3, 2, 1], PANEL)
    without = characters[0].documents - perplexity[0].documents
    missing = f" ({compact(without)} documents have none)" if without else ""
    low, high = settings.min_harmful_perplexity, settings.max_harmful_perplexity
    window = None if low is None or high is None else (low, high)
    _fill(*panels[0], f"harmful perplexity{missing}", perplexity, window)
    _fill(*panels[1], "characters per document", characters)
    _fill(*panels[2], "tokens per document, [CLS] and [SEP] included", [tokens])
    return figure


def _distribution(counts: list[Row], quantity: str, side: str) -> Distribution:
    """All parts together; a document may lack a perplexity, never a length."""
    for part in counts:
        documents = part["read"] - part["bad"] if side == "read" else part["kept"]
        bins = part["histograms"][quantity][side]
        _check(part["part"], quantity, bins, documents, "filter-part", may_lack=quantity == "harmful_perplexity")
    return Distribution(quantity, side, np.sum([part["histograms"][quantity][side] for part in counts], axis=0))


def _check(part: str, quantity: str, bins: list[int], documents: int, command: str, may_lack: bool = False) -> None:
    expected = len(EDGES[quantity]) + 1
    if len(bins) != expected:
        raise DataError(f"part {part}: {len(bins)} bins of {quantity}, expected {expected}; run {command} again")
    if sum(bins) > documents or (sum(bins) < documents and not may_lack):
        raise DataError(
            f"part {part}: the histogram of {quantity} has {sum(bins)} documents, expected {documents}; "
            f"run {command} again"
        )


def _fill(
    panel: Axes, key: Axes, label: str, distributions: list[Distribution], window: tuple[float, float] | None = None
) -> None:
    """Draw distributions over each other and their key beneath; `window` is what is kept, exclusive."""
    for distribution in distributions:
        panel.stairs(distribution.counts, distribution.bounds, fill=True, color=COLORS[distribution.side])
    entries = [_entry(distribution) for distribution in distributions]
    if window:
        for edge in window:
            panel.axvline(edge, **WINDOW)
        entries.append(Entry(WINDOW, f"kept only between {window[0]:,g} and {window[1]:,g}"))
    panel.set_xscale("log")
    panel.set_xlim(_limits(distributions, window or ()))
    panel.set_ylim(bottom=0)
    panel.set_xlabel(label)
    panel.set_ylabel("documents")
    panel.xaxis.set_major_locator(LogLocator())
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(MaxNLocator(3))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    draw_key(key, [("documents", 0.72), ("median", RIGHT)], entries)


def _limits(distributions: list[Distribution], marks: Sequence[float]) -> tuple[float, float]:
    """From a little below the first bin with documents, or mark, to a little above the last."""
    lows, highs = list(marks), list(marks)
    for distribution in distributions:
        filled = np.flatnonzero(distribution.counts)
        if len(filled):
            lows.append(distribution.bounds[filled[0]])
            highs.append(distribution.bounds[filled[-1] + 1])
    return (min(lows) / MARGIN, max(highs) * MARGIN) if lows else (1 / MARGIN, 10 * MARGIN)


def _entry(distribution: Distribution) -> Entry:
    median = "–" if distribution.median is None else f"≈ {float(f'{distribution.median:.2g}'):,.0f}"
    line = {"color": COLORS[distribution.side], "linewidth": 5.5, "solid_capstyle": "butt"}
    return Entry(line, distribution.side, [f"{distribution.documents:,}", median])


def compact(value: float) -> str:
    """A number in few characters: 950, 1.5k, 20k, 137M, 70G."""
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:.3g}"
