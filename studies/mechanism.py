"""Attention before the escape from the plateau, from the kept steps of the runs of mechanism.yaml.

    python -m studies.mechanism results

writes docs/findings/start-and-symmetry/mechanism.csv, the measures that mechanism.md declares, a row per run, moment,
layer and head; and learned.csv, measures that were chosen after those were seen, a row per run.
"""

import itertools
import sys
from collections.abc import Iterable
from pathlib import Path
from unittest.mock import patch

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from studies.collected import RUNS
from studies.outcomes import LAYERS, LEVEL, OPERATORS, at, crossing, markdown
from symbert.architectures import ARCHITECTURES
from symbert.files import read_json_lines
from symbert.model.attention import SelfAttention
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS
from symbert.pretrain.run import kept_weights, read_run

MEASURES, LEARNED = RUNS.with_name("mechanism.csv"), RUNS.with_name("learned.csv")
RUN = ["size", "attention", "seed"]
SIZES = ["tiny", "deep8"]
MOMENTS = {"start": 0, "50": 50, "100": 100, "200": 200}  # and `escape`, the last evaluation before the crossing
EVERY = 25  # steps between evaluations, whose weights are all kept
ROWS, BATCHES = 256, 16  # validation rows, and parts of these whose gradients are compared
OFFSET = 16  # places between a symbol and its copy
EARLY = ["start", "50", "100"]
STARTS = [("original", "original-wide"), ("symmetric", "symmetric-wide")]  # narrow, wide
TOKENS = 48  # of a row
UNIFORM = 2 * (TOKENS - OFFSET) / TOKENS**2  # attention to the places OFFSET before and behind, where all is equal
BEYOND = 2  # evaluations after the escape that are looked at, too
GROWING = (0.01, 0.03, 0.1)  # attention to the copies, above UNIFORM, of the largest head


class Attention:
    """Hidden states and scores of each layer, in the order of layers, as one forward pass leaves them."""

    def __init__(self, model: nn.Module) -> None:
        self.sites = [module for module in model.modules() if isinstance(module, SelfAttention)]
        self.hidden: list[Tensor] = []
        self.scores: list[Tensor] = []  # `batch heads token token`, with their gradients after a backward pass

    def attend(self, site: nn.Module, query: Tensor, key: Tensor, value: Tensor, *_: None, scaling: float, **__: float):
        """Attention whose scores are kept."""
        scores = query @ key.mT * scaling
        if scores.requires_grad:
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


