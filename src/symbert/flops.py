"""Floating-point operations of BERT by formula: what a training counts for its MFU, and a plan beforehand.

With n tokens in sequences of length t, l layers of hidden size h, m masked tokens and a vocabulary of v,
a product of matrices counting two operations per multiplication:

    forward  = 2 n · (matrix weights of the layers) + 4 l n t h + 2 m (h² + v h)
    backward = 2 · forward

Every weight with two or more dimensions is applied once to every token (a pairwise factor to its head's part),
4 l n t h are the logits and the mixing of the values, and the head works on masked tokens alone. What is
element by element (softmax, norms, biases, activations, the diagonals of `shared`) is not counted, as is
customary for model FLOPs (Chowdhery et al. 2022, PaLM, appendix B); nor is what a kernel computes twice.
Imports no torch.
"""

from typing import Protocol


class Encoder(Protocol):
    """Dimensions by Hugging Face's names, as both a `Shape` and a model's configuration have them."""

    num_hidden_layers: int
    hidden_size: int


def encoder_flops(shape: Encoder, layer_weights: int, sequences: float, tokens: int) -> float:
    """Operations of the layers, forward, on `sequences` of `tokens` each."""
    total = sequences * tokens
    return 2.0 * total * layer_weights + 4.0 * shape.num_hidden_layers * total * tokens * shape.hidden_size


def head_flops(shape: Encoder, vocabulary_size: int, predicted: float) -> float:
    """Operations of the head, forward, on `predicted` tokens."""
    return 2.0 * predicted * shape.hidden_size * (shape.hidden_size + vocabulary_size)


def step_flops(
    shape: Encoder, layer_weights: int, vocabulary_size: int, sequences: float, tokens: int, masked: float
) -> float:
    """Operations, forward and backward, of a step of pre-training, `masked` of all tokens to predict."""
    head = head_flops(shape, vocabulary_size, masked)
    return 3.0 * (encoder_flops(shape, layer_weights, sequences, tokens) + head)


def encoder_decoder_step_flops(
    shape: Encoder,
    layer_weights: int,
    asked: int,
    answered: int,
    vocabulary_size: int,
    sequences: float,
    source_tokens: int,
    target_tokens: int,
) -> float:
    """Operations, forward and backward, of a step on pairs of a source and a target, all of which is predicted.

    Encoder and decoder have `layer_weights` each, the decoder without its cross-attentions. Of those, a token of the
    target is multiplied by `asked` weights, with the projections that follow, and a token of the source by `answered`.
    """
    sides = 2.0 * sequences * (target_tokens * asked + source_tokens * answered)
    mixing = 4.0 * shape.num_hidden_layers * sequences * target_tokens * source_tokens * shape.hidden_size
    source = 3.0 * encoder_flops(shape, layer_weights, sequences, source_tokens)
    predicted = sequences * target_tokens
    target = step_flops(shape, layer_weights, vocabulary_size, sequences, target_tokens, predicted)
    return source + target + 3.0 * (sides + mixing)
