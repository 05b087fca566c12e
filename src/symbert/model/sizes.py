"""The shapes of BERT that are compared (paper, Table 2), and one for a laptop."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Shape:
    """Dimensions of an encoder, by Hugging Face's names."""

    num_hidden_layers: int
    num_attention_heads: int
    hidden_size: int
    intermediate_size: int


SIZES: dict[str, Shape] = {
    "tiny": Shape(num_hidden_layers=2, num_attention_heads=2, hidden_size=64, intermediate_size=256),
    "small": Shape(num_hidden_layers=4, num_attention_heads=8, hidden_size=512, intermediate_size=2048),
    "base": Shape(num_hidden_layers=12, num_attention_heads=12, hidden_size=768, intermediate_size=3072),
}
