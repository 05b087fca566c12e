"""Who fine-tunes in `make bench-glue`, each a few steps at a time: this project, and the authors' way.

The authors' way is Hugging Face's `Trainer` as their scripts call it: rows padded to 128 tokens, the stock model,
an evaluation of all evaluation rows every 0.005 of the steps; docs/measurements/README.md says how it differs. It needs
accelerate, which only the benchmarks have.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
import transformers
from torch.utils.data import Dataset
from transformers import BertForSequenceClassification, default_data_collator

from benchmarks.trainers import Clock, now, timed
from symbert.configuration import GlueSettings, TaskSettings, protocol_of, values_of
from symbert.experiment.project import read_config
from symbert.files import write_json
from symbert.glue.prepare import prepare_task
from symbert.glue.tasks import Task, suite_of
from symbert.glue.train import load_classifier, predict, read_rows, reset_head, train
from symbert.model.hf import fold
from symbert.sources import VOCABULARY

DEVICE, PRECISION = torch.device("cpu"), "fp32"
EVALUATE_EVERY = 0.005  # of all steps (authors): 200 times
EVALUATION_BATCH_SIZE = 128  # rows (authors)
MAX_LENGTH = 128  # tokens, to which the authors pad
UNTIMED = 1  # step before the clock starts, each time
PAPER = read_config(Path(__file__).parents[1], {"scale": "paper", "source": "hub"})


def prepared(task: Task, mirror: Path, folder: Path, **limits: int) -> Path:
    """All rows of a task as the workflow prepares them for the paper, from a directory in the publishers' layout."""
    files = {"source": mirror / suite_of(task).repository, "vocabulary": mirror / VOCABULARY.location}
    wanted = {**values_of(protocol_of(PAPER, "glue", TaskSettings)), **limits}
    del wanted["allow_partial"]
    settings = {"kind": "tasks", **wanted, **{name: str(path) for name, path in files.items()}}
    write_json(folder / "settings.json", settings)
    prepare_task(folder / f"{task.name}.parquet", allow_partial=True)
    return folder / f"{task.name}.parquet"


def finetuning_settings() -> GlueSettings:
    """The paper's protocol of fine-tuning."""
    return protocol_of(PAPER, "glue", GlueSettings)


@dataclass(frozen=True)
class Finetuning:
    """What both fine-tune: a task with one evaluation split, its prepared rows, and the protocol."""

    task: Task
    data: Path
    settings: GlueSettings

    @cached_property
    def rows(self) -> dict[str, int]:
        """How many rows each split has."""
        splits = pq.read_table(self.data, columns=["split"])["split"]
        return {split: pc.sum(pc.equal(splits, split)).as_py() for split in self.task.splits}

    @property
    def steps(self) -> int:
        """Of a whole fine-tuning."""
        return self.settings.epochs * math.ceil(self.rows["train"] / self.settings.batch_size)

    @property
    def interval(self) -> int:
        """Steps from one evaluation of the authors' to the next: as many are timed in a round."""
        return math.ceil(EVALUATE_EVERY * self.steps)


class Costs(NamedTuple):
    """Seconds that a contestant needs, in one round."""

    step: float
    evaluation: float  # of all evaluation rows


class Ours:
    """One operator, fine-tuned by this project."""

    def __init__(self, finetuning: Finetuning, checkpoint: Path) -> None:
        self.finetuning, self.evaluate_every, self.trainings = finetuning, finetuning.steps, 0
        self.rows = read_rows(finetuning.data, finetuning.task, DEVICE)
        self.model = classifier(checkpoint, finetuning.task.num_labels, finetuning.settings.dropout)

    def measure(self) -> Costs:
        """The first steps of a fine-tuning, each time with another seed, and one evaluation."""
        clock = Stopwatch(UNTIMED, UNTIMED + self.finetuning.interval)
        self._train(clock)
        evaluation = timed(lambda: predict(self.model, self.rows["validation"], PRECISION))
        return Costs(clock.seconds / self.finetuning.interval, evaluation)

    def _train(self, clock: "Stopwatch") -> None:
        self.trainings += 1
        try:
            train(self.model, self.rows["train"], self.finetuning.settings, PRECISION, self.trainings, clock.tell)
        except Enough:
            return


