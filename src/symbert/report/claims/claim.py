"""What a claim is, what an experiment gives for it, and the words for both."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from symbert.report.comparisons import Comparison, Interval
from symbert.report.data import Data


@dataclass(frozen=True)
class Finding:
    """What an experiment gives, and whether the claim holds then; None where seeds or checkpoints leave it open.

    `hangs_on` says what the claim would hold or fail by, where that is too little.
    """

    ours: str
    holds: bool | None
    hangs_on: str | None = None


Check = Callable[..., Finding]  # of data, a size, and the arguments of a claim


@dataclass(frozen=True)
class Claim:
    """A claim about models of one size, in words.

    `paper` and `authors` are the values that the paper prints and that its authors' raw files give, `rule` what makes
    the claim hold. `unless` says why an experiment may not judge it, such as that it was trained otherwise.
    """

    text: str
    models: str  # 'base: symmetric; pairwise', in the order of values, or 'base: pairwise − original'
    source: str
    check: Check
    paper: str
    rule: str
    authors: str | None = None
    unless: Callable[[Data], str | None] | None = None
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> str:
        """The size of the models."""
        return self.models.partition(":")[0]

    def finding(self, data: Data, size: str) -> Finding:
        """What models of a size give; MissingEvidence says what is missing."""
        return self.check(data, size, **self.arguments)


DECLARED: dict[Check, list[Claim]] = {}  # by the function that checks them


def claim(text: str, models: str, source: str, **more: Any) -> Callable[[Check], Check]:
    """Declare a claim, by the fields of `Claim`, that the decorated function checks."""

    def declare(check: Check) -> Check:
        claims = DECLARED.setdefault(check, [])
        claims.insert(0, Claim(text, models, source, check, **more))  # of several decorators the lowest comes first
        return check

    return declare


def claims_of(paper: ModuleType) -> list[Claim]:
    """The claims that a module declares, in its order."""
    return [claim for check, claims in DECLARED.items() if check.__module__ == paper.__name__ for claim in claims]


def is_above(interval: Interval | None, value: float) -> bool | None:
    """Whether the whole interval is above a value; None when it includes the value, or when there is none."""
    return None if interval is None or interval.includes(value) else interval.low > value


def is_below(interval: Interval | None, value: float) -> bool | None:
    """As `is_above`, below a value."""
    above = is_above(interval, value)
    return None if above is None else not above


def are_all(answers: list[bool | None]) -> bool | None:
    """Whether all are true: false as soon as one is false, None as long as one is open."""
    return False if False in answers else None if None in answers else True


def listed(form: str, values: Iterable[float | None]) -> str:
    """Numbers in words, each written in the same form; a dash for None."""
    return "; ".join("–" if value is None else form.format(value).replace("-", "−") for value in values)


def points(value: float) -> str:
    """A difference in percentage points."""
    return listed("{:.1f}", [round(value, 1) + 0.0])  # adding zero takes the sign from minus zero


def in_points(difference: Comparison) -> str:
    """A difference and the span of its intervals: '0.6 [−0.2, 1.4]'."""
    span = difference.span
    return points(difference.difference) + (f" [{points(span.low)}, {points(span.high)}]" if span else "")
