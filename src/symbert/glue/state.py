"""Which scores of an experiment exist, of today's weights and settings, and in which folder. Reads only.

Takes no lock, and imports no torch.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from symbert.config import Config, is_outdated
from symbert.corpus.state import corpus_home
from symbert.errors import ConfigError, DataError
from symbert.files import read_json, read_json_or_empty
from symbert.glue.challenges import challenges_for
from symbert.glue.noise import name_of_set
from symbert.glue.own_files import identity_of
from symbert.paths import Experiment, Run
from symbert.pretrain.state import RunState, Values, run_state, weights_of
from symbert.settings import GlueSettings, hash_of, settings_from
from symbert.tasks import suite_named, task_named, tasks_of_suite

# What a fine-tuning is of, but for the seed.
ORIGIN = ("settings_hash", "checkpoint_sha256", "data_sha256", "precision", "attention_dropout")

# Files of a task's rows below glue/, whatever its suite.
RAW_ROWS, PREPARED_ROWS, EDITED_ROWS = "raw/{task}.parquet", "data/{task}.parquet", "data/{task}.robustness.parquet"


def _sections_of(name: str, task: str) -> tuple[str, ...]:
    """The settings that a file of a task's rows follows from."""
    rows = suite_named(task).rows_section
    return {
        RAW_ROWS: ("glue_source",),
        PREPARED_ROWS: ("glue_source", rows),
        EDITED_ROWS: ("glue_source", rows, "robustness"),
    }[name]


def measured_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose classifiers are scored on noise or on an out-of-domain set: of GLUE and of the user's own.

    ConfigError when sets are asked for and no task answers any.
    """
    chosen = experiment.config["glue"]["robustness"]
    measured = [
        task
        for task in tasks_of_suite("glue", experiment.tasks)
        if chosen["noise"] or challenges_for(task_named(task), chosen["sets"])
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
    """By task, the wanted seeds that have a score of today's weights and settings, published or in the state folder, of
    this experiment or of the one that it extends."""
    weights, wanted = _weights(experiment, state, step), set(experiment.finetune_seeds(state.run.size, step))
    seeds: dict[str, set[int]] = {}
    for task in experiment.tasks:
        basis, scored = _basis(experiment, weights, task), set()
        for one in (experiment, experiment.extended):
            if one and not scored >= wanted and _has_todays_rows(one, task):
                path = one.scores(state.run, step, task)
                kept = map(_kept_record, (path.parent / "state" / task).glob("seed-*.json"))
                scored |= _seeds([*_published_records(path), *(record for record in kept if record)], basis)
        seeds[task] = scored & wanted
    return seeds


def scores_home(experiment: Experiment, run: Run, step: int, suite: str) -> Experiment:
    """The experiment in whose folder all wanted scores of a checkpoint on a suite are published, or will be."""

    def has_scores(one: Experiment) -> bool:
        weights = _weights(experiment, run_state(experiment, run), step)
        wanted, tasks = {*experiment.finetune_seeds(run.size, step)}, tasks_of_suite(suite, experiment.tasks)
        files = {task: one.scores(run, step, task) for task in tasks}
        published = {task: _seeds(_published_records(files[task]), _basis(experiment, weights, task)) for task in tasks}
        return all(seeds >= wanted and _has_todays_rows(one, task) for task, seeds in published.items())

    return experiment.home(has_scores)


def judged_home(experiment: Experiment, run: Run, step: int) -> Experiment:
    """The experiment in whose folder a checkpoint has judged BLiMP's pairs, or will."""
    state = run_state(experiment, run)
    return experiment.home(lambda one: _is_judged(one, run, step, _weights(experiment, state, step)))


def is_judged(experiment: Experiment, state: RunState, step: int) -> bool:
    """Whether a checkpoint of today's weights has judged BLiMP's pairs under today's settings."""
    home = judged_home(experiment, state.run, step)
    return _is_judged(home, state.run, step, _weights(experiment, state, step))


def _is_judged(experiment: Experiment, run: Run, step: int, weights: str | None) -> bool:
    record = read_json_or_empty(experiment.place(experiment.judged, run, step=step))
    basis = {"settings_hash": hash_of(experiment.judging), "checkpoint_sha256": weights}
    return weights is not None and experiment.agrees("glue_source") and basis.items() <= record.items()


