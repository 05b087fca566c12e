"""Fine-tune one pre-trained checkpoint on every task with every seed, and score it.

Each (task, seed) is computed once: it leaves its record and predictions in the undeclared state directory, and where
asked its weights. So one more seed computes only that seed; the declared outputs are put together from these records.
The name of a kept file holds a hash of all that determines the result, so results of other settings, data or weights
are never mixed in.
"""

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from symbert.errors import ConfigError, DivergedError, IntegrityError, UsageError
from symbert.files import sha256_of, single_writer, write_json, write_text
from symbert.glue.batches import TaskRows, read_rows
from symbert.glue.heads import head_of
from symbert.glue.kept import Record, hashed, keep, read_kept
from symbert.glue.metrics import scores_of
from symbert.glue.prepare import facts_of
from symbert.glue.train import load_classifier, predict, reset_head, steps_of, train
from symbert.model.weights import write_weights
from symbert.operators import operator_code
from symbert.pretrain.storage import extracted_sha256
from symbert.progress import Progress
from symbert.settings import GlueSettings, hash_of, read_settings
from symbert.task import Task
from symbert.tasks import task_named
from symbert.training.device import facts_of_machine, pick_device, resolve_precision
from symbert.training.recipe import RECIPES, attention_dropout, compiler_explained, recorded_dropout

DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")  # of a classifier, which its export states


def finetune(
    checkpoint: Path,
    data: list[Path],
    settings: Path,
    size: str,
    attention: str,
    pretrain_seed: int,
    step: int,
    finetune_seeds: list[int],
    state: Path,
    output: list[Path],
    threads: int,
    keep_finetuned: int | None = None,
    kept_elsewhere: Path | None = None,
) -> None:
    """Write, for each prepared task in `data`, the list of its records (one per seed) to its file in `output`.

    A record names model, checkpoint, task and seed and holds, by score column from 0 to 1, `metrics`, `details`
    (the metrics whose mean it is) and `majority` (the score of the best constant prediction). Fine-tuned weights
    stay in `state` where `keep_finetuned` is this pre-training step. Records that `kept_elsewhere`, the state folder of
    another experiment, has of the same fine-tuning are taken from there. Raises IntegrityError for a checkpoint without
    all encoder weights and DivergedError for a loss that is not finite.
    """
    if len(data) != len(output):
        raise UsageError(f"finetune: {len(data)} files in --data, {len(output)} in --output; give one output per task")
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    keep = keep_finetuned == step
    with open_protocol(checkpoint, settings, state, threads, keep, kept_elsewhere, **identity) as protocol:
        for prepared, records in zip(data, output, strict=True):
            finetuning = Finetuning(protocol, prepared)
            write_json(records, [hashed(record) for record in finetuning.records(finetune_seeds)])


@dataclass(frozen=True)
class Protocol:
    """How one checkpoint is fine-tuned, on one device, whatever the task."""

    identity: dict[str, Any]  # size, attention, pretrain_seed, step
    checkpoint: Path
    settings: GlueSettings
    state: Path
    device: torch.device
    keep_finetuned: bool
    kept_elsewhere: Path | None  # a state folder that is only read

    @cached_property
    def checkpoint_sha256(self) -> str:
        """Of the pre-trained weights."""
        return extracted_sha256(self.checkpoint)

    @property
    def precision(self) -> str:
        """The resolved precision."""
        return resolve_precision(self.settings.precision, self.device)

    @property
    def recorded_dropout(self) -> Record:
        """The dropout of attention weights, where the recipe lets the device decide it."""
        return recorded_dropout(RECIPES[self.settings.recipe], self.settings.dropout, self.device)

    def classifier(self, task: Task, seed: int) -> torch.nn.Module:
        """The encoder under a head drawn with the seed; ConfigError when it has another operator."""
        model = load_classifier(self.checkpoint, task.num_labels, self.settings.dropout, head_of(task).model)
        attention, expected = model.config.attention, self.identity["attention"]
        if attention != expected:
            raise ConfigError(
                f"{self.checkpoint / 'config.json'}: 'attention' is {attention}, expected {expected}; "
                "give the checkpoint of that operator"
            )
        recipe = RECIPES[self.settings.recipe]
        model.config.attention_probs_dropout_prob = attention_dropout(recipe, self.settings.dropout, self.device)
        reset_head(model, seed)
        return model.to(self.device)


@contextmanager
def open_protocol(
    checkpoint: Path,
    settings: Path,
    state: Path,
    threads: int,
    keep_finetuned: bool,
    kept_elsewhere: Path | None = None,
    **identity: Any,
) -> Iterator[Protocol]:
    """The protocol, while no other process works in its state; half-written files of killed processes are removed."""
    torch.set_num_threads(threads)
    with single_writer(state):
        for leftover in state.glob("*/.*tmp*"):  # of `publish`, and of safetensors within it
            leftover.unlink()
        protocol_settings, device = read_settings(settings, GlueSettings), pick_device()
        yield Protocol(identity, checkpoint, protocol_settings, state, device, keep_finetuned, kept_elsewhere)


