"""Whether a configuration makes sense, before anything runs: every mistake is one line with its remedy."""

import os
import types
from itertools import chain
from pathlib import Path
from typing import Any

import yaml
from msgspec import to_builtins

from symbert.config import (
    NO_FILTER,
    Config,
    experiment_name,
    files_of,
    robustness_of,
    source_of,
    training_key,
    training_of,
)
from symbert.declared import items_in, options_of, suggestion, types_within, words_of
from symbert.errors import ConfigError, MissingInputError
from symbert.hosts import ENCODER, HOSTS
from symbert.keys import PARALLEL_FILES, Configuration
from symbert.launch import refuse_sharding
from symbert.own import define_own
from symbert.settings import SECTIONS, settings_from
from symbert.sizes import SIZES, RotaryShape
from symbert.sources import SOURCES, check_directory, is_stand_in
from symbert.suites import SUITES
from symbert.tasks import task_named

FOR_REAL_TEXT = ("laptop", "single-gpu", "paper")  # scales whose hours stand-ins are not worth


def check(config: Config) -> None:
    """Refuse a configuration that makes no sense, naming the key and the nearest allowed word.

    In `config` itself, texts of `--config` become the values that they spell, and a scale's file the name of it.
    """
    if isinstance(config.get("corpus"), dict) and config["corpus"].get("filter") == "none":
        config["corpus"]["filter"] = dict(NO_FILTER)
    _read_texts(config, Configuration)
    config.update(to_builtins(settings_from(config, Configuration, "config", strict=False)))
    config["scale"] = Path(config["scale"]).stem
    define_own(config)
    _refuse_repeated(config)
    if config["imported"] and config["experiment"]:
        raise ConfigError("config: 'imported' and 'experiment' are both set; imported scores have their own folder")
    _check_extends(config)
    for stage in ("corpus", "glue"):
        SOURCES[source_of(config, stage)].check(config, stage)
    _check_suites(config)
    _check_protocols(config)
    _check_braces(config)
    _check_robustness(config)
    check_processes(config)
    _check_parallel(config)
    _check_schedules(config)
    _check_sweep(config)


def _read_texts(value: Any, kind: Any) -> Any:
    """`value` with the values that its texts spell wherever its declared type is no text, as nested values of
    Snakemake's `--config` are. In a text, a `~` at the start is the home folder, which the shell leaves to us."""
    if isinstance(value, dict | list):
        inner = types_within(value, kind)
        for name, item in items_in(value):
            value[name] = _read_texts(item, inner.get(name))
    options = options_of(kind)
    if not isinstance(value, str) or kind is None or value in words_of(kind):
        return value
    if value == "null" and types.NoneType in options:
        return None
    if str in options:
        return os.path.expanduser(value)  # noqa: PTH111 (a Path would lose the // of a URL)
    try:
        return value if words_of(kind) else yaml.safe_load(value)
    except yaml.YAMLError:
        return value


def _refuse_repeated(value: Any, key: str = "") -> None:
    """No list of the configuration names anything twice."""
    if isinstance(value, dict | list):
        for name, item in items_in(value):
            _refuse_repeated(item, f"{key}.{name}" if key else str(name))
    if isinstance(value, list):
        for item in value:
            if value.count(item) > 1:
                raise ConfigError(f"config: '{key}' has {item!r} twice; keep one of them")


def refuse_stand_ins(config: Config, stage: str) -> None:
    """ConfigError where a stage would read stand-ins at a scale that is for real text and tasks."""
    source = source_of(config, stage)
    sweep, own = config["sweep"], config["tasks"]
    is_read = stage == "corpus" or "blimp" in sweep["suites"] or not own.keys() >= set(sweep["tasks"])
    if config["scale"] not in FOR_REAL_TEXT or not is_stand_in(source) or not is_read:
        return
    key, remedy = "source", "add source=hub (or source=mirror mirror=DIR)"
    if config[stage]["source"]:
        key, remedy = f"{stage}.source", "set it to hub or mirror"
    raise ConfigError(
        f"config: 'scale' is {config['scale']}, but '{key}' is {source}, stand-ins made from documentation; {remedy}"
    )


def _check_extends(config: Config) -> None:
    extended = config["extends"]
    if extended and extended == experiment_name(config):
        raise ConfigError(f"config: 'extends' is {extended}, this experiment itself; name a new 'experiment'")
    if extended and not Path("results", extended, "settings").is_dir():
        existing = sorted(folder.parent.name for folder in Path("results").glob("*/settings"))
        remedy = suggestion(extended, existing) if existing else "; run that experiment first, or leave it out"
        raise MissingInputError(f"config: 'extends': no experiment results/{extended}{remedy}")


def _check_braces(config: Config) -> None:
    """Snakemake takes braces in the paths of its rules for wildcards, and has no way to escape them."""
    paths = [(f"storage.{kind}", path) for kind, path in config["storage"].items() if path]
    paths += [("corpus.files", path) for path in files_of(config).values()]
    for key, path in paths:
        if set(path) & set("{}"):
            raise ConfigError(
                f"config: '{key}': {path} has braces, which Snakemake takes for wildcards; rename it or link to it"
            )


def _check_suites(config: Config) -> None:
    """Original files are read of GLUE alone."""
    others = [suite for suite in config["sweep"]["suites"] if suite != "glue"]
    if others and not SOURCES[source_of(config, "glue")].is_published:
        raise ConfigError(f"config: 'glue.source' is files, which has no {others[0]}; set it to hub or mirror")


def _check_protocols(config: Config) -> None:
    """Of a suite without tasks no key of training is read."""
    for name, keys in config["suites"].items():
        read = SECTIONS[name].__struct_fields__
        for key in keys if not SUITES[name].tasks else ():
            if key not in read:
                reason = f"nothing is trained on {name}, which reads {', '.join(read)}; leave it out"
                raise ConfigError(f"config: 'suites.{name}.{key}': {reason}")


