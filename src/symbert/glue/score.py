"""Scores of a checkpoint: fine-tuned on tasks, the same models on noisy and out-of-domain rows, or judging pairs.

    results/scores/{suite}/settings.json                                           a Finetune or MinimalPairs
    results/scores/{suite}/{architecture}/{model}/seed-{seed}/step-{step}/{selection}.json   the records of a selection
        finetuned/{task}/seed-{n}.json, .safetensors                               Kept; weights
        finetuned/{task}/rate-{rate}/seed-{n}.json                                 Kept, where the rate is tuned
        finished/{selection}                                    its Work; where it is, a job that runs again was forced
    results/scores/{suite}/models/{model}/{selection}.json                         the same, of a model from elsewhere
    results/robustness/…                                                           the same, of a Robustness

All records of a folder follow from the same settings and weights, so a selection takes those that are there, of another
selection or of a job that was interrupted. Imports no torch before it computes.
"""

import math
import shutil
import sys
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, to_builtins

from symbert.architectures import ENCODER
from symbert.configuration import GlueSettings
from symbert.errors import DataError, DivergedError
from symbert.files import read_json, sha256_of, single_writer, verify_sha256, write_json
from symbert.foreign import Tuning
from symbert.glue.metrics import checked, hashed, read_kept
from symbert.glue.prepare import (
    PairFacts,
    PreparePairs,
    PrepareRobustness,
    PrepareTasks,
    RobustnessFacts,
    SetFacts,
    TaskFacts,
    metadata_of,
)
from symbert.glue.tasks import CustomRows
from symbert.steps import RESULTS, Step, read_step

if TYPE_CHECKING:
    from symbert.glue.finetuning import AnyCheckpoint, Finetuning
    from symbert.glue.train import Trainee

REMEDY = "delete it and run again"


class Finetune(Step, frozen=True):
    """Scores of checkpoints that are fine-tuned on tasks."""

    rows: PrepareTasks
    protocol: GlueSettings
    tuning: Tuning | None = None  # None: the rate of the protocol

    @property
    def suite(self) -> str:
        """Whose score these are part of; the user's own tasks stand with GLUE's."""
        return self.rows.suite

    @property
    def folder(self) -> str:
        """Where the scores lie."""
        return f"{RESULTS}/scores/{self.rows.name}-{self.key}"


class Robustness(Step, frozen=True):
    """Scores of fine-tuned models on noisy and out-of-domain sets."""

    rows: PrepareRobustness
    trained: Finetune

    @property
    def suite(self) -> str:
        """The suite whose tasks the models were fine-tuned on."""
        return self.trained.suite

    @property
    def folder(self) -> str:
        """Where the scores lie."""
        return f"{RESULTS}/robustness/{self.trained.rows.name}-{self.key}"


class MinimalPairs(Step, frozen=True):
    """How checkpoints judge minimal pairs."""

    rows: PreparePairs

    suite: ClassVar[str] = "blimp"

    @property
    def folder(self) -> str:
        """Where the records lie."""
        return f"{RESULTS}/scores/{self.suite}-{self.key}"


Share = Annotated[float, Meta(ge=-1, le=1)]  # a score; below 0 only of a correlation
Shares = dict[str, Share]
Natural = Annotated[int, Meta(ge=0)]


