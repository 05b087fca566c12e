"""BERT with an exchangeable attention operator: operators in their places, embeddings, layers, heads, architectures.

Parameters have Hugging Face's names and order, and the results equal its classes to the bit (`masked_logits` to
rounding), without importing transformers, which takes seconds. Shapes: `batch token hidden`.
"""

import copy
import importlib
import inspect
import traceback
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.draws import mix
from symbert.errors import ConfigError, SymbertError, line_of
from symbert.model.attention import (
    CopiedLinear,
    ExclusiveAttention,
    SelfAttention,
    SymmetricOthersAttention,
    WideLinear,
)
from symbert.model.configuration import Configuration
from symbert.model.from_transformers import (
    BertConfig,
    normal_,
    ones_,
    shown,
    zeros_,
)
from symbert.model.init import set_width
from symbert.operators import Operator, operator_of
from symbert.syntax import is_local

PLAIN = (SelfAttention.forward,)  # the forward passes that attend by query, key and value alone
# Those whose logits query and key alone decide.
OF_QUERY_AND_KEY = (*PLAIN, SymmetricOthersAttention.forward, ExclusiveAttention.forward)
CONSTANTS_SEED = 0  # of the numbers that a class draws when it is made


# --- operators --------------------------------------------------------------------------------------------------------


def attention_of(config: BertConfig) -> SelfAttention:
    """The operator that `config.attention` names, made with its arguments: causal in a decoder.

    ConfigError for an unknown name, for a class that cannot be made, and for one that this model cannot have.
    """
    operator = operator_of(vars(config))
    module, name = operator.path.split(":")
    try:
        kind = getattr(importlib.import_module(module), name)
        if not issubclass(kind, SelfAttention) or inspect.isabstract(kind):
            raise TypeError("it has to inherit from symbert.model.attention.SelfAttention and define query_key_value")
        with torch.random.fork_rng(devices=[]):  # constants, such as random features, are alike in every process
            torch.default_generator.manual_seed(CONSTANTS_SEED)
            site = kind(config, **operator.arguments)
    except Exception as error:  # the user's own code raises what it likes
        raise ConfigError(
            f"attention '{operator.name}': {operator.path} cannot be made with {operator.arguments} ({told(error)}); "
            "correct the class or its arguments"
        ) from error
    refusal = ""
    if site.is_causal:
        refusal = (
            "sets is_causal, which the model decides, true in a decoder; leave is_causal out, and hide tokens in a "
            "forward of its own"
        )
    elif operator.init_scale is not None and type(site).forward not in OF_QUERY_AND_KEY:
        refusal = (
            "has a forward of its own, and 'init_scale' measures query and key alone; write what it does into "
            "query_key_value, remove 'init_scale'"
        )
    elif config.is_decoder and not is_token_wise(site):
        refusal = (
            "does not say that no token depends on one that a mask hides; hand `attention_mask` on, compute query, key "
            f"and value of each token by itself, and write token_wise = True into {operator.path}"
        )
    if refusal:
        raise ConfigError(f"attention '{operator.name}': {refusal}, or leave it out of this model")
    site.is_causal = config.is_decoder
    return site


