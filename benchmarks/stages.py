"""Where the time of a step goes, by hooks that torch calls: whatever trains the model is not changed."""

from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack

from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from transformers import BertForSequenceClassification

from benchmarks.trainers import now

STAGES = ("batch", "forward", "backward", "clipping", "optimizer")


class Stages:
    """Seconds by stage of the steps from `begin` to the end of the context, on a CPU.

    Each stage lasts from the end of the one before: `batch` is all from an optimizer step to the embeddings,
    `forward` ends with the classifier, `backward` with the last gradient, `clipping` with the optimizer's beginning.
    """

    def __init__(self, model: BertForSequenceClassification) -> None:
        self.model, self.seconds, self.last = model, defaultdict(float), now()
        self.hooks = ExitStack()

    def begin(self) -> None:
        """Begin with a step. Not earlier: training may give the model other parameters."""
        for handle in (
            self.model.bert.embeddings.register_forward_pre_hook(self._ending("batch")),
            self.model.classifier.register_forward_hook(self._ending("forward")),
            *(each.register_post_accumulate_grad_hook(self._ending("backward")) for each in self.model.parameters()),
            register_optimizer_step_pre_hook(self._ending("clipping")),
            register_optimizer_step_post_hook(self._ending("optimizer")),
        ):
            self.hooks.callback(handle.remove)
        self.last = now()

    def __enter__(self) -> "Stages":
        return self

    def __exit__(self, *_) -> None:
        self.hooks.close()

    def _ending(self, stage: str) -> Callable[..., None]:
        """A hook that ends a stage."""

        def end(*_) -> None:
            moment = now()
            self.seconds[stage] += moment - self.last
            self.last = moment

        return end
