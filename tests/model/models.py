"""Small models with weights as different from their start as those of a trained model."""

import torch

from symbert.model.bert import (
    SymBertForMaskedLM,
    SymBertForSequenceClassification,
    SymBertPreTrainedModel,
    build_config,
    initialize,
)

HEADS = {"masked": SymBertForMaskedLM, "classification": SymBertForSequenceClassification}
IDS = torch.arange(24).reshape(2, 12)
MASK = torch.tensor([[1] * 12, [1] * 7 + [0] * 5])


def trained(attention: str, head: str = "masked") -> SymBertPreTrainedModel:
    """A model whose every parameter is moved from its start, biases and diagonals too."""
    config = build_config("tiny", attention, vocabulary_size=200)
    config.num_labels = 3
    model = HEADS[head](config)
    initialize(model, 1)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=generator)
    return model.eval()
