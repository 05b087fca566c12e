"""Everything that a report shows: each file that experiment.json names, read once and checked once, as tidy tables.

`collect` gives a `Collection`. Rows of scores, robustness, judgements and runs are checked alike: none may be there
twice, missing, or computed with other settings than the rest.
"""

import math
import os
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise, product
from pathlib import Path
from typing import Any, get_args

import pandas as pd

from symbert.configuration import (
    GlueSettings,
    MinimalPairSettings,
    NoiseKind,
    ReportSettings,
    TaskSettings,
    annotations_of,
    filter_of,
    protocol_of,
    settings_from,
    training_of,
    values_of,
)
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.experiment.sweep import Grid, grids_of
from symbert.files import flaws, read_json, read_json_lines, sha256_of
from symbert.glue.blimp import PARADIGMS
from symbert.glue.metrics import checked
from symbert.glue.tasks import SUITES, task_named, tasks_of_suite
from symbert.hosts import ENCODER, HOSTS, OTHERS
from symbert.operators import OPERATORS
from symbert.paths import Run
from symbert.report import captions, order, tidy
from symbert.report.published import COLUMNS
from symbert.report.statistics import final_scores, of_whole_seeds
from symbert.sizes import SIZES

Record = dict[str, Any]

RESULTS = Path("results")
PAPERS_SIZES = ("small", "base")
FEWEST_SEEDS = 3  # of pre-training, over which exits from the plateau are compared
REMEDY = "delete it and run again"  # of a file
LISTED = 20  # problems that an error names
NOISE, DOMAIN = "noise", "out-of-domain"  # kinds of robustness sets
KINDS = get_args(NoiseKind)  # names of noise
SAME = 1e-9  # clean scores that differ by more are of two models

RUN = ("size", "attention", "pretrain_seed")
CELL = (*RUN, "step", "task", "finetune_seed")
FLAGS = ("partial", "stand_in", "constant_prediction")
CHECKED = ("checkpoint_sha256", "data_sha256", "precision", "attention_dropout")  # the device decides the last two
SCORE_COLUMNS = (*CELL, *FLAGS, *CHECKED, "column", "score", "details", "majority")
JUDGED = ("host", *RUN, "step")
INITIAL = ("logit_std", "attention_entropy")  # of the untrained model, a number per layer
HEAD = ["size", "attention", "pretrain_seed", "step", "layer"]
MEASURES = ["symmetry", "directionality", "logit_std", "attention_entropy", "own_share"]
PROBED = ["attention", "relation", "own_position", "share", "low", "high", "chance", "steps"]
SPEEDS = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")

# The shapes of files, as `symbert.files.flaws` takes them.
NUMBER, NULL = (int, float), type(None)
EXPERIMENT = {"experiment": str, "key": str, "configuration": dict, "report": dict, "inputs": {"scores": dict}}
RUN_RECORD = {"size": str, "attention": str, "pretrain_seed": int}
CELL_RECORD = {**RUN_RECORD, "step": int, "task": str, "finetune_seed": int, "settings_hash": str, "stand_in": bool}
SCORES = {**CELL_RECORD, "metrics": {str: NUMBER}, "majority": {str: NUMBER}, "partial": bool}
SCORES |= {"constant_prediction": (bool, NULL)}
SET = {"kind": str, "name": str, "share": (*NUMBER, NULL), "column": (str, NULL), "metrics": [str], "rows": int}
SET |= {"official_rows": (int, NULL), "partial": bool, "constant_prediction": (bool, NULL)}
SET |= {"score": NUMBER, "majority": NUMBER}
ROBUSTNESS = {**CELL_RECORD, "clean": {str: NUMBER}, "sets": {str: SET}}
PAIRS = {"pairs": int, "right": int, "ties": int}
JUDGEMENT = {**RUN_RECORD, "step": int, "partial": bool, "stand_in": bool, "paradigms": {str: PAIRS}}
JUDGEMENT |= {"settings_hash": str, "data_sha256": str}
KEPT = {"read": int, "kept": int, "dropped": {str: int}}  # the first is the sum of the others, and of bad lines
COUNTS = {"part": str, **KEPT, "bad": int, "without_url": int, "characters": KEPT}
COUNTS |= {"histograms": {str: {"read": [int], "kept": [int]}}}
TOKENS = {"part": str, "documents": int, "tokens": int, "words": int, "histogram": [int]}
PART = {"counts": COUNTS, "record": TOKENS}
MANIFEST = {"documents": {str: int}, "rows": {"train": int, "validation": int}, "sequence_length": int, "tokens": int}
MANIFEST |= {"remainder_tokens": int, "surplus_tokens": {str: int}}
MEASURED = {"size": str, "device": str, "processor": str, "precision": str, "threads": int, "micro_batch_size": int}
MEASURED |= {"peak_flops": (*NUMBER, NULL), "tokens_per_step": int}
MEASURED |= {"operators": {str: {"step_seconds": [NUMBER], "flops_per_step": NUMBER}}}
SESSIONS = {"sessions": [{"started": str, "device": str, "processes": int}]}


