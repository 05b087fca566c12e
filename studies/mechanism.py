"""The measures that mechanism.md declares: attention before the exit from the plateau, from the kept steps of its runs.

    python -m studies.mechanism results

writes docs/findings/start-and-symmetry/mechanism.csv, a row per run, moment, layer and head.
"""

import sys
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from studies.collected import RUNS
from studies.outcomes import LAYERS, LEVEL, crossing, markdown
from symbert.files import read_json_lines
from symbert.hosts import HOSTS
from symbert.model.attention import SelfAttention
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS
from symbert.pretrain.run import kept_weights, read_run

MEASURES = RUNS.with_name("mechanism.csv")
RUN = ["size", "attention", "seed"]
SIZES = ["tiny", "deep8"]
MOMENTS = {"start": 0, "50": 50, "100": 100, "200": 200}  # and `exit`, the last evaluation before the crossing
ROWS, BATCHES = 256, 16  # validation rows, and parts of these whose gradients are compared
OFFSET = 16  # places between a symbol and its copy
EARLY = ["start", "50", "100"]
STARTS = [("original", "original-wide"), ("symmetric", "symmetric-wide")]  # narrow, wide


class Attention:
    """Hidden states and scores of each layer, in the order of layers, as one forward pass leaves them."""

    def __init__(self, model: nn.Module) -> None:
        self.sites = [module for module in model.modules() if isinstance(module, SelfAttention)]
        self.hidden: list[Tensor] = []
        self.scores: list[Tensor] = []  # `batch heads token token`, with their gradients after a backward pass

    def attend(self, site: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: None, scaling: float, **__: float):
        """Attention whose scores are kept."""
        scores = query @ key.mT * scaling
        scores.retain_grad()
        self.scores.append(scores)
        return (scores.softmax(-1) @ value).transpose(1, 2), None

    def loss_of(self, model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        """The mean loss of a batch, in nats, computed by `attend`."""
        self.hidden, self.scores = [], []
        hooks = [
            site.register_forward_pre_hook(lambda _, given: self.hidden.append(given[0].detach()))
            for site in self.sites
        ]
        with patch.object(ALL_ATTENTION_FUNCTIONS, "get_interface", lambda *_: self.attend):
            logits = model.masked_logits(batch["input_ids"], batch["positions"])
        for hook in hooks:
            hook.remove()
        return F.cross_entropy(logits, batch["targets"])


def measures_of(model: nn.Module, batches: list[dict[str, Tensor]]) -> list[dict[str, float]]:
    """A row per layer and head, both counted from 1.

    `cosine` is the mean over pairs of different tokens of a row; `gradient` the norm of the gradient of the scores, and
    `consistency` that of the mean gradient of W_Q W_Kᵀ by the mean of the norms, over the batches; `copies` the
    attention to the places OFFSET before and behind; `agreement` the share of the dimensions in which query and key of
    the leading direction of descent have one sign, and `overlap` the sum of their products.
    """
    attention, seen = Attention(model), []
    for batch in batches:
        attention.loss_of(model, batch).backward()
        seen.append(
            [(x, scores.detach(), scores.grad) for x, scores in zip(attention.hidden, attention.scores, strict=True)]
        )
    rows = []
    for layer, parts in enumerate(zip(*seen, strict=True)):
        site = attention.sites[layer]
        hidden, scores, gradients = (torch.cat(column) for column in zip(*parts, strict=True))
        directions = torch.stack([site.scaling * _products(x, gradient) for x, _, gradient in parts])
        query, key = _sides(site)
        for head in range(scores.shape[1]):
            of_head, weights = directions[:, head], scores[:, head].softmax(-1)
            mean = of_head.mean(0)
            left, _, right = torch.linalg.svd(-mean)
            sides = query[head].mT @ left[:, 0], key[head].mT @ right[0]
            copies = sum(weights.diagonal(place, 1, 2).sum(-1).mean().item() for place in (-OFFSET, OFFSET))
            rows.append(
                {
                    "layer": layer + 1,
                    "head": head + 1,
                    "cosine": _cosine(hidden),
                    "gradient": gradients[:, head].norm().item() / len(parts),
                    "consistency": (mean.norm() / of_head.flatten(1).norm(dim=1).mean()).item(),
                    "copies": copies / weights.shape[-1],
                    "agreement": (sides[0].sign() == sides[1].sign()).double().mean().item(),
                    "overlap": (sides[0] @ sides[1]).item(),
                }
            )
    return rows


@torch.no_grad()
def _sides(site: SelfAttention) -> list[Tensor]:
    """W_Q and W_K, `heads hidden head`."""
    units = torch.eye(site.config.hidden_size)[None]
    weights, biases = site.query_key_value(units), site.query_key_value(torch.zeros_like(units))
    return [(weight - bias)[0] for weight, bias in zip(weights, biases, strict=True)][:2]


def _products(hidden: Tensor, gradient: Tensor) -> Tensor:
    """The sum over tokens of xᵢ Gᵢⱼ xⱼᵀ, `heads hidden hidden`."""
    return torch.einsum("bih,bnij,bjk->nhk", hidden, gradient, hidden)


def _cosine(hidden: Tensor) -> float:
    units, tokens = F.normalize(hidden, dim=-1), hidden.shape[1]
    return ((units.sum(1).square().sum(-1) - tokens) / (tokens * (tokens - 1))).mean().item()


def rows_of(folder: Path) -> list[dict[str, object]]:
    """The measures of a run at each moment; without an exit where it stays."""
    run, settings, manifest = read_run(folder)
    task = HOSTS[run.host].task_class(run, settings, manifest)
    model = task.starting_model(0.0).eval()
    parts = np.arange(ROWS).reshape(BATCHES, -1)
    batches = [task.inputs(task.validation_batch(part), has_one_shape=False) for part in parts]
    records = read_json_lines(folder / "metrics.jsonl", "train the run again")
    losses = [record["loss"] for record in records if record["split"] == "validation"]
    every = settings.evaluate_every
    crossed = crossing(np.array(losses), every, LEVEL)
    last = {} if np.isnan(crossed) else {"exit": int(crossed // every * every)}
    rows = []
    for moment, step in {**MOMENTS, **last}.items():
        if step:
            model.load_state_dict(load_file(kept_weights(folder / "state", step)), strict=False)  # tied ones once
        facts = {"size": run.size, "attention": run.attention, "seed": run.pretrain_seed, "moment": moment}
        rows += [{**facts, "step": step, **row} for row in measures_of(model, batches)]
    return rows


# What became of the predictions.


def facts_of(rows: pd.DataFrame) -> dict[str, str]:
    """The tables of measures and of predictions; a prediction holds when all seeds agree. Empty without runs."""
    if rows.empty:
        return {"mechanism": "", "mechanism-predictions": ""}
    exits = rows[rows["moment"] == "exit"]
    heads = exits.loc[exits.groupby(RUN)["copies"].idxmax(), [*RUN, "layer", "head"]]  # which attend most to copies
    copying = rows.merge(heads).set_index(["moment", *RUN]).sort_index()
    means = rows.groupby(["moment", *RUN])[["cosine", "consistency"]].mean()
    columns = [(copying, *place) for place in (("copies", "exit"), ("agreement", "start"), ("agreement", "exit"))]
    columns += [(copying, "overlap", "exit"), (means, "cosine", "100"), (means, "consistency", "100")]
    header = ["mean (range over seeds)", *(f"{name}, {moment}" for _, name, moment in columns)]
    lines = [
        [
            f"{LAYERS[size]} layers, `{name}`",
            *(_spread(table.loc[moment, size, name][key]) for table, key, moment in columns),
        ]
        for size in SIZES
        for pair in STARTS
        for name in pair
    ]
    return {"mechanism": markdown(header, lines), "mechanism-predictions": _predictions(rows, copying, means)}


def _predictions(rows: pd.DataFrame, copying: pd.DataFrame, means: pd.DataFrame) -> str:
    lines = []
    for size in SIZES:
        at_exit = copying.loc["exit", size]
        narrow, wide = (at_exit.loc[name] for name in STARTS[0])
        agreeing = [*narrow["agreement"], *wide["agreement"]]
        lines.append(["1", size, f"agreement at the exit {_range(agreeing)}", min(agreeing) > 0.8])
        ratios = wide["overlap"] / narrow["overlap"]
        lines.append(["2", size, f"overlap, wide by narrow {_range(ratios)}", ratios.between(0.8, 1.25).all()])
    deep = rows[(rows["size"] == "deep8") & (rows["layer"] > 2) & rows["moment"].isin(EARLY)]
    layers = deep.groupby(["attention", "seed", "moment", "layer"])[["cosine", "consistency"]].mean()
    for pair in STARTS:
        narrow, wide = (layers.loc[name] for name in pair)
        counts = (narrow["cosine"] > wide["cosine"]).sum(), (narrow["consistency"] < wide["consistency"]).sum()
        seen = "`{}`: {} and {} of {} layers".format(pair[0], *counts, len(narrow))
        lines.append(["3", "deep8", seen, min(counts) == len(narrow)])
    early = means.loc[EARLY, "consistency"].groupby(RUN).mean()
    for size in SIZES:
        ratios = [early[size, tied] / early[size, untied] for untied, tied in zip(*STARTS, strict=True)]
        larger = pd.concat(ratios)
        lines.append(["4", size, f"consistency, `symmetric` by `original` {_range(larger)}", (larger > 1).all()])
    return markdown(
        ["prediction", "layers", "range over seeds", ""],
        [[number, str(LAYERS[size]), seen, "held" if holds else "refuted"] for number, size, seen, holds in lines],
    )


def _spread(values: pd.Series) -> str:
    return f"{values.mean():.2f} ({_range(values)})".replace("-", "−")


def _range(values: Iterable[float]) -> str:
    return f"{min(values):.2f} to {max(values):.2f}".replace("-", "−")


def main() -> None:
    """Read the finished runs of a results folder."""
    folders = sorted(done.parent for done in Path(sys.argv[1]).glob("runs/encoder/*/seed-*/done.json"))
    rows = pd.DataFrame([row for folder in folders for row in rows_of(folder)])
    rows.sort_values([*RUN, "step", "layer", "head"]).to_csv(MEASURES, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
