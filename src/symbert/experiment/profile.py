"""What a user writes into a profile of Snakemake, as far as Snakemake would take it for something else."""

import builtins
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError
from symbert.experiment.given import read_yaml

MINUTES = re.compile(r"\d+ *([smhd]|min|hours?|days?)?|.*\battempt\b.*")


def check_profiles(folder: Path, words: Iterable[str]) -> None:
    """ConfigError for a resource in a profile that Snakemake takes for another value or for a function of Python, with
    how to write it: in profiles/slurm of `folder`, and where a command line names one."""
    named = re.findall(r"^--(?:workflow-)?profile[=\n](.+)$", "\n".join(words), re.MULTILINE)
    for place in dict.fromkeys(map(Path.resolve, [folder / "profiles/slurm", *map(Path, named)])):
        for path in sorted(place.glob("config*.yaml")):  # config.v8+.yaml is of a version of Snakemake
            _check_profile(path)


def _check_profile(path: Path) -> None:
    for key, value in _resources(read_yaml(path)):
        if isinstance(value, str) and hasattr(builtins, value):
            raise ConfigError(
                f"""{path}: '{key}': {value} is a function of Python; quote it twice: "'{value}'" """.strip()
            )
        if key.endswith(".runtime") and not MINUTES.fullmatch(str(value)):
            raise ConfigError(f"{path}: '{key}': {value} is no number of minutes to Snakemake; write 720, 12h or 1d")


def _resources(profile: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The resources that it sets, by their keys; none of a section that is a list of texts, as on the command line."""
    rules = {f"set-resources.{rule}": of for rule, of in _section(profile.get("set-resources")).items()}
    for name, section in {"default-resources": profile.get("default-resources"), **rules}.items():
        yield from ((f"{name}.{key}", value) for key, value in _section(section).items())


def _section(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
