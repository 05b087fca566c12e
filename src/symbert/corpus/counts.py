"""What became of the documents: counts by outcome, and distributions."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from symbert.configuration import FilterSettings
from symbert.corpus.filters import REASONS
from symbert.errors import DataError

if TYPE_CHECKING:  # reports count, too, where what these import may be absent
    from symbert.corpus.document import Document

BINS_PER_DECADE = 10
DECADES = {"harmful_perplexity": 7, "characters": 7, "tokens": 6}  # from 1 on
EDGES = {
    name: [float(f"{10 ** (step / BINS_PER_DECADE):.4g}") for step in range(decades * BINS_PER_DECADE + 1)]
    for name, decades in DECADES.items()
}
"""Edges of the bins by quantity: harmful perplexity, characters and tokens per document."""
BAD_LINES_SHOWN = 10
FOLDED_AT_ONCE = 10_000  # documents whose sizes are held before they are added up
OUTCOMES = ("kept", *REASONS)
_NUMBERS = {outcome: number for number, outcome in enumerate(OUTCOMES)}


def histogram(name: str, values: Sequence[float]) -> list[int]:
    """Counts of `values` below the first edge, from each edge to the next, and from the last edge on: edges + 1."""
    bins = np.searchsorted(EDGES[name], np.asarray(values, dtype=np.float64), side="right")
    return np.bincount(bins, minlength=len(EDGES[name]) + 1).tolist()


class Tally:
    """Counts of one part, and its bad lines, of which a share of `max_bad_fraction` is allowed."""

    def __init__(self, settings: FilterSettings) -> None:
        self.read = 0  # lines, bad ones included
        self._settings = settings
        self._bad: list[str] = []
        self._bad_lines = 0
        self._without_url = 0
        self._overlaps: Counter[str] = Counter()
        self._documents = np.zeros(len(OUTCOMES), np.int64)
        self._characters = np.zeros(len(OUTCOMES), np.int64)
        quantities = ("harmful_perplexity", "characters")
        self._histograms = {
            name: {side: np.array(histogram(name, [])) for side in ("read", "kept")} for name in quantities
        }
        self._pending: list[tuple[int, int, float | None]] = []  # outcome, characters, harmful perplexity

    def bad(self, error: DataError) -> None:
        """Count a bad line; raise `error` when none is allowed."""
        if not self._settings.max_bad_fraction:
            raise error
        self.read += 1
        self._bad_lines += 1
        if len(self._bad) < BAD_LINES_SHOWN:
            self._bad.append(str(error))

    def document(self, document: "Document", found: frozenset[str] | None, reasons: list[str]) -> None:
        """Count a document with the categories of its URL and all reasons against it, in order; none: it is kept."""
        metadata = document.metadata
        self.read += 1
        self._without_url += found is None
        outcome = 0
        if reasons:
            outcome = _NUMBERS[reasons[0]]
            self._overlaps.update(reasons)
        self._pending.append((outcome, len(document.content), metadata.harmful_pp))
        if len(self._pending) == FOLDED_AT_ONCE:
            self._fold()

    def _fold(self) -> None:
        """Add up what is pending, so that memory does not grow with the part."""
        if not self._pending:
            return
        outcomes, characters, perplexities = map(np.array, zip(*self._pending, strict=True))
        self._pending = []
        values = {"harmful_perplexity": perplexities.astype(np.float64), "characters": characters}  # None is NaN
        self._documents += np.bincount(outcomes, minlength=len(OUTCOMES))
        self._characters += np.bincount(outcomes, characters, len(OUTCOMES)).astype(np.int64)
        for name, sides in self._histograms.items():
            known = ~np.isnan(values[name])
            sides["read"] += histogram(name, values[name][known])
            sides["kept"] += histogram(name, values[name][known & (outcomes == 0)])

    def check(self, part: Path) -> None:
        """DataError when the part has too many bad lines."""
        allowed = self._settings.max_bad_fraction
        if self._bad_lines > allowed * self.read:
            raise DataError(
                f"{part}: {self._bad_lines} of {self.read} lines are bad, more than corpus.filter.max_bad_fraction "
                f"{allowed}; the first: {self._bad[0]}"
            )

    def counts(self) -> dict[str, Any]:
        """The counts as JSON; `overlaps` counts a document under each reason against it."""
        self._fold()
        kept, *dropped = self._documents.tolist()
        characters_kept, *characters_dropped = self._characters.tolist()
        assert self.read == kept + sum(dropped) + self._bad_lines
        return {
            "read": self.read,
            "kept": kept,
            "bad": self._bad_lines,
            "bad_lines": self._bad,
            "without_url": self._without_url,
            "dropped": dict(zip(REASONS, dropped, strict=True)),
            "overlaps": {reason: self._overlaps[reason] for reason in REASONS},
            "characters": {
                "read": characters_kept + sum(characters_dropped),
                "kept": characters_kept,
                "dropped": dict(zip(REASONS, characters_dropped, strict=True)),
            },
            "histograms": {
                name: {side: bins.tolist() for side, bins in sides.items()} for name, sides in self._histograms.items()
            },
        }