def told(error: Exception) -> str:
    """An error of the user's own code in a line, with the last place in that code."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if is_local(Path(each.filename))]
    place = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}: " if frames else ""
    return f"{place}{type(error).__name__}: {line_of(error)}"


def is_token_wise(operator: SelfAttention) -> bool:
    """Whether a token mixes with others by attention alone, under the mask: its query, key and value follow from its
    hidden state, not from its place, its neighbours or random numbers.

    The type says so, because outputs may differ for longer rows, in training, or once in a thousand calls: the class is
    this project's, or says `token_wise = True` itself; subclasses do not inherit it (`symbert check-operator`
    tries it).
    """
    kind = type(operator)
    return kind.__module__ == SelfAttention.__module__ or vars(kind).get("token_wise") is True


def mask_for(operator: SelfAttention, hidden: Tensor, mask: Tensor | None = None) -> Tensor | None:
    """The mask that the operator of a site is given; `mask` is true for a token, false for padding.

    Padding stands at the end, where no earlier token of a causal site sees it. Fused kernels need no mask there; a
    class with a `forward` of its own, which may add to the mask, is given the whole one.
    """
    if not operator.is_causal:
        return mask
    if type(operator).forward in PLAIN and operator.config._attn_implementation != "eager":
        return None
    tokens = hidden.shape[1]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=hidden.device).tril()[None, None]


def checked_pair(operator: SelfAttention, result: Any, hidden: Tensor) -> tuple[Tensor, Tensor | None]:
    """The result of an operator's `forward`. ConfigError for one that is no pair, as a tensor would be taken apart,
    for mixed values that are not `batch token hidden`; one token may stand for all of a row."""
    place = f"{type(operator).__module__}:{type(operator).__name__}: its forward returns"
    if not isinstance(result, tuple) or len(result) != 2 or not isinstance(result[0], Tensor):
        raise ConfigError(
            f"{place} a {type(result).__name__}, expected a pair: mixed values, and attention weights or None; return "
            "mixed, None"
        )
    (batch, tokens, width), mixed = hidden.shape, result[0]
    if mixed.shape not in ((batch, tokens, width), (batch, 1, width)):
        raise ConfigError(
            f"{place} mixed values of shape {shown(mixed)}, expected batch token hidden, {shown(hidden)}; join the "
            "heads with .transpose(1, 2).flatten(2)"
        )
    weights, expected = result[1], (batch, operator.num_attention_heads, tokens, tokens)
    if weights is not None and type(operator).forward not in PLAIN and weights.shape != expected:
        raise ConfigError(
            f"{place} attention weights of shape {shown(weights)}, expected batch heads token token, "
            f"{' × '.join(map(str, expected))}; return None in their place"
        )
    return result


# --- layers -----------------------------------------------------------------------------------------------------------


class Embeddings(nn.Module):
    """Normalised sum of the embeddings of a token's piece, its text, and its position."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.register_buffer("places", torch.arange(config.max_position_embeddings)[None], persistent=False)

    def forward(self, ids: Tensor, types: Tensor | None = None, places: Tensor | None = None) -> Tensor:
        """`batch token hidden`; without `types` there is one text, without `places` each row begins at the first."""
        types = torch.zeros_like(ids) if types is None else types
        places = self.places[:, : ids.shape[1]] if places is None else places
        summed = self.word_embeddings(ids) + self.token_type_embeddings(types) + self.position_embeddings(places)
        return self.dropout(self.LayerNorm(summed))