class Enough(Exception):
    """Stops a training."""


class Stopwatch:
    """Told how many steps are done, it times those from `first` to `last`, and stops the training there."""

    def __init__(self, first: int, last: int) -> None:
        self.first, self.last = first, last
        self.begun = self.seconds = 0.0

    def tell(self, step: int) -> None:
        """What `train` calls after each step."""
        if step == self.first:
            self.begun = now()
        if step == self.last:
            self.seconds = now() - self.begun
            raise Enough


class Authors:
    """Hugging Face's `Trainer` with the stock model."""

    def __init__(self, finetuning: Finetuning, model: BertForSequenceClassification, folder: Path) -> None:
        self.finetuning, self.evaluate_every, self.clock = finetuning, finetuning.interval, EvaluationClock()
        self.trainer = transformers.Trainer(
            model,
            arguments(finetuning.settings, folder),
            data_collator=default_data_collator,
            train_dataset=PaddedRows(finetuning.data, "train"),
            eval_dataset=PaddedRows(finetuning.data, "validation"),
            compute_metrics=accuracy,
            callbacks=[self.clock],
        )
        self.trainer.remove_callback(transformers.PrinterCallback)

    def measure(self) -> Costs:
        """The first steps of a fine-tuning, with the evaluation that falls among them."""
        self.clock.first, self.clock.last = UNTIMED, UNTIMED + self.finetuning.interval
        self.clock.evaluating = 0.0
        self.trainer.train()
        training = self.clock.ended - self.clock.begun - self.clock.evaluating
        return Costs(training / self.finetuning.interval, self.clock.evaluating)


class EvaluationClock(Clock):
    """Notes, beside the ends of two steps, the seconds of the evaluations between them."""

    stepped = evaluating = 0.0

    def on_step_end(self, args, state, control, **others) -> None:
        """Hugging Face's hook."""
        super().on_step_end(args, state, control, **others)
        self.stepped = now()

    def on_evaluate(self, args, state, control, **_) -> None:
        """Hugging Face's hook, after an evaluation."""
        if self.first <= state.global_step < self.last:
            self.evaluating += now() - self.stepped


class PaddedRows(Dataset):
    """Rows of a split as `datasets` gives them: lists of Python numbers, padded."""

    def __init__(self, data: Path, split: str) -> None:
        table = pq.read_table(data).filter(pc.field("split") == split)
        columns = (table[name].to_pylist() for name in ("input_ids", "token_type_ids", "label"))
        self.rows = [
            {
                "input_ids": _padded(ids),
                "token_type_ids": _padded(types),
                "attention_mask": _padded([1] * len(ids)),
                "label": label,
            }
            for ids, types, label in zip(*columns, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, list[int] | int]:
        return self.rows[index]


def _padded(values: list[int]) -> list[int]:
    return values + [0] * (MAX_LENGTH - len(values))


def classifier(checkpoint: Path, num_labels: int, dropout: float) -> torch.nn.Module:
    """This project's classifier on a checkpoint, its head drawn with seed 1."""
    model = load_classifier(checkpoint, num_labels, dropout)
    reset_head(model, seed=1)
    return model.to(DEVICE)


def stock_classifier(checkpoint: Path, num_labels: int, dropout: float) -> BertForSequenceClassification:
    """Hugging Face's own model that computes the same."""
    return fold(classifier(checkpoint, num_labels, dropout))


def accuracy(prediction: transformers.EvalPrediction) -> dict[str, float]:
    """What the Trainer is to compute from logits and labels."""
    return {"accuracy": float(np.mean(prediction.predictions.argmax(axis=1) == prediction.label_ids))}


def arguments(settings: GlueSettings, folder: Path) -> transformers.TrainingArguments:
    """The paper's settings, and the authors' evaluations; nothing is logged or saved."""
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=EVALUATION_BATCH_SIZE,
        eval_strategy="steps",
        eval_steps=EVALUATE_EVERY,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup_ratio,  # below 1 it is a share of the steps
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.gradient_clip,
        optim="adamw_torch_fused",
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
    )
