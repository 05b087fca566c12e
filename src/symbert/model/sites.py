"""Where a model attends: the operator of a site, its query side and key side, and the tokens that it may look at.

Shapes: `batch token hidden` of a sequence, `batch context hidden` of another one that it attends to.
"""

import copy
import importlib
import inspect
from itertools import product
from pathlib import Path

import torch
from torch import Tensor, nn

from symbert.errors import ConfigError
from symbert.model.attention import QueryKeyValue, SelfAttention, SymmetricOthersAttention
from symbert.model.configuration import has_rotary_positions
from symbert.model.from_transformers import ALL_ATTENTION_FUNCTIONS, BertConfig, eager_attention_forward
from symbert.operators import operator_of
from symbert.syntax import is_local

# The forward passes that attend as query, key and value say, of one sequence and of two: in another sequence no token
# is one's own. They are taken here, before a module of the user's own can put another one in their place.
PLAIN = (SelfAttention.forward,)
PLAIN_ACROSS = (*PLAIN, SymmetricOthersAttention.forward)
HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")
TOLERANCE = 1e-9  # relative, of outputs in float64: a token that sees a later one differs by 0.01 and more
MOVED = 0.3  # standard deviation of the weights with which an operator is tried
_looks_ahead: dict[tuple, bool] = {}  # each operator that was tried, by its class, its arguments and its shape


def attention_of(config: BertConfig) -> SelfAttention:
    """The operator that `config.attention` names, made with its arguments.

    ConfigError for an unknown name, a class that cannot be imported or lacks `query_key_value`, for arguments that it
    refuses, and for a class of the user's own that fails on two tokens.
    """
    operator = operator_of(vars(config))
    module, name = operator.path.split(":")
    doing, remedy = "cannot be made", "correct the class or its arguments"
    try:
        made = getattr(importlib.import_module(module), name)
        if not issubclass(made, SelfAttention) or inspect.isabstract(made):
            raise TypeError("it has to inherit from symbert.model.attention.SelfAttention and define query_key_value")
        site = made(config, **operator.arguments)
        if not is_shipped(site):
            doing, remedy = "fails on two tokens", "return query, key and value as `batch heads token head`"
            _try_on_two_tokens(site)
    except Exception as error:  # the user's own code raises what it likes
        if operator.is_built_in:
            raise
        given = ", ".join(f"{key}={value!r}" for key, value in operator.arguments.items())
        raise ConfigError(
            f"attention '{operator.name}': {operator.path}({given}) {doing} ({_place_of(error)}{type(error).__name__}: "
            f"{' '.join(str(error).split())}); {remedy}"
        ) from error
    if type(site).is_causal is not False or vars(site).get("is_causal"):
        raise ConfigError(
            f"attention '{operator.name}': {operator.path} sets 'is_causal', which its model does; leave it out, or "
            "hide tokens in a `forward`"
        )
    site.has_rotary_positions = has_rotary_positions(config)
    if site.has_rotary_positions and not attends_as(site, PLAIN_ACROSS):
        raise ConfigError(
            f"attention '{operator.name}': has a forward of its own, which may not turn queries and keys by their "
            "places; write what it does into query_key_value, or leave it out of sizes with rotary positions"
        )
    return site


def _try_on_two_tokens(site: SelfAttention) -> None:
    """TypeError where the output has not the shape of the input; on the meta device nothing is computed."""
    if any(parameter.is_meta for parameter in site.parameters()):
        return
    hidden = torch.zeros(1, 2, site.config.hidden_size)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        mixed = site(hidden)[0]
    if mixed.shape != hidden.shape:
        raise TypeError(f"the output is {tuple(mixed.shape)}, expected {tuple(hidden.shape)}")


def _place_of(error: BaseException) -> str:
    """File and line of the user's own code in which an error was raised; nothing where it has no part in it."""
    place, frame = "", error.__traceback__
    while frame is not None:
        file = Path(frame.tb_frame.f_code.co_filename)
        if file.is_file() and is_local(file):
            place = f"{file.name}, line {frame.tb_lineno}: "
        frame = frame.tb_next
    return place


def is_shipped(operator: SelfAttention) -> bool:
    """Whether its class is one of this project, which the tests hold against its formula."""
    return type(operator).__module__ == SelfAttention.__module__


def attends_as(operator: SelfAttention, forwards: tuple = PLAIN) -> bool:
    """Whether calling an operator runs one of these functions on its query, key and value, and nothing beside.

    Its type says so, never its outputs: they may differ for longer rows, in training, or once in a thousand calls.
    """
    return (
        getattr(operator.forward, "__func__", None) in forwards
        and type(operator).__call__ is nn.Module.__call__
        and operator.config._attn_implementation in ("eager", "sdpa")
        and not any(vars(operator)[hooks] for hooks in HOOKS)
    )


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
        is_left_to_kernel = type(operator).forward in PLAIN and not is_eager
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

    Each operator of the user's own is tried once in a process, by a copy with random weights, on rows as long as the
    model's, of which the end is exchanged, in training and in evaluation mode.
    """
    operator = operator_of(vars(config))
    tried = operator.path, repr(operator.arguments), config.hidden_size, config.max_position_embeddings
    if tried not in _looks_ahead:
        with torch.random.fork_rng(devices=[]), torch.device("cpu"):
            site = attention_of(config).double()
            site.config = copy.copy(config)
            site.config.attention_probs_dropout_prob = 0.0
            _looks_ahead[tried] = not is_shipped(site) and _looks_behind_masks(site)
    if _looks_ahead[tried]:
        raise ConfigError(
            f"attention '{operator.name}': a token's output depends on later tokens that a mask hides, so that no "
            "decoder can have it; hand `attention_mask` on and treat each token by itself, or leave it out of this host"
        )


@torch.no_grad()
def _looks_behind_masks(operator: SelfAttention) -> bool:
    """Whether tokens depend on those that a causal mask hides, or on those that are padding."""
    generator, tokens = torch.Generator().manual_seed(0), operator.config.max_position_embeddings

    def drawn(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    for parameter in operator.parameters():
        parameter.copy_(MOVED * drawn(*parameter.shape))
    for length in {6, tokens}:
        rows, others = drawn(2, length, operator.config.hidden_size), drawn(2, length, operator.config.hidden_size)
        for kept in {1, 2, 3, 4, 5, *(length * eighth // 8 for eighth in range(1, 8)), length - 1} - {0}:
            exchanged = torch.cat([rows[:, :kept], others[:, kept:]], 1)
            is_token = (torch.arange(length) < kept)[None, None, None]
            for is_causal, is_training in product((True, False), repeat=2):
                operator.is_causal = is_causal
                operator.train(is_training)
                mask, outputs = mask_for(operator, rows, is_token), []
                for hidden in (rows, exchanged):
                    torch.manual_seed(kept)  # what it draws in training is the same
                    outputs.append(operator(hidden, mask)[0][:, :kept])
                if not (outputs[0] - outputs[1]).abs().max() <= TOLERANCE * outputs[0].abs().max():
                    return True
    return False


def cross_attention_of(config: BertConfig) -> SelfAttention:
    """The operator of a site whose queries and keys are of two sequences.

    ConfigError for a class with a `forward` of its own, which knows of one sequence only.
    """
    operator = attention_of(config)
    if not attends_as(operator, PLAIN_ACROSS):
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