class Residual(nn.Module):
    """A projection, added to the input of its branch, normalised."""

    def __init__(self, features: int, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(features, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, values: Tensor, hidden: Tensor) -> Tensor:
        """`batch token hidden`."""
        return self.LayerNorm(self.dropout(self.dense(values)) + hidden)


class Attention(nn.Module):
    """The operator of a layer and its projection."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.self = attention_of(config)
        self.output = Residual(config.hidden_size, config)

    def forward(self, hidden: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """`batch token hidden`; `mask` is `batch 1 1 token`, true for a token that is attended to. With flat
        `positions`, `position hidden` of these tokens alone."""
        mixed, _ = checked_pair(self.self, self.self(hidden, mask_for(self.self, hidden, mask)), hidden)
        if positions is not None:
            mixed, hidden = (rows.expand_as(hidden).flatten(0, 1)[positions] for rows in (mixed, hidden))
        return self.output(mixed, hidden)


class Layer(nn.Module):
    """Attention, then the feed-forward half."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.intermediate_size)})
        self.output = Residual(config.intermediate_size, config)

    def feed_forward_chunk(self, hidden: Tensor) -> Tensor:
        """The feed-forward half, by Hugging Face's name."""
        return self.output(F.gelu(self.intermediate["dense"](hidden)), hidden)

    def forward(self, hidden: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """`batch token hidden`; with flat `positions`, `position hidden` of these tokens, which attend to all."""
        return self.feed_forward_chunk(self.attention(hidden, mask, positions))


class Encoder(nn.Module):
    """The layers of a BERT."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    def forward(self, hidden: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """`batch token hidden`; the last layer is given the `positions`."""
        for layer in self.layer[:-1]:
            hidden = layer(hidden, mask)
        return self.layer[-1](hidden, mask, positions)


class Pooler(nn.Module):
    """The first token of a row, projected, for a classifier."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, first: Tensor) -> Tensor:
        """`… hidden` of first tokens."""
        return torch.tanh(self.dense(first))


class Bert(nn.Module):
    """Embeddings and layers; `symbert.model.packed` uses the pooler."""

    def __init__(self, config: Configuration, has_pooler: bool) -> None:
        super().__init__()
        if config.hidden_act != "gelu":
            raise ConfigError(f"config: 'hidden_act' is {config.hidden_act}, expected gelu; give another checkpoint")
        for key in ("add_cross_attention", "is_encoder_decoder"):
            if getattr(config, key):
                raise ConfigError(f"config: '{key}' is true: a model of two sequences; give another checkpoint")
        self.config = config
        self.embeddings = Embeddings(config)
        self.encoder = Encoder(config)
        if has_pooler:
            self.pooler = Pooler(config)

    def forward(self, ids: Tensor, mask: Tensor | None = None, positions: Tensor | None = None) -> Tensor:
        """The last hidden states `batch token hidden`, or `position hidden` of tokens at flat `positions`; `mask` is
        `batch 1 1 token`, true for a token that is attended to."""
        return self.encoder(self.embeddings(ids), mask, positions)


class Predictions(nn.Module):
    """BERT's masked-token head: logits of all pieces; its decoder has the weights of the embeddings."""

    def __init__(self, config: Configuration, embeddings: nn.Embedding) -> None:
        super().__init__()
        norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.transform = nn.ModuleDict({"dense": nn.Linear(config.hidden_size, config.hidden_size), "LayerNorm": norm})
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.decoder.weight, self.decoder.bias = embeddings.weight, self.bias

    def forward(self, hidden: Tensor) -> Tensor:
        """`token vocab`."""
        return self.decoder(self.transform["LayerNorm"](F.gelu(self.transform["dense"](hidden))))


# --- architectures and heads ------------------------------------------------------------------------------------------


class BaseModel(nn.Module):
    """A model in which operators are compared: a configuration, and how parameters start."""

    _tied_weights_keys: tuple[str, ...] = ()  # second names of weights (Hugging Face's word)
    is_encoder = True  # whose tokens see later ones

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        if self.is_encoder and config.is_decoder:
            raise ConfigError("config: 'is_decoder' is true, but this model is an encoder; set it to false")
        self.config = config

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Fill the parameters of a module itself as BERT's start (Hugging Face's word, whose draws these are)."""
        if isinstance(module, SelfAttention | WideLinear | CopiedLinear):
            module.initialize()
        elif type(module) in (nn.Linear, nn.Embedding):
            normal_(module.weight, 0.0, self.config.initializer_range)
            if getattr(module, "bias", None) is not None:
                zeros_(module.bias)
            if getattr(module, "padding_idx", None) is not None:
                zeros_(module.weight[module.padding_idx])
        elif type(module) is nn.LayerNorm:
            ones_(module.weight)
            zeros_(module.bias)
        elif isinstance(module, Predictions):
            zeros_(module.bias)
        else:  # of an operator of the user's own
            from transformers import PreTrainedModel

            PreTrainedModel._init_weights(SimpleNamespace(config=self.config), module)


@torch.no_grad()
def initialize(model: nn.Module, seed: int) -> None:
    """Draw every parameter as a function of (seed, module name) alone, then give each layer its operator's start.

    Two operators under one seed therefore start from equal embeddings, values and feed-forward layers, and
    adding a module changes no other: a paired comparison.
    """
    operator, drawn = operator_of(vars(model.config)), set()
    for name, module in model.named_modules():
        parameters = set(module.parameters(recurse=False))
        # The decoder's are tied, and must keep the embeddings' zero row for padding. An operator may fill buffers.
        if parameters - drawn or isinstance(module, SelfAttention):
            torch.manual_seed(int(mix(seed, zlib.crc32(name.encode())) >> 1))
            with _starting(operator, name):
                model._init_weights(module)
            drawn |= parameters
    if operator.init_scale is not None:
        for name, module in model.named_modules():
            if isinstance(module, SelfAttention):
                with _starting(operator, name):
                    set_width(module, operator)


@contextmanager
def _starting(operator: Operator, name: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # the user's own code raises what it likes
        if operator.is_of_project or isinstance(error, SymbertError):
            raise
        raise ConfigError(
            f"attention '{operator.name}': {name} cannot start ({told(error)}); correct the class"
        ) from error


class PredictingModel(BaseModel):
    """Layers with BERT's head, which predicts tokens."""

    _tied_weights_keys = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")

    def __init__(self, config: Configuration) -> None:
        super().__init__(config)
        self.bert = Bert(config, has_pooler=False)
        self.cls = nn.ModuleDict({"predictions": Predictions(config, self.bert.embeddings.word_embeddings)})


class MaskedModel(PredictingModel):
    """The encoder with BERT's masked-token head."""

    def masked_logits(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Logits `masked vocab` at the flat `positions` of `ids` (batch token) only.

        Equal to those rows of all logits. The last layer attends, and computes the rest for these tokens alone.
        Pre-training has no padding, so there is no mask.
        """
        return self.cls["predictions"](self.bert(ids, positions=positions))


class Classifier(BaseModel):
    """The encoder with pooler and classifier, for GLUE; one label is a grade."""

    def __init__(self, config: Configuration, num_labels: int) -> None:
        super().__init__(config)
        self.bert = Bert(config, has_pooler=True)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)
        self.new_layers = (self.bert.pooler.dense, self.classifier)  # that pre-training has no weights of


class SpanModel(BaseModel):
    """The encoder with two outputs for each token: whether it is the first, and the last, of an answer.

    As in Hugging Face's BertForQuestionAnswering there is no pooler, and no dropout above the encoder.
    """

    def __init__(self, config: Configuration, num_labels: int) -> None:
        super().__init__(config)
        self.bert = Bert(config, has_pooler=False)
        self.qa_outputs = nn.Linear(config.hidden_size, num_labels)
        self.new_layers = (self.qa_outputs,)


class DecoderModel(PredictingModel):
    """The decoder with BERT's head. ConfigError for an operator that may look at later tokens."""

    is_encoder = False

    def __init__(self, config: Configuration) -> None:
        own = copy.copy(config)
        own.is_decoder, own.architectures = True, ["DecoderModel"]
        super().__init__(own)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits `batch token vocab` of the token after each of `ids` (batch token), whatever follows it there."""
        return self.cls["predictions"](self.bert(ids))


def layer_weights(model: BaseModel) -> int:
    """Weights in matrices of the layers."""
    return sum(parameter.numel() for parameter in model.bert.encoder.parameters() if parameter.ndim >= 2)


# --- parameters -------------------------------------------------------------------------------------------------------


def attention_parameters(model: BaseModel) -> dict[str, int]:
    """Parameters of the operator of one `layer`, and of all `layers` together, shared ones once."""
    sites = nn.ModuleList(layer.attention.self for layer in model.bert.encoder.layer)
    return {"layer": _count(sites[0]), "layers": _count(sites)}


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
