"""Encoders of this project for transformers' Auto classes, which know them once this module is imported:

    import symbert.model.auto
    from transformers import AutoModelForMaskedLM

    model = AutoModelForMaskedLM.from_pretrained("…/step-400")

A class is Hugging Face's own BERT with the checkpoint's operator in its layers, so heads, pipelines and trainers are
theirs. No code of a checkpoint runs: its operator is a class that is installed here.
"""

from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from symbert.errors import ConfigError
from symbert.model import bert
from symbert.model.configuration import DEFAULTS
from symbert.operators import operator_of

TASKS = ("MaskedLM", "SequenceClassification", "QuestionAnswering", "TokenClassification", "MultipleChoice")


class SymBertConfig(transformers.BertConfig):
    """A config.json of this project."""

    model_type = DEFAULTS["model_type"]


class Attention(bert.Attention):
    """The operator and its projection, called as Hugging Face's layers call theirs."""

    def __init__(self, config: SymBertConfig) -> None:
        with torch.device("cpu"):  # transformers makes models without values
            super().__init__(config)
        for module in self.modules():
            module.constants = {name: module._buffers[name] for name in module._non_persistent_buffers_set}

    def forward(self, hidden: Tensor, mask: Tensor | None = None, **unused: Any) -> tuple[Tensor, None]:
        """`batch token hidden`; a mask of the eager kernel is added to logits, those of operators are booleans."""
        return super().forward(hidden, mask if mask is None or mask.dtype == torch.bool else mask == 0), None


class WithOperator:
    """What stands before a class of Hugging Face's BERT, and before the encoder in it."""

    config_class = SymBertConfig
    _supports_flash_attn = _supports_flex_attn = False

    def __init__(self, config: SymBertConfig, **options: Any) -> None:
        self.origin = Path(config._name_or_path, "config.json")
        if config.is_decoder:
            raise ConfigError(f"{self.origin}: a decoder; make a stock model of it with symbert export")
        operator_of(vars(config)).refuse_edited(self.origin)
        super().__init__(config, **options)
        if isinstance(self, transformers.BertModel):
            for layer in self.encoder.layer:
                layer.attention = Attention(config)
        else:
            self.bert = CLASSES["Model"](config, add_pooling_layer=self.bert.pooler is not None)
        self.post_init()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Draw new heads, and give an operator its constants back, which are in no file."""
        if (constants := vars(module).get("constants")) is None:
            return super()._init_weights(module)
        if not all(getattr(weight, "_is_hf_initialized", False) for weight in module.parameters(recurse=False)):
            raise ConfigError(f"{self.origin}: an operator without weights; give a checkpoint that has them")
        for name, values in constants.items():
            module._buffers[name].copy_(values)


CLASSES = {
    name: type(f"SymBert{name}", (WithOperator, getattr(transformers, f"Bert{name}")), {"__module__": __name__})
    for name in ("Model", *(f"For{task}" for task in TASKS))
}
transformers.AutoConfig.register(SymBertConfig.model_type, SymBertConfig)
for name, kind in CLASSES.items():
    getattr(transformers, f"AutoModel{name.removeprefix('Model')}").register(SymBertConfig, kind)
