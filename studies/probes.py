"""Which relations between tokens an operator can express: one layer learns where each token has to attend.

    python -m studies.probes original my_module:Gated
    python -m studies.probes --configfile docs/findings/predictions/experiment.yaml --output probes.csv

Operators are named as tables name them, or as my_module:Class. With a configuration, its `operators` are known too, and
where none is named those of `sweep.attention` are probed. It takes seconds per operator.

16 tokens with random hidden states are in a relation: each has the next of a directed cycle, or of a chain, or a
partner that has it in turn. A layer of an operator, with five heads of 32, is trained until the largest score of every
token is that of its target, or for 100 steps. Each head has a relation of its own and nothing in common with the
others, so that heads are seeds. A score that is symmetric cannot point along a cycle (docs/operators.md has the proof).

Lookups are learned by a layer of four heads of 32, over 32 symbols. Recall: eight pairs of a key and a value, each pair
one token, and then the keys again, of which the values are asked (after MQAR of Arora et al. 2023, arXiv 2312.04927).
Fuzzy: the keys that ask have noise as large as themselves. Induction: each token has its symbol and the one before it,
as a first layer can give it; the last symbol occurred before, and its successor there is asked.
"""

import argparse
import math
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
import pandas as pd
import torch
import yaml
from scipy.stats import binomtest
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.errors import ConfigError
from symbert.model.anatomy import logits_of, weights_of
from symbert.model.attention import SelfAttention
from symbert.model.bert import BaseModel, Encoder, checked_pair, initialize
from symbert.model.configuration import Configuration
from symbert.operators import Operator, name_of, operator_named, operators_of

RELATIONS = ("cycle", "partner", "chain")
TOKENS, HEADS, HEAD = 16, 5, 32
LOOKUP_HEADS = 4
STEPS, LEARNING_RATE = 100, 0.01  # of Adam
LEAST = 1e-30  # weight, whose logarithm has a gradient
NOBODY = -100  # the target of a token that has none, as in F.cross_entropy
LOOKUPS = ("recall", "fuzzy", "induction")
SYMBOLS, PAIRS, ROWS = 32, 8, 32  # of all, of recall, of a batch
SEEDS, LOOKUP_STEPS, LOOKUP_RATE = 5, 200, 0.005  # of Adam
WINDOW, LEARNED = 10, 0.9  # batches, and the share of right answers in them that ends a training


def targets_of(relation: str, seed: int) -> Tensor:
    """Where each token has to attend, `token`; the last of a chain has no target."""
    order = torch.randperm(TOKENS, generator=torch.Generator().manual_seed(seed))
    targets = torch.full((TOKENS,), NOBODY)
    targets[order] = order.view(-1, 2).flip(1).flatten() if relation == "partner" else order.roll(-1)
    if relation == "chain":
        targets[order[-1]] = NOBODY
    return targets


def learn(operator: Operator, relation: str, own_position: bool) -> dict[str, Any]:
    """How far a layer of the operator learns a relation: over all heads, the share of tokens with a target that are
    right, its exact 95 % interval, chance, and the median of the steps until all tokens of a head were right at once
    (None unless every head came so far). Without `own_position`, no token may attend to itself."""
    attention = layer_of(operator, HEADS)
    hidden = torch.randn(1, TOKENS, HEADS * HEAD, generator=torch.Generator().manual_seed(0))
    targets = torch.stack([targets_of(relation, seed) for seed in range(HEADS)])
    optimizer = torch.optim.Adam(attention.parameters(), LEARNING_RATE)
    first: dict[int, int] = {}
    for step in range(STEPS + 1):
        scores = scores_of(attention, hidden, own_position)
        right = (scores.argmax(-1) == targets) & (targets != NOBODY)
        solved = (right | (targets == NOBODY)).all(-1).nonzero().flatten().tolist()
        first = dict.fromkeys(solved, step) | first
        if len(solved) == HEADS or step == STEPS:
            break
        optimizer.zero_grad()
        F.cross_entropy(scores.flatten(0, 1), targets.flatten(), ignore_index=NOBODY).backward()
        optimizer.step()
    share, tokens = int(right.sum()), int((targets != NOBODY).sum())
    interval = binomtest(share, tokens).proportion_ci()
    return {
        "attention": operator.name,
        "relation": relation,
        "own_position": "yes" if own_position else "no",
        "share": share / tokens,
        "low": interval.low,
        "high": interval.high,
        "chance": 1 / (TOKENS - (not own_position)),
        "steps": median(first.values()) if len(first) == HEADS else None,
    }


def scores_of(attention: SelfAttention, hidden: Tensor, own_position: bool) -> Tensor:
    """The scores of every two tokens, `heads token token`: logits, or the logarithm of the weights where an operator
    has a forward pass of its own. ConfigError where that returns none, and where keys are no tokens."""
    if type(attention).forward is SelfAttention.forward:
        scores = logits_of(attention, hidden)[0]
    elif (weights := weights_of(attention, hidden)) is not None:
        scores = weights.clamp(min=LEAST).log()[0]
    else:
        name = attention.config.attention
        raise ConfigError(f"attention '{name}': its forward returns no weights, which a probe reads; return them")
    if scores.shape[-1] != scores.shape[-2]:
        raise ConfigError(f"attention '{attention.config.attention}': its keys are no tokens; leave it out of probes")
    return scores if own_position else scores.masked_fill(torch.eye(TOKENS, dtype=torch.bool), -torch.inf)