def _check_robustness(config: Config) -> None:
    chosen = robustness_of(config)
    if chosen["sets"]:
        check_directory("glue.robustness.files", chosen["root"], "the out-of-domain sets (docs/glue.md)")


def check_processes(config: Config) -> None:
    """ConfigError where several processes cannot train together as they are asked to, in whatever host."""
    processes, nodes = (config["pretrain"][key] for key in ("processes", "nodes"))
    if processes % nodes:
        raise ConfigError(
            f"config: 'pretrain.processes' is {processes}, which 'pretrain.nodes' ({nodes}) does not divide; "
            "choose a multiple of it"
        )
    for host in config["sweep"]["hosts"]:
        batch_size, key = training_of(config, host).batch_size, training_key(config, host, "batch_size")
        if processes > batch_size:
            raise ConfigError(
                f"config: 'pretrain.processes' is {processes}, more than the {batch_size} sequences of "
                f"'{key}'; start fewer"
            )
        if config["pretrain"]["shard_parameters"] and processes > 1:
            refuse_sharding(config["recipe"], host, processes, batch_size, key)


def _check_parallel(config: Config) -> None:
    """A text of the user's own has files, and a host that reads it."""
    text, readers = config["parallel"], [name for name, host in HOSTS.items() if not host.reads_corpus]
    if text and not {*readers} & {*config["sweep"]["hosts"]}:
        raise ConfigError(f"config: 'parallel' names text, but 'sweep.hosts' has no {readers[0]}; add it there")
    for key in PARALLEL_FILES if text else ():
        if not Path(text[key]).is_file():
            raise MissingInputError(f"config: 'parallel.{key}': no file {text[key]}; correct it")


def _check_schedules(config: Config) -> None:
    """In no host does the rate end before the training, nor rise until after it."""
    for host in config["sweep"]["hosts"]:
        training = training_of(config, host)
        if (training.schedule_steps or training.steps) < training.steps:
            end, last, remedy = _told_both(config, host, "schedule_steps", "null")
            raise ConfigError(
                f"config: '{end}' is {training.schedule_steps}, before the last of '{last}' ({training.steps}): "
                f"nothing is learnt at a rate of 0; {remedy}"
            )
        if training.warmup_steps > training.steps:
            warm, last, remedy = _told_both(config, host, "warmup_steps", str(training.steps // 20))
            raise ConfigError(
                f"config: '{warm}' is {training.warmup_steps}, more than the {training.steps} of '{last}': the rate "
                f"would never reach its peak; {remedy}"
            )


def _told_both(config: Config, host: str, name: str, value: str) -> tuple[str, str, str]:
    """The keys of a host's `name` and steps, and the remedy to set both."""
    key, last = (training_key(config, host, each) for each in (name, "steps"))
    both = f"{{steps: {training_of(config, host).steps}, {name}: {value}}}"
    is_own = any(each.startswith("hosts.") for each in (key, last))
    words = f"hosts='{{{host}: {both}}}'" if is_own else f"pretrain='{both}'"
    return key, last, f"set both, such as {words}"


def _check_sweep(config: Config) -> None:
    pretrain, curve = config["pretrain"], config["sweep"]["curve"]
    for seed in curve["finetune_seeds"]:
        if seed not in config["sweep"]["finetune_seeds"]:
            raise ConfigError(
                f"config: 'sweep.curve.finetune_seeds' has {seed}, which is not in 'sweep.finetune_seeds'"
            )
    for operator in chain.from_iterable(config["sweep"]["contrasts"] or ()):
        if operator not in config["sweep"]["attention"]:
            raise ConfigError(f"config: 'sweep.contrasts' has {operator!r}, which is not in 'sweep.attention'; add it")
    for seed in config["sweep"]["finetuned_pretrain_seeds"] or ():
        if seed not in config["sweep"]["pretrain_seeds"]:
            raise ConfigError(
                f"config: 'sweep.finetuned_pretrain_seeds' has {seed}, which is not in 'sweep.pretrain_seeds'; add it"
            )
    for task in config["sweep"]["tasks"]:
        for split, path in task_named(task).files.items():
            if not Path(path).exists():
                raise MissingInputError(f"config: 'tasks.{task}.{split}': no file {path}; correct it")
    for size in config["sweep"]["sizes"]:
        if config["sweep"]["anatomy"] and isinstance(SIZES[size], RotaryShape):
            raise ConfigError(
                f"config: 'sweep.anatomy' is true, which does not know the rotary positions of the size {size}; leave "
                "one of them out"
            )
    for size in curve["sizes"]:
        if size not in config["sweep"]["sizes"]:
            raise ConfigError(f"config: 'sweep.curve.sizes' has {size!r}, which is not in 'sweep.sizes'; add it there")
        if size not in curve["steps"]:
            raise ConfigError(f"config: 'sweep.curve.steps' has no steps of size {size!r}; add them there")
        for step in curve["steps"][size] if ENCODER in config["sweep"]["hosts"] else ():
            name = f"config: 'sweep.curve.steps' has {step} of size {size}"
            if step > pretrain["steps"]:
                raise ConfigError(
                    f"{name}, beyond the last step ('pretrain.steps' is {pretrain['steps']}); name earlier ones, or "
                    "leave the curve out: sweep='{curve: {sizes: []}}'"
                )
            if step < pretrain["steps"] and step % pretrain["save_every"]:  # the last step is always kept
                raise ConfigError(
                    f"{name}, no multiple of 'pretrain.save_every' ({pretrain['save_every']}), so it is not kept; "
                    "choose multiples"
                )
