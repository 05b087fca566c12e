"""Counts of documents by outcome."""

from collections import Counter
from pathlib import Path

import msgspec

from symbert.corpus.document import Document, LongDocument
from symbert.corpus.filters import REASONS
from symbert.errors import DataError

BAD_LINES_SHOWN = 10


class Characters(msgspec.Struct, frozen=True):
    """Characters of documents by outcome."""

    read: int  # of documents: bad lines are none
    kept: int
    dropped: dict[str, int]  # by the reason that is counted


class Counts(msgspec.Struct, frozen=True):
    """Documents of a part by outcome: `read` is the sum of those that are kept, dropped and bad."""

    part: str
    file_sha256: str
    read: int
    kept: int
    bad: int  # lines
    bad_lines: list[str]  # what is wrong with the first of them
    without_url: int
    dropped: dict[str, int]  # by the reason that is counted
    overlaps: dict[str, int]  # by each reason against them
    characters: Characters


class Tally:
    """Counts of one part, and its bad lines, of which a share of `max_bad_fraction` is allowed."""

    def __init__(self, max_bad_fraction: float = 0.0) -> None:
        self.read = 0  # lines, bad ones included
        self._allowed = max_bad_fraction
        self._bad: list[str] = []
        self._bad_lines = self._without_url = 0
        self._documents: Counter[str] = Counter()
        self._characters: Counter[str] = Counter()
        self._overlaps: Counter[str] = Counter()

    def bad(self, error: DataError) -> None:
        """Count a bad line; raise `error` when none is allowed."""
        if not self._allowed:
            raise error
        self.read += 1
        self._bad_lines += 1
        if len(self._bad) < BAD_LINES_SHOWN:
            self._bad.append(str(error))

    def document(self, document: Document | LongDocument, listed: frozenset[str] | None, reasons: list[str]) -> None:
        """Count a document with the categories of its URL and all reasons against it, in order; none: it is kept."""
        outcome, characters = reasons[0] if reasons else "kept", document.length
        self.read += 1
        self._without_url += listed is None
        self._overlaps.update(reasons)
        self._documents[outcome] += 1
        self._characters[outcome] += characters

    def check(self, part: Path) -> None:
        """DataError when the part has too many bad lines."""
        if self._bad_lines > self._allowed * self.read:
            raise DataError(
                f"{part}: {self._bad_lines} of {self.read} lines are bad, more than corpus.filter.max_bad_fraction "
                f"{self._allowed}; the first: {self._bad[0]}"
            )

    def counts(self, part: str, file_sha256: str) -> Counts:
        """The counts of a part by its name and the digest of its file."""
        assert self.read == self._documents.total() + self._bad_lines
        return Counts(
            part=part,
            file_sha256=file_sha256,
            read=self.read,
            kept=self._documents["kept"],
            bad=self._bad_lines,
            bad_lines=self._bad,
            without_url=self._without_url,
            dropped={reason: self._documents[reason] for reason in REASONS},
            overlaps={reason: self._overlaps[reason] for reason in REASONS},
            characters=Characters(
                read=self._characters.total(),
                kept=self._characters["kept"],
                dropped={reason: self._characters[reason] for reason in REASONS},
            ),
        )


def are_few(counts: list[Counts]) -> bool:
    """Whether fewer than half of the documents were kept."""
    return 2 * sum(part.kept for part in counts) < sum(part.read for part in counts)


def kept_in_words(counts: list[Counts]) -> str:
    """Such as `1 of 137 documents were kept (perplexity_too_high 99, quality_warning 37)`, the commonest first."""
    kept, read = sum(part.kept for part in counts), sum(part.read for part in counts)
    dropped = Counter({"bad": sum(part.bad for part in counts)})
    for part in counts:
        dropped.update(part.dropped)
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in dropped.most_common() if number)
    return f"{kept:,} of {read:,} documents were kept{f' ({reasons})' if reasons else ''}"
