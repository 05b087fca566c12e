"""What made a report: the commit, the versions, the settings, and the machines of its runs.

The commit is noted when the table is written. It is in no key, so that a commit makes nothing again.
"""

import os
import platform
import time
from importlib import metadata
from typing import Any

import symbert
from symbert.configuration import PAPERS_FILTERS
from symbert.files import hash_of
from symbert.provenance import PROJECT, commit_of
from symbert.report import published
from symbert.report.collect import Collection
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.machines import PretrainedRun, hours_of

PACKAGES = (
    *("snakemake", "torch", "transformers", "tokenizers", "datasets", "numpy", "scipy", "pandas"),
    *("pyarrow", "matplotlib"),
)


def provenance_table(data: Collection) -> Table:
    """What made this report: version and Git commit of symbert, with the word modified where files differed from the
    commit; versions of the packages; hashes of the settings that each stage read; and the machines of the runs. It is
    noted when the tables are made: a commit by itself makes nothing again.
    """
    machines = {}
    for key in ("commit", "device", "versions"):
        values = [run.facts_of(key) for run in data.machines]
        machines[key] = ", ".join(dict.fromkeys(filter(None, values)))
    facts = {
        "symbert": symbert.__version__,
        "commit": commit_of(PROJECT),
        "written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(moment()))} UTC",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version_of(name)}" for name in PACKAGES),
    }
    if any(machines.values()):
        sessions = sum(run.facts.get("sessions", 0) for run in data.machines)
        facts |= {"pre-training: runs": f"{len(data.machines)}, in {sessions} sessions"}
        facts |= {f"pre-training: {key}": values for key, values in machines.items() if values}
    facts |= {f"settings of {stage}": f"hash {hash_of(values)}" for stage, values in data.sections.items()}
    caption = (
        "What made the tables and figures: versions and the commit are those of the machine that wrote this table, "
        "what trained the models stands under pre-training. The hashes are of the settings that the stages read; the "
        "same hash means the same settings."
    )
    return table_of([{"what": what, "value": value} for what, value in facts.items()], caption, "tab:provenance")


def moment() -> float:
    """Now, in seconds of the epoch, unless SOURCE_DATE_EPOCH says when: then a report that is made again from the same
    results has the same bytes (reproducible-builds.org/specs/source-date-epoch)."""
    return float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def version_of(package: str) -> str:
    """The installed version, without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


UNKNOWN = "–"
TRAINING = ("pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length")
PAPER: dict[str, Any] = {  # appendix A, and what `symbert.report.published` has
    "recipe": "faithful",
    "corpus.source": "hub",
    "glue.source": "hub",
    "corpus.filter.match": "exact",
    "corpus.filter.min_harmful_perplexity": 5.0,
    "corpus.filter.max_harmful_perplexity": 100_000.0,
    **dict(zip(TRAINING, published.TRAINING, strict=True)),
    **{f"pretrain.{key}": value for key, value in published.PRETRAIN.items()},
    **{f"glue.{key}": value for key, value in published.GLUE.items()},
}


def settings_table(data: Collection) -> Table | None:
    """Every setting that changes losses or scores, by its key in config.yaml, beside that of the paper or its authors'
    code; bold where the two differ. Where nothing is bold, the numbers of this experiment may be compared with the
    paper's.
    """
    if data.origin is not None:
        return None
    settings = data.settings
    known = {
        "recipe": settings.recipe,
        "corpus.source": settings.corpus_source,
        "glue.source": settings.glue_source,
        "corpus.filter.match": settings.match,
        "corpus.filter.min_harmful_perplexity": settings.min_harmful_perplexity,
        "corpus.filter.max_harmful_perplexity": settings.max_harmful_perplexity,
        **dict(zip(TRAINING, (settings.steps, settings.batch_size, settings.sequence_length), strict=True)),
    }
    ours, theirs = {key: value for key, value in known.items() if value is not None}, PAPER
    ours |= {f"pretrain.{key}": value for key, value in settings.pretrain.items()}
    ours |= {f"glue.{key}": value for key, value in settings.glue.items()}
    ours |= settings.overrides or {}
    if settings.rules is not None:  # where some filters were chosen
        ours |= {"corpus.filter.rules": ", ".join(settings.rules) or "none"}
        theirs = theirs | {"corpus.filter.rules": ", ".join(PAPERS_FILTERS)}
    keys = list({**theirs, **ours})
    rows = [{"setting": key, "here": _value(ours, key), "the_paper": _value(theirs, key)} for key in keys]
    other = {(at, "here") for at, key in enumerate(keys) if ours.get(key, UNKNOWN) != theirs.get(key, UNKNOWN)}
    by_hash = f" Hash of the settings of fine-tuning: {settings.settings_hash}." if settings.settings_hash else ""
    caption = (
        "Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its authors' "
        f"code; bold where they differ."
        f"\n\nA dash: not told.{by_hash}"
    )
    return table_of(rows, caption, "tab:settings", best=other)


def _value(settings: dict[str, Any], key: str) -> str:
    """A setting in words; null stands for no limit."""
    value = settings.get(key, UNKNOWN)
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:,.15g}" if isinstance(value, float) else value


LENGTH = ("steps", "steps_from")
MACHINE, COMPUTING = ("device", "processor"), ("processes", "threads", "precision", "recipe", "versions")


def runs_table(data: Collection) -> Table:
    """What each model was pre-trained on: device, processor, precision, sessions, hours, hashes of settings and
    corpus, and versions; more than one session: the run was interrupted and went on. Of imported scores where they come
    from: their files do not say how the models were made.
    """
    if data.origin is not None:
        caption = (
            "The files that the results were imported from with their SHA-256, and the length of pre-training. How the "
            "models were made, these files do not say."
        )
        files = ", ".join(f"{name} {digest}" for name, digest in data.origin["files"].items())
        row = {"name": data.origin["name"], "files": files, **{key: data.origin.get(key) for key in LENGTH}}
        return table_of([row], caption, "tab:runs")
    caption = (
        "What pre-training ran on: sessions (more than one: it was interrupted and went on), their hours, and those "
        "times the GPUs; device, processor and the instructions used; hashes of the run's settings and of the "
        "corpus; versions. A dash: not told."
    )
    return table_of([_row(run) for run in data.machines], caption, "tab:runs")


def _row(run: PretrainedRun) -> dict[str, Any]:
    wall, on_gpus = hours_of(run.sessions)
    has_all_sessions = len(run.sessions) == run.facts.get("sessions", 1)
    return {
        "run": str(run.run),
        "sessions": run.facts.get("sessions"),
        "wall_hours": decimal_of(wall, 3) if has_all_sessions else None,
        "gpu_hours": decimal_of(on_gpus, 3) if has_all_sessions else None,
        **{key: run.facts_of(key) for key in MACHINE},
        **{key: run.facts.get(key) for key in ("settings_hash", "corpus_hash")},
        **{key: run.facts_of(key) for key in COMPUTING},
    }
