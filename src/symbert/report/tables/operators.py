"""Operators: parameters, training (Tables 1 and 2), relations that they express, and the heads of trained models."""

from pathlib import Path
from typing import Any

import pandas as pd

from symbert.operators import OPERATORS
from symbert.report import captions, order, published
from symbert.report.collect import HEAD, MEASURES, SPEEDS, Collection, losses_of
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.statistics import spread


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
    rows, controls = [], []
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
                "expression": (operator and operator.formula) or None,
                "printed": f"{printed} (erratum)" if name == "pairwise" else printed,
                "corrected": (operator and operator.counted_as.leading) or None,
                "exact": (operator and operator.counted_as.parameters) or None,
                **{f"counted_{size}": count for size, count in counted.items()},
                "exact_is_counted": None if None in exact.values() else exact.items() <= counted.items(),
            }
        )
        if operator and operator.description.control_of:
            controls.append(f"{name} is {operator.description.control_of}")
    caption = (
        "Parameters of query, key, value and factors in one layer (h: hidden size, n: heads). Printed: as in table 1 "
        f"of {published.PAPER}; corrected: leading terms; exact: with biases, checked against the counts."
        f"\n\nErratum: {published.ERRATUM}"
    )
    caption += f" Controls have the parameters of another operator: {', '.join(controls)}." if controls else ""
    return table_of(rows, caption, "tab:operators")


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


def training_table(data: Collection) -> Table | None:
    """Table 2, continued: what training gave and took, per model: validation loss at the last step, standard deviation
    of logits and entropy of attention before training, and speed, measured side by side.
    """
    if data.runs.empty or data.origin is not None:
        return None
    losses, starts = losses_of(data.runs), data.runs.drop_duplicates(["size", "attention", "pretrain_seed"])
    starts = starts.groupby(["size", "attention"])[["logit_std", "attention_entropy"]].agg(_mean)
    speeds = data.speeds.set_index(["size", "attention"]).to_dict("index")
    seeds = max(map(len, losses.values()))
    rows = []
    for (size, attention), values in losses.items():
        loss, speed = spread(values.iloc[:, -1]), speeds.get((size, attention), {})
        rows.append(
            {
                "size": size,
                "attention": attention,
                **({"pretrain_seeds": loss.count} if seeds > 1 else {}),
                "validation_loss": decimal_of(loss.mean, 3),
                **({"std": decimal_of(loss.deviation, 3)} if seeds > 1 else {}),
                **{name: decimal_of(mean, 3) for name, mean in starts.loc[size, attention].items()},
                **{name: speed.get(name) for name in SPEEDS},
                "tokens_per_second": decimal_of(speed.get("tokens_per_second"), 0),
            }
        )
    return table_of(rows, _training_caption(data, seeds), "tab:training")


def _mean(values: pd.Series) -> float | None:
    """The mean of what runs logged; None where none did."""
    logged = values.dropna()
    return spread(logged).mean if len(logged) else None


def _training_caption(data: Collection, seeds: int) -> str:
    wording, speeds, speed = captions.wording_of(data.settings), data.speeds, ""
    if len(speeds):
        machines = dict(zip(speeds["size"], speeds["machine"], strict=True))
        is_claimed = "shared" in set(speeds["attention"])
        claim = f" ({published.SHARED_PAPER} claims about a tenth less time for shared)" if is_claimed else ""
        speed = (
            " Speed: median over rounds that take one optimizer step of each operator, in one process; of original: "
            f"the median share of the step time of original in the same round{claim}. MFU: FLOPs of the model, with "
            "its head on masked positions only, in percent of the dense peak of the device's data sheet in that "
            "precision, a dash where none is known. Machines: "
            f"{'; '.join(f'{size} on {machine}' for size, machine in machines.items())}."
        )
    of_several = (
        "Values are means over pre-training seeds; std is the sample standard deviation of their validation losses. "
    )
    return (
        f"Table 2, continued: what training gave and took ({captions.seeds_of(seeds)})."
        f"\n\n{wording.experiment}. {wording.pretraining}. {of_several if seeds > 1 else ''}"
        "Validation loss: nats per masked token at the last step. Logit std and attention entropy (nats): of the "
        f"untrained model, means over its layers.{speed}"
    )


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
    wording, seeds = captions.wording_of(data.settings), heads["pretrain_seed"].nunique()
    caption = (
        f"Attention of trained models ({captions.seeds_of(seeds)}): means over the heads of each layer, on the first "
        f"validation rows of {wording.corpus}."
        f"\n\n{wording.experiment}. {wording.pretraining}. Symmetry: 1 where the score of two tokens is the same both "
        "ways, −1 where it changes sign, about 0 at random; directionality: 1 where few columns of the matrix of "
        "scores stand out, −1 where few rows do (Saponati et al. 2025, arXiv 2502.10927). Logit std over all pairs of "
        "tokens; attention entropy in nats; own share: of a token's attention, the share that it gives to itself."
    )
    return Table(means, caption, "tab:anatomy", readable=last.drop(columns="step"))


RELATIONS = ("cycle", "partner", "chain")


def probes_table(data: Collection) -> Table | None:
    """Share of tokens whose largest score is that of the token that they are to attend to, along a directed cycle, to
    partners and along a chain, with and without the own position.
    """
    probes = data.probes
    if probes is None:
        return None
    rows = [_probe_row(name, probed) for name, probed in probes.groupby("attention", sort=False)]
    chances = sorted({f"{chance:.2f}" for chance in probes[probes["relation"].isin(RELATIONS)]["chance"]})
    caption = (
        "Relations between 16 tokens that one head learns: the share of tokens whose largest score is that of their "
        "target, the next of a directed cycle or of a chain, or a partner; others: no token may attend to itself. "
        "Lookups: the share of right answers."
        "\n\nIn brackets the exact 95 % interval over the tokens of five relations. Chance gives "
        f"{' or '.join(chances)}. Steps: the median until all tokens of a relation were right, over those of all "
        "relations that were learned. A symmetric score cannot point along a cycle. Lookups of one "
        "layer (recall of eight pairs, fuzzy with noisy keys, induction): the share of right answers when a training "
        "ends, at 0.9 or after 200 steps, with the lowest and highest of five seeds, and the median of the steps; "
        "chance gives 0.03."
    )
    return table_of(rows, caption, "tab:probes")


def _probe_row(name: str, probed: pd.DataFrame) -> dict[str, Any]:
    cells = {}
    for probe in probed.itertuples():
        column = f"{probe.relation}{' others' if probe.own_position == 'no' else ''}"
        cells[column] = f"{probe.share:.2f} [{probe.low:.2f}, {probe.high:.2f}]"
        if probe.relation not in RELATIONS and not pd.isna(probe.steps):
            cells[column] += f" in {probe.steps:.0f}"
    probed = probed[probed["relation"].isin(RELATIONS)]
    return {"attention": name, **cells, "steps": decimal_of(probed["steps"].median(), 0)}
