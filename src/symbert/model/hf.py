"""Our models as Hugging Face's own: known to the Auto classes, folded to stock BERT, and exported.

Any operator whose query, key and value are affine in the hidden states is some BERT: an affine map f is known from what
it makes of zero and of the unit vectors: bias = f(0), weight = f(I) − f(0). So no operator has to say how it folds.
"""

import copy
import json
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    BertLMHeadModel,
    BertModel,
    BertPreTrainedModel,
    PreTrainedModel,
)
from transformers import EncoderDecoderModel as PlainEncoderDecoderModel
from transformers.models.bert.modeling_bert import BertCrossAttention, BertLayer, BertSelfAttention

from symbert.errors import ConfigError, IntegrityError, UsageError
from symbert.files import copy_file, write_json, write_text
from symbert.hosts import host_named_in
from symbert.model.attention import CopiedLinear, SelfAttention, WideLinear
from symbert.model.bert import (
    PLAIN,
    PLAIN_ACROSS,
    Classifier,
    DecoderModel,
    EncoderDecoderModel,
    HostModel,
    Model,
    SpanModel,
    attend_across,
    attends_as,
    attention_of,
)
from symbert.model.card import model_card
from symbert.model.configuration import Configuration, configuration_of, refuse_decoder, refuse_rotary
from symbert.model.loading import building, load_model, write_weights
from symbert.sizes import VOCABULARY_SIZE


@strict
class SymBertConfig(BertConfig):
    """BERT's configuration, the name of the attention operator, and the facts of the run (for the model card)."""

    model_type = "symbert"
    attention: str = "original"
    pretraining: dict | None = None


class SymBertPreTrainedModel(BertPreTrainedModel):
    """What our models share: the configuration class and how operators are initialised and recorded."""

    config_class = SymBertConfig
    _can_record_outputs = {"hidden_states": BertLayer, "attentions": SelfAttention}  # noqa: RUF012 (Hugging Face's)

    def __init__(self, config: SymBertConfig, **options: bool) -> None:
        if host := host_named_in(config.architectures):
            raise ConfigError(
                f"config: 'architectures' names the model of a {host}, which the Auto classes do not know; load it "
                "with symbert.model.loading.load_model, or export it"
            )
        refuse_decoder(config)
        refuse_rotary(config, "Hugging Face's BERT")
        super().__init__(config, **options)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, SelfAttention | WideLinear | CopiedLinear):
            module.initialize()
        else:
            super()._init_weights(module)


class SymBertModel(SymBertPreTrainedModel, BertModel):
    """The encoder; each layer attends with the configured operator."""

    def __init__(self, config: SymBertConfig, add_pooling_layer: bool = True) -> None:
        super().__init__(config, add_pooling_layer=add_pooling_layer)
        for layer in self.encoder.layer:
            layer.attention.self = attention_of(config)
        self.post_init()


class SymBertForMaskedLM(SymBertPreTrainedModel, BertForMaskedLM):
    """The encoder with BERT's masked-token head, its decoder tied to the embeddings."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config, add_pooling_layer=False)
        self.post_init()


class SymBertForSequenceClassification(SymBertPreTrainedModel, BertForSequenceClassification):
    """The encoder with pooler and classifier, for GLUE."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config)
        self.post_init()


class SymBertForQuestionAnswering(SymBertPreTrainedModel, BertForQuestionAnswering):
    """The encoder with outputs for the first and the last token of an answer."""

    def __init__(self, config: SymBertConfig) -> None:
        super().__init__(config)
        self.bert = SymBertModel(config, add_pooling_layer=False)
        self.post_init()


AutoConfig.register("symbert", SymBertConfig, exist_ok=True)
AutoModel.register(SymBertConfig, SymBertModel, exist_ok=True)
AutoModelForMaskedLM.register(SymBertConfig, SymBertForMaskedLM, exist_ok=True)
AutoModelForSequenceClassification.register(SymBertConfig, SymBertForSequenceClassification, exist_ok=True)
AutoModelForQuestionAnswering.register(SymBertConfig, SymBertForQuestionAnswering, exist_ok=True)
HEADS = {Classifier: SymBertForSequenceClassification, SpanModel: SymBertForQuestionAnswering}  # MaskedLM for others


def build_config(
    size: str, attention: str, vocabulary_size: int = VOCABULARY_SIZE, dropout: float = 0.1
) -> SymBertConfig:
    """The configuration of a named size and operator, as Hugging Face's classes want it."""
    return SymBertConfig.from_dict(configuration_of(size, attention, vocabulary_size, dropout).to_dict())


