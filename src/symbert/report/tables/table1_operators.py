"""Table 1: parameters per operator, the paper's beside ours."""

from symbert.operators import OPERATORS
from symbert.report import order, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Formula, Table, table_of

LATEX = str.maketrans({"√": r"\sqrt ", "²": "^2", "³": "^3", "ᵀ": r"^\top", "∘": r"\circ ", "·": r"\cdot "})


@exhibit(chapter="Operators", place=2, heading="Table 1: parameters per operator", reads=("parameters",))
def operators_table(data: Data) -> Table:
    """Table 1: logits of each operator and its parameters in one layer, as printed in the paper, corrected, exact with
    biases, and counted on real models. The paper's entry for pairwise is an erratum: its own Table 2 needs h²/n, not
    h/n.
    """
    sizes = order.sizes(data.parameters)
    names = order.attentions(name for size in sizes for name in data.parameters[size]["attention_parameters"])
    rows = []
    for name in names:
        operator, printed = OPERATORS.get(name), published.OPERATORS.get(name)
        counted = {size: data.parameters[size]["attention_parameters"].get(name) for size in sizes}
        shapes = {size: data.parameters[size]["shape"] for size in sizes if counted[size] is not None}
        exact = {
            size: operator and operator.count(shape["hidden_size"], shape["num_attention_heads"])
            for size, shape in shapes.items()
        }
        rows.append(
            {
                "attention": name,
                "expression": _formula(operator and operator.formula, space=r"\,"),
                "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
                "corrected": _formula(operator and operator.counted_as.leading),
                "exact": _formula(operator and operator.counted_as.parameters),
                **{f"counted_{size}": count for size, count in counted.items()},
                "exact_is_counted": None if None in exact.values() else exact.items() <= counted.items(),
            }
        )
    control_of = {name: OPERATORS[name].description.control_of for name in names if name in OPERATORS}
    controls = [f"{name} is {operator}" for name, operator in control_of.items() if operator]
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts."
        f"\n\nErratum: {published.ERRATUM}"
    )
    caption += f" Controls have the parameters of another operator: {', '.join(controls)}." if controls else ""
    return table_of(rows, caption, "tab:operators")


def _formula(text: str | None, space: str = " ") -> Formula | None:
    """A formula for readers and for LaTeX; None for an operator without one."""
    return Formula(text, text.replace(" ", space).translate(LATEX)) if text else None
