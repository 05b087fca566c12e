"""Whether the packages that pyproject.toml names are installed, before anything imports them."""

import tomllib
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from symbert.errors import ConfigError

REMEDY = "run `make env`, or `pip install -c envs/constraints.txt -e .`"


def check_packages(project: Path) -> None:
    """ConfigError for packages that `project`, a pyproject.toml, needs and that are missing or older than it wants."""
    missing = []
    for needed in map(Requirement, tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]):
        if needed.marker and not needed.marker.evaluate():
            continue
        try:
            installed = metadata.version(needed.name)
        except metadata.PackageNotFoundError:
            missing.append(needed.name)
            continue
        if not needed.specifier.contains(installed, prereleases=True):
            raise ConfigError(f"{needed.name} {installed} is installed, {project} wants {needed.specifier}; {REMEDY}")
    if missing:
        raise ConfigError(f"missing packages: {', '.join(missing)}; {REMEDY}")
