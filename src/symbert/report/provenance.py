"""How an experiment was made: its settings beside the paper's, and what its runs were computed on."""

import json
from pathlib import Path
from typing import Any

from symbert.errors import DataError
from symbert.files import read_json
from symbert.report import published
from symbert.report.formats import Table, table_of
from symbert.report.order import model_rank
from symbert.settings import ReportSettings

Facts = dict[str, Any]
UNTOLD = "–"
RUN = ("size", "attention", "pretrain_seed")
IMPORT = ("name", "directory", "files", "sha256", "steps", "steps_from")
PAPER: Facts = {  # appendix A, beside what `symbert.report.published` has
    "recipe": "faithful",
    "corpus.source": "hub",
    "glue.source": "hub",
    "corpus.filter.match": "exact",
    "corpus.filter.min_harmful_perplexity": 5.0,
    "corpus.filter.max_harmful_perplexity": 100_000.0,
}
FACTS = ("device", "processor", "precision", "recipe", "processes", "threads", "sessions", "versions", "corpus_hash")


def settings_table(settings: ReportSettings) -> Table:
    """Each setting that changes losses or scores, beside the paper's; bold where the two differ."""
    training = (settings.steps, settings.batch_size, settings.sequence_length)
    ours = _common(settings) | _keys(training, settings.pretrain, settings.glue)
    theirs = PAPER | _keys(published.TRAINING, published.PRETRAIN, published.GLUE)
    keys = list({**theirs, **ours})
    rows = [{"setting": key, "here": _value(ours, key), "the_paper": _value(theirs, key)} for key in keys]
    other = {(at, "here") for at, key in enumerate(keys) if ours.get(key, UNTOLD) != theirs.get(key, UNTOLD)}
    known = f" Hash of the settings of fine-tuning: {settings.settings_hash}." if settings.settings_hash else ""
    caption = (
        "Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its authors' "
        f"code; bold where they differ. A dash: not told.{known}"
    )
    return table_of(rows, caption, "tab:settings", best=frozenset(other))


def _common(settings: ReportSettings) -> Facts:
    """Settings by the keys of `PAPER`."""
    filtered = (settings.match, settings.min_harmful_perplexity, settings.max_harmful_perplexity)
    return dict(zip(PAPER, (settings.recipe, settings.corpus_source, settings.glue_source, *filtered), strict=True))


def _keys(training: tuple[int | None, ...], pretrain: Facts, glue: Facts) -> Facts:
    """Settings by their keys in config.yaml, without those of `training` that are not told."""
    names = ("pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length")
    return {
        **{name: value for name, value in zip(names, training, strict=True) if value is not None},
        **{f"pretrain.{key}": value for key, value in pretrain.items()},
        **{f"glue.{key}": value for key, value in glue.items()},
    }


def _value(settings: Facts, key: str) -> str:
    """A setting in words; null stands for no limit."""
    value = settings.get(key, UNTOLD)
    if value is None:
        return "all"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.15g}" if isinstance(value, float) else value


def provenance_table(files: list[Path]) -> Table:
    """What the runs were computed on, from their done.json and timing.json; runs that share all facts share a row."""
    groups: dict[str, list[str]] = {}
    for name, facts in _runs(files).items():
        groups.setdefault(json.dumps(facts), []).append(name)
    rows = [{"runs": ", ".join(names), **json.loads(facts)} for facts, names in groups.items()]
    caption = (
        "What pre-training ran on: device, processor and the instructions used, sessions (more than one: it was "
        "interrupted and went on), versions, and the hash of the corpus. A dash: not told."
    )
    return table_of(rows, caption, "tab:provenance")


def import_table(files: list[Path]) -> Table:
    """Where imported results come from, as import.json tells it."""
    rows = [{key: told.get(key) for key in IMPORT} for told in map(read_json, files)]
    caption = (
        "The directory that the results were imported from, the number of files read there, one hash of all of them, "
        "and the length of pre-training. How the models were made, these files do not say."
    )
    return table_of(rows, caption, "tab:provenance")


def _runs(files: list[Path]) -> dict[str, Facts]:
    """Facts by the name of the run, sorted; DataError for a file that does not say of which run it is."""
    found: dict[tuple, Facts] = {}
    for file in files:
        record = read_json(file)
        if not isinstance(record, dict) or not record.keys() >= set(RUN):
            raise DataError(f"{file}: does not say of which run it is; give done.json or timing.json of a run")
        found.setdefault(tuple(record[key] for key in RUN), {}).update(record)
    ordered = sorted(found, key=lambda run: (model_rank(*run[:2]), run[2]))
    return {
        f"{size}-{attention} seed {seed}": {key: _fact(found[size, attention, seed].get(key)) for key in FACTS}
        for size, attention, seed in ordered
    }


def _fact(value: Any) -> Any:
    return ", ".join(f"{name} {version}" for name, version in value.items()) if isinstance(value, dict) else value
