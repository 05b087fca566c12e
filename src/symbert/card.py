"""The model card of an exported directory, from its config.json alone."""

import json
from dataclasses import dataclass
from typing import Any

from symbert.errors import ConfigError
from symbert.hosts import ENCODER, HOSTS
from symbert.operators import operator_of
from symbert.sizes import ROTARY
from symbert.sources import SOURCES, is_stand_in

UNFIT = "It is not a model for use: its corpus stands in for OSCAR, to show that the workflow works. "
NUMBERS = "a stand-in for parallel text, numbers in English and German words"
SETTINGS = (
    *("batch_size", "steps", "learning_rate", "warmup_steps", "weight_decay", "dropout", "mask_probability"),
    *("precision", "recipe"),
)
SELF_ATTENTION = "self-attention operator is"


@dataclass(frozen=True)
class Kind:
    """What a card says of models of a class."""

    noun: str
    task: str  # the hub's word for what they do
    auto: str  # Hugging Face's class that loads them where they are folded
    reads_text: bool = True
    operators: str = SELF_ATTENTION


ENCODERS = "A BERT encoder"
PAIRS = "An encoder and a causal decoder that attends to it, two BERTs, each"
OF_PAIRS = "operator of self-attention and cross-attention is"
MASKED = Kind(ENCODERS, "fill-mask", "AutoModelForMaskedLM")
DECODER = Kind("A causal decoder of BERT's layers", "text-generation", "AutoModelForCausalLM")
KINDS = {  # by the end of the class in config.json, ours or Hugging Face's; the first that fits
    "ForMaskedLM": MASKED,
    "ForSequenceClassification": Kind(ENCODERS, "text-classification", "AutoModelForSequenceClassification"),
    "ForQuestionAnswering": Kind(ENCODERS, "question-answering", "AutoModelForQuestionAnswering"),
    "EncoderDecoderModel": Kind(PAIRS, "text2text-generation", "AutoModelForSeq2SeqLM", False, OF_PAIRS),
    "DecoderModel": DECODER,
    "LMHeadModel": DECODER,
}
STOCK = {"bert": "plain BERT", "encoder-decoder": "plain BERTs"}  # by model type


