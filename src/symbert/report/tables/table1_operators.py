"""Table 1: parameters per operator, the paper's beside ours."""

from typing import Any

from symbert.operators import OPERATORS, Operator
from symbert.report import order, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Formula, Table, table_of

Row = dict[str, Any]
LATEX = str.maketrans({"²": "^2", "³": "^3", "ᵀ": r"^\top", "∘": r"\circ ", "·": r"\cdot "})


@exhibit(chapter="Operators", place=2, heading="Table 1: parameters per operator", reads=("parameters",))
def operators_table(data: Data) -> Table:
    """Table 1: logits of each operator and its parameters in one layer, as printed in the paper, corrected, exact with
    biases, and counted on real models. The paper's entry for pairwise is an erratum: its own Table 2 needs h²/n, not
    h/n.
    """
    counts = data.parameters
    names = order.attentions(name for size in counts.values() for name in size["attention_parameters"])
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts. "
        f"Erratum: {published.ERRATUM}{_controls_note(names)}"
    )
    return table_of([_operator_row(name, counts) for name in names], caption, "tab:operators")


def _controls_note(names: list[str]) -> str:
    """What the controls among the operators are; empty without any."""
    control_of = {name: OPERATORS[name].description.control_of for name in names if name in OPERATORS}
    controls = [f"{name} is {operator}" for name, operator in control_of.items() if operator]
    return f" Controls differ in their initial values only: {', '.join(controls)}." if controls else ""


def _operator_row(name: str, counts: Row) -> Row:
    operator = OPERATORS.get(name)
    printed = published.OPERATORS.get(name)
    counted = {size: counts[size]["attention_parameters"].get(name) for size in order.sizes(counts)}
    shapes = {size: counts[size]["shape"] for size, count in counted.items() if count is not None}
    return {
        "attention": name,
        "expression": _formula(operator.formula, space=r"\,") if operator else None,
        "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
        "corrected": _formula(operator.counted_as.leading) if operator else None,
        "exact": _formula(operator.counted_as.parameters) if operator else None,
        **{f"counted_{size}": count for size, count in counted.items()},
        "exact_is_counted": _is_counted(operator, counted, shapes) if operator else None,
    }


def _formula(text: str | None, space: str = " ") -> Formula | None:
    """A formula for readers and for LaTeX; None without one."""
    return Formula(text, text.replace(" ", space).translate(LATEX)) if text else None


def _is_counted(operator: Operator, counted: Row, shapes: Row) -> bool | None:
    """Whether the formula of an operator's parameters gives what was counted; None where it has no formula."""
    if not operator.counted_as.parameters:
        return None
    return all(
        operator.count(shape["hidden_size"], shape["num_attention_heads"]) == counted[size]
        for size, shape in shapes.items()
    )
