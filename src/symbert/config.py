"""From the merged configuration to the settings that each stage reads."""

import json
from itertools import product
from pathlib import Path

from symbert.errors import DataError, MissingInputError
from symbert.files import read_json, write_json
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.settings import (
    FILTERS,
    PAPERS_FILTERS,
    SECTIONS,
    Filter,
    GlueSettings,
    Kind,
    PretrainSettings,
    Settings,
    TaskSettings,
    hash_of,
    marks_of,
    settings_from,
    values_of,
)
from symbert.sources import CORPUS_CHECKSUMS, HARMFUL_MODEL, SOURCES, VOCABULARY, Config
from symbert.suites import BESIDE_GLUE, SUITES

# What `corpus.filter: none` stands for.
NO_FILTER: Config = {"rules": [], **{key: marks["unused"] for key, marks in marks_of(Filter).items()}}


def merge(base: Config, changes: Config) -> Config:
    """`base` with nested `changes`, as Snakemake merges configurations."""
    nested = {
        key: merge(base[key], value)
        for key, value in changes.items()
        if isinstance(value, dict) and isinstance(base.get(key), dict)
    }
    return {**base, **changes, **nested}


def source_of(config: Config, stage: str) -> str:
    """The source of a stage: its own, or the common one."""
    return config[stage]["source"] or config["source"]


def experiment_name(config: Config) -> str:
    """Name of the experiment's folder under results/."""
    sources = dict.fromkeys(source_of(config, stage) for stage in ("corpus", "glue"))
    return config["experiment"] or "-".join([config["scale"], *sources])


def parts_of(config: Config) -> list[str]:
    """Names of the corpus parts, in the order in which documents are taken from them."""
    return SOURCES[source_of(config, "corpus")].parts(config)


def files_of(config: Config) -> dict[str, str]:
    """The files of parts that are read where they lie, by part."""
    return SOURCES[source_of(config, "corpus")].files_in_place(config)


def batches_of(config: Config) -> list[list[str]]:
    """The parts in order, in groups of `corpus.parts_per_batch`."""
    parts, size = parts_of(config), config["corpus"]["parts_per_batch"]
    return [parts[first : first + size] for first in range(0, len(parts), size)]


def repositories_of(config: Config) -> list[str]:
    """The hub's repositories that the corpus stage needs; the gated ones only where their files are read."""
    needed = {
        CORPUS_CHECKSUMS.repository: SOURCES[source_of(config, "corpus")].is_published,
        HARMFUL_MODEL.repository: needs_harmful_model(config),
        VOCABULARY.repository: True,
    }
    return [name for name, wanted in needed.items() if wanted]


def annotations_of(config: Config) -> str:
    """Whether quality warnings and harmful perplexity are published or computed."""
    return config["corpus"]["annotations"] or SOURCES[source_of(config, "corpus")].annotations


def has_filter(config: Config, rule: str) -> bool:
    """Whether one of `symbert.filters.FILTERS` is chosen."""
    return rule in config["corpus"]["filter"]["rules"]


def needs_harmful_model(config: Config) -> bool:
    """Whether harmful perplexity is computed here: where it is asked for and does not come with the text."""
    return annotations_of(config) == "computed" and has_filter(config, "perplexity")


def sections(config: Config) -> dict[str, Config]:
    """What each group of rules reads, by section of `symbert.settings.SECTIONS`; checked against its class."""
    corpus = config["corpus"]
    finetuned = [suite for suite in SUITES.values() if suite.tasks]
    protocols = {name: values_of(_protocol(config, name, SECTIONS[name])) for name in SUITES}
    source = _source(config, "corpus")
    # UT1 is no repository of the hub: it has an address of its own, which only a remote source reads.
    url = corpus["blocklist_url"] if SOURCES[source["source"]].is_remote else None
    values = {
        "corpus_source": source,
        "glue_source": _source(config, "glue"),
        "blocklist_source": {"source": source["source"], "root": source["root"], "url": url},
        "filter": {**_filter(config), "annotations": annotations_of(config)},
        "intake": {"max_documents": corpus["pack"]["max_documents"]},
        "pack": corpus["pack"],
        **{training_section(host): values_of(training_of(config, host)) for host in [ENCODER, *other_hosts(config)]},
        **{suite.rows_section: values_of(_protocol(config, suite.name, TaskSettings)) for suite in finetuned},
        **protocols,
        "robustness": robustness_of(config),
        "report": _report(config),
    }
    for name, kind in SECTIONS.items():
        settings_from(values[name], kind, f"config section {name}")
    return values