def model_card(config: dict[str, Any]) -> str:
    """What the model is, what it learned from, what it is not, how to load it, and its licence.

    A fact of the run that config.json lacks is left out.
    """
    facts = {name: fact for name, fact in (config.get("pretraining") or {}).items() if fact is not None}
    attention = config.get("attention") or facts.get("attention", "original")
    parts = [
        _front_matter(config),
        _title(attention, facts),
        _architecture(config, facts, attention),
        *([_start(facts)] if facts.get("step") == 0 else [_origin(facts)]),
        _finetuning(config),
        _limits(config, facts) if facts.get("step") != 0 or "finetuning" in config else "",
        _loading(config),
        _licence(facts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(config: dict[str, Any]) -> str:
    kind = _kind(config)
    front = {
        "library_name": "transformers",
        "pipeline_tag": kind.task,
        **({"language": "en"} if kind.reads_text else {}),
        "license": "mit",
        "tags": ["symbert"],
    }
    return "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in front.items()), "---"])


def _title(attention: str, facts: dict[str, Any]) -> str:
    host = facts.get("model_host")
    family = "BERT" if host is None else host.capitalize()
    name = f"# {family} {facts['size']}-{attention}" if "size" in facts else f"# {family} with {attention} attention"
    if not {"step", "steps"} <= facts.keys():
        return name
    return f"{name}, step {_shown(facts['step'])} of {_shown(facts['steps'])}"


def _architecture(config: dict[str, Any], facts: dict[str, Any], attention: str) -> str:
    kind, stock, shape = _kind(config), STOCK.get(config["model_type"]), config.get("encoder", config)
    form = f"folded exactly into {stock}" if stock else "in the form that is trained"
    return f"""\
{kind.noun} with {shape["num_hidden_layers"]} layers, hidden size {shape["hidden_size"]} and \
{shape["num_attention_heads"]} heads, {form}.
Its {kind.operators} `{attention}`, with the logits (of a head, before the division by √d)

    {_formula(attention, config.get("operator") or facts.get("operator"))}"""


def _formula(attention: str, definition: dict[str, Any] | None) -> str:
    """The first line of the operator's docstring, or its name where its class is not known here."""
    try:
        return operator_of({"attention": attention, "operator": definition}).summary
    except ConfigError:
        return attention


def _start(facts: dict[str, Any]) -> str:
    """What a model is before the first step of its run."""
    seed = f" with seed {_shown(facts['pretrain_seed'])}" if "pretrain_seed" in facts else ""
    return f"""\
Not pre-trained: these are the weights that a run{seed} starts from. They have learned nothing, and show by comparison
what pre-training adds."""


def _origin(facts: dict[str, Any]) -> str:
    """What a run is made from; empty for a model that no run of this project made."""
    if "settings_hash" not in facts:
        return ""
    host, is_encoder = HOSTS[facts.get("model_host", ENCODER)], "model_host" not in facts
    source, loss = facts.get("corpus_source"), facts.get("validation_loss")
    unit = "masked token" if is_encoder else "target"
    lines = {
        "corpus": _noted(SOURCES[source].training_text if source in SOURCES else source, facts.get("corpus_hash")),
        "settings": _noted(_settings(facts), facts["settings_hash"]),
        "parameters as trained": _shown(facts.get("parameters")),
        "validation loss at the last step": "" if loss is None else f"{_shown(loss)} nats per {unit}",
    }
    if host.measure:
        lines[f"{host.measure.replace('_', ' ')} at the last step"] = _shown(facts.get(f"validation_{host.measure}"))
    seed = f", with seed {_shown(facts['pretrain_seed'])}" if "pretrain_seed" in facts else ""
    origin = f"Pre-trained on masked tokens after arXiv 2406.06366{seed}:"
    if not is_encoder:
        origin = f"Trained to compare operators in other models than encoders{seed}. {host.task}"
    listed = "\n".join(f"* {name}: {line}" for name, line in lines.items() if line)
    return f"{origin}\n\n{listed}"


def _finetuning(config: dict[str, Any]) -> str:
    """What a classifier learned after pre-training, and how well; empty for other models."""
    facts = config.get("finetuning")
    if not facts:
        return ""
    rows = "rows that stand in for those of" if facts["stand_in"] else "the training rows of"
    scores = ", ".join(f"{column} {100 * score:.2f}" for column, score in facts["metrics"].items())
    return f"""\
Fine-tuned on {rows} `{facts["task"]}` with seed {facts["finetune_seed"]}. Scores on its evaluation rows, \
from 0 to 100: {scores}."""


def _settings(facts: dict[str, Any]) -> str:
    """The settings that say most, as they are called in the configuration; empty for a run that noted none."""
    settings = facts.get("settings") or {}
    names = [name for name in SETTINGS if name != "mask_probability" or "model_host" not in facts]
    return ", ".join(f"{name} {settings[name]}" for name in names if name in settings)


def _noted(text: str | None, digest: str | None) -> str:
    """A text with the hash of its subject; either may be missing."""
    if text and digest:
        return f"{text} (`{digest}`)"
    return text or (f"`{digest}`" if digest else "")


def _shown(fact: Any) -> str:
    """A fact as text: counts with thousands separators, losses with four decimals; empty for none."""
    forms = {int: "{:,}", float: "{:.4f}", type(None): ""}
    return forms.get(type(fact), "{}").format(fact)


def _limits(config: dict[str, Any], facts: dict[str, Any]) -> str:
    unfit = UNFIT if is_stand_in(facts.get("corpus_source")) else ""
    if not _kind(config).reads_text:
        data = f"on {NUMBERS}: it is of no other use" if facts.get("stand_in") else "on text of its user's own"
        return f"""\
## What it is not

It was made to compare attention operators under equal conditions, {data}."""
    return f"""\
## What it is not

{unfit}It was made to compare attention operators under equal conditions: it is no
generator of text, has not been made safe for decisions about people, and repeats what its corpus says."""


def _licence(facts: dict[str, Any]) -> str:
    """MIT for the weights, and whose the text is that they learned from, as far as the corpus is known."""
    source = SOURCES.get(facts.get("corpus_source"))
    terms = source.terms if source else ""
    return f"""\
## Licence

MIT, as the project that made it: weights are an output of the project's code, and its licence asks the least of
whoever compares operators. It covers the weights, not any text they learned from. \
{terms}""".rstrip()


def _loading(config: dict[str, Any]) -> str:
    kind, is_stock = _kind(config), config["model_type"] in STOCK
    needs = (
        "Stock transformers loads it; no code of this project is needed." if is_stock else "Needs this project's code."
    )
    has_auto_class = kind.noun == ENCODERS and config.get("position_embedding_type") != ROTARY
    lines = _with_auto_classes(kind, is_stock) if is_stock or has_auto_class else OURS
    return f"""\
## Loading

{needs}

```python
{lines}
```"""


OURS = """\
from pathlib import Path

from symbert.model.loading import load_model

model = load_model(Path("."))"""


def _with_auto_classes(kind: Kind, is_stock: bool) -> str:
    import_line = "" if is_stock else "import symbert.model.bert  # makes the model type known, without remote code\n"
    classes = [kind.auto, *(["AutoTokenizer"] if kind.reads_text else [])]
    tokenizer = '\ntokenizer = AutoTokenizer.from_pretrained(".")' if kind.reads_text else ""
    return f"""\
{import_line}from transformers import {", ".join(classes)}

model = {kind.auto}.from_pretrained("."){tokenizer}"""


def _kind(config: dict[str, Any]) -> Kind:
    architecture = (config.get("architectures") or ["ForMaskedLM"])[0]
    return next((kind for ending, kind in KINDS.items() if architecture.endswith(ending)), KINDS["ForMaskedLM"])
