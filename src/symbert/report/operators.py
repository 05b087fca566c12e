"""How many parameters each operator has in one layer: exact formulas, and the paper's erratum in table 1."""

from collections.abc import Callable
from dataclasses import dataclass

from symbert.report.formats import Formula

ERRATUM = (
    "The paper prints O(2h² + h/n) for pairwise; its own table 2 needs 2h² + h²/n: base pairwise has "
    "103,017,018 − 102,427,194 = 589,824 = 12 × 768²/12 parameters more than base symmetric, over 12 layers "
    "with h = 768 and n = 12 heads."
)


@dataclass(frozen=True)
class Operator:
    """Logits of one head for tokens x and y, and parameters of query, key, value and factors of one layer.

    h is the hidden size and n the number of heads; `exact` includes biases, `leading` does not.
    """

    expression: Formula
    leading: Formula
    exact: Formula
    count: Callable[[int, int], int]


_ORIGINAL = Operator(
    Formula("Q(x) K(y)ᵀ", r"Q(x)\,K(y)^\top"),
    Formula("3h²", "3h^2"),
    Formula("3(h² + h)", "3(h^2 + h)"),
    lambda h, n: 3 * (h * h + h),
)
_PAIRWISE = Operator(
    Formula("Q(x) S Q(y)ᵀ", r"Q(x)\,S\,Q(y)^\top"),
    Formula("2h² + h²/n", "2h^2 + h^2/n"),
    Formula("2(h² + h) + h²/n", "2(h^2 + h) + h^2/n"),
    lambda h, n: 2 * (h * h + h) + h * h // n,
)

OPERATORS: dict[str, Operator] = {
    "original": _ORIGINAL,
    "symmetric": Operator(
        Formula("Q(x) Q(y)ᵀ", r"Q(x)\,Q(y)^\top"),
        Formula("2h²", "2h^2"),
        Formula("2(h² + h)", "2(h^2 + h)"),
        lambda h, n: 2 * (h * h + h),
    ),
    "pairwise": _PAIRWISE,
    "shared": Operator(
        Formula("(P(x)∘a) (P(y)∘b)ᵀ", r"(P(x)\circ a)\,(P(y)\circ b)^\top"),
        Formula("h²", "h^2"),
        Formula("(h² + h) + 3h", "(h^2 + h) + 3h"),
        lambda h, n: h * h + 4 * h,
    ),
    "original-gain": _ORIGINAL,
    "pairwise-identity": _PAIRWISE,
    "pairwise-scaled": _PAIRWISE,
}
