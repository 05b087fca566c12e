"""The command that writes the archive: the same bytes of the same results and code."""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from symbert import __version__
from symbert.bundle.checklist import checklist_text
from symbert.bundle.licences import licences_text
from symbert.bundle.privacy import Privacy
from symbert.bundle.results import Record, Results
from symbert.bundle.software import codemeta_text
from symbert.commit import PROJECT
from symbert.errors import MissingInputError, UsageError
from symbert.files import MEGABYTE, publish

CODE = (  # what repeats the results; of folders all files but those that Python and its packaging make
    *("Snakefile", "Makefile", "config.yaml", "pyproject.toml", "CITATION.cff", "LICENSE"),
    *("envs", "profiles", "workflow", "src"),
)
MADE = ("__pycache__", ".egg-info")
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the beginning of time for zip: no file's own time is kept
MODEL = ("size", "attention", "pretrain_seed", "step", "task", "finetune_seed")


def bundle(results: list[Path], /, output: Path) -> None:
    """Write a finished experiment as one citable archive: page, tables, figures, scores, settings, provenance, licences
    of data, code, a reproducibility checklist, and metadata as a Workflow RO-Crate.

    The further folders of `results` are those of experiments that the first one extends. Weights, texts and token ids
    stay out, and so do names of hosts, absolute paths and secrets. MissingInputError names a run that no folder has.
    """
    if output.suffix != ".zip":
        raise UsageError(f"bundle: --output is {output}; name a .zip file")
    contents = contents_of(Results(results))
    with publish(output) as path, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    print(f"{output}: {len(contents)} files, {output.stat().st_size / MEGABYTE:.1f} MB")


def contents_of(results: Results, project: Path = PROJECT) -> dict[str, bytes]:
    """The files of the archive by their paths in it, its metadata first."""
    from symbert.bundle.crate import metadata_text  # imports requests and jinja2

    read = {name: file.read_bytes() for name, file in results.files.items()}
    records = [json.loads(content) for name, content in read.items() if name.endswith(".json")]
    privacy = Privacy([*records, *({"sessions": run.sessions} for run in results.runs)], [project, *results.folders])
    made = {
        "checklist.md": checklist_text(results),
        "LICENCES.md": licences_text(results),
        "scores.csv": _csv(_score_rows(results.scores)),
        "robustness.csv": _csv(_robustness_rows(results.robustness)),
        "codemeta.json": codemeta_text(project),
    }
    contents = _code(project) | {name: text.encode() for name, text in made.items() if text} | read
    contents = {name: privacy.clean(name, content) for name, content in contents.items()}
    title = f"Results of {results.settings.experiment}"
    summary = contents.get("texts/summary.txt", b"").decode().strip().replace("\n", " ")
    contents = {"README.md": _readme(title, summary, contents).encode()} | contents
    described = metadata_text(title, summary or title, _date(results), contents)
    return {"ro-crate-metadata.json": described.encode()} | contents


def _code(project: Path) -> dict[str, bytes]:
    """The project's files that repeat the results."""
    files = [file for name in CODE for file in sorted([project / name, *(project / name).rglob("*")]) if file.is_file()]
    named = {file.relative_to(project): file for file in files}
    return {
        path.as_posix(): file.read_bytes()
        for path, file in named.items()
        if not any(part.endswith(MADE) for part in path.parts) and path.name != "site.yaml"
    }


def _date(results: Results) -> str:
    """When the report was written, by its table of provenance."""
    table = results.folder / "report/tables/provenance.csv"
    rows = dict(csv.reader(table.read_text(encoding="utf-8").splitlines())) if table.is_file() else {}
    if "written" not in rows:
        raise MissingInputError(f"{table}: no row 'written'; make the tables again")
    return rows["written"].partition(" ")[0]


def _score_rows(records: list[Record]) -> Iterator[dict[str, Any]]:
    """A row for each score, from 0 to 1."""
    for record in records:
        for column, score in record["metrics"].items():
            facts = {key: record.get(key) for key in ("partial", "stand_in", "settings_hash")}
            majority = (record.get("majority") or {}).get(column)
            yield {key: record[key] for key in MODEL} | {"column": column, "score": score, "majority": majority} | facts


def _robustness_rows(records: list[Record]) -> Iterator[dict[str, Any]]:
    """A row for each score on a set, from 0 to 1."""
    for record in records:
        for name, facts in record["sets"].items():
            shown = {key: facts.get(key) for key in ("kind", "column", "score", "majority", "rows", "partial")}
            yield {key: record[key] for key in MODEL} | {"set": name} | shown


def _csv(rows: Iterator[dict[str, Any]]) -> str:
    """The rows as csv with the names of their columns; empty without rows."""
    listed, text = list(rows), io.StringIO()
    if listed:
        writer = csv.DictWriter(text, list(listed[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(listed)
    return text.getvalue()


PLACES = {
    ("report.html", "tables/", "figures/", "texts/"): "the report, and each of its tables and figures in other formats",
    ("scores.csv", "robustness.csv"): "every score, from 0 to 1: a row per model, seed of fine-tuning and score column",
    ("checklist.md",): "the reproducibility checklist of ACL venues, answered from the files here",
    ("LICENCES.md", "LICENSE"): "licences of the data, and that of code and results",
    ("settings/", "import.json"): "settings, and where imported scores come from",
    ("blimp/",): "in how many pairs of each paradigm of BLiMP a checkpoint finds the acceptable sentence likelier",
    ("pretrain/", "corpus/", "glue/", "benchmarks/"): "losses, machines, counts, sources and hours",
    ("Snakefile", "workflow/", "src/", "envs/"): "the code and its pinned packages, as they were when this was written",
    ("CITATION.cff", "codemeta.json"): "how to cite symbert",
}


def _readme(title: str, summary: str, contents: dict[str, bytes]) -> str:
    """What the archive is, and what lies where."""
    size = sum(map(len, contents.values())) / MEGABYTE
    rows = []
    for paths, words in PLACES.items():
        present = [path for path in paths if any(name.startswith(path) for name in contents)]
        rows += [f"| {', '.join(f'`{path}`' for path in present)} | {words} |"] if present else []
    listed = "\n".join(rows)
    return f"""\
# {title}

{summary}

Written by symbert {__version__}: {len(contents)} files, {size:.1f} MB unpacked. Begin with `report.html`, which opens
offline.

| path | what it is |
|---|---|
{listed}
| `ro-crate-metadata.json` | all this for machines: a Workflow RO-Crate |

The commits that trained models stand in `tables/provenance.md` and in `timing.json` of each run; they may be older than
the code here. Hosts are numbered, and absolute paths shortened to their last part. Weights, texts and token ids are not
in the archive.
"""
