"""The configuration: its types, nested as workflow/defaults.yaml, what stages and reports take from it, and its checks.

defaults.yaml has every key with its default and its meaning. `resolve` makes a `Configuration` of the keys that are
given, once; all else reads its attributes. A class here has the keys that one stage reads, with type and range, or
those of a section. To add a key: its line there, and its field in the class of the stage, or of the section where no
stage reads it, and in `Swept` where it is of pre-training; tests/test_paths.py declares which results it changes.
Imports no torch.
"""

import ast
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType, to_builtins
from msgspec.structs import asdict, replace

from symbert.architectures import ARCHITECTURES, ENCODER, OTHERS
from symbert.declared import mistake_in, suggestion
from symbert.errors import ConfigError
from symbert.foreign import Tuning
from symbert.glue.challenges import COLLECTIONS
from symbert.glue.tasks import BESIDE_GLUE, PUBLISHED, SUITES, CustomTask, suite_of, tasks_of, tasks_of_sweep
from symbert.operators import name_of, operators_of
from symbert.sizes import shapes_of
from symbert.sources import (
    CUSTOM_TEXT,
    DATASET,
    DEMO_PARTS,
    EMBEDDED,
    OF_USERS,
    SOURCES,
    Config,
    check_blocklist_url,
    check_directory,
    check_name,
    first_parts,
    is_stand_in,
    texts_matching,
)
from symbert.syntax import code_of, definition_of, keys_of, look_in_this_folder

