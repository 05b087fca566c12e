"""The model card of a directory, from its config.json and its scores: what the hub reads of it, and what people read. A
fact that config.json lacks is left out."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

import msgspec
import yaml

from symbert.architectures import architecture_named_in
from symbert.errors import ConfigError
from symbert.operators import operator_of
from symbert.sources import SOURCES, Source

LIMITS = """\
Made to compare attention operators under equal conditions. It has not been made safe for decisions about people, and
repeats what its text says."""
LICENCE = "MIT, as the project that made it. It covers the weights, not any text they learned from."
LICENCE_OF_START = (
    "The weights began from a checkpoint, whose licence holds for them, too; this project does not know it."
)
OURS = 'from pathlib import Path\n\nfrom symbert.model.loading import load_model\n\nmodel = load_model(Path("."))'
AUTO = "import symbert.model.auto\nfrom transformers import AutoModelFor{task}\n\n"
AUTO += 'model = AutoModelFor{task}.from_pretrained(".")'
STOCK = 'from transformers import {architecture}\n\nmodel = {architecture}.from_pretrained(".")'
TOKENIZER = '\n\nfrom transformers import AutoTokenizer\n\ntokenizer = AutoTokenizer.from_pretrained(".")'
MASKED = "MaskedLM"
PIPELINES = {  # of the hub, by what the name of a class ends in
    MASKED: "fill-mask",
    "LMHeadModel": "text-generation",
    "DecoderModel": "text-generation",
    "SequenceClassification": "text-classification",
    "QuestionAnswering": "question-answering",
}
OF_MASKED = """\
There is no pooler: a classifier on this model draws one at each load, beside its own weights. An adapter gives the same
outputs again only where it keeps both, as with PEFT's `modules_to_save=["classifier", "pooler"]`.

lm-evaluation-harness 0.4 scores it as a causal model, without an error: such scores say nothing."""
COUNTED = {name: f"{name} in pre-training" for name in ("parameters", "attention_parameters")}
METRICS = {"matthews": "matthews_correlation", "pearson": "pearsonr", "spearman": "spearmanr"}  # the hub's, of ours
METRICS |= {"macro_f1": "f1"}


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Scores on the evaluation rows of a task, by one metric."""

    task: str
    pipeline: str  # of the hub
    title: str  # of the dataset
    repository: str  # of the hub; none: nobody has published it
    folder: str  # in it
    split: str
    rows: int
    published_rows: int
    stand_in: bool
    metric: str
    values: dict[int, float]  # by fine-tuning seed

    @property
    def dataset(self) -> str:
        """The rows in words."""
        part = f", {self.rows:,} of {self.published_rows:,} rows" if self.rows < self.published_rows else ""
        return f"{self.title}{', stand-in rows' if self.stand_in else part}"


