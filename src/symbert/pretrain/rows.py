"""The packed rows that the runs of a host read, as a plan knows them. Reads only, and imports no torch."""

from pathlib import Path

from symbert.corpus.lines import read_lines
from symbert.files import read_json_or_empty
from symbert.hosts import HOSTS, Rows
from symbert.paths import Experiment
from symbert.sizes import VOCABULARY_SIZE
from symbert.sources import located


def rows_of(experiment: Experiment, host: str) -> Rows:
    """The rows of a host as a plan knows them; of pairs that are not packed yet, as long as they may be."""
    if HOSTS[host].reads_corpus:
        pack, masked = experiment.config["corpus"]["pack"], experiment.config["pretrain"]["mask_probability"]
        return Rows(vocabulary_size(experiment), pack["sequence_length"], masked)
    text = experiment.text
    packed = read_json_or_empty(Path(experiment.pairs, "manifest.json"))
    mean = packed.get("mean_tokens", dict.fromkeys(("source", "target"), text.max_length))
    size = packed.get("vocabulary_size", text.vocabulary_size)
    return Rows(size, mean["source"], target_tokens=mean["target"])


def vocabulary_size(experiment: Experiment) -> int:
    """Word pieces of the corpus; before the vocabulary is downloaded, those of bert-base-uncased."""
    file = Path(located(experiment.vocabulary))
    return file.read_bytes().count(b"\n") if file.is_file() else VOCABULARY_SIZE


def held_out(experiment: Experiment, host: str) -> int:
    """How many sequences a validation of a host has, at most."""
    if HOSTS[host].reads_corpus:
        return experiment.config["corpus"]["pack"]["validation_sequences"]
    return sum(1 for _ in read_lines(experiment.text.path("validation_target")))
