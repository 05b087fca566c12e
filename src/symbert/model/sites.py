"""Where a model attends: the operator of a site, its query side and key side, and the tokens that it may look at.

Shapes: `batch token hidden` of a sequence, `batch context hidden` of another one that it attends to.
"""

import importlib
import inspect

import torch
from torch import Tensor

from symbert.errors import ConfigError
from symbert.model.attention import QueryKeyValue, SelfAttention, SymmetricOthersAttention
from symbert.model.configuration import has_rotary_positions
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS, BertConfig, eager_attention_forward
from symbert.operators import operator_of

TOKENS = 6  # of the rows on which an operator is tried
# Of classes that attend as their query, key and value say. Another sequence has no token that is one's own.
PLAIN_ACROSS = (SelfAttention.forward, SymmetricOthersAttention.forward)
TOLERANCE = 1e-9  # relative, of outputs in float64: a token that sees a later one differs by 0.01 and more
_looks_ahead: dict[tuple[str, str], bool] = {}  # each operator that was tried, by its class and arguments


def attention_of(config: BertConfig) -> SelfAttention:
    """The operator that `config.attention` names, made with its arguments.

    ConfigError for an unknown name, a class that cannot be imported or lacks `query_key_value`, and for arguments that
    it refuses.
    """
    operator = operator_of(vars(config))
    module, name = operator.path.split(":")
    try:
        made = getattr(importlib.import_module(module), name)
        if not issubclass(made, SelfAttention) or inspect.isabstract(made):
            raise TypeError("it has to inherit from symbert.model.attention.SelfAttention and define query_key_value")
        site = made(config, **operator.arguments)
    except Exception as error:  # the user's own code raises what it likes
        if operator.is_built_in:
            raise
        given = ", ".join(f"{key}={value!r}" for key, value in operator.arguments.items())
        raise ConfigError(
            f"attention '{operator.name}': {operator.path}({given}) cannot be made ({type(error).__name__}: "
            f"{' '.join(str(error).split())}); correct the class or its arguments"
        ) from error
    site.has_rotary_positions = has_rotary_positions(config)
    if site.has_rotary_positions and made.forward not in PLAIN_ACROSS:
        raise ConfigError(
            f"attention '{operator.name}': has a forward of its own, which may not turn queries and keys by their "
            "places; write what it does into query_key_value, or leave it out of sizes with rotary positions"
        )
    return site


def causal_attention_of(config: BertConfig) -> SelfAttention:
    """The operator of a site whose tokens see themselves and earlier ones.

    ConfigError for one that looks at later tokens all the same: it would be trained on what it has to predict.
    """
    refuse_looking_ahead(config)
    operator = attention_of(config)
    operator.is_causal = True
    return operator


def mask_for(operator: SelfAttention, hidden: Tensor, mask: Tensor | None = None) -> Tensor | None:
    """What the operator of a site is given beside `hidden`; `mask` is true where a token is none of padding.

    Padding stands at the end, where no earlier token of a causal site sees it. Such a site needs no mask where all is
    left to a fused kernel. A class with a `forward` of its own may have a mask of its own: it is shown what is seen.
    """
    is_eager = operator.config._attn_implementation == "eager"
    if operator.is_causal:
        is_left_to_kernel = type(operator).forward is SelfAttention.forward and not is_eager
        mask = None if is_left_to_kernel else _triangle(hidden.shape[1], hidden.device)
    return _added(mask, hidden.dtype) if is_eager and mask is not None else mask


def _triangle(tokens: int, device: torch.device) -> Tensor:
    """`1 1 token token`: true for a token and all before it."""
    return torch.ones(tokens, tokens, dtype=torch.bool, device=device).tril()[None, None]