MOST, MOST_WHOLE = 1e38, 2**63 - 1  # that a float32 and an int64 hold: .inf and seeds of 2**64 would end jobs
Count = Annotated[int, Meta(ge=1, le=MOST_WHOLE)]
Natural = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
Length = Annotated[int, Meta(ge=8, le=512)]  # tokens
Positive = Annotated[float, Meta(gt=0, le=MOST)]  # 1 becomes 1.0, which has the same key
NotNegative = Annotated[float, Meta(ge=0, le=MOST)]
LearningRate = Positive | Annotated[list[Positive], Meta(min_length=1)]  # of several, one is chosen for each task
Share = Annotated[float, Meta(ge=0, lt=1)]
FILTERS = keys_of("symbert.corpus.filters", "REASONS_BY_FILTER")
NOISE_KINDS = (*keys_of("symbert.glue.noise", "EDITS"), "mixed")
Stage = Literal["corpus", "glue"]  # that has a source
Annotator = Literal["published", "computed"]
Match = Literal["exact", "suffix"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Outcome = Literal["final_loss", "escape"]  # by which learning rates of pre-training are chosen
NoiseShares = list[Annotated[float, Meta(gt=0, le=1)]]
Scalar = bool | int | float | str | None
CODE = "transformers"  # the package whose code is the text `source`; its version is pinned with our dependencies
READ = {"documentation": EMBEDDED, "source": f"{CODE} {version(CODE)}", "copying": "nowhere"}  # small texts, and where
FOLDER = r"^[A-Za-z0-9][A-Za-z0-9._-]*\Z"  # its name
Name = Annotated[str, Meta(pattern=FOLDER)]
Seeds = Annotated[list[Natural], Meta(min_length=1)]
Item = TypeVar("Item")
Listed = Annotated[list[Item], Meta(min_length=1)] | UnsetType  # values of an axis; unset: it is none


# Keys that say how much is measured or kept, what is refused, or how rows are dealt to files.
NO_SCIENCE = ("evaluate_every", "save_every", "allow_partial", "sequences_per_shard")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings whose keys are all known.

    Files and hashes leave out a key that has the default of its field (`non_defaults`).
    """


# The settings of stages.


class Filter(Settings, frozen=True):
    """Which documents are kept (paper, appendix A)."""

    rules: list[str]  # the filters that are chosen
    blocked_categories: list[str]
    categories_from: Literal["metadata", "blocklist", "both"]
    match: Match
    min_harmful_perplexity: NotNegative  # exclusive
    max_harmful_perplexity: Positive  # exclusive

    def has(self, rule: str) -> bool:
        """Whether a filter is chosen."""
        return rule in self.rules


class FilterSettings(Filter, frozen=True, kw_only=True):
    """Which documents are kept, by whose annotations."""

    annotations: Annotator


class PackSettings(Settings, frozen=True):
    """How kept documents become rows of token ids."""

    sequence_length: Length
    validation_sequences: Count  # at most: held-out rows that are also training rows are passed over
    max_documents: Count
    sequences_per_shard: Count


class PretrainKeys(Settings, frozen=True, kw_only=True, omit_defaults=True):
    """Masked-language-model pre-training (paper, section 3.3): the keys that an architecture may have of its own."""

    steps: Count
    batch_size: Count  # sequences per optimizer step, over all devices
    learning_rate: Positive
    warmup_steps: Natural
    weight_decay: NotNegative
    adam_beta1: Share
    adam_beta2: Share
    adam_epsilon: Positive
    gradient_clip: Positive
    mask_probability: Annotated[float, Meta(gt=0, lt=1)]
    dropout: Share
    evaluate_every: Count  # steps
    save_every: Count  # steps
    schedule_steps: Count | None = None  # at which the learning rate would reach 0; None: at `steps`
    decay_steps: Natural | None = None  # of linear decay before that; None: all after the warm-up


class ArchitectureKeys(PretrainKeys, frozen=True, kw_only=True):
    """The same, and where the weights start."""

    init_from: str | None = None  # the folder of a checkpoint; None: drawn by the seed


class PretrainSettings(PretrainKeys, frozen=True, kw_only=True):
    """How a model is pre-trained."""

    precision: Precision
    compile: bool


class PairLimits(Settings, frozen=True, kw_only=True):
    """Which minimal pairs models judge, and how these become token ids."""

    max_length: Length
    max_evaluation_examples: Count | None  # pairs per paradigm, or rows of a task; null for all


class TaskLimits(PairLimits, frozen=True, kw_only=True):
    """How the rows of a suite's tasks become token ids."""

    max_examples: Count | None  # training rows per task; null for all


class MinimalPairSettings(PairLimits, frozen=True, kw_only=True):
    """The same, and whether other pairs than are published will do."""

    allow_partial: bool


class FinetuneKeys(Settings, frozen=True, kw_only=True):
    """Fine-tuning on the tasks of a suite (paper, section 3.4)."""

    epochs: Count
    batch_size: Count
    learning_rate: LearningRate
    warmup_ratio: Annotated[float, Meta(ge=0, le=1)]
    weight_decay: NotNegative
    adam_epsilon: Positive
    gradient_clip: Positive
    dropout: Share


class GlueSettings(FinetuneKeys, frozen=True, kw_only=True):
    """How a model is fine-tuned; where rates are tuned, but for the rate, which is the first of them."""

    learning_rate: Positive
    precision: Precision
    compile: bool


class SuiteKeys(FinetuneKeys, frozen=True, kw_only=True):
    """The keys that a suite may have of its own: of `FinetuneKeys` and of `TaskLimits`."""

    max_length: Length
    max_examples: Count | None
    max_evaluation_examples: Count | None
    allow_partial: bool


class RobustnessSettings(Settings, frozen=True):
    """What fine-tuned models are scored on beside GLUE's own evaluation rows."""

    sets: list[str]
    noise: NoiseShares  # of the letters of the evaluation rows that are changed
    noise_kinds: list[str]


# What reports say.


class ReportSettings(Settings, frozen=True):
    """What the report says of a configuration beside its sweep; experiment.json has it."""

    experiment: str
    title: str
    scale: str  # of scores that others measured: imported
    steps: int | None  # of the encoder's pre-training; None: of imported scores that name none
    settings: dict[str, Scalar]  # those that change losses or scores, by their keys in config.yaml
    contrasts: list[list[str]] | None = None  # operators whose escapes are compared; None: each with the first
    escape_loss: float | None = None  # nats, of the key; None: by the unigram entropy of the validation rows


# The sections.


class FilterSection(Filter, frozen=True, kw_only=True):
    """Which documents are kept, and how many lines may be none."""

    max_bad_fraction: Share  # of the lines of a part that may be malformed


class Dataset(Settings, frozen=True):
    """A dataset as `load_dataset` of the `datasets` library takes it, and its column of text."""

    # owner/name on the hub, a folder, or a format of `data_files`: parquet | json | csv | text | arrow
    path: Annotated[str, Meta(min_length=1)]
    name: str | None = None  # its configuration
    data_files: str | Annotated[list[str], Meta(min_length=1)] | None = None  # patterns; null: all files of the split
    split: str = "train"
    revision: str = "main"  # on the hub
    column: str = "text"


class Corpus(Settings, frozen=True):
    """Web text to rows of token ids."""

    source: str | None
    files: str | None
    dataset: Dataset | None
    annotations: Annotator | None
    parts: Annotated[int, Meta(ge=1, le=100_000)]  # each has a name, and jobs of its own
    revision: str
    keep_raw: bool
    blocklist_url: str
    filter: FilterSection
    pack: PackSettings


class Pretrain(ArchitectureKeys, frozen=True, kw_only=True):
    """Pre-training, and keys that change how it is computed, not what."""

    shard_parameters: bool
    micro_batch_size: Count | None
    together: Count
    processes: Count
    nodes: Count


class Robustness(Settings, frozen=True):
    """Scores beside GLUE's evaluation rows."""

    files: str | None
    sets: list[str]
    noise: NoiseShares
    noise_kinds: Annotated[list[str], Meta(min_length=1)]


class Glue(SuiteKeys, frozen=True, kw_only=True):
    """Fine-tuning, where its rows come from, and what is done beside fine-tuning and scoring."""

    source: str | None
    revision: str
    keep_finetuned: bool
    robustness: Robustness


class Rates(Settings, frozen=True):
    """What a plan reckons with until jobs of the experiment have ended."""

    gpu: Literal["H200", "H100", "A100", "RTX 4090"]
    core_flops: Positive
    core_layer_seconds: NotNegative
    job_seconds: NotNegative


class CustomSize(Settings, frozen=True):
    """The shape of a size of the user's own."""

    num_hidden_layers: Count
    hidden_size: Count
    num_attention_heads: Count
    intermediate_size: Count
    initializer_range: Positive | None = None


class Model(Settings, frozen=True):
    """A model from elsewhere, with a tokenizer of its own: a folder in Hugging Face's layout, or a repository of the
    hub."""

    path: Annotated[str, Meta(min_length=1)]
    revision: str = "main"  # on the hub
    learning_rate: LearningRate | None = None  # of its fine-tunings; None: as `glue` and `suites` have it


class Curve(Settings, frozen=True):
    """Figure 3: scores over checkpoints."""

    sizes: list[str]
    finetune_seeds: Seeds
    steps: dict[str, list[Natural]]


class CustomText(Settings, frozen=True):
    """A small text for `sweep.text`, and how it is cut into rows."""

    source: str  # a name in READ, or module:function of the user's own
    vocabulary: Annotated[int, Meta(ge=200, le=65536)] | None  # word pieces; null: characters
    sequence_length: Length
    validation_sequences: Count


class Swept(Settings, frozen=True, kw_only=True):
    """The keys of the corpus and of pre-training that a sweep may list values of: all of `PackSettings` and of
    `PretrainSettings`, and which small text is read."""

    text: Listed[str] = UNSET
    sequence_length: Listed[Length] = UNSET
    validation_sequences: Listed[Count] = UNSET
    max_documents: Listed[Count] = UNSET
    sequences_per_shard: Listed[Count] = UNSET
    steps: Listed[Count] = UNSET
    batch_size: Listed[Count] = UNSET
    learning_rate: Listed[Positive] = UNSET
    warmup_steps: Listed[Natural] = UNSET
    weight_decay: Listed[NotNegative] = UNSET
    adam_beta1: Listed[Share] = UNSET
    adam_beta2: Listed[Share] = UNSET
    adam_epsilon: Listed[Positive] = UNSET
    gradient_clip: Listed[Positive] = UNSET
    mask_probability: Listed[Annotated[float, Meta(gt=0, lt=1)]] = UNSET
    dropout: Listed[Share] = UNSET
    evaluate_every: Listed[Count] = UNSET
    save_every: Listed[Count] = UNSET
    schedule_steps: Listed[Count | None] = UNSET
    decay_steps: Listed[Natural | None] = UNSET
    precision: Listed[Precision] = UNSET
    compile: Listed[bool] = UNSET


SWEPT = Swept.__struct_fields__


class Tune(Settings, frozen=True, kw_only=True):
    """A learning rate for each cell of a grid, chosen on seeds of its own."""

    learning_rate: Annotated[list[Positive], Meta(min_length=2)]
    seeds: Seeds
    by: Outcome = "final_loss"


class NamedContrast(Settings, frozen=True):
    """Two values of axes of a grid, compared at every point of the other axes."""

    question: str
    first: dict[str, Any]  # values by axis: {attention: pairwise}
    second: dict[str, Any]
    expected: Literal["shorter", "longer", "equal", "unknown"]  # the first one's time to the escape


class CustomGrid(Swept, frozen=True, kw_only=True):
    """A part of a sweep; an axis without values here has the sweep's."""

    sizes: Listed[str] = UNSET
    attention: Listed[str] = UNSET
    pretrain_seeds: Seeds | UnsetType = UNSET
    contrasts: dict[Name, NamedContrast] | UnsetType = UNSET  # in place of the sweep's
    tune: Tune | UnsetType | None = UNSET


class Sweep(Swept, frozen=True, kw_only=True):
    """The runs that are trained and compared."""

    architectures: Annotated[list[str], Meta(min_length=1)]
    sizes: Annotated[list[str], Meta(min_length=1)]
    attention: list[str]  # none: nothing is pre-trained
    contrasts: list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | None
    escape_loss: Positive | None
    pretrain_seeds: Seeds
    tune: Tune | None
    finetuned_pretrain_seeds: list[Natural] | None
    finetune_seeds: Seeds
    tuning_seeds: Seeds
    suites: Annotated[list[str], Meta(min_length=1)]
    tasks: list[str]
    untrained: bool
    anatomy: bool
    curve: Curve
    grids: dict[Name, CustomGrid]


class Configuration(Settings, frozen=True, kw_only=True):
    """All keys of workflow/defaults.yaml."""

    scale: str
    source: str
    mirror: str | None
    experiment: Name | None
    title: str | None
    compile: bool
    precision: Precision
    corpus: Corpus
    pretrain: Pretrain
    architectures: dict[str, dict[str, Any]]  # of `ArchitectureKeys`, those that have another value there
    glue: Glue
    suites: dict[str, dict[str, Any]]  # of `SuiteKeys`, or of `MinimalPairSettings` where nothing is trained
    rates: Rates
    operators: dict[str, dict[str, Any]]
    sizes: dict[str, CustomSize]
    tasks: dict[str, CustomTask]
    texts: dict[Name, CustomText]
    models: dict[Name, Model]
    sweep: Sweep


# Reading.


Kind = TypeVar("Kind", bound=Settings)


def settings_from(values: dict[str, Any], cls: type[Kind], origin: str, strict: bool = True, section: str = "") -> Kind:
    """`values` as settings of class `cls`; ConfigError names `origin`, the key below `section`, and what it may be.

    Where not `strict`, texts stand for the numbers and truth values that they spell, as `--config` gives them.
    """
    try:
        return msgspec.convert(values, cls, strict=strict)
    except msgspec.ValidationError as error:
        mistake = mistake_in(error, _keys(Configuration), _remedy(str(error)), cls, values, section)
        raise ConfigError(f"{origin}: {mistake}") from None


REMEDIES = {  # by what msgspec says
    "Expected `str` matching": "write letters, digits, '.', '_' and '-' alone",
    r"Expected `str( \| null)?`, got `array": "write one text, without brackets",
    r"Expected `[^`]*\bstr( \| null)?`, got": "write it in quotes, in config.yaml: those of --config are lost",
    "Expected `bool`": "write true or false",
    r"Expected `int( \| null)?`, got": "write a whole number",
    r"Expected `float( \| null)?`, got": "write a number, as 0.5",
    r"Expected `float \| array( \| null)?`, got": "write a number, or a list of them",
    "Expected `array": "write a list, as [a, b]",
    "Expected `object": "write it as {key: value}, or leave it out",
    "Object missing": "add it",
}


def _remedy(mistake: str) -> str:
    """What helps where a value is of another type."""
    remedy = next((remedy for said, remedy in REMEDIES.items() if re.match(said, mistake)), "correct it")
    return f"{remedy}, or null" if re.match(r"Expected `(int|float|array) \| null`", mistake) else remedy


def _keys(cls: type[Settings], section: str = "") -> Iterator[str]:
    """The keys of settings and of the sections in them, each after its section."""
    for field in msgspec.structs.fields(cls):
        yield f"{section}{field.name}"
        if isinstance(field.type, type) and issubclass(field.type, Settings):
            yield from _keys(field.type, f"{section}{field.name}.")


def given(section: Settings) -> dict[str, Any]:
    """The values of a section by key, without those that are unset."""
    return {key: value for key, value in asdict(section).items() if value is not UNSET}


def non_defaults(settings: Settings) -> dict[str, Any]:
    """The settings by key, without those that have their default."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(settings)}
    return {key: value for key, value in asdict(settings).items() if value != defaults[key]}


# What a configuration says.


def merge(base: Config, changes: Config) -> Config:
    """`base` with nested `changes`, as Snakemake merges configurations."""
    nested = {
        key: merge(base[key], value)
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **changes, **nested}


def source_of(config: Configuration, stage: Stage) -> str:
    """The source of a stage: its own, or the common one."""
    return (config.corpus.source if stage == "corpus" else config.glue.source) or config.source


def root_of(config: Configuration, stage: Stage) -> str | None:
    """The folder of the published files that a stage reads; None where they come from the publishers' hosts.

    Beside text that users bring, UT1, the vocabulary and the KenLM model come from the mirror, if one is named.
    """
    return {"embedded": EMBEDDED, "hub": None}.get(source_of(config, stage), config.mirror)


def parts_of(config: Configuration) -> list[str]:
    """Names of the parts that a configuration asks for, in their order."""
    most = DEMO_PARTS if source_of(config, "corpus") == "embedded" else config.corpus.parts
    return first_parts(min(config.corpus.parts, most))


def custom_texts(config: Configuration) -> list[str]:
    """The files that `corpus.files` matches, where they are the corpus; ConfigError names one that cannot be read."""
    return texts_matching(config.corpus.files) if source_of(config, "corpus") == CUSTOM_TEXT else []


def experiment_name(config: Configuration) -> str:
    """Name of the experiment's folder under results/."""
    sources = dict.fromkeys(source_of(config, stage) for stage in stages_of(config))
    return config.experiment or "-".join([config.scale, *sources])


def stages_of(config: Configuration) -> list[Stage]:
    """The stages whose sources are read: no corpus where nothing is pre-trained."""
    return ["corpus", "glue"] if config.sweep.attention else ["glue"]


def annotations_of(config: Configuration) -> Annotator:
    """Whether quality warnings and harmful perplexity are published or computed."""
    return config.corpus.annotations or SOURCES[source_of(config, "corpus")].annotations


def _settings_of(config: Configuration, section: Settings, cls: type[Kind], own: Mapping[str, Any]) -> Kind:
    """Settings whose keys stand in a section, or at the top of the configuration, but for `own` ones."""
    values = {**asdict(config), **asdict(section), **own}
    return msgspec.convert({key: values[key] for key in cls.__struct_fields__}, cls)


def training_of(config: Configuration, architecture: str, swept: Mapping[str, Any] | None = None) -> PretrainSettings:
    """How an architecture is trained: by the section `pretrain`, but for the keys that the section `architectures` has
    of it, and those that are swept."""
    return _settings_of(
        config, config.pretrain, PretrainSettings, {**config.architectures.get(architecture, {}), **(swept or {})}
    )


def init_from(config: Configuration, architecture: str) -> str | None:
    """The folder of the checkpoint that the trainings of an architecture begin from; None: their seeds draw weights."""
    path: str | None = config.architectures.get(architecture, {}).get("init_from", config.pretrain.init_from)
    return path


def protocol_of(config: Configuration, suite: str, cls: type[Kind], model: Model | None = None) -> Kind:
    """Settings of the section `glue`, but for the keys that the section `suites` has of a suite, and for the learning
    rate that a model from elsewhere has of its own."""
    first = {"learning_rate": rates_of(config, suite, model)[0]}
    return _settings_of(config, config.glue, cls, config.suites.get(suite, {}) | first)


def rates_of(config: Configuration, suite: str, model: Model | None = None) -> list[float]:
    """The learning rates with which models, or a model from elsewhere, are fine-tuned on a suite, the lowest first: of
    several, one is chosen for each task."""
    usual: LearningRate = config.suites.get(suite, {}).get("learning_rate", config.glue.learning_rate)
    chosen = model.learning_rate if model and model.learning_rate is not None else usual
    return sorted(chosen) if isinstance(chosen, list) else [chosen]


def tuning_of(config: Configuration, suite: str, model: Model | None = None) -> Tuning | None:
    """How the learning rate is chosen for each task of a suite; None where there is one rate."""
    rates = rates_of(config, suite, model)
    return Tuning(rates, sorted(config.sweep.tuning_seeds)) if rates[1:] else None


def is_tuned(config: Configuration) -> bool:
    """Whether any learning rate of fine-tuning is chosen among several."""
    tasks = tasks_of_sweep(config.sweep.suites, config.sweep.tasks)
    suites = {suite_of(task).name for task in tasks}
    models = [*([None] if config.sweep.attention else []), *config.models.values()]
    return any(tuning_of(config, suite, model) for suite in suites for model in models)


def filter_of(config: Configuration) -> FilterSettings:
    """The choice of documents; the names of the filters are in their own order."""
    chosen = {key: getattr(config.corpus.filter, key) for key in Filter.__struct_fields__}
    chosen["rules"] = [rule for rule in FILTERS if config.corpus.filter.has(rule)]
    return FilterSettings(**chosen, annotations=annotations_of(config))


def robustness_of(config: Configuration) -> RobustnessSettings:
    """What models are scored on beside GLUE's own evaluation rows; kinds of noise count where there is some."""
    chosen = config.glue.robustness
    return RobustnessSettings(chosen.sets, chosen.noise, chosen.noise_kinds if chosen.noise else [])


def root_of_sets(config: Configuration) -> str | None:
    """The folder of the out-of-domain sets: where `files` says, or where the source has them; None without sets."""
    chosen = config.glue.robustness
    root = chosen.files or (f"{config.mirror}/ood" if source_of(config, "glue") == "mirror" else None)
    return root if chosen.sets else None


def finetuned_pretrain_seeds(config: Configuration) -> list[int]:
    """The pre-training seeds whose models are fine-tuned."""
    chosen = config.sweep.finetuned_pretrain_seeds
    return config.sweep.pretrain_seeds if chosen is None else chosen


def minimal_pair_seeds(config: Configuration, architecture: str) -> list[int]:
    """The pre-training seeds of an architecture that judge minimal pairs: of encoders those that are fine-tuned, if
    any."""
    return (architecture == ENCODER and finetuned_pretrain_seeds(config)) or config.sweep.pretrain_seeds


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


def report_of(config: Configuration) -> ReportSettings:
    """What the report says of a configuration."""
    sweep = config.sweep
    chosen = {"suites": (config.suites, sweep.suites), "architectures": (config.architectures, sweep.architectures)}
    beside = {
        f"{section}.{name}.{key}": _said(value)
        for section, (own, swept) in chosen.items()
        for name, keys in own.items()
        if name in swept
        for key, value in keys.items()
    }
    rates = {name: model.learning_rate for name, model in config.models.items() if model.learning_rate is not None}
    beside |= {f"models.{name}.learning_rate": _said(rate) for name, rate in rates.items()}
    if is_tuned(config):
        beside["sweep.tuning_seeds"] = _said(config.sweep.tuning_seeds)
    return ReportSettings(
        experiment=experiment_name(config),
        title=config.title or _title(config),
        scale=Path(config.scale).stem,
        steps=config.pretrain.steps if sweep.attention else None,
        settings=dict(_determining(config)) | beside,
        contrasts=sweep.contrasts,
        escape_loss=sweep.escape_loss,
    )


def _said(value: Any) -> Scalar:
    """A value, or several of them in words."""
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else value


# Where a configuration has keys that stages have beside those of their section.
ELSEWHERE_IN_FILE = {"compile": "compile", "precision": "precision", "annotations": "corpus.annotations"}
FILTER_OF = {  # the filter that a setting belongs to: without it the setting is none
    **dict.fromkeys(("blocked_categories", "categories_from", "match"), "categories"),
    **dict.fromkeys(("min_harmful_perplexity", "max_harmful_perplexity"), "perplexity"),
}


def _determining(config: Configuration) -> Iterator[tuple[str, Scalar]]:
    """All that changes losses of the encoder or scores on GLUE, by its key: where text and tasks come from, and every
    field of the settings in the steps of an experiment."""
    stages = stages_of(config)
    corpus, glue = source_of(config, "corpus"), source_of(config, "glue")
    yield from ((f"{stage}.source", source_of(config, stage)) for stage in stages)
    if "corpus" in stages and corpus not in OF_USERS:
        yield "corpus.parts", len(parts_of(config))
    filters = filter_of(config)
    if "corpus" in stages and corpus == "hub":
        yield "corpus.revision", config.corpus.revision
        if filters.has("categories") and filters.categories_from != "metadata":
            yield "corpus.blocklist_url", config.corpus.blocklist_url
    if glue == "hub":
        yield "glue.revision", config.glue.revision
    sections: list[tuple[str, Settings]] = []
    if "corpus" in stages:
        sections += [("corpus.filter", filters), ("corpus.pack", config.corpus.pack)]
        sections += [("pretrain", training_of(config, ENCODER))]
        if start := init_from(config, ENCODER):
            yield "pretrain.init_from", start
    sections += [("glue", protocol_of(config, "glue", cls)) for cls in (GlueSettings, TaskLimits)]
    if "corpus" in stages and corpus == DATASET and config.corpus.dataset:
        sections.append(("corpus.dataset", config.corpus.dataset))
    for section, settings in sections:
        for key, value in non_defaults(settings).items():
            is_chosen = key not in FILTER_OF or filters.has(FILTER_OF[key])
            if is_chosen and key not in NO_SCIENCE:
                yield ELSEWHERE_IN_FILE.get(key, f"{section}.{key}"), _said(value)
    if rates_of(config, "glue")[1:]:
        yield "glue.learning_rate", _said(rates_of(config, "glue"))


def _title(config: Configuration) -> str:
    """The title of the page in words, by the scale or by the experiment's own name."""
    name, operators, models = experiment_name(config), len(config.sweep.attention), len(config.models)
    is_custom = name != experiment_name(replace(config, experiment=None))
    experiment = name if is_custom else Path(config.scale).stem.capitalize()
    if not operators:
        source = source_of(config, "glue")
        tasks = "stand-in tasks" if is_stand_in(source) else SOURCES[source].tasks
        return f"{experiment}: {_counted(models, 'model')} from elsewhere on {tasks}"
    source = source_of(config, "corpus")
    text = "stand-in text" if is_stand_in(source) else SOURCES[source].training_text
    beside = f", beside {_counted(models, 'model')} from elsewhere" if models else ""
    return f"{experiment}: {_counted(operators, 'operator')} on {text}{beside}"


def _counted(count: int, thing: str) -> str:
    return f"{COUNTS[count] if count < len(COUNTS) else count} {thing}{'' if count == 1 else 's'}"


# Operators, sizes and tasks of the user's own.


def define_custom(config: Configuration) -> Configuration:
    """Make `tasks` of a configuration known to this process; commands read them from settings.json.

    In `sweep.attention` of the returned one, the name of an operator replaces the import path of its class, and in
    `sweep.tasks` stand all that are fine-tuned. ConfigError for a name that another one has, for an unknown class, and
    for an unknown name in the sweep.
    """
    tasks_of(config.tasks)
    own, sweep = dict(config.operators), config.sweep
    listed = chain(sweep.attention, *(grid.attention or [] for grid in sweep.grids.values()))
    operators, shapes = operators_of(own, listed), shapes_of(config.sizes)

    def named(words: list[str] | UnsetType) -> list[str] | UnsetType:
        if words is UNSET:
            return UNSET
        paths = {word: name_of(word.partition(":")[2]) for word in words if ":" in word}
        own.update({name: {"class": word} for word, name in paths.items() if name not in own})
        return list(dict.fromkeys(paths.get(word, word) for word in words))

    sweep = replace(sweep, attention=named(sweep.attention))
    grids = {name: replace(grid, attention=named(grid.attention)) for name, grid in sweep.grids.items()}
    known: dict[str, Collection[str]] = {"attention": operators, "sizes": shapes, "text": config.texts}
    axes = {"sweep": given(sweep), **{f"sweep.grids.{name}": given(grid) for name, grid in grids.items()}}
    words: list[tuple[str, Iterable[str], Collection[str]]] = [
        (f"{key}.{axis}", part.get(axis, []), names) for axis, names in known.items() for key, part in axes.items()
    ]
    words += [("sweep.suites", sweep.suites, SUITES)]
    words += [("sweep.curve.sizes", sweep.curve.sizes, shapes), ("sweep.curve.steps", sweep.curve.steps, shapes)]
    words += [("sweep.tasks", sweep.tasks, [*PUBLISHED, *config.tasks])]
    _refuse_unknown(words)
    sweep = replace(sweep, grids=grids, tasks=tasks_of_sweep(sweep.suites, sweep.tasks))
    return replace(config, operators=own, sweep=sweep)


# Checks: every mistake is one line with its remedy, before anything runs.


COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
# Folders in results/ that all experiments share.
TAKEN = ("published", "corpus", "runs", "models", "tasks", "scores", "robustness", "measured", "tuned", "paper", "logs")
FREE = ("operators", "first", "second")  # keys whose values may be anything
FOR_REAL_TEXT = ("laptop", "single-gpu", "paper", "encoders")  # scales whose hours stand-ins are not worth


def resolve(values: Config) -> Configuration:
    """The configuration that `values` by key say, in which texts of `--config` are the values that they spell, every
    operator and task of the sweep has its name, and so has the experiment.

    What makes no sense is a ConfigError, with the key and the nearest allowed word, or a MissingInputError for a folder
    that is not there.
    """
    config = define_custom(typed(values))
    config = replace(config, experiment=experiment_name(config))
    _check_sources(config)
    if config.glue.robustness.sets:
        check_directory("glue.robustness.files", root_of_sets(config), "the out-of-domain sets (docs/glue.md)")
    for architecture in config.sweep.architectures if config.sweep.attention else ():
        check_training(config, architecture, {})
    trained = _contradictory_trainings(config) if config.sweep.attention else ()
    for mistake in chain(_contradictions(config), trained, _contradictory_models(config)):
        raise ConfigError(f"config: {mistake}")
    return config


def typed(values: Config) -> Configuration:
    """`values` with the types of their keys. ConfigError for a key that is unknown or of another type."""
    config = settings_from(_spelt(values), Configuration, "config", strict=False)
    config = msgspec.convert(_distinct(to_builtins(config)), Configuration)
    publishers, beside = [name for name in SOURCES if name not in OF_USERS], [suite.name for suite in BESIDE_GLUE]
    _refuse_unknown(
        [
            ("source", [config.source], publishers),
            ("corpus.source", [config.corpus.source or config.source], SOURCES),
            ("glue.source", [config.glue.source or config.source], publishers),
            ("corpus.filter.rules", config.corpus.filter.rules, FILTERS),
            ("glue.robustness.sets", config.glue.robustness.sets, COLLECTIONS),
            ("glue.robustness.noise_kinds", config.glue.robustness.noise_kinds, NOISE_KINDS),
            ("sweep.architectures", config.sweep.architectures, ARCHITECTURES),
            ("architectures", config.architectures, OTHERS),
            ("suites", config.suites, beside),
        ]
    )

    def own(keys: Config, section: Settings, cls: type[Settings], name: str) -> Config:
        """Keys that stand in place of those of a section."""
        whole = {key: getattr(section, key) for key in cls.__struct_fields__} | keys
        read = settings_from(whole, cls, "config", strict=False, section=name)
        return {key: getattr(read, key) for key in keys}

    architectures = {
        name: own(keys, config.pretrain, ArchitectureKeys, f"architectures.{name}")
        for name, keys in config.architectures.items()
    }
    kinds = {name: SuiteKeys if SUITES[name].tasks else MinimalPairSettings for name in config.suites}
    suites = {name: own(keys, config.glue, kinds[name], f"suites.{name}") for name, keys in config.suites.items()}
    return replace(config, architectures=architectures, suites=suites)


def _refuse_unknown(names: Iterable[tuple[str, Iterable[str], Collection[str]]]) -> None:
    """ConfigError for a key that has a name which is not among the known ones."""
    for key, chosen, known in names:
        for name in (name for name in chosen if name not in known):
            remedy = ELSEWHERE.get((key, name)) or suggestion(name, known) or "; define it under 'texts'"
            raise ConfigError(f"config: '{key}' has {name!r}{remedy}")


ELSEWHERE = {  # where a name would have its effect
    **dict.fromkeys([("source", name) for name in OF_USERS], "; set 'corpus.source' to it: tasks come from 'source'"),
    ("architectures", ENCODER): "; its keys stand in 'pretrain'",
}


def _spelt(value: Any) -> Any:
    """`value` with the values that texts of `--config` spell where no declared type says so: null, a text in the quotes
    of JSON, a path below the home folder, which the shell leaves to us, and the values of keys that are FREE."""

    def read(text: str, is_free: bool) -> Any:
        with suppress(ValueError):
            if is_free or _is_misread(text):
                return spelt(text)
        return os.path.expanduser(text)  # noqa: PTH111 (a Path would lose the // of a URL)

    return _with_texts(value, read)


def quoted(value: Any) -> Any:
    """Settings of a file as `check` takes them: texts that would be read as what they spell are JSON."""

    def quote(text: str, is_free: bool) -> str:
        with suppress(ValueError):
            if is_free or _is_misread(text):
                spelt(text)
                return json.dumps(text)
        return text

    return _with_texts(value, quote)


def _is_misread(text: str) -> bool:
    return text == "null" or text.startswith('"')


def _with_texts(value: Any, change: Callable[[str, bool], Any], key: str = "", is_free: bool = False) -> Any:
    """`value` with other texts; those of keys that are FREE are changed as such."""
    is_free = is_free or key in FREE
    if isinstance(value, dict):
        return {name: _with_texts(item, change, name, is_free) for name, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, change, key, is_free) for item in value]
    return change(value, is_free) if isinstance(value, str) else value


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