@dataclass(frozen=True)
class SuiteScores:
    """The scores of a suite, rows of SCORE_COLUMNS; None where there are none."""

    suite: str
    settings: ReportSettings  # with the tasks of the suite and what captions say of them
    scores: pd.DataFrame | None  # at the last step, and at step 0
    curve: pd.DataFrame | None  # over checkpoints; NaN for seeds that lack a column which counts

    @property
    def trained(self) -> pd.DataFrame | None:
        """The scores of the comparison without models that were not pre-trained."""
        return None if self.scores is None else self.scores.query("step > 0")


@dataclass(frozen=True)
class PretrainedRun:
    """A run: its published facts, and its sessions, the first one first; a run that was interrupted has several."""

    run: Run
    facts: Record
    sessions: list[Record]

    def facts_of(self, key: str) -> str | None:
        """The value of `key` in each session, each once, in words; None where no session has it."""
        values = [session[key] for session in self.sessions if key in session]
        words = (
            ", ".join(f"{name} {item}" for name, item in value.items()) if isinstance(value, dict) else str(value)
            for value in values
        )
        return "; ".join(dict.fromkeys(words)) or None

    @property
    def hours(self) -> tuple[float, float] | None:
        """The hours of all sessions, and as much of GPUs, one per process; None where timing.json has the last alone.

        A session that was killed at once has no end.
        """
        if len(self.sessions) != self.facts.get("sessions", 1):
            return None
        wall = on_gpus = 0.0
        for session in (session for session in self.sessions if "until" in session):
            begun, ended = (datetime.fromisoformat(session[key]) for key in ("started", "until"))
            hours = (ended - begun).total_seconds() / 3600
            wall += hours
            on_gpus += hours * (0 if session["device"] == "cpu" else session["processes"])
        return wall, on_gpus


@dataclass(frozen=True)
class Collection:
    """The data of an experiment; what it has no files of is None or empty. The user's own tasks stand with GLUE's."""

    settings: ReportSettings | None = None  # what captions must say; None without an experiment
    parameters: Record = field(default_factory=dict)  # by size, as `symbert.model.parameters` counts them
    sections: Record = field(default_factory=dict)  # the settings of each stage by name
    origin: Record | None = None  # of imported scores: name, files with SHA-256, length of pre-training
    suites: dict[str, SuiteScores] = field(default_factory=dict)
    robustness: pd.DataFrame | None = None  # the compared models on noise and out-of-domain sets
    runs: pd.DataFrame = field(default_factory=lambda: runs_of([]))  # validation losses of the encoder's runs
    pretrain_seeds: list[int] = field(default_factory=list)  # over which exits are compared; empty below three
    speeds: pd.DataFrame = field(default_factory=lambda: read_speeds([]))  # of operators by size, measured in turns
    machines: list[PretrainedRun] = field(default_factory=list)  # of all runs; unknown of imported ones
    grids: list[tuple[Grid, list[pd.DataFrame]]] = field(default_factory=list)  # of a sweep: losses at each point
    parts: list[Record] = field(default_factory=list)  # of the corpus, counts and record of each
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
    record = read_json(file, EXPERIMENT)
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
    settings = settings_from(record["report"], ReportSettings, "experiment.json: 'report'")
    known = [name for name in sweep["attention"] if name in OPERATORS]  # others' operators have no code here
    facts = {"sections": sections_of(record), "parameters": counted(sweep["sizes"], known or ["original"])}
    if "origin" in inputs:
        return _imported(settings, inputs, facts)
    swept = grids_of(record["configuration"]) if "grids" in inputs else []
    return read_inputs(
        settings,
        inputs,
        finetune_seeds=sweep["finetune_seeds"],
        curve_seeds=sweep["curve"]["finetune_seeds"],
        grids=[(grid, inputs["grids"][grid.name]) for grid in swept],
        pretrain_seeds=sweep["pretrain_seeds"] if len(sweep["pretrain_seeds"]) >= FEWEST_SEEDS else [],
        **facts,
    )


