"""Finished results as one citable archive: the report, the files that it was made of, the code, a Workflow RO-Crate."""

import json
import os
import re
import zipfile
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import yaml

from symbert import __version__
from symbert.errors import MissingInputError, UsageError
from symbert.files import MEGABYTE, publish, read_json
from symbert.paths import REPORTED
from symbert.provenance import PROJECT
from symbert.report.collect import read_record

WORKFLOW = "Snakefile"
CODE = (WORKFLOW, "Makefile", "config.yaml", "pyproject.toml", "CITATION.cff", "LICENSE")
CODE += ("envs", "profiles", "workflow", "src")  # of folders all files but those that Python and its packaging make
MADE = ("__pycache__", ".egg-info")
OF_RUN = ("done.json", "timing.json", "metrics.jsonl")  # state and weights stay out
BESIDE = ("commit.json", "blocklist.json")  # the settings of a folder with a key
KINDS = {".html": "text/html", ".json": "application/json", ".md": "text/markdown", ".toml": "application/toml"}
KINDS |= {".cff": "application/yaml", ".yaml": "application/yaml"}  # other files at the top are plain text
EARLIEST = (1980, 1, 1, 0, 0, 0)  # the beginning of time for zip: no file's own time is kept
README = Path(__file__).with_name("templates") / "bundle.md"
Record = dict[str, Any]


def bundle(
    results: Annotated[Path, "name or folder of the experiment"],
    /,
    output: Annotated[Path, "the archive, a .zip file"],
) -> None:
    """Write a finished experiment as one citable archive: page, tables, figures, scores, settings, losses, provenance,
    code, and metadata as a Workflow RO-Crate. The same results and the same code give the same bytes.

    Weights, texts and token ids stay out, and so do
    names of machines and absolute paths. MissingInputError where the experiment as it was started last has no page.
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
    report, reported = folder / "report", folder / REPORTED.format(key=record["key"])
    if not ((page := report / "report.html").is_file() and reported.is_file()):
        lacks = "is of other settings than experiment.json" if page.is_file() else "no such file"
        raise MissingInputError(f"{page}: {lacks}; run the workflow to its end first")
    files = {str(file.relative_to(project)): file for name in CODE for file in _files_in(project / name)}
    files = {name: file for name, file in files.items() if not any(part.endswith(MADE) for part in Path(name).parts)}
    files |= {str(file.relative_to(report)): file for file in _files_in(report) if file != reported}
    files |= {os.path.relpath(file, folder.parent): file for file in _read_by_report(folder, record)}
    files["experiment.json"] = folder / "experiment.json"
    contents = {name: _content(file) for name, file in files.items()}
    title = f"Results of {record['experiment']}"
    summary = contents.get("texts/summary.txt", b"").decode().strip().replace("\n", " ") or title
    words = {"title": title, "summary": summary, "version": __version__, "name": record["experiment"]}
    readme = "".join(
        line
        for line in README.read_text(encoding="utf-8").format(**words).splitlines(keepends=True)
        if not line.startswith("| `") or _is_there(line, contents)
    )
    date = re.search(rb"^written,(\S+)", contents.get("tables/provenance.csv", b""), re.MULTILINE)
    crate = _metadata(title, summary, date[1].decode() if date else None, [*contents, "README.md"], project)
    return {"ro-crate-metadata.json": crate.encode(), "README.md": readme.encode(), **contents}


def _is_there(row: str, contents: Iterable[str]) -> bool:
    """Whether the archive has what a row of its table of contents names."""
    paths = tuple(re.findall("`(.+?)`", row.split("|")[1]))
    return any(name.startswith(paths) for name in [*contents, "ro-crate-metadata.json"])


def _files_in(place: Path) -> list[Path]:
    return [file for file in sorted([place, *place.rglob("*")]) if file.is_file()]


def _read_by_report(folder: Path, record: Record) -> Iterator[Path]:
    """The files that the report was made of, and the records beside the settings of keyed folders."""
    for name, named in record["inputs"].items():
        for path in _paths_in(named) if name != "origin" else []:
            if name not in ("grids", "tuning"):  # of which those at rates that were not chosen are not there
                yield from [path / part for part in OF_RUN] if name in ("runs", "runs_of_others") else [path]
            elif (path / "done.json").is_file():
                yield from (path / part for part in OF_RUN)
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
    """A JSON value without the names of machines, and with the last part alone of absolute paths; `host` is a
    machine."""
    if isinstance(value, dict):
        return {key: _public(item) for key, item in value.items() if key != "host"}
    if isinstance(value, list):
        return [_public(item) for item in value]
    return PurePosixPath(value).name if isinstance(value, str) and value.startswith("/") else value


def _metadata(title: str, summary: str, date: str | None, names: list[str], project: Path) -> str:
    """ro-crate-metadata.json: a Workflow RO-Crate 1.0 after RO-Crate 1.1, whose main workflow is the Snakefile."""
    from rocrate.model.contextentity import ContextEntity  # imports requests and jinja2
    from rocrate.rocrate import ROCrate

    cited = yaml.safe_load((project / "CITATION.cff").read_text(encoding="utf-8"))
    (author,) = cited["authors"]
    crate = ROCrate(version="1.1")
    crate.name, crate.description, crate.datePublished = title, summary, date
    address = f"https://spdx.org/licenses/{cited['license']}"
    licence = {"@type": "CreativeWork", "name": cited["license"], "identifier": address}
    crate.license = crate.add(ContextEntity(crate, address, licence))
    organization = {"@type": "Organization", **author}
    authors = crate.add(ContextEntity(crate, f"#{author['name'].replace(' ', '-')}", organization))
    crate.root_dataset["author"] = crate.root_dataset["publisher"] = authors
    version = metadata.version("snakemake")
    snakefile = crate.add_workflow(dest_path=WORKFLOW, main=True, lang="snakemake", lang_version=version)
    snakefile["name"], snakefile["license"], snakefile["creator"] = cited["title"], crate.license, authors
    snakefile["version"], snakefile["encodingFormat"] = cited["version"], "text/plain"
    for path in dict.fromkeys(name if "/" not in name else f"{name.split('/')[0]}/" for name in names):
        if path != WORKFLOW:
            add = crate.add_dataset if path.endswith("/") else crate.add_file
            kind = {} if path.endswith("/") else {"encodingFormat": KINDS.get(PurePosixPath(path).suffix, "text/plain")}
            add(dest_path=path, properties={"name": path, **kind})
    crate.get("README.md")["about"] = crate.root_dataset
    return json.dumps(crate.metadata.generate(), indent=2, ensure_ascii=False) + "\n"
