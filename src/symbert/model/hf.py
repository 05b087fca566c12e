"""Our models as Hugging Face's own: folded into stock classes, and written.

Any operator whose query, key and value are affine in the hidden states is some BERT (`symbert.model.projections`).
"""

import json
from collections.abc import Sequence
from pathlib import Path

import torch
import transformers
from transformers import BertConfig, PreTrainedModel

from symbert.architectures import architecture_named_in
from symbert.errors import IntegrityError, UsageError
from symbert.files import copy_file, read_json, write_json, write_text
from symbert.model import bert
from symbert.model.attention import SelfAttention
from symbert.model.bert import BaseModel
from symbert.model.card import Result, model_card
from symbert.model.configuration import Configuration
from symbert.model.loading import write_weights
from symbert.model.projections import projections_of
from symbert.paths import TOKENIZER_CONFIG, TOKENIZER_FILES

STOCK: dict[type[BaseModel], type[PreTrainedModel]] = {
    bert.MaskedModel: transformers.BertForMaskedLM,
    bert.Classifier: transformers.BertForSequenceClassification,
    bert.SpanModel: transformers.BertForQuestionAnswering,
    bert.DecoderModel: transformers.BertLMHeadModel,
}
OURS = ("attention", "operator")  # keys of our configuration
NOT_BERTS = (*OURS, "model_type", "architectures", "transformers_version", "_name_or_path")


@torch.no_grad()
def fold(model: BaseModel) -> PreTrainedModel:
    """Hugging Face's model with the results of `model` in evaluation mode.

    ConfigError names an operator that no BERT equals, such as one that is not affine in the hidden states;
    IntegrityError a weight that is not finite.
    """
    _refuse_non_finite(model, model.config._name_or_path or "the model")
    sites = {name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)}
    own = tuple(f"{name}." for name in sites)
    state = {name: values for name, values in model.state_dict().items() if not name.startswith(own)}
    for name, module in sites.items():
        for key, values in projections_of(module).items():
            state[f"{name}.{key}"] = values
    first = next(model.parameters())
    folded = _stock_model(model).to(first.device, first.dtype)
    folded.load_state_dict(state)
    _refuse_non_finite(folded, f"the plain BERT in {first.dtype}")
    return folded.eval()


def _refuse_non_finite(model: torch.nn.Module, owner: str) -> None:
    """IntegrityError for a NaN or an infinity. Comparing outputs would not find it: scaled dot-product attention may
    return zeros for logits that are NaN."""
    for name, values in model.state_dict().items():
        if not values.isfinite().all():
            raise IntegrityError(
                f"{owner}: '{name}' is not finite, expected numbers; give an earlier step or a wider dtype"
            )


def _stock_model(model: BaseModel) -> PreTrainedModel:
    """Hugging Face's model of the same shape; our operator's name is kept among the facts of the run only."""
    config = _stock_config(model.config)
    if isinstance(model, bert.Classifier) and config.num_labels != model.classifier.out_features:
        config.num_labels = model.classifier.out_features
    return STOCK[type(model)](config)


def _stock_config(config: Configuration) -> BertConfig:
    values = config.to_dict()
    facts = {**{key: values[key] for key in OURS if key in values}, **(config.pretraining or {})}
    return BertConfig(**{key: value for key, value in values.items() if key not in NOT_BERTS} | {"pretraining": facts})


def refuse_used(output: Path) -> None:
    """UsageError for an output that is no new or empty directory."""
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"--output is {output}, which exists already; name a new or an empty directory")


def copy_tokenizer(checkpoint: Path, output: Path, longest: int | None = None) -> None:
    """The files of a checkpoint's tokenizer, which cuts texts at the `longest` rows of a classifier."""
    for name in TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            copy_file(checkpoint / name, output / name)
    if longest and (file := output / TOKENIZER_CONFIG).is_file():
        write_json(file, {**read_json(file, dict), "model_max_length": longest})


def write_model(model: PreTrainedModel | BaseModel, output: Path, results: Sequence[Result] = ()) -> None:
    """Publish model.safetensors, README.md with these scores, and config.json of a stock model or of one of ours, each
    whole or not at all."""
    config = model.config
    if isinstance(model, PreTrainedModel):
        config.architectures = [type(model).__name__]
        config.dtype = str(model.dtype).removeprefix("torch.")
        values = json.loads(config.to_json_string())
    else:
        architecture = architecture_named_in(config.architectures)
        values = {
            **config.to_dict(),
            "architectures": config.architectures if architecture else [f"Sym{STOCK[type(model)].__name__}"],
        }
    write_weights(model, output / "model.safetensors")
    write_text(output / "README.md", model_card(values, results))
    write_json(output / "config.json", values)
