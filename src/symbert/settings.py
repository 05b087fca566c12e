"""The settings of each stage: frozen, complete, and read from the JSON file that the workflow wrote.

`config.yaml` is the only place with defaults and with the meaning of each key; a class here names
the keys that one group of rules reads, with their types. Unknown, missing and mistyped keys are refused.
"""

import dataclasses
import hashlib
import json
import types
import typing
from dataclasses import MISSING, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from symbert.errors import ConfigError
from symbert.files import read_json

Settings = TypeVar("Settings")
UNIONS = (types.UnionType, typing.Union)  # of types; of a type and words
Publisher = Literal["embedded", "mirror", "hub"]
Match = Literal["exact", "suffix"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Recipe = Literal["faithful", "fast"]


@dataclass(frozen=True)
class SourceSettings:
    """Where published files come from (`corpus.source` or `glue.source`)."""

    source: Literal[Publisher, "files"]  # files: of GLUE alone
    root: str | None  # directory in the publishers' layout (files: in that of GLUE's archives); null for the hub
    revision: str  # of the hub's data set


@dataclass(frozen=True)
class BlocklistSettings:
    """Where the UT1 archive comes from."""

    source: Publisher
    root: str | None  # directory in the publishers' layout; null for the hub
    url: str | None  # of the archive's directory (`corpus.blocklist_url`); null unless the source is hub


@dataclass(frozen=True)
class EmbeddedSettings:
    """The stand-in corpus built from the documentation of installed packages."""

    parts: int
    vocabulary_size: int


FILTERS = ("categories", "perplexity", "quality_warnings")


@dataclass(frozen=True)
class FilterSettings:
    """Which documents are kept (paper, appendix A)."""

    annotations: Literal["published", "computed"]
    blocked_categories: list[str]
    categories_from: Literal["metadata", "blocklist", "both"]
    match: Match
    min_harmful_perplexity: float  # exclusive
    max_harmful_perplexity: float  # exclusive
    max_bad_fraction: float  # of the lines of a part
    rules: list[str] | None = None  # those of FILTERS that are chosen; None: all

    def has(self, rule: str) -> bool:
        """Whether a filter is chosen."""
        return self.rules is None or rule in self.rules


@dataclass(frozen=True)
class IntakeSettings:
    """When no further part of the corpus is read."""

    max_documents: int  # kept ones
    max_tokens: int | None  # null: no limit


@dataclass(frozen=True)
class PackSettings:
    """How kept documents become rows of token ids."""

    sequence_length: int
    validation_sequences: int  # at most: held-out rows that are also training rows are passed over
    max_documents: int
    max_training_rows: int | None  # null: all
    max_tokens: int | None  # at which the intake ended; null: no limit
    sequences_per_shard: int


@dataclass(frozen=True)
class PretrainSettings:
    """Masked-language-model pre-training (paper, section 3.3)."""

    steps: int
    batch_size: int  # sequences per optimizer step, over all devices
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    adam_beta1: float
    adam_beta2: float
    adam_epsilon: float
    gradient_clip: float
    mask_probability: float
    dropout: float
    evaluate_every: int  # steps
    save_every: int  # steps
    precision: Precision
    recipe: Recipe
    schedule_steps: int | None = None  # at which the learning rate would reach 0; None: at `steps`


@dataclass(frozen=True)
class TaskSettings:
    """How GLUE rows become token ids."""

    max_length: int
    max_examples: int | None  # training rows per task; null for all
    max_evaluation_examples: int | None
    allow_partial: bool


@dataclass(frozen=True)
class GlueSettings:
    """Fine-tuning (paper, section 3.4)."""

    epochs: int
    batch_size: int
    learning_rate: float
    warmup_ratio: float
    weight_decay: float
    adam_epsilon: float
    gradient_clip: float
    dropout: float
    precision: Precision
    recipe: Recipe


@dataclass(frozen=True)
class RobustnessSettings:
    """What fine-tuned models are scored on beside GLUE's own evaluation rows."""

    root: str | None  # directory of the out-of-domain sets; null where no set is asked for
    sets: list[Literal["hans", "ax", "advglue"]]
    noise: list[float]  # shares of the letters of the evaluation rows that are changed
    noise_kinds: list[Literal["swap", "drop", "insert", "keyboard", "mixed"]]


@dataclass(frozen=True)
class ReportSettings:
    """What captions must say about the experiment; null where imported scores do not tell."""

    experiment: str
    scale: str
    corpus_source: str
    glue_source: str
    recipe: str
    tasks: list[str]
    sequence_length: int | None
    steps: int
    batch_size: int | None
    pretrain: dict[str, float]  # the other settings of pre-training that change its losses, but for the recipe
    glue: dict[str, float | None]  # those of tasks and fine-tuning that change scores
    settings_hash: str | None  # of fine-tuning: a score of another is stale
    match: Match | None  # of the corpus's filter, as are the next two; null where that filter is not chosen
    min_harmful_perplexity: float | None
    max_harmful_perplexity: float | None
    rules: list[str] | None = None  # the filters that are chosen; None: all, or not told
    runs: list[list[str | int]] = field(default_factory=list)  # asked for: size, attention, pretrain_seed
    curve_runs: list[list[str | int]] = field(default_factory=list)  # those of them that Figure 3 has


SECTIONS: dict[str, type] = {
    "corpus_source": SourceSettings,
    "glue_source": SourceSettings,
    "blocklist_source": BlocklistSettings,
    "embedded": EmbeddedSettings,
    "filter": FilterSettings,
    "intake": IntakeSettings,
    "pack": PackSettings,
    "pretrain": PretrainSettings,
    "task": TaskSettings,
    "glue": GlueSettings,
    "robustness": RobustnessSettings,
    "report": ReportSettings,
}


def read_settings(path: Path, kind: type[Settings]) -> Settings:
    """The settings of class `kind` in a JSON file; ConfigError names the file and the key."""
    return settings_from(read_json(path, dict), kind, str(path))


def settings_from(values: dict[str, Any], kind: type[Settings], origin: str) -> Settings:
    """Build `kind` from exactly its keys, each of its declared type; one that has a default may be missing."""
    hints = typing.get_type_hints(kind)
    with_defaults = (each for each in dataclasses.fields(kind) if {each.default, each.default_factory} != {MISSING})
    may_lack = {each.name for each in with_defaults}
    for key in (values.keys() ^ hints.keys()) - (may_lack - values.keys()):
        state = "unknown" if key in values else "missing"
        raise ConfigError(f"{origin}: {state} key '{key}' for {kind.__name__}")
    for key, value in values.items():
        if not _is_a(value, hints[key]):
            raise ConfigError(f"{origin}: '{key}' is {value!r}, expected {_named(hints[key])}; correct it")
    return kind(**values)


def _is_a(value: Any, hint: Any) -> bool:
    if typing.get_origin(hint) in UNIONS:
        return any(_is_a(value, option) for option in typing.get_args(hint))
    if typing.get_origin(hint) is list:
        return isinstance(value, list) and all(_is_a(item, typing.get_args(hint)[0]) for item in value)
    if typing.get_origin(hint) is dict:
        return isinstance(value, dict) and all(_is_a(item, typing.get_args(hint)[1]) for item in value.values())
    if typing.get_origin(hint) is Literal:
        return isinstance(value, str) and value in typing.get_args(hint)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, hint)


def _named(hint: Any) -> str:
    """A declared type in words, such as `int | null` or `a list of hans | ax`."""
    kind, options = typing.get_origin(hint), typing.get_args(hint)
    if kind is Literal:
        return " | ".join(options)
    if kind is list:
        return f"a list of {_named(options[0])}"
    if kind is dict:
        return f"a map to {_named(options[1])}"
    if kind in UNIONS:
        return " | ".join(map(_named, options))
    return "null" if hint is types.NoneType else hint.__name__


def hash_of(*values: Any) -> str:
    """16 hexadecimal digits that identify settings (dataclasses or JSON values), whatever the key order."""
    plain = [dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value for value in values]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
