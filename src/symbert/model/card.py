"""The model card of an exported directory, from its config.json alone. A fact that config.json lacks is left out."""

from typing import Any

from symbert.errors import ConfigError
from symbert.operators import operator_of
from symbert.sources import SOURCES, is_stand_in

LIMITS = """\
Made to compare attention operators under equal conditions. It has not been made safe for decisions about people, and
repeats what its text says."""
LICENCE = "MIT, as the project that made it. It covers the weights, not any text they learned from."
OURS = 'from pathlib import Path\n\nfrom symbert.model.loading import load_model\n\nmodel = load_model(Path("."))'
STOCK = 'from transformers import CLASS\n\nmodel = CLASS.from_pretrained(".")'
TOKENIZER = '\n\nfrom transformers import AutoTokenizer\n\ntokenizer = AutoTokenizer.from_pretrained(".")'


def model_card(config: dict[str, Any]) -> str:
    """The facts, how to load the model, its limits, and its licence."""
    pretraining = {name: fact for name, fact in (config.get("pretraining") or {}).items() if fact is not None}
    settings = pretraining.pop("settings", {})
    finetuning = config.get("finetuning") or {}
    source = pretraining.get("corpus_source")
    named = {"attention": config.get("attention") or pretraining.get("attention", "original"), "_name_or_path": ""}
    named["operator"] = pretraining.pop("operator", None) or config.get("operator")
    try:
        operator = operator_of(named).summary
    except ConfigError:  # its class is not known here
        operator = named["attention"]
    architecture = (config.get("architectures") or ["BertForMaskedLM"])[0]
    loading = (OURS if config["model_type"] == "symbert" else STOCK.replace("CLASS", architecture)) + TOKENIZER
    told = {
        "Not pre-trained: the weights that a run starts from.": pretraining.get("step") == 0
        and "begun_from" not in settings,
        "Not for use: its corpus stands in for OSCAR, to show that the workflow works.": is_stand_in(source),
        "Not for use: its task has rows that stand in for the published ones.": finetuning.get("stand_in"),
    }
    known, terms = ([SOURCES[source].training_text], SOURCES[source].terms) if source in SOURCES else ([], "")
    lines = [f"operator: {operator}", *(f"text: {text}" for text in known)]
    lines += [f"{name}: {fact}" for name, fact in {**settings, **pretraining, **finetuning}.items()]
    return "\n\n".join(
        [
            "---\nlibrary_name: transformers\nlicense: mit\ntags: [symbert]\n---",
            f"# {pretraining.get('size', 'BERT')}-{named['attention']}",
            *(sentence for sentence, holds in told.items() if holds),
            "\n".join(f"* {line}" for line in lines),
            f"## Loading\n\n```python\n{loading}\n```",
            f"## Limits\n\n{LIMITS}",
            f"## Licence\n\n{LICENCE} {terms}\n",
        ]
    )
