"""What pre-training minimises, as a module that compiles to one graph and that processes share."""

from torch import Tensor, nn
from torch.nn import functional as F

from symbert.model.bert import SymBertForMaskedLM
from symbert.pretrain.batches import IGNORED


class MaskedLoss(nn.Module):
    """Cross-entropy of the masked tokens of a batch, summed, in nats; empty slots count nothing."""

    def __init__(self, model: SymBertForMaskedLM) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, positions: Tensor, targets: Tensor) -> Tensor:
        logits = self.model.masked_logits(input_ids, positions)
        return F.cross_entropy(logits.float(), targets, ignore_index=IGNORED, reduction="sum")
