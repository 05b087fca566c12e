"""Operators: parameters, training (Tables 1 and 2), relations that they express, and the heads of trained models."""

from pathlib import Path
from typing import Any

import pandas as pd

from symbert.operators import OPERATORS
from symbert.report import names, published
from symbert.report.collect import HEAD, MEASURES, SPEEDS, Collection, losses_of
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.statistics import spread


def operators_drawing(data: Collection) -> Path:
    """Figure 1, a drawing of the operators that are built in; an edited operator does not change it."""
    return Path(__file__).parents[1] / "templates/figure1.svg"


def operators_table(data: Collection) -> Table:
    """Table 1: logits of each operator and its parameters in one layer, as printed in the paper, corrected, exact with
    biases, and counted on real models.
    """
    sizes = names.sizes(data.parameters)
    rows = []
    for name in names.attentions(name for size in sizes for name in data.parameters[size]["attention_parameters"]):
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
                "expression": (operator and operator.formula) or None,
                "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
                "corrected": (operator and operator.counted_as.leading) or None,
                "exact": (operator and operator.counted_as.parameters) or None,
                **{f"counted_{size}": count for size, count in counted.items()},
                "exact_is_counted": None if None in exact.values() else exact.items() <= counted.items(),
            }
        )
    return table_of(rows)


def parameters_table(data: Collection) -> Table:
    """Table 2: parameters of each model, counted on real models with tied weights once, and the share saved against
    original; beside them the paper's numbers. It does not depend on scale or source.
    """
    rows = []
    for size in names.sizes(data.parameters):
        model, layer = data.parameters[size]["parameters"], data.parameters[size]["attention_parameters"]
        for name in names.attentions(model):
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
    return table_of(rows)


def _saved(counts: dict[str, int], name: str) -> float | None:
    """The percentage of parameters that an operator saves against `original`, where that was counted."""
    return None if name == "original" or "original" not in counts else 100 * (1 - counts[name] / counts["original"])


def training_table(data: Collection) -> Table | None:
    """Table 2, continued: per model, the validation loss at the last step, standard deviation of logits and entropy of
    attention before training, and speed, measured side by side.
    """
    if data.runs.empty or data.origin is not None:
        return None
    losses, starts = losses_of(data.runs), data.runs.drop_duplicates(["size", "attention", "pretrain_seed"])
    starts = starts.groupby(["size", "attention"])[["logit_std", "attention_entropy"]].agg(_mean)
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
                "validation_loss": decimal_of(loss.mean, 3),
                **({"std": decimal_of(loss.deviation, 3)} if several else {}),
                **{name: decimal_of(mean, 3) for name, mean in starts.loc[size, attention].items()},
                **{name: speed.get(name) for name in SPEEDS},
                "tokens_per_second": decimal_of(speed.get("tokens_per_second"), 0),
            }
        )
    return table_of(rows)


def _mean(values: pd.Series) -> float | None:
    """The mean of what runs logged; None where none did."""
    logged = values.dropna()
    return spread(logged).mean if len(logged) else None


def anatomy_table(data: Collection) -> Table | None:
    """Symmetry and directionality of the scores of heads, width of their logits, entropy of their attention and the
    share that a token gives to itself, for each layer at the last step; the csv has all steps.
    """
    heads = data.anatomy
    if heads is None:
        return None
    layer = [column for column in HEAD if column != "pretrain_seed"]
    means = heads.groupby(layer, sort=False)[MEASURES].mean()
    means = means.astype(object).map(lambda value: decimal_of(value, 3)).reset_index()
    last = means[means["step"] == means.groupby("size")["step"].transform("max")]
    return Table(means, readable=last.drop(columns="step"))


RELATIONS = ("cycle", "partner", "chain")


def probes_table(data: Collection) -> Table | None:
    """Share of tokens whose largest score is that of the token that they are to attend to, along a directed cycle, to
    partners and along a chain, with and without the own position.
    """
    if data.probes is None:
        return None
    return table_of([_probe_row(name, probed) for name, probed in data.probes.groupby("attention", sort=False)])


def _probe_row(name: str, probed: pd.DataFrame) -> dict[str, Any]:
    cells = {}
    for probe in probed.itertuples():
        column = f"{probe.relation}{' others' if probe.own_position == 'no' else ''}"
        cells[column] = f"{probe.share:.2f} [{probe.low:.2f}, {probe.high:.2f}]"
        if probe.relation not in RELATIONS and not pd.isna(probe.steps):
            cells[column] += f" in {probe.steps:.0f}"
    probed = probed[probed["relation"].isin(RELATIONS)]
    return {"attention": name, **cells, "steps": decimal_of(probed["steps"].median(), 0)}
