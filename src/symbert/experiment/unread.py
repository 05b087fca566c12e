"""Keys that a user changed and no stage reads, with the sources, filters, architectures and suites that are chosen."""

import json
from collections.abc import Iterator
from typing import Any

from msgspec import to_builtins

from symbert.architectures import ENCODER, OTHERS
from symbert.configuration import (
    ArchitectureKeys,
    Configuration,
    Corpus,
    MinimalPairSettings,
    Pretrain,
    SuiteKeys,
    finetuned_pretrain_seeds,
    is_tuned,
    parts_of,
    root_of,
    source_of,
    stages_of,
)
from symbert.corpus.dataset import is_of_hub
from symbert.errors import ConfigError
from symbert.experiment.sweep import grids_of
from symbert.glue.tasks import PUBLISHED, suite_of, tasks_of_sweep
from symbert.sources import CUSTOM_TEXT, DATASET, OF_USERS

RULES = {  # keys of `corpus.filter` that one rule alone reads
    **dict.fromkeys(("blocked_categories", "categories_from", "match"), "categories"),
    **dict.fromkeys(("min_harmful_perplexity", "max_harmful_perplexity"), "perplexity"),
}


def refuse_unread(config: Configuration, before: Configuration) -> None:
    """ConfigError for a key of `config` that is not as `before`, the configuration without its user's changes, though
    its value has no effect. Operators and tasks of the user's own are defined."""
    values, usual = to_builtins(config), to_builtins(before)
    for key, is_read, remedy in _readers(config):
        value = _value(values, key)
        if not is_read and value != _value(usual, key):
            raise ConfigError(f"config: '{key}' is {json.dumps(value)}, which has no effect: {remedy}")


def _value(values: Any, key: str) -> Any:
    for name in key.split("."):
        values = (values or {}).get(name)
    return values


def _readers(config: Configuration) -> Iterator[tuple[str, bool, str]]:
    """Keys that not every choice reads: whether this one does, and the remedy where it does not.

    A thing that is defined under its name (operators, sizes, tasks, texts, and what architectures and suites have of
    their own) may wait there for a sweep that names it.
    """
    corpus, glue = source_of(config, "corpus"), source_of(config, "glue")
    parts, filters = len(parts_of(config)), config.corpus.filter
    sources = {source_of(config, stage) for stage in stages_of(config)}
    yield "mirror", bool(sources & {"mirror", *OF_USERS}), "set 'source' to mirror, or 'mirror' to null"
    yield "corpus.files", corpus == CUSTOM_TEXT, "set 'corpus.source' to files, or 'corpus.files' to null"
    yield "corpus.dataset", corpus == DATASET, "set 'corpus.source' to dataset, or 'corpus.dataset' to null"
    yield "corpus.parts", corpus != CUSTOM_TEXT, "'corpus.files' is read whole; narrow its pattern"
    yield "corpus.parts", corpus != DATASET, "a dataset is read whole; name some of its files in 'data_files'"
    yield "corpus.parts", config.corpus.parts == parts, f"the {corpus} corpus has {parts} parts; lower it"
    yield "corpus.revision", corpus == "hub", "it is of the hub; set 'corpus.source' to hub, or leave it out"
    dataset = config.corpus.dataset if corpus == DATASET else None
    downloads = corpus == "hub" or (dataset is not None and is_of_hub(dataset))
    yield "corpus.keep_raw", downloads, "only downloads are ever removed; leave it out"
    yield "glue.revision", glue == "hub", "it is of the hub; set 'glue.source' to hub, or leave it out"
    lists = filters.has("categories")
    downloads, looks_up = root_of(config, "corpus") is None, filters.categories_from != "metadata"
    yield "corpus.blocklist_url", lists and downloads, "UT1 is not downloaded; leave it out"
    yield (
        "corpus.filter.match",
        looks_up,
        "no URL is looked up; set 'corpus.filter.categories_from' to blocklist or both",
    )
    for key, rule in RULES.items():
        yield f"corpus.filter.{key}", filters.has(rule), f"add {rule} to 'corpus.filter.rules'"
    robustness = config.glue.robustness
    yield "glue.robustness.files", bool(robustness.sets), "name its sets in 'glue.robustness.sets'"
    yield "glue.robustness.noise_kinds", bool(robustness.noise), "say how much in 'glue.robustness.noise'"
    yield from _pretrained(config)
    yield from _architectures(config)
    yield from _scored(config)
    yield from _suites(config)


def _architectures(config: Configuration) -> Iterator[tuple[str, bool, str]]:
    architectures = config.sweep.architectures
    yield "pretrain.mask_probability", ENCODER in architectures, "encoders alone have masked tokens; leave it out"
    for architecture in OTHERS:
        yield f"architectures.{architecture}.mask_probability", False, "encoders alone have masked tokens; leave it out"
    for key in ArchitectureKeys.__struct_fields__:
        is_read = any(key not in config.architectures.get(architecture, {}) for architecture in architectures)
        yield f"pretrain.{key}", is_read, f"'architectures.{architectures[0]}.{key}' stands above it; change that"


OF_PRETRAINING = (  # keys of `sweep` that nothing reads where nothing is pre-trained
    *("architectures", "sizes", "contrasts", "escape_loss", "pretrain_seeds", "finetuned_pretrain_seeds", "untrained"),
    *("anatomy", "curve"),
)


def _pretrained(config: Configuration) -> Iterator[tuple[str, bool, str]]:
    sections = {"corpus": Corpus.__struct_fields__, "pretrain": Pretrain.__struct_fields__, "sweep": OF_PRETRAINING}
    for section, keys in sections.items():
        for key in keys:
            yield (
                f"{section}.{key}",
                bool(config.sweep.attention),
                "nothing is pre-trained; name an operator in 'sweep.attention', or leave it out",
            )


def _scored(config: Configuration) -> Iterator[tuple[str, bool, str]]:
    has_grids = bool(grids_of(config))
    is_trained = ENCODER in config.sweep.architectures and finetuned_pretrain_seeds(config)
    is_finetuned = (is_trained or config.models) and not has_grids
    yield "models", not has_grids, "a sweep of other keys compares escapes alone; leave it out"
    yield "sweep.tuning_seeds", is_tuned(config), "no 'learning_rate' of fine-tuning is a list; leave it out"
    for key in ("tasks", "finetune_seeds"):
        yield f"sweep.{key}", bool(is_finetuned), "nothing is fine-tuned in this sweep; leave it out"
    yield "sweep.untrained", bool(is_trained) and not has_grids, "no run of it is fine-tuned; leave it out"
    for key in ("suites", "anatomy"):
        yield f"sweep.{key}", not has_grids, "a sweep of other keys compares escapes alone; leave it out"


def _suites(config: Configuration) -> Iterator[tuple[str, bool, str]]:
    sweep = config.sweep
    suites = {suite_of(task).name for task in tasks_of_sweep(sweep.suites, sweep.tasks)}
    unscored = [task for task in sweep.tasks if task in PUBLISHED and suite_of(task).name not in suites]
    yield "sweep.tasks", not unscored, f"{', '.join(unscored)}: their suite is not in 'sweep.suites'; add it there"
    readers = dict.fromkeys(SuiteKeys.__struct_fields__, suites)
    if "blimp" in sweep.suites:
        readers |= {key: suites | {"blimp"} for key in MinimalPairSettings.__struct_fields__}
    for key, names in readers.items():
        above = [name for name in sorted(names) if key in config.suites.get(name, {})]
        yield (
            f"glue.{key}",
            len(above) < max(1, len(names)),
            f"'suites.{above[0]}.{key}' stands above it; change that" if above else "",
        )
