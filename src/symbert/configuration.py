"""The configuration: its types, nested as workflow/defaults.yaml, what stages and reports take from it, and its checks.

defaults.yaml has every key with its default and its meaning. A class here has the keys that one stage reads, with type
and range. To add a key: its line there, and its field in the class of the stage, or of the section where no stage reads
it; tests/test_paths.py declares which results it changes. Imports no torch.
"""

import ast
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, to_builtins

from symbert.declared import mistake_in, suggestion
from symbert.errors import ConfigError
from symbert.glue import tasks
from symbert.glue.challenges import COLLECTIONS
from symbert.glue.tasks import (
    BESIDE_GLUE,
    METRICS_OF_CLASSES,
    METRICS_OF_GRADES,
    PUBLISHED,
    SUITES,
    Suite,
    tasks_of_sweep,
)
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.operators import name_of, operators_of
from symbert.sizes import shapes_of
from symbert.sources import (
    EMBEDDED,
    OWN_TEXT,
    SOURCES,
    Config,
    check_directory,
    check_sources,
    is_stand_in,
    parts_of,
    source_of,
)
from symbert.syntax import code_of, definition_of, keys_of, look_in_this_folder


def number(**limits: float) -> Any:
    """The type of a number within limits; 1 becomes 1.0, which has the same key."""
    return Annotated[float, Meta(**({} if "lt" in limits else {"le": MOST}) | limits)]


