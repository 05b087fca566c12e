"""Layers that keep nothing for the gradients but what they begin with."""

import pytest
import torch

from model.models import small_config
from symbert.model.bert import DecoderModel, EncoderDecoderModel, HostModel, MaskedModel, initialize

IDS = torch.randint(1, 100, (4, 32), generator=torch.Generator().manual_seed(0))
STEPS = {
    MaskedModel: lambda model: model.masked_logits(IDS, torch.arange(7)),
    DecoderModel: lambda model: model.logits(IDS),
    EncoderDecoderModel: lambda model: model.logits(IDS, IDS > 9, IDS),
}


def model(kind: type[HostModel]) -> HostModel:
    made = kind(small_config("pairwise", hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1))
    initialize(made, 1)
    return made.train()


def step(made: HostModel) -> tuple[torch.Tensor, list[torch.Tensor], int]:
    """Logits and gradients of a step with dropout, and the bytes that forward keeps."""
    kept = 0

    def keep(values: torch.Tensor) -> torch.Tensor:
        nonlocal kept
        kept += values.numel() * values.element_size()
        return values

    torch.manual_seed(2)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda values: values):
        logits = STEPS[type(made)](made)
        kept_by_forward = kept
    logits.float().square().sum().backward()
    return logits.detach(), [parameter.grad for parameter in made.parameters()], kept_by_forward


@pytest.mark.parametrize("kind", STEPS)
def test_what_is_computed_again_has_the_same_bits_with_dropout_and_less_is_kept(kind):
    usual, saving = model(kind), model(kind)
    saving.recompute_activations()
    (logits, gradients, kept), (same, again, less) = step(usual), step(saving)
    assert torch.equal(logits, same)
    for one, other in zip(gradients, again, strict=True):
        assert one is other is None or torch.equal(one, other)
    assert less < 0.5 * kept
