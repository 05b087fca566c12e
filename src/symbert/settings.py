"""The settings of each stage: frozen, complete, and read from the JSON file that the workflow wrote.

`config.yaml` is the only place with defaults and with the meaning of each key. A class here names the keys that one
group of rules reads, with type and range; msgspec refuses unknown, missing and mistyped ones. To add a key: its line in
`config.yaml` and its field in the class of the stage that reads it, or in `symbert.keys` where none does.
"""

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from symbert.declared import mistake_in
from symbert.errors import ConfigError
from symbert.files import read_json
from symbert.filters import FILTERS
from symbert.sources import SOURCES
from symbert.syntax import file_of, keys_of, syntax_of


def number(**limits: float) -> Any:
    """The type of a number within limits; 1 becomes 1.0, which has the same key."""
    return Annotated[float, Meta(**limits)]


Count = Annotated[int, Meta(ge=1)]
Natural = Annotated[int, Meta(ge=0)]
Length = Annotated[int, Meta(ge=8, le=512)]  # tokens
Positive = number(gt=0)
NotNegative = number(ge=0)
Share = number(ge=0, lt=1)
Publisher = Literal[tuple(name for name, source in SOURCES.items() if source.is_published)]
Annotator = Literal["published", "computed"]
Match = Literal["exact", "suffix"]
Precision = Literal["auto", "fp32", "bf16", "fp16"]
Recipe = Literal[keys_of("symbert.training.recipe", "RECIPES")]
OPTIMIZERS = "|".join(keys_of("symbert.training.optimizer", "OPTIMIZERS"))
Optimizer = Annotated[str, Meta(pattern=rf"^({OPTIMIZERS}|\w[\w.]*:\w+)$")]  # or module:function of the user's own
NoiseShares = list[number(gt=0, le=1)]
NoiseKind = Literal[(*keys_of("symbert.glue.noise", "EDITS"), "mixed")]
Challenge = Literal[keys_of("symbert.glue.challenges", "COLLECTIONS")]
Run = list[str | int]  # size, attention, pretrain_seed
Scalar = bool | int | float | str | None
PAPERS_FILTERS = ("categories", "perplexity", "quality_warnings")

# A mark is what a key says of itself. One without marks changes the results of the stage that reads it.
NO_RESULT = Meta(extra={"changes_results": False})  # of how much is measured or kept, or what is refused


def of_filter(name: str | None, unused: Any) -> Meta:
    """The mark of a key that one filter reads, or all of them, and of its value where that filter is not chosen."""
    return Meta(extra={"filter": name, "unused": unused})


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Settings whose keys are all known.

    Files and hashes leave out a key that has the default of its field (`values_of`).
    """


class SourceSettings(Settings):
    """Where published files come from (`corpus.source` or `glue.source`)."""

    source: Literal[Publisher, "files"]  # files: of GLUE alone
    root: str | None  # directory in the publishers' layout (files: of GLUE's original files); null for the hub
    revision: str  # of the hub's data set


class BlocklistSettings(Settings):
    """Where the UT1 archive comes from."""

    source: Publisher
    root: str | None  # directory in the publishers' layout; null for the hub
    url: str | None  # of the archive's directory (`corpus.blocklist_url`); null unless the source is hub


class EmbeddedSettings(Settings):
    """The stand-in corpus built from the documentation of Python packages."""

    parts: Count
    vocabulary_size: Annotated[int, Meta(ge=200, le=65536)]


class Filter(Settings):
    """Which documents are kept (paper, appendix A)."""

    blocked_categories: Annotated[list[str], of_filter("categories", [])]
    categories_from: Annotated[Literal["metadata", "blocklist", "both"], of_filter("categories", "both")]
    match: Annotated[Match, of_filter("categories", "exact")]
    min_harmful_perplexity: Annotated[NotNegative, of_filter("perplexity", 0.0)]  # exclusive
    max_harmful_perplexity: Annotated[Positive, of_filter("perplexity", 1.0e300)]  # exclusive
    max_bad_fraction: Annotated[Share, of_filter(None, 0.0)]  # of the lines of a part


class FilterSettings(Filter):
    """Which documents are kept, by which annotations and filters."""

    annotations: Annotator
    rules: list[Literal[FILTERS]]  # the filters that are chosen

    def has(self, rule: str) -> bool:
        """Whether a filter is chosen."""
        return rule in self.rules


class IntakeSettings(Settings):
    """When no further part of the corpus is read."""

    max_documents: Count  # kept ones


class PackSettings(Settings):
    """How kept documents become rows of token ids."""

    sequence_length: Length
    validation_sequences: Count  # at most: held-out rows that are also training rows are passed over
    max_documents: Count
    sequences_per_shard: Count


class PretrainSettings(Settings):
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
    evaluate_every: Annotated[Count, NO_RESULT]  # steps
    save_every: Annotated[Count, NO_RESULT]  # steps
    precision: Precision
    recipe: Recipe
    schedule_steps: Count | None = None  # at which the learning rate would reach 0; None: at `steps`
    optimizer: Optimizer = "adamw"


class TaskSettings(Settings):
    """How the rows of a suite's tasks become token ids."""

    max_length: Length
    max_examples: Count | None  # training rows per task; null for all
    max_evaluation_examples: Count | None
    allow_partial: Annotated[bool, NO_RESULT]


