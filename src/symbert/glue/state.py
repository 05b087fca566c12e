"""Which scores of an experiment exist, of today's weights and settings, and what of GLUE is still to come. Reads only.

Takes no lock, and imports no torch.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from symbert.config import Config, is_outdated, source_of
from symbert.cost import Cost, Files, Speed, Work, configured_speed
from symbert.errors import ConfigError
from symbert.files import read_json_or_empty
from symbert.flops import encoder_flops
from symbert.glue.challenges import challenges_for
from symbert.glue.embedded import STAND_IN_EVALUATION_ROWS, STAND_IN_ROWS
from symbert.glue.noise import name_of_set
from symbert.glue.own_files import identity_of
from symbert.layout import Experiment
from symbert.pretrain.state import RunState, Values, weights_of
from symbert.pretrain.storage import FLOAT32, parameters_of
from symbert.settings import hash_of
from symbert.sizes import SIZES
from symbert.sources import SOURCES, is_stand_in
from symbert.tasks import GLUE, task_named

# What a fine-tuning is of, but for the seed.
ORIGIN = ("settings_hash", "checkpoint_sha256", "data_sha256", "precision", "attention_dropout")
# Tokens of an example without padding: padding GLUE's training rows to 128 computes 3.6 times as many.
EXAMPLE_TOKENS = 36
BYTES_OF_A_ROW = 100  # of a file of the user's own, about
GLUE_BYTES = 160_000_000  # GLUE's tables as published, of all tasks together; of each by its share of the rows


def measured_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose classifiers are scored on noise or on an out-of-domain set.

    ConfigError when sets are asked for and no task answers any.
    """
    chosen = experiment.config["glue"]["robustness"]
    measured = [
        task for task in experiment.tasks if chosen["noise"] or challenges_for(task_named(task), chosen["sets"])
    ]
    if chosen["sets"] and not measured:
        sets = ", ".join(chosen["sets"])
        raise ConfigError(f"config: 'glue.robustness.sets': no task of 'sweep.tasks' answers {sets}; add mnli")
    return measured


@cache
def own_tasks(experiment: Experiment) -> dict[str, Config]:
    """What the user's own tasks stand for: sections of settings of their own, so that a changed file makes its own
    scores anew alone."""
    rows = map(task_named, experiment.tasks)
    return {f"task-{task.name}": identity_of(task) for task in rows if task.files}


def _published_records(path: Path) -> list[Values]:
    """The records in a file of scores; none where it does not exist or cannot be read."""
    return [record for record in read_json_or_empty(path, list) if isinstance(record, dict)]


def _kept_record(path: Path) -> Values | None:
    """The record of a fine-tuning in a state folder."""
    record = read_json_or_empty(path).get("record")
    return record if isinstance(record, dict) else None


def scored_seeds(experiment: Experiment, state: RunState, step: int) -> dict[str, set[int]]:
    """By task, the wanted seeds that have a score of today's weights and settings, published or in the state folder."""
    basis, wanted = _basis(experiment, state, step), set(experiment.finetune_seeds(state.run.size, step))
    seeds: dict[str, set[int]] = {}
    for task in experiment.tasks:
        path = experiment.place(experiment.score, state.run, step=step, task=task)
        today = basis if _has_todays_rows(experiment, task) else None
        scored = _seeds(_published_records(path), today)
        if today and not scored >= wanted:
            kept = map(_kept_record, (path.parent / "state" / task).glob("seed-*.json"))
            scored |= _seeds([record for record in kept if record], today)
        seeds[task] = scored & wanted
    return seeds


def robustness_seeds(experiment: Experiment, state: RunState, step: int) -> dict[str, set[int]]:
    """By measured task, the wanted seeds that were scored on today's noise and out-of-domain sets."""
    basis, wanted = _basis(experiment, state, step), set(experiment.config["sweep"]["finetune_seeds"])
    seeds = {}
    for task in measured_tasks(experiment):
        path, sets = experiment.place(experiment.robustness, state.run, step=step, task=task), _sets(experiment, task)
        alike = [record for record in _published_records(path) if set(record.get("sets") or ()) == sets]
        seeds[task] = _seeds(alike, basis if _has_todays_rows(experiment, task) else None) & wanted
    return seeds


