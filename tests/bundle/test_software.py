import json
import tomllib

import yaml

from symbert import __version__
from symbert.bundle.software import codemeta_text

# The keys that the schema of CITATION.cff 1.2.0 requires, and the types of a reference that is an article.
REQUIRED = {"authors", "cff-version", "message", "title"}


def test_the_citation_agrees_with_the_package(root):
    cited = yaml.safe_load((root / "CITATION.cff").read_text())
    package = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert cited.keys() >= REQUIRED and cited["cff-version"] == "1.2.0" and cited["type"] == "software"
    assert cited["version"] == __version__ and cited["license"] == package["license"]
    assert cited["title"].startswith(package["name"]) and cited["references"][0]["authors"]


def test_codemeta_has_the_facts_of_both_files(root):
    described = json.loads(codemeta_text(root))
    assert described["@context"] == "https://w3id.org/codemeta/3.0" and described["version"] == __version__
    assert described["referencePublication"][0]["identifier"] == "arXiv:2406.06366"
    assert "snakemake" in described["softwareRequirements"]
