"""The hosts by name: the kinds of model that operators are compared in. Imports no torch.

To add one, write its model and its objective (`symbert.pretrain.objective`), and an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from symbert.flops import encoder_decoder_step_flops, step_flops
from symbert.sizes import Shape


@dataclass(frozen=True)
class Rows:
    """Packed rows as a plan knows them."""

    vocabulary_size: int
    tokens: float  # of a row; of a source, where pairs are read
    masked: float = 1.0  # share of the tokens that encoders predict
    target_tokens: float = 0.0  # of a target, where pairs are read


@dataclass(frozen=True)
class Host:
    """What is known of a kind of model beforehand."""

    task: str  # what it is trained on, and measured by, as a sentence of captions
    objective: str  # module:class of that
    model: str  # module:class that is trained; its checkpoints name the class among their `architectures`
    rows: Literal["corpus", "pairs"]  # that are packed for it: of the corpus, or of the parallel text
    measure: str | None  # what its validations measure beside the loss, as metrics.jsonl calls it
    sites: int  # operators in a layer of a size
    parameters: Callable[[Shape, int], int]  # of its model for the corpus's vocabulary, with the operator `original`
    step_flops: Callable[[Shape, Rows, float], float]  # operations of a step on so many sequences, with `original`
    tokens: Callable[[Rows], float]  # that the layers read of a sequence
    further_measures: tuple[str, ...] = ()
    has_likelihoods: bool = False  # of sentences, by which it judges BLiMP's minimal pairs

    @property
    def reads_corpus(self) -> bool:
        """Whether it is trained on rows of the corpus."""
        return self.rows == "corpus"


def _masked_tokens(shape: Shape, rows: Rows, sequences: float) -> float:
    masked = rows.masked * sequences * rows.tokens
    return step_flops(shape, shape.layer_weights, rows.vocabulary_size, sequences, rows.tokens, masked)


def _next_tokens(shape: Shape, rows: Rows, sequences: float) -> float:
    tokens = rows.tokens - 1
    return step_flops(shape, shape.layer_weights, rows.vocabulary_size, sequences, tokens, sequences * tokens)


def _translations(shape: Shape, rows: Rows, sequences: float) -> float:
    side = 2 * shape.num_hidden_layers * shape.hidden_size**2  # of cross-attention: query and output, or key and value
    tokens = (rows.tokens, rows.target_tokens)
    return encoder_decoder_step_flops(shape, shape.layer_weights, side, side, rows.vocabulary_size, sequences, *tokens)


HOSTS: dict[str, Host] = {
    "encoder": Host(
        "Encoders predict masked tokens of the corpus.",
        "symbert.pretrain.masked_tokens:MaskedTokens",
        "symbert.model.network:MaskedModel",
        rows="corpus",
        measure=None,
        sites=1,
        parameters=Shape.parameters,
        step_flops=_masked_tokens,
        tokens=lambda rows: rows.tokens,
        has_likelihoods=True,
    ),
    "decoder": Host(
        "Decoders predict the next token; perplexity is that of held-out rows, by word piece.",
        "symbert.pretrain.next_tokens:NextTokens",
        "symbert.model.decoder:DecoderModel",
        rows="corpus",
        measure="perplexity",
        sites=1,
        parameters=Shape.parameters,
        step_flops=_next_tokens,
        tokens=lambda rows: rows.tokens - 1,
        has_likelihoods=True,
    ),
    "encoder-decoder": Host(
        "Encoder-decoders translate lines of text; chrF and BLEU, from 0 to 100, are of the held-out lines as greedy "
        "decoding writes them.",
        "symbert.pretrain.translation:Translation",
        "symbert.model.encoder_decoder:EncoderDecoderModel",
        rows="pairs",
        measure="chrf",
        further_measures=("bleu",),
        sites=3,
        parameters=Shape.encoder_decoder_parameters,
        step_flops=_translations,
        tokens=lambda rows: rows.tokens + rows.target_tokens,
    ),
}
ENCODER, *OTHERS = HOSTS  # the one of the paper, which alone is fine-tuned; its runs say of no host


def host_named_in(architectures: list[str] | None) -> str | None:
    """The host beside the encoder whose model a config.json names as its class; None where it names none of them."""
    return next((host for host in OTHERS if HOSTS[host].model.split(":")[1] in (architectures or [])), None)