def _added(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """A mask as the eager kernel adds it to logits."""
    return torch.zeros(1, dtype=dtype, device=mask.device).masked_fill(~mask, torch.finfo(dtype).min)


def refuse_looking_ahead(config: BertConfig) -> None:
    """ConfigError for an operator whose tokens depend on later ones that a mask hides: on what is to be predicted, or
    on padding.

    Each operator is tried once in a process, by a copy with random weights, on rows of which the end is exchanged.
    """
    operator = operator_of(vars(config))
    tried = operator.path, repr(operator.arguments)
    if tried not in _looks_ahead:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            _looks_ahead[tried] = _looks_behind_masks(attention_of(config).double().eval())
    if _looks_ahead[tried]:
        raise ConfigError(
            f"attention '{operator.name}': a token's output depends on later tokens that a mask hides, so that no "
            "decoder can have it; hand `attention_mask` on and treat each token by itself, or leave it out of this host"
        )


@torch.no_grad()
def _looks_behind_masks(operator: SelfAttention) -> bool:
    """Whether tokens depend on those that a causal mask hides, or on those that are padding."""
    generator = torch.Generator().manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for parameter in operator.parameters():
        parameter.copy_(0.3 * drawn(*parameter.shape))
    rows, others = drawn(2, TOKENS, operator.config.hidden_size), drawn(2, TOKENS, operator.config.hidden_size)
    for kept in range(1, TOKENS):
        exchanged = torch.cat([rows[:, :kept], others[:, kept:]], 1)
        is_token = (torch.arange(TOKENS) < kept)[None, None, None]
        for is_causal in (True, False):
            operator.is_causal = is_causal
            mask = mask_for(operator, rows, is_token)
            one, other = (operator(hidden, mask)[0][:, :kept] for hidden in (rows, exchanged))
            if not (one - other).abs().max() <= TOLERANCE * one.abs().max():
                return True
    return False


def cross_attention_of(config: BertConfig) -> SelfAttention:
    """The operator of a site whose queries and keys are of two sequences.

    ConfigError for a class with a `forward` of its own, which knows of one sequence only.
    """
    operator = attention_of(config)
    if type(operator).forward not in PLAIN_ACROSS:
        raise ConfigError(
            f"attention '{config.attention}': has a forward of its own, which knows no second sequence, so that no "
            "cross-attention can have it; write what it does into query_key_value, or leave it out of this host"
        )
    operator.has_rotary_positions = False  # places in two sequences have no difference
    return operator


def query_key_value(operator: SelfAttention, hidden: Tensor, context: Tensor) -> QueryKeyValue:
    """What an operator makes of a query side and a key side: its query of `hidden`, its key and value of `context`.

    So a shared projection is one of both sequences, a real restriction. An operator whose own method takes `context`
    says itself what it makes of both; of any other, what is computed beside is dropped.
    """
    if "context" in inspect.signature(operator.query_key_value).parameters:
        return operator.query_key_value(hidden, context)
    query, _, _ = operator.query_key_value(hidden)
    _, key, value = operator.query_key_value(context)
    return query, key, value


def side_weights(operator: SelfAttention) -> tuple[int, int]:
    """Weights that a token of the query side is multiplied by, and a token of the key side: those that gradients of the
    query, and of key and value, reach, with two or more dimensions."""
    weights = [parameter for parameter in operator.parameters() if parameter.ndim >= 2]
    token = weights[0].new_zeros(1, 1, operator.config.hidden_size)
    with torch.enable_grad():
        query, *answered = query_key_value(operator, token, token)
    counts = []
    for side in ([query], answered):
        reached = torch.autograd.grad([values.sum() for values in side], weights, retain_graph=True, allow_unused=True)
        counts.append(sum(each.numel() for each, grad in zip(weights, reached, strict=True) if grad is not None))
    return counts[0], counts[1]


def attend_across(operator: SelfAttention, hidden: Tensor, context: Tensor, mask: Tensor | None) -> Tensor:
    """Mixed values of the context for each token, `batch token hidden`; `mask` is true where it has a token."""
    attend = ALL_ATTENTION_FUNCTIONS.get_interface(operator.config._attn_implementation, eager_attention_forward)
    dropout = operator.config.attention_probs_dropout_prob if operator.training else 0.0
    sides, mask = query_key_value(operator, hidden, context), mask_for(operator, hidden, mask)
    mixed, _ = attend(operator, *sides, mask, dropout=dropout, scaling=operator.scaling)
    return mixed.reshape(hidden.shape)
