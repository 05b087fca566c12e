"""The packed rows that the runs of a host read: which manifest describes them, and what a plan knows of them.

Reads only, and imports no torch.
"""

from pathlib import Path

from symbert.config import is_outdated
from symbert.corpus.lines import read_lines
from symbert.corpus.state import corpus_home, is_packed, manifest_of
from symbert.files import read_json_or_empty
from symbert.hosts import HOSTS, Rows
from symbert.paths import Experiment


def pairs_home(experiment: Experiment) -> Experiment:
    """The experiment in whose folder the pairs of the parallel text are, or will be."""
    return experiment.home(lambda one: manifest_of_pairs(one).is_file() and _is_of_todays_text(one))


def manifest_of_pairs(experiment: Experiment) -> Path:
    """The file that describes the pairs of this experiment's folder."""
    return Path(experiment.results) / "parallel/manifest.json"


def _is_of_todays_text(experiment: Experiment) -> bool:
    settings = f"{experiment.results}/settings/parallel.json"
    return Path(settings).is_file() and not is_outdated(settings, experiment.parallel["parallel"])


def manifest_read_by(experiment: Experiment, host: str) -> Path | None:
    """The manifest of the rows that a host reads, here or where the extended experiment has it; None before they are
    packed under today's settings."""
    if HOSTS[host].reads_corpus:
        home = corpus_home(experiment)
        return manifest_of(home) if is_packed(home) else None
    home = pairs_home(experiment)
    path = manifest_of_pairs(home)
    return path if path.is_file() and _is_of_todays_text(home) else None


def rows_hash(experiment: Experiment, host: str) -> str | None:
    """What identifies the rows that a host reads; None before they are packed."""
    manifest = manifest_read_by(experiment, host)
    return read_json_or_empty(manifest).get("hash") if manifest else None


def rows_of(experiment: Experiment, host: str) -> Rows:
    """The rows of a host as a plan knows them; of pairs that are not packed yet, as long as they may be."""
    if HOSTS[host].reads_corpus:
        pack, masked = experiment.config["corpus"]["pack"], experiment.config["pretrain"]["mask_probability"]
        return Rows(experiment.vocabulary_size, pack["sequence_length"], masked)
    text = experiment.text
    manifest = manifest_read_by(experiment, host)
    packed = read_json_or_empty(manifest) if manifest else {}
    mean = packed.get("mean_tokens", dict.fromkeys(("source", "target"), text.max_length))
    vocabulary_size = packed.get("vocabulary_size", text.vocabulary_size)
    return Rows(vocabulary_size, mean["source"], target_tokens=mean["target"])


def held_out(experiment: Experiment, host: str) -> int:
    """How many sequences a validation of a host has, at most."""
    if HOSTS[host].reads_corpus:
        return experiment.config["corpus"]["pack"]["validation_sequences"]
    return sum(1 for _ in read_lines(experiment.text.path("validation_target")))
