"""Tables 1 and 2: parameters per operator and per model, the paper's beside ours."""

from typing import Any

from symbert.report import order, published
from symbert.report.formats import Table, table_of
from symbert.report.operators import ERRATUM, OPERATORS

Row = dict[str, Any]


def operators_table(counts: Row) -> Table:
    """Table 1: each operator's logits and its parameters per layer, printed, corrected, exact and counted."""
    names = order.attentions(name for size in counts.values() for name in size["attention_parameters"])
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts. "
        f"Erratum: {ERRATUM}"
    )
    return table_of([_operator_row(name, counts) for name in names], caption, "tab:operators")


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


def parameters_table(counts: Row) -> Table:
    """Table 2: parameters of each model and the share saved against `original`."""
    rows = [
        _parameter_row(size, name, counts[size]["parameters"])
        for size in order.sizes(counts)
        for name in order.attentions(counts[size]["parameters"])
    ]
    shapes = [f"{size} ({_shape(counts[size]['shape'])})" for size in order.sizes(counts)]
    caption = (
        f"Parameters per model, tied weights counted once, and the share saved against original; beside them table 2 "
        f"of {published.PAPER}. Sizes: {'; '.join(shapes)}."
    )
    return table_of(rows, caption, "tab:parameters")


def _shape(shape: Row) -> str:
    return (
        f"{shape['num_hidden_layers']} layers, {shape['num_attention_heads']} heads, hidden {shape['hidden_size']}, "
        f"intermediate {shape['intermediate_size']}, vocabulary {shape['vocab_size']:,}"
    )


def _parameter_row(size: str, name: str, counts: dict[str, int]) -> Row:
    printed = published.PARAMETERS.get((size, name))
    original = counts.get("original")
    return {
        "size": size,
        "attention": name,
        "parameters": counts[name],
        "saved_percent": 100 * (1 - counts[name] / original) if original and name != "original" else None,
        "paper_parameters": printed,
        "paper_saved_percent": published.PARAMETERS_SAVED.get((size, name)),
        "match": None if printed is None else printed == counts[name],
    }