def _training(config: Config, stage: str, kind: type[Kind]) -> Kind:
    """Settings whose keys stand in the section of a stage, or at the top of the configuration."""
    common = {**config, **config[stage]}
    return settings_from({key: common[key] for key in kind.__struct_fields__}, kind, f"config section {stage}")


def training_of(config: Config, host: str) -> PretrainSettings:
    """How a host is trained: by the section `pretrain`, but for the keys that the section `hosts` has of it."""
    own = config["hosts"].get(host, {})
    return _training({**config, "pretrain": {**config["pretrain"], **own}}, "pretrain", PretrainSettings)


def training_key(config: Config, host: str, key: str) -> str:
    """Where a value of `training_of` stands in the configuration."""
    return f"hosts.{host}.{key}" if key in config["hosts"].get(host, {}) else f"pretrain.{key}"


def training_section(host: str) -> str:
    """The section that a host's rules read."""
    return "pretrain" if host == ENCODER else f"pretrain-{host}"


def other_hosts(config: Config) -> list[str]:
    """The hosts beside the encoder."""
    return [host for host in OTHERS if host in config["sweep"]["hosts"]]


def _protocol(config: Config, suite: str, kind: type[Kind]) -> Kind:
    """Settings of the section `glue`, but for the keys that the section `suites` has of a suite."""
    own = config["suites"].get(suite, {})
    return _training({**config, "glue": {**config["glue"], **own}}, "glue", kind)


def _filter(config: Config) -> Config:
    """The choice of documents, but for who annotates them.

    Keys of a filter that is not chosen have fixed values, so that changing one filters nothing again. The names of the
    filters are in their own order.
    """
    chosen = config["corpus"]["filter"]
    rules = [rule for rule in FILTERS if rule in chosen["rules"]]
    readers = {key: marks["filter"] for key, marks in marks_of(Filter).items()}
    values = {key: chosen[key] if name in (None, *rules) else NO_FILTER[key] for key, name in readers.items()}
    return {**values, "rules": rules}


def robustness_of(config: Config) -> Config:
    """Out-of-domain sets lie where `files` says, or where the source has them."""
    chosen = config["glue"]["robustness"]
    root = chosen["files"] or SOURCES[source_of(config, "glue")].other_domains(config)
    return {
        "root": root if chosen["sets"] else None,
        "sets": chosen["sets"],
        "noise": chosen["noise"],
        "noise_kinds": chosen["noise_kinds"] if chosen["noise"] else [],
    }


def _report(config: Config) -> Config:
    """What captions say; settings of `pretrain` and `glue` that change results are compared with the paper's."""
    chosen, rules = _filter(config), config["corpus"]["filter"]["rules"]
    applied = {key: chosen[key] if marks["filter"] in rules else None for key, marks in marks_of(Filter).items()}
    pretrain = _compared(config, "pretrain", PretrainSettings)
    return {
        "experiment": experiment_name(config),
        "scale": config["scale"],
        "corpus_source": source_of(config, "corpus"),
        "glue_source": source_of(config, "glue"),
        "recipe": config["recipe"],
        "tasks": config["sweep"]["tasks"],
        "sequence_length": config["corpus"]["pack"]["sequence_length"],
        "steps": pretrain.pop("steps"),
        "batch_size": pretrain.pop("batch_size"),
        "pretrain": pretrain,
        "glue": _compared(config, "glue", TaskSettings) | _compared(config, "glue", GlueSettings),
        "runs": runs_of(config),
        "scored_runs": _scored(runs_of(config), config),
        "curve_runs": _scored(runs_of(config, config["sweep"]["curve"]["sizes"]), config),
        "settings_hash": hash_of(_training(config, "glue", GlueSettings)),
        **_hashes_of_suites(config),
        **_runs_of_other_hosts(config),
        **_overrides(config),
        **{key: applied[key] for key in ("match", "min_harmful_perplexity", "max_harmful_perplexity")},
        **({} if chosen["rules"] == list(PAPERS_FILTERS) else {"rules": chosen["rules"]}),
        **{key: config["sweep"][key] for key in ("contrasts",) if config["sweep"][key] is not None},
    }