def in_hugging_face(model: Model) -> SymBertPreTrainedModel:
    """The same model in Hugging Face's class."""
    config = SymBertConfig.from_dict(model.config.to_dict())
    if isinstance(model, Classifier):
        config.num_labels = model.classifier.out_features
    same = HEADS.get(type(model), SymBertForMaskedLM)(config)
    same.to(next(model.parameters())).load_state_dict(model.state_dict())
    return same.train(model.training)


BERT: dict[type[SymBertPreTrainedModel | HostModel], type[PreTrainedModel]] = {
    SymBertModel: BertModel,
    SymBertForMaskedLM: BertForMaskedLM,
    SymBertForSequenceClassification: BertForSequenceClassification,
    SymBertForQuestionAnswering: BertForQuestionAnswering,
    DecoderModel: BertLMHeadModel,
}
OURS = ("attention", "operator")  # keys of our configuration
NOT_BERTS = (*OURS, "model_type", "architectures", "transformers_version")
POOLER = "encoder.pooler."
TOLERANCE = 1e-9  # of the attention's output in float64, relative to its largest value


@torch.no_grad()
def fold(model: SymBertPreTrainedModel | HostModel) -> PreTrainedModel:
    """Hugging Face's model that computes what `model` computes, in evaluation mode: of a BERT, a plain BERT.

    ConfigError names an operator that no BERT equals, such as one that is not affine in the hidden states;
    IntegrityError a weight that is not finite.
    """
    refuse_rotary(model.config, "Hugging Face's BERT")
    if isinstance(model, Model):
        model = in_hugging_face(model)
    refuse_non_finite(model, "the model")
    sites = {name: module for name, module in model.named_modules() if isinstance(module, SelfAttention)}
    own = tuple(f"{name}." for name in sites)
    state = {name: values for name, values in model.state_dict().items() if not name.startswith(own)}
    for name, module in sites.items():
        for key, values in projections_of(module, is_across=name.endswith(".crossattention.self")).items():
            state[f"{name}.{key}"] = values
    first = next(model.parameters())
    folded = _plain_model(model).to(first.device, first.dtype)
    if isinstance(model, EncoderDecoderModel):  # Hugging Face's encoder always has a pooler, which nothing reads
        state |= {name: torch.zeros_like(values) for name, values in folded.state_dict().items() if POOLER in name}
    folded.load_state_dict(state)
    refuse_non_finite(folded, f"the plain BERT in {first.dtype}")
    return folded.eval()


def _plain_model(model: SymBertPreTrainedModel | HostModel) -> PreTrainedModel:
    """Hugging Face's model of the same shape."""
    if isinstance(model, EncoderDecoderModel):
        encoder = BertModel(plain_config(model.encoder.config))
        plain = PlainEncoderDecoderModel(encoder=encoder, decoder=_plain_model(model.decoder))
        plain.config.decoder_start_token_id = model.config.bos_token_id
        plain.config.pad_token_id = model.config.pad_token_id
        plain.config.pretraining = _facts(model.config)
        return plain
    return BERT[type(model)](plain_config(model.config))


def refuse_non_finite(model: PreTrainedModel, owner: str) -> None:
    """IntegrityError that names the first weight of `owner` with a NaN or an infinity.

    Comparing outputs would not find them: scaled dot-product attention may return zeros for logits that are NaN.
    """
    for name, values in model.state_dict().items():
        if not values.isfinite().all():
            raise IntegrityError(
                f"{owner}: '{name}' is not finite, expected numbers; give an earlier step or a wider dtype"
            )


def plain_config(config: BertConfig | Configuration) -> BertConfig:
    """BERT's configuration of the same shape; our operator's name is kept among the facts of the run only."""
    berts = {key: value for key, value in config.to_dict().items() if key not in NOT_BERTS}
    return BertConfig(**{**berts, "pretraining": _facts(config)})


def _facts(config: BertConfig | Configuration) -> dict[str, Any]:
    """The operator and the facts of its run."""
    values = config.to_dict()
    return {**{key: values[key] for key in OURS if key in values}, **(config.pretraining or {})}


