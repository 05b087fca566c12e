"""Score the fine-tuned models of one checkpoint on rows with typing errors and on challenge sets.

Each (task, seed) is measured once, and kept in the state directory beside its fine-tuning.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from symbert.errors import UsageError
from symbert.files import sha256_of, write_json
from symbert.glue.batches import read_sets
from symbert.glue.finetune import Finetuning, open_protocol
from symbert.glue.kept import Record, hashed, keep, read_kept
from symbert.glue.metrics import is_constant, scored
from symbert.glue.prepare import facts_of
from symbert.glue.train import predict
from symbert.task import Task


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
    kept_elsewhere: Path | None = None,
) -> None:
    """Write, for each task in `data` and its sets in `robustness`, the list of its records (one per seed) to `output`.

    A record holds under `sets`, for each set, its facts, `score` and `majority` (0 to 1), `details` and
    `constant_prediction`. `state` and `kept_elsewhere` are those of `finetune`: kept weights are taken from there; a
    seed without them is fine-tuned again. So `clean` has the scores of the very model on the evaluation rows, by score
    column (none without sets).
    """
    if not len(data) == len(robustness) == len(output):
        counts = f"{len(data)} files in --data, {len(robustness)} in --robustness, {len(output)} in --output"
        raise UsageError(f"measure_robustness: {counts}; give one of each per task")
    identity = {"size": size, "attention": attention, "pretrain_seed": pretrain_seed, "step": step}
    with open_protocol(checkpoint, settings, state, threads, keep_finetuned, kept_elsewhere, **identity) as protocol:
        finetunings = [Finetuning(protocol, rows) for rows in data]
        for finetuning, sets in zip(finetunings, robustness, strict=True):
            if (task := facts_of(sets)["task"]) != (expected := finetuning.task.name):
                raise UsageError(
                    f"{sets}: sets of {task}, expected those of {expected}; give --robustness in the order of --data"
                )
        for finetuning, sets, records in zip(finetunings, robustness, output, strict=True):
            write_json(records, [hashed(_record(finetuning, sets, seed)) for seed in finetune_seeds])


def _record(finetuning: Finetuning, sets: Path, seed: int) -> Record:
    """The record of a seed on a task's sets; measured if it is not kept."""
    kept = finetuning.kept_result(seed)
    path = kept.with_name(f"robustness-{kept.stem}-{sha256_of(sets)[:8]}.json")
    if not path.is_file():
        keep(path, _measured(finetuning, sets, seed))
    return read_kept(path, {"task": str, "finetune_seed": int, "clean": dict, "sets": dict})


def _measured(finetuning: Finetuning, data: Path, seed: int) -> Record:
    """Of one model: clean scores by column, facts and scores of each set."""
    facts, clean, sets = facts_of(data), {}, {}
    if facts["sets"]:
        model, task, protocol = finetuning.model(seed), finetuning.task, finetuning.protocol
        rows = read_sets(data, facts["sets"], task, protocol.device)
        finetuning.refuse_other_vocabulary(model, data, rows)
        training_labels = finetuning.rows["train"].labels.cpu().numpy()
        with finetuning.named_divergence(seed):
            for name, asked in facts["sets"].items():
                predictions = predict(model, rows[name], protocol.precision)
                labels = rows[name].labels.cpu().numpy()
                sets[name] = {**asked, **score_of_set(task, asked, training_labels, labels, predictions)}
            clean = finetuning.scores(finetuning.predictions(model))["metrics"]
    measured = {"clean": clean, "sets": sets, "stand_in": facts["stand_in"]}
    return {**finetuning.identity(seed), **measured, **finetuning.provenance}


def score_of_set(
    task: Task, facts: Record, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray
) -> Record:
    """Score, details and majority baseline by the metrics of the set; a predicted class counts as its `classes` say."""
    counted_training, counted = training_labels, predictions
    if facts["classes"] is not None:
        counted_training, counted = (np.array(facts["classes"])[values] for values in (training_labels, predictions))
    score = scored(replace(task, metrics=tuple(facts["metrics"])), counted_training, labels, counted)
    return {**score, "constant_prediction": is_constant(predictions)}
