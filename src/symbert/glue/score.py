"""Scores of a checkpoint: fine-tuned on tasks, the same models on noisy and out-of-domain rows, or judging pairs.

    results/scores/{suite}/settings.json                                           kind, rows, protocol
    results/scores/{suite}/{host}/{model}/seed-{seed}/step-{step}/{request}.json   the records of a request
        finetuned/{task}/seed-{n}.json, .safetensors                               record, predictions; weights
        finished/{request}                                                     empty: a job that runs again was forced
    results/robustness/…                                                           the same, of `trained`: a suite above

All records of a folder follow from the same settings and weights, so a request takes those that are there, of another
request or of a job that was interrupted.
"""

import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file

from symbert.configuration import GlueSettings, settings_from, values_of
from symbert.console import Progress
from symbert.errors import DivergedError
from symbert.files import hash_of, read_json, sha256_of, single_writer, verify_sha256, write_json
from symbert.glue.blimp import PARADIGMS
from symbert.glue.metrics import Record, hashed, is_constant, read_kept, scored
from symbert.glue.prepare import SENTENCES, define_own, facts_of
from symbert.glue.sources import read_table
from symbert.glue.squad import HELD_OUT, scored_answers
from symbert.glue.tasks import Task, task_named
from symbert.glue.train import HEADS, TaskRows, load_classifier, predict, read_rows, reset_head, steps_of, train
from symbert.model.likelihood import log_likelihoods
from symbert.model.loading import extracted_sha256, load_model, write_weights
from symbert.pretrain.compute import (
    explained,
    facts_of_machine,
    pick_device,
    resolve_precision,
)

DROPOUTS = ("hidden_dropout_prob", "attention_probs_dropout_prob")  # of a classifier, which its export states
FACTS = ("rows", "official_rows", "partial", "stand_in", "moved", "seen")  # of prepared rows, in each record
SETTINGS = {"kind": str, "rows": str}
REMEDY = "delete it and run again"


def score(
    file: Path,
    /,
    threads: int,
    tasks: list[str] | None = None,
    seeds: list[int] | None = None,
    keep_weights: int | None = None,
) -> None:
    """Write a file of results/scores/ or results/robustness/: a list of records of a checkpoint, one for each task and
    fine-tuning seed; or the record of how it judges minimal pairs.

    A record of a fine-tuning names model, step, task and seed and holds, by score column from 0 to 1, `metrics`,
    `details` (the metrics whose mean it is) and `majority` (the score of the best constant prediction). Predictions
    stay beside it, and weights where `keep_weights` is the checkpoint's step. Raises IntegrityError for a damaged
    checkpoint or record, and DivergedError for a loss, a weight or an output that is not finite.
    """
    torch.set_num_threads(threads)
    folder, suite, finished = file.parent, file.parents[4], file.parent / "finished" / file.stem
    results, place = suite.parents[1], folder.relative_to(suite)
    settings, checkpoint = read_json(suite / "settings.json", SETTINGS), Checkpoint(results / "runs" / place)
    rows = results / "tasks" / settings["rows"]
    with single_writer(folder / "state"):
        if settings["kind"] == "judge":
            content: Any = hashed(judgement(checkpoint, rows / "blimp.parquet", settings["protocol"]))
        else:
            is_again = settings["kind"] == "robustness"
            trained = results / "scores" / settings["trained"] / place if is_again else folder
            measure = partial(robustness, folder=rows) if is_again else scores
            if finished.exists():
                for task, seed in product(tasks, seeds):
                    _kept(folder, task, seed).unlink(missing_ok=True)
                finished.unlink()
            kept = None if is_again else keep_weights
            finetunings = (Finetuning(checkpoint, trained, task, kept) for task in tasks)
            content = [record for each in finetunings for record in _records(folder, each, seeds, measure)]
        write_json(file, content)
        finished.parent.mkdir(exist_ok=True)
        finished.touch()
        shutil.rmtree(folder / "state", ignore_errors=True)  # with our lock


