"""The order in which sizes and operators appear in every table and figure."""

from collections.abc import Iterable, Sequence

from symbert.operators import OPERATORS
from symbert.sizes import SIZES, by_parameters


def sizes(names: Iterable[str]) -> list[str]:
    """Distinct sizes, smallest first; unknown ones follow by name."""
    return sorted(set(names), key=lambda name: _rank(name, by_parameters(SIZES)))


def attentions(names: Iterable[str]) -> list[str]:
    """Distinct operators, the paper's first; unknown ones follow by name."""
    return sorted(set(names), key=lambda name: _rank(name, list(OPERATORS)))


def model_rank(size: str, attention: str) -> tuple[tuple[int, str], tuple[int, str]]:
    """Sort key of a model: by size, then by operator."""
    return _rank(size, by_parameters(SIZES)), _rank(attention, list(OPERATORS))


def _rank(name: str, known: Sequence[str]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known), name)
