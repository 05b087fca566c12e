"""How symbert itself is cited: CITATION.cff, and codemeta.json made from it and pyproject.toml."""

import json
import tomllib
from pathlib import Path
from typing import Any

from symbert.commit import PROJECT
from symbert.project import read_yaml


def codemeta_text(project: Path = PROJECT) -> str:
    """The facts of both files as a codemeta.json of version 3.0."""
    cited, package = citation(project), packaging(project)
    described = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": package["name"],
        "description": package["description"],
        "version": cited["version"],
        "license": f"https://spdx.org/licenses/{package['license']}",
        "author": [{"@type": "Organization", "name": author["name"]} for author in cited["authors"]],
        "programmingLanguage": ["Python", "Snakemake"],
        "runtimePlatform": f"Python {package['requires-python']}",
        "softwareRequirements": package["dependencies"],
        "referencePublication": [
            {"@type": "ScholarlyArticle", "name": work["title"], "identifier": work["identifiers"][0]["value"]}
            for work in cited["references"]
        ],
    }
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"


def citation(project: Path = PROJECT) -> dict[str, Any]:
    """What CITATION.cff says."""
    return read_yaml(project / "CITATION.cff")


def packaging(project: Path = PROJECT) -> dict[str, Any]:
    """What pyproject.toml says of the package."""
    return tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