def _check_sources(config: Configuration) -> None:
    """ConfigError or MissingInputError where a configuration lacks a folder, file or address that its sources need."""
    check_blocklist_url(config.corpus.blocklist_url)
    for source in (source_of(config, stage) for stage in stages_of(config)):
        if source == "mirror" or (source in OF_USERS and config.mirror):
            check_directory("mirror", config.mirror, "the files in the publishers' layout")
    if "corpus" in stages_of(config):
        custom_texts(config)
    if source_of(config, "corpus") == DATASET and config.corpus.dataset is None:
        raise ConfigError("config: 'corpus.source' is dataset, but 'corpus.dataset' is null; add {path: owner/name}")
    for name, task in config.tasks.items():
        check_name(f"tasks.{name}.train", task.train)
        check_name(f"tasks.{name}.validation", task.validation)


def _contradictions(config: Configuration) -> Iterator[str]:
    """Keys whose values do not fit together, each with the remedy."""
    filters = config.corpus.filter
    if config.experiment in TAKEN:
        yield f"'experiment' is {config.experiment}, which results/ has for all; name it otherwise"
    for stage in stages_of(config) if config.scale in FOR_REAL_TEXT else ():
        if is_stand_in(source := source_of(config, stage)):
            yield f"'source' of {stage} is {source}, a stand-in; set it to hub or mirror for scale={config.scale}"
    least, most = filters.min_harmful_perplexity, filters.max_harmful_perplexity
    if least >= most:
        yield f"'corpus.filter.min_harmful_perplexity' ({least:g}) is not below the maximum ({most:g}); lower it"


