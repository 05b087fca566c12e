"""Finished results as one citable archive: the report, the files that it was made of, the code, a Workflow RO-Crate."""

import csv
import json
import os
import re
import zipfile
from collections.abc import Iterator
from importlib import metadata
from mimetypes import MimeTypes
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from symbert import __version__
from symbert.errors import MissingInputError, UsageError
from symbert.files import MEGABYTE, publish, read_json
from symbert.hosts import HOSTS
from symbert.provenance import PROJECT
from symbert.report.collect import read_record

WORKFLOW = "Snakefile"
CODE = (  # what repeats the results; of folders all files but those that Python and its packaging make
    *(WORKFLOW, "Makefile", "config.yaml", "pyproject.toml", "CITATION.cff", "LICENSE"),
    *("envs", "profiles", "workflow", "src"),
)
MADE = ("__pycache__", ".egg-info")
OF_RUN = ("done.json", "timing.json", "metrics.jsonl")  # state and weights stay out
BESIDE = ("commit.json", "blocklist.json")  # the settings of a folder with a key
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the beginning of time for zip: no file's own time is kept
PLACES = {  # what lies where in the archive; a folder is described as a whole
    "README.md": "This text",
    "report.html": "The report on one page, which opens offline",
    "tables/": "Each table of the report in all formats",
    "figures/": "Each figure of the report in all formats",
    "texts/": "The summary of the report",
    "experiment.json": "The configuration, and the settings behind the key at the end of each folder's name",
    "runs/": "Losses, speed and machine of each run of pre-training",
    "corpus/": "Counts and checksums of the corpus",
    "published/": "The commits of the published files",
    "scores/": "Scores of each checkpoint, and in how many minimal pairs it prefers the acceptable sentence",
    "robustness/": "Scores on noise and out-of-domain sets",
    "measured/": "Speeds of the operators, and what was asked about their heads and what they can express",
    WORKFLOW: "The workflow",
    **dict.fromkeys(
        ("workflow/", "src/", "profiles/", "envs/", *CODE[1:4]), "Code, options and packages of the workflow"
    ),
    "CITATION.cff": "How to cite symbert",
    "LICENSE": "The licence of code and results",
}
Record = dict[str, Any]


def bundle(results: Path, /, output: Path) -> None:
    """Write a finished experiment as one citable archive: page, tables, figures, scores, settings, losses, provenance,
    code, and metadata as a Workflow RO-Crate. The same results and the same code give the same bytes.

    `results` is the experiment's name or folder. Weights, texts and token ids stay out, and so do names of machines and
    absolute paths. MissingInputError names a file that is not there.
    """
    if output.suffix != ".zip":
        raise UsageError(f"--output is {output}; name a .zip file")
    contents = contents_of(results)
    with publish(output) as path, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in contents.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.external_attr, entry.create_system = 0o644 << 16, 3
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED, compresslevel=9)
    print(f"{output}: {len(contents)} files, {output.stat().st_size / MEGABYTE:.1f} MB")


def contents_of(results: Path, project: Path = PROJECT) -> dict[str, bytes]:
    """The files of the archive by their paths in it, the metadata first."""
    folder, record = read_record(results)
    report, copy = folder / "report", f"experiment-{record['key']}.json"  # of experiment.json
    if not (report / "report.html").is_file():
        raise MissingInputError(f"{report / 'report.html'}: no such file; run the workflow to its end first")
    made = [file for file in sorted(report.rglob("*")) if file.is_file() and file.name != copy]
    files = _code(project) | {str(file.relative_to(report)): file for file in made}
    files |= {os.path.relpath(file, folder.parent): file for file in _read_by_report(folder, record)}
    files["experiment.json"] = folder / "experiment.json"
    contents = {name: _content(file) for name, file in files.items()}
    title = f"Results of {record['experiment']}"
    summary = contents.get("texts/summary.txt", b"").decode().strip().replace("\n", " ") or title
    contents = {"README.md": _readme(title, summary, contents).encode()} | contents
    return {"ro-crate-metadata.json": _metadata(title, summary, _date(report), contents, project).encode()} | contents


def _code(project: Path) -> dict[str, Path]:
    """The project's files that repeat the results, by their paths in the archive."""
    files = [file for name in CODE for file in sorted([project / name, *(project / name).rglob("*")]) if file.is_file()]
    named = {file.relative_to(project): file for file in files}
    return {str(path): file for path, file in named.items() if not any(part.endswith(MADE) for part in path.parts)}


def _read_by_report(folder: Path, record: Record) -> Iterator[Path]:
    """The files that the report was made of, and the records beside the settings of keyed folders."""
    for name, named in record["inputs"].items():
        for path in _paths_in(named) if name != "origin" else []:
            is_run = name in ("runs", "runs_of_others", "grids")
            for file in [path / part for part in OF_RUN] if is_run else [path]:
                if file.name != "timing.json" or "origin" not in record["inputs"]:  # of imports nobody knows it
                    yield file
    beside = (folder / "../.." / Path(settings).with_name(name) for settings in record["settings"] for name in BESIDE)
    yield from (file for file in beside if file.is_file())