def projections_of(module: SelfAttention, is_across: bool = False) -> dict[str, Tensor]:
    """BERT's query, key and value of one site, weights and biases in float64; checked on random hidden states, of two
    sequences where the site is one of cross-attention.

    ConfigError for an operator with a `forward` of its own: no number of tokens shows that it attends as BERT.
    """
    if not attends_as(module, PLAIN_ACROSS if is_across else PLAIN):
        raise ConfigError(
            f"attention '{module.config.attention}' has no equal BERT, as it has a forward of its own; load the "
            "checkpoint as its model card says instead"
        )
    module = copy.deepcopy(module).double().eval()
    module.is_causal = False  # so that the check compares what each token makes of all others
    width, device = module.config.hidden_size, next((each.device for each in module.parameters()), None)
    zero = torch.zeros(1, 1, width, dtype=torch.float64, device=device)
    units = torch.eye(width, dtype=torch.float64, device=device)[None]
    projections = {}
    for name, bias, rows in zip(("query", "key", "value"), _flat(module, zero), _flat(module, units), strict=True):
        projections[f"{name}.weight"] = (rows - bias).T.contiguous()
        projections[f"{name}.bias"] = bias[0]
    _check(module, projections, is_across)
    return projections


def _flat(module: SelfAttention, hidden: Tensor) -> list[Tensor]:
    """Query, key and value of one sequence `1 token hidden`, with the heads side by side: `token hidden`."""
    return [side.transpose(1, 2).flatten(2)[0] for side in module.query_key_value(hidden)]


def _check(module: SelfAttention, projections: dict[str, Tensor], is_across: bool) -> None:
    device = projections["query.bias"].device
    bert = (BertCrossAttention if is_across else BertSelfAttention)(module.config).to(device, torch.float64).eval()
    bert.load_state_dict(projections)
    generator, width = torch.Generator().manual_seed(0), module.config.hidden_size
    for shape in ((2, 7, width), (1, module.config.max_position_embeddings, width)):
        hidden, context = (torch.randn(shape, dtype=torch.float64, generator=generator).to(device) for _ in range(2))
        expected = attend_across(module, hidden, context, None) if is_across else module(hidden)[0]
        found = bert(hidden, context)[0] if is_across else bert(hidden)[0]
        if not (expected - found).abs().max() <= TOLERANCE * expected.abs().max():
            raise ConfigError(
                f"attention '{module.config.attention}' has no equal BERT, expected query, key and value that are "
                "affine in the hidden states, token by token; load the checkpoint as its model card says instead"
            )


FORMS = ("bert",)
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")


def export(checkpoint: Path, to: str, output: Path) -> None:
    """Write the model of one of our Hugging Face directories, whatever its operator and host, into `output`.

    `to` is the form with equal logits: bert, a plain BERT, of a decoder `BertLMHeadModel` and of an encoder-decoder an
    `EncoderDecoderModel` of two BERTs. Tokenizer files are copied and a model card is written; config.json comes last,
    so that a directory that has one is complete. `output` must be new or empty: what an earlier export left there would
    be taken for a part of this one.
    """
    if to not in FORMS:
        raise UsageError(f"--to is {to}, expected {' or '.join(FORMS)}")
    refuse_used(output, checkpoint)
    model = load_model(checkpoint)
    refuse_non_finite(model, str(checkpoint / "model.safetensors"))
    if isinstance(model, Model):
        with building(checkpoint):
            model = in_hugging_face(model)
    folded = fold(model)
    copy_tokenizer(checkpoint, output)
    write_model(folded, output)


def refuse_used(output: Path, checkpoint: Path) -> None:
    """UsageError for an output that is no new or empty directory."""
    if checkpoint.resolve() == output.resolve():
        raise UsageError(f"--output is {output}, the checkpoint itself; name another directory")
    for place in (output, *output.parents):
        if (place.is_symlink() or place.exists()) and not place.is_dir():
            raise UsageError(f"--output is {output}: {place} is no directory; name another")
    if output.is_dir() and (found := sorted(path.name for path in output.iterdir())):
        raise UsageError(f"--output is {output}, which has {found[0]} already; name another directory or empty it")


def copy_tokenizer(checkpoint: Path, output: Path) -> None:
    """The files of a checkpoint's tokenizer."""
    for name in TOKENIZER_FILES:
        if (checkpoint / name).is_file():
            copy_file(checkpoint / name, output / name)


def write_model(model: PreTrainedModel, output: Path) -> None:
    """Publish model.safetensors, README.md and config.json, each whole or not at all."""
    model.config.architectures = [type(model).__name__]
    model.config.dtype = str(model.dtype).removeprefix("torch.")
    config = json.loads(model.config.to_json_string())
    write_weights(model, output / "model.safetensors")
    write_text(output / "README.md", model_card(config))
    write_json(output / "config.json", config)
