"""The shapes of BERT: the paper's (Table 2), one for a laptop, two larger; a job's needs follow from its shape."""

import math
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from symbert.errors import ConfigError

VOCABULARY_SIZE = 30522  # word pieces of bert-base-uncased
POSITIONS, SEGMENTS = 512, 2  # of BERT
PARAMETERS_OF_A_THREAD = 1_750_000  # a model with 4 times as many has 2 threads
MEMORY_OF_A_THREAD = 2000  # MB of host memory
WEIGHTS_FOR_A_GPU = 1_000_000  # of the layers; each is two operations per token


def threads_of(parameters: int) -> int:
    """CPU threads of a process that trains a model: their number grows with the root of the parameters."""
    return max(1, round(math.sqrt(parameters / PARAMETERS_OF_A_THREAD)))


class Shape(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Dimensions of an encoder, by Hugging Face's names."""

    num_hidden_layers: int
    num_attention_heads: int
    hidden_size: int
    intermediate_size: int
    initializer_range: float  # standard deviation of Linear and Embedding weights at the start

    @property
    def layer_weights(self) -> int:
        """Weights of all layers' matrices, with the operator `original`."""
        return self.num_hidden_layers * (4 * self.hidden_size**2 + 2 * self.hidden_size * self.intermediate_size)

    def parameters(self, vocabulary_size: int = VOCABULARY_SIZE) -> int:
        """Parameters of BERT for masked tokens with the operator `original`, tied weights once."""
        hidden, layers = self.hidden_size, self.num_hidden_layers
        norm = 2 * hidden
        embeddings = (vocabulary_size + POSITIONS + SEGMENTS) * hidden + norm
        biases_and_norms = layers * (5 * hidden + self.intermediate_size + 2 * norm)
        return embeddings + self.layer_weights + biases_and_norms + self._head_parameters(vocabulary_size)

    def _head_parameters(self, vocabulary_size: int) -> int:
        """Parameters of BERT's head, whose decoder is tied to the embeddings."""
        return (self.hidden_size + 1) * self.hidden_size + 2 * self.hidden_size + vocabulary_size

    @property
    def threads(self) -> int:
        """CPU threads of a process that trains it."""
        return threads_of(self.parameters())

    @property
    def memory(self) -> int:
        """MB of host memory of a process that trains it."""
        return MEMORY_OF_A_THREAD * self.threads

    @property
    def needs_gpu(self) -> bool:
        """Whether a GPU is worth asking for: a small model trains as fast on a core."""
        return self.layer_weights > WEIGHTS_FOR_A_GPU


SIZES: dict[str, Shape] = {  # of this project
    # 0.07 · √64 ≈ 0.02 · √768: a projection starts with the gain that it has in base, so attention is no flatter.
    "tiny": Shape(2, 2, hidden_size=64, intermediate_size=256, initializer_range=0.07),
    "small": Shape(4, 8, hidden_size=512, intermediate_size=2048, initializer_range=0.02),
    "base": Shape(12, 12, hidden_size=768, intermediate_size=3072, initializer_range=0.02),
    # BERT-large (Devlin et al. 2019), and the shape of the BERT with 1.3 billion parameters of Shoeybi et al. 2019
    # (Megatron-LM, arXiv 1909.08053), whose projections start with the gain of base: 0.0122 · √2048 ≈ 0.02 · √768.
    "large": Shape(24, 16, hidden_size=1024, intermediate_size=4096, initializer_range=0.02),
    "xlarge": Shape(24, 32, hidden_size=2048, intermediate_size=8192, initializer_range=0.0122),
}


def shapes_of(custom: Mapping[str, msgspec.Struct]) -> dict[str, Shape]:
    """The sizes of this project and those of the user's own: dimensions, by Hugging Face's names.

    `initializer_range` may be missing: then a projection starts with the gain that it has in base. ConfigError for the
    name of a size of this project, and for heads that do not divide the hidden size.
    """
    return SIZES | {name: _shape_of(name, msgspec.structs.asdict(shape)) for name, shape in custom.items()}


def _shape_of(name: str, shape: dict[str, Any]) -> Shape:
    hidden, heads, base = shape["hidden_size"], shape["num_attention_heads"], SIZES["base"]
    if name in SIZES or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.]*", name):
        raise ConfigError(
            f"config: 'sizes' has '{name}', which is a size of this project or has more than letters, digits, '_' and "
            "'.'; choose another name"
        )
    if hidden % heads:
        raise ConfigError(
            f"config: 'sizes.{name}': 'num_attention_heads' is {heads}, which does not divide 'hidden_size' "
            f"({hidden}); choose other numbers"
        )
    start = shape.get("initializer_range") or base.initializer_range * math.sqrt(base.hidden_size / hidden)
    return Shape(**{**shape, "initializer_range": start})


def by_parameters(shapes: Mapping[str, Shape]) -> list[str]:
    """The names of sizes, the smallest first."""
    return sorted(shapes, key=lambda name: (shapes[name].parameters(), name))
