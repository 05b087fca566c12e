"""Counts of documents by outcome."""

from collections import Counter
from pathlib import Path
from typing import Any

from symbert.configuration import FilterSettings
from symbert.corpus.document import Document
from symbert.corpus.filters import REASONS
from symbert.errors import DataError

BAD_LINES_SHOWN = 10


class Tally:
    """Counts of one part, and its bad lines, of which a share of `max_bad_fraction` is allowed."""

    def __init__(self, settings: FilterSettings) -> None:
        self.read = 0  # lines, bad ones included
        self._settings = settings
        self._bad: list[str] = []
        self._bad_lines = self._without_url = 0
        self._documents: Counter[str] = Counter()
        self._characters: Counter[str] = Counter()
        self._overlaps: Counter[str] = Counter()

    def bad(self, error: DataError) -> None:
        """Count a bad line; raise `error` when none is allowed."""
        if not self._settings.max_bad_fraction:
            raise error
        self.read += 1
        self._bad_lines += 1
        if len(self._bad) < BAD_LINES_SHOWN:
            self._bad.append(str(error))

    def document(self, document: Document, listed: frozenset[str] | None, reasons: list[str]) -> None:
        """Count a document with the categories of its URL and all reasons against it, in order; none: it is kept."""
        outcome, characters = reasons[0] if reasons else "kept", len(document.content)
        self.read += 1
        self._without_url += listed is None
        self._overlaps.update(reasons)
        self._documents[outcome] += 1
        self._characters[outcome] += characters

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
        assert self.read == self._documents.total() + self._bad_lines
        characters = {"read": self._characters.total(), "kept": self._characters["kept"]}
        return {
            "read": self.read,
            "kept": self._documents["kept"],
            "bad": self._bad_lines,
            "bad_lines": self._bad,
            "without_url": self._without_url,
            "dropped": {reason: self._documents[reason] for reason in REASONS},
            "overlaps": {reason: self._overlaps[reason] for reason in REASONS},
            "characters": characters | {"dropped": {reason: self._characters[reason] for reason in REASONS}},
        }
