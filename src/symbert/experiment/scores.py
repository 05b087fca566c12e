"""Which scores of an experiment exist, of today's weights and settings. Reads only, and takes no lock."""

from pathlib import Path

from symbert.experiment.existing import RunState, Values, agree, read_json_or_empty, read_json_or_none
from symbert.experiment.layout import Experiment
from symbert.files import sha256_of
from symbert.glue.challenges import challenges_for
from symbert.pretrain.run import Run
from symbert.settings import hash_of
from symbert.tasks import task_named


def published_records(path: Path) -> list[Values]:
    """The records in a file of scores; none where it does not exist or cannot be read."""
    records = read_json_or_none(path)
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def kept_record(path: Path) -> Values | None:
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
        scored = _seeds(published_records(path), today)
        if today and not scored >= wanted:
            kept = map(kept_record, (path.parent / "state" / task).glob("seed-*.json"))
            scored |= _seeds([record for record in kept if record], today)
        seeds[task] = scored & wanted
    return seeds


def robustness_seeds(experiment: Experiment, state: RunState, step: int) -> dict[str, set[int]]:
    """By measured task, the wanted seeds that were scored on today's noise and out-of-domain sets."""
    basis, wanted = _basis(experiment, state, step), set(experiment.config["sweep"]["finetune_seeds"])
    seeds = {}
    for task in experiment.measured_tasks:
        path, sets = experiment.place(experiment.robustness, state.run, step=step, task=task), _sets(experiment, task)
        alike = [record for record in published_records(path) if set(record.get("sets") or ()) == sets]
        seeds[task] = _seeds(alike, basis if _has_todays_rows(experiment, task) else None) & wanted
    return seeds


def _seeds(records: list[Values], basis: Values | None) -> set[int]:
    """The seeds of the records of today's weights and settings."""
    return {one.get("finetune_seed") for one in records if basis is not None and basis.items() <= one.items()}


def _has_todays_rows(experiment: Experiment, task: str) -> bool:
    """Whether a task's rows are those of today's files and configuration, as far as that is known."""
    section = f"task-{task}"
    return section not in experiment.own_tasks or agree(experiment, section)


def _sets(experiment: Experiment, task: str) -> set[str]:
    """The names of the sets that a task's classifiers are scored on, as `prepare_robustness` gives them."""
    chosen, row = experiment.settings["robustness"], task_named(task)
    noise = {
        f"{kind}-{100 * share:g} {column}"
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
    if weights is None or not agree(experiment, "task"):
        return None
    return {"settings_hash": hash_of(experiment.finetuning), "checkpoint_sha256": weights}


def weights_of(experiment: Experiment, run: Run, step: int) -> str | None:
    """The sha256 of a step's weights, as the run noted it, or else of the extracted ones; None where neither exists."""
    noted = read_json_or_empty(experiment.place(experiment.state, run) / f"weights/step-{step:08d}.json").get("sha256")
    extracted = extracted_weights(experiment, run, step)
    return noted or (sha256_of(extracted) if extracted.is_file() else None)


def extracted_weights(experiment: Experiment, run: Run, step: int) -> Path:
    """The file of a step's weights as a model."""
    return experiment.place(experiment.checkpoint, run, step=step) / "model.safetensors"