def robustness_seeds(experiment: Experiment, state: RunState, step: int) -> dict[str, set[int]]:
    """By measured task, the wanted seeds that were scored on today's noise and out-of-domain sets."""
    home, wanted = robustness_home(experiment, state.run), set(experiment.config["sweep"]["finetune_seeds"])
    weights = _weights(experiment, state, step)
    return {task: seeds & wanted for task, seeds in _measured(home, weights, state.run).items()}


def robustness_home(experiment: Experiment, run: Run) -> Experiment:
    """The experiment in whose folder a run's last step is scored on noise and out-of-domain sets, or will be."""

    def has_scores(one: Experiment) -> bool:
        weights = _weights(experiment, run_state(experiment, run), experiment.final)
        wanted = set(experiment.config["sweep"]["finetune_seeds"])
        return all(seeds >= wanted for seeds in _measured(one, weights, run).values())

    return experiment.home(has_scores)


def _measured(experiment: Experiment, weights: str | None, run: Run) -> dict[str, set[int]]:
    """By measured task, the seeds of this experiment's folder that were scored on today's noise and sets."""
    seeds = {}
    for task in measured_tasks(experiment):
        path = experiment.place(experiment.robustness, run, step=experiment.final, task=task)
        sets, is_todays = _sets(experiment, task), _has_todays_rows(experiment, task)
        alike = [record for record in _published_records(path) if set(record.get("sets") or ()) == sets]
        seeds[task] = _seeds(alike, _basis(experiment, weights, task) if is_todays else None)
    return seeds


def rows_file(experiment: Experiment, name: str, task: str) -> str:
    """The file of a task's rows, one of ROWS, in the folder where it is or will be."""

    def has_rows(one: Experiment) -> bool:
        is_of_vocabulary = one is experiment or name == RAW_ROWS or one is corpus_home(experiment)
        is_todays = one.agrees(*_sections_of(name, task)) and not _has_other_files(one, task)
        return is_of_vocabulary and is_todays and file_of(one).is_file()

    def file_of(one: Experiment) -> Path:
        return Path(one.results, "glue", name.format(task=task))

    return str(file_of(experiment.home(has_rows)))


def pairs_file(experiment: Experiment) -> str:
    """The file of BLiMP's pairs, in the folder where it is or will be."""
    return experiment.home(lambda one: Path(one.pairs).is_file() and one.agrees("glue_source")).pairs


def _seeds(records: list[Values], basis: Values | None) -> set[int]:
    """The seeds of the records of today's weights and settings."""
    return {one.get("finetune_seed") for one in records if basis is not None and basis.items() <= one.items()}


def _has_todays_rows(experiment: Experiment, task: str) -> bool:
    """Whether a task's rows are those of today's files and configuration, as far as that is known."""
    return experiment.agrees(*_sections_of(PREPARED_ROWS, task)) and not _has_other_files(experiment, task)


def _has_other_files(experiment: Experiment, task: str) -> bool:
    """Whether a task of the user's own was read from other files."""
    own = own_tasks(experiment).get(f"task-{task}")
    return own is not None and is_outdated(f"{experiment.results}/settings/task-{task}.json", own)


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


def _weights(experiment: Experiment, state: RunState, step: int) -> str | None:
    """The sha256 of the weights that are fine-tuned; None where their model does not exist yet."""
    return weights_of(experiment, state.run, step) if state.is_done else None


def _basis(experiment: Experiment, weights: str | None, task: str) -> Values | None:
    """What a score of today of weights on a task says of its making; None without weights.

    What the device decides (precision, attention dropout) is not known here; a table refuses scores that differ in it.
    """
    if weights is None:
        return None
    return {"settings_hash": hash_of(experiment.finetuning(task)), "checkpoint_sha256": weights}


def stale_files(experiment: Experiment, suite: str, folder: Path) -> Iterator[Path]:
    """The files of the fine-tunings of a checkpoint on a suite's task, in its `folder` of state, that no score of today
    is made of.

    Those of today's settings stay; those of other settings stay until scores of today's are published.
    """
    today = hash_of(settings_from(experiment.settings[suite], GlueSettings, "config"))
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


def seeds_of(scores: Path) -> list[int]:
    """The fine-tuning seeds of the records in a file of scores; none where it is damaged."""
    try:
        return [record["finetune_seed"] for record in read_json(scores, [{"finetune_seed": int}])]
    except DataError:
        return []
