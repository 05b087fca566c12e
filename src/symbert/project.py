"""The project's folder, as commands outside Snakemake read it."""

from pathlib import Path
from typing import Any

import yaml

from symbert.checks import check, scale_of
from symbert.config import Config, merge
from symbert.errors import DataError, MissingInputError, UsageError


def read_config(folder: Path, *changes: Config) -> Config:
    """config.yaml of `folder`, its scale and then `changes`, each over what comes before; checked against the schema.

    The scale is the one that the last of `changes` names, if any does.
    """
    if not (folder / "config.yaml").is_file():
        raise MissingInputError(f"{folder.resolve()}: no config.yaml in it; run this in the project's folder")
    scales = {path.stem: path for path in (folder / "workflow/scales").glob("*.yaml")}
    base = _merged(read_yaml(folder / "config.yaml"), *changes)
    config = _merged(base, read_yaml(scales[scale_of(base, sorted(scales))]), *changes)
    check(config, folder / "workflow/schemas/config.schema.yaml")
    return config


def read_chosen(folder: Path, scale: str | None, configfile: list[Path] | None, config: list[str] | None) -> Config:
    """The configuration that Snakemake has with these of its options: `scale` stands for scale=…, and goes last."""
    chosen = {} if scale is None else {"scale": scale}
    return read_config(folder, *map(read_yaml, configfile or []), dict(map(_assignment, config or [])), chosen)


def read_yaml(path: Path) -> Config:
    """A file of settings; DataError when it is none."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise DataError(f"{path}: not YAML ({_first_line(error)}); correct it") from None
    if not isinstance(values, dict):
        raise DataError(f"{path}: holds no settings; write `key: value` lines")
    return values


def _assignment(text: str) -> tuple[str, Any]:
    """`key=value` as Snakemake's `--config` takes it: nested texts, which `check` reads by the schema."""
    key, sign, value = text.partition("=")
    if not sign:
        raise UsageError(f"--config {text}: no value; write key=value")
    try:
        return key, yaml.load(value, Loader=yaml.BaseLoader)  # Snakemake's: texts, lists, mappings alone
    except yaml.YAMLError as error:
        raise UsageError(f"--config {text}: the value is not YAML ({_first_line(error)}); correct it") from None


def _first_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split("\n")[:2])


def _merged(*configs: Config) -> Config:
    first, *others = configs
    for other in others:
        first = merge(first, other)
    return first
