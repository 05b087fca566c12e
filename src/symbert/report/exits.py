"""Which models' exits from the plateau are compared with which, and what the comparisons show."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from symbert.report.inference import holm
from symbert.report.order import attentions
from symbert.report.runs import survival_of
from symbert.report.survival import ExitComparison, compare

FEWEST = 3  # pre-training seeds of which exits are compared


@dataclass(frozen=True)
class ExitContrast:
    """The exits of a model beside those of its reference."""

    size: str
    model: str
    reference: str
    result: ExitComparison
    corrected: float  # p value with Holm's correction over the contrasts of a size

    @property
    def verdict(self) -> str:
        """shorter, longer, within 25 % or undecided."""
        return self.result.verdict(self.corrected)


def exit_contrasts(
    models: Mapping[tuple[str, str], pd.DataFrame], named: Sequence[Sequence[str]] | None
) -> list[ExitContrast]:
    """The contrasts of losses by size and operator, where both operators have the same three seeds or more.

    `named` are the pairs that were named beforehand; None compares each operator with the first of its size.
    """
    contrasts = []
    for size in dict.fromkeys(size for size, _ in models):
        names = attentions(name for of, name in models if of == size)
        pairs = [(name, names[0]) for name in names[1:]] if named is None else named
        compared = []
        for model, reference in pairs:
            ours, theirs = models[size, model], models[size, reference]
            if len(ours) >= FEWEST and ours.index.equals(theirs.index):
                compared.append((model, reference, compare(survival_of(ours), survival_of(theirs))))
        corrected = holm([result.p_value for *_, result in compared]).tolist()
        contrasts += [ExitContrast(size, *one, p_value) for one, p_value in zip(compared, corrected, strict=True)]
    return contrasts
