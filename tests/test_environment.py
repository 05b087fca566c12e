"""One truth about versions: pyproject names the packages, constraints.txt pins all, envs/symbert.yaml agrees."""

import re
import tomllib
from importlib import metadata

import yaml
from packaging.requirements import Requirement


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines) -> dict[str, str]:
    pinned = (line.partition(";")[0].split("==") for line in lines if "==" in line)
    return {canonical(name): version for name, version in pinned}


def markers(lines) -> dict[str, str]:
    """Package to the condition under which it is installed."""
    requirements = map(Requirement, lines)
    return {canonical(requirement.name): str(requirement.marker or "") for requirement in requirements}


def test_constraints_pin_every_dependency_exactly_and_conda_agrees(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    constraints = pins((root / "envs/constraints.txt").read_text().split())
    conda = next(
        item
        for item in yaml.safe_load((root / "envs/symbert.yaml").read_text())["dependencies"]
        if isinstance(item, dict)
    )
    assert markers(project["dependencies"]) == markers(conda["pip"])
    assert pins(conda["pip"]).items() <= constraints.items()
    assert {canonical(name) for name in project["optional-dependencies"]["test"]} <= constraints.keys()


def test_constraints_name_no_build_of_torch_so_that_plain_pip_finds_it(root):
    text = (root / "envs/constraints.txt").read_text()
    assert "torch==2.13.0\n" in text
    assert not re.search(r"^(nvidia|triton)|\+cpu|--hash|--index", text, re.M)


def test_this_environment_has_the_pinned_versions(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    elsewhere = {
        canonical(requirement.name)
        for requirement in map(Requirement, project["dependencies"])
        if requirement.marker and not requirement.marker.evaluate()
    }
    for name, version in pins((root / "envs/constraints.txt").read_text().split()).items():
        if name not in elsewhere:
            assert metadata.version(name).partition("+")[0] == version, name
