"""The settings of each stage: frozen, complete, and read from the JSON file that the workflow wrote.

`config.yaml` is the only place with defaults and with the meaning of each key. A class here names the keys that one
group of rules reads, with type and range; msgspec refuses unknown, missing and mistyped ones.
"""

import difflib
import hashlib
import json
import types
import typing
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from symbert.errors import ConfigError
from symbert.files import read_json


def number(**limits: float) -> Any:
    """The type of a number within limits; an integer stays one, because the hash of 1 is not that of 1.0."""
    return Annotated[int, Meta(**limits)] | Annotated[float, Meta(**limits)]


Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Length = Annotated[int, Meta(ge=8, le=512)]  # tokens
Positive = number(gt=0)
NotNegative = number(ge=0)
Share = number(ge=0, lt=1)
Publisher = Literal["embedded", "mirror", "hub"]
Annotator = Literal["published", "computed"]
Match = Literal["exact", "suffix"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Recipe = Literal["faithful", "fast"]
NoiseShares = list[number(gt=0, le=1)]
NoiseKind = Literal["swap", "drop", "insert", "keyboard", "mixed"]
Challenge = Literal["hans", "ax", "advglue"]
Run = list[str | int]  # size, attention, pretrain_seed

FILTERS = ("categories", "perplexity", "quality_warnings")


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings whose keys are all known."""


class SourceSettings(Settings):
    """Where published files come from (`corpus.source` or `glue.source`)."""

    source: Literal[Publisher, "files"]  # files: of GLUE alone
    root: str | None  # directory in the publishers' layout (files: in that of GLUE's archives); null for the hub
    revision: str  # of the hub's data set


class BlocklistSettings(Settings):
    """Where the UT1 archive comes from."""

    source: Publisher
    root: str | None  # directory in the publishers' layout; null for the hub
    url: str | None  # of the archive's directory (`corpus.blocklist_url`); null unless the source is hub


class EmbeddedSettings(Settings):
    """The stand-in corpus built from the documentation of installed packages."""

    parts: Count
    vocabulary_size: Annotated[int, Meta(ge=200, le=65536)]


class FilterSettings(Settings, omit_defaults=True):
    """Which documents are kept (paper, appendix A)."""

    annotations: Annotator
    blocked_categories: list[str]
    categories_from: Literal["metadata", "blocklist", "both"]
    match: Match
    min_harmful_perplexity: NotNegative  # exclusive
    max_harmful_perplexity: Positive  # exclusive
    max_bad_fraction: Share  # of the lines of a part
    rules: list[Literal[FILTERS]] | None = None  # those of FILTERS that are chosen; None: all

    def has(self, rule: str) -> bool:
        """Whether a filter is chosen."""
        return self.rules is None or rule in self.rules


class IntakeSettings(Settings):
    """When no further part of the corpus is read."""

    max_documents: Count  # kept ones
    max_tokens: int | None  # null: no limit


class PackSettings(Settings):
    """How kept documents become rows of token ids."""

    sequence_length: Length
    validation_sequences: Count  # at most: held-out rows that are also training rows are passed over
    max_documents: Count
    max_training_rows: int | None  # null: all
    max_tokens: int | None  # at which the intake ended; null: no limit
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
    """How GLUE rows become token ids."""

    max_length: Length
    max_examples: Count | None  # training rows per task; null for all
    max_evaluation_examples: Count | None
    allow_partial: bool


class GlueSettings(Settings):
    """Fine-tuning (paper, section 3.4)."""

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


class ReportSettings(Settings):
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
    pretrain: dict[str, int | float]  # the other settings of pre-training that change its losses, but for the recipe
    glue: dict[str, int | float | None]  # those of tasks and fine-tuning that change scores
    settings_hash: str | None  # of fine-tuning: a score of another is stale
    match: Match | None  # of the corpus's filter, as are the next two; null where that filter is not chosen
    min_harmful_perplexity: int | float | None
    max_harmful_perplexity: int | float | None
    rules: list[str] | None = None  # the filters that are chosen; None: all, or not told
    runs: list[Run] = []  # asked for
    curve_runs: list[Run] = []  # those of them that Figure 3 has


SECTIONS: dict[str, type[Settings]] = {
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

Kind = TypeVar("Kind", bound=Settings)


def read_settings(path: Path, kind: type[Kind]) -> Kind:
    """The settings of class `kind` in a JSON file; ConfigError names the file and the key."""
    return settings_from(read_json(path, dict), kind, str(path))


def settings_from(values: dict[str, Any], kind: type[Kind], origin: str, strict: bool = True) -> Kind:
    """`values` as settings of class `kind`; ConfigError names `origin`, the key, what it may be, and the nearest word.

    Where not `strict`, texts stand for the numbers and truth values that they spell, as `--config` gives them.
    """
    try:
        return msgspec.convert(values, kind, strict=strict)
    except msgspec.ValidationError:
        raise ConfigError(f"{origin}: {_mistake(values, kind, strict, '')}") from None


def _mistake(value: Any, kind: Any, strict: bool, key: str) -> str:
    """What is wrong with the innermost value that is not of its declared type, and the remedy."""
    inner, where = types_within(value, kind), f" in '{key}'" if key else ""
    for name, part in parts_of(value) if inner else ():
        if name not in inner:
            return f"unknown key '{name}'{where}{suggestion(name, inner)}"
        try:
            msgspec.convert(part, inner[name], strict=strict)
        except msgspec.ValidationError:
            return _mistake(part, inner[name], strict, f"{key}.{name}" if key else str(name))
    if isinstance(value, dict) and _is_settings(kind):
        missing = next(
            field.name for field in msgspec.structs.fields(kind) if field.required and field.name not in value
        )
        return f"missing key '{missing}'{where}; add it"
    if words := words_of(kind):
        null = ["null"] if types.NoneType in options_of(kind) else []
        return f"'{key}' is {value!r}{suggestion(value, words + null)}"
    return f"'{key}' is {value!r}, expected {_in_words(kind)}; correct it"


def options_of(kind: Any) -> list[Any]:
    """The types that a declared type stands for: those of a union, without their limits."""
    if typing.get_origin(kind) is Annotated:
        return options_of(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (types.UnionType, typing.Union):
        return [option for each in typing.get_args(kind) for option in options_of(each)]
    return [kind]


def words_of(kind: Any) -> list[str]:
    """The words that a declared type allows."""
    literals = [option for option in options_of(kind) if typing.get_origin(option) is Literal]
    return [word for option in literals for word in typing.get_args(option)]


def types_within(value: Any, kind: Any) -> dict[Any, Any]:
    """The declared types of what may lie in a map or list, by key or position; none where nothing may."""
    for option in options_of(kind):
        origin, arguments = typing.get_origin(option), typing.get_args(option)
        if isinstance(value, list) and origin is list:
            return dict.fromkeys(range(len(value)), arguments[0])
        if isinstance(value, dict) and origin is dict:
            return dict.fromkeys(words_of(arguments[0]) or value, arguments[1])
        if isinstance(value, dict) and _is_settings(option):
            return {field.name: field.type for field in msgspec.structs.fields(option)}
    return {}


def parts_of(value: Any) -> Iterable[tuple[Any, Any]]:
    """What lies in a map or list, by key or position."""
    return value.items() if isinstance(value, dict) else enumerate(value)


def _is_settings(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Settings)


def suggestion(word: Any, known: Iterable[Any]) -> str:
    """The remedy for a word that is none of the known ones: the nearest, or all of them."""
    names = list(map(str, known))
    near = difflib.get_close_matches(str(word), names, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else f"; choose from {', '.join(names)}"


NAMES = {int: "an integer", float: "a number", str: "a text", bool: "true or false", types.NoneType: "null"}
LIMITS = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤", "pattern": "like", "min_length": "with at least"}


def _in_words(kind: Any) -> str:
    """A declared type with its limits, such as `an integer ≥ 1 | null`."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        limits = [(sign, getattr(mark, name)) for mark in arguments[1:] for name, sign in LIMITS.items()]
        told = " and ".join(f"{sign} {limit}" for sign, limit in limits if limit is not None)
        return f"{_in_words(arguments[0])} {told}".rstrip()
    if origin in (types.UnionType, typing.Union):
        shown = [each for each in arguments if float not in options_of(kind) or options_of(each) != [int]]
        return " | ".join(map(_in_words, shown))
    if origin is Literal:
        return " | ".join(arguments)
    if origin is list:
        return f"a list of {_in_words(arguments[0])}"
    if origin is dict or _is_settings(kind):
        return "a map of keys to values"
    return NAMES[kind]


def hash_of(*values: Any) -> str:
    """16 hexadecimal digits that identify settings (or JSON values), whatever the key order."""
    text = json.dumps([msgspec.to_builtins(value) for value in values], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