def _imported(settings: ReportSettings, inputs: Record, facts: Record) -> Collection:
    """The data of an import: scores and losses in csv files."""
    final, curve = tidy.parted(tidy.read_scores(inputs["scores"]["glue"][0]), settings.steps)
    curve = of_whole_seeds(curve) if len(curve) else None
    suites = {"glue": SuiteScores("glue", settings, final if len(final) else None, curve)}
    runs = {"runs": tidy.read_losses(inputs["losses"])} if "losses" in inputs else {}
    return Collection(settings, origin=inputs["origin"], suites=suites, **runs, **facts)


def read_inputs(
    settings: ReportSettings,
    inputs: Record,
    finetune_seeds: Iterable[int] = (),
    curve_seeds: Iterable[int] = (),
    grids: Iterable[tuple[Grid, list[Path]]] = (),
    **facts: Any,
) -> Collection:
    """The data in files, by the names of experiment.json's inputs; `facts` are fields that no file has."""
    grids, given = list(grids), {name: files for name, files in inputs.items() if files}
    swept = dict.fromkeys(folder for _, folders in grids for folder in folders)
    folders = [*given.get("runs", []), *given.get("runs_of_others", [])]
    runs = {folder: read_run(folder) for folder in dict.fromkeys([*folders, *swept])}
    steps = {ENCODER: settings.steps, **(settings.host_steps or dict.fromkeys(OTHERS, settings.steps))}
    wanted = [(ENCODER, *run) for run in settings.runs] + [tuple(run) for run in settings.host_runs or []]
    trained = checked_runs([runs[folder] for folder in folders], steps, wanted if folders else ())
    of_others = [run for run in trained if run["host"] != ENCODER]
    suites = _suites(settings, given, list(finetune_seeds), list(curve_seeds))
    read: Record = {"hosts": hosts_of(of_others), "courses": courses_of(of_others)} if of_others else {}
    if "robustness" in given:
        read["robustness"] = read_robustness(given["robustness"], suites["glue"].trained, settings.settings_hash)
    if "blimp" in given:
        judges = [run for run in wanted if HOSTS[run[0]].has_likelihoods]
        expected = (settings.suites or {}).get("blimp")
        read["blimp"] = read_judgements(given["blimp"], expected, [(*run, steps[run[0]]) for run in judges])
    if "parts" in given:
        read["parts"] = read_parts(given["parts"])
    if "manifest" in given:
        read["manifest"] = read_manifest(given["manifest"], read.get("parts", []))
    for name, columns in (("anatomy", [*HEAD, "head", *MEASURES]), ("probes", PROBED)):
        read |= {name: read_table(given[name][0], columns)} if name in given else {}
    return Collection(
        settings=settings,
        suites=suites,
        runs=runs_of([run for run in trained if run["host"] == ENCODER]),
        machines=sorted((pretrained(run) for run in runs.values()), key=lambda known: _rank_of(known.run.facts)),
        grids=grids_of_runs(grids, runs),
        speeds=read_speeds(given.get("speeds", [])),
        **read,
        **facts,
    )


def _suites(settings: ReportSettings, given: Record, final_seeds: list[int], curve_seeds: list[int]) -> dict:
    """The scores of each suite that has any, GLUE first."""
    suites = {}
    for suite in SUITES:
        of_suite = settings if suite == "glue" else captions.of_suite(settings, suite)
        tasks, expected = tasks_of_suite(suite, of_suite.tasks), of_suite.settings_hash
        scores = curve = None
        if files := given.get("scores", {}).get(suite):
            read = read_scores(files, tasks, final_seeds, expected, settings.scored_runs)
            scores = final_scores(read, settings.steps)
        if files := given.get("curve", {}).get(suite):
            curve = of_whole_seeds(read_scores(files, tasks, curve_seeds, expected, settings.curve_runs))
        if scores is not None or curve is not None:
            suites[suite] = SuiteScores(suite, of_suite, scores, curve)
    return suites


# Checks of rows.


def name_of(row: Mapping[str, Any]) -> str:
    """A row in words, as far as it says: 'decoder tiny-original/seed-1/step-1600/rte finetune_seed 3'."""
    host = row.get("host", ENCODER)
    path = [f"{'' if host == ENCODER else f'{host} '}{row['size']}-{row['attention']}", f"seed-{row['pretrain_seed']}"]
    path += [f"step-{row['step']}"] if "step" in row else []
    path += [row["task"]] if "task" in row else []
    words = [f"finetune_seed {row['finetune_seed']}"] if "finetune_seed" in row else []
    sets = [str(row[key]) for key in ("label", "column") if row.get(key) not in (None, row.get("task"))]
    return " ".join(["/".join(path), *words, *sets])