def layer_of(operator: Operator, heads: int, seed: int = 1) -> SelfAttention:
    """An attention layer with so many heads, whose weights start at the scale of all sizes: that of an encoder, because
    draws follow from names."""
    width = heads * HEAD
    config = Configuration(
        attention=operator.name,
        operator=msgspec.to_builtins(operator),
        vocab_size=8,
        hidden_size=width,
        num_attention_heads=heads,
        num_hidden_layers=1,
        initializer_range=0.02 * math.sqrt(768 / width),
        attention_probs_dropout_prob=0.0,
    )
    model = BaseModel(config)
    model.encoder = Encoder(config)
    initialize(model, seed)
    return model.encoder.layer[0].attention.self


def lookups_of(operator: Operator) -> list[dict[str, Any]]:
    """A row per lookup: the share of right answers in the last batches, mean, lowest and highest of five seeds, chance,
    and the median of the steps, None unless all seeds learned."""
    rows = []
    for lookup in LOOKUPS:
        outcomes = [look_up(layer_of(operator, LOOKUP_HEADS, seed), lookup, seed) for seed in range(1, SEEDS + 1)]
        shares, steps = zip(*outcomes, strict=True)
        row = {
            "attention": operator.name,
            "relation": lookup,
            "own_position": "yes",
            "share": sum(shares) / len(shares),
        }
        row |= {"low": min(shares), "high": max(shares), "chance": 1 / SYMBOLS}
        rows.append({**row, "steps": None if None in steps else median(steps)})
    return rows


def rows_of(lookup: str, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Two symbols of each token, `row token`, SYMBOLS for none, and the answers of the last tokens, `row answer`."""
    symbols = torch.rand(ROWS, SYMBOLS, generator=generator).argsort(-1)
    nothing = torch.full((ROWS, PAIRS), SYMBOLS)
    if lookup == "induction":
        order, at = symbols[:, : TOKENS - 1], torch.randint(1, TOKENS - 2, (ROWS, 1), generator=generator)
        row = torch.cat([order, order.gather(1, at)], 1)
        return row, torch.cat([nothing[:, :1], row[:, :-1]], 1), order.gather(1, at + 1)
    keys, values = symbols[:, :PAIRS], torch.randint(SYMBOLS, (ROWS, PAIRS), generator=generator)
    return torch.cat([keys, keys], 1), torch.cat([values, nothing], 1), values


def look_up(attention: SelfAttention, lookup: str, seed: int) -> tuple[float, int | None]:
    """The share of right answers in the last batches, and the steps after which it was 90 %; None if never."""
    generator, width = torch.Generator().manual_seed(seed), attention.config.hidden_size
    first, second = (torch.randn(SYMBOLS + 1, width, generator=generator) for _ in range(2))
    torch.manual_seed(seed)
    answer = nn.Linear(width, SYMBOLS)
    optimizer = torch.optim.Adam([*attention.parameters(), *answer.parameters()], LOOKUP_RATE)
    shares: list[float] = []
    for step in range(1, LOOKUP_STEPS + 1):
        one, other, targets = rows_of(lookup, generator)
        asking = first[one]
        if lookup == "fuzzy":
            asking[:, PAIRS:] += torch.randn(ROWS, PAIRS, width, generator=generator)
        hidden = F.layer_norm(asking + second[other], (width,))
        mixed, _ = checked_pair(attention, attention(hidden), hidden)
        logits = answer(mixed[:, -targets.shape[1] :])
        shares.append((logits.argmax(-1) == targets).float().mean().item())
        share = sum(shares[-WINDOW:]) / len(shares[-WINDOW:])
        if len(shares) >= WINDOW and share >= LEARNED:
            return share, step
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    return share, None


def main(arguments: list[str] | None = None) -> None:
    """Print a row per operator and relation, or write them as csv."""
    parser = argparse.ArgumentParser("python -m studies.probes")
    parser.add_argument("operators", nargs="*")
    parser.add_argument("--configfile", type=Path)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if not (options.operators or options.configfile):
        parser.error("names no operator")
    config = yaml.safe_load(options.configfile.read_text(encoding="utf-8")) if options.configfile else {}
    words = options.operators or config["sweep"]["attention"]
    known = operators_of(config.get("operators", {}), words)
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for word in words:
        operator = operator_named(name_of(word.partition(":")[2]) if ":" in word else word, known)
        rows += [learn(operator, relation, own_position) for own_position in (True, False) for relation in RELATIONS]
        rows += lookups_of(operator)
    table = pd.DataFrame(rows)
    if options.output:
        table.to_csv(options.output, index=False, float_format="%.6g", lineterminator="\n")
    else:
        print(table.to_string(index=False, float_format=lambda value: f"{value:.2f}"))


if __name__ == "__main__":
    main()
