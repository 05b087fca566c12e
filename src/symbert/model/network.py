"""BERT with an exchangeable attention operator as torch modules: what is trained and fine-tuned.

Parameters have Hugging Face's names and order. What is computed is, to the bit, what the classes of
`symbert.model.bert` compute, which take seconds to import.
"""

import zlib
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from symbert.draws import mix
from symbert.errors import ConfigError
from symbert.model.attention import CopiedLinear, SelfAttention, WideLinear
from symbert.model.configuration import Configuration, refuse_decoder
from symbert.model.from_transformers import normal_, ones_, zeros_
from symbert.model.layers import Bert, Layers
from symbert.model.start import set_width
from symbert.operators import operator_named


class Transform(nn.Module):
    """The projection of hidden states before they are compared with the embeddings."""

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)

    def forward(self, hidden: Tensor) -> Tensor:
        """`token hidden`."""
        return self.LayerNorm(F.gelu(self.dense(hidden)))


class Predictions(nn.Module):
    """BERT's masked-token head: logits of all pieces; its decoder has the weights of the embeddings."""

    def __init__(self, config: Configuration, embeddings: nn.Embedding) -> None:
        super().__init__()
        self.transform = Transform(config)
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.decoder.weight, self.decoder.bias = embeddings.weight, self.bias

    def forward(self, hidden: Tensor) -> Tensor:
        """`token vocab`."""
        return self.decoder(self.transform(hidden))


class HostModel(nn.Module):
    """A model in which operators are compared: a configuration, and how parameters start."""

    _tied_weights_keys: tuple[str, ...] = ()  # of weights that have another name, too (Hugging Face's word)

    def __init__(self, config: Configuration) -> None:
        super().__init__()
        if config.hidden_act != "gelu":
            raise ConfigError(f"config: 'hidden_act' is {config.hidden_act}, expected gelu; train the model anew")
        self.config = config

    def recompute_activations(self) -> None:
        """Train with less memory, and a third more operations: nothing within a layer is kept for the gradients."""
        for module in self.modules():
            if isinstance(module, Layers):
                module.recomputes = True

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Fill the parameters of a module itself as BERT's start (Hugging Face's word, whose draws these are)."""
        if isinstance(module, SelfAttention | WideLinear | CopiedLinear):
            module.initialize()
        elif type(module) is nn.Linear:
            normal_(module.weight, 0.0, self.config.initializer_range)
            zeros_(module.bias)
        elif type(module) is nn.Embedding:
            normal_(module.weight, 0.0, self.config.initializer_range)
            if module.padding_idx is not None:
                zeros_(module.weight[module.padding_idx])
        elif type(module) is nn.LayerNorm:
            ones_(module.weight)
            zeros_(module.bias)
        elif isinstance(module, Predictions):
            zeros_(module.bias)
        else:  # of an operator of the user's own
            from transformers import PreTrainedModel

            PreTrainedModel._init_weights(SimpleNamespace(config=self.config), module)


class Model(HostModel):
    """An encoder with a head."""

    def __init__(self, config: Configuration, has_pooler: bool) -> None:
        refuse_decoder(config)
        super().__init__(config)
        self.bert = Bert(config, has_pooler)

    @property
    def base_model(self) -> Bert:
        """The part below the head (Hugging Face's word)."""
        return self.bert


class MaskedModel(Model):
    """The encoder with BERT's masked-token head."""

    _tied_weights_keys = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")

    def __init__(self, config: Configuration) -> None:
        super().__init__(config, has_pooler=False)
        self.cls = nn.ModuleDict({"predictions": Predictions(config, self.bert.embeddings.word_embeddings)})

    def masked_logits(self, ids: Tensor, positions: Tensor) -> Tensor:
        """Logits `masked vocab` at the flat `positions` of `ids` (batch token) only.

        Equal to the dense head's rows, at 15 % of its cost. Nothing is padded in pre-training, so no mask is passed.
        """
        return self.cls["predictions"](self.bert(ids).flatten(0, 1)[positions])


class Classifier(Model):
    """The encoder with pooler and classifier, for GLUE; one label is a grade."""

    def __init__(self, config: Configuration, num_labels: int) -> None:
        super().__init__(config, has_pooler=True)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.classifier = nn.Linear(config.hidden_size, num_labels)

    @property
    def new_layers(self) -> tuple[nn.Linear, ...]:
        """What pre-training has no weights of."""
        return self.bert.pooler.dense, self.classifier


class SpanModel(Model):
    """The encoder with outputs for each token: whether it is the first of an answer, and whether it is the last.

    As in Hugging Face's BertForQuestionAnswering there is no pooler, and no dropout above the encoder.
    """

    def __init__(self, config: Configuration, num_labels: int) -> None:
        super().__init__(config, has_pooler=False)
        self.qa_outputs = nn.Linear(config.hidden_size, num_labels)

    @property
    def new_layers(self) -> tuple[nn.Linear, ...]:
        """What pre-training has no weights of."""
        return (self.qa_outputs,)


@torch.no_grad()
def initialize(model: nn.Module, seed: int) -> None:
    """Draw every parameter anew as a function of (seed, module name) alone, then give each layer its operator's start.

    Two operators under one seed therefore start from equal embeddings, values and feed-forward layers, and
    adding a module changes no other: a paired comparison. The model is ours, or Hugging Face's with our operators.
    """
    drawn: set[nn.Parameter] = set()
    for name, module in model.named_modules():
        parameters = set(module.parameters(recurse=False))
        if parameters - drawn:  # the decoder's are tied, and must keep the embeddings' zero row for padding
            for parameter in parameters:
                parameter._is_hf_initialized = False
            torch.manual_seed(int(mix(seed, zlib.crc32(name.encode())) >> 1))
            model._init_weights(module)
            drawn |= parameters
    if (operator := operator_named(model.config.attention)).start is not None:
        for module in model.modules():
            if isinstance(module, SelfAttention):
                set_width(module, operator)