def _seeds(records: list[Values], basis: Values | None) -> set[int]:
    """The seeds of the records of today's weights and settings."""
    return {one.get("finetune_seed") for one in records if basis is not None and basis.items() <= one.items()}


def _has_todays_rows(experiment: Experiment, task: str) -> bool:
    """Whether a task's rows are those of today's files and configuration, as far as that is known."""
    own = own_tasks(experiment).get(f"task-{task}")
    return own is None or not is_outdated(f"{experiment.results}/settings/task-{task}.json", own)


def _sets(experiment: Experiment, task: str) -> set[str]:
    """The names of the sets that a task's classifiers are scored on, as `prepare_robustness` gives them."""
    chosen, row = experiment.settings["robustness"], task_named(task)
    noise = {
        name_of_set(kind, share, column)
        for kind in chosen["noise_kinds"]
        for share in chosen["noise"]
        for column in row.scores.values()
    }
    return noise | {challenge.name for challenge in challenges_for(row, chosen["sets"])}


def _basis(experiment: Experiment, state: RunState, step: int) -> Values | None:
    """What a score of today says of its making; None where its model or its rows do not exist yet.

    What the device decides (precision, attention dropout) is not known here; a table refuses scores that differ in it.
    """
    weights = weights_of(experiment, state.run, step) if state.is_done else None
    if weights is None or not experiment.agrees("task"):
        return None
    return {"settings_hash": hash_of(experiment.finetuning), "checkpoint_sha256": weights}


def stale_files(experiment: Experiment, folder: Path) -> Iterator[Path]:
    """The files of a task's fine-tunings of a checkpoint, in its `folder` of state, that no score of today is made of.

    Those of today's settings stay; those of other settings stay until scores of today's are published.
    """
    today = hash_of(experiment.finetuning)
    published = _published_records(folder.parents[1] / f"{folder.name}.json")
    current = [[record.get(key) for key in ORIGIN] for record in published]
    is_current = any(record.get("settings_hash") == today for record in published)
    for path in sorted(folder.glob("seed-*.json")):
        record = _kept_record(path)
        if record is None or path.is_symlink() or [record.get(key) for key in ORIGIN] in current:
            continue
        if record.get("settings_hash") != today or is_current:
            # The record, weights and their checksum, and the scores on other sets.
            yield from sorted([*folder.glob(f"{path.stem}.*"), *folder.glob(f"robustness-{path.stem}-*.json")])


def finetuning_steps(experiment: Experiment, task: str) -> int:
    """Optimizer steps of one seed."""
    settings = experiment.finetuning
    return settings.epochs * math.ceil(_rows(experiment, task, "train") / settings.batch_size)


def evaluated_rows(experiment: Experiment, task: str) -> int:
    """Rows of the splits that a fine-tuned model is scored on."""
    return sum(_rows(experiment, task, split) for split in task_named(task).scores)


def _rows(experiment: Experiment, task: str, split: str) -> int:
    """Rows of a split; one that is limited, or made here, has fewer than the official one. Of own files about."""
    glue, row = experiment.config["glue"], task_named(task)
    if row.files:
        path = Path(row.files[split])
        files = (file for file in (path, *path.rglob("*")) if file.is_file())
        rows = math.ceil(sum(file.stat().st_size for file in files) / BYTES_OF_A_ROW)
    elif is_stand_in(source_of(experiment.config, "glue")):
        rows = STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS
    else:
        rows = row.official_rows[split]
    limit = glue["max_examples" if split == "train" else "max_evaluation_examples"]
    return min(rows, limit or rows)


def finetuning_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """One task on one checkpoint, with its evaluation."""
    shape, steps = SIZES[size], finetuning_steps(experiment, task)
    training = 3 * steps * _examples_flops(experiment, size, experiment.finetuning.batch_size)
    evaluation = _examples_flops(experiment, size, evaluated_rows(experiment, task))
    return Work(seeds * (training + evaluation), seeds * steps * shape.num_hidden_layers)


def robustness_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """Scores on noise, of models that were kept, or else are fine-tuned again. Out-of-domain sets are not counted."""
    glue = experiment.config["glue"]
    levels = 1 + len(glue["robustness"]["noise"]) * len(glue["robustness"]["noise_kinds"])
    scoring = Work(seeds * levels * _examples_flops(experiment, size, evaluated_rows(experiment, task)))
    return scoring if glue["keep_finetuned"] else scoring + finetuning_work(experiment, size, task, seeds)


