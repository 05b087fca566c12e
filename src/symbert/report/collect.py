"""Everything that a report shows: each file that experiment.json names, read once and checked once, as tidy tables."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.configuration import (
    GlueSettings,
    MinimalPairSettings,
    ReportSettings,
    TaskSettings,
    annotations_of,
    filter_of,
    protocol_of,
    settings_from,
    training_of,
    values_of,
)
from symbert.errors import DataError, MissingInputError
from symbert.experiment.sweep import Grid, grids_of
from symbert.files import read_json
from symbert.glue.tasks import SUITES, tasks_of_suite
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.operators import OPERATORS
from symbert.report import captions
from symbert.report.anatomy import read_anatomy, read_probes
from symbert.report.blimp import read_judgements
from symbert.report.corpus_counts import MANIFEST, REMEDY, Row, read_parts
from symbert.report.grids import read_grids
from symbert.report.hosts import read_courses, read_hosts
from symbert.report.machines import PretrainedRun, read_pretrained
from symbert.report.robustness import read_robustness
from symbert.report.runs import read_runs
from symbert.report.scores import majority_of, read_scores
from symbert.report.speeds import read_speeds
from symbert.report.statistics import final_scores, of_whole_seeds
from symbert.sizes import SIZES

RESULTS = Path("results")
RECORD = {"experiment": str, "key": str, "configuration": dict, "report": dict, "inputs": {"scores": dict}}
PAPERS_SIZES = ("small", "base")
FEWEST_SEEDS = 3  # of pre-training, over which exits from the plateau are compared

Record = dict[str, Any]


@dataclass(frozen=True)
class SuiteScores:
    """The scores of a suite, tables of `symbert.report.scores`; None where there are none."""

    suite: str
    settings: ReportSettings  # with the tasks of the suite and what captions say of them
    scores: pd.DataFrame | None  # at the last step, and at step 0
    curve: pd.DataFrame | None  # over checkpoints; NaN for seeds that lack a column which counts

    @property
    def trained(self) -> pd.DataFrame | None:
        """The scores of the comparison without models that were not pre-trained."""
        return None if self.scores is None else self.scores.query("step > 0")


@dataclass(frozen=True)
class Collection:
    """The data of an experiment; what it has no files of is None or empty. The user's own tasks stand with GLUE's."""

    settings: ReportSettings | None = None  # what captions must say; None without an experiment
    parameters: Record = field(default_factory=dict)  # by size, as `symbert.model.parameters` counts them
    sections: Record = field(default_factory=dict)  # the settings of each stage by name
    origin: Record | None = None  # of imported scores: name, files with SHA-256, length of pre-training
    suites: dict[str, SuiteScores] = field(default_factory=dict)
    robustness: pd.DataFrame | None = None  # the compared models on noise and out-of-domain sets
    runs: pd.DataFrame = field(default_factory=lambda: read_runs([], 0))  # validation losses of the encoder's runs
    pretrain_seeds: list[int] = field(default_factory=list)  # over which exits are compared; empty below three
    speeds: pd.DataFrame = field(default_factory=lambda: read_speeds([]))  # of operators by size, measured in turns
    machines: list[PretrainedRun] = field(default_factory=list)  # of all runs; unknown of imported ones
    grids: list[tuple[Grid, list[pd.DataFrame]]] = field(default_factory=list)  # of a sweep: losses at each point
    parts: list[Row] = field(default_factory=list)  # of the corpus, counts and record of each
    manifest: Record | None = None  # of the packed rows
    anatomy: pd.DataFrame | None = None  # a row per head of a checkpoint
    probes: pd.DataFrame | None = None  # relations between tokens that operators express
    blimp: pd.DataFrame | None = None  # judgements of minimal pairs
    hosts: pd.DataFrame | None = None  # the runs of other hosts than the encoder as they ended
    courses: dict[tuple[str, str, str], pd.DataFrame] = field(default_factory=dict)  # and over their training

    @property
    def scored(self) -> list[SuiteScores]:
        """The suites that have scores of the comparison, GLUE first."""
        return [suite for suite in self.suites.values() if suite.scores is not None]

    def settings_of(self, suite: str) -> ReportSettings:
        """The settings with the tasks of one suite; KeyError where there are no scores of it."""
        return self.suites[suite].settings

    def scores_of(self, suite: str) -> pd.DataFrame | None:
        """The scores of the comparison on a suite, at the last step and at step 0."""
        return self.suites[suite].scores if suite in self.suites else None

    def curve_of(self, suite: str) -> pd.DataFrame | None:
        """The scores of checkpoints on a suite."""
        return self.suites[suite].curve if suite in self.suites else None

    @property
    def scores(self) -> pd.DataFrame | None:
        """The scores of the comparison on GLUE and the user's own tasks, at the last step and at step 0."""
        return self.scores_of("glue")

    @property
    def trained(self) -> pd.DataFrame | None:
        """The same without models that were not pre-trained."""
        return self.suites["glue"].trained if "glue" in self.suites else None

    @property
    def curve(self) -> pd.DataFrame | None:
        """The scores of checkpoints on GLUE and the user's own tasks."""
        return self.curve_of("glue")


