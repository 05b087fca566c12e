"""The model card of an exported directory, from its config.json alone."""

import json
from typing import Any

from symbert.errors import ConfigError
from symbert.operators import operator_of
from symbert.sources import SOURCES, is_stand_in

UNFIT = "It is not a model for use: its corpus stands in for OSCAR, to show that the workflow works. "
SETTINGS = (
    *("batch_size", "steps", "learning_rate", "warmup_steps", "weight_decay", "dropout", "mask_probability"),
    *("precision", "recipe"),
)
HEADS = {
    "ForMaskedLM": "fill-mask",
    "ForSequenceClassification": "text-classification",
    "ForQuestionAnswering": "question-answering",
}


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
        _limits(facts) if facts.get("step") != 0 or "finetuning" in config else "",
        _loading(config),
        _licence(facts),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(config: dict[str, Any]) -> str:
    front = {
        "library_name": "transformers",
        "pipeline_tag": HEADS[_head(config)],
        "language": "en",
        "license": "mit",
        "tags": ["symbert"],
    }
    return "\n".join(["---", *(f"{key}: {json.dumps(value)}" for key, value in front.items()), "---"])


def _title(attention: str, facts: dict[str, Any]) -> str:
    name = f"# BERT {facts['size']}-{attention}" if "size" in facts else f"# BERT with {attention} attention"
    if not {"step", "steps"} <= facts.keys():
        return name
    return f"{name}, step {_shown(facts['step'])} of {_shown(facts['steps'])}"


def _architecture(config: dict[str, Any], facts: dict[str, Any], attention: str) -> str:
    form = "folded exactly into plain BERT" if config["model_type"] == "bert" else "in the form that is trained"
    return f"""\
A BERT encoder with {config["num_hidden_layers"]} layers, hidden size {config["hidden_size"]} and \
{config["num_attention_heads"]} heads, {form}.
Its self-attention operator is `{attention}`, with the logits (of a head, before the division by √d)

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
    source, loss = facts.get("corpus_source"), facts.get("validation_loss")
    lines = {
        "corpus": _noted(SOURCES[source].training_text if source in SOURCES else source, facts.get("corpus_hash")),
        "settings": _noted(_settings(facts), facts["settings_hash"]),
        "parameters as trained": _shown(facts.get("parameters")),
        "validation loss at the last step": "" if loss is None else f"{_shown(loss)} nats per masked token",
    }
    seed = f", with seed {_shown(facts['pretrain_seed'])}" if "pretrain_seed" in facts else ""
    listed = "\n".join(f"* {name}: {line}" for name, line in lines.items() if line)
    return f"Pre-trained on masked tokens after arXiv 2406.06366{seed}:\n\n{listed}"


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
    return ", ".join(f"{name} {settings[name]}" for name in SETTINGS if name in settings)


def _noted(text: str | None, digest: str | None) -> str:
    """A text with the hash of its subject; either may be missing."""
    if text and digest:
        return f"{text} (`{digest}`)"
    return text or (f"`{digest}`" if digest else "")


def _shown(fact: Any) -> str:
    """A fact as text: counts with thousands separators, losses with four decimals; empty for none."""
    forms = {int: "{:,}", float: "{:.4f}", type(None): ""}
    return forms.get(type(fact), "{}").format(fact)


def _limits(facts: dict[str, Any]) -> str:
    unfit = UNFIT if is_stand_in(facts.get("corpus_source")) else ""
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
    bert = config["model_type"] == "bert"
    import_line = "" if bert else "import symbert.model  # makes the model type known; no remote code is involved\n"
    needs = "Stock transformers loads it; no code of this project is needed." if bert else "Needs this project's code."
    auto = f"AutoModel{_head(config)}"
    return f"""\
## Loading

{needs}

```python
{import_line}from transformers import {auto}, AutoTokenizer

model = {auto}.from_pretrained(".")
tokenizer = AutoTokenizer.from_pretrained(".")
```"""


def _head(config: dict[str, Any]) -> str:
    architecture = (config.get("architectures") or ["ForMaskedLM"])[0]
    return next((head for head in HEADS if architecture.endswith(head)), "ForMaskedLM")
