"""Score the fine-tuned models of one checkpoint on rows with typing errors and on challenge sets.

Each (task, seed) is measured once, and kept in the state directory beside its fine-tuning.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch

from symbert.errors import UsageError
from symbert.files import read_json, sha256_of, single_writer, write_json
from symbert.glue.batches import read_sets
from symbert.glue.job import Finetuning, Job, Record
from symbert.glue.metrics import is_constant, scored
from symbert.glue.prepare import facts_of
from symbert.glue.tasks import Task
from symbert.glue.training import predict
from symbert.model.device import pick_device
from symbert.settings import GlueSettings, read_settings


def measure_robustness(
    checkpoint: Path,
    data: list[Path],
    robustness: list[Path],
    settings: Path,
    size: str,
    attention: str,
    pretrain_seed: int,
    step: int,
    finetune_seeds: list[int],
    state: Path,
    output: list[Path],
    threads: int,
    keep_finetuned: bool = False,
) -> None:
    """Write, for each task in `data` and its sets in `robustness`, the list of its records (one per seed) to `output`.

    A record holds under `sets`, for each set, its facts, `score` and `majority` (0 to 1), `details` and
    `constant_prediction`. `state` is that of `finetune`: kept weights are taken from there; a seed without them is
    fine-tuned again, and `reproduced` says whether that model predicts as its score record says (null without sets).
    """
    if not len(data) == len(robustness) == len(output):
        counts = f"{len(data)} files in --data, {len(robustness)} in --robustness, {len(output)} in --output"
        raise UsageError(f"measure_robustness: {counts}; give one of each per task")
    torch.set_num_threads(threads)
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    job = Job(identity, checkpoint, read_settings(settings, GlueSettings), state, pick_device(), keep_finetuned)
    with single_writer(state):
        for prepared, sets, records in zip(data, robustness, output, strict=True):
            measurement = Measurement(Finetuning(job, prepared), sets)
            write_json(records, [measurement.record(seed) for seed in finetune_seeds])


@dataclass(frozen=True)
class Measurement:
    """One task's fine-tuned models on its sets."""

    finetuning: Finetuning
    data: Path

    def record(self, seed: int) -> Record:
        """The record of a seed; measured if it is not kept, or not of the weights that are kept by now."""
        finetuned = self.finetuning.kept(seed)
        path = finetuned.path.with_name(f"robustness-{finetuned.path.stem}-{sha256_of(self.data)[:8]}.json")
        if not path.is_file() or (read_json(path)["reproduced"] is False and finetuned.has_weights()):
            write_json(path, self._measure(seed))
        return read_json(path)

    def _measure(self, seed: int) -> Record:
        facts, job = facts_of(pq.read_schema(self.data)), self.finetuning.job
        sets, reproduced = self._scores(seed, facts["sets"]) if facts["sets"] else ({}, None)
        measured = {"sets": sets, "reproduced": reproduced, "stand_in": facts["stand_in"]}
        return {**self.finetuning.identity(seed), **measured, **job.provenance}

    def _scores(self, seed: int, sets: dict[str, Record]) -> tuple[dict[str, Record], bool]:
        """Facts and scores of each set, and whether the model is that of the score record."""
        task, job = self.finetuning.task, self.finetuning.job
        model, reproduced = self.finetuning.model(seed)
        rows = read_sets(self.data, sets, task, job.device)
        training_labels = self.finetuning.rows["train"].labels.cpu().numpy()
        found = {}
        for name, facts in sets.items():
            predictions = predict(model, rows[name], job.precision)
            labels = rows[name].labels.cpu().numpy()
            found[name] = {**facts, **score_of_set(task, facts, training_labels, labels, predictions)}
        return found, reproduced


def score_of_set(
    task: Task, facts: Record, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray
) -> Record:
    """Score, details and majority baseline by the metrics of the set; a predicted class counts as its `classes` say."""
    asked = replace(task, metrics=tuple(facts["metrics"]))
    counted = [_counted(facts["classes"], values) for values in (training_labels, predictions)]
    return {**scored(asked, counted[0], labels, counted[1]), "constant_prediction": is_constant(predictions)}


def _counted(classes: list[int] | None, values: np.ndarray) -> np.ndarray:
    return values if classes is None else np.array(classes)[values]