class MinimalPairSettings(Settings):
    """Which minimal pairs models judge, and how these become token ids."""

    max_length: Length
    max_evaluation_examples: Count | None  # pairs per paradigm; null for all
    allow_partial: Annotated[bool, NO_RESULT]


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


class Wording(Settings):
    """What captions, claims and the page say of an experiment."""

    experiment: str  # its name, and how it was computed
    corpus: str
    tasks: str
    pretraining: str  # how models were made; a number of seeds follows in brackets
    beside_printed: str  # said where the paper's scores stand beside these
    facts: dict[str, str]  # at the top of the page, before corpus and tasks
    warnings: list[str]  # at the top of the page
    other_training: str | None  # why losses are not comparable with the paper's; null: both are shown
    other_finetuning: str | None  # why scores are not, although losses may be; null: both are shown


class ReportSettings(Settings):
    """What captions must say about the experiment; null where imported scores do not say."""

    experiment: str
    scale: str
    corpus_source: str
    glue_source: str
    recipe: str
    tasks: list[str]
    sequence_length: int | None
    steps: int
    batch_size: int | None
    pretrain: dict[str, Scalar]  # the other settings of pre-training that change its losses, but for the recipe
    glue: dict[str, Scalar]  # those of tasks and fine-tuning that change scores
    settings_hash: str | None  # of fine-tuning: a score of another is stale
    match: Match | None  # of the corpus's filter, as are the next two; null where that filter is not chosen
    min_harmful_perplexity: int | float | None
    max_harmful_perplexity: int | float | None
    rules: list[str] | None = None  # the filters that are chosen; None: the paper's, or not known
    runs: list[Run] = []  # asked for
    scored_runs: list[Run] = []  # those of them that are fine-tuned
    curve_runs: list[Run] = []  # those of them that Figure 3 has
    contrasts: list[list[str]] | None = None  # operators whose exits are compared; None: each with the first
    wording: Wording | None = None  # where the other keys do not tell; None: what follows from them
    suites: dict[str, str] | None = None  # beside GLUE, where some are chosen: the hash of the settings of each
    host_runs: list[Run] | None = None  # asked for of other hosts than the encoder, each with its host first
    host_steps: dict[str, int] | None = None  # by other host, how many its runs have; None: as many as the encoder's
    stand_in_text: bool = False  # whether encoder-decoders translate the stand-in
    overrides: dict[str, Scalar] | None = None  # keys of `suites` and `hosts` that replace those of glue and pretrain


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
        raise ConfigError(f"{origin}: {mistake_in(values, kind, strict)}") from None


def marks_of(kind: type[Settings]) -> dict[str, dict[str, Any]]:
    """What each key of a class says of itself beside its type."""
    marks = {field.name: getattr(field.type, "__metadata__", ()) for field in msgspec.structs.fields(kind)}
    return {name: {key: value for mark in marks[name] for key, value in (mark.extra or {}).items()} for name in marks}


def values_of(settings: Settings) -> dict[str, Any]:
    """The settings by key, without those that have their default."""
    defaults = {field.name: field.default for field in msgspec.structs.fields(settings)}
    return {key: value for key, value in msgspec.structs.asdict(settings).items() if value != defaults[key]}


def hash_of(*values: Any) -> str:
    """16 hexadecimal digits that identify settings (or JSON values), whatever the key order."""
    plain = [values_of(value) if isinstance(value, Settings) else value for value in values]
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def code_of(module: str, name: str) -> str:
    """16 hexadecimal digits that stand for what a class or function computes, as `symbert.syntax` reads it."""
    return hash_of(syntax_of(module, name))


def recorded_settings(settings: PretrainSettings) -> dict[str, Any]:
    """The settings that identify a run, without those that have their default.

    Of an optimizer of the user's own its code, too.
    """
    values = values_of(settings)
    module, _, function = settings.optimizer.partition(":")
    if function:
        if file_of(module) is None:
            raise ConfigError(
                f"config: 'pretrain.optimizer' is {settings.optimizer}: no module {module}; correct the path, or put "
                "the module into this folder"
            )
        values["optimizer_code"] = code_of(module, function)
    return values
