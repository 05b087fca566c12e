"""A checkpoint or a fine-tuned classifier as a directory that stock transformers loads, without this project, with its
scores on the card."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

from safetensors.torch import load_file

from symbert.errors import ConfigError, IntegrityError, MissingInputError, UsageError, line_of
from symbert.files import sha256_of, together, verify_sha256
from symbert.glue.metrics import read_kept
from symbert.glue.score import Kept, ScoreRecord, read_records
from symbert.glue.tasks import PUBLISHED, custom_task, suite_of, task_named
from symbert.glue.train import DROPOUTS, HEADS, load_classifier
from symbert.model.bert import Classifier
from symbert.model.card import PIPELINES, Result
from symbert.model.hf import copy_tokenizer, fold, refuse_used, write_model
from symbert.model.loading import load_model


@together()
def export(
    checkpoint: Annotated[Path, "folder of a checkpoint: results/runs/…/step-N"],
    output: Annotated[Path, "folder to write, new or empty"],
    scores: Annotated[list[Path] | None, "scores of the checkpoint for the model card: results/scores/….json"] = None,
) -> None:
    """Write the model of one of our Hugging Face directories as stock BERT with equal logits into `output`.

    A decoder becomes a `BertLMHeadModel`. Tokenizer files are copied and a model card is written, with the `scores` of
    this checkpoint: files below results/scores/ (IntegrityError for those of other weights, UsageError for a task by
    two protocols). config.json comes last, so that a directory that has one is complete. `output` must be new or empty:
    an earlier export's files would be taken for a part of this one.
    """
    refuse_used(output)
    folded = fold(load_model(checkpoint))
    results = _results(_records_of(checkpoint, scores or []))
    copy_tokenizer(checkpoint, output)
    write_model(folded, output, results)
    print(f"{output}: {folded.config.architectures[0]}")


def _records_of(checkpoint: Path, scores: list[Path]) -> list[ScoreRecord]:
    """The records of files, which may share some; all of the checkpoint, and those of a task by one protocol."""
    weights, records, protocols = sha256_of(checkpoint / "model.safetensors"), {}, {}
    for file in scores:
        for record in read_records([file], ScoreRecord):
            if record.checkpoint_sha256 != weights:
                raise IntegrityError(
                    f"{file}: scores of weights {record.checkpoint_sha256[:16]}…, {checkpoint} has {weights[:16]}…; "
                    "give the scores of this checkpoint"
                )
            if protocols.setdefault(record.task, record.settings_hash) != record.settings_hash:
                raise UsageError(
                    f"--scores has {record.task} by the protocols {protocols[record.task]} and {record.settings_hash}; "
                    "give the files of one of them"
                )
            records[record.task, record.finetune_seed] = record
    return [record for _, record in sorted(records.items())]


def _results(records: Iterable[ScoreRecord]) -> list[Result]:
    """The scores of records for a card: of each split and metric of a task those of all seeds."""
    values: dict[tuple[str, str, str], dict[int, float]] = {}
    of_task = {record.task: record for record in records}
    for record in records:
        for column, details in record.details.items():
            for metric, value in details.items():
                values.setdefault((record.task, column, metric), {})[record.finetune_seed] = value
    return [_result(of_task[task], column, metric, by_seed) for (task, column, metric), by_seed in values.items()]


def _result(record: ScoreRecord, column: str, metric: str, values: dict[int, float]) -> Result:
    suite, task = suite_of(record.task), PUBLISHED.get(record.task)
    splits = {name: split for split, name in task.scores.items()} if task else {}
    split = splits.get(column, "validation")
    return Result(
        task=record.task,
        pipeline=PIPELINES["QuestionAnswering" if task and task.head == "spans" else "SequenceClassification"],
        title=f"{suite.title} {record.task}" if task else record.task,
        repository=suite.repository if task else "",
        folder=(task.folder or task.name) if task else "",
        split=split,
        rows=record.rows[split],
        published_rows=record.official_rows.get(split, 0),
        stand_in=record.stand_in,
        metric=metric,
        values=values,
    )


@together()
def export_classifier(
    weights: Annotated[Path, "kept weights: results/scores/…/finetuned/TASK/seed-N.safetensors"],
    checkpoint: Annotated[Path, "folder of the checkpoint that was fine-tuned: results/runs/…/step-N"],
    output: Annotated[Path, "folder to write, new or empty"],
    base_model: Annotated[str | None, "owner/name of the encoder on the hub, for the model card"] = None,
) -> None:
    """Write a classifier that `glue.keep_finetuned` kept as a Hugging Face directory: a plain BERT with equal logits,
    the names of its labels, the tokenizer and a model card.

    `weights` are …/finetuned/<task>/seed-<n>.safetensors beside its record; `checkpoint` is the step that was
    fine-tuned, which the record identifies (IntegrityError). Weights of a model from elsewhere are read by its class of
    transformers (UsageError says how). Where no plain BERT equals the operator, the model is written as it was trained,
    with a warning. `base_model` is the name of the encoder at the hub, for the card. `output` must be new or empty.
    """
    refuse_used(output)
    record = weights.with_suffix(".json")
    for file in (weights, record):
        if not file.is_file():
            raise MissingInputError(f"{file}: file not found; fine-tune with glue.keep_finetuned: true")
    kept = read_kept(record, Kept)
    verify_sha256(weights, kept.weights_sha256, "remove it, and fine-tune again")
    if kept.record.origin:
        raise UsageError(
            f"--weights {weights}: of a model from elsewhere, whose class is transformers' own; load it as "
            f"{kept.record.head}, then its weights: model.load_state_dict(load_file({str(weights)!r}))"
        )
    remedy = f"give the checkpoint of which {record.name} tells"
    verify_sha256(checkpoint / "model.safetensors", kept.record.checkpoint_sha256, remedy)
    task = custom_task(kept.record.task, kept.custom) if kept.custom else task_named(kept.record.task)
    hidden, attention = (kept.dropout[key] for key in DROPOUTS)
    trained = load_classifier(checkpoint, task.num_labels, hidden, HEADS[task.head].model)
    trained.config.attention_probs_dropout_prob = attention
    trained.load_state_dict(load_file(weights))
    has_classes = isinstance(trained, Classifier) and task.num_labels > 1  # a choice of COPA's has one output
    if isinstance(trained, Classifier):
        labels = dict(enumerate(task.labels if has_classes else ["LABEL_0"]))
        trained.config.problem_type = "single_label_classification" if has_classes else "regression"
        trained.config.id2label, trained.config.label2id = labels, {label: number for number, label in labels.items()}
    described = ("task", "finetune_seed", "metrics", "stand_in")
    trained.config.finetuning = {key: getattr(kept.record, key) for key in described} | {"max_length": kept.max_length}
    if base_model:
        trained.config.finetuning["base_model"] = base_model
    try:
        exported = fold(trained.eval())
    except ConfigError as error:
        print(f"warning: {line_of(error)}; written as it was trained", file=sys.stderr)
        exported = trained
    copy_tokenizer(checkpoint, output, kept.max_length)
    write_model(exported, output, _results([kept.record]))
    print(f"{output}: {exported.config.architectures[0]}")
