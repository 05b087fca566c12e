"""The model card of an exported directory, from its config.json alone. A fact that config.json lacks is left out."""

from typing import Any, NamedTuple

from symbert.errors import ConfigError
from symbert.hosts import ENCODER, HOSTS
from symbert.operators import operator_of
from symbert.sizes import ROTARY
from symbert.sources import SOURCES, is_stand_in

SETTINGS = (
    *("batch_size", "steps", "learning_rate", "warmup_steps", "weight_decay", "dropout", "mask_probability"),
    *("precision", "recipe"),
)


class Kind(NamedTuple):
    """What a card says of models of a class."""

    noun: str
    task: str  # the hub's word for their work
    auto: str  # Hugging Face's class that loads them where they are folded


ENCODER_NOUN = "A BERT encoder"
MASKED = Kind(ENCODER_NOUN, "fill-mask", "AutoModelForMaskedLM")
DECODER = Kind("A causal decoder of BERT's layers", "text-generation", "AutoModelForCausalLM")
PAIR = Kind(
    "An encoder and a causal decoder that attends to it, two BERTs, each",
    "text2text-generation",
    "AutoModelForSeq2SeqLM",
)
KINDS = {  # by the end of the class in config.json, ours or Hugging Face's; the first that fits
    "ForMaskedLM": MASKED,
    "ForSequenceClassification": Kind(ENCODER_NOUN, "text-classification", "AutoModelForSequenceClassification"),
    "ForQuestionAnswering": Kind(ENCODER_NOUN, "question-answering", "AutoModelForQuestionAnswering"),
    "EncoderDecoderModel": PAIR,
    "DecoderModel": DECODER,
    "LMHeadModel": DECODER,
}
STOCK = {"bert": "plain BERT", "encoder-decoder": "plain BERTs"}  # by model type