def refuse(what: str, problems: Iterable[str]) -> None:
    """DataError that lists the first problems and counts the others; nothing without problems."""
    problems = list(dict.fromkeys(problems))
    more = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
    if problems:
        raise DataError(f"{what}: {'; '.join(problems[:LISTED])}{more}; delete their files and run again")


def other_cells(rows: Iterable[Record], key: Sequence[str], wanted: Iterable[tuple]) -> Iterator[str]:
    """A line for each cell that several rows have, each of the wanted that is missing, and each that is not wanted."""
    counts, wanted = Counter(tuple(row[name] for name in key) for row in rows), dict.fromkeys(wanted)
    for cell, count in counts.items():
        if count > 1:
            yield f"duplicate: {name_of(dict(zip(key, cell, strict=True)))} is there {count} times"
    for kind, cells in (("missing", wanted.keys() - counts.keys()), ("unexpected", counts.keys() - wanted.keys())):
        names = (name_of(dict(zip(key, cell, strict=True))) for cell in cells)
        yield from (f"{kind}: {name}" for name in sorted(names))


def other_facts(rows: Sequence[Record], fact: str, alike: Sequence[str], expected: Any = None) -> Iterator[str]:
    """A line for each row in which `fact` is not as expected, or without expectation as in most rows that are `alike`.

    None is not known, and like any value.
    """
    groups: dict[tuple, Counter] = defaultdict(Counter)
    for row in rows:
        if row.get(fact) is not None:
            groups[tuple(row[name] for name in alike)][row[fact]] += 1
    usual = {group: expected or values.most_common(1)[0][0] for group, values in groups.items()}
    for row in rows:
        value = row.get(fact)
        if value is not None and value != (known := usual[tuple(row[name] for name in alike)]):
            yield f"other {fact}: {name_of(row)} has {value!s:.16}, expected {known!s:.16}"


def not_scores(rows: Iterable[Record], *keys: str) -> Iterator[str]:
    """A line for each value that is no number from -1 to 1."""
    for row in rows:
        yield from (f"not a score: {name_of(row)} is {row[key]}" for key in keys if not -1 <= row[key] <= 1)


def _rank_of(row: Mapping[str, Any]) -> tuple:
    """Sort key of a run: by host, size, operator and seed."""
    host = list(HOSTS).index(row.get("model_host", row.get("host", ENCODER)))
    return host, order.model_rank(row["size"], row["attention"]), row["pretrain_seed"]


# Scores.


def read_records(files: Iterable[Path], shape: Record) -> list[Record]:
    """The records of files; DataError for another shape, IntegrityError for one that was damaged since."""
    records = []
    for file in sorted(files):
        of_file = read_json(file, [shape])
        if not of_file:
            raise DataError(f"{file}: no record in it; {REMEDY}")
        records += [checked(record, f"{file}: record {number}", REMEDY) for number, record in enumerate(of_file, 1)]
    return records


def read_scores(
    files: list[Path],
    tasks: list[str],
    finetune_seeds: Sequence[int],
    settings_hash: str | None = None,
    runs: Iterable[Sequence[str | int]] = (),
) -> pd.DataFrame:
    """A row of SCORE_COLUMNS per score column of every record, by model, step, task and seed.

    Scores are 0 to 1 (Matthews and correlations from -1); `details` are metrics by name. Other fine-tuning seeds are
    left out. DataError lists scores that are missing, twice, of other settings (None: any), rows, precision or dropout.
    Every model of a size needs every task and seed at every step of that size, and all of `runs` are needed.
    MissingInputError when no record is of these seeds.
    """
    every = read_records(files, SCORES)
    records = [record for record in every if record["finetune_seed"] in finetune_seeds]
    if not records:
        others = sorted({record["finetune_seed"] for record in every})
        raise MissingInputError(f"scores: no record is of fine-tuning seeds {finetune_seeds}; choose among {others}")
    columns = {task: list(task_named(task).scores.values()) for task in tasks}
    rows = [
        {key: record.get(key) for key in (*CELL, *FLAGS, *CHECKED, "settings_hash")}
        | {"column": column, "score": score, "details": (record.get("details") or {}).get(column)}
        | {"majority": record["majority"].get(column, math.nan)}
        for record in records
        for column, score in record["metrics"].items()
    ]
    models, steps = defaultdict(set), defaultdict(set)
    for size, *model, step in [*(tuple(record[key] for key in (*RUN, "step")) for record in records)]:
        models[size].add(tuple(model))
        steps[size].add(step)
    for size, *model in runs:
        models[size].add(tuple(model))
    wanted = [
        (size, *model, step, task, seed, column)
        for size in models
        for model, step, task, seed in product(models[size], steps[size] or [0], tasks, finetune_seeds)
        for column in columns[task]
    ]
    refuse(
        "scores",
        [
            *other_cells(rows, (*CELL, "column"), wanted),
            *other_facts(rows, "settings_hash", (), settings_hash),
            *(problem for key in ("data_sha256", "majority") for problem in other_facts(rows, key, ("task", "column"))),
            *(problem for key in CHECKED[2:] for problem in other_facts(rows, key, ())),
            *not_scores(rows, "score", "majority"),
        ],
    )
    rows.sort(
        key=lambda row: (
            *_rank_of(row)[1:],
            row["step"],
            tasks.index(row["task"]),
            row["finetune_seed"],
            columns[row["task"]].index(row["column"]),
        )
    )
    return pd.DataFrame(rows, columns=SCORE_COLUMNS).astype({"score": float, "majority": float})