def _examples_flops(experiment: Experiment, size: str, rows: int) -> float:
    """Operations, forward, on examples of GLUE."""
    tokens = min(EXAMPLE_TOKENS, experiment.config["glue"]["max_length"])
    return encoder_flops(SIZES[size], SIZES[size].layer_weights, rows, tokens)


def finetuning_cost(experiment: Experiment, state: RunState, step: int, speed: Speed) -> Cost:
    """Of one checkpoint, on all tasks; its robustness too, where that is asked for."""
    size, cost = state.run.size, Cost()
    wanted = len(experiment.finetune_seeds(size, step))
    for task, seeds in scored_seeds(experiment, state, step).items():
        cost += speed.cost(*(finetuning_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    if step == experiment.final:
        wanted = len(experiment.config["sweep"]["finetune_seeds"])
        for task, seeds in robustness_seeds(experiment, state, step).items():
            cost += speed.cost(*(robustness_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    return cost


def finetuning_speed(experiment: Experiment, size: str, hours: dict[str, float]) -> Speed:
    """The speed that this experiment's jobs of fine-tuning a size measured, given the `hours` of each by its name.

    The slowest job counts: one that only added to the work of an earlier one was short.
    """
    speed, slowest = configured_speed(experiment.config["rates"], SIZES[size]), 0.0
    for run, step in experiment.checkpoints():
        name = f"{run.size}-{run.attention}-seed-{run.pretrain_seed}-step-{step}"
        if run.size == size and name in hours:
            seeds = len(experiment.finetune_seeds(size, step))
            work = sum((finetuning_work(experiment, size, task, seeds) for task in experiment.tasks), Work())
            slowest = max(slowest, hours[name] / speed.hours(work).core)
    if not slowest:
        return speed
    timings = [
        read_json_or_empty(experiment.place(experiment.run, run) / "timing.json") for run in experiment.runs([size])
    ]
    cores = max((timing.get("threads", 1) for timing in timings if timing.get("device") == "cpu"), default=0)
    slowest *= cores or 1
    return replace(
        speed,
        on_gpu=speed.on_gpu and not cores,
        flops=speed.flops / slowest,
        layer_seconds=speed.layer_seconds * slowest,
        measured=experiment.name,
    )


def missing_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose rows are still to be downloaded."""
    if not SOURCES[source_of(experiment.config, "glue")].is_remote or not experiment.checkpoints():
        return []
    raw = Path(experiment.results) / "glue/raw"
    return [task for task in experiment.tasks if not (raw / f"{task}.parquet").is_file()]


def bytes_to_download(experiment: Experiment) -> float:
    """Of the tasks' tables."""
    return _bytes_of(missing_tasks(experiment))


def _bytes_of(tasks: list[str]) -> float:
    rows = {name: sum(task.official_rows.values()) for name, task in GLUE.items()}
    return GLUE_BYTES * sum(rows.get(task, 0) for task in tasks) / sum(rows.values())  # 0 of the user's own


def task_files(experiment: Experiment) -> Iterator[Files]:
    """What is downloaded."""
    if SOURCES[source_of(experiment.config, "glue")].is_remote and experiment.checkpoints():
        planned, folder = _bytes_of(experiment.tasks), Path(experiment.results) / "glue"
        yield Files("glue", "tasks", "results/", folder, planned, bytes_to_download(experiment))


def finetuned_files(experiment: Experiment, state: RunState) -> Iterator[Files]:
    """The weights of a run's fine-tunings, where they are kept: those of its last step."""
    if experiment.config["glue"]["keep_finetuned"] and experiment.steps(state.run):
        step, weights = experiment.final, FLOAT32 * parameters_of(state.run, experiment.vocabulary_size)
        folder = experiment.place(experiment.finetuned, state.run, step=step) / "state"
        wanted = len(experiment.tasks) * len(experiment.finetune_seeds(state.run.size, step))
        kept = sum(map(len, scored_seeds(experiment, state, step).values()))
        planned, to_come = weights * wanted, weights * (wanted - kept)
        yield Files("glue", "fine-tuned weights", "glue.keep_finetuned", folder, planned, to_come)