def model_card(config: dict[str, Any], results: Sequence[Result] = ()) -> str:
    """The metadata, facts, scores, how to load the model, its limits, and its licence."""
    pretraining = {name: fact for name, fact in (config.get("pretraining") or {}).items() if fact is not None}
    settings = pretraining.pop("settings", {})
    finetuning = {name: fact for name, fact in (config.get("finetuning") or {}).items() if fact is not None}
    source = SOURCES.get(pretraining.get("corpus_source"))
    named = {"attention": config.get("attention") or pretraining.get("attention", "original"), "_name_or_path": ""}
    named["operator"] = pretraining.pop("operator", None) or config.get("operator")
    try:
        operator = operator_of(named).summary
    except ConfigError:  # its class is not known here
        operator = named["attention"]
    name = f"{pretraining.get('size', 'BERT')}-{named['attention']}"
    architecture = (config.get("architectures") or ["BertForMaskedLM"])[0]
    task = next((ending for ending in PIPELINES if architecture.endswith(ending)), None)
    if config["model_type"] != "symbert":
        loading = STOCK.format(architecture=architecture)
    else:
        loading = OURS if architecture_named_in([architecture]) else AUTO.format(task=task or MASKED)
    if config["model_type"] != "symbert" or finetuning:  # which has others: folded matrices, another head
        pretraining = {COUNTED.get(name, name): fact for name, fact in pretraining.items()}
    trained = pretraining.get("sequence_length", config["max_position_embeddings"])
    is_start, has_begun = pretraining.get("step") == 0, "begun_from" in settings
    told = {
        "Not pre-trained: the weights that a run starts from.": is_start and not has_begun,
        "The weights of the checkpoint that a run began from (begun_from), as they were.": is_start and has_begun,
        "Trained on from a checkpoint (begun_from): what that learned before is not told here.": has_begun
        and not is_start,
        "Not for use: its corpus stands in for OSCAR, to show that the workflow works.": source and source.is_stand_in,
        "Not for use: its task has rows that stand in for the published ones.": finetuning.get("stand_in"),
        f"Pre-trained on rows of {trained} tokens: later positions were never trained; truncation=True cuts there.": (
            trained < config["max_position_embeddings"] and not (is_start or has_begun or finetuning)
        ),
    }
    lines = [f"operator: {operator}", *([f"text: {source.training_text}"] if source else [])]
    lines += [f"{name}: {fact}" for name, fact in {**settings, **pretraining}.items()]
    tuned = [f"{name}: {fact}" for name, fact in finetuning.items()]  # apart: both have a rate, which only one tells
    tags = ["symbert", named["attention"]]
    return "\n\n".join(
        [
            f"---\n{_metadata(name, config, PIPELINES.get(task or ''), tags, source, results, has_begun)}---",
            f"# {name}",
            *(sentence for sentence, holds in told.items() if holds),
            *(["## Pre-training"] if tuned else []),
            "\n".join(f"* {line}" for line in lines),
            *(["## Fine-tuning", "\n".join(f"* {line}" for line in tuned)] if tuned else []),
            *([f"## Scores\n\n{_table(results)}"] if results else []),
            f"## Loading\n\n```python\n{loading}{TOKENIZER}\n```",
            *([f"## Use\n\n{OF_MASKED}"] if task == MASKED else []),
            f"## Limits\n\n{LIMITS}",
            f"## Licence\n\n{LICENCE_OF_START if has_begun else LICENCE} {source.terms if source else ''}".rstrip()
            + "\n",
        ]
    )


def _metadata(
    name: str,
    config: dict[str, Any],
    pipeline: str | None,
    tags: list[str],
    source: Source | None,
    results: Sequence[Result],
    has_begun: bool,
) -> str:
    """What the hub reads: https://huggingface.co/docs/hub/model-cards#model-card-metadata. Scores on stand-ins are no
    results of the published task, and stay out, as does a licence where weights began from a checkpoint."""
    published = [result for result in results if result.repository and not result.stand_in]
    finetuning = config.get("finetuning") or {}
    learned = [result.repository for result in published if finetuning.get("task") == result.task]
    values = {
        "language": source.language if source else None,
        "license": None if has_begun else "mit",
        "library_name": "symbert" if config["model_type"] == "symbert" else "transformers",
        "pipeline_tag": pipeline,
        "base_model": finetuning.get("base_model"),
        "datasets": list(dict.fromkeys([*(source.datasets if source else ()), *learned])) or None,
        "tags": tags,
        "model-index": [{"name": name, "results": _indexed(published)}] if published else None,
    }
    given = {key: value for key, value in values.items() if value is not None}
    return yaml.safe_dump(given, sort_keys=False, allow_unicode=True, width=1000)


def _indexed(results: Sequence[Result]) -> list[dict[str, Any]]:
    """Results as https://github.com/huggingface/hub-docs/blob/main/modelcard.md has them: the metrics of rows."""
    indexed: dict[str, dict[str, Any]] = {}
    for result in results:
        place = {"name": result.dataset, "type": result.repository, "config": result.folder, "split": result.split}
        of_rows = {"task": {"type": result.pipeline}, "dataset": place, "metrics": []}
        metric = {"type": METRICS.get(result.metric, result.metric), "value": round(fmean(result.values.values()), 4)}
        metric["name"] = f"{result.metric}, {_seeds(result)}"
        indexed.setdefault(f"{result.dataset} {result.split}", of_rows)["metrics"].append(metric)
    return list(indexed.values())


def _seeds(result: Result) -> str:
    count = len(result.values)
    return f"mean of {count} fine-tuning seeds" if count > 1 else f"fine-tuning seed {next(iter(result.values))}"


def _table(results: Sequence[Result]) -> str:
    lines = ["| rows | split | metric | score | lowest to highest | |", "|---|---|---|---|---|---|"]
    for result in results:
        low, high = min(result.values.values()), max(result.values.values())
        shown = f"{low:.4f} to {high:.4f}" if len(result.values) > 1 else ""
        mean = fmean(result.values.values())
        lines.append(
            f"| {result.dataset} | {result.split} | {result.metric} | {mean:.4f} | {shown} | {_seeds(result)} |"
        )
    return "\n".join(lines)
