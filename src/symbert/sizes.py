"""The shapes of BERT that are compared (paper, Table 2), and one for a laptop."""

from dataclasses import dataclass

VOCABULARY_SIZE = 30522  # word pieces of bert-base-uncased


@dataclass(frozen=True)
class Shape:
    """Dimensions of an encoder, by Hugging Face's names."""

    num_hidden_layers: int
    num_attention_heads: int
    hidden_size: int
    intermediate_size: int
    initializer_range: float  # standard deviation of Linear and Embedding weights at the start


SIZES: dict[str, Shape] = {
    # 0.07 · √64 ≈ 0.02 · √768: a projection starts with the gain that it has in base, so attention is no flatter.
    "tiny": Shape(2, 2, hidden_size=64, intermediate_size=256, initializer_range=0.07),
    "small": Shape(4, 8, hidden_size=512, intermediate_size=2048, initializer_range=0.02),
    "base": Shape(12, 12, hidden_size=768, intermediate_size=3072, initializer_range=0.02),
}
