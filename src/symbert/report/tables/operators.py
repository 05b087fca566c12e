"""Operators: parameters, training (Tables 1 and 2), and the heads of trained models."""

from pathlib import Path

import pandas as pd

from symbert.report import published
from symbert.report.collect import HEAD, MEASURES, SPEEDS, Collection, losses_of
from symbert.report.formats import Table, table_of
from symbert.report.statistics import spread
from symbert.report.tidy import INITIAL


def operators_drawing(data: Collection) -> Path | None:
    """How a token x attends to a token y, by each built-in operator. Coloured, thick frames: learned; thin frames:
    computed, in each head. h: hidden size; n: heads; d = h/n. S: a d × d matrix per head; a, b, c: vectors of length h;
    ∘: element by element. Parameters: of a layer, with biases.
    """
    return Path(__file__).parents[1] / "templates/figure1.svg" if data.parameters else None


def operators_table(data: Collection) -> Table | None:
    """Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 of
    arXiv 2406.06366; corrected: leading terms; exact: with biases; counted: by the runs, in other sizes by this
    formula. Erratum: the paper prints O(2h² + h/n) for pairwise; its own table 2 needs 2h² + h²/n: base pairwise has
    103,017,018 − 102,427,194 = 589,824 = 12 × 768²/12 parameters more than base symmetric, over 12 layers with h = 768
    and n = 12 heads.
    """
    sizes = data.known.sizes(data.parameters)
    rows = []
    for name in data.known.attentions(name for size in sizes for name in data.parameters[size]["attention_parameters"]):
        operator, printed = data.known.operators.get(name), published.OPERATORS.get(name)
        described = operator and operator.counted_as(data.known.operators)
        counted = {size: data.parameters[size]["attention_parameters"].get(name) for size in sizes}
        shapes = {size: data.parameters[size]["shape"] for size in sizes if counted[size] is not None}
        exact = {
            size: operator and operator.count(shape["hidden_size"], shape["num_attention_heads"], data.known.operators)
            for size, shape in shapes.items()
        }
        rows.append(
            {
                "attention": name,
                "expression": (operator and operator.formula) or None,
                "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
                "corrected": (described and described.leading) or None,
                "exact": (described and described.parameters) or None,
                **{f"counted_{size}": count for size, count in counted.items()},
                "exact_is_counted": None if None in exact.values() else exact.items() <= counted.items(),
            }
        )
    return table_of(rows) if rows else None


def parameters_table(data: Collection) -> Table | None:
    """Parameters per model with BERT’s 30,522 word pieces, whatever was trained here, tied weights counted once, and
    the share saved against original; beside them table 2 of arXiv 2406.06366. Attention: query, key, value and factors
    of one layer; beside their saving what arXiv 2412.00359 prints for shared (66.5366, cut off).
    """
    rows = []
    for size in data.known.sizes(data.parameters):
        model, layer = data.parameters[size]["parameters"], data.parameters[size]["attention_parameters"]
        for name in data.known.attentions(model):
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
    return table_of(rows) if rows else None


def _saved(counts: dict[str, int], name: str) -> float | None:
    """The percentage of parameters that an operator saves against `original`, where that was counted."""
    return None if name == "original" or "original" not in counts else 100 * (1 - counts[name] / counts["original"])


def training_table(data: Collection) -> Table | None:
    """Validation loss: nats per masked token at the last step, with several pre-training seeds their mean and sample
    standard deviation. Logit std, logit step and attention entropy (nats): of the untrained model, means over its
    layers; a logit step is the mean absolute change of the logit of two distinct tokens by one optimizer step of the
    operator’s weights at the peak learning rate. Speed: medians over rounds of one step of each operator, in one
    process on one machine; of original: of its step in the same round. MFU: FLOPs of the model in percent of the peak
    of the device’s data sheet.
    """
    if data.runs.empty or data.origin is not None:
        return None
    losses, starts = losses_of(data.runs), data.runs.drop_duplicates(["size", "attention", "pretrain_seed"])
    starts = starts.groupby(["size", "attention"])[list(INITIAL)].agg(_mean)
    speeds = data.speeds.set_index(["size", "attention"]).to_dict("index")
    several = max(map(len, losses.values())) > 1
    rows = []
    for (size, attention), values in losses.items():
        loss, speed = spread(values.iloc[:, -1]), speeds.get((size, attention), {})
        rows.append(
            {
                "size": size,
                "attention": attention,
                **({"pretrain_seeds": loss.count} if several else {}),
                "validation_loss": loss.mean,
                **({"std": loss.deviation} if several else {}),
                **starts.loc[size, attention].to_dict(),
                **{name: speed.get(name) for name in SPEEDS},
            }
        )
    decimals = dict.fromkeys(("validation_loss", "std", *INITIAL), 3)
    return table_of(rows, decimals=decimals | {"tokens_per_second": 0})


def _mean(values: pd.Series) -> float | None:
    """The mean of what runs logged; None where none did."""
    logged = values.dropna()
    return spread(logged).mean if len(logged) else None


def anatomy_table(data: Collection) -> Table | None:
    """Means over the heads of each layer at the last step, on the first validation rows. Symmetry: 1 where the score of
    two tokens is the same both ways, −1 where it changes sign, about 0 at random; directionality: 1 where few columns
    of the matrix of scores stand out, −1 where few rows do (Saponati et al. 2025, arXiv 2502.10927). Attention entropy
    in nats; own share: of a token’s attention, the share that it gives to itself. The csv has all steps.
    """
    heads = data.anatomy
    if heads is None:
        return None
    layer = [column for column in HEAD if column != "pretrain_seed"]
    means = heads.groupby(layer, sort=False)[MEASURES].mean().reset_index().astype(object)
    last = means[means["step"] == means.groupby("size")["step"].transform("max")]
    return Table(means, readable=last.drop(columns="step"), decimals=dict.fromkeys(MEASURES, 3))
