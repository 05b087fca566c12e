"""A checkpoint on a device: fine-tuned on a task, predicting, or judging pairs.

The steps that determine the numbers, and the records that hold them, are in score.py, which needs no torch.
"""

import copy
import platform
import sys
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from msgspec import structs
from safetensors.torch import load_file

from symbert.configuration import GlueSettings
from symbert.console import Progress
from symbert.errors import DivergedError
from symbert.files import hash_of, read_json, sha256_of, verify_sha256
from symbert.foreign import ForeignModel
from symbert.glue.blimp import PARADIGMS
from symbert.glue.graphs import trainee_of
from symbert.glue.metrics import Record, is_constant, scored
from symbert.glue.prepare import SENTENCES, SetFacts
from symbert.glue.sources import read_table
from symbert.glue.squad import HELD_OUT, scored_answers
from symbert.glue.tasks import Task
from symbert.glue.train import (
    HEADS,
    TaskRows,
    Trainee,
    load_classifier,
    predict,
    read_rows,
    reset_head,
    steps_of,
    train,
)
from symbert.model.configuration import Configuration
from symbert.model.likelihood import log_likelihoods
from symbert.model.loading import Tensors, extracted_sha256, load_model, read_checkpoint
from symbert.pretrain.compute import describe_machine, explained, pick_device, resolve_precision
from symbert.pretrain.graphs import recorder_on
from symbert.steps import SETTINGS, read_step

REMEDY = "delete it and run again"
CHANGED = "it was changed since the start; run snakemake again"


class Checkpoint:
    """A step of a run, on one device; its config.json says of which run."""

    steps = 0  # optimizer steps that it was fine-tuned for in this job

    def __init__(self, folder: Path) -> None:
        run = {"size": str, "attention": str, "pretrain_seed": int, "step": int}
        facts = read_json(folder / "config.json", {"pretraining": run})["pretraining"]
        names = ("size", "attention", "pretrain_seed", "architecture", "step")
        self.folder, self.device = folder, pick_device()
        self.recorder = recorder_on(self.device)
        self.identity: Record = {name: facts[name] for name in names if name in facts}
        self.name = "{size}-{attention} seed {pretrain_seed} step {step}".format(**self.identity)
        self.versions = versions_on(self.device)

    @cached_property
    def content(self) -> tuple[Configuration, Tensors]:
        """Its configuration and weights, read once for all tasks and seeds."""
        return read_checkpoint(self.folder)

    @cached_property
    def sha256(self) -> str:
        """Of its weights."""
        return extracted_sha256(self.folder)

    def head_of(self, task: Task) -> str:
        """The class whose head is trained on a task, where it is not this project's."""
        return ""

    def trainee(self, task: Task, settings: GlueSettings, precision: str, seed: int) -> Trainee:
        """The encoder under the head of a task, which is drawn with the seed, on the device."""
        kind = HEADS[task.head].model
        model = load_classifier(self.folder, task.num_labels, settings.dropout, kind, self.content)
        reset_head(model, seed)
        return trainee_of(model.to(self.device), precision, settings.compile, self.recorder)

    def language_model(self) -> torch.nn.Module:
        """The model with the head of its pre-training, on the device."""
        return load_model(self.folder).to(self.device)


class ForeignCheckpoint:
    """A model from elsewhere, on one device; the settings.json of its folder says which.

    IntegrityError where a file was changed since its step was planned.
    """

    steps = 0  # as of a `Checkpoint`

    def __init__(self, folder: Path) -> None:
        from symbert.glue import stock

        self.model, self.device = read_step(folder, ForeignModel), pick_device()
        self.recorder = recorder_on(self.device)
        self.folder = self.model.checkpoint
        digests = {
            name: verify_sha256(path, file.sha256, CHANGED) if file.sha256 else sha256_of(path)
            for name, file in self.model.content.items()
            for path in [Path(file.path)]
        }
        weights = {name: digests[name] for name in self.model.weights}
        self.sha256 = next(iter(weights.values())) if len(weights) == 1 else hash_of(weights)
        self.config = stock.read_config(self.model)
        origin = "@".join(filter(None, (self.model.origin, self.model.commit)))
        facts = {"origin": origin, "model_type": self.model.model_type}
        self.identity: Record = {"size": "", "attention": self.model.name, "pretrain_seed": 1, **facts}
        self.name, self.versions = self.model.name, versions_on(self.device)
        self.tells = True  # where dropout is, once

    @cached_property
    def weights(self) -> Tensors:
        """Its weights, read once for all tasks and seeds."""
        from symbert.glue import stock

        return stock.weights_of(self.model)

    def head_of(self, task: Task) -> str:
        """The class whose head is trained on a task."""
        from symbert.glue import stock

        return stock.class_of(self.config, task).__name__

    def trainee(self, task: Task, settings: GlueSettings, precision: str, seed: int) -> Trainee:
        """The encoder under the head of a task, whose new layers are drawn with the seed, on the device: a BERT reads
        rows end to end, others read them padded."""
        from symbert.glue import stock

        if self.tells:
            print(f"finetune {self.name}: 'dropout' is {', '.join(stock.dropouts_of(self.config))}", file=sys.stderr)
            self.tells = False
        model = stock.load(self.model, self.config, task, settings.dropout, self.weights)
        if stock.is_our_bert(self.config):
            ours = stock.as_ours(model, HEADS[task.head].model)
            reset_head(ours, seed)
            return trainee_of(ours.to(self.device), precision, settings.compile, self.recorder)
        reset_head(model, seed)
        return stock.Padded(model.to(self.device), precision, self.recorder)

    def language_model(self) -> torch.nn.Module:
        """The model with the head of its pre-training, on the device."""
        from symbert.glue import stock

        return stock.load_masked(self.model, self.config).to(self.device)