def read_record(place: Path) -> tuple[Path, Record]:
    """The folder of an experiment by its name or path, and its experiment.json with inputs as paths from here.

    MissingInputError where there is none.
    """
    folder = next((found for found in (place, RESULTS / place) if (found / "experiment.json").is_file()), place)
    file = folder / "experiment.json"
    if not file.is_file():
        raise MissingInputError(f"{file}: file not found; name an experiment that was run, or its folder")
    record = read_json(file, RECORD)
    above = Path(os.path.relpath(folder / "../.."))  # the folder with results/, where paths begin
    return folder, {**record, "inputs": _from(above, record["inputs"])}


def _from(above: Path, inputs: Any) -> Any:
    """The same with every name of a file as a path; where scores come from, its name included, stays as it is."""
    if isinstance(inputs, dict):
        return {name: files if name == "origin" else _from(above, files) for name, files in inputs.items()}
    return [above / file for file in inputs] if isinstance(inputs, list) else above / inputs


def collect(record: Record) -> Collection:
    """The data of an experiment, by its experiment.json as `read_record` gives it.

    DataError names a file that is damaged, incomplete or of another experiment; MissingInputError one that is missing.
    """
    inputs, sweep = record["inputs"], record["configuration"]["sweep"]
    known = [name for name in sweep["attention"] if name in OPERATORS]  # others' operators have no code here
    swept = grids_of(record["configuration"]) if "grids" in inputs else []
    return read_inputs(
        settings_from(record["report"], ReportSettings, "experiment.json: 'report'"),
        inputs,
        finetune_seeds=sweep["finetune_seeds"],
        curve_seeds=sweep["curve"]["finetune_seeds"],
        grids=[(grid, inputs["grids"][grid.name]) for grid in swept],
        pretrain_seeds=sweep["pretrain_seeds"] if len(sweep["pretrain_seeds"]) >= FEWEST_SEEDS else [],
        sections=sections_of(record),
        parameters=counted(sweep["sizes"], known or ["original"]),
    )


def read_inputs(
    settings: ReportSettings,
    inputs: Record,
    finetune_seeds: Iterable[int] = (),
    curve_seeds: Iterable[int] = (),
    grids: Iterable[tuple[Grid, list[Path]]] = (),
    **more: Any,
) -> Collection:
    """The data in files, by the names of experiment.json's inputs; `more` are fields that no file has."""
    grids, given = list(grids), {name: files for name, files in inputs.items() if files}
    runs, other_runs = given.get("runs", []), given.get("runs_of_others", [])
    swept = dict.fromkeys(folder for _, folders in grids for folder in folders)
    suites = _suites(settings, given, list(finetune_seeds), list(curve_seeds))
    scores = suites["glue"].trained if "glue" in suites else None
    read: Record = {"runs": read_runs(runs, settings.steps, settings.runs)} if runs else {}
    if "robustness" in given:
        majority_of(scores)
        read["robustness"] = read_robustness(given["robustness"], scores, settings.settings_hash)
    if "origin" not in given:
        read["machines"] = read_pretrained([*runs, *other_runs, *swept])
    steps = settings.host_steps or dict.fromkeys(OTHERS, settings.steps)
    if other_runs:
        asked = settings.host_runs or []
        read |= {"hosts": read_hosts(other_runs, steps, asked), "courses": read_courses(other_runs, steps, asked)}
    if "blimp" in given:
        wanted = [(ENCODER, *run, settings.steps) for run in settings.runs]
        judges = [run for run in settings.host_runs or [] if HOSTS[run[0]].has_likelihoods]
        wanted += [(host, *run, steps[host]) for host, *run in judges]
        read["blimp"] = read_judgements(given["blimp"], (settings.suites or {}).get("blimp"), wanted)
    if "parts" in given:
        read["parts"] = read_parts(given["parts"])
    if "manifest" in given:
        read["manifest"] = read_json(given["manifest"], MANIFEST)
        check_packed(given["manifest"], read["manifest"], read.get("parts", []))
    readers = {"anatomy": read_anatomy, "probes": read_probes}
    read |= {name: reader(given[name][0]) for name, reader in readers.items() if name in given}
    return Collection(
        settings=settings,
        origin=given.get("origin"),
        suites=suites,
        grids=read_grids(grids),
        speeds=read_speeds(given.get("speeds", [])),
        **read,
        **more,
    )


