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
    """A tiny model whose every parameter is moved from its start, biases and diagonals too."""
    return widened(started("tiny", attention, head), 0.1)


def started(size: str, attention: str, head: str = "masked", layers: int = 2) -> SymBertPreTrainedModel:
    """A model of a named width as it starts, in evaluation mode."""
    config = build_config(size, attention, vocabulary_size=200)
    config.num_labels, config.num_hidden_layers = 3, layers
    model = HEADS[head](config)
    initialize(model, 1)
    return model.eval()


def widened(model: SymBertPreTrainedModel, deviation: float) -> SymBertPreTrainedModel:
    """The model with N(0, deviation²) added to every parameter."""
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.data += deviation * torch.randn(parameter.shape, generator=generator)
    return model