def _contradictory_trainings(config: Configuration) -> Iterator[str]:
    """The same of pre-training, and of what is looked at of its models."""
    sweep, pretrain, curve = config.sweep, config.pretrain, config.sweep.curve
    parts: list[tuple[str, Iterable[Any], str, list[Any]]] = [
        ("curve.finetune_seeds", curve.finetune_seeds, "finetune_seeds", sweep.finetune_seeds),
        ("curve.sizes", curve.sizes, "sizes", sweep.sizes),
        ("contrasts", chain.from_iterable(sweep.contrasts or ()), "attention", sweep.attention),
        ("finetuned_pretrain_seeds", sweep.finetuned_pretrain_seeds or (), "pretrain_seeds", sweep.pretrain_seeds),
    ]
    for key, values, of, whole in parts:
        for value in (value for value in values if value not in whole):
            yield f"'sweep.{key}' has {value!r}, 'sweep.{of}' does not; add it there, or change 'sweep.{key}'"
    if pretrain.processes % pretrain.nodes:
        yield f"'pretrain.processes' is {pretrain.processes}, no multiple of 'pretrain.nodes' ({pretrain.nodes})"
    if pretrain.together > 1 and (pretrain.processes > 1 or pretrain.shard_parameters):
        yield (
            f"'pretrain.together' is {pretrain.together}, runs of one process, but 'pretrain.processes' is "
            f"{pretrain.processes} and 'pretrain.shard_parameters' {str(pretrain.shard_parameters).lower()}; leave the "
            "first or the others out"
        )
    begun = sweep.untrained or any(0 in curve.steps.get(size, ()) for size in curve.sizes)
    if begun and init_from(config, ENCODER):
        yield (
            "'pretrain.init_from' is a checkpoint, but 'sweep.untrained' or a step 0 of 'sweep.curve' asks for models "
            "without pre-training; leave one out"
        )
    steps, kept = pretrain.steps, pretrain.save_every
    for size in curve.sizes if ENCODER in sweep.architectures else ():
        for step in curve.steps.get(size, ()):
            if step > steps or (step < steps and step % kept):
                yield (
                    f"'sweep.curve.steps' has {step} of size {size}, which no run keeps; choose multiples of "
                    f"'pretrain.save_every' ({kept}) up to 'pretrain.steps' ({steps}), or no curve: "
                    "sweep='{curve: {sizes: []}}'"
                )


