"""The order in which sizes and operators appear in every table and figure."""

from collections.abc import Iterable

SIZES = ("tiny", "small", "base")
ATTENTION = (
    "original",
    "symmetric",
    "pairwise",
    "shared",
    "original-gain",
    "pairwise-identity",
    "pairwise-scaled",
)


def sizes(names: Iterable[str]) -> list[str]:
    """Distinct sizes, smallest first; unknown ones follow by name."""
    return sorted(set(names), key=lambda name: _rank(name, SIZES))


def attentions(names: Iterable[str]) -> list[str]:
    """Distinct operators, the paper's first; unknown ones follow by name."""
    return sorted(set(names), key=lambda name: _rank(name, ATTENTION))


def model_rank(size: str, attention: str) -> tuple[tuple[int, str], tuple[int, str]]:
    """Sort key of a model: by size, then by operator."""
    return _rank(size, SIZES), _rank(attention, ATTENTION)


def _rank(name: str, known: tuple[str, ...]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known), name)