class Finetuning:
    """One task, fine-tuned under a protocol with any number of seeds."""

    def __init__(self, protocol: Protocol, data: Path) -> None:
        self.protocol, self.data, self.facts = protocol, data, facts_of(data)
        self.task, self.data_sha256 = task_named(self.facts["task"]), sha256_of(data)

    @cached_property
    def rows(self) -> dict[str, TaskRows]:
        """The prepared rows, read when a seed needs them."""
        return read_rows(self.data, self.task, self.protocol.device)

    def identity(self, seed: int) -> Record:
        """The key of a record."""
        return {**self.protocol.identity, "task": self.task.name, "finetune_seed": seed}

    @property
    def provenance(self) -> Record:
        """How a record was made."""
        protocol = self.protocol
        return {
            "settings_hash": hash_of(protocol.settings),
            "recipe": protocol.settings.recipe,
            "precision": protocol.precision,
            **protocol.recorded_dropout,
            "versions": {"python": platform.python_version(), **facts_of_machine(protocol.device)["versions"]},
            "origin": "finetune",
            "checkpoint_sha256": protocol.checkpoint_sha256,
            "data_sha256": self.data_sha256,
        }

    def kept_result(self, seed: int) -> Path:
        """The file of a seed's record and predictions; its weights, and their sha256, have the same stem."""
        origin = {"checkpoint_sha256": self.protocol.checkpoint_sha256, "data_sha256": self.data_sha256}
        origin |= {"operator_code": operator_code(self.protocol.identity["attention"])}
        origin |= self.protocol.recorded_dropout
        key = hash_of(self.protocol.settings, self.protocol.precision, self.protocol.identity, origin)[:8]
        return self.protocol.state / self.task.name / f"seed-{seed}-{key}.json"

    def existing_result(self, seed: int) -> Path:
        """The same file, or that of `kept_elsewhere` where only it exists: equal names stand for equal fine-tunings."""
        kept, elsewhere = self.kept_result(seed), self.protocol.kept_elsewhere
        other = elsewhere and elsewhere / kept.relative_to(self.protocol.state)
        return other if other and other.is_file() and not kept.is_file() else kept

    def records(self, seeds: Sequence[int]) -> list[Record]:
        """The records of seeds; those that are not kept are computed first."""
        for seed in seeds:
            if not self.existing_result(seed).is_file():
                self._train_and_keep(seed)
        fields = {"record": {"task": str, "finetune_seed": int, "metrics": dict}}
        return [read_kept(self.existing_result(seed), fields)["record"] for seed in seeds]

    def model(self, seed: int) -> torch.nn.Module:
        """The fine-tuned model of a seed: from the kept weights, or fine-tuned again.

        Then it may differ from that of the record in its last bits, on a GPU almost always.
        """
        kept = self.existing_result(seed)
        weights, checksum = kept.with_suffix(".safetensors"), kept.with_suffix(".sha256")
        if not (kept.is_file() and weights.is_file()):
            return self._train_and_keep(seed)
        if not checksum.is_file() or checksum.read_text().strip() != sha256_of(weights):
            print(f"warning: {weights}: sha256 is not that in {checksum.name}; fine-tuned again", file=sys.stderr)
            return self._train_and_keep(seed)
        model = self.protocol.classifier(self.task, seed)
        model.load_state_dict(load_file(weights))
        return model

    def _train_and_keep(self, seed: int) -> torch.nn.Module:
        """Fine-tune with a seed; keep its scores, and the weights if asked. An existing record stays."""
        protocol, rows = self.protocol, self.rows["train"]
        model = protocol.classifier(self.task, seed)
        self.refuse_other_vocabulary(model, self.data, self.rows)
        kept = self.kept_result(seed)
        weights, is_new = kept.with_suffix(".safetensors"), not kept.is_file()
        progress = Progress(self.label(seed), steps_of(rows.examples, protocol.settings), "steps")
        with self.named_divergence(seed), compiler_explained():
            train(model, rows, protocol.settings, protocol.precision, seed, progress.update)
            predictions = self.predictions(model) if is_new else {}
        if is_new:
            weights.unlink(missing_ok=True)  # of an earlier model
        if protocol.keep_finetuned:
            write_weights(model, weights)
            write_text(kept.with_suffix(".sha256"), sha256_of(weights) + "\n")
        if is_new:
            facts = {key: self.facts[key] for key in ("rows", "official_rows", "partial", "stand_in")}
            record = {**self.identity(seed), **self.scores(predictions), **facts, **self.provenance}
            listed = {split: values.tolist() for split, values in predictions.items()}
            dropout = {key: getattr(model.config, key) for key in DROPOUTS}
            keep(kept, {"record": record, "predictions": listed, "dropout": dropout})
        return model

    def label(self, seed: int) -> str:
        """What lines about a seed begin with."""
        name = "finetune {size}-{attention} seed {pretrain_seed} step {step}".format(**self.protocol.identity)
        return f"{name}: {self.task.name} seed {seed}"

    @contextmanager
    def named_divergence(self, seed: int) -> Iterator[None]:
        """A DivergedError says whose it is."""
        try:
            yield
        except DivergedError as error:
            raise DivergedError(f"{self.label(seed)}: {error}") from None

    def refuse_other_vocabulary(self, model: torch.nn.Module, data: Path, rows: dict[str, TaskRows]) -> None:
        """IntegrityError where the rows of a file have a larger vocabulary than the model."""
        highest, pieces = max(int(each.input_ids.max()) for each in rows.values()), model.config.vocab_size
        if highest >= pieces:
            raise IntegrityError(
                f"{data}: has token id {highest}, the model of {self.protocol.checkpoint} has {pieces:,} pieces; "
                "prepare the task with the vocabulary of the checkpoint"
            )

    def predictions(self, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """What a model predicts for the splits that it was not trained on."""
        return {
            split: predict(model, rows, self.protocol.precision)
            for split, rows in self.rows.items()
            if split != "train"
        }

    def scores(self, predictions: dict[str, np.ndarray]) -> Record:
        """What a record says of predictions: see `symbert.glue.metrics.scores_of`."""
        return scores_of(self.task, {split: rows.truth for split, rows in self.rows.items()}, predictions)
