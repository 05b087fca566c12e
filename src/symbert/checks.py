"""Whether a configuration makes sense, before anything runs: every mistake is one line with its remedy."""

import difflib
import os
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from packaging.requirements import Requirement

from symbert.config import NO_FILTER, Config, files_of, robustness_of, source_of
from symbert.errors import ConfigError, MissingInputError

STAND_INS = ("demo",)  # scales that stand-ins are made for; the hours of the others are for real text and tasks


def check(config: Config, schema_file: Path) -> None:
    """Refuse a configuration that the schema does not allow, naming the key and the nearest allowed word."""
    schema = yaml.safe_load(Path(schema_file).read_text(encoding="utf-8"))
    _read_texts(config, schema, schema["$defs"])
    if isinstance(config.get("corpus"), dict) and config["corpus"].get("filter") == "none":
        config["corpus"]["filter"] = dict(NO_FILTER)
    errors = sorted(Draft202012Validator(schema).iter_errors(config), key=lambda error: list(error.path))
    if errors:
        raise ConfigError(_explain(errors[0]))
    if config["imported"] and config["experiment"]:
        raise ConfigError("config: 'imported' and 'experiment' are both set; imported scores have their own folder")
    for stage in ("corpus", "glue"):
        _check_source(config, stage)
    _check_braces(config)
    _check_robustness(config)
    _check_processes(config)
    _check_sweep(config)


def check_versions(project: Path) -> None:
    """Refuse an installed package that is older than `project`, a pyproject.toml, wants it."""
    for needed in map(Requirement, tomllib.loads(project.read_text(encoding="utf-8"))["project"]["dependencies"]):
        if needed.specifier and not needed.specifier.contains(metadata.version(needed.name), prereleases=True):
            raise ConfigError(
                f"{needed.name} {metadata.version(needed.name)} is installed, {project} wants {needed.specifier}; run "
                "`make env`, or `pip install -c envs/constraints.txt -e .`"
            )


