"""Table 1: parameters per operator, the paper's beside ours."""

from typing import Any

from symbert.report import order, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of
from symbert.report.operators import ERRATUM, OPERATORS

Row = dict[str, Any]
CONTROLS = {"original-gain": "original", "pairwise-identity": "pairwise", "pairwise-scaled": "pairwise"}


@exhibit(
    chapter="Operators",
    place=2,
    heading="Table 1: parameters per operator",
    caption="Table 1: logits of each operator and its parameters in one layer, as printed in the paper, corrected, "
    "exact with biases, and counted on real models. The paper's entry for pairwise is an erratum: its own Table 2 "
    "needs h²/n, not h/n.",
    reads=("parameters",),
)
def operators_table(data: Data) -> Table:
    """Table 1: each operator's logits and its parameters per layer, printed, corrected, exact and counted."""
    counts = data.parameters
    names = order.attentions(name for size in counts.values() for name in size["attention_parameters"])
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts. "
        f"Erratum: {ERRATUM}{_controls_note(names)}"
    )
    return table_of([_operator_row(name, counts) for name in names], caption, "tab:operators")


def _controls_note(names: list[str]) -> str:
    """What the controls among the operators are; empty when there is none."""
    controls = [f"{name} is {CONTROLS[name]}" for name in names if name in CONTROLS]
    return f" Controls differ in their initial values only: {', '.join(controls)}." if controls else ""


def _operator_row(name: str, counts: Row) -> Row:
    operator = OPERATORS.get(name)
    printed = published.OPERATORS.get(name)
    counted = {size: counts[size]["attention_parameters"].get(name) for size in order.sizes(counts)}
    shapes = {size: counts[size]["shape"] for size, count in counted.items() if count is not None}
    return {
        "attention": name,
        "expression": operator and operator.expression,
        "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
        "corrected": operator and operator.leading,
        "exact": operator and operator.exact,
        **{f"counted_{size}": count for size, count in counted.items()},
        "exact_is_counted": operator
        and all(
            operator.count(shape["hidden_size"], shape["num_attention_heads"]) == counted[size]
            for size, shape in shapes.items()
        ),
    }
