"""How far the corpus of an experiment is, under today's settings, and what of it is still to come. Reads only."""

from collections.abc import Iterator
from pathlib import Path

from symbert.config import parts_of
from symbert.corpus.plan import plan_of
from symbert.cost import Cost, Files, Hours, size_of
from symbert.files import read_json_or_empty
from symbert.layout import Experiment

SETTINGS = ("corpus_source", "filter", "intake", "pack")  # any change invalidates the corpus


def corpus_home(experiment: Experiment) -> Experiment:
    """The experiment in whose folder the packed corpus is, or will be."""
    return experiment.home(is_packed)


def manifest_of(experiment: Experiment) -> Path:
    """The file that describes the packed rows of this experiment's folder."""
    return Path(experiment.shards) / "manifest.json"


def tokens_record(experiment: Experiment, part: str) -> Path:
    """The file that a part has once its documents are token ids."""
    return Path(experiment.results) / f"corpus/tokens/{part}.json"


def is_packed(experiment: Experiment) -> bool:
    """Whether the rows are packed in this experiment's folder, under today's settings and of today's parts.

    A part that existed when the rows were packed, but is not in them, was left out: they were full without it.
    """
    file, wanted = manifest_of(experiment), parts_of(experiment.config)
    manifest = read_json_or_empty(file)
    parts = manifest.get("parts")
    packed = set(map(str, parts)) if isinstance(parts, list) else set()
    if not manifest or not experiment.agrees(*SETTINGS) or not packed <= set(wanted):
        return False
    records = [tokens_record(experiment, part) for part in wanted if part not in packed]
    return all(one.is_file() and one.stat().st_mtime <= file.stat().st_mtime for one in records)


def corpus_cost(experiment: Experiment) -> Cost:
    """To filter, tokenize and pack all parts; nothing of a corpus elsewhere.

    What is to come goes by the parts that are not token ids under today's settings.
    """
    if corpus_home(experiment) is not experiment:
        return Cost()
    hours = sum(plan_of(experiment.config).core_hours.values())
    if is_packed(experiment):
        return Cost(Hours(core=hours))
    parts, done = parts_of(experiment.config), 0
    if experiment.agrees("corpus_source", "filter"):
        done = sum(tokens_record(experiment, part).is_file() for part in parts)
    return Cost(Hours(core=hours), Hours(core=hours * (1 - done / len(parts))))


def bytes_to_download(experiment: Experiment) -> float:
    """Of the parts, until the rows are packed."""
    return 0 if is_packed(corpus_home(experiment)) else plan_of(experiment.config).download


def corpus_files(experiment: Experiment) -> Iterator[Files]:
    """What the stage writes; nothing where the corpus is elsewhere."""
    if corpus_home(experiment) is not experiment:
        return
    corpus, raw, shards = Path(experiment.results) / "corpus", Path(experiment.raw), Path(experiment.shards)
    places = {
        "raw parts": ("storage.raw", raw),
        "filtered documents": ("results/", corpus / "filtered"),
        "token streams": ("results/", corpus / "tokens"),
        "shards": ("storage.shards", shards),
        "index of documents": ("storage.shards", shards),
    }
    done = is_packed(experiment)
    for kind, planned in plan_of(experiment.config).disk.items():
        key, folder = places[kind]
        written = 0 if kind == "index of documents" else size_of(folder)
        passing = kind == "raw parts" and not experiment.config["corpus"]["keep_raw"]
        yield Files("corpus", kind, key, folder, planned, 0 if done else max(planned - written, 0), passing)
