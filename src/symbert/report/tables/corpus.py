"""The corpus (documents read, dropped, kept and packed) and provenance: settings, machines, versions and commits."""

import os
import platform
import time
from importlib import metadata
from typing import Any

import pandas as pd

import symbert
from symbert.configuration import PAPERS_FILTERS
from symbert.corpus.filters import REASONS, are_few, kept_in_words
from symbert.files import hash_of
from symbert.provenance import PROJECT, commit_of
from symbert.report import captions, published
from symbert.report.collect import Collection, PretrainedRun
from symbert.report.formats import Table, decimal_of, frame_of, heading, table_of

Row = dict[str, Any]

PARTS_SHOWN = 4  # more parts than these are listed in the csv file only
NAMES = {
    "read": "documents read",
    "bad": "bad lines",
    "kept": "documents kept",
    "without_url": "documents read without URL",
    "left_over_tokens": "tokens left over",
    "words": "words kept",
    "tokens": "tokens kept",
    "fertility": "tokens per word",
}
PACKED = ("packed_documents", "packed_tokens", "left_over_tokens", "train_rows", "validation_rows")
BY_REASON = "characters_dropped_"  # and the reason: a column of the csv file only


def corpus_table(data: Collection) -> Table | None:
    """Corpus, per part and in all: documents read, bad lines, documents dropped by the first reason that applies, and
    kept; characters, words and tokens; documents, tokens and rows after packing. Read is kept + dropped + bad in every
    part. The last column or row holds the paper's numbers.

    Csv has a row per part; Markdown and LaTeX, which have no room for its columns, turn it on its side.
    """
    if not data.parts or data.manifest is None:
        return None
    parts, manifest = [part["counts"] for part in data.parts], data.manifest
    wording = captions.wording_of(data.settings)
    present = {reason for part in parts for reason in part["dropped"]}
    reasons = [*REASONS, *sorted(present - set(REASONS))]
    rows = [_part_row(part["counts"], part["record"], reasons) for part in data.parts]
    summed = [key for key, value in rows[0].items() if isinstance(value, int)]
    total = rows[0] | {"part": "total"} | {key: sum(row[key] for row in rows) for key in summed}
    total["fertility"] = _fertility(total["tokens"], total["kept"], total["words"])
    packed = (
        sum(manifest["documents"].values()),
        sum(manifest["rows"].values()) * manifest["sequence_length"],
        manifest["remainder_tokens"] + sum(manifest["surplus_tokens"].values()),
        *(manifest["rows"][split] for split in ("train", "validation")),
    )
    total |= dict(zip(PACKED, packed, strict=True))
    paper = {**dict.fromkeys(total), "part": "the paper", **published.CORPUS}
    few = ""
    if are_few(parts):
        few = f"{kept_in_words(parts)}, fewer than half; symbert prepare-part --keep-rejected shows the others. "
    passed_over = ""
    if rows_passed := manifest.get("passed_over_rows", 0):
        passed_over = f" and in {rows_passed:,} rows that are also among the training rows, and so passed over"
    caption = (
        f"Documents of {wording.corpus}: read, bad, dropped by the first reason that applies, kept, and packed into "
        f"rows; beside them the numbers of {published.PAPER}."
        f"\n\n{wording.experiment}. Tokens of the documents kept, and per word (text between white space; [CLS] and "
        f"[SEP] are not counted there); documents and tokens packed into rows of {data.settings.sequence_length} "
        f"tokens, and tokens left over: of held-out documents beyond their rows{passed_over}, beyond the budget, and "
        f"of the last row. {few}The paper is {published.PAPER}, which does not say what it read or dropped."
    )
    everything = [*rows, total, paper]
    return table_of(everything, caption, "tab:corpus", readable=_on_its_side(everything, reasons))


def _part_row(part: Row, record: Row, reasons: list[str]) -> Row:
    characters = part["characters"]
    return {
        "part": part["part"],
        "read": part["read"],
        "bad": part["bad"],
        **{reason: part["dropped"].get(reason, 0) for reason in reasons},
        "kept": part["kept"],
        "without_url": part["without_url"],
        "characters_read": characters["read"],
        **{BY_REASON + reason: characters["dropped"].get(reason, 0) for reason in reasons},
        "characters_kept": characters["kept"],
        "words": record["words"],
        "tokens": record["tokens"],
        "fertility": _fertility(record["tokens"], record["documents"], record["words"]),
        **dict.fromkeys(PACKED),
    }


