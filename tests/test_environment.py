"""One truth about versions: pyproject names the packages, constraints.txt pins all, envs/symbert.yaml agrees."""

import re
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines) -> dict[str, str]:
    pinned = (line.partition(";")[0].split("==") for line in lines if "==" in line)
    return {canonical(name): version for name, version in pinned}


def markers(lines) -> dict[str, str]:
    """Package to the condition under which it is installed."""
    requirements = map(Requirement, lines)
    return {canonical(requirement.name): str(requirement.marker or "") for requirement in requirements}


def test_libraries_whose_newer_interfaces_are_called_are_not_older(root):
    """huggingface_hub and httpx2 had no bound: pip kept an old one that was there."""
    dependencies = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    bounds = {canonical(each.name): str(each.specifier) for each in map(Requirement, dependencies)}
    assert all(">=" in bounds[name] for name in ("huggingface-hub", "httpx2", "torch", "transformers"))


def test_constraints_pin_every_dependency_and_every_environment_agrees(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    constraints = pins((root / "envs/constraints.txt").read_text().split())
    needed = [
        *project["dependencies"],
        *(name for names in project["optional-dependencies"].values() for name in names),
    ]
    assert {canonical(Requirement(name).name) for name in needed} <= constraints.keys()
    environments = [yaml.safe_load(path.read_text()) for path in (root / "envs").glob("*.yaml")]
    assert environments
    for environment in environments:
        (pip,) = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
        assert markers(project["dependencies"]) == markers(pip)
        assert pins(pip).items() <= constraints.items() and len(pins(pip)) == len(pip)
        (python,) = [item for item in environment["dependencies"] if str(item).startswith("python")]
        assert SpecifierSet(project["requires-python"]).contains(python.partition("=")[2])