class OfCheckpoint(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The checkpoint of a record, and how the record was made."""

    size: str  # empty of a foreign model
    attention: str  # or the name of a foreign model in the configuration
    pretrain_seed: int  # 1 of a foreign model
    architecture: str = ENCODER
    step: int | None = None  # none of a foreign model
    origin: str = ""  # of a foreign model: owner/name@commit, or its folder
    model_type: str = ""  # and its family, by config.json
    settings_hash: str  # the key of the Finetune, Robustness or MinimalPairs
    version: int = 1  # of its class
    versions: dict[str, str]  # of Python and packages
    checkpoint_sha256: str  # of the weights
    data_sha256: str  # of the prepared rows or pairs
    stand_in: bool  # whether these only have the shape of a published task


class OfFinetuning(OfCheckpoint, kw_only=True):
    """The fine-tuning of a record."""

    task: str
    finetune_seed: int
    compile: bool
    precision: str
    head: str = ""  # of a foreign model: the class whose head was trained
    learning_rate: float | None = None  # where it was tuned: the one that was chosen
    tuned: dict[str, list[float]] = msgspec.field(default_factory=dict)  # by rate: scores of the tuning seeds


class ScoreRecord(OfFinetuning, kw_only=True):
    """The scores of a fine-tuned model on the evaluation rows of its task, by score column from 0 to 1."""

    metrics: Shares  # the scores
    details: dict[str, Shares]  # the metrics whose mean they are
    majority: Shares  # of the best constant prediction
    thresholds: dict[str, float] = msgspec.field(default_factory=dict)  # of spans: margin over no answer
    constant_prediction: bool
    rows: dict[str, int]  # and the further facts of the rows, as TaskFacts has them
    official_rows: dict[str, int]
    partial: bool
    moved: dict[str, int]
    seen: dict[str, tuple[int, int]]


class ScoredSet(SetFacts, kw_only=True):
    """A noisy or out-of-domain set, and the score on it."""

    score: Share
    majority: Share
    details: Shares
    constant_prediction: bool


class RobustnessRecord(OfFinetuning, kw_only=True):
    """The scores of a fine-tuned model on the noisy and out-of-domain sets of its task.

    Kept weights are taken; a seed without them is fine-tuned again. So `clean` has the scores of the very model on the
    evaluation rows, by score column (none without sets).
    """

    clean: Shares
    sets: dict[str, ScoredSet]


AnyRecord = TypeVar("AnyRecord", ScoreRecord, RobustnessRecord)


class Paradigm(msgspec.Struct, kw_only=True):
    """In how many of the pairs of a paradigm the acceptable sentence is likelier, or as likely."""

    pairs: Annotated[int, Meta(ge=1)]
    right: Natural
    ties: Natural


class PairsRecord(OfCheckpoint, kw_only=True):
    """How a checkpoint judges minimal pairs."""

    paradigms: dict[str, Paradigm]
    partial: bool


class Kept(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What stays of a fine-tuning beside its scores."""

    record: ScoreRecord
    predictions: dict[str, list[Any]]  # by split that is not trained on
    custom: CustomRows | None = None  # of a task of the user's own
    dropout: dict[str, float]  # of the model, by the keys of its configuration
    max_length: int  # tokens of a row at most
    weights_sha256: str = ""  # where weights stay


class Work(msgspec.Struct):
    """What a job did, of which a plan learns."""

    seconds: float
    steps: int  # optimizer steps of its fine-tunings; those that were kept from before are not among them


class KeptSets(msgspec.Struct):
    """What stays of a robustness record beside its file."""

    record: RobustnessRecord


def read_records(files: Iterable[Path], kind: type[AnyRecord]) -> list[AnyRecord]:
    """The records of files; DataError for another kind, IntegrityError for one that was damaged since."""
    records = []
    for file in sorted(files):
        of_file = read_json(file, list[kind])
        if not of_file:
            raise DataError(f"{file}: no record in it; {REMEDY}")
        intact = [checked(record, f"{file}: record {number}", REMEDY) for number, record in enumerate(of_file, 1)]
        records += msgspec.convert(intact, list[kind])
    return records


def score(
    output: Annotated[Path, "file of records to write"],
    /,
    settings: Annotated[Path, "folder with the settings.json of rows and protocol"],
    checkpoint: Annotated[Path, "folder of a checkpoint, or of a model from elsewhere"],
    threads: Annotated[int, "threads of torch"],
    trained: Annotated[Path | None, "folder of the fine-tuned models to score on noisy and out-of-domain rows"] = None,
    tasks: Annotated[list[str] | None, "tasks to fine-tune on"] = None,
    seeds: Annotated[list[int] | None, "fine-tuning seeds"] = None,
    keep_weights: Annotated[int | None, "keep fine-tuned weights of the checkpoint at this step"] = None,
) -> None:
    """Write a file of results/scores/ or results/robustness/: a list of records of a checkpoint, one for each task and
    fine-tuning seed; or the record of how it judges minimal pairs.

    `settings` is the folder of the settings.json that says how; `checkpoint` is a step of a run, or the folder of a
    model from elsewhere. Predictions stay beside the file, and weights where `keep_weights` is the checkpoint's step,
    or of a model from elsewhere any number; `trained` is the folder in which they stayed of the models that are scored
    on noisy and out-of-domain rows. Raises IntegrityError for a damaged checkpoint or record, and DivergedError for a
    loss, a weight or an output that is not finite.
    """
    import torch

    from symbert.glue.finetuning import Finetuning, checkpoint_in

    torch.set_num_threads(threads)
    step = read_step(settings, Finetune | Robustness | MinimalPairs)
    scored = checkpoint_in(checkpoint)
    folder = output.parent
    finished, begun = finished_at(output), time.monotonic()
    with single_writer(folder / "state"):
        if isinstance(step, MinimalPairs):
            content: Any = hashed(to_builtins(_judgement(step, scored)))
        else:
            if finished.exists():
                for task, seed in product(tasks or (), seeds or ()):
                    kept_at(folder, task, seed).unlink(missing_ok=True)
                for task in tasks or ():
                    for trials in (folder / "finetuned" / task).glob("rate-*"):
                        shutil.rmtree(trials)
                finished.unlink()
            how, content = step.trained if isinstance(step, Robustness) else step, []
            for task in tasks or ():
                finetuning = Finetuning(scored, how.rows.task(task), Path(how.rows.file(task)), how.protocol)
                if how.tuning:
                    finetuning = _tuned(how, how.tuning, finetuning, folder, trained)
                for seed in seeds or ():
                    if isinstance(step, Robustness):
                        record: OfFinetuning = _on_sets(step, finetuning, seed, folder, trained).record
                    else:
                        keeps = keep_weights is not None and scored.identity.get("step", keep_weights) == keep_weights
                        record = _fine_tuned(step, finetuning, seed, folder, keeps).record
                    content.append(hashed(to_builtins(record)))
        write_json(output, content)
        write_json(finished, to_builtins(Work(time.monotonic() - begun, scored.steps)))
        shutil.rmtree(folder / "state", ignore_errors=True)  # with our lock


def finished_at(output: Path) -> Path:
    """Where the Work of the job of a file of scores lies, once it is done."""
    return output.parent / "finished" / output.stem


def kept_at(folder: Path, task: str, seed: int, trial: float | None = None) -> Path:
    """What stays of a seed beside the scores of a checkpoint in a folder, or of one that tries a learning rate; its
    weights end in .safetensors."""
    return folder / "finetuned" / task / ("" if trial is None else f"rate-{trial}") / f"seed-{seed}.json"


def _judgement(step: MinimalPairs, checkpoint: "AnyCheckpoint") -> PairsRecord:
    """How a checkpoint judges the prepared pairs."""
    from symbert.glue.finetuning import judged_pairs

    data = Path(step.rows.file())
    facts = metadata_of(data, PairFacts)
    counts = judged_pairs(checkpoint, data, facts.mask)
    return PairsRecord(
        **_origin(step, checkpoint, sha256_of(data)),
        paradigms={name: Paradigm(**of_name) for name, of_name in counts.items()},
        partial=facts.partial,
        stand_in=facts.stand_in,
    )


def _origin(
    step: Finetune | Robustness | MinimalPairs, checkpoint: "AnyCheckpoint", data_sha256: str
) -> dict[str, Any]:
    """The fields of OfCheckpoint but for `stand_in`."""
    made = {"settings_hash": step.key, "version": step.version, "versions": checkpoint.versions}
    return {**checkpoint.identity, **made, "checkpoint_sha256": checkpoint.sha256, "data_sha256": data_sha256}


def _origin_of_seed(step: Finetune | Robustness, finetuning: "Finetuning", seed: int) -> dict[str, Any]:
    """The fields of OfFinetuning but for `stand_in`."""
    return {
        **_origin(step, finetuning.checkpoint, finetuning.data_sha256),
        "task": finetuning.task.name,
        "finetune_seed": seed,
        "compile": finetuning.settings.compile,
        "precision": finetuning.precision,
        "head": finetuning.checkpoint.head_of(finetuning.task),
        "learning_rate": finetuning.learning_rate,
        "tuned": finetuning.tuned,
    }


def _is_of(record: OfFinetuning, step: Finetune | Robustness, finetuning: "Finetuning") -> bool:
    """Whether a record is of the weights and rows that are there now, in the precision of this device, at the learning
    rate that is chosen now: a training that was forced may have given other weights, and no table takes both."""
    now = step.key, finetuning.precision, finetuning.checkpoint.sha256, finetuning.data_sha256
    of_record = record.settings_hash, record.precision, record.checkpoint_sha256, record.data_sha256
    return (*of_record, record.learning_rate, record.tuned) == (*now, finetuning.learning_rate, finetuning.tuned)


def _tuned(
    step: Finetune, tuning: Tuning, finetuning: "Finetuning", folder: Path, trained: Path | None
) -> "Finetuning":
    """The fine-tuning at the learning rate with the best mean score over the tuning seeds, of equal ones the lowest.

    What is tried is kept in the folder, and taken from that of the models that were `trained`. A rate at which a seed
    diverges has no scores and is out; DivergedError where all do.
    """
    tuned: dict[str, list[float]] = {}
    for rate in sorted(tuning.rates):
        trial, scores = finetuning.at(rate), []
        try:
            for seed in tuning.seeds:
                known = trained and _kept(step, trial, kept_at(trained, finetuning.task.name, seed, rate))
                kept = known or _fine_tuned(step, trial, seed, folder, keeps_weights=False, trial=rate)
                scores.append(fmean(kept.record.metrics.values()))
        except DivergedError as error:
            print(f"{error}; this rate is out", file=sys.stderr)
            scores, diverged = [], error
        tuned[str(rate)] = scores
    if not any(tuned.values()):
        raise diverged
    best = max(sorted(tuning.rates), key=lambda rate: fmean(tuned[str(rate)] or [-math.inf]))  # the first of equal ones
    return finetuning.at(best, tuned)


def _kept(step: Finetune, finetuning: "Finetuning", file: Path) -> Kept | None:
    """What is kept of a seed in a file, if that is of now."""
    if file.is_file() and _is_of((kept := read_kept(file, Kept)).record, step, finetuning):
        return kept
    return None


def _fine_tuned(
    step: Finetune,
    finetuning: "Finetuning",
    seed: int,
    folder: Path,
    keeps_weights: bool,
    trial: float | None = None,
) -> Kept:
    """What is kept of a seed in a folder, or a fine-tuning now: where nothing is kept, or no weights though they are
    asked for."""
    file = kept_at(folder, finetuning.task.name, seed, trial)
    weights = file.with_suffix(".safetensors")
    if (weights.is_file() or not keeps_weights) and (known := _kept(step, finetuning, file)):
        return known
    try:
        trainee = finetuning.trained(seed)
        predictions = finetuning.predictions(trainee)
        scores = finetuning.scores(predictions)
    except DivergedError as error:
        raise DivergedError(f"{finetuning.label(seed)}: {error}") from None
    weights.unlink(missing_ok=True)  # of an earlier job
    facts = msgspec.structs.asdict(metadata_of(finetuning.data, TaskFacts))
    kept = Kept(
        record=ScoreRecord(**{**facts, **scores, **_origin_of_seed(step, finetuning, seed)}),
        predictions={split: values.tolist() for split, values in predictions.items()},
        custom=step.rows.custom.get(finetuning.task.name),
        dropout={key: getattr(trainee.model.config, key) for key in trainee.dropouts},
        max_length=step.rows.limits.max_length,
    )
    if keeps_weights:
        from symbert.model.loading import write_weights

        write_weights(trainee.model, weights)
        kept.weights_sha256 = sha256_of(weights)
    write_json(file, hashed(to_builtins(kept)))
    return kept


def _on_sets(step: Robustness, finetuning: "Finetuning", seed: int, folder: Path, trained: Path | None) -> KeptSets:
    """What is kept of a seed in a folder, or its model on the sets now."""
    file, data = kept_at(folder, finetuning.task.name, seed), Path(step.rows.file(finetuning.task.name))
    if file.is_file() and _is_of((kept := read_kept(file, KeptSets)).record, step, finetuning):
        return kept
    facts, clean, sets = metadata_of(data, RobustnessFacts), {}, {}
    if facts.sets:
        try:
            trainee = _kept_or_trained(step.trained, finetuning, seed, trained)
            scores = finetuning.on_sets(trainee, data, facts.sets)
            clean = finetuning.scores(finetuning.predictions(trainee))["metrics"]
        except DivergedError as error:
            raise DivergedError(f"{finetuning.label(seed)}: {error}") from None
        sets = {name: ScoredSet(**msgspec.structs.asdict(facts.sets[name]), **scores[name]) for name in scores}
    origin = _origin_of_seed(step, finetuning, seed)
    kept = KeptSets(RobustnessRecord(**origin, clean=clean, sets=sets, stand_in=facts.stand_in))
    write_json(file, hashed(to_builtins(kept)))
    return kept


def _kept_or_trained(step: Finetune, finetuning: "Finetuning", seed: int, folder: Path | None) -> "Trainee":
    """The fine-tuned model of a seed: of weights that stayed in a folder, or fine-tuned again, where they are of an
    earlier checkpoint or of other rows, too; IntegrityError for damaged weights.

    Fine-tuned again, it may differ from the model of the record in its last bits, on a GPU almost always.
    """
    file = kept_at(folder, finetuning.task.name, seed) if folder else None
    if file and (weights := file.with_suffix(".safetensors")).is_file() and (kept := _kept(step, finetuning, file)):
        verify_sha256(weights, kept.weights_sha256, REMEDY)
        return finetuning.loaded(seed, weights)
    return finetuning.trained(seed)