def _contradictory_models(config: Configuration) -> Iterator[str]:
    """Models from elsewhere that could be taken for another one, and what leaves nothing to compare."""
    sweep, seen = config.sweep, dict[str, str]()
    own = {*operators_of(config.operators), *(f"{size}-{name}" for size in sweep.sizes for name in sweep.attention)}
    for name in config.models:
        if (other := seen.setdefault(name.lower(), name)) != name:
            yield f"'models' has {other} and {name}, whose names differ in case alone; rename one"
        if name in own:
            yield f"'models' has {name}, which is the name of an operator or of a model of it; rename it"
    if not sweep.attention and not config.models:
        yield "'sweep.attention' is [] and 'models' is {}, so nothing is compared; name an operator, or a model"
    if is_tuned(config) and (reported := sorted({*sweep.tuning_seeds} & {*sweep.finetune_seeds})):
        yield (
            f"'sweep.tuning_seeds' and 'sweep.finetune_seeds' both have {reported[0]}; a rate is judged on other seeds "
            "than it was chosen on, change one"
        )


def check_training(config: Configuration, architecture: str, swept: Mapping[str, Any]) -> None:
    """ConfigError where the learning rate of an architecture, with the values of swept keys, ends before its training,
    rises until after it, or falls before it has risen."""
    training = training_of(config, architecture, swept)
    sections = dict.fromkeys(config.architectures.get(architecture, {}), f"architectures.{architecture}")
    sections |= dict.fromkeys(swept, "sweep")
    steps, warmup, end, decay = (
        f"'{sections.get(key, 'pretrain')}.{key}' ({getattr(training, key)})"
        for key in ("steps", "warmup_steps", "schedule_steps", "decay_steps")
    )
    if training.schedule_steps and training.schedule_steps < training.steps:
        raise ConfigError(f"config: {end} is less than {steps}: nothing is learned at a rate of 0, set it to null")
    if training.warmup_steps > training.steps:
        raise ConfigError(f"config: {warmup} is more than {steps}: the rate would never reach its peak; lower it")
    whole = training.schedule_steps or training.steps
    if training.warmup_steps + (training.decay_steps or 0) > whole:
        of = end if training.schedule_steps else steps
        raise ConfigError(f"config: {decay} and {warmup} are together more than {of}; lower one")