def _hashes_of_suites(config: Config) -> Config:
    """The key `suites` of the report's settings; nothing where GLUE is the only suite."""
    chosen = [suite.name for suite in BESIDE_GLUE if suite.name in config["sweep"]["suites"]]
    hashes = {name: hash_of(_protocol(config, name, SECTIONS[name])) for name in chosen}
    return {"suites": hashes} if hashes else {}


def _runs_of_other_hosts(config: Config) -> Config:
    """The keys of the report's settings on other hosts; nothing where the encoder is the only one."""
    hosts = other_hosts(config)
    runs = [[host, *axes] for host in hosts for axes in axes_of(config)]
    if not runs:
        return {}
    stand_in = any(not HOSTS[host].reads_corpus for host in hosts) and config["parallel"] is None
    steps = {host: training_of(config, host).steps for host in hosts}
    return {"host_runs": runs, "host_steps": steps, **({"stand_in_text": True} if stand_in else {})}


def _overrides(config: Config) -> Config:
    """The key `overrides` of the report's settings; nothing where no suite or host of the sweep has keys of its own."""
    own = {
        f"{section}.{name}.{key}": value
        for section in ("suites", "hosts")
        for name, keys in config[section].items()
        for key, value in keys.items()
        if name in config["sweep"][section]
    }
    return {"overrides": own} if own else {}


def _compared(config: Config, stage: str, kind: type[Settings]) -> Config:
    """The keys of a stage's section that change its results."""
    marks, values = marks_of(kind), values_of(_training(config, stage, kind))
    return {key: values[key] for key in values if key in config[stage] and marks[key].get("changes_results", True)}


def runs_of(config: Config, sizes: list[str] | None = None) -> list[list[str | int]]:
    """The pre-trainings of the encoder, of these sizes or of all: size, attention, pretrain_seed."""
    return axes_of(config, sizes) if ENCODER in config["sweep"]["hosts"] else []


def axes_of(config: Config, sizes: list[str] | None = None) -> list[list[str | int]]:
    """The runs of any host, of these sizes or of all: size, attention, pretrain_seed."""
    sweep = config["sweep"]
    sizes = sweep["sizes"] if sizes is None else sizes
    return [list(axes) for axes in product(sizes, sweep["attention"], sweep["pretrain_seeds"])]


def finetuned_pretrain_seeds(config: Config) -> list[int]:
    """The pre-training seeds whose models are fine-tuned."""
    sweep = config["sweep"]
    chosen = sweep["finetuned_pretrain_seeds"]
    return sweep["pretrain_seeds"] if chosen is None else chosen


def _scored(runs: list[list[str | int]], config: Config) -> list[list[str | int]]:
    return [run for run in runs if run[-1] in finetuned_pretrain_seeds(config)]


def _source(config: Config, stage: str) -> Config:
    """Where the publishers' files of a stage come from."""
    source = SOURCES[source_of(config, stage)].beside(config, stage)
    return {"source": source.name, "root": source.root(config, stage), "revision": config[stage]["revision"]}


def execution_options(config: Config) -> list[str]:
    """The options of `pretrain-model` that change how it is computed, not what."""
    chosen = config["pretrain"]
    return [
        "--on-settings-change",
        config["on_settings_change"],
        *(["--micro-batch-size", str(chosen["micro_batch_size"])] if chosen["micro_batch_size"] else []),
        *(["--recompute-activations"] if chosen["recompute_activations"] else []),
        *(["--shard-parameters"] if chosen["shard_parameters"] else []),
    ]


def write_settings(values: str, output: Path) -> None:
    """Write one section of the settings, given as JSON text, to the file that its rules read."""
    write_json(output, json.loads(values))


def is_outdated(path: str, values: Config) -> bool:
    """Whether a settings file exists with another content than `values`."""
    try:
        return read_json(Path(path)) != values
    except MissingInputError:
        return False
    except DataError:
        return True
