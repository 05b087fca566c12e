"""A fine-tuned classifier as a directory that stock transformers loads, without this project."""

import sys
from pathlib import Path

from safetensors.torch import load_file

from symbert.errors import ConfigError, MissingInputError, UsageError, line_of
from symbert.files import together, verify_sha256
from symbert.glue.metrics import read_kept
from symbert.glue.score import Kept
from symbert.glue.tasks import custom_task, task_named
from symbert.glue.train import DROPOUTS, HEADS, load_classifier
from symbert.model.bert import Classifier
from symbert.model.hf import copy_tokenizer, fold, refuse_used, write_model


@together()
def export_classifier(weights: Path, checkpoint: Path, output: Path) -> None:
    """Write a classifier that `glue.keep_finetuned` kept as a Hugging Face directory: a plain BERT with equal logits,
    the names of its labels, the tokenizer and a model card.

    `weights` are …/finetuned/<task>/seed-<n>.safetensors beside its record; `checkpoint` is the step that was
    fine-tuned, which the record identifies (IntegrityError). Weights of a model from elsewhere are read by its class of
    transformers (UsageError says how). Where no plain BERT equals the operator, the model is written as it was trained,
    with a warning. `output` must be new or empty.
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
    trained.config.finetuning = {key: getattr(kept.record, key) for key in described}
    try:
        exported = fold(trained.eval())
    except ConfigError as error:
        print(f"warning: {line_of(error)}; written as it was trained", file=sys.stderr)
        exported = trained
    copy_tokenizer(checkpoint, output)
    write_model(exported, output)
    print(f"{output}: {exported.config.architectures[0]}")