def _kept(folder: Path, task: str, seed: int) -> Path:
    return folder / "finetuned" / task / f"seed-{seed}.json"


def _records(
    folder: Path, finetuning: "Finetuning", seeds: list[int], measure: "Callable[[Finetuning, int], Record]"
) -> Iterator[Record]:
    """The record of each seed, which is kept in a folder, or measured.

    A record of other weights or rows counts for nothing, as a forced training may have given other weights; so does a
    record in the precision of another device, or without the fine-tuned weights that are asked for.
    """
    for seed in seeds:
        kept = _kept(folder, finetuning.task.name, seed)
        record = read_kept(kept, {"record": dict})["record"] if kept.is_file() else {}
        is_whole = not finetuning.keeps_weights or kept.with_suffix(".safetensors").is_file()
        if not (is_whole and finetuning.is_of(record)):
            try:
                content = measure(finetuning, seed)
            except DivergedError as error:
                raise DivergedError(f"{finetuning.label(seed)}: {error}") from None
            write_json(kept, hashed(content))
            record = content["record"]
        yield hashed(record)


class Checkpoint:
    """A step of a run, on one device; its config.json says of which run."""

    def __init__(self, folder: Path) -> None:
        run = {"size": str, "attention": str, "pretrain_seed": int, "step": int}
        facts = read_json(folder / "config.json", {"pretraining": run})["pretraining"]
        names = ("size", "attention", "pretrain_seed", "model_host", "step")
        self.folder, self.device = folder, pick_device()
        self.identity: Record = {name: facts[name] for name in names if name in facts}
        self.versions: Record = {"python": platform.python_version(), **facts_of_machine(self.device)["versions"]}

    @cached_property
    def sha256(self) -> str:
        """Of its weights."""
        return extracted_sha256(self.folder)