def model_card(config: dict[str, Any]) -> str:
    """What the model is, what it learned from, what it is not, how to load it, and its licence."""
    facts = {name: fact for name, fact in (config.get("pretraining") or {}).items() if fact is not None}
    architecture = (config.get("architectures") or ["ForMaskedLM"])[0]
    kind = next((kind for ending, kind in KINDS.items() if architecture.endswith(ending)), MASKED)
    language = "" if kind is PAIR else 'language: "en"\n'
    parts = [
        f'---\nlibrary_name: transformers\npipeline_tag: {kind.task}\n{language}license: "mit"\ntags: ["symbert"]\n---',
        _model(config, facts, kind),
        _origin(facts),
        _finetuning(config.get("finetuning")),
        _limits(facts, kind) if facts.get("step") != 0 or "finetuning" in config else "",
        _loading(config, kind),
        "## Licence\n\nMIT, as the project that made it. It covers the weights, not any text they learned from.",
        SOURCES[facts["corpus_source"]].terms if facts.get("corpus_source") in SOURCES else "",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _model(config: dict[str, Any], facts: dict[str, Any], kind: Kind) -> str:
    attention, stock = config.get("attention") or facts.get("attention", "original"), STOCK.get(config["model_type"])
    family = facts["model_host"].capitalize() if "model_host" in facts else "BERT"
    name = f"{facts['size']}-{attention}" if "size" in facts else f"with {attention} attention"
    step = f", step {facts['step']:,} of {facts['steps']:,}" if {"step", "steps"} <= facts.keys() else ""
    try:
        formula = operator_of(
            {"attention": attention, "operator": config.get("operator") or facts.get("operator")}
        ).summary
    except ConfigError:  # its class is not known here
        formula = attention
    shape = config.get("encoder", config)
    where = "self-attention and cross-attention" if kind is PAIR else "self-attention"
    return f"""\
# {family} {name}{step}

{kind.noun} with {shape["num_hidden_layers"]} layers, hidden size {shape["hidden_size"]} and \
{shape["num_attention_heads"]} heads, {f"folded exactly into {stock}" if stock else "in the form that is trained"}.
Its operator of {where} is `{attention}`, with the logits (of a head, before the division by √d)

    {formula}"""


def _origin(facts: dict[str, Any]) -> str:
    """How a run made the model; empty for a model that no run of this project made."""
    seed = f" with seed {facts['pretrain_seed']}" if "pretrain_seed" in facts else ""
    if facts.get("step") == 0:
        return f"""\
Not pre-trained: these are the weights that a run{seed} starts from. They have learned nothing, and show by comparison
what pre-training adds."""
    if "settings_hash" not in facts:
        return ""
    host, is_encoder = HOSTS[facts.get("model_host", ENCODER)], "model_host" not in facts
    source, settings = facts.get("corpus_source"), facts.get("settings") or {}
    names = [name for name in SETTINGS if name in settings and (is_encoder or name != "mask_probability")]
    texts = {
        "corpus": (SOURCES[source].training_text if source in SOURCES else source, facts.get("corpus_hash")),
        "settings": (", ".join(f"{name} {settings[name]}" for name in names), facts["settings_hash"]),
    }
    lines = {
        name: f"{text} (`{key}`)" if text and key else text or (key and f"`{key}`")
        for name, (text, key) in texts.items()
    }
    if "parameters" in facts:
        lines["parameters as trained"] = f"{facts['parameters']:,}"
    if "validation_loss" in facts:
        unit = "masked token" if is_encoder else "target"
        lines["validation loss at the last step"] = f"{facts['validation_loss']:.4f} nats per {unit}"
    if host.measure and f"validation_{host.measure}" in facts:
        lines[f"{host.measure.replace('_', ' ')} at the last step"] = f"{facts[f'validation_{host.measure}']:.4f}"
    task = f"Trained{seed}. {host.sentence}"
    if is_encoder:
        task = f"Pre-trained on masked tokens after arXiv 2406.06366{seed}:"
    return f"{task}\n\n" + "\n".join(f"* {name}: {line}" for name, line in lines.items() if line)


def _finetuning(facts: dict[str, Any] | None) -> str:
    """What a classifier learned after pre-training, and how well; empty for other models."""
    if not facts:
        return ""
    rows = "rows that stand in for those of" if facts["stand_in"] else "the training rows of"
    scores = ", ".join(f"{column} {100 * score:.2f}" for column, score in facts["metrics"].items())
    task, seed = facts["task"], facts["finetune_seed"]
    return f"Fine-tuned on {rows} `{task}` with seed {seed}. Scores on its evaluation rows, from 0 to 100: {scores}."


def _limits(facts: dict[str, Any], kind: Kind) -> str:
    purpose = "It was made to compare attention operators under equal conditions"
    stand_in = "on a stand-in for parallel text, numbers in English and German words: it is of no other use"
    if kind is PAIR:
        limits = f"{purpose}, {stand_in if facts.get('stand_in') else 'on text of its user'}."
    else:
        limits = f"""\
{purpose}: it is no generator of text, has not been made safe for
decisions about people, and repeats what its corpus says."""
    if is_stand_in(facts.get("corpus_source")):
        limits = f"It is not a model for use: its corpus stands in for OSCAR, to show that the workflow works. {limits}"
    return f"## What it is not\n\n{limits}"


def _loading(config: dict[str, Any], kind: Kind) -> str:
    is_stock = config["model_type"] in STOCK
    needs = "Needs this project's code."
    lines = ["from pathlib import Path", "", "from symbert.model.loading import load_model", ""]
    lines += ['model = load_model(Path("."))']
    if is_stock or (kind.noun == ENCODER_NOUN and config.get("position_embedding_type") != ROTARY):
        classes = [kind.auto] if kind is PAIR else [kind.auto, "AutoTokenizer"]
        lines = [f"from transformers import {', '.join(classes)}", "", f'model = {kind.auto}.from_pretrained(".")']
        lines += [f'tokenizer = {name}.from_pretrained(".")' for name in classes[1:]]
    if is_stock:
        needs = "Stock transformers loads it; no code of this project is needed."
    elif "AutoTokenizer" in lines[0]:
        lines.insert(0, "import symbert.model.hf  # makes the model type known, without remote code")
    code = "\n".join(lines)
    return f"## Loading\n\n{needs}\n\n```python\n{code}\n```"