MOST, MOST_WHOLE = 1e38, 2**63 - 1  # that a float32 and an int64 hold: .inf and seeds of 2**64 would end jobs
Count = Annotated[int, Meta(ge=1, le=MOST_WHOLE)]
Natural = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
Length = Annotated[int, Meta(ge=8, le=512)]  # tokens
Positive = number(gt=0)
NotNegative = number(ge=0)
Share = number(ge=0, lt=1)
FILTERS = keys_of("symbert.corpus.filters", "REASONS_BY_FILTER")
Source = Literal[tuple(SOURCES)]
Publisher = Literal[tuple(name for name in SOURCES if name != OWN_TEXT)]
Annotator = Literal["published", "computed"]
Match = Literal["exact", "suffix"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Recipe = Literal["faithful", "fast"]
NoiseShares = list[number(gt=0, le=1)]
NoiseKind = Literal[(*keys_of("symbert.glue.noise", "EDITS"), "mixed")]
Challenge = Literal[tuple(COLLECTIONS)]
Scalar = bool | int | float | str | None
CODE = "transformers"  # the package whose code is the text `source`; its version is pinned with our dependencies
READ = {"documentation": EMBEDDED, "source": f"{CODE} {version(CODE)}", "copying": "nowhere"}  # small texts, and where
FOLDER = r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z"  # its name
Name = Annotated[str, Meta(pattern=FOLDER)]
Metric = Literal[METRICS_OF_CLASSES + METRICS_OF_GRADES]
Seeds = Annotated[list[Natural], Meta(min_length=1)]


NO_SCIENCE = ("evaluate_every", "save_every", "allow_partial")  # say how much is measured or kept, or what is refused


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings whose keys are all known.

    Files and hashes leave out a key that has the default of its field (`values_of`).
    """


# The settings of stages.


class Filter(Settings):
    """Which documents are kept (paper, appendix A)."""

    rules: list[Literal[FILTERS]]  # the filters that are chosen
    blocked_categories: list[str]
    categories_from: Literal["metadata", "blocklist", "both"]
    match: Match
    min_harmful_perplexity: NotNegative  # exclusive
    max_harmful_perplexity: Positive  # exclusive
    max_bad_fraction: Share = 0.0  # of the lines of a part that may be malformed

    def has(self, rule: str) -> bool:
        """Whether a filter is chosen."""
        return rule in self.rules


class FilterSettings(Filter, kw_only=True):
    """Which documents are kept, by whose annotations."""

    annotations: Annotator


class PackSettings(Settings):
    """How kept documents become rows of token ids."""

    sequence_length: Length
    validation_sequences: Count  # at most: held-out rows that are also training rows are passed over
    max_documents: Count
    sequences_per_shard: Count


class PretrainSettings(Settings, omit_defaults=True):
    """Masked-language-model pre-training (paper, section 3.3)."""

    steps: Count
    batch_size: Count  # sequences per optimizer step, over all devices
    learning_rate: Positive
    warmup_steps: Natural
    weight_decay: NotNegative
    adam_beta1: Share
    adam_beta2: Share
    adam_epsilon: Positive
    gradient_clip: Positive
    mask_probability: number(gt=0, lt=1)
    dropout: Share
    evaluate_every: Count  # steps
    save_every: Count  # steps
    precision: Precision
    recipe: Recipe
    schedule_steps: Count | None = None  # at which the learning rate would reach 0; None: at `steps`


class TaskSettings(Settings):
    """How the rows of a suite's tasks become token ids."""

    max_length: Length
    max_examples: Count | None  # training rows per task; null for all
    max_evaluation_examples: Count | None
    allow_partial: bool


class MinimalPairSettings(Settings):
    """Which minimal pairs models judge, and how these become token ids."""

    max_length: Length
    max_evaluation_examples: Count | None  # pairs per paradigm; null for all
    allow_partial: bool


class GlueSettings(Settings):
    """Fine-tuning on the tasks of a suite (paper, section 3.4)."""

    epochs: Count
    batch_size: Count
    learning_rate: Positive
    warmup_ratio: number(ge=0, le=1)
    weight_decay: NotNegative
    adam_epsilon: Positive
    gradient_clip: Positive
    dropout: Share
    precision: Precision
    recipe: Recipe


class RobustnessSettings(Settings):
    """What fine-tuned models are scored on beside GLUE's own evaluation rows."""

    root: str | None  # directory of the out-of-domain sets; null where no set is asked for
    sets: list[Challenge]
    noise: NoiseShares  # of the letters of the evaluation rows that are changed
    noise_kinds: list[NoiseKind]


# What reports say.


class ReportFacts(Settings):
    """What the report says of a configuration beside its sweep; experiment.json has it."""

    experiment: str
    title: str
    scale: str  # of scores that others measured: imported
    steps: int | None  # of the encoder's pre-training; None: of imported scores that name none
    settings: dict[str, Scalar]  # those that change losses or scores, by their keys in config.yaml
    contrasts: list[list[str]] | None = None  # operators whose escapes are compared; None: each with the first
    escape_loss: float | None = None  # nats, of the key; None: by the unigram entropy of the validation rows


# The sections.


class Common(Settings):
    """The keys at the top, for all stages."""

    scale: str
    source: Publisher
    mirror: str | None
    experiment: Name | None
    title: str | None
    recipe: Recipe
    precision: Precision


def section(own: type[Settings], *stages: type[Settings], every: bool = True) -> type[Settings]:
    """A section that has keys of its own and those of these stages' settings, all of them or any, but for those that
    stand at the top."""
    keys = {field.name: field.type for stage in stages for field in msgspec.structs.fields(stage)}
    read = [(key, kind) for key, kind in keys.items() if key not in Common.__struct_fields__]
    fields = read if every else [(key, kind, msgspec.UNSET) for key, kind in read]
    return msgspec.defstruct(own.__name__, fields, bases=(own,))


class Corpus(Settings):
    """Web text to rows of token ids."""

    source: Source | None
    files: str | None
    annotations: Annotator | None
    parts: Annotated[int, Meta(ge=1, le=100_000)]  # each has a name, and jobs of its own
    revision: str
    keep_raw: bool
    blocklist_url: str
    filter: Filter
    pack: PackSettings


class Execution(Settings):
    """Keys of `pretrain` that change how it is computed, not what."""

    shard_parameters: bool
    micro_batch_size: Count | None
    processes: Count
    nodes: Count


class Robustness(Settings):
    """Scores beside GLUE's evaluation rows."""

    files: str | None
    sets: list[Challenge]
    noise: NoiseShares
    noise_kinds: Annotated[list[NoiseKind], Meta(min_length=1)]


class Tasks(Settings):
    """Keys of `glue` that say where its rows come from, and what is done beside fine-tuning and scoring."""

    source: Publisher | None
    revision: str
    keep_finetuned: bool
    robustness: Robustness


class Rates(Settings):
    """What a plan reckons with where nothing was measured."""

    gpu_flops: Positive
    gpu_layer_seconds: NotNegative
    core_flops: Positive
    core_layer_seconds: NotNegative
    job_seconds: NotNegative


class OwnSize(Settings):
    """The shape of a size of the user's own."""

    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    intermediate_size: Count
    initializer_range: Positive | None = None


class OwnTask(Settings):
    """A task of the user's own: its files, and what to read of them."""

    train: str
    validation: str
    columns: Annotated[list[str], Meta(min_length=1, max_length=2)]  # of text
    metric: Metric | Annotated[list[Metric], Meta(min_length=1)]  # of several, the mean is the score
    label: str = "label"  # its column
    labels: Annotated[list[str | int | bool], Meta(min_length=2)] | None = None  # class names
    kind: Literal["classification", "regression"] = "classification"


class Curve(Settings):
    """Figure 3: scores over checkpoints."""

    sizes: list[str]
    finetune_seeds: Seeds
    steps: dict[str, list[Natural]]


class OwnText(Settings):
    """A small text for `sweep.text`, and how it is cut into rows."""

    source: str  # a name in READ, or module:function of the user's own
    vocabulary: Annotated[int, Meta(ge=200, le=65536)] | None  # word pieces; null: characters
    sequence_length: Length
    validation_sequences: Count


SWEPT: dict[str, Any] = {
    "text": str,
    **{field.name: field.type for kind in (PackSettings, PretrainSettings) for field in msgspec.structs.fields(kind)},
}
"""The keys of the corpus and of pre-training that a sweep may list values of."""

Swept = msgspec.defstruct(
    "Swept",
    [(key, Annotated[list[kind], Meta(min_length=1)], msgspec.UNSET) for key, kind in SWEPT.items()],
    bases=(Settings,),
)


class NamedContrast(Settings):
    """Two values of axes of a grid, compared at every point of the other axes."""

    question: str
    first: dict[str, Any]  # values by axis: {attention: pairwise}
    second: dict[str, Any]
    expected: Literal["shorter", "longer", "equal", "unknown"]  # the first one's time to the escape


class OwnGrid(Swept, kw_only=True):
    """A part of a sweep; an axis without values here has the sweep's."""

    sizes: Annotated[list[str], Meta(min_length=1)] = msgspec.UNSET
    attention: Annotated[list[str], Meta(min_length=1)] = msgspec.UNSET
    pretrain_seeds: Seeds = msgspec.UNSET
    contrasts: dict[Name, NamedContrast] = msgspec.UNSET  # in place of the sweep's


class Sweep(Swept, kw_only=True):
    """The runs that are trained and compared."""

    hosts: Annotated[list[Literal[tuple(HOSTS)]], Meta(min_length=1)]
    sizes: Annotated[list[str], Meta(min_length=1)]
    attention: Annotated[list[str], Meta(min_length=1)]
    contrasts: list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | None
    escape_loss: Positive | None
    pretrain_seeds: Seeds
    finetuned_pretrain_seeds: list[Natural] | None
    finetune_seeds: Seeds
    suites: Annotated[list[str], Meta(min_length=1)]
    tasks: list[str]
    untrained: bool
    anatomy: bool
    probes: list[str]
    curve: Curve
    grids: dict[Name, OwnGrid]


def keys_of_suite(suite: Suite) -> type[Settings]:
    """The keys that a suite beside GLUE may have of its own; on one without tasks nothing is trained."""
    stages = (TaskSettings, GlueSettings) if suite.tasks else (MinimalPairSettings,)
    return section(Settings, *stages, every=False)


Suites = msgspec.defstruct(
    "Suites", [(suite.name, keys_of_suite(suite), msgspec.UNSET) for suite in BESIDE_GLUE], bases=(Settings,)
)


class Configuration(Common):
    """All keys of workflow/defaults.yaml."""

    corpus: Corpus
    pretrain: section(Execution, PretrainSettings)
    hosts: dict[Literal[tuple(OTHERS)], section(Settings, PretrainSettings, every=False)]
    glue: section(Tasks, TaskSettings, GlueSettings)
    suites: Suites
    rates: Rates
    operators: dict[str, dict[str, Any]]
    sizes: dict[str, OwnSize]
    tasks: dict[str, OwnTask]
    texts: dict[Name, OwnText]
    sweep: Sweep


# Reading.


Kind = TypeVar("Kind", bound=Settings)


def settings_from(values: dict[str, Any], kind: type[Kind], origin: str, strict: bool = True) -> Kind:
    """`values` as settings of class `kind`; ConfigError names `origin`, the key, and what it may be.

    Where not `strict`, texts stand for the numbers and truth values that they spell, as `--config` gives them.
    """
    try:
        return msgspec.convert(values, kind, strict=strict)
    except msgspec.ValidationError as error:
        mistake = mistake_in(error, _keys(Configuration), _remedy(str(error)), kind, values)
        raise ConfigError(f"{origin}: {mistake}") from None


REMEDIES = {  # by what msgspec says
    "Expected `str` matching": "write letters, digits, '.', '_' and '-' alone",
    r"Expected `str( \| null)?`, got": "write it in quotes, in config.yaml: those of --config are lost",
    "Expected `bool`": "write true or false",
    r"Expected `int( \| null)?`, got": "write a whole number",
    r"Expected `float( \| null)?`, got": "write a number, as 0.5",
    "Expected `array": "write a list, as [a, b]",
    "Expected `object": "write it as {key: value}, or leave it out",
    "Object missing": "add it",
    f"Invalid enum value '{OWN_TEXT}' - at `\\$.source`": "set 'corpus.source' to it: tasks come from 'source'",
    f"Invalid enum value '{ENCODER}' - at `key` in `\\$.hosts`": "its keys stand in 'pretrain'",
}


def _remedy(mistake: str) -> str:
    """What helps where a value is of another type."""
    remedy = next((remedy for said, remedy in REMEDIES.items() if re.match(said, mistake)), "correct it")
    return f"{remedy}, or null" if re.match(r"Expected `(int|float|array) \| null`", mistake) else remedy


def _keys(kind: type[Settings], section: str = "") -> Iterator[str]:
    """The keys of settings and of the sections in them, each after its section."""
    for field in msgspec.structs.fields(kind):
        yield f"{section}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from _keys(field.type, f"{section}{field.name}.")


def values_of(settings: Settings) -> dict[str, Any]:
    """The settings by key, without those that have their default."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(settings)}
    return {key: value for key, value in msgspec.structs.asdict(settings).items() if value != defaults[key]}


# What a configuration says.


def merge(base: Config, changes: Config) -> Config:
    """`base` with nested `changes`, as Snakemake merges configurations."""
    nested = {
        key: merge(base[key], value)
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **changes, **nested}


def experiment_name(config: Config) -> str:
    """Name of the experiment's folder under results/."""
    sources = dict.fromkeys(source_of(config, stage) for stage in ("corpus", "glue"))
    return config["experiment"] or "-".join([config["scale"], *sources])


def annotations_of(config: Config) -> str:
    """Whether quality warnings and harmful perplexity are published or computed."""
    return config["corpus"]["annotations"] or SOURCES[source_of(config, "corpus")].annotations


def has_filter(config: Config, rule: str) -> bool:
    """Whether one of `symbert.corpus.filters` is chosen."""
    return rule in config["corpus"]["filter"]["rules"]


def _settings_of(config: Config, stage: str, kind: type[Kind], own: Config) -> Kind:
    """Settings whose keys stand in the section of a stage, or at the top of the configuration, but for `own` ones."""
    values = {**config, **config[stage], **own}
    return settings_from({key: values[key] for key in kind.__struct_fields__}, kind, f"config section {stage}")


def training_of(config: Config, host: str, swept: Config | None = None) -> PretrainSettings:
    """How a host is trained: by the section `pretrain`, but for the keys that the section `hosts` has of it, and those
    that are swept."""
    return _settings_of(config, "pretrain", PretrainSettings, {**config["hosts"].get(host, {}), **(swept or {})})


def protocol_of(config: Config, suite: str, kind: type[Kind]) -> Kind:
    """Settings of the section `glue`, but for the keys that the section `suites` has of a suite."""
    return _settings_of(config, "glue", kind, config["suites"].get(suite, {}))


def filter_of(config: Config) -> Config:
    """The choice of documents, but for who annotates them; the names of the filters are in their own order."""
    chosen = {key: value for key, value in config["corpus"]["filter"].items() if key != "max_bad_fraction"}
    return {**chosen, "rules": [rule for rule in FILTERS if has_filter(config, rule)]}


def robustness_of(config: Config) -> Config:
    """Out-of-domain sets lie where `files` says, or where the source has them."""
    chosen = config["glue"]["robustness"]
    root = chosen["files"] or (f"{config['mirror']}/ood" if source_of(config, "glue") == "mirror" else None)
    return {
        "root": root if chosen["sets"] else None,
        "sets": chosen["sets"],
        "noise": chosen["noise"],
        "noise_kinds": chosen["noise_kinds"] if chosen["noise"] else [],
    }


def finetuned_pretrain_seeds(config: Config) -> list[int]:
    """The pre-training seeds whose models are fine-tuned."""
    chosen = config["sweep"]["finetuned_pretrain_seeds"]
    return config["sweep"]["pretrain_seeds"] if chosen is None else chosen


def judging_seeds(config: Config, host: str) -> list[int]:
    """The pre-training seeds of a host that judge minimal pairs: of encoders those that are fine-tuned, if any."""
    return (host == ENCODER and finetuned_pretrain_seeds(config)) or config["sweep"]["pretrain_seeds"]


def read_by(source: str) -> str:
    """Where a small text is read, or the code of the function that returns it. ConfigError for an unknown one."""
    if source in READ:
        return READ[source]
    module, _, name = source.partition(":")
    if not name:
        raise ConfigError(f"config: 'texts' has the source {source!r}{suggestion(source, [*READ, 'module:function'])}")
    look_in_this_folder()
    definition_of(module, name, ast.FunctionDef)
    return code_of(module)


def report_of(config: Config) -> Config:
    """What the report says of a configuration, as `ReportFacts` has it.

    A filter that is not chosen has no settings; keys of `suites` and `hosts` stand beside those that they replace.
    """
    sweep, corpus, filters = config["sweep"], config["corpus"], filter_of(config)
    filtered = {"match": "categories", "min_harmful_perplexity": "perplexity", "max_harmful_perplexity": "perplexity"}
    pretrain = _compared(config, "pretrain", PretrainSettings)
    glue = _compared(config, "glue", TaskSettings) | _compared(config, "glue", GlueSettings)
    settings = {
        "recipe": config["recipe"],
        "corpus.source": source_of(config, "corpus"),
        "glue.source": source_of(config, "glue"),
        **({"corpus.parts": len(parts_of(config))} if source_of(config, "corpus") != OWN_TEXT else {}),
        "corpus.filter.rules": ", ".join(filters["rules"]) or "none",
        **{f"corpus.filter.{key}": filters[key] for key, rule in filtered.items() if has_filter(config, rule)},
        **{f"corpus.pack.{key}": corpus["pack"][key] for key in ("max_documents", "sequence_length")},
        **{f"pretrain.{key}": value for key, value in pretrain.items()},
        **{f"glue.{key}": value for key, value in glue.items()},
        **{
            f"{section}.{own}.{key}": value
            for section in ("suites", "hosts")
            for own in config[section]
            if own in sweep[section]
            for key, value in config[section][own].items()
        },
    }
    return {
        "experiment": experiment_name(config),
        "title": config.get("title") or _title(config),
        "scale": Path(config["scale"]).stem,
        "steps": pretrain["steps"],
        "settings": settings,
        "contrasts": sweep["contrasts"],
        "escape_loss": sweep["escape_loss"],
    }


def _title(config: Config) -> str:
    """The title of the page in words, by the scale or by the experiment's own name."""
    name, source, count = experiment_name(config), source_of(config, "corpus"), len(config["sweep"]["attention"])
    is_own = name != experiment_name({**config, "experiment": None})
    operators = f"{COUNTS[count] if count < len(COUNTS) else count} operator{'' if count == 1 else 's'}"
    text = "stand-in text" if is_stand_in(source) else SOURCES[source].training_text
    return f"{name if is_own else Path(config['scale']).stem.capitalize()}: {operators} on {text}"


def _compared(config: Config, stage: str, kind: type[Settings]) -> Config:
    """The keys of a stage's section that change its results."""
    values = values_of(_settings_of(config, stage, kind, {}))
    return {key: value for key, value in values.items() if key in config[stage] and key not in NO_SCIENCE}


# Operators, sizes and tasks of the user's own.


def define_own(config: Config) -> None:
    """Make `tasks` of a configuration known to this process; commands read them from settings.json.

    In `sweep.attention`, the name of an operator replaces the import path of its class, and in `sweep.tasks` stand all
    that are fine-tuned. ConfigError for a name that another one has, for an unknown class, and for an unknown name in
    the sweep.
    """
    sweep, curve = config["sweep"], config["sweep"]["curve"]
    shapes = shapes_of(config["sizes"])
    for name, definition in config["tasks"].items():
        tasks.define(name, definition)
    axes = {"sweep": sweep, **{f"sweep.grids.{name}": grid for name, grid in sweep["grids"].items()}}
    listed = [part.get("attention", []) for part in axes.values()]
    known_operators = operators_of(config["operators"], chain.from_iterable(listed))
    for words in listed:
        for position, word in enumerate(words):
            if ":" in word:
                words[position] = name_of(word.partition(":")[2])
                config["operators"].setdefault(words[position], {"class": word})
        words[:] = dict.fromkeys(words)
    known = {"attention": known_operators, "sizes": shapes, "text": config["texts"]}
    named = [(f"{key}.{axis}", part.get(axis, []), known[axis]) for axis in known for key, part in axes.items()]
    named += [("sweep.probes", sweep["probes"], known_operators), ("sweep.suites", sweep["suites"], SUITES)]
    named += [("sweep.curve.sizes", curve["sizes"], shapes), ("sweep.curve.steps", curve["steps"], shapes)]
    named += [("sweep.tasks", sweep["tasks"], [*PUBLISHED, *config["tasks"]])]
    for key, words, registry in named:
        for word in (word for word in words if word not in registry):
            raise ConfigError(f"config: '{key}' has {word!r}{suggestion(word, registry)}")
    sweep["tasks"] = tasks_of_sweep(sweep["suites"], sweep["tasks"])


# Checks: every mistake is one line with its remedy, before anything runs.


COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
TAKEN = ("published", "corpus", "runs", "tasks", "scores", "robustness", "measured", "paper", "logs")  # in results/
FREE = ("operators", "first", "second")  # keys whose values may be anything
FOR_REAL_TEXT = ("laptop", "single-gpu", "paper")  # scales whose hours stand-ins are not worth


def check(config: Config) -> None:
    """Refuse a configuration that makes no sense, naming the key and the nearest allowed word.

    In `config` itself, texts of `--config` become the values that they spell, and `experiment` becomes the name.
    ConfigError, or MissingInputError for a folder that is not there.
    """
    config.update(typed(config))
    define_own(config)
    config["experiment"] = experiment_name(config)
    check_sources(config)
    if (robustness := robustness_of(config))["sets"]:
        check_directory("glue.robustness.files", robustness["root"], "the out-of-domain sets (docs/glue.md)")
    for host in config["sweep"]["hosts"]:
        check_training(config, host, {})
    for mistake in _contradictions(config):
        raise ConfigError(f"config: {mistake}")


def typed(config: Config) -> Config:
    """`config` with the values that its texts spell. ConfigError for a key that is unknown or of another type."""
    return _distinct(to_builtins(settings_from(_spelt(config), Configuration, "config", strict=False)))


def _spelt(value: Any, key: str = "", is_free: bool = False) -> Any:
    """`value` with the values that texts of `--config` spell where no declared type says so: null, a path below the
    home folder, which the shell leaves to us, and the values of keys that are FREE."""
    is_free = is_free or key in FREE
    if isinstance(value, dict):
        return {name: _spelt(item, name, is_free) for name, item in value.items()}
    if isinstance(value, list):
        return [_spelt(item, key, is_free) for item in value]
    if value == "null":
        return None
    if is_free and isinstance(value, str):
        with suppress(ValueError):
            return spelt(value)
    return os.path.expanduser(value) if isinstance(value, str) else value  # noqa: PTH111 (a Path would lose the // of a URL)


def spelt(text: str) -> Any:
    """The value that a text spells for which no type is declared: JSON, or a truth value or number as YAML has them.
    ValueError where it is a text."""
    if (word := text.lower()) in TRUTH:
        return TRUTH[word]
    if re.fullmatch(r"[-+]?(\d+\.|\.\d+)(e[-+]?\d+)?", word):  # not in JSON
        return float(text)
    return msgspec.json.decode(text)  # json would take NaN and 1e999


TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def _distinct(value: Any, key: str = "") -> Any:
    """`value` with no item twice in its lists, but for the values of keys that are FREE and the user's own tasks."""
    if isinstance(value, dict) and key not in (*FREE, "tasks"):
        return {name: _distinct(item, name) for name, item in value.items()}
    return [item for place, item in enumerate(value) if item not in value[:place]] if isinstance(value, list) else value


def _contradictions(config: Config) -> Iterator[str]:
    """Keys whose values do not fit together, each with the remedy."""
    sweep, pretrain, curve = config["sweep"], config["pretrain"], config["sweep"]["curve"]
    if config["experiment"] in TAKEN:
        yield f"'experiment' is {config['experiment']}, which results/ has for all; name it otherwise"
    for stage in ("corpus", "glue") if config["scale"] in FOR_REAL_TEXT else ():
        if is_stand_in(source := source_of(config, stage)):
            yield f"'source' of {stage} is {source}, a stand-in; set it to hub or mirror for scale={config['scale']}"
    for key, values, whole in (
        ("curve.finetune_seeds", curve["finetune_seeds"], "finetune_seeds"),
        ("curve.sizes", curve["sizes"], "sizes"),
        ("contrasts", chain.from_iterable(sweep["contrasts"] or ()), "attention"),
        ("finetuned_pretrain_seeds", sweep["finetuned_pretrain_seeds"] or (), "pretrain_seeds"),
    ):
        yield from (
            f"'sweep.{key}' has {value!r}, 'sweep.{whole}' does not; add it there, or change 'sweep.{key}'"
            for value in values
            if value not in sweep[whole]
        )
    least, most = (config["corpus"]["filter"][f"{end}_harmful_perplexity"] for end in ("min", "max"))
    if least >= most:
        yield f"'corpus.filter.min_harmful_perplexity' ({least:g}) is not below the maximum ({most:g}); lower it"
    if pretrain["processes"] % pretrain["nodes"]:
        yield f"'pretrain.processes' is {pretrain['processes']}, no multiple of 'pretrain.nodes' ({pretrain['nodes']})"
    steps, kept = pretrain["steps"], pretrain["save_every"]
    for size in curve["sizes"] if ENCODER in sweep["hosts"] else ():
        for step in curve["steps"].get(size, ()):
            if step > steps or (step < steps and step % kept):
                yield (
                    f"'sweep.curve.steps' has {step} of size {size}, which no run keeps; choose multiples of "
                    f"'pretrain.save_every' ({kept}) up to 'pretrain.steps' ({steps}), or no curve: "
                    "sweep='{curve: {sizes: []}}'"
                )


def check_training(config: Config, host: str, swept: Config) -> None:
    """ConfigError where the learning rate of a host, with the values of swept keys, ends before its training or rises
    until after it."""
    training, sections = training_of(config, host, swept), dict.fromkeys(config["hosts"].get(host, {}), f"hosts.{host}")
    sections |= dict.fromkeys(swept, "sweep")
    steps, warmup, end = (
        f"'{sections.get(key, 'pretrain')}.{key}' ({getattr(training, key)})"
        for key in ("steps", "warmup_steps", "schedule_steps")
    )
    if training.schedule_steps and training.schedule_steps < training.steps:
        raise ConfigError(f"config: {end} is less than {steps}: nothing is learnt at a rate of 0, set it to null")
    if training.warmup_steps > training.steps:
        raise ConfigError(f"config: {warmup} is more than {steps}: the rate would never reach its peak; lower it")