def majority_of(scores: pd.DataFrame) -> dict[str, float]:
    """The majority baseline of each score column that has one."""
    known = scores.dropna(subset=["majority"]).drop_duplicates("column")
    return dict(zip(known["column"], known["majority"], strict=True))


def read_robustness(files: list[Path], clean: pd.DataFrame, settings_hash: str | None) -> pd.DataFrame:
    """A row per set of every record: its cell, the set's facts, `score` and `majority` (0 to 1), flags.

    `label` is the column of tables that a row counts for: 'hans', or 'mixed_20' for 20 % of mixed noise. The score of
    the same model without noise is `clean` (NaN where the set has no column); the model `differs` where it was
    fine-tuned again and does not score as the table `clean` says. Rows are in the order of that table, whose other
    fine-tuning seeds are left out. DataError as of `read_scores`: every model of a task needs the same sets of the same
    rows, and the checkpoint, rows, precision and dropout of its clean score. Noise on a column outside the GLUE score
    (wnli) is left out; MissingInputError where nothing is left.
    """
    seeds = set(clean["finetune_seed"])
    records = [record for record in read_records(files, ROBUSTNESS) if record["finetune_seed"] in seeds]
    known: dict[tuple, dict[str, float]] = defaultdict(dict)  # clean scores by cell and column
    for *cell, column, score in clean[[*CELL, "column", "score"]].itertuples(index=False):
        known[tuple(cell)][column] = score
    rows = [row for record in records for row in _sets_of(record, known.get(tuple(record[key] for key in CELL), {}))]
    sets: dict[str, dict] = defaultdict(dict)  # of each task, by label and column
    for row in rows:
        sets[row["task"]][row["label"], row["column"]] = None
    wanted = [(*cell, *name) for cell in known for name in sets.get(cell[4], ())]
    of_cells = [*clean.drop_duplicates(list(CELL))[[*CELL, *CHECKED]].to_dict("records"), *records]
    alike = ("task", "label", "column")
    problems = [
        *other_cells(rows, (*CELL, "label", "column"), wanted),
        *other_facts(records, "settings_hash", (), settings_hash),
        *(problem for key in CHECKED for problem in other_facts(of_cells, key, CELL)),
        *(problem for key in ("rows", "partial", "majority") for problem in other_facts(rows, key, alike)),
        *not_scores(rows, "score", "majority"),
    ]
    refuse("robustness", problems)
    rank = {cell: place for place, cell in enumerate(known)}
    rows = [row for row in rows if row["kind"] == DOMAIN or row["column"] in COLUMNS]
    if not rows:
        raise MissingInputError(
            "robustness: no record has a set that counts; choose other glue.robustness.noise or sets"
        )
    return pd.DataFrame(sorted(rows, key=lambda row: rank[tuple(row[key] for key in CELL)]))


def _sets_of(record: Record, known: dict[str, float]) -> Iterator[Record]:
    """A row per set of a record; `known` are the scores of the same model in Table 3."""
    clean = record["clean"]
    differs = any(abs(score - known.get(column, math.nan)) > SAME for column, score in clean.items())
    for facts in record["sets"].values():
        label = level_name(facts["name"], facts["share"]) if facts["kind"] == NOISE else facts["name"]
        yield {
            **{key: record[key] for key in (*CELL, "stand_in")},
            "differs": differs,
            "label": label,
            "clean": clean.get(facts["column"], math.nan),
            **{key: facts[key] for key in SET},
        }


