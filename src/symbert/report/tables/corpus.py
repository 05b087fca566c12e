"""The corpus (documents read, dropped, kept and packed), settings beside the paper's, and provenance."""

import os
import platform
import time
from collections import Counter
from importlib import metadata
from typing import Any

import symbert
from symbert.corpus.filters import REASONS
from symbert.foreign import ForeignModel
from symbert.provenance import PROJECT, commit_of
from symbert.report import published
from symbert.report.collect import Collection
from symbert.report.formats import Table, frame_of, heading, table_of
from symbert.report.setting import is_deviation, papers_settings
from symbert.report.tables.scores import origin_of, values_of
from symbert.report.tidy import row_of_part

Row = dict[str, Any]


def corpus_table(data: Collection) -> Table | None:
    """Documents read, bad, dropped by the first reason that applies, and kept; tokens of the documents kept, and per
    word (text between white space; [CLS] and [SEP] are not counted there); packed into rows, and left over: of held-out
    documents beyond their rows or with rows that are training rows too, beyond the budget, and of the last row. The
    paper is arXiv 2406.06366, which does not say what it read or dropped. Parts stand in data/corpus.csv.
    """
    if not data.parts or data.manifest is None:
        return None
    counts, manifest = Counter(), data.manifest
    for part in map(row_of_part, data.parts):
        counts.update({key: count for key, count in part.items() if key != "part"})
    total = {
        **{key: counts[key] for key in ("read", "bad")},
        **{reason: counts[f"dropped_{reason}"] for reason in REASONS},
        **{
            key: counts[key] for key in ("kept", "without_url", "characters_read", "characters_kept", "words", "tokens")
        },
        # A document has a [CLS] and a [SEP], which belong to no word.
        "fertility": (counts["tokens"] - 2 * counts["kept"]) / counts["words"] if counts["words"] else None,
        "packed_documents": sum(manifest.documents.values()),
        "packed_tokens": sum(manifest.rows.values()) * manifest.sequence_length,
        "left_over_tokens": manifest.remainder_tokens + sum(manifest.surplus_tokens.values()),
        **{f"{split}_rows": manifest.rows[split] for split in ("train", "validation")},
    }
    paper = {**dict.fromkeys(total), **published.CORPUS}
    documents = ("bad", *REASONS, "kept", "without_url")
    shares = {key: 100 * total[key] / total["read"] for key in documents} if total["read"] else {}
    shown = [
        {"": heading(key), "total": value, "of_read_percent": shares.get(key), "the paper": paper[key]}
        for key, value in total.items()
    ]
    return table_of([{"part": "total", **total}, {"part": "the paper", **paper}], readable=frame_of(shown))


UNKNOWN = "–"


def settings_table(data: Collection) -> Table | None:
    """Settings that change losses or scores, by their keys in config.yaml, those of the paper or its authors’ code, and
    whether they differ, by a deviation that this project has on purpose or otherwise. A dash: not known.
    """
    if data.origin is not None:
        return None
    ours, theirs = data.experiment.settings, papers_settings(data.experiment)
    rows = [
        {"setting": key, "here": _setting(ours, key), "the_paper": _setting(theirs, key)}
        | {"differs": _difference(data, key)}
        for key in {**theirs, **ours}
    ]
    return table_of(rows)


def _difference(data: Collection, key: str) -> bool | str:
    if is_deviation(data.experiment, key):
        return f"deviation {published.DEVIATIONS[key][1]}"
    return data.experiment.settings.get(key, UNKNOWN) != published.SETTINGS.get(key, UNKNOWN)


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
    provenance = {
        "symbert": symbert.__version__,
        "commit": commit_of(PROJECT),
        "written": f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(_moment()))} UTC",
        "system": f"{platform.platform()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {metadata.version(name)}" for name in PACKAGES),
    }
    if data.origin is not None:
        provenance |= {f"imported: {file}": f"SHA-256 {digest}" for file, digest in data.origin["files"].items()}
        provenance["imported: steps"] = data.experiment.steps or "not known"
    if data.machines:
        sessions = sum(run["sessions"] or 0 for run in data.machines)
        provenance["pre-training: runs"] = f"{len(data.machines)}, in {sessions} sessions"
        if all(run["wall_hours"] is not None for run in data.machines):
            wall, on_gpus = (sum(run[key] for run in data.machines) for key in ("wall_hours", "gpu_hours"))
            provenance["pre-training: hours"] = f"{wall:.3f}, of GPUs {on_gpus:.3f}"
    for key in ("commit", "device", "processor", "precision", "versions"):
        if values := dict.fromkeys(run[key] for run in data.machines if run[key]):
            provenance[f"pre-training: {key}"] = ", ".join(values)
    for model in data.models:
        provenance |= {f"{model.name}: {what}": value for what, value in _origin_of(data, model).items()}
    for size, machine in zip(data.speeds["size"], data.speeds["machine"], strict=True):
        provenance[f"speeds: {size}"] = machine
    return table_of([{"what": what, "value": value} for what, value in provenance.items()])


def _origin_of(data: Collection, model: ForeignModel) -> Row:
    """What a foreign model is, and the digests of its weights and of its tokenizer."""
    files = model.tokenizer.files.items()
    digests = ", ".join(f"{name} SHA-256 {file.sha256}" for name, file in files if file.sha256)
    heads, weights = (values_of(data, model, column) for column in ("head", "checkpoint_sha256"))
    weights = weights or [file.sha256 for file in model.weights.values() if file.sha256]
    at = f" at commit {model.commit}" if model.commit else ", a folder"
    return {
        "model": f"{origin_of(model)}{at}; {', '.join([model.model_type, *heads])}",
        "weights": ", ".join(f"SHA-256 {digest}" for digest in weights) or "not scored",
        "tokenizer": f"{model.tokenizer.model_type}: {digests or ', '.join(name for name, _ in files)}",
    }


def _moment() -> float:
    """Now, in seconds of the epoch, unless SOURCE_DATE_EPOCH says when: then a report that is made again from the same
    results has the same bytes (reproducible-builds.org/specs/source-date-epoch)."""
    return float(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
