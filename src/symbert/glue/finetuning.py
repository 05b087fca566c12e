"""A checkpoint on a device: fine-tuned on a task, predicting, or judging pairs.

The steps that determine the numbers, and the records that hold them, are in score.py, which needs no torch.
"""

import platform
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

from symbert.configuration import GlueSettings
from symbert.console import Progress
from symbert.errors import DivergedError
from symbert.files import read_json, sha256_of
from symbert.glue.blimp import PARADIGMS
from symbert.glue.metrics import Record, is_constant, scored
from symbert.glue.prepare import SENTENCES, SetFacts
from symbert.glue.sources import read_table
from symbert.glue.squad import HELD_OUT, scored_answers
from symbert.glue.tasks import Task
from symbert.glue.train import HEADS, TaskRows, load_classifier, predict, read_rows, reset_head, steps_of, train
from symbert.model.likelihood import log_likelihoods
from symbert.model.loading import extracted_sha256, load_model
from symbert.pretrain.compute import (
    describe_machine,
    explained,
    pick_device,
    resolve_precision,
)

REMEDY = "delete it and run again"


class Checkpoint:
    """A step of a run, on one device; its config.json says of which run."""

    def __init__(self, folder: Path) -> None:
        run = {"size": str, "attention": str, "pretrain_seed": int, "step": int}
        facts = read_json(folder / "config.json", {"pretraining": run})["pretraining"]
        names = ("size", "attention", "pretrain_seed", "architecture", "step")
        self.folder, self.device = folder, pick_device()
        self.identity: Record = {name: facts[name] for name in names if name in facts}
        self.versions: Record = {"python": platform.python_version(), **describe_machine(self.device)["versions"]}

    @cached_property
    def sha256(self) -> str:
        """Of its weights."""
        return extracted_sha256(self.folder)


class Finetuning:
    """A checkpoint, fine-tuned on the prepared rows of one task with any number of seeds."""

    def __init__(self, checkpoint: Checkpoint, task: Task, data: Path, settings: GlueSettings) -> None:
        self.checkpoint, self.device = checkpoint, checkpoint.device
        self.task, self.data, self.settings = task, data, settings
        self.precision = resolve_precision(settings.precision, self.device)

    @cached_property
    def data_sha256(self) -> str:
        """Of the prepared rows."""
        return sha256_of(self.data)

    @cached_property
    def rows(self) -> dict[str, TaskRows]:
        """The prepared rows."""
        return read_rows(self.data, self.task, self.device)

    def label(self, seed: int) -> str:
        """The name that lines about a seed begin with."""
        name = "finetune {size}-{attention} seed {pretrain_seed} step {step}".format(**self.checkpoint.identity)
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

    def loaded(self, seed: int, weights: Path) -> torch.nn.Module:
        """The fine-tuned model of a seed, of its weights."""
        model = self.model(seed)
        model.load_state_dict(load_file(weights))
        return model

    def on_sets(self, model: torch.nn.Module, data: Path, sets: dict[str, SetFacts]) -> dict[str, Record]:
        """The scores of a fine-tuned model on prepared noisy and out-of-domain sets, by their names."""
        training_labels, by_name = self.rows["train"].labels.cpu().numpy(), {}
        for name, rows in read_rows(data, self.task, self.device).items():
            predictions = predict(model, rows, self.precision)
            by_name[name] = score_of_set(self.task, sets[name], training_labels, rows.labels.cpu().numpy(), predictions)
        return by_name

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


def score_of_set(
    task: Task, facts: SetFacts, training_labels: np.ndarray, labels: np.ndarray, predictions: np.ndarray
) -> Record:
    """Score, details, majority baseline by the metrics of the set, and whether each prediction is the same; a predicted
    class counts as its `classes` say."""
    counted_training, counted = training_labels, predictions
    if facts.classes is not None:
        counted_training, counted = (np.array(facts.classes)[values] for values in (training_labels, predictions))
    score = scored(replace(task, metrics=facts.metrics), counted_training, labels, counted)
    return {**score, "constant_prediction": is_constant(predictions)}


def judged_pairs(checkpoint: Checkpoint, data: Path, mask_id: int) -> dict[str, dict[str, int]]:
    """By paradigm the prepared pairs, and in how many of them the acceptable sentence is likelier (`right`).

    Pairs whose sentences are equally likely are counted apart, as `ties`: a model that cannot tell them, for instance
    because both have the same word pieces, is neither right nor wrong.
    """
    pairs, model = read_table(data, str(data), REMEDY), load_model(checkpoint.folder)
    good, bad = (pairs[name].to_pylist() for name in SENTENCES)
    better = preferences(model.to(checkpoint.device), good, bad, mask_id)
    if lost := int((~np.isfinite(better)).sum()):
        raise DivergedError(
            f"{checkpoint.folder / 'model.safetensors'}: the likelihoods of {lost:,} pairs are not finite; give an "
            "earlier step of its run"
        )
    paradigm_of, counts = np.array(pairs["paradigm"].to_pylist()), {}
    for paradigm in PARADIGMS:
        nats = better[paradigm_of == paradigm]
        counts[paradigm] = {"pairs": nats.size, "right": int((nats > 0).sum()), "ties": int((nats == 0).sum())}
    return counts


def preferences(model: torch.nn.Module, good: list[list[int]], bad: list[list[int]], mask_id: int) -> np.ndarray:
    """By how many nats each good row is likelier than the bad one; 0 of rows with the same ids, whatever rounding."""
    rows: dict[tuple[int, ...], int] = {}  # each row once: pairs of a paradigm share sentences
    places = [[rows.setdefault(tuple(row), len(rows)) for row in side] for side in (good, bad)]
    likelihoods = log_likelihoods(model, list(rows), mask_id)
    return (likelihoods[places[0]] - likelihoods[places[1]]).numpy()
