"""Table 2: parameters per model, the paper's beside ours."""

from symbert.report import order, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of


@exhibit(chapter="Operators", place=3, heading="Table 2: parameters per model", reads=("parameters",))
def parameters_table(data: Data) -> Table:
    """Table 2: parameters of each model, counted on real models with tied weights once, and the share saved against
    original; beside them the paper's numbers. Attention: parameters of query, key, value and factors in one layer. It
    does not depend on scale or source.
    """
    rows, shapes = [], []
    for size in order.sizes(data.parameters):
        counts = data.parameters[size]
        shapes.append(
            "{size} ({num_hidden_layers} layers, {num_attention_heads} heads, hidden {hidden_size}, "
            "intermediate {intermediate_size}, vocabulary {vocab_size:,})".format(size=size, **counts["shape"])
        )
        model, layer = counts["parameters"], counts["attention_parameters"]
        for name in order.attentions(model):
            printed = published.PARAMETERS.get((size, name))
            rows.append(
                {
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
            )
    caption = (
        f"Parameters per model, tied weights counted once, and the share saved against original; beside them table 2 "
        f"of {published.PAPER}."
        f"\n\nAttention: query, key, value and factors of one layer; beside their saving what "
        f"{published.SHARED_PAPER} prints for shared (66.5366, cut off). Sizes: {'; '.join(shapes)}."
    )
    return table_of(rows, caption, "tab:parameters")


def _saved(counts: dict[str, int], name: str) -> float | None:
    """The percentage of parameters that an operator saves against `original`, where that was counted."""
    return None if name == "original" or "original" not in counts else 100 * (1 - counts[name] / counts["original"])
