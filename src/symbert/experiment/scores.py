"""Which scores of an experiment are there, of today's weights and settings. Reads only, and takes no lock."""

from pathlib import Path

from symbert.experiment.existing import FoundRun
from symbert.experiment.inputs import agree
from symbert.experiment.layout import Experiment
from symbert.experiment.reading import Values, facts, record_of, records
from symbert.files import sha256_of
from symbert.glue.challenges import challenges_for
from symbert.glue.tasks import GLUE
from symbert.pretrain.job import Run
from symbert.settings import hash_of


def scores_found(experiment: Experiment, found: FoundRun, step: int) -> dict[str, set[int]]:
    """By task, the wanted seeds that have a score of today's weights and settings, published or kept in the state."""
    basis, wanted = _basis(experiment, found, step), set(experiment.finetune_seeds(found.run.size, step))
    if basis is None:
        return {task: set() for task in experiment.tasks}
    return {task: _seeds(experiment, found.run, step, task, basis, wanted) for task in experiment.tasks}


def _seeds(experiment: Experiment, run: Run, step: int, task: str, basis: Values, wanted: set[int]) -> set[int]:
    published = experiment.place(experiment.score, run, step=step, task=task)
    there = {record.get("finetune_seed") for record in records(published) if _is_of(record, basis)}
    if not there >= wanted:
        kept = map(record_of, (published.parent / "state" / task).glob("seed-*.json"))
        there |= {record.get("finetune_seed") for record in kept if record and _is_of(record, basis)}
    return there & wanted


def robustness_found(experiment: Experiment, found: FoundRun, step: int) -> dict[str, int]:
    """By measured task, how many seeds were scored on today's noise and out-of-domain sets, as `scores_found`."""
    basis, wanted = _basis(experiment, found, step), set(experiment.config["sweep"]["finetune_seeds"])
    counts = {}
    for task in experiment.measured_tasks:
        path, sets = experiment.place(experiment.robustness, found.run, step=step, task=task), _sets(experiment, task)
        there = [record for record in records(path) if basis and _is_of(record, basis)]
        alike = [record for record in there if set(record.get("sets") or ()) == sets]
        counts[task] = len({record.get("finetune_seed") for record in alike} & wanted)
    return counts


def _sets(experiment: Experiment, task: str) -> set[str]:
    """The names of the sets that a task's classifiers are scored on, as `prepare_robustness` gives them."""
    chosen, row = experiment.settings["robustness"], GLUE[task]
    noise = {
        f"{kind}-{100 * share:g} {column}"
        for kind in chosen["noise_kinds"]
        for share in chosen["noise"]
        for column in row.scores.values()
    }
    return noise | {challenge.name for challenge in challenges_for(row, chosen["sets"])}


def _basis(experiment: Experiment, found: FoundRun, step: int) -> Values | None:
    """What a score of today says of its making; None where none can be of today: its model is to come, or its rows.

    What the device decides (precision, attention dropout) is not known here; a table refuses scores that differ in it.
    """
    weights = weights_of(experiment, found.run, step) if found.is_done else None
    if weights is None or not agree(experiment, "task"):
        return None
    return {"settings_hash": hash_of(experiment.finetuning), "checkpoint_sha256": weights}


def _is_of(record: Values, basis: Values) -> bool:
    return all(record.get(key) == value for key, value in basis.items())


def weights_of(experiment: Experiment, run: Run, step: int) -> str | None:
    """The sha256 of a step's weights, as the run noted it, or else of the extracted ones; None where neither is."""
    noted = facts(experiment.place(experiment.state, run) / f"weights/step-{step:08d}.json").get("sha256")
    extracted = extracted_of(experiment, run, step)
    return noted or (sha256_of(extracted) if extracted.is_file() else None)


def extracted_of(experiment: Experiment, run: Run, step: int) -> Path:
    """The file of a step's weights as a model."""
    return experiment.place(experiment.checkpoint, run, step=step) / "model.safetensors"
