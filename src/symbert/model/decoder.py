"""BERT as a causal decoder: the encoder's layers, whose tokens see no later ones, and a head for the next token.

What Hugging Face's `BertLMHeadModel` with `is_decoder` computes, under its parameters' names.
"""

import copy

from torch import Tensor, nn

from symbert.hosts import step_flops
from symbert.model.configuration import Configuration
from symbert.model.layers import Bert
from symbert.model.network import HostModel, Predictions
from symbert.model.parameters import matrix_weights


class DecoderModel(HostModel):
    """The decoder with BERT's head; with `attends_to_source`, each layer also attends to another sequence.

    ConfigError for an operator that looks at later tokens.
    """

    _tied_weights_keys = ("cls.predictions.decoder.weight", "cls.predictions.decoder.bias")

    def __init__(self, config: Configuration, attends_to_source: bool = False) -> None:
        own = copy.copy(config)
        own.is_decoder, own.add_cross_attention = True, attends_to_source
        own.architectures = ["DecoderModel"]
        super().__init__(own)
        self.bert = Bert(own, has_pooler=False)
        self.cls = nn.ModuleDict({"predictions": Predictions(own, self.bert.embeddings.word_embeddings)})

    @property
    def base_model(self) -> Bert:
        """The part below the head (Hugging Face's word)."""
        return self.bert

    def forward(self, ids: Tensor, source: Tensor | None = None, source_mask: Tensor | None = None) -> Tensor:
        """Logits `batch token vocab` of the token after each of `ids` (batch token): what follows changes none of them.

        `source` are the last hidden states of another sequence; `source_mask` (batch 1 1 source) is true for tokens.
        """
        return self.cls["predictions"](self.bert(ids, None, source, source_mask))

    logits = forward

    def following_logits(self, ids: Tensor, source: Tensor | None = None, source_mask: Tensor | None = None) -> Tensor:
        """Logits `batch vocab` of the token after the last of `ids` alone."""
        return self.cls["predictions"](self.bert(ids, None, source, source_mask)[:, -1])

    def step_flops(self, sequences: int, tokens: int) -> float:
        """Operations, forward and backward, of a step on rows of `tokens` each."""
        weights = matrix_weights(self.bert.encoder)
        return step_flops(self.config, weights, self.config.vocab_size, sequences, tokens, sequences * tokens)
