"""Two BERTs: an encoder of a source, and a causal decoder of a target whose layers also attend to the source.

What Hugging Face's `EncoderDecoderModel` of them computes, under its parameters' names. Cross-attention has queries of
the target and keys and values of the source: a shared projection is then one of two sequences.
"""

import copy

import torch
from torch import Tensor

from symbert.hosts import encoder_decoder_step_flops
from symbert.model.configuration import Configuration
from symbert.model.decoder import DecoderModel
from symbert.model.layers import Bert
from symbert.model.network import HostModel
from symbert.model.parameters import matrix_weights
from symbert.model.sites import refuse_looking_ahead, side_weights


class EncoderDecoderModel(HostModel):
    """An encoder and a decoder of one shape and one vocabulary, with embeddings of their own.

    ConfigError for an operator that looks at hidden tokens, or that knows no second sequence.
    """

    _tied_weights_keys = tuple(f"decoder.{name}" for name in DecoderModel._tied_weights_keys)

    def __init__(self, config: Configuration) -> None:
        own, side = copy.copy(config), copy.copy(config)
        own.is_encoder_decoder, own.architectures = True, ["EncoderDecoderModel"]
        side.is_encoder_decoder = False
        super().__init__(own)
        refuse_looking_ahead(side)  # the source has padding
        self.encoder = Bert(side, has_pooler=False)
        self.decoder = DecoderModel(side, attends_to_source=True)

    @property
    def base_model(self) -> "EncoderDecoderModel":
        """What reads the inputs (Hugging Face's word)."""
        return self

    def forward(self, source: Tensor, source_mask: Tensor, target: Tensor) -> Tensor:
        """Logits `batch token vocab` of the token after each of `target` (batch token).

        `source` (batch source) has its padding at the end, where `source_mask` is false.
        """
        return self.decoder(target, *self._encoded(source, source_mask))

    logits = forward

    def _encoded(self, source: Tensor, source_mask: Tensor) -> tuple[Tensor, Tensor]:
        """The source's last hidden states, and its mask as attention takes it."""
        mask = source_mask.bool()[:, None, None]
        return self.encoder(source, mask), mask

    @torch.no_grad()
    def generate(self, source: Tensor, source_mask: Tensor, start_id: int, end_id: int, length: int) -> Tensor:
        """The most probable tokens one by one, `batch length`, after `start_id`; padding after `end_id`.

        Computes all tokens anew for each one, as any operator can without a cache, but the head's logits of the last
        one alone, until every row has ended. Call it in evaluation mode.
        """
        context, mask = self._encoded(source, source_mask)
        written = source.new_full((len(source), 1 + length), self.config.pad_token_id)
        written[:, 0] = start_id
        is_over = torch.zeros_like(source[:, 0], dtype=torch.bool)
        for token in range(1, 1 + length):
            following = self.decoder.following_logits(written[:, :token], context, mask).argmax(-1)
            written[:, token] = following.where(~is_over, self.config.pad_token_id)
            is_over |= following == end_id
            if is_over.all():
                break
        return written[:, 1:]

    def step_flops(self, sequences: int, source_tokens: int, target_tokens: int) -> float:
        """Operations, forward and backward, of a step on pairs of so many tokens."""
        crossing = [layer.crossattention for layer in self.decoder.bert.encoder.layer]
        sides = [side_weights(each.self) for each in crossing]
        asked = sum(query for query, _ in sides) + sum(matrix_weights(each.output) for each in crossing)
        return encoder_decoder_step_flops(
            self.config,
            matrix_weights(self.encoder.encoder),
            asked,
            sum(key for _, key in sides),
            self.config.vocab_size,
            sequences,
            source_tokens,
            target_tokens,
        )
