"""The projections of a plain BERT that computes as an operator does.

An affine map f is known from its values at zero and at the unit vectors: bias = f(0), weight = f(I) − f(0). So no
operator has to say how it folds; for `pairwise`, for example, BERT's query becomes `query · S` per head.
"""

import copy

import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.model.attention import OriginalAttention, SelfAttention
from symbert.model.from_transformers import refuse_other_shapes

TOLERANCE = 1e-9  # of the attention's output in float64, relative to its largest value


def in_rows(tokens: Tensor, longest: int) -> Tensor:
    """`… token hidden` as `row token hidden`, in equal rows of at most `longest` tokens."""
    count = tokens.shape[-2]
    length = next(each for each in range(min(count, longest), 0, -1) if count % each == 0)
    return tokens.reshape(-1, length, tokens.shape[-1])


@torch.no_grad()
def projections_of(module: SelfAttention) -> dict[str, Tensor]:
    """BERT's query, key and value of one site, weights and biases in float64; checked on random hidden states.

    ConfigError for an operator with a `forward` of its own: no number of tokens shows that it attends as BERT.
    """
    if type(module).forward is not SelfAttention.forward:
        raise _no_equal(module, "as it has a forward of its own")
    module = copy.deepcopy(module).double().eval()
    module.is_causal = False  # so that the check compares full attention
    width, device = module.config.hidden_size, next((each.device for each in module.parameters()), None)
    units = torch.eye(width, dtype=torch.float64, device=device)
    inputs = [in_rows(tokens, module.config.max_position_embeddings) for tokens in (torch.zeros_like(units), units)]
    sides = [module.query_key_value(rows) for rows in inputs]
    for rows, of_rows in zip(inputs, sides, strict=True):
        refuse_other_shapes(module, *of_rows)
        if any(side.shape[2] != rows.shape[1] for side in of_rows):
            raise _no_equal(module, "as BERT has a key and a value for each token alone")
    biases, weights = ([side.transpose(1, 2).flatten(2).flatten(0, 1) for side in of_rows] for of_rows in sides)
    projections = {}
    for name, bias, rows in zip(("query", "key", "value"), biases, weights, strict=True):
        projections[f"{name}.weight"] = (rows - bias).T.contiguous()
        projections[f"{name}.bias"] = bias[0]
    stock = OriginalAttention(module.config).to(device, torch.float64).eval()
    if any(projections[name].shape != value.shape for name, value in stock.state_dict().items()):
        raise _no_equal(module, "as BERT has one key and one value for each head")
    stock.load_state_dict(projections)
    generator = torch.Generator().manual_seed(0)
    for shape in ((2, 7, width), (1, module.config.max_position_embeddings, width)):
        hidden = torch.randn(shape, dtype=torch.float64, generator=generator).to(device)
        expected = module(hidden)[0]
        if not (expected - stock(hidden)[0]).abs().max() <= TOLERANCE * expected.abs().max():
            raise _no_equal(module, "expected query, key and value that are affine in each hidden state")
    return projections


def _no_equal(module: SelfAttention, reason: str) -> ConfigError:
    return ConfigError(
        f"attention '{module.config.attention}' has no equal BERT, {reason}; load it as its model card says"
    )
