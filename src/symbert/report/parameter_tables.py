"""Tables 1 and 2: parameters per operator and per model, the paper's beside ours."""

from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json
from symbert.operators import OPERATORS, Operator
from symbert.report import order, published
from symbert.report.formats import Formula, Table, table_of

Row = dict[str, Any]
REMEDY = "run count-parameters again"
SHAPE = {"num_hidden_layers": int, "num_attention_heads": int, "hidden_size": int, "intermediate_size": int}
COUNTS = {
    "shape": {**SHAPE, "vocab_size": int},
    "parameters": {str: int},
    "attention_parameters": {str: int},
}
LATEX = str.maketrans({"²": "^2", "³": "^3", "ᵀ": r"^\top", "∘": r"\circ ", "·": r"\cdot "})


def read_parameters(file: Path) -> Row:
    """The counts of count-parameters; DataError names the file."""
    found = read_json(file, {str: COUNTS}, REMEDY)
    if not found:
        raise DataError(f"{file}: counts of no size; {REMEDY}")
    return found


def operators_table(counts: Row) -> Table:
    """Table 1: each operator's logits and its parameters per layer, printed, corrected, exact and counted."""
    names = order.attentions(name for size in counts.values() for name in size["attention_parameters"])
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts. "
        f"Erratum: {published.ERRATUM}{_controls_note(names)}"
    )
    return table_of([_operator_row(name, counts) for name in names], caption, "tab:operators")


def _controls_note(names: list[str]) -> str:
    """What the controls among the operators are; empty when there is none."""
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
    """A formula for readers and for LaTeX; None where there is none."""
    return Formula(text, text.replace(" ", space).translate(LATEX)) if text else None


def _is_counted(operator: Operator, counted: Row, shapes: Row) -> bool | None:
    """Whether the formula of an operator's parameters gives what was counted; None where it has no formula."""
    if not operator.counted_as.parameters:
        return None
    return all(
        operator.count(shape["hidden_size"], shape["num_attention_heads"]) == counted[size]
        for size, shape in shapes.items()
    )


def parameters_table(counts: Row) -> Table:
    """Table 2: parameters of each model and the share saved against `original`."""
    rows = [
        _parameter_row(size, name, counts[size])
        for size in order.sizes(counts)
        for name in order.attentions(counts[size]["parameters"])
    ]
    shapes = [f"{size} ({_shape(counts[size]['shape'])})" for size in order.sizes(counts)]
    caption = (
        f"Parameters per model, tied weights counted once, and the share saved against original; beside them table 2 "
        f"of {published.PAPER}. Attention: query, key, value and factors of one layer; beside their saving what "
        f"{published.SHARED_PAPER} prints for shared (66.5366, cut off). Sizes: {'; '.join(shapes)}."
    )
    return table_of(rows, caption, "tab:parameters")


def _shape(shape: Row) -> str:
    return (
        f"{shape['num_hidden_layers']} layers, {shape['num_attention_heads']} heads, hidden {shape['hidden_size']}, "
        f"intermediate {shape['intermediate_size']}, vocabulary {shape['vocab_size']:,}"
    )


def _parameter_row(size: str, name: str, counts: Row) -> Row:
    model, layer = counts["parameters"], counts["attention_parameters"]
    printed = published.PARAMETERS.get((size, name))
    return {
        "size": size,
        "attention": name,
        "parameters": model[name],
        "saved_percent": _saved(model, name),
        "paper_parameters": printed,
        "paper_saved_percent": published.PARAMETERS_SAVED.get((size, name)),
        "match": None if printed is None else printed == model[name],
        "attention_parameters": layer[name],
        "attention_saved_percent": _saved(layer, name),
        "printed_attention_saved_percent": published.ATTENTION_SAVED.get((size, name)),
    }


def _saved(counts: dict[str, int], name: str) -> float | None:
    """The percentage of parameters that an operator saves against `original`, where that was counted."""
    return None if name == "original" or "original" not in counts else 100 * (1 - counts[name] / counts["original"])