class Opened:
    """A finished run: its model, as it starts and in evaluation mode, rows of the validation set, and its escape."""

    def __init__(self, folder: Path) -> None:
        self.run = read_run(folder)
        task = ARCHITECTURES[self.run.architecture].task_class(self.run)
        self.state, self.model = folder / "state", task.starting_model().eval()
        parts = np.arange(ROWS).reshape(BATCHES, -1)
        self.batches = [task.inputs(task.validation_batch(part), has_one_shape=False) for part in parts]
        records = read_json_lines(folder / "metrics.jsonl", "train the run again")
        losses = [record["loss"] for record in records if record["split"] == "validation"]
        crossed = crossing(np.array(losses), EVERY, LEVEL)
        self.escape = None if np.isnan(crossed) else int(crossed // EVERY * EVERY)  # the evaluation before
        self.identity = {"size": self.run.size, "attention": self.run.attention, "seed": self.run.pretrain_seed}

    def load(self, step: int) -> None:
        """Give the model the weights of a step but the first."""
        self.model.load_state_dict(load_file(kept_weights(self.state, step)), strict=False)  # tied ones once


def rows_of(folder: Path) -> list[dict[str, object]]:
    """The measures of a run at each moment; without an escape where there is none."""
    opened, rows = Opened(folder), []
    for moment, step in {**MOMENTS, **({"escape": opened.escape} if opened.escape else {})}.items():
        if step:
            opened.load(step)
        moment_of_run = {**opened.identity, "moment": moment, "step": step}
        rows += [{**moment_of_run, **row} for row in measures_of(opened.model, opened.batches)]
    return rows


# Chosen after the measures above were seen.


@torch.no_grad()
def attended(model: nn.Module, batches: list[dict[str, Tensor]]) -> Tensor:
    """Mean attention of masked tokens to the places OFFSET before and behind, `layer head`."""
    attention, sums, count = Attention(model), 0.0, 0
    for batch in batches:
        attention.loss_of(model, batch)
        weights = torch.stack(attention.scores).softmax(-1)  # `layer batch head token token`
        row, token = batch["positions"] // weights.shape[-1], batch["positions"] % weights.shape[-1]
        for place in (-OFFSET, OFFSET):
            inside = (token + place >= 0) & (token + place < weights.shape[-1])
            sums = sums + weights[:, row[inside], :, token[inside], token[inside] + place].sum(0)
        count += len(token)
    return sums / count


@torch.no_grad()
def learned_of(folder: Path) -> dict[str, object]:
    """A run as a row: `attended` at each evaluation up to BEYOND the escape, the largest of all heads, as text; and of
    the head with the largest at the end, agreement and overlap, as in `measures_of`, along the direction that it
    learned: the leading pair of singular vectors of the change of W_Q W_Kᵀ from the start to the escape.
    """
    opened, largest = Opened(folder), []
    starting = [[side.clone() for side in _sides(site)] for site in Attention(opened.model).sites]
    for step in range(0, opened.escape + BEYOND * EVERY + 1, EVERY):
        if step:
            opened.load(step)
        heads = attended(opened.model, opened.batches)
        largest.append(heads.max().item())
    layer, head = divmod(int(heads.argmax()), heads.shape[1])
    opened.load(opened.escape)
    sides = [[side[head] for side in both] for both in (starting[layer], _sides(Attention(opened.model).sites[layer]))]
    left, _, right = torch.linalg.svd(sides[1][0] @ sides[1][1].mT - sides[0][0] @ sides[0][1].mT)
    row = {**opened.identity, "layer": layer + 1, "head": head + 1, "step": opened.escape}
    for moment, (query, key) in zip(("start", "escape"), sides, strict=True):
        products = (query.mT @ left[:, 0]) * (key.mT @ right[0])
        row |= {
            f"agreement {moment}": (products > 0).double().mean().item(),
            f"overlap {moment}": products.sum().item(),
        }
    return {**row, "attended": " ".join(f"{value:.4f}" for value in largest)}


# What became of the predictions.


def numbers_of(rows: pd.DataFrame, learned: pd.DataFrame) -> dict[str, str]:
    """The table of predictions, which hold when all seeds agree, and the numbers of sentences: steps to a level of
    attention to the copies and, at the start and the escape, overlap and agreement along both directions."""
    escapes = rows[rows["moment"] == "escape"]
    heads = escapes.loc[escapes.groupby(RUN)["copies"].idxmax(), [*RUN, "layer", "head"]]  # which attend most to copies
    copying = rows.merge(heads).set_index(["moment", *RUN]).sort_index()
    means = rows.groupby(["moment", *RUN])[["cosine", "consistency"]].mean()
    narrow_and_wide = copying.loc["escape"].query("attention in @STARTS[0]")
    facts = {
        "mechanism-predictions": _predictions(rows, copying, means),
        "descent:agreement": _range(narrow_and_wide["agreement"], joined=" to "),
        "learned:overlap": _range(learned["overlap escape"], joined=" to "),
    }
    for name, runs in learned.groupby("attention"):
        facts[f"learned:{name}:agreement"] = _range(runs["agreement escape"], joined=" to ")
        deep = at(runs, size="deep8")
        facts[f"learned:{name}:overlap-at-start"] = f"{deep['overlap start'].mean():.2f}"
        steps = [np.mean([step_of(run, level) for run in deep["attended"]]) for level in GROWING]
        facts[f"attention:{name}:step"] = f"{steps[1]:.0f}"
        for number, (earlier, later) in enumerate(itertools.pairwise(steps), 1):
            facts[f"attention:{name}:span-{number}"] = f"{later - earlier:.0f}"
    return facts


def step_of(attended: str, level: float) -> float:
    """The step from which the attention to the copies of a row of learned.csv is at a level above UNIFORM for good, on
    the exponential between two evaluations."""
    excess = np.array(attended.split(), float) - UNIFORM
    before = int(np.flatnonzero(excess < level)[-1])
    share = np.interp(np.log(level), np.log(excess[before : before + 2]), [0, 1])
    return EVERY * (before + float(share))


def _predictions(rows: pd.DataFrame, copying: pd.DataFrame, means: pd.DataFrame) -> str:
    lines = []  # number, size, what was seen, and by seed whether it holds
    for size in SIZES:
        narrow, wide = (copying.loc["escape", size].loc[name] for name in STARTS[0])
        agreeing = pd.concat([narrow, wide])["agreement"]
        lines.append(["1", size, f"agreement at the escape {_range(agreeing)}", agreeing > 0.8])
        ratios = wide["overlap"] / narrow["overlap"]
        lines.append(["2", size, f"overlap, wide by narrow {_range(ratios)}", ratios.between(0.8, 1.25)])
    deep = rows[(rows["size"] == "deep8") & (rows["layer"] > 2) & rows["moment"].isin(EARLY)]
    layers = deep.groupby(["attention", "seed", "moment", "layer"])[["cosine", "consistency"]].mean()
    for pair in STARTS:
        narrow, wide = (layers.loc[name] for name in pair)
        alike, unsteady = narrow["cosine"] > wide["cosine"], narrow["consistency"] < wide["consistency"]
        seen = f"`{pair[0]}`: {alike.sum()} and {unsteady.sum()} of {len(narrow)} layers at three steps"
        lines.append(["3", "deep8", seen, alike & unsteady])
    early = means.loc[EARLY, "consistency"].groupby(RUN).mean()
    for size in SIZES:
        larger = pd.concat([early[size, tied] / early[size, untied] for untied, tied in zip(*STARTS, strict=True)])
        lines.append(["4", size, f"consistency, `symmetric` by `original` {_range(larger)}", larger > 1])
    shown = []
    for number, size, seen, holds in lines:
        of_seeds = holds.groupby(level="seed").all()
        against = ", ".join(map(str, of_seeds.index[~of_seeds]))
        seeds = f"seeds {against}" if of_seeds.any() else "all seeds"
        shown.append([number, str(LAYERS[size]), seen, f"refuted by {seeds}" if against else "held"])
    return markdown(["prediction", "layers", "range over seeds", ""], shown)


def draw(learned: pd.DataFrame) -> plt.Figure:
    """Attention of masked tokens to their copies over steps, above what equal attention gives; a line per run."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
    for panel, size in zip(panels, SIZES, strict=True):
        for narrow, wide, color in (OPERATORS[name] for name in ("original", "symmetric")):
            for name, line in ((narrow, "--"), (wide, "-")):
                for run in at(learned, size=size, attention=name).itertuples():
                    values = np.array(run.attended.split(), float) - UNIFORM
                    label = name if run.seed == learned["seed"].min() else None
                    panel.plot(
                        EVERY * np.arange(len(values)), values.clip(1e-3), line, color=color, lw=1.2, label=label
                    )
        panel.set(title=f"{LAYERS[size]} layers", xlabel="step", yscale="log", ylim=(1e-3, 1))
    panels[0].set_ylabel("attention of masked tokens to their copies,\nabove equal attention")
    panels[0].legend(frameon=False)
    return figure


def _range(values: Iterable[float], digits: int = 2, joined: str = "…") -> str:
    low, high = (round(bound, digits) + 0.0 for bound in (min(values), max(values)))  # without the sign of zero
    return f"{low:.{digits}f}{joined}{high:.{digits}f}".replace("-", "−")


def main() -> None:
    """Read the finished runs of a results folder that keep their weights at each evaluation."""
    folders = sorted(done.parent for done in Path(sys.argv[1]).glob("runs/encoder/*/seed-*/done.json"))
    folders = [folder for folder in folders if read_run(folder).training.save_every == EVERY]
    rows = pd.DataFrame([row for folder in folders for row in rows_of(folder)])
    rows.sort_values([*RUN, "step", "layer", "head"]).to_csv(MEASURES, index=False, float_format="%.5g")
    learned = pd.DataFrame([learned_of(folder) for folder in folders])
    learned.sort_values(RUN).to_csv(LEARNED, index=False, float_format="%.5g")


if __name__ == "__main__":
    main()
