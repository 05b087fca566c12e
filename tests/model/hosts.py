"""Small models of the hosts with weights unlike those of a start, in float64."""

from model.models import widened
from symbert.model.bert import HostModel, initialize
from symbert.model.configuration import Configuration, configuration_of


def small_config(attention: str = "original", **own: object) -> Configuration:
    """The size tiny with 100 pieces and no dropout."""
    config = configuration_of("tiny", attention, vocabulary_size=100, dropout=0.0)
    vars(config).update(own)
    return config


def moved(model: HostModel) -> HostModel:
    """A model whose every parameter is moved from its start, in evaluation mode."""
    initialize(model, 1)
    return widened(model, 0.1).double().eval()
