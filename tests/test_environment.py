"""One truth about versions: pyproject names the packages, constraints.txt pins all, envs/symbert.yaml agrees."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

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
        assert markers([*project["dependencies"], *project["optional-dependencies"]["kenlm"]]) == markers(pip)
        assert pins(pip).items() <= constraints.items() and len(pins(pip)) == len(pip)
        (python,) = [item for item in environment["dependencies"] if str(item).startswith("python")]
        assert SpecifierSet(project["requires-python"]).contains(python.partition("=")[2])


def test_the_environment_is_made_without_a_compiler_too_which_kenlm_alone_needs(root, tmp_path):
    for name in ("Makefile", "pyproject.toml", "envs/constraints.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(root / name, tmp_path / name)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("sh", "mkdir", "touch", "cp"):
        (programs / name).symlink_to(shutil.which(name))
    scripts = {
        "python": 'test "$1" != -m || { mkdir -p .venv/bin; cp programs/pip .venv/bin; }',
        "pip": 'echo "$@" >> log',
    }
    for name, script in scripts.items():
        (programs / name).write_text(f"#!{shutil.which('sh')}\n{script}\n")
        (programs / name).chmod(0o755)

    def made() -> tuple[str, str]:
        command = [shutil.which("make"), "-B", "env", "PYTHON=python"]
        environment = {**os.environ, "PATH": str(programs), "MAKEFLAGS": ""}
        run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        asked = Path(tmp_path, "log").read_text()
        Path(tmp_path, "log").unlink()
        return asked, run.stderr

    asked, said = made()
    assert "-e .[test]\n" in asked and "kenlm" not in asked and len(said.splitlines()) == 1 and "kenlm" in said
    (programs / "g++").symlink_to("pip")
    asked, said = made()
    assert "-e .[test]\n" in asked and "-e .[kenlm]\n" in asked and not said
