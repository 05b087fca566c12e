"""One truth about versions: pyproject names the packages, constraints.txt pins all, envs/symbert.yaml agrees."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from symbert.environment import check_packages
from symbert.errors import ConfigError


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(lines) -> dict[str, str]:
    pinned = (line.partition(";")[0].split("==") for line in lines if "==" in line)
    return {canonical(name): version for name, version in pinned}


def markers(lines) -> dict[str, str]:
    """Package to the condition under which it is installed."""
    requirements = map(Requirement, lines)
    return {canonical(requirement.name): str(requirement.marker or "") for requirement in requirements}


def test_constraints_pin_every_dependency_exactly(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    constraints = pins((root / "envs/constraints.txt").read_text().split())
    needed = [
        *project["dependencies"],
        *(name for names in project["optional-dependencies"].values() for name in names),
    ]
    assert {canonical(Requirement(name).name) for name in needed} <= constraints.keys()


def test_the_pins_were_looked_through_for_advisories_and_none_is_of_a_version_before_its_remedy(root):
    text = (root / "envs/constraints.txt").read_text()
    pinned, remedies = pins(text.split()), re.findall(r"^#   (\S+) >= (\S+): \S", text, re.M)
    assert len(remedies) >= 18
    assert [name for name, least in remedies if Version(pinned[canonical(name)]) < Version(least)] == []


def test_every_environment_has_the_dependencies_at_their_pins(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    constraints = pins((root / "envs/constraints.txt").read_text().split())
    environments = [yaml.safe_load(path.read_text()) for path in (root / "envs").glob("*.yaml")]
    assert environments
    for environment in environments:
        names = [item for item in environment["dependencies"] if isinstance(item, str)]
        (pip,) = [item["pip"] for item in environment["dependencies"] if isinstance(item, dict)]
        assert markers(project["dependencies"]) == markers(pip)
        assert pins(pip).items() <= constraints.items() and len(pins(pip)) == len(pip)
        python = next(name.partition("=")[2] for name in names if name.startswith("python"))
        assert SpecifierSet(project["requires-python"]).contains(python)


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


def test_a_torch_that_is_too_old_is_not_tried_out(root, monkeypatch):
    check_packages(root / "pyproject.toml")
    installed = {"torch": "2.10.1+cu128"}
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: installed.get(name) or real(name))
    with pytest.raises(
        ConfigError, match=r"torch 2\.10\.1\+cu128 is installed, .*pyproject.toml wants >=2\.11; run"
    ) as told:
        check_packages(root / "pyproject.toml")
    assert told.value.exit_code == 64
    installed.update(torch="2.11.0a0+git123", transformers="5.16.9")
    with pytest.raises(ConfigError, match=r"torch 2\.11\.0a0"):
        check_packages(root / "pyproject.toml")
    installed["torch"] = "2.12.0.dev20260101+cpu"
    with pytest.raises(ConfigError, match=r"transformers 5\.16\.9 is installed, .* wants >=5\.17; run `make env`"):
        check_packages(root / "pyproject.toml")


def test_packages_that_are_missing_are_named_together_before_any_is_imported(root, monkeypatch):
    real = metadata.version

    def version(name):
        if name in ("msgspec", "kenlm"):
            raise metadata.PackageNotFoundError(name)
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    with pytest.raises(ConfigError, match="missing packages: kenlm, msgspec; run `make env`, or `pip install"):
        check_packages(root / "pyproject.toml")
    script = "import sys; sys.modules['msgspec'] = None; import symbert.environment"
    subprocess.run([sys.executable, "-c", script], check=True)
