"""Tables 1 and 2: parameters of each operator and model, and the loss and time of its training."""

from pathlib import Path

import pandas as pd

from symbert.operators import OPERATORS
from symbert.report import captions, order, published
from symbert.report.collect import Collection
from symbert.report.formats import Formula, Rounded, Table, decimal_of, table_of
from symbert.report.runs import losses_of
from symbert.report.speeds import SHOWN
from symbert.report.statistics import spread

LATEX = str.maketrans({"√": r"\sqrt ", "²": "^2", "³": "^3", "ᵀ": r"^\top", "∘": r"\circ ", "·": r"\cdot "})


def operators_drawing(data: Collection) -> Path:
    """Figure 1, a drawing of the operators that are built in; an edited operator does not change it."""
    return Path(__file__).parents[1] / "templates/figure1.svg"


def operators_table(data: Collection) -> Table:
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


def parameters_table(data: Collection) -> Table:
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


OF_SEVERAL = ("pretrain_seeds", "std")  # columns that take several pre-training seeds
SPEED = (
    " Speed: median over rounds that take one optimizer step of each operator, in one process; of original: the median "
    "share of the step time of original in the same round{claim}. MFU: FLOPs of the model, with its head on masked "
    "positions only, in percent of the dense peak of the device's data sheet in that precision, a dash where none is "
    "known. Machines: {machines}."
)


def training_table(data: Collection) -> Table | None:
    """Table 2, continued: what training gave and took, per model: validation loss at the last step, standard deviation
    of logits and entropy of attention before training, and speed, measured side by side.
    """
    if data.runs.empty or data.origin is not None:
        return None
    losses, runs = losses_of(data.runs), data.runs.drop_duplicates(["size", "attention", "pretrain_seed"])
    starts = runs.set_index(["size", "attention"])
    speeds = data.speeds.set_index(["size", "attention"])
    pretrain_seeds = max(map(len, losses.values()))
    hidden = () if pretrain_seeds > 1 else OF_SEVERAL
    rows = []
    for (size, attention), seeds in losses.items():
        loss = spread(seeds.iloc[:, -1])
        speed = speeds.loc[(size, attention)] if (size, attention) in speeds.index else {}
        row = {
            "size": size,
            "attention": attention,
            "pretrain_seeds": loss.count,
            "validation_loss": decimal_of(loss.mean, 3),
            "std": decimal_of(loss.deviation, 3),
            **{name: _mean(starts.loc[[(size, attention)], name]) for name in ("logit_std", "attention_entropy")},
            **{name: speed.get(name) for name in SHOWN},
        }
        row["tokens_per_second"] = decimal_of(row["tokens_per_second"], 0)
        rows.append({key: value for key, value in row.items() if key not in hidden})
    return table_of(rows, _caption(data, pretrain_seeds), "tab:training")


def _mean(values: pd.Series) -> Rounded | None:
    """The mean of what runs logged; None where none did."""
    logged = values.dropna()
    return decimal_of(spread(logged).mean, 3) if len(logged) else None


def _caption(data: Collection, pretrain_seeds: int) -> str:
    wording, speeds, speed = captions.wording_of(data.settings), data.speeds, ""
    if len(speeds):
        machines = dict(zip(speeds["size"], speeds["machine"], strict=True))
        is_claimed = "shared" in set(speeds["attention"])
        claim = f" ({published.SHARED_PAPER} claims about a tenth less time for shared)" if is_claimed else ""
        speed = SPEED.format(claim=claim, machines="; ".join(f"{size} on {it}" for size, it in machines.items()))
    of_several = (
        "Values are means over pre-training seeds; std is the sample standard deviation of their validation losses. "
    )
    return (
        f"Table 2, continued: what training gave and took ({captions.seeds_of(pretrain_seeds)})."
        f"\n\n{wording.experiment}. {wording.pretraining}. {of_several if pretrain_seeds > 1 else ''}"
        "Validation loss: nats per masked token at the last step. Logit std and attention entropy (nats): of the "
        f"untrained model, means over its layers.{speed}"
    )
