"""Which rows of an experiment are there: the packed corpus, GLUE's tables. Reads only."""

from pathlib import Path

from symbert.config import is_outdated, parts_of, source_of
from symbert.experiment.layout import Experiment
from symbert.experiment.reading import facts

CORPUS_SETTINGS = ("corpus_source", "embedded", "filter", "intake", "pack")  # another one: another corpus


def has_corpus(experiment: Experiment) -> bool:
    """Whether the rows are packed, under today's settings and of today's parts."""
    manifest, wanted = facts(manifest_of(experiment)), parts_of(experiment.config)
    parts = manifest.get("parts")
    packed = set(map(str, parts)) if isinstance(parts, list) else set()
    if not manifest or not agree(experiment, *CORPUS_SETTINGS) or not packed <= set(wanted):
        return False
    return all(part in packed or _was_left_out(experiment, part) for part in wanted)


def _was_left_out(experiment: Experiment, part: str) -> bool:
    """Whether a part was there when the rows were packed, which were full without it."""
    record = tokens_record(experiment, part)
    return record.is_file() and record.stat().st_mtime <= manifest_of(experiment).stat().st_mtime


def parts_done(experiment: Experiment) -> int:
    """How many parts are token ids, under today's settings."""
    if not agree(experiment, "corpus_source", "embedded", "filter"):
        return 0
    return sum(tokens_record(experiment, part).is_file() for part in parts_of(experiment.config))


def tokens_record(experiment: Experiment, part: str) -> Path:
    """What says of a part that it became token ids."""
    return Path(experiment.results) / f"corpus/tokens/{part}.json"


def manifest_of(experiment: Experiment) -> Path:
    """What says of the packed rows what they are."""
    return Path(experiment.shards) / "manifest.json"


def missing_tasks(experiment: Experiment) -> list[str]:
    """The tasks whose rows are still to be downloaded."""
    if source_of(experiment.config, "glue") != "hub":
        return []
    raw = Path(experiment.results) / "glue/raw"
    return [task for task in experiment.tasks if not (raw / f"{task}.parquet").is_file()]


def agree(experiment: Experiment, *sections: str) -> bool:
    """Whether no settings file that is there says something else than today's configuration."""
    folder = f"{experiment.results}/settings"
    return not any(is_outdated(f"{folder}/{section}.json", experiment.settings[section]) for section in sections)
