"""Score the fine-tuned models of one checkpoint on rows with typing errors and on challenge sets.

Each (task, seed) is measured once, and kept in the state directory beside its fine-tuning.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from symbert.errors import UsageError
from symbert.files import read_json, sha256_of, write_json
from symbert.glue.batches import Rows, read_sets
from symbert.glue.job import Finetuning, Record, open_job
from symbert.glue.metrics import is_constant, scored
from symbert.glue.prepare import facts_of
from symbert.glue.tasks import Task
from symbert.glue.training import predict


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
    fine-tuned again. So `clean` has the scores of the very model on the evaluation rows, by score column (none without
    sets).
    """
    if not len(data) == len(robustness) == len(output):
        counts = f"{len(data)} files in --data, {len(robustness)} in --robustness, {len(output)} in --output"
        raise UsageError(f"measure_robustness: {counts}; give one of each per task")
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    with open_job(checkpoint, settings, state, threads, keep_finetuned, **identity) as job:
        measurements = [Measurement(Finetuning(job, rows), sets) for rows, sets in zip(data, robustness, strict=True)]
        for measurement, records in zip(measurements, output, strict=True):
            write_json(records, [measurement.record(seed) for seed in finetune_seeds])


@dataclass(frozen=True)
class Measurement:
    """One task's fine-tuned models on its sets; UsageError when these are of another task."""

    finetuning: Finetuning
    data: Path

    def __post_init__(self) -> None:
        wanted, found = self.finetuning.task.name, self.facts["task"]
        if found != wanted:
            raise UsageError(
                f"{self.data}: sets of {found}, expected those of {wanted}; give --robustness in the order of --data"
            )

    @property
    def facts(self) -> Record:
        """What the file of the sets says of itself."""
        return facts_of(self.data)

    def record(self, seed: int) -> Record:
        """The record of a seed; measured if it is not kept."""
        finetuned = self.finetuning.kept(seed).path
        path = finetuned.with_name(f"robustness-{finetuned.stem}-{sha256_of(self.data)[:8]}.json")
        if not path.is_file():
            write_json(path, self._measure(seed))
        return read_json(path, {"task": str, "finetune_seed": int, "clean": dict, "sets": dict})

    def _measure(self, seed: int) -> Record:
        facts, finetuning = self.facts, self.finetuning
        measured = self._scores(seed, facts["sets"]) if facts["sets"] else {"clean": {}, "sets": {}}
        return {**finetuning.identity(seed), **measured, "stand_in": facts["stand_in"], **finetuning.provenance}

    def _scores(self, seed: int, sets: dict[str, Record]) -> Record:
        """Of one model: clean scores by column, facts and scores of each set."""
        finetuning = self.finetuning
        model, task, job = finetuning.model(seed), finetuning.task, finetuning.job
        rows, training_labels = read_sets(self.data, sets, task, job.device), _labels(finetuning.rows["train"])
        found = {}
        for name, facts in sets.items():
            predictions = predict(model, rows[name], job.precision)
            score = score_of_set(task, facts, training_labels, _labels(rows[name]), predictions)
            found[name] = {**facts, **score}
        return {"clean": finetuning.scores(finetuning.predictions(model))["metrics"], "sets": found}


def _labels(rows: Rows) -> np.ndarray:
    return rows.labels.cpu().numpy()


def score_of_set(
    task: Task, facts: Record, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray
) -> Record:
    """Score, details and majority baseline by the metrics of the set; a predicted class counts as its `classes` say."""
    asked = replace(task, metrics=tuple(facts["metrics"]))
    counted = [_counted(facts["classes"], values) for values in (training_labels, predictions)]
    return {**scored(asked, counted[0], labels, counted[1]), "constant_prediction": is_constant(predictions)}


def _counted(classes: list[int] | None, values: np.ndarray) -> np.ndarray:
    return values if classes is None else np.array(classes)[values]
