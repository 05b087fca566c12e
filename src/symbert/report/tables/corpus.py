"""The corpus (documents read, dropped, kept and packed), settings beside the paper's, and provenance."""

import os
import platform
import time
from importlib import metadata
from typing import Any

import symbert
from symbert.configuration import PAPERS_CORPUS, PAPERS_FILTERS
from symbert.corpus.filters import REASONS
from symbert.provenance import PROJECT, commit_of
from symbert.report import published
from symbert.report.collect import Collection
from symbert.report.formats import Table, frame_of, heading, table_of

Row = dict[str, Any]

PACKED = ("packed_documents", "packed_tokens", "left_over_tokens", "train_rows", "validation_rows")
BY_REASON = "characters_dropped_"  # and the reason: a column of the csv file only


def corpus_table(data: Collection) -> Table | None:
    """Documents read, bad, dropped by the first reason that applies, and kept; tokens of the documents kept, and per
    word (text between white space; [CLS] and [SEP] are not counted there); packed into rows, and left over: of held-out
    documents beyond their rows or with rows that are training rows too, beyond the budget, and of the last row. The
    paper is arXiv 2406.06366, which does not say what it read or dropped. The csv has a row per part.
    """
    if not data.parts or data.manifest is None:
        return None
    parts, manifest = [part["counts"] for part in data.parts], data.manifest
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
    documents = ("bad", *reasons, "kept", "without_url")
    shown = [
        {"": heading(key), "total": total[key], "of_read_percent": None, "the paper": paper[key]}
        | ({"of_read_percent": 100 * total[key] / total["read"]} if key in documents and total["read"] else {})
        for key in total
        if key != "part" and not key.startswith(BY_REASON)
    ]
    return table_of([*rows, total, paper], readable=frame_of(shown))


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


UNKNOWN = "–"


def settings_table(data: Collection) -> Table | None:
    """Settings that change losses or scores, by their keys in config.yaml, and those of the paper or its authors’ code;
    bold where they differ. A dash: not known.
    """
    if data.origin is not None:
        return None
    ours = data.facts.settings
    theirs = published.SETTINGS | {key: value for key, value in PAPERS_CORPUS.items() if key in ours}
    if "corpus.filter.rules" in ours:  # where some filters were chosen
        theirs = theirs | {"corpus.filter.rules": ", ".join(PAPERS_FILTERS)}
    keys = list({**theirs, **ours})
    rows = [{"setting": key, "here": _setting(ours, key), "the_paper": _setting(theirs, key)} for key in keys]
    other = {(at, "here") for at, key in enumerate(keys) if ours.get(key, UNKNOWN) != theirs.get(key, UNKNOWN)}
    return table_of(rows, best=other)


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
    """Versions and the commit of the machine that wrote this table; what trained the models stands under pre-training,
    each run in data/runs.csv.
    """
    facts = {
        "symbert": symbert.__version__,
        "commit": commit_of(PROJECT),
        "written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(_moment()))} UTC",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {_version_of(name)}" for name in PACKAGES),
    }
    if data.origin is not None:
        facts |= {f"imported: {file}": f"SHA-256 {digest}" for file, digest in data.origin["files"].items()}
        facts["imported: steps"] = data.facts.steps
    if data.machines:
        sessions = sum(run["sessions"] or 0 for run in data.machines)
        facts["pre-training: runs"] = f"{len(data.machines)}, in {sessions} sessions"
        if all(run["wall_hours"] is not None for run in data.machines):
            wall, on_gpus = (sum(run[key] for run in data.machines) for key in ("wall_hours", "gpu_hours"))
            facts["pre-training: hours"] = f"{wall:.3f}, of GPUs {on_gpus:.3f}"
    for key in ("commit", "device", "processor", "precision", "versions"):
        if values := dict.fromkeys(run[key] for run in data.machines if run[key]):
            facts[f"pre-training: {key}"] = ", ".join(values)
    for size, machine in zip(data.speeds["size"], data.speeds["machine"], strict=True):
        facts[f"speeds: {size}"] = machine
    for signatures in () if data.hosts is None else data.hosts["signatures"]:
        facts |= {f"sacrebleu: {name}": signature for name, signature in signatures.items()}
    return table_of([{"what": what, "value": value} for what, value in facts.items()])


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
