"""From the merged configuration to the settings that each stage reads."""

from itertools import product
from pathlib import Path

from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.settings import (
    FILTERS,
    PAPERS_FILTERS,
    Filter,
    GlueSettings,
    Kind,
    MinimalPairSettings,
    PretrainSettings,
    Settings,
    TaskSettings,
    hash_of,
    marks_of,
    settings_from,
    values_of,
)
from symbert.sources import SOURCES, Config
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
    return config["experiment"] or "-".join([Path(config["scale"]).stem, *sources])


def annotations_of(config: Config) -> str:
    """Whether quality warnings and harmful perplexity are published or computed."""
    return config["corpus"]["annotations"] or SOURCES[source_of(config, "corpus")].annotations


def has_filter(config: Config, rule: str) -> bool:
    """Whether one of `symbert.filters.FILTERS` is chosen."""
    return rule in config["corpus"]["filter"]["rules"]


def needs_harmful_model(config: Config) -> bool:
    """Whether harmful perplexity is computed here: where it is asked for and does not come with the text."""
    return annotations_of(config) == "computed" and has_filter(config, "perplexity")


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


def other_hosts(config: Config) -> list[str]:
    """The hosts beside the encoder."""
    return [host for host in OTHERS if host in config["sweep"]["hosts"]]


def protocol_of(config: Config, suite: str, kind: type[Kind]) -> Kind:
    """Settings of the section `glue`, but for the keys that the section `suites` has of a suite."""
    own = config["suites"].get(suite, {})
    return _training({**config, "glue": {**config["glue"], **own}}, "glue", kind)


def protocol_of_pairs(config: Config) -> Config:
    """How minimal pairs are judged; `allow_partial` changes no judgement."""
    values = values_of(protocol_of(config, "blimp", MinimalPairSettings))
    return {key: value for key, value in values.items() if key != "allow_partial"}


def filter_of(config: Config) -> Config:
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


def report_of(config: Config) -> Config:
    """What captions say; settings of `pretrain` and `glue` that change results are compared with the paper's."""
    chosen, rules = filter_of(config), config["corpus"]["filter"]["rules"]
    applied = {key: chosen[key] if marks["filter"] in rules else None for key, marks in marks_of(Filter).items()}
    pretrain = _compared(config, "pretrain", PretrainSettings)
    return {
        "experiment": experiment_name(config),
        "scale": Path(config["scale"]).stem,
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
    hashes = {
        name: hash_of(protocol_of(config, name, GlueSettings) if SUITES[name].tasks else protocol_of_pairs(config))
        for name in chosen
    }
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