def _paths_in(inputs: Any) -> list[Path]:
    """All paths that the inputs of a report name."""
    if isinstance(inputs, dict | list):
        return [path for item in (inputs.values() if isinstance(inputs, dict) else inputs) for path in _paths_in(item)]
    return [inputs]


def _content(file: Path) -> bytes:
    """A file; of records and settings only what may be published."""
    if file.suffix == ".json":
        return json.dumps(_public(read_json(file, (dict, list))), indent=2, ensure_ascii=False).encode() + b"\n"
    content = file.read_bytes()
    return re.sub(rb"(?m)^([\s\w-]+: *['\"]?)/\S*/", rb"\1", content) if file.suffix == ".yaml" else content


def _public(value: Any) -> Any:
    """A JSON value without the names of machines, and with the last part alone of absolute paths; `host` is a machine,
    unless it is a kind of model."""
    if isinstance(value, dict):
        return {key: _public(item) for key, item in value.items() if key != "host" or item in list(HOSTS)}
    if isinstance(value, list):
        return [_public(item) for item in value]
    return PurePosixPath(value).name if isinstance(value, str) and value.startswith("/") else value


def _date(report: Path) -> str:
    """When the report was written, by its table of provenance."""
    table = report / "tables/provenance.csv"
    rows = dict(csv.reader(table.read_text(encoding="utf-8").splitlines())) if table.is_file() else {}
    if "written" not in rows:
        raise MissingInputError(f"{table}: no row 'written'; make the tables again")
    return rows["written"].partition(" ")[0]


def _described(contents: dict[str, bytes]) -> dict[str, str]:
    """What lies where in an archive: of PLACES what it has, and its other files by their names."""
    present = {path: words for path, words in PLACES.items() if any(name.startswith(path) for name in contents)}
    return present | {name: "Data of the report" for name in contents if not name.startswith(tuple(PLACES))}


def _readme(title: str, summary: str, contents: dict[str, bytes]) -> str:
    """What the archive is, and what lies where."""
    size = sum(map(len, contents.values())) / MEGABYTE
    rows = "\n".join(f"| `{path}` | {words} |" for path, words in _described(contents).items())
    return f"""\
# {title}

{summary}

Written by symbert {__version__}: {len(contents)} files, {size:.1f} MB unpacked. Begin with `report.html`, which opens
offline.

| path | what it is |
|---|---|
{rows}
| `ro-crate-metadata.json` | all this for machines: a Workflow RO-Crate |

The commits that trained models stand in `tables/provenance.md` and in `timing.json` of each run; they may be older than
the code here. Weights, texts and token ids are not in the archive.
"""


def _metadata(title: str, summary: str, date: str, contents: dict[str, bytes], project: Path) -> str:
    """ro-crate-metadata.json: a Workflow RO-Crate 1.0 after RO-Crate 1.1, whose main workflow is the Snakefile."""
    from rocrate.model.contextentity import ContextEntity  # imports requests and jinja2
    from rocrate.rocrate import ROCrate

    cited, kinds = yaml.safe_load((project / "CITATION.cff").read_text(encoding="utf-8")), MimeTypes()
    (author,) = cited["authors"]
    crate = ROCrate(version="1.1")
    crate.name, crate.description, crate.datePublished = title, summary, date
    licence = {"@type": "CreativeWork", "name": cited["license"]}
    licence["identifier"] = address = f"https://spdx.org/licenses/{cited['license']}"
    crate.license = crate.add(ContextEntity(crate, address, licence))
    organization = {"@type": "Organization", **author}
    authors = crate.add(ContextEntity(crate, f"#{author['name'].replace(' ', '-')}", organization))
    crate.root_dataset["author"] = crate.root_dataset["publisher"] = authors
    version = metadata.version("snakemake")
    snakefile = crate.add_workflow(dest_path=WORKFLOW, main=True, lang="snakemake", lang_version=version)
    snakefile["name"], snakefile["license"], snakefile["creator"] = cited["title"], crate.license, authors
    snakefile["version"], snakefile["encodingFormat"] = cited["version"], "text/plain"
    for path, words in _described({"README.md": b"", **contents}).items():
        if path.endswith("/"):
            crate.add_dataset(dest_path=path, properties={"name": words, "description": words})
        elif path != WORKFLOW:
            facts = {"name": words, "encodingFormat": kinds.guess_type(path)[0] or "text/plain"}
            crate.add_file(dest_path=path, properties=facts | {"contentSize": str(len(contents[path]))})
    crate.get("README.md")["about"] = crate.root_dataset
    return json.dumps(crate.metadata.generate(), indent=2, ensure_ascii=False) + "\n"