AnyCheckpoint = Checkpoint | ForeignCheckpoint


def checkpoint_in(folder: Path) -> AnyCheckpoint:
    """The checkpoint of a folder: one of a run, or a model from elsewhere where it has a settings.json."""
    return ForeignCheckpoint(folder) if (folder / SETTINGS).is_file() else Checkpoint(folder)


def versions_on(device: torch.device) -> Record:
    """Of Python and packages."""
    return {"python": platform.python_version(), **describe_machine(device)["versions"]}


class Finetuning:
    """A checkpoint, fine-tuned on the prepared rows of one task with any number of seeds.

    Where the learning rate is tuned, `learning_rate` is that of this fine-tuning, and `tuned` has the scores by which
    it was chosen.
    """

    def __init__(self, checkpoint: AnyCheckpoint, task: Task, data: Path, settings: GlueSettings) -> None:
        self.checkpoint, self.device = checkpoint, checkpoint.device
        self.task, self.data, self.settings = task, data, settings
        self.precision = resolve_precision(settings.precision, self.device)
        self.learning_rate: float | None = None
        self.tuned: dict[str, list[float]] = {}

    def at(self, rate: float, tuned: dict[str, list[float]] | None = None) -> "Finetuning":
        """The same at another learning rate."""
        other = copy.copy(self)
        other.rows, other.data_sha256 = self.rows, self.data_sha256  # read once for all rates
        other.settings = structs.replace(self.settings, learning_rate=rate)
        other.learning_rate, other.tuned = rate, tuned or {}
        return other

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
        rate = "" if self.learning_rate is None else f" rate {self.learning_rate}"
        return f"finetune {self.checkpoint.name}: {self.task.name}{rate} seed {seed}"

    def trainee(self, seed: int) -> Trainee:
        """The encoder under a head drawn with the seed."""
        return self.checkpoint.trainee(self.task, self.settings, self.precision, seed)

    def trained(self, seed: int) -> Trainee:
        """The model, fine-tuned with a seed."""
        trainee, rows = self.trainee(seed), self.rows["train"]
        progress = Progress(self.label(seed), steps_of(rows.examples, self.settings), "steps")
        with explained(self.label(seed)):
            train(trainee, rows, self.settings, seed, progress.update)
        self.checkpoint.steps += steps_of(rows.examples, self.settings)
        return trainee

    def loaded(self, seed: int, weights: Path) -> Trainee:
        """The fine-tuned model of a seed, of its weights."""
        trainee = self.trainee(seed)
        trainee.model.load_state_dict(load_file(weights))
        return trainee

    def on_sets(self, trainee: Trainee, data: Path, sets: dict[str, SetFacts]) -> dict[str, Record]:
        """The scores of a fine-tuned model on prepared noisy and out-of-domain sets, by their names."""
        training_labels, by_name = self.rows["train"].labels.cpu().numpy(), {}
        for name, rows in read_rows(data, self.task, self.device).items():
            predictions = predict(trainee, rows)
            by_name[name] = score_of_set(self.task, sets[name], training_labels, rows.labels.cpu().numpy(), predictions)
        return by_name

    def predictions(self, trainee: Trainee) -> dict[str, np.ndarray]:
        """Predictions of a model for the splits that it was not trained on."""
        return {split: predict(trainee, rows) for split, rows in self.rows.items() if split != "train"}

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


def judged_pairs(checkpoint: AnyCheckpoint, data: Path, mask_id: int) -> dict[str, dict[str, int]]:
    """By paradigm the prepared pairs, and in how many of them the acceptable sentence is likelier (`right`).

    Pairs whose sentences are equally likely are counted apart, as `ties`: a model that cannot tell them, for instance
    because both have the same word pieces, is neither right nor wrong.
    """
    pairs, model = read_table(data, str(data), REMEDY), checkpoint.language_model()
    good, bad = (pairs[name].to_pylist() for name in SENTENCES)
    better = preferences(model, good, bad, mask_id)
    if lost := int((~np.isfinite(better)).sum()):
        raise DivergedError(
            f"{checkpoint.folder}: the likelihoods of {lost:,} pairs are not finite; give other weights, as of an "
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
