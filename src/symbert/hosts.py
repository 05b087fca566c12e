"""The hosts by name: the kinds of model that operators are compared in. Imports no torch.

To add one, write its model and its objective (`symbert.pretrain.objective`), and an entry here.
"""

from collections.abc import Callable
from dataclasses import dataclass

from symbert.flops import step_flops
from symbert.sizes import Shape


@dataclass(frozen=True)
class Host:
    """What is known of a kind of model beforehand."""

    task: str  # what it is trained on, and measured by, as a sentence of captions
    objective: str  # module:class of that
    measure: str | None  # what its validations measure beside the loss, as metrics.jsonl calls it
    parameters: Callable[[Shape, int], int]  # of its model for a vocabulary, with the operator `original`
    # Operations of a step, with `original`: of a shape, a vocabulary, sequences, tokens of each, share that is masked.
    step_flops: Callable[[Shape, int, float, int, float], float]


def _masked_tokens(shape: Shape, vocabulary_size: int, sequences: float, tokens: int, masked: float) -> float:
    return step_flops(shape, shape.layer_weights, vocabulary_size, sequences, tokens, masked * sequences * tokens)


def _next_tokens(shape: Shape, vocabulary_size: int, sequences: float, tokens: int, masked: float) -> float:
    return _masked_tokens(shape, vocabulary_size, sequences, tokens - 1, 1.0)


HOSTS: dict[str, Host] = {
    "encoder": Host(
        "Encoders predict masked tokens of the corpus.",
        "symbert.pretrain.masked_tokens:MaskedTokens",
        None,
        Shape.parameters,
        _masked_tokens,
    ),
    "decoder": Host(
        "Decoders predict the next token; perplexity is that of held-out rows, by word piece.",
        "symbert.pretrain.next_tokens:NextTokens",
        "perplexity",
        Shape.decoder_parameters,
        _next_tokens,
    ),
}
ENCODER, *OTHERS = HOSTS  # the one of the paper, which alone is fine-tuned; its runs say of no host
# The rules of the workflow that train, and the host of each.
PRETRAINING = {"pretrain_model": ENCODER, **{f"pretrain_{host.replace('-', '_')}": host for host in OTHERS}}