class Finetuning:
    """A checkpoint, fine-tuned on one task with any number of seeds; `folder` has its scores."""

    def __init__(self, checkpoint: Checkpoint, folder: Path, task: str, keep_weights: int | None) -> None:
        suite = folder.parents[3]
        settings = read_json(suite / "settings.json", {**SETTINGS, "protocol": dict})
        rows = suite.parents[1] / "tasks" / settings["rows"]
        self.own = define_own(read_json(rows / "settings.json", {})).get(task)
        self.task, self.data, self.folder = task_named(task), rows / f"{task}.parquet", folder
        self.checkpoint, self.device = checkpoint, checkpoint.device
        self.settings = settings_from(settings["protocol"], GlueSettings, str(suite))
        self.precision = resolve_precision(self.settings.precision, self.device)
        self.keeps_weights = keep_weights == checkpoint.identity["step"]

    @cached_property
    def provenance(self) -> Record:
        """How a record was made."""
        return {
            "settings_hash": hash_of(values_of(self.settings)),
            "recipe": self.settings.recipe,
            "precision": self.precision,
            "versions": self.checkpoint.versions,
            "origin": "finetune",
            "checkpoint_sha256": self.checkpoint.sha256,
            "data_sha256": sha256_of(self.data),
        }

    @cached_property
    def rows(self) -> dict[str, TaskRows]:
        """The prepared rows."""
        return read_rows(self.data, self.task, self.device)

    def is_of(self, record: Record) -> bool:
        """Whether a record is of the weights and rows that are there now, in the precision of this device: no table
        takes both."""
        return all(record.get(name) == value for name, value in self.provenance.items() if name != "versions")

    def identity(self, seed: int) -> Record:
        """The key of a record."""
        return {**self.checkpoint.identity, "task": self.task.name, "finetune_seed": seed}

    def label(self, seed: int) -> str:
        """The name that lines about a seed begin with."""
        name = "finetune {size}-{attention} seed {pretrain_seed} step {step}".format(**self.identity(seed))
        return f"{name}: {self.task.name} seed {seed}"

    def model(self, seed: int) -> torch.nn.Module:
        """The encoder under a head drawn with the seed."""
        kind = HEADS[self.task.head].model
        model = load_classifier(self.checkpoint.folder, self.task.num_labels, self.settings.dropout, kind)
        reset_head(model, seed)
        return model.to(self.device)

    def trained(self, seed: int) -> torch.nn.Module:
        """The model, fine-tuned with a seed."""
        model, rows = self.model(seed), self.rows["train"]
        progress = Progress(self.label(seed), steps_of(rows.examples, self.settings), "steps")
        with explained(self.label(seed)):
            train(model, rows, self.settings, self.precision, seed, progress.update)
        return model

    def kept_or_trained(self, seed: int) -> torch.nn.Module:
        """The fine-tuned model of a seed: of kept weights, or fine-tuned again; IntegrityError for damaged weights.

        Fine-tuned again, it may differ from the model of the record in its last bits, on a GPU almost always.
        """
        kept = _kept(self.folder, self.task.name, seed)
        weights = kept.with_suffix(".safetensors")
        if not (kept.is_file() and weights.is_file()):
            return self.trained(seed)
        content = read_kept(kept, {"record": dict, "weights_sha256": str})
        if not self.is_of(content["record"]):  # of an earlier checkpoint or other rows
            return self.trained(seed)
        verify_sha256(weights, content["weights_sha256"], REMEDY)
        model = self.model(seed)
        model.load_state_dict(load_file(weights))
        return model

    def predictions(self, model: torch.nn.Module) -> dict[str, np.ndarray]:
        """Predictions of a model for the splits that it was not trained on."""
        return {split: predict(model, rows, self.precision) for split, rows in self.rows.items() if split != "train"}

    def scores(self, predictions: dict[str, np.ndarray]) -> Record:
        """By score column `metrics`, `details` and `majority`; and whether each prediction is the same.

        Where answers are spans there are also `thresholds`, by score column: the margin over no answer from which they
        are given.
        """
        names = {"metrics": "score", "details": "details", "majority": "majority"}
        task, truth = self.task, {split: rows.truth for split, rows in self.rows.items()}
        if task.head == "spans":
            held_out = truth[HELD_OUT], predictions[HELD_OUT]
            splits = {split: scored_answers(*held_out, truth[split], predictions[split]) for split in task.scores}
            names["thresholds"], constant = "threshold", all(score["constant"] for score in splits.values())
        else:
            splits = {split: scored(task, truth["train"], truth[split], predictions[split]) for split in task.scores}
            constant = all(map(is_constant, predictions.values()))
        columns = {task.scores[split]: score for split, score in splits.items()}
        by_name = {name: {column: score[key] for column, score in columns.items()} for name, key in names.items()}
        return {**by_name, "constant_prediction": constant}


def scores(finetuning: Finetuning, seed: int) -> Record:
    """The record of a seed, which is fine-tuned, and its predictions; its weights are kept where asked."""
    model = finetuning.trained(seed)
    predictions = finetuning.predictions(model)
    weights = _kept(finetuning.folder, finetuning.task.name, seed).with_suffix(".safetensors")
    weights.unlink(missing_ok=True)  # of an earlier job
    prepared = facts_of(finetuning.data)
    facts = {key: prepared[key] for key in FACTS if key in prepared}  # earlier versions counted less
    record = {**finetuning.identity(seed), **finetuning.scores(predictions), **facts, **finetuning.provenance}
    listed = {split: values.tolist() for split, values in predictions.items()}
    content = {"record": record, "predictions": listed, "own": finetuning.own}
    content["dropout"] = {key: getattr(model.config, key) for key in DROPOUTS}
    if finetuning.keeps_weights:
        write_weights(model, weights)
        content["weights_sha256"] = sha256_of(weights)
    return content


