"""The keys of config.yaml with their types and ranges, nested as in the file, where a comment has the meaning of each.

A key that a stage reads is declared with the stage's settings (`symbert.settings`); here are those that stand in no
settings file. All keys are required: config.yaml has the only defaults.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from symbert.filters import FILTERS
from symbert.hosts import HOSTS, OTHERS
from symbert.own import KEYS
from symbert.settings import (
    Annotator,
    Challenge,
    Count,
    Filter,
    GlueSettings,
    Length,
    Natural,
    NoiseKind,
    NoiseShares,
    NotNegative,
    PackSettings,
    Positive,
    Precision,
    PretrainSettings,
    Publisher,
    Recipe,
    Settings,
    TaskSettings,
)
from symbert.sources import DEMO, SOURCES
from symbert.suites import BESIDE_GLUE
from symbert.tasks import METRICS_OF_CLASSES, METRICS_OF_GRADES

FOLDER = "^[A-Za-z0-9][A-Za-z0-9._-]*$"  # its name
Name = Annotated[str, Meta(pattern=FOLDER)]
Source = Literal[tuple(SOURCES)]
Metric = Literal[METRICS_OF_CLASSES + METRICS_OF_GRADES]
Seeds = Annotated[list[Natural], Meta(min_length=1)]


class Common(Settings):
    """The keys at the top, for all stages."""

    scale: str
    source: Publisher
    mirror: str | None
    experiment: Name | None
    recipe: Recipe
    precision: Precision


def section(own: type[Settings], *stages: type[Settings]) -> type[Settings]:
    """A section that has keys of its own and those of these stages' settings, but for those that stand at the top."""
    keys = {field.name: field.type for stage in stages for field in msgspec.structs.fields(stage)}
    read = [(key, kind) for key, kind in keys.items() if key not in Common.__struct_fields__]
    return msgspec.defstruct(own.__name__, read, bases=(own,))


class ChosenFilter(Filter):
    """The filters that are applied."""

    rules: list[Literal[FILTERS]]


class Corpus(Settings):
    """Web text to rows of token ids."""

    source: Source | None
    files: str | None
    annotations: Annotator | None
    parts: Count
    revision: str
    keep_raw: bool
    harmful_model: Annotated[str, Meta(pattern="^[A-Za-z0-9._-]+$")]
    blocklist_url: str
    filter: ChosenFilter
    pack: PackSettings


class Execution(Settings):
    """Keys of `pretrain` that change how it is computed, not what."""

    recompute_activations: bool
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

    source: Source | None
    files: str | None
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
    position_embedding_type: Literal["learned", "rotary"] = "learned"


class OwnTask(Settings):
    """A task of the user's own: its files, and what to read of them."""

    train: str
    validation: str
    columns: Annotated[list[str], Meta(min_length=1, max_length=2)]  # of text
    metric: Metric | Annotated[list[Metric], Meta(min_length=1)]  # of several, the mean is the score
    label: str = "label"  # its column
    labels: Annotated[list[str | int | bool], Meta(min_length=2)] | None = None  # class names
    kind: Literal["classification", "regression"] = "classification"


class ParallelText(Settings):
    """Files whose lines are translations of each other."""

    source: str  # path
    target: str
    validation_source: str
    validation_target: str
    vocabulary_size: Annotated[int, Meta(ge=8, le=65536)] = 8000  # pieces, which both sides share
    max_length: Length = 128  # tokens of either side; longer pairs are left out


PARALLEL_FILES = ("source", "target", "validation_source", "validation_target")  # the keys that are paths


class ParallelSettings(ParallelText, kw_only=True):
    """Parallel text as the rule reads it that packs its pairs."""

    sha256: dict[str, str]  # of each file, by its key
    stand_in: bool = False  # whether its files are those of NUMBERS

    def path(self, key: str) -> Path:
        """The file of one of PARALLEL_FILES."""
        return Path(NUMBERS if self.stand_in else "", getattr(self, key))


NUMBERS = DEMO / "parallel"  # the stand-in: 4,200 numbers below a million in English and German words
NUMBERS_TEXT = {
    "source": "train.en.gz",
    "target": "train.de.gz",
    "validation_source": "validation.en.gz",
    "validation_target": "validation.de.gz",
    "vocabulary_size": 200,
    "max_length": 32,
    "stand_in": True,
}


_PROTOCOL = {field.name: field.type for kind in (TaskSettings, GlueSettings) for field in msgspec.structs.fields(kind)}
OwnProtocol = msgspec.defstruct(
    "OwnProtocol",
    [(key, kind, msgspec.UNSET) for key, kind in _PROTOCOL.items() if key not in Common.__struct_fields__],
    bases=(Settings,),
)
"""The keys of the section `glue` that a suite has a value of its own for: any of those of its rows and fine-tuning."""


OwnTraining = msgspec.defstruct(
    "OwnTraining",
    [
        (field.name, field.type, msgspec.UNSET)
        for field in msgspec.structs.fields(PretrainSettings)
        if field.name not in Common.__struct_fields__
    ],
    bases=(Settings,),
)
"""The keys of the section `pretrain` that a host has a value of its own for."""


class Curve(Settings):
    """Figure 3: scores over checkpoints."""

    sizes: list[str]
    finetune_seeds: Seeds
    steps: dict[str, list[Natural]]


class Sweep(Settings):
    """What is trained and compared."""

    hosts: Annotated[list[Literal[tuple(HOSTS)]], Meta(min_length=1)]
    sizes: Annotated[list[str], Meta(min_length=1)]
    attention: Annotated[list[str], Meta(min_length=1)]
    contrasts: list[Annotated[list[str], Meta(min_length=2, max_length=2)]] | None
    pretrain_seeds: Seeds
    finetuned_pretrain_seeds: list[Natural] | None
    finetune_seeds: Seeds
    suites: Annotated[list[str], Meta(min_length=1)]
    tasks: list[str]
    untrained: bool
    anatomy: bool
    probes: list[str]
    curve: Curve


class Configuration(Common):
    """All of config.yaml."""

    corpus: Corpus
    parallel: ParallelText | None
    pretrain: section(Execution, PretrainSettings)
    hosts: dict[Literal[tuple(OTHERS)], OwnTraining]
    glue: section(Tasks, TaskSettings, GlueSettings)
    suites: dict[Literal[tuple(suite.name for suite in BESIDE_GLUE)], OwnProtocol]
    rates: Rates
    operators: dict[str, dict[str, Any]]
    sizes: dict[str, OwnSize]
    tasks: dict[str, OwnTask]
    sweep: Sweep


_TYPES = {field.name: field.type for field in msgspec.structs.fields(Configuration)}
Own = msgspec.defstruct("Own", [(key, _TYPES[key]) for key in KEYS], bases=(Settings,))