def level_name(kind: str, share: float) -> str:
    """The label of a share of noise: 'mixed_20' for 20 %."""
    return f"{kind}_{100 * share:g}"


def read_judgements(files: list[Path], settings_hash: str | None, wanted: Iterable[tuple] = ()) -> pd.DataFrame:
    """A row per checkpoint and paradigm of BLiMP: the checkpoint and its host, `phenomenon`, `paradigm`, its pairs,
    `accuracy` in percent, and whether the pairs are stand-ins or not all that are published. A tie counts half.

    `wanted` are hosts, sizes, operators, seeds and steps, which others may stand beside. DataError as of `read_scores`.
    """
    records = []
    for file in files:
        record = checked(read_json(file, JUDGEMENT, REMEDY), str(file), REMEDY)
        records.append({"host": record.get("model_host", ENCODER), **record})
        if list(record["paradigms"]) != list(PARADIGMS) or records[-1]["host"] not in HOSTS:
            raise DataError(f"{file}: not of BLiMP's {len(PARADIGMS)} paradigms and a host here; {REMEDY}")
        for paradigm, counts in record["paradigms"].items():
            if not (min(counts.values()) >= 0 and 0 < counts["pairs"] >= counts["right"] + counts["ties"]):
                raise DataError(f"{file}: counts of {paradigm} do not add up; {REMEDY}")
    present = [tuple(record[key] for key in JUDGED) for record in records]
    problems = [
        *other_cells(records, JUDGED, [*wanted, *present]),
        *other_facts(records, "settings_hash", (), settings_hash),
        *other_facts(records, "data_sha256", ()),
    ]
    refuse("blimp", problems)
    records.sort(key=lambda record: (*_rank_of(record), record["step"]))
    rows = [
        {key: record[key] for key in (*JUDGED, "partial", "stand_in")}
        | {"phenomenon": PARADIGMS[paradigm], "paradigm": paradigm, **counts}
        for record in records
        for paradigm, counts in record["paradigms"].items()
    ]
    table = pd.DataFrame(rows)
    table["accuracy"] = 100 * (table["right"] + table["ties"] / 2) / table["pairs"]
    return table


# Pre-training.


def read_run(folder: Path) -> Record:
    """A run by its done.json and metrics.jsonl: its host, steps and validation losses, the measure of its host, means
    over layers of what was logged of the untrained model, and done.json itself.

    DataError names the file that is of another shape; IntegrityError the metrics.jsonl that is not the run's.
    """
    done, log = read_json(folder / "done.json", RUN_RECORD | {"steps": int}, REMEDY), folder / "metrics.jsonl"
    host = done.get("model_host", ENCODER)
    if host not in HOSTS:
        raise DataError(f"{folder}/done.json: 'model_host' is {host}, expected one of {', '.join(HOSTS)}; {REMEDY}")
    digest = sha256_of(log)
    if digest != done.get("metrics_sha256", digest):
        raise IntegrityError(f"{log}: sha256 expected {done['metrics_sha256']}, found {digest}; {REMEDY}")
    lines = list(read_json_lines(log, REMEDY))
    measure = "loss" if host == ENCODER else HOSTS[host].measure
    points = [line for line in lines if line.get("split") == "validation"]
    for number, line in enumerate(lines, start=1):
        for key in ("step", "loss", measure) if line.get("split") == "validation" else ():
            if type(line.get(key)) not in NUMBER or not math.isfinite(line[key]):
                raise DataError(f"{log}:{number}: '{key}' is {line.get(key)!r}, expected a finite number; {REMEDY}")
    if not points or any(line["step"] >= following["step"] for line, following in pairwise(points)):
        raise DataError(f"{log}: expected validation losses at increasing steps; {REMEDY}")
    initial = next((line for line in lines if line.get("split") == "initial"), {})
    return {
        **{key: done[key] for key in (*RUN, "steps")},
        "host": host,
        "step": [line["step"] for line in points],
        "loss": [line["loss"] for line in points],
        "measure": [line[measure] for line in points],
        **{key: statistics.fmean(initial[key]) if initial.get(key) else math.nan for key in INITIAL},
        "attention_dropout": (done.get("settings") or {}).get("attention_dropout"),  # where the device decides it
        "done": done,
        "folder": folder,
    }