def _read_texts(node: Any, schema: Any, definitions: Config) -> Any:
    """Replace texts by the values they spell wherever the schema allows no text: Snakemake's `--config` gives
    nested values as texts. In paths, `~` becomes the home folder, which the shell leaves to us after a `=`."""
    schema = definitions[schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else schema
    if isinstance(node, dict):
        named, others = schema.get("properties", {}), schema.get("additionalProperties") or {}
        for key in node:
            node[key] = _read_texts(node[key], named.get(key, others), definitions)
    elif isinstance(node, list):
        node[:] = [_read_texts(item, schema.get("items", {}), definitions) for item in node]
    elif isinstance(node, str) and node not in schema.get("enum", [node]):
        return None if node == "null" else node
    elif isinstance(node, str) and ("string" not in schema.get("type", "string") or _is_null(node, schema)):
        return yaml.safe_load(node)
    elif isinstance(node, str) and schema.get("format") == "path":
        return os.path.expanduser(node)  # noqa: PTH111 (a Path would lose the // of a URL)
    return node


def _is_null(text: str, schema: Config) -> bool:
    return text == "null" and "null" in schema.get("type", "")


def _explain(error: ValidationError) -> str:
    key = ".".join(str(word) for word in error.path) or "configuration"
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        unknown = next(word for word in error.instance if word not in known)
        where = f" in '{key}'" if error.path else ""
        return f"config: unknown key '{unknown}'{where}{_suggestion(unknown, known)}"
    if error.validator == "enum":
        return f"config: '{key}' is {error.instance!r}{_suggestion(error.instance, error.validator_value)}"
    if error.validator == "type" and "number" in str(error.validator_value) and _is_number(error.instance):
        return f"config: '{key}' is the text {error.instance!r}, not a number; write {_as_yaml(float(error.instance))}"
    return f"config: '{key}': {error.message}"


def _as_yaml(number: float) -> str:
    """A number as YAML reads it: with a point before the exponent."""
    mantissa, exponent = f"{number:.15e}".split("e")
    whole, digits = mantissa.split(".")
    return f"{whole}.{digits.rstrip('0') or '0'}e{exponent}"


def _suggestion(word: Any, known: list[Any]) -> str:
    names = [str(name) for name in known]
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; choose from {', '.join(names)}"


def _is_number(value: Any) -> bool:
    try:
        float(value)
        return isinstance(value, str)
    except (TypeError, ValueError):
        return False


def _check_source(config: Config, stage: str) -> None:
    source, mirror = source_of(config, stage), config["mirror"]
    if source == "files" and stage == "glue":
        _check_directory("glue.files", config["glue"]["files"], "GLUE's original files (CoLA/train.tsv, …)")
        return
    if source == "files":
        files_of(config)
    if source != "mirror" and (source != "files" or mirror is None):
        return
    if mirror is None:
        raise ConfigError(f"config: '{stage}.source' is mirror, but 'mirror' names no directory; add mirror=DIR")
    if not Path(mirror).is_dir():
        raise MissingInputError(f"config: 'mirror': no directory {mirror}; give one in the publishers' layout")


def refuse_stand_ins(config: Config, stage: str) -> None:
    """ConfigError where a stage would make stand-ins of documentation at a scale that is for real text and tasks."""
    if config["scale"] in STAND_INS or source_of(config, stage) != "embedded":
        return
    key, remedy = "source", "add source=hub (or source=mirror mirror=DIR)"
    if config[stage]["source"]:
        key, remedy = f"{stage}.source", "set it to hub or mirror"
    raise ConfigError(
        f"config: 'scale' is {config['scale']}, but '{key}' is embedded, which makes stand-ins from documentation; "
        f"{remedy}"
    )


def _check_braces(config: Config) -> None:
    """Snakemake takes braces in the paths of its rules for wildcards, and has no way to escape them."""
    paths = [(f"storage.{kind}", path) for kind, path in config["storage"].items() if path]
    if source_of(config, "corpus") == "files":
        paths += [("corpus.files", path) for path in files_of(config).values()]
    for key, path in paths:
        if set(path) & set("{}"):
            raise ConfigError(
                f"config: '{key}': {path} has braces, which Snakemake takes for wildcards; rename it or link to it"
            )


def _check_robustness(config: Config) -> None:
    chosen = robustness_of(config)
    if chosen["sets"]:
        _check_directory("glue.robustness.files", chosen["root"], "the out-of-domain sets (docs/glue.md)")


def _check_directory(key: str, directory: str | None, content: str) -> None:
    if directory is None:
        raise ConfigError(f"config: '{key}' names no directory; give the one with {content}")
    if not Path(directory).is_dir():
        raise MissingInputError(f"config: '{key}': no directory {directory}; give the one with {content}")


def _check_processes(config: Config) -> None:
    processes, nodes, batch_size = (config["pretrain"][key] for key in ("processes", "nodes", "batch_size"))
    if processes % nodes:
        raise ConfigError(
            f"config: 'pretrain.processes' is {processes}, which 'pretrain.nodes' ({nodes}) does not divide; "
            "choose a multiple of it"
        )
    if processes > batch_size:
        raise ConfigError(
            f"config: 'pretrain.processes' is {processes}, more than the {batch_size} sequences of "
            "'pretrain.batch_size'; start fewer"
        )


def _check_sweep(config: Config) -> None:
    pretrain, curve = config["pretrain"], config["sweep"]["curve"]
    for seed in curve["finetune_seeds"]:
        if seed not in config["sweep"]["finetune_seeds"]:
            raise ConfigError(
                f"config: 'sweep.curve.finetune_seeds' has {seed}, which is not in 'sweep.finetune_seeds'"
            )
    for size in curve["sizes"]:
        if size not in config["sweep"]["sizes"]:
            raise ConfigError(f"config: 'sweep.curve.sizes' has {size!r}, which is not in 'sweep.sizes'; add it there")
        if size not in curve["steps"]:
            raise ConfigError(f"config: 'sweep.curve.steps' has no steps of size {size!r}; add them there")
    if (pretrain["schedule_steps"] or pretrain["steps"]) < pretrain["steps"]:
        raise ConfigError(
            f"config: 'pretrain.schedule_steps' is {pretrain['schedule_steps']}, before the last of 'pretrain.steps' "
            f"({pretrain['steps']}): nothing is learnt at a rate of 0; raise it or leave it null"
        )
    for step in [pretrain["steps"], *(step for size in curve["sizes"] for step in curve["steps"][size])]:
        if step > pretrain["steps"] or step % pretrain["save_every"]:
            raise ConfigError(
                f"config: step {step} is never saved: 'pretrain.save_every' is {pretrain['save_every']} "
                f"and 'pretrain.steps' {pretrain['steps']}; choose a multiple of the one up to the other"
            )


def scale_of(config: Config, scales: list[str]) -> str:
    """The configured scale, if it is one of `scales`; it is needed before the rest can be checked."""
    scale = config["scale"]
    if scale not in scales:
        raise ConfigError(f"config: 'scale' is {scale!r}{_suggestion(scale, scales)}")
    return scale
