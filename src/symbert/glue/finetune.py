"""Fine-tune one pre-trained checkpoint on every task with every seed, and score it.

Each (task, seed) leaves its record and predictions in the undeclared state directory, under a name that holds
a hash of all that determines it. So one more seed computes only that seed, and results of other settings, data
or weights are never mixed in; the declared outputs are put together from these records.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch

from symbert.errors import ConfigError, DivergedError, UsageError
from symbert.files import read_json, sha256_of, single_writer, write_json
from symbert.glue.batches import Rows, read_rows
from symbert.glue.classifier import load_classifier, reset_head
from symbert.glue.metrics import is_constant, majority, measure
from symbert.glue.prepare import facts_of
from symbert.glue.tasks import Task, task_named
from symbert.glue.training import predict, steps_of, train
from symbert.model.device import pick_device, resolve_precision
from symbert.progress import Progress
from symbert.settings import GlueSettings, hash_of, read_settings


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
) -> None:
    """Write, for each prepared task in `data`, the list of its records (one per seed) to its file in `output`.

    A record names model, checkpoint, task and seed and holds, by score column from 0 to 1, `metrics`, `details`
    (the metrics whose mean it is) and `majority` (the score of the best constant prediction). Raises
    IntegrityError for a checkpoint without all encoder weights and DivergedError for a loss that is not finite.
    """
    if len(data) != len(output):
        raise UsageError(f"finetune: {len(data)} files in --data, {len(output)} in --output; give one output per task")
    torch.set_num_threads(threads)
    chosen = read_settings(settings, GlueSettings)
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    job = Job(identity, checkpoint, chosen, state, pick_device())
    with single_writer(state):
        for prepared, records in zip(data, output, strict=True):
            write_json(records, job.records(prepared, finetune_seeds))


@dataclass(frozen=True)
class Job:
    """One checkpoint, fine-tuned under one protocol on one device."""

    identity: dict[str, Any]  # size, attention, pretrain_seed, step
    checkpoint: Path
    settings: GlueSettings
    state: Path
    device: torch.device

    def records(self, data: Path, seeds: list[int]) -> list[dict[str, Any]]:
        """The record of each seed on one task; only those that are not in the state directory are computed."""
        facts = facts_of(pq.read_schema(data))
        task = task_named(facts["task"])
        origin = {"checkpoint_sha256": sha256_of(self.checkpoint / "model.safetensors"), "data_sha256": sha256_of(data)}
        key = hash_of(self.settings, resolve_precision(self.settings.precision, self.device), self.identity, origin)[:8]
        kept = {seed: self.state / task.name / f"seed-{seed}-{key}.json" for seed in seeds}
        missing = [seed for seed, path in kept.items() if not path.is_file()]
        rows = read_rows(data, task, self.device) if missing else {}
        for seed in missing:
            begun = time.monotonic()
            scores, predictions = self._run(task, rows, seed)
            seconds = time.monotonic() - begun
            record = {**self.identity, "task": task.name, "finetune_seed": seed, **scores, **_provenance(facts)}
            record |= {"settings_hash": hash_of(self.settings), "origin": "finetune", **origin}
            write_json(kept[seed], {"record": record, "predictions": predictions, "seconds": seconds})
        return [read_json(path)["record"] for path in kept.values()]

    def _run(self, task: Task, rows: dict[str, Rows], seed: int) -> tuple[dict[str, Any], dict[str, list[float]]]:
        """Fine-tune with one seed; the scores and, by split, the predictions."""
        label = "finetune {size}-{attention} seed {pretrain_seed} step {step}".format(**self.identity)
        name = f"{label}: {task.name} seed {seed}"
        precision = resolve_precision(self.settings.precision, self.device)
        model = self._classifier(task, seed)
        told = Progress(name, steps_of(len(rows["train"]), self.settings), "steps")
        try:
            train(model, rows["train"], self.settings, precision, seed, told.update)
        except DivergedError as error:
            raise DivergedError(f"{name}: {error}") from None
        predictions = {split: predict(model, rows[split], precision) for split in task.scores}
        scores = {**_scores(task, rows, predictions), "precision": precision}
        return scores, {split: values.tolist() for split, values in predictions.items()}

    def _classifier(self, task: Task, seed: int) -> torch.nn.Module:
        model = load_classifier(self.checkpoint, task.num_labels, self.settings.dropout)
        if (found := getattr(model.config, "attention", "original")) != self.identity["attention"]:
            raise ConfigError(
                f"{self.checkpoint / 'config.json'}: 'attention' is {found}, expected {self.identity['attention']}; "
                "give the checkpoint of that operator"
            )
        reset_head(model, seed)
        return model.to(self.device)


def _scores(task: Task, rows: dict[str, Rows], predictions: dict[str, np.ndarray]) -> dict[str, Any]:
    labels = {split: split_rows.labels.cpu().numpy() for split, split_rows in rows.items()}
    details = {task.scores[split]: measure(task, labels[split], predictions[split]) for split in task.scores}
    baseline = {task.scores[split]: majority(task, labels["train"], labels[split]) for split in task.scores}
    return {
        "metrics": {column: float(np.mean(list(values.values()))) for column, values in details.items()},
        "details": details,
        "majority": {column: float(np.mean(list(values.values()))) for column, values in baseline.items()},
        "constant_prediction": all(is_constant(values) for values in predictions.values()),
    }


def _provenance(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: facts[key] for key in ("rows", "official_rows", "partial", "stand_in")}