def checked_runs(runs: list[Record], steps: Mapping[str, int], wanted: Iterable[tuple] = ()) -> list[Record]:
    """The same in the order of tables, host by host.

    DataError for a run that is there twice, of other steps than its host has, missing of the `wanted` (host, size,
    operator, seed), or of another attention dropout.
    """
    for run in runs:
        if run["steps"] != steps[run["host"]]:
            expected = f"expected {steps[run['host']]}"
            raise DataError(f"{run['folder']}/done.json: the run has {run['steps']} steps, {expected}; {REMEDY}")
    key = ("host", *RUN)
    rows = [{name: run[name] for name in (*key, "attention_dropout")} for run in runs]
    present = [tuple(row[name] for name in key) for row in rows]
    refuse("runs", [*other_cells(rows, key, [*wanted, *present]), *other_facts(rows, "attention_dropout", ("host",))])
    return sorted(runs, key=_rank_of)


def runs_of(runs: list[Record]) -> pd.DataFrame:
    """A row per validation of each run: `loss` is the mean cross-entropy (nats per masked token); `logit_std` and
    `attention_entropy` (nats) are those of the untrained model, alike in all rows of a run, NaN where not logged."""
    columns = (*RUN, "step", "loss", *INITIAL)
    table = pd.DataFrame(runs, columns=columns).explode(["step", "loss"], ignore_index=True)
    return table.astype({"step": int, "loss": float, **dict.fromkeys(INITIAL, float)})


def losses_of(runs: pd.DataFrame, value: str = "loss") -> dict[tuple[str, str], pd.DataFrame]:
    """Validation losses by size and operator: a row per pre-training seed, a column per step.

    DataError when the seeds of one were evaluated at different steps.
    """
    models = {}
    for model, part in runs.groupby(["size", "attention"], sort=False):
        models[model] = losses = part.pivot(index="pretrain_seed", columns="step", values=value)
        for seed in losses.index[(losses.isna() != losses.iloc[0].isna()).any(axis=1)]:
            raise DataError(f"runs: {'-'.join(model)} seed {seed} was evaluated at other steps than {losses.index[0]}")
    return models


def hosts_of(runs: list[Record]) -> pd.DataFrame:
    """A row per run of another host as it ended: host, size, attention, pretrain_seed, steps, validation_loss,
    parameters, the host's `measure`, its `further_measures` by name, and the `signatures` of those that have one."""
    rows = []
    for run in runs:
        names = [HOSTS[run["host"]].measure, *HOSTS[run["host"]].further_measures]
        shape = dict.fromkeys(["validation_loss", *(f"validation_{name}" for name in names)], NUMBER)
        done = run["done"]
        for flaw in flaws(done, shape | {"parameters": int}):
            raise DataError(f"{run['folder']}/done.json: {flaw}; {REMEDY}")
        measure, *further = (done[f"validation_{name}"] for name in names)
        rows.append(
            {key: run[key] for key in ("host", *RUN, "steps")}
            | {"validation_loss": done["validation_loss"], "parameters": done["parameters"], "measure": measure}
            | {"further_measures": dict(zip(names[1:], further, strict=True))}
            | {"signatures": {name: done[f"{name}_signature"] for name in names if f"{name}_signature" in done}}
        )
    return pd.DataFrame(rows)


def courses_of(runs: list[Record]) -> dict[tuple[str, str, str], pd.DataFrame]:
    """What hosts measure, by host, size and operator: a row per pre-training seed, a column per step."""
    columns = ["host", *RUN, "step", "measure"]
    table = pd.DataFrame(runs, columns=columns).explode(["step", "measure"], ignore_index=True)
    courses = {}
    for host, part in table.astype({"step": int, "measure": float}).groupby("host", sort=False):
        courses |= {(host, *model): seeds for model, seeds in losses_of(part, "measure").items()}
    return courses


def grids_of_runs(
    grids: list[tuple[Grid, list[Path]]], runs: dict[Path, Record]
) -> list[tuple[Grid, list[pd.DataFrame]]]:
    """Grids with the losses of the runs at each point, a row per seed and a column per step; DataError for a folder of
    another run."""
    made = []
    for grid, folders in grids:
        frames, files = [], iter(folders)
        for point in grid.points:
            losses = {}
            for seed, folder in zip(grid.seeds, files, strict=False):
                run = runs[folder]
                for key, value in {**point, "pretrain_seed": seed}.items():
                    if run.get(key, value) != value:
                        raise DataError(f"{folder}/done.json: '{key}' is {run[key]}, expected {value}; delete it")
                losses[seed] = dict(zip(run["step"], run["loss"], strict=True))
            frames.append(pd.DataFrame.from_dict(losses, orient="index").sort_index())
        made.append((grid, frames))
    return made