def robustness(finetuning: Finetuning, seed: int, folder: Path) -> Record:
    """The record of the fine-tuned model of a seed on the noisy and out-of-domain sets of its task in a folder.

    It holds under `sets`, for each set, its facts, `score` and `majority` (0 to 1), `details` and
    `constant_prediction`. Kept weights are taken; a seed without them is fine-tuned again. So `clean` has the scores of
    the very model on the evaluation rows, by score column (none without sets).
    """
    task, data = finetuning.task, folder / f"{finetuning.task.name}.parquet"
    facts, clean, sets = facts_of(data), {}, {}
    if facts["sets"]:
        model, training_labels = finetuning.kept_or_trained(seed), finetuning.rows["train"].labels.cpu().numpy()
        for name, rows in read_rows(data, task, finetuning.device).items():
            predictions, asked = predict(model, rows, finetuning.precision), facts["sets"][name]
            labels = rows.labels.cpu().numpy()
            sets[name] = {**asked, **score_of_set(task, asked, training_labels, labels, predictions)}
        clean = finetuning.scores(finetuning.predictions(model))["metrics"]
    measured = {"clean": clean, "sets": sets, "stand_in": facts["stand_in"]}
    return {"record": {**finetuning.identity(seed), **measured, **finetuning.provenance}}


def score_of_set(
    task: Task, facts: Record, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray
) -> Record:
    """Score, details and majority baseline by the metrics of the set; a predicted class counts as its `classes` say."""
    counted_training, counted = training_labels, predictions
    if facts["classes"] is not None:
        counted_training, counted = (np.array(facts["classes"])[values] for values in (training_labels, predictions))
    score = scored(replace(task, metrics=tuple(facts["metrics"])), counted_training, labels, counted)
    return {**score, "constant_prediction": is_constant(predictions)}


def judgement(checkpoint: Checkpoint, data: Path, protocol: Record) -> Record:
    """The record of a checkpoint on BLiMP: of each paradigm, in how many pairs the acceptable sentence is likelier.

    Pairs whose sentences are equally likely are counted apart, as ties: a model that cannot tell them, for instance
    because both have the same word pieces, is neither right nor wrong.
    """
    facts, pairs, model = facts_of(data), read_table(data, str(data), REMEDY), load_model(checkpoint.folder)
    good, bad = (pairs[name].to_pylist() for name in SENTENCES)
    better = judged(model.to(checkpoint.device), good, bad, facts["mask"])
    if lost := int((~np.isfinite(better)).sum()):
        raise DivergedError(
            f"{checkpoint.folder / 'model.safetensors'}: the likelihoods of {lost:,} pairs are not finite; give an "
            "earlier step of its run"
        )
    paradigm_of = np.array(pairs["paradigm"].to_pylist())
    counts = {}
    for paradigm in PARADIGMS:
        nats = better[paradigm_of == paradigm]
        counts[paradigm] = {"pairs": nats.size, "right": int((nats > 0).sum()), "ties": int((nats == 0).sum())}
    return {
        **checkpoint.identity,
        "paradigms": counts,
        "partial": facts["partial"],
        "stand_in": facts["stand_in"],
        "settings_hash": hash_of(protocol),
        "versions": checkpoint.versions,
        "checkpoint_sha256": checkpoint.sha256,
        "data_sha256": sha256_of(data),
    }


def judged(model: torch.nn.Module, good: list[list[int]], bad: list[list[int]], mask_id: int) -> np.ndarray:
    """By how many nats each good row is likelier than the bad one; 0 of rows with the same ids, whatever rounding."""
    rows: dict[tuple[int, ...], int] = {}  # each row once: pairs of a paradigm share sentences
    places = [[rows.setdefault(tuple(row), len(rows)) for row in side] for side in (good, bad)]
    likelihoods = log_likelihoods(model, list(rows), mask_id)
    return (likelihoods[places[0]] - likelihoods[places[1]]).numpy()
