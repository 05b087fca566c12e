"""Table 2: parameters per model, the paper's beside ours."""

from typing import Any

from symbert.report import order, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of

Row = dict[str, Any]


@exhibit(chapter="Operators", place=3, heading="Table 2: parameters per model", reads=("parameters",))
def parameters_table(data: Data) -> Table:
    """Table 2: parameters of each model, counted on real models with tied weights once, and the share saved against
    original; beside them the paper's numbers. Attention: parameters of query, key, value and factors in one layer. It
    does not depend on scale or source.
    """
    counts = data.parameters
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