def pretrained(run: Record) -> PretrainedRun:
    """What a run was computed on. Its sessions stand in its working state, which may have been removed since;
    timing.json then tells of one of them."""
    timing, sessions = read_json(run["folder"] / "timing.json", RUN_RECORD), run["folder"] / "state/provenance.json"
    facts = run["done"] | timing
    kept = read_json(sessions, SESSIONS)["sessions"] if sessions.is_file() else [facts]
    return PretrainedRun(Run(*(run[key] for key in RUN), run["host"]), facts, kept)


def read_speeds(files: list[Path]) -> pd.DataFrame:
    """A row per size and operator, from a file per size, as measured in turns; `machine` is in words.

    `step_milliseconds` is the median over rounds. `ratios` are the step times by those of `original` in the same round,
    None without it, and `of_original_percent` is their median. DataError names the file of another shape.
    """
    rows = []
    for file in files:
        if not read_json(file, {"operators": dict})["operators"]:
            continue  # they did not fit the memory side by side
        measured = read_json(file, MEASURED)
        seconds = pd.DataFrame({name: each["step_seconds"] for name, each in measured["operators"].items()})
        if seconds.empty:
            raise DataError(f"{file}: no step was timed; {REMEDY}")
        for name, each in measured["operators"].items():
            ratios = (seconds[name] / seconds["original"]).to_numpy() if "original" in seconds else None
            step, peak = float(seconds[name].median()), measured["peak_flops"]
            rows.append(
                {
                    "size": measured["size"],
                    "attention": name,
                    "step_milliseconds": 1000 * step,
                    "of_original_percent": None if ratios is None else 100 * float(pd.Series(ratios).median()),
                    "tokens_per_second": measured["tokens_per_step"] / step,
                    "mfu_percent": peak and 100 * each["flops_per_step"] / step / peak,
                    "ratios": ratios,
                    "machine": _machine(measured),
                }
            )
    return pd.DataFrame(rows, columns=["size", "attention", *SPEEDS, "ratios", "machine"])


def _machine(measured: Record) -> str:
    device, threads = measured["device"], measured["threads"]
    parts = [f"cpu ({measured['processor']})" if device == "cpu" else device, measured["precision"]]
    parts += [f"{threads} thread{'s' if threads > 1 else ''}", f"{measured['micro_batch_size']:,} sequences at a time"]
    return ", ".join(parts)


# Corpus, heads and probes.


def read_parts(files: list[Path]) -> list[Record]:
    """The counts and the record of each part, en_meta_part_9 before en_meta_part_10.

    DataError names the file whose documents or characters read are not kept + dropped + bad, and a part that is there
    twice.
    """
    parts = [read_json(file, PART) for file in files]
    for part, file in zip(parts, files, strict=True):
        counts, record = part["counts"], part["record"]
        for what, kept, bad in (("documents", counts, counts["bad"]), ("characters", counts["characters"], 0)):
            if kept["read"] != kept["kept"] + bad + sum(kept["dropped"].values()):
                raise DataError(f"{file}: {what} read are not kept + dropped + bad; {REMEDY}")
        if record["documents"] != counts["kept"]:
            raise DataError(
                f"{file}: {record['documents']} documents have tokens, but {counts['kept']} were kept; {REMEDY}"
            )
    names = [part["counts"]["part"] for part in parts]
    refuse("parts", (f"duplicate: {name}" for name, count in Counter(names).items() if count > 1))
    return sorted(parts, key=lambda part: _natural(part["counts"]["part"]))


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(word), "") if word.isdigit() else (-1, word) for word in re.split(r"(\d+)", name)]


def read_manifest(file: Path, parts: list[Record]) -> Record:
    """What was packed; DataError where documents and tokens are more than was kept, or do not add up."""
    manifest = read_json(file, MANIFEST)
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
    return manifest


def read_table(file: Path, columns: list[str]) -> pd.DataFrame:
    """A csv file with these columns in the order of tables; DataError for another file."""
    try:
        table = pd.read_csv(file)
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: no csv ({' '.join(str(error).split())}); {REMEDY}") from None
    if missing := [column for column in columns if column not in table]:
        raise DataError(f"{file}: no column '{missing[0]}'; {REMEDY}")
    keys = [column for column in (*HEAD, "head") if column in table]
    ranks = {"size": order.sizes, "attention": order.attentions}
    places = {key: {name: at for at, name in enumerate(ranks[key](table[key]))} for key in keys if key in ranks}
    return table.sort_values(
        keys,
        key=lambda column: column.map(places.get(column.name)) if column.name in places else column,
        kind="stable",
        ignore_index=True,
    )


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
