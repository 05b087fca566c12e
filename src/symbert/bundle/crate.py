"""The metadata of a bundle: a Workflow RO-Crate 1.0 after RO-Crate 1.1, whose main workflow is the Snakefile."""

import json
from hashlib import sha256
from importlib import metadata
from pathlib import PurePosixPath

from rocrate.model.contextentity import ContextEntity
from rocrate.rocrate import ROCrate

from symbert.bundle.software import citation, packaging
from symbert.report.exhibits import exhibit_of

WORKFLOW = "Snakefile"
SHA256 = "https://w3id.org/ro/terms/workflow-run#sha256"  # a term that RO-Crate 1.1 does not have by itself
FOLDERS = {  # of many files each, which are described together
    "workflow/": "The rules of the workflow",
    "src/": "The package that the rules run",
    "profiles/": "Options of Snakemake on one machine and on a cluster",
    "envs/": "The environment, with the version of every package",
    "pretrain/": "Losses, speed, machine and settings of each run of pre-training",
    "settings/": "What each step of the workflow read",
    "benchmarks/": "Hours of the jobs, as Snakemake measured them",
    "corpus/": "Counts, checksums and sources of the corpus",
    "glue/": "Sources of the tasks",
    "blimp/": "How checkpoints judge minimal pairs, by paradigm",
}
NAMES = {
    "report.html": "The report on one page",
    "scores.csv": "Every score",
    "robustness.csv": "Every score on noise and out-of-domain sets",
    "checklist.md": "Reproducibility checklist",
    "LICENCES.md": "Licences of the data",
    "README.md": "What is in this archive",
    "CITATION.cff": "How to cite symbert",
    "codemeta.json": "What symbert is, for machines",
}
TEXT = "text/plain"
MEDIA = {
    ".cff": "application/yaml",
    ".csv": "text/csv",
    ".html": "text/html",
    ".json": "application/json",
    ".jsonl": "application/jsonl",
    ".md": "text/markdown",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".tex": "application/x-tex",
    ".toml": "application/toml",
    ".tsv": "text/tab-separated-values",
    ".txt": TEXT,
    ".yaml": "application/yaml",
}


def metadata_text(title: str, description: str, date: str, contents: dict[str, bytes]) -> str:
    """ro-crate-metadata.json of an archive with these files, which were made on that date."""
    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms["sha256"] = SHA256
    crate.name, crate.description, crate.datePublished = title, description, date
    crate.license = _licence(crate)
    (author,) = citation()["authors"]
    organization = {"@type": "Organization", **author}
    authors = crate.add(ContextEntity(crate, f"#{author['name'].replace(' ', '-')}", organization))
    crate.root_dataset["author"] = crate.root_dataset["publisher"] = authors
    snakefile = crate.add_workflow(
        dest_path=WORKFLOW, main=True, lang="snakemake", lang_version=metadata.version("snakemake")
    )
    snakefile["name"], snakefile["license"], snakefile["creator"] = packaging()["description"], crate.license, authors
    snakefile["version"], snakefile["encodingFormat"] = citation()["version"], TEXT
    for folder, name in FOLDERS.items():
        if any(path.startswith(folder) for path in contents):
            crate.add_dataset(dest_path=folder, properties={"name": name, "description": name})
    for path, content in contents.items():
        if path != WORKFLOW and not path.startswith(tuple(FOLDERS)):
            crate.add_file(dest_path=path, properties=_facts(path, content))
    crate.get("README.md")["about"] = crate.root_dataset
    crate.root_dataset["mentions"] = [crate.get(path) for path in ("checklist.md", "LICENCES.md")]
    return json.dumps(crate.metadata.generate(), indent=2, ensure_ascii=False) + "\n"


def _licence(crate: ROCrate) -> ContextEntity:
    name = packaging()["license"]
    address = f"https://spdx.org/licenses/{name}"
    return crate.add(ContextEntity(crate, address, {"@type": "CreativeWork", "name": name, "identifier": address}))


def _facts(path: str, content: bytes) -> dict[str, str]:
    """What is said of a file: its name, kind, size and checksum."""
    folder, stem = PurePosixPath(path).parent.name, PurePosixPath(path).stem
    is_exhibit = folder in ("tables", "figures", "texts")
    facts = {
        "name": exhibit_of(folder.removesuffix("s"), stem).heading if is_exhibit else NAMES.get(path, path),
        "contentSize": str(len(content)),
        "sha256": sha256(content).hexdigest(),
    }
    return facts | {"encodingFormat": MEDIA.get(PurePosixPath(path).suffix, TEXT)}
