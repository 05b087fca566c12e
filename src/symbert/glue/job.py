"""One checkpoint, fine-tuned under one protocol: each (task, seed) is computed once, and kept in the state."""

import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch

from symbert.errors import ConfigError, DivergedError, IntegrityError
from symbert.files import sha256_of, single_writer
from symbert.glue.batches import Rows, read_rows
from symbert.glue.classifier import load_classifier, reset_head
from symbert.glue.kept import Kept, Result
from symbert.glue.metrics import is_constant, scored
from symbert.glue.prepare import facts_of
from symbert.glue.tasks import Task, task_named
from symbert.glue.training import predict, steps_of, train
from symbert.model.device import pick_device, resolve_precision
from symbert.operators import operator_code
from symbert.pretrain.provenance import facts_of_machine
from symbert.pretrain.recipe import RECIPES, attention_dropout, compiler_explained, dropout_told
from symbert.progress import Progress
from symbert.settings import GlueSettings, hash_of, read_settings

Record = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One checkpoint under one protocol on one device."""

    identity: dict[str, Any]  # size, attention, pretrain_seed, step
    checkpoint: Path
    settings: GlueSettings
    state: Path
    device: torch.device
    keep_finetuned: bool

    @cached_property
    def checkpoint_sha256(self) -> str:
        """Of the pre-trained weights."""
        return sha256_of(self.checkpoint / "model.safetensors")

    @property
    def precision(self) -> str:
        """What is really computed in."""
        return resolve_precision(self.settings.precision, self.device)

    @property
    def dropout_told(self) -> Record:
        """The dropout of attention weights, where the recipe lets the device decide it."""
        return dropout_told(RECIPES[self.settings.recipe], self.settings.dropout, self.device)

    def classifier(self, task: Task, seed: int) -> torch.nn.Module:
        """The encoder under a head drawn with the seed; ConfigError when it is of another operator."""
        model = load_classifier(self.checkpoint, task.num_labels, self.settings.dropout)
        if (found := model.config.attention) != self.identity["attention"]:
            raise ConfigError(
                f"{self.checkpoint / 'config.json'}: 'attention' is {found}, expected {self.identity['attention']}; "
                "give the checkpoint of that operator"
            )
        recipe = RECIPES[self.settings.recipe]
        model.config.attention_probs_dropout_prob = attention_dropout(recipe, self.settings.dropout, self.device)
        reset_head(model, seed)
        return model.to(self.device)

    @property
    def provenance(self) -> Record:
        """What every record says of its making."""
        return {
            "settings_hash": hash_of(self.settings),
            "recipe": self.settings.recipe,
            "precision": self.precision,
            **self.dropout_told,
            "versions": {"python": platform.python_version(), **facts_of_machine(self.device)["versions"]},
            "origin": "finetune",
            "checkpoint_sha256": self.checkpoint_sha256,
        }


@contextmanager
def open_job(
    checkpoint: Path, settings: Path, state: Path, threads: int, keep_finetuned: bool, **identity: Any
) -> Iterator[Job]:
    """The job, while no other process works in its state; what killed ones left half written there is removed."""
    torch.set_num_threads(threads)
    with single_writer(state):
        for leftover in state.glob("*/.*tmp*"):  # of `publish`, and of safetensors within it
            leftover.unlink()
        yield Job(identity, checkpoint, read_settings(settings, GlueSettings), state, pick_device(), keep_finetuned)


class Finetuning:
    """One task, fine-tuned in a job with any number of seeds."""

    def __init__(self, job: Job, data: Path) -> None:
        self.job, self.data, self.facts = job, data, facts_of(data)
        self.task, self.data_sha256 = task_named(self.facts["task"]), sha256_of(data)

    @cached_property
    def rows(self) -> dict[str, Rows]:
        """The prepared rows, read when a seed needs them."""
        return read_rows(self.data, self.task, self.job.device)

    @property
    def key(self) -> str:
        """Eight hexadecimal digits that stand for all that determines a result but the seed."""
        origin = {"checkpoint_sha256": self.job.checkpoint_sha256, "data_sha256": self.data_sha256}
        origin |= {"operator_code": operator_code(self.job.identity["attention"])}
        origin |= self.job.dropout_told
        return hash_of(self.job.settings, self.job.precision, self.job.identity, origin)[:8]

    def name(self, seed: int) -> str:
        """For people."""
        label = "finetune {size}-{attention} seed {pretrain_seed} step {step}".format(**self.job.identity)
        return f"{label}: {self.task.name} seed {seed}"

    def kept(self, seed: int) -> Kept:
        """Where the state directory has a seed's result."""
        return Kept(self.job.state / self.task.name / f"seed-{seed}-{self.key}.json")

    def record(self, seed: int) -> Record:
        """The record of a seed; computed if it is not kept."""
        kept = self.kept(seed)
        if not kept.has_result():
            self._run(seed)
        return kept.read()["record"]

    def model(self, seed: int) -> torch.nn.Module:
        """The fine-tuned model of a seed: from the kept weights, or fine-tuned again.

        Then it may differ from that of the record in its last bits, on a GPU almost always.
        """
        weights = self.kept(seed).read_weights()
        if weights is None:
            return self._run(seed)
        model = self.job.classifier(self.task, seed)
        model.load_state_dict(weights)
        return model

    def _run(self, seed: int) -> torch.nn.Module:
        """Fine-tune with one seed, and keep what is wanted and not there; a record that is there stays."""
        kept, model = self.kept(seed), self._trained(seed)
        wanted = model if self.job.keep_finetuned else None
        if not kept.has_result():
            kept.write(self._result(seed, model), wanted)
        elif wanted is not None:
            kept.write_weights(wanted)
        return model

    def _trained(self, seed: int) -> torch.nn.Module:
        """Fine-tune with one seed; DivergedError, or IntegrityError where the rows are of a larger vocabulary."""
        model, settings = self.job.classifier(self.task, seed), self.job.settings
        highest, pieces = max(int(rows.input_ids.max()) for rows in self.rows.values()), model.config.vocab_size
        if highest >= pieces:
            raise IntegrityError(
                f"{self.data}: has token id {highest}, the model of {self.job.checkpoint} has {pieces:,} pieces; "
                "prepare the task with the vocabulary of the checkpoint"
            )
        told = Progress(self.name(seed), steps_of(len(self.rows["train"]), settings), "steps")
        try:
            with compiler_explained():
                train(model, self.rows["train"], settings, self.job.precision, seed, told.update)
        except DivergedError as error:
            raise DivergedError(f"{self.name(seed)}: {error}") from None
        return model

    def _result(self, seed: int, model: torch.nn.Module) -> Result:
        predictions = self.predictions(model)
        rows = {key: self.facts[key] for key in ("rows", "official_rows", "partial", "stand_in")}
        record = {**self.identity(seed), **self.scores(predictions), **rows, **self.provenance}
        return {"record": record, "predictions": {split: values.tolist() for split, values in predictions.items()}}

    def identity(self, seed: int) -> Record:
        """The key of a record."""
        return {**self.job.identity, "task": self.task.name, "finetune_seed": seed}

    @property
    def provenance(self) -> Record:
        """What a record says of its making."""
        return {**self.job.provenance, "data_sha256": self.data_sha256}

    def predictions(self, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """What a model predicts for the evaluation splits."""
        return {split: predict(model, self.rows[split], self.job.precision) for split in self.task.scores}

    def scores(self, predictions: dict[str, np.ndarray]) -> Record:
        """By score column `metrics`, `details` and `majority`; and whether each prediction is the same."""
        labels = {split: rows.labels.cpu().numpy() for split, rows in self.rows.items()}
        columns = {
            column: scored(self.task, labels["train"], labels[split], predictions[split])
            for split, column in self.task.scores.items()
        }
        names = {"metrics": "score", "details": "details", "majority": "majority"}
        told = {name: {column: found[key] for column, found in columns.items()} for name, key in names.items()}
        return {**told, "constant_prediction": all(is_constant(values) for values in predictions.values())}