def _suites(settings: ReportSettings, given: Record, final_seeds: list[int], curve_seeds: list[int]) -> dict:
    """The scores of each suite that has any, GLUE first."""
    files = {name: {suite: found for suite, found in given.get(name, {}).items() if found} for name in SCORES}
    suites = {}
    for suite in SUITES:
        of_suite = settings if suite == "glue" else captions.of_suite(settings, suite)
        tasks, expected = tasks_of_suite(suite, of_suite.tasks), of_suite.settings_hash
        scores = curve = None
        if suite in files["scores"]:
            read = read_scores(files["scores"][suite], tasks, final_seeds, expected, runs=settings.scored_runs)
            scores = final_scores(read, settings.steps)
        if suite in files["curve"]:
            read = read_scores(files["curve"][suite], tasks, curve_seeds, expected, runs=settings.curve_runs)
            curve = of_whole_seeds(read)
        if scores is not None or curve is not None:
            suites[suite] = SuiteScores(suite, of_suite, scores, curve)
    return suites


SCORES = ("scores", "curve")


def check_packed(file: Path, manifest: Record, parts: list[Row]) -> None:
    """DataError where documents and tokens after packing are more than was kept, or do not add up."""
    packed = sum(manifest["rows"].values()) * manifest["sequence_length"]
    left_over = manifest["remainder_tokens"] + sum(manifest["surplus_tokens"].values())
    if packed + left_over != manifest["tokens"]:
        raise DataError(
            f"{file}: {packed} tokens in rows and {left_over} left over are not its {manifest['tokens']}; {REMEDY}"
        )
    kept = sum(part["counts"]["kept"] for part in parts), sum(part["record"]["tokens"] for part in parts)
    counts = sum(manifest["documents"].values()), manifest["tokens"]
    for what, count, most in zip(("documents", "tokens"), counts, kept, strict=True) if parts else ():
        if count > most:
            raise DataError(f"{file}: {count} {what} packed, but {most} kept in all parts; {REMEDY}")


def sections_of(record: Record) -> Record:
    """The settings of each stage by name, for the table of provenance; of imported scores only the report's."""
    config, of_report = record["configuration"], {"report": record["report"]}
    if "origin" in record["inputs"]:
        return of_report
    sections = {
        "filter": {**filter_of(config), "annotations": annotations_of(config)},
        "pack": config["corpus"]["pack"],
        "pretrain": values_of(training_of(config, ENCODER)),
        "task": values_of(protocol_of(config, "glue", TaskSettings)),
        "glue": values_of(protocol_of(config, "glue", GlueSettings)),
        **of_report,
    }
    for suite in SUITES.values():
        if suite.name != "glue" and tasks_of_suite(suite.name, config["sweep"]["tasks"]):
            sections[suite.rows_section] = values_of(protocol_of(config, suite.name, TaskSettings))
            sections[suite.name] = values_of(protocol_of(config, suite.name, GlueSettings))
    if "blimp" in config["sweep"]["suites"]:
        sections["blimp"] = values_of(protocol_of(config, "blimp", MinimalPairSettings))
    return sections


def counted(sizes: Iterable[str], attention: Iterable[str]) -> Record:
    """Parameters of each of these operators, in these sizes and those of the paper."""
    from symbert.model.parameters import counts_of  # imports torch

    chosen = {*PAPERS_SIZES, *sizes}
    return {size: counts_of(size, list(attention)) for size in SIZES if size in chosen}
