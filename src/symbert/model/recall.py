"""How fast one layer of an operator learns to look something up: 32 symbols, a layer of four heads of 32.

Recall: eight pairs of a key and a value, each pair one token, and then the keys again, of which the values are asked
(after MQAR of Arora et al. 2023, arXiv 2312.04927). Fuzzy: the keys that ask have noise as large as themselves.
Induction: each token has its symbol and the one before it, as a first layer can give it; the last symbol occurred
before, and what followed it is asked. An operator that tells who asks from who answers is needed there.
"""

from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.model.attention import SelfAttention

LOOKUPS = ("recall", "fuzzy", "induction")
SYMBOLS, PAIRS, TOKENS, ROWS = 32, 8, 16, 32  # of all, of recall, of a row of induction, of a batch
SEEDS, STEPS, LEARNING_RATE = 5, 200, 0.005  # of Adam
WINDOW, LEARNED = 10, 0.9  # batches, and the share of right answers in them that ends a training


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
    optimizer = torch.optim.Adam([*attention.parameters(), *answer.parameters()], LEARNING_RATE)
    shares: list[float] = []
    for step in range(1, STEPS + 1):
        one, other, targets = rows_of(lookup, generator)
        asking = first[one]
        if lookup == "fuzzy":
            asking[:, PAIRS:] += torch.randn(ROWS, PAIRS, width, generator=generator)
        hidden = F.layer_norm(asking + second[other], (width,))
        logits = answer(attention(hidden)[0][:, -targets.shape[1] :])
        shares.append((logits.argmax(-1) == targets).float().mean().item())
        share = sum(shares[-WINDOW:]) / len(shares[-WINDOW:])
        if len(shares) >= WINDOW and share >= LEARNED:
            return share, step
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        optimizer.step()
    return share, None


def summary_of(outcomes: list[tuple[float, int | None]]) -> dict[str, Any]:
    """Mean, lowest and highest share over seeds, chance, and the median of the steps; None unless all learned."""
    shares, steps = zip(*outcomes, strict=True)
    learned = None if None in steps else median(steps)
    mean = sum(shares) / len(shares)
    return {"share": mean, "low": min(shares), "high": max(shares), "chance": 1 / SYMBOLS, "steps": learned}