def _fertility(tokens: int, documents: int, words: int) -> float | None:
    """Tokens per word; each document has a [CLS] and a [SEP], which belong to no word."""
    return (tokens - 2 * documents) / words if words else None


def _on_its_side(rows: list[Row], reasons: list[str]) -> pd.DataFrame:
    """A row per quantity; columns for few parts, the total, its share of what was read, and the paper."""
    *parts, total, paper = rows
    shown = [*(parts if len(parts) <= PARTS_SHOWN else []), total]
    documents = (*reasons, "bad", "kept", "without_url")
    lines = []
    for key in (key for key in total if key != "part" and not key.startswith(BY_REASON)):
        name = f"dropped: {heading(key)}" if key in reasons else NAMES.get(key) or heading(key)
        whole = total["characters_read"] if key == "characters_kept" else total["read"] if key in documents else 0
        share = {"of_read_percent": 100 * total[key] / whole if whole else None}  # None: not part of what was read
        lines.append({"": name} | {row["part"]: row[key] for row in shown} | share | {"the paper": paper[key]})
    return frame_of(lines)


UNKNOWN = "–"
TRAINING = ("pretrain.steps", "pretrain.batch_size", "corpus.pack.sequence_length")
PAPER: Row = {  # appendix A, and what `symbert.report.published` has
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
    rows = [{"setting": key, "here": _setting(ours, key), "the_paper": _setting(theirs, key)} for key in keys]
    other = {(at, "here") for at, key in enumerate(keys) if ours.get(key, UNKNOWN) != theirs.get(key, UNKNOWN)}
    by_hash = f" Hash of the settings of fine-tuning: {settings.settings_hash}." if settings.settings_hash else ""
    caption = (
        "Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its authors' "
        f"code; bold where they differ.\n\nA dash: not known.{by_hash}"
    )
    return table_of(rows, caption, "tab:settings", best=other)


def _setting(settings: Row, key: str) -> str:
    """A setting in words; null stands for no limit."""
    value = settings.get(key, UNKNOWN)
    if value is None:
        return "all"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else f"{value:,.15g}" if isinstance(value, float) else value


PACKAGES = (
    *("snakemake", "torch", "transformers", "tokenizers", "datasets", "numpy", "scipy", "pandas"),
    *("pyarrow", "matplotlib"),
)


def provenance_table(data: Collection) -> Table:
    """Versions, commit and machine of the report, the machines of the runs, and hashes of the settings of each stage.

    The commit is read when the table is written; it is in no key, so that a commit makes nothing again.
    """
    machines = {}
    for key in ("commit", "device", "versions"):
        values = [run.facts_of(key) for run in data.machines]
        machines[key] = ", ".join(dict.fromkeys(filter(None, values)))
    facts = {
        "symbert": symbert.__version__,
        "commit": commit_of(PROJECT),
        "written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(_moment()))} UTC",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version_of(name)}" for name in PACKAGES),
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


def _moment() -> float:
    """Now, in seconds of the epoch, unless SOURCE_DATE_EPOCH says when: then a report that is made again from the same
    results has the same bytes (reproducible-builds.org/specs/source-date-epoch)."""
    return float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())


def _version_of(package: str) -> str:
    """The installed version, without importing the package."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


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
        length = {key: data.origin.get(key) for key in ("steps", "steps_from")}
        return table_of([{"name": data.origin["name"], "files": files, **length}], caption, "tab:runs")
    caption = (
        "What pre-training ran on: sessions (more than one: it was interrupted and went on), their hours, and those "
        "times the GPUs; device, processor and the instructions used; hashes of the run's settings and of the "
        "corpus; versions. A dash: not known."
    )
    return table_of([_run_row(run) for run in data.machines], caption, "tab:runs")


def _run_row(run: PretrainedRun) -> Row:
    wall, on_gpus = run.hours or (None, None)
    return {
        "run": str(run.run),
        "sessions": run.facts.get("sessions"),
        "wall_hours": decimal_of(wall, 3),
        "gpu_hours": decimal_of(on_gpus, 3),
        **{key: run.facts_of(key) for key in ("device", "processor")},
        **{key: run.facts.get(key) for key in ("settings_hash", "corpus_hash")},
        **{key: run.facts_of(key) for key in ("processes", "threads", "precision", "recipe", "versions")},
    }
