"""The architectures by name: the kinds of model that operators are compared in. Imports no torch.

To add one, write its model and its task (`symbert.pretrain.tasks`), and an entry here.

Operations are those of BERT by formula: what a training counts for its MFU, and a plan beforehand.

With n tokens in sequences of length t, l layers of hidden size h, m masked tokens and a vocabulary of v,
a product of matrices counting two operations per multiplication:

    forward  = 2 n · (matrix weights of the layers) + 4 l n t h + 2 m (h² + v h) − 2 (n − m) (h² + 2 h f)
    backward = 2 · forward

Every weight with two or more dimensions is applied once to every token (a pairwise factor to its head's part), and
4 l n t h are the logits and the mixing of the values. But the head, and the last layer after its attention (the
output's h² and a feed-forward half of width f), work on masked tokens alone; other architectures have m = n. What is
element by element (softmax, norms, biases, activations, the diagonals of `shared`) is not counted, as is
customary for model FLOPs (Chowdhery et al. 2022, PaLM, appendix B); nor is what a kernel computes twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol


class Encoder(Protocol):
    """Dimensions by Hugging Face's names, as both a `Shape` and a model's configuration have them."""

    @property
    def num_hidden_layers(self) -> int: ...  # read, not set
    @property
    def hidden_size(self) -> int: ...
    @property
    def intermediate_size(self) -> int: ...


def encoder_flops(shape: Encoder, layer_weights: int, sequences: float, tokens: float) -> float:
    """Operations of the layers, forward, on `sequences` of `tokens` each."""
    total = sequences * tokens
    return 2.0 * total * layer_weights + 4.0 * shape.num_hidden_layers * total * tokens * shape.hidden_size


def head_flops(shape: Encoder, vocabulary_size: int, predicted: float) -> float:
    """Operations of the head, forward, on `predicted` tokens."""
    return 2.0 * predicted * shape.hidden_size * (shape.hidden_size + vocabulary_size)


@dataclass(frozen=True)
class Rows:
    """Packed rows as a plan knows them."""

    vocabulary_size: int
    tokens: int  # of a row
    masked: float = 1.0  # share of the tokens that encoders predict


@dataclass(frozen=True)
class Architecture:
    """The facts about a kind of model that are known before any is built."""

    model: str  # module:class that is trained; its checkpoints name the class among their `architectures`
    task: str  # module:class of what it learns
    sentence: str  # its task and its measures, for captions
    measure: str | None  # what its validations measure beside the loss, as metrics.jsonl calls it
    step_flops: Callable[[Encoder, int, Rows, float], float]  # of sequences, by its layers' weights
    tokens: Callable[[Rows], int]  # that the layers read of a sequence

    @property
    def model_class(self) -> Any:
        """The class that is trained."""
        return resolve_name(self.model)

    @property
    def task_class(self) -> Any:
        """The class of its task."""
        return resolve_name(self.task)


def _masked_tokens(shape: Encoder, layer_weights: int, rows: Rows, sequences: float) -> float:
    tokens = sequences * rows.tokens
    head = head_flops(shape, rows.vocabulary_size, rows.masked * tokens)
    spared = 2.0 * (1 - rows.masked) * tokens * shape.hidden_size * (shape.hidden_size + 2 * shape.intermediate_size)
    return 3.0 * (encoder_flops(shape, layer_weights, sequences, rows.tokens) + head - spared)


def _next_tokens(shape: Encoder, layer_weights: int, rows: Rows, sequences: float) -> float:
    tokens = rows.tokens - 1
    head = head_flops(shape, rows.vocabulary_size, sequences * tokens)
    return 3.0 * (encoder_flops(shape, layer_weights, sequences, tokens) + head)


ARCHITECTURES: dict[str, Architecture] = {
    "encoder": Architecture(
        "symbert.model.bert:MaskedModel",
        "symbert.pretrain.tasks:MaskedTokens",
        "Encoders predict masked tokens of the corpus.",
        measure=None,
        step_flops=_masked_tokens,
        tokens=lambda rows: rows.tokens,
    ),
    "decoder": Architecture(
        "symbert.model.bert:DecoderModel",
        "symbert.pretrain.tasks:NextToken",
        "Decoders predict the next token; perplexity is that of held-out rows, by word piece.",
        measure="perplexity",
        step_flops=_next_tokens,
        tokens=lambda rows: rows.tokens - 1,
    ),
}
ENCODER, *OTHERS = ARCHITECTURES  # the paper's, which alone is fine-tuned; its records omit it


def architecture_named_in(architectures: list[str] | None) -> str | None:
    """The architecture whose model a config.json names as its class; None for an encoder."""
    return next(
        (
            architecture
            for architecture in OTHERS
            if ARCHITECTURES[architecture].model.split(":")[1] in (architectures or [])
        ),
        None,
    )
