"""Rotary positions (Su et al. 2021, RoFormer, arXiv 2104.09864): queries and keys, turned by their place in the row.

A pair of numbers of a head is turned by an angle that grows with the place, so that the product of a query and a key
depends on the difference of their places alone. As Hugging Face's Llama does it: number i of the first half of a head
goes with number i of the second, by the angle place · BASE^(−2i/head). Values are not turned.
"""

import torch
from torch import Tensor

BASE = 10_000.0


def turned(values: Tensor) -> Tensor:
    """`… token head`, each token turned by its place among them."""
    width, tokens = values.shape[-1], values.shape[-2]
    precision = torch.promote_types(values.dtype, torch.float32)
    halves = torch.arange(0, width, 2, dtype=precision, device=values.device) / width
    places = torch.arange(tokens, dtype=precision, device=values.device)
    angles = torch.outer(places, BASE**-halves).repeat(1, 2)
    first, second = values.chunk(2, dim=-1)
    return values * angles.cos().to(values.dtype) + torch.cat([-second, first], -1) * angles.sin().to(values.dtype)


def turned_sides(operator: object, query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """Both sides of an operator's dot product: turned where its site has rotary positions, otherwise as they are."""
    return (turned(query), turned(key)) if getattr(operator, "has_rotary_positions", False) else (query, key)
