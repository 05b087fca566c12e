"""What became of the documents of a part: every one is counted, once."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from symbert.corpus.blocklist import Found
from symbert.corpus.document import Document
from symbert.corpus.histograms import histogram
from symbert.corpus.reasons import REASONS
from symbert.errors import DataError
from symbert.settings import FilterSettings

BAD_LINES_SHOWN = 10


class Tally:
    """Counts of one part, and its bad lines, of which `max_bad_fraction` are borne."""

    def __init__(self, settings: FilterSettings) -> None:
        self._settings = settings
        self._blocked = frozenset(settings.blocked_categories)
        self._bad: list[str] = []
        self._bad_lines = 0
        self._dropped: Counter[str] = Counter()
        self._overlaps: Counter[str] = Counter()
        self._categories = {name: Counter() for name in ("any", *settings.blocked_categories)}
        self._characters: list[int] = []
        self._perplexities: list[float | None] = []
        self._is_kept: list[bool] = []

    @property
    def read(self) -> int:
        """Lines read, bad ones included."""
        return len(self._is_kept) + self._bad_lines

    def bad(self, error: DataError) -> None:
        """Count a bad line; raise `error` when none is borne."""
        if not self._settings.max_bad_fraction:
            raise error
        self._bad_lines += 1
        if len(self._bad) < BAD_LINES_SHOWN:
            self._bad.append(str(error))

    def document(self, document: Document, found: Found, reasons: list[str]) -> None:
        """Count a document with all reasons against it, in order; none: it is kept."""
        self._characters.append(len(document.content))
        self._perplexities.append(document.metadata.harmful_pp)
        self._is_kept.append(not reasons)
        if reasons:
            self._dropped[reasons[0]] += 1
            self._overlaps.update(reasons)
        if found.suffix or document.metadata.categories:
            self._compare(frozenset(document.metadata.categories or ()) & self._blocked, found)

    def _compare(self, in_metadata: frozenset[str], found: Found) -> None:
        """Where OSCAR's categories and those of the URL in the blocklist differ, for each blocked one and for any."""
        exact, suffix = found.exact & self._blocked, found.suffix & self._blocked
        by_url = {"exact": exact, "suffix": suffix}[self._settings.match]
        for name in in_metadata | suffix:
            self._categories[name].update(_agreement(name in in_metadata, name in by_url))
            self._categories[name]["parent_only"] += name not in exact and name in suffix
        self._categories["any"].update(_agreement(bool(in_metadata), bool(by_url)))
        self._categories["any"]["parent_only"] += not exact and bool(suffix)

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
        kept = np.array(self._is_kept, bool)
        assert self.read == kept.sum() + self._bad_lines + self._dropped.total()
        characters = np.array(self._characters, np.int64)
        perplexities = np.array(self._perplexities, np.float64)  # NaN for None
        return {
            "read": self.read,
            "kept": int(kept.sum()),
            "bad": self._bad_lines,
            "bad_lines": self._bad,
            "dropped": {reason: self._dropped[reason] for reason in REASONS},
            "overlaps": {reason: self._overlaps[reason] for reason in REASONS},
            "characters": {"read": int(characters.sum()), "kept": int(characters[kept].sum())},
            "categories": {
                name: {kind: counter[kind] for kind in ("both", "metadata_only", "url_only", "parent_only")}
                for name, counter in self._categories.items()
            },
            "histograms": {
                "harmful_perplexity": _histograms("harmful_perplexity", perplexities, kept),
                "characters": _histograms("characters", characters, kept),
            },
        }


def _histograms(name: str, values: np.ndarray, kept: np.ndarray) -> dict[str, list[int]]:
    """Of the values that are numbers."""
    known = ~np.isnan(values)
    return {"read": histogram(name, values[known]), "kept": histogram(name, values[known & kept])}


def _agreement(in_metadata: bool, by_url: bool) -> list[str]:
    kinds = {(True, True): ["both"], (True, False): ["metadata_only"], (False, True): ["url_only"]}
    return kinds.get((in_metadata, by_url), [])
