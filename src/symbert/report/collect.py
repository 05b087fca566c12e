"""Everything that a report shows: each file that experiment.json names, read once and checked once, as tidy tables.

`collect` gives a `Collection`. A table of scores, robustness, minimal pairs or runs has each cell of its key once:
`check` refuses cells that are missing or twice, and rows that were computed with other settings or rows than the rest.
"""

import math
import os
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from symbert.architectures import ARCHITECTURES, ENCODER
from symbert.configuration import (
    Configuration,
    MinimalPairSettings,
    ReportSettings,
    define_custom,
    finetuned_pretrain_seeds,
    minimal_pair_seeds,
    protocol_of,
)
from symbert.corpus.parts import PartRecord
from symbert.corpus.shards import Manifest, Packed
from symbert.errors import DataError, IntegrityError, MissingInputError, line_of
from symbert.experiment.sweep import Grid, grids_of
from symbert.files import check_shape, read_json, read_json_lines, read_struct, sha256_of
from symbert.foreign import ForeignModel
from symbert.glue.blimp import PARADIGMS
from symbert.glue.metrics import checked
from symbert.glue.score import PairsRecord, RobustnessRecord, ScoreRecord, read_records
from symbert.glue.tasks import PUBLISHED, SUITES, columns_of, suite_of, tasks_of_suite
from symbert.operators import operators_of
from symbert.pretrain.anatomy import MEASURES
from symbert.pretrain.run import IDENTITY, OF_RUN, Done, Timing, Validated
from symbert.pretrain.speeds import Speeds
from symbert.pretrain.tuning import ESCAPED, Choice, has_diverged, read_rates
from symbert.report import names, tidy
from symbert.report.names import OF_PROJECT, Known
from symbert.report.published import COLUMNS
from symbert.report.statistics import Comparison, comparisons, final_scores, paired_comparisons
from symbert.sizes import VOCABULARY_SIZE, Shape, shapes_of
from symbert.steps import read_step

Record = dict[str, Any]

RESULTS = Path("results")
PAPERS_SIZES = ("small", "base")
FEWEST_SEEDS = 3  # of pre-training, over which escapes from the plateau are compared
REMEDY = "delete it and run again"  # of a file
LISTED = 20  # problems that an error names
NOISE, DOMAIN = "noise", "out-of-domain"  # kinds of robustness sets

RUN = ("size", "attention", "pretrain_seed")
CELL = (*RUN, "step", "task", "finetune_seed")
FLAGS = ("partial", "stand_in", "constant_prediction")
CHECKED = ("checkpoint_sha256", "data_sha256", "precision")  # the device decides the last one
MADE = ("settings_hash", "version")  # the key and the version of the step
ALIKE = {"settings_hash": ("suite", "model"), "version": ()}  # of scores in one table: one step made those of a suite
TUNED = ("head", "learning_rate", "tuned")
SCORE_COLUMNS = (*CELL, *FLAGS, *CHECKED, *TUNED, "column", "score", "details", "majority", "remark")
OF_SET = ("kind", "name", "share", "column", "metrics", "rows", "official_rows", "partial", "constant_prediction")
OF_SET += ("score", "majority")
CHECKPOINT = ("architecture", *RUN, "step")
HEAD = [*IDENTITY, "layer"]
SPEEDS = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")


def struct(*base: type, **keys: Any) -> type:
    """The type of a JSON object that has these keys at least."""
    return msgspec.defstruct("File", keys.items(), bases=base or None)


OfModel = ScoreRecord | RobustnessRecord | PairsRecord
RUN_FILE = struct(size=str, attention=str, pretrain_seed=int)
EXPERIMENT = struct(experiment=str, key=str, report=dict, inputs=struct(scores=dict))


# The collection.


@dataclass(frozen=True)
class Collection:
    """The data of an experiment; what it has no files of is None or empty. The user's own tasks stand with GLUE's."""

    experiment: ReportSettings | None = None  # None without an experiment
    known: Known = OF_PROJECT
    architectures_trained: tuple[str, ...] = (ENCODER,)
    parameters: Record = field(default_factory=dict)  # by size, as `counted` has them
    origin: Record | None = None  # of imported scores: name, files with SHA-256, length of pre-training
    models: list[ForeignModel] = field(default_factory=list)  # in the order of the configuration
    scores: dict[str, pd.DataFrame] = field(default_factory=dict)  # by suite, GLUE first: at the last step, and at 0
    curves: dict[str, pd.DataFrame] = field(default_factory=dict)  # by suite, over checkpoints
    robustness: pd.DataFrame | None = None  # the compared models on noise and out-of-domain sets
    runs: pd.DataFrame = field(default_factory=lambda: runs_of([]))  # validation losses of the encoder's runs
    escape_loss: float | None = None  # nats: at or below it these runs have escaped; None where it is not known
    speeds: pd.DataFrame = field(default_factory=lambda: read_speeds([]))  # of operators by size, measured in turns
    machines: list[Record] = field(default_factory=list)  # what all runs were computed on; unknown of imported ones
    grids: list[tuple[Grid, list[pd.DataFrame]]] = field(default_factory=list)  # of a sweep: losses at each point; a
    # tuned grid is there at the common rates and at the best ones
    tuned: list[tuple[Grid, list[Choice]]] = field(default_factory=list)  # the rates of the points of tuned grids
    escape_losses: dict[str, list[float | None]] = field(default_factory=dict)  # of grids: the same at each point
    parts: list[PartRecord] = field(default_factory=list)  # of the corpus
    manifest: Packed | None = None  # of its rows
    anatomy: pd.DataFrame | None = None  # a row per head of a checkpoint
    blimp: pd.DataFrame | None = None  # accuracies on minimal pairs
    architectures: pd.DataFrame | None = None  # the runs of other architectures than the encoder as they ended
    courses: dict[tuple[str, str, str], pd.DataFrame] = field(default_factory=dict)  # and over their training

    @cached_property
    def comparisons(self) -> dict[str, list[Comparison]]:
        """By suite the differences between the models of the comparison that are not foreign."""
        return {suite: comparisons(self.own(scores)) for suite, scores in self.scores.items()}

    @cached_property
    def paired(self) -> dict[str, list[Comparison]]:
        """By suite the differences from the first foreign model."""
        return {suite: paired_comparisons(scores, self.known.models) for suite, scores in self.scores.items()}

    def own(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of models that are not foreign."""
        return table[table["size"] != ""] if self.models else table

    @property
    def trained(self) -> pd.DataFrame | None:
        """The scores on GLUE and the user's own tasks, without models that were not pre-trained."""
        return self.scores["glue"].query("step > 0") if "glue" in self.scores else None

    @property
    def tables_of_scores(self) -> dict[str, list[pd.DataFrame]]:
        """By suite the scores of the comparison, and those over checkpoints."""
        suites = {**self.scores, **self.curves}
        return {suite: [table[suite] for table in (self.scores, self.curves) if suite in table] for suite in suites}


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
    inputs, is_imported = record["inputs"], "origin" in record["inputs"]
    shape = {"report": ReportSettings} | ({} if is_imported else {"configuration": Configuration})
    check_shape(record, shape, "experiment.json", "run snakemake again, which writes it")
    experiment = msgspec.convert(record["report"], ReportSettings)
    if is_imported:
        return _imported(experiment, inputs)
    config = define_custom(msgspec.convert(record["configuration"], Configuration))
    models = [read_step(file.parent, ForeignModel) for file in inputs.get("models", [])]
    known = Known(shapes_of(config.sizes), operators_of(config.operators), [model.name for model in models])
    trained = [*inputs.get("runs", []), *inputs.get("runs_of_others", [])]
    operators = config.sweep.attention
    parameters = counted(config.sweep.sizes, operators, known, trained) if operators else {}
    data = read_inputs(experiment, config, inputs, known, parameters=parameters, models=models)
    _refuse_laxer(config, data)
    return data


def _imported(experiment: ReportSettings, inputs: Record) -> Collection:
    """The data of scores and losses that others measured."""
    scores = tidy.read_scores(inputs["scores"]["glue"][0])
    tables: Record = {"runs": tidy.read_losses(inputs["losses"])} if "losses" in inputs else {}
    models = pd.concat([table[["size", "attention"]] for table in (scores, *tables.values())])
    named = OF_PROJECT.attentions(models["attention"])
    ours = [name for name in named if name in OF_PROJECT.operators]  # others' have no code here
    parameters = counted(OF_PROJECT.sizes(models["size"]), ours or ["original"], OF_PROJECT)
    final, curve = tidy.parted(scores, experiment.steps)
    tables["scores"] = {"glue": final} if len(final) else {}
    tables["curves"] = {"glue": curve} if len(curve) else {}
    return Collection(
        experiment, parameters=parameters, origin=inputs["origin"], escape_loss=experiment.escape_loss, **tables
    )


def read_inputs(
    experiment: ReportSettings, config: Configuration, inputs: Record, known: Known = OF_PROJECT, **more: Any
) -> Collection:
    """The data in files, by the names of experiment.json's inputs; `more` are fields that no file has."""
    sweep, given = config.sweep, {name: files for name, files in inputs.items() if files}
    asked = grids_of(config) if "grids" in given else []
    tuned = [(grid, read_rates(given["rates"][grid.name])) for grid in asked if grid.tune]
    grids = list(_compared_grids(asked, given, {grid.name: choices for grid, choices in tuned}))
    tried = (folder for grid, _ in tuned for folder in given["tuning"][grid.name] if not has_diverged(folder))
    folders = [*given.get("runs", []), *given.get("runs_of_others", [])]
    every = dict.fromkeys([*folders, *(folder for _, of_grid, _ in grids for folder in of_grid), *tried])
    runs = {folder: read_run(folder) for folder in every}
    steps = {
        architecture: experiment.settings.get(f"architectures.{architecture}.steps", experiment.steps)
        for architecture in ARCHITECTURES
    }
    wanted = [*product(sweep.architectures, sweep.sizes, sweep.attention, sweep.pretrain_seeds)]
    trained = checked_runs([runs[folder] for folder in folders], steps, wanted if folders else (), known)
    of_others = [run for run in trained if run["architecture"] != ENCODER]
    last = experiment.steps or tidy.END  # at which foreign models stand beside those that were pre-trained here
    data: Record = _suites(config, last, given, wanted, known)
    data |= {"architectures": architectures_of(of_others), "courses": courses_of(of_others)} if of_others else {}
    if "robustness" in given:
        data["robustness"] = read_robustness(given["robustness"], data["scores"]["glue"].query("step > 0"))
    if "blimp" in given:
        judges = [(*run, steps[run[0]]) for run in wanted if run[3] in minimal_pair_seeds(config, run[0])]
        judges += [(ENCODER, "", model, 1, last) for model in known.models]
        data["blimp"] = read_minimal_pairs(given["blimp"], judges, known, last)
    if "parts" in given:
        data["parts"] = read_parts(given["parts"])
    if "manifest" in given:
        data["manifest"] = read_manifest(given["manifest"], data.get("parts", []))

    def escape_loss_of(manifest: Path | None) -> float | None:
        return experiment.escape_loss or (manifest and read_escape_loss(manifest))

    data["escape_losses"] = {grid.name: [*map(escape_loss_of, manifests)] for grid, _, manifests in grids}
    if "anatomy" in given:
        data["anatomy"] = read_table(given["anatomy"][0], [*HEAD, "head", *MEASURES], known)
    return Collection(
        experiment,
        known=known,
        architectures_trained=tuple(sweep.architectures),
        runs=runs_of([run for run in trained if run["architecture"] == ENCODER]),
        machines=[machine_of(run) for run in sorted(runs.values(), key=lambda run: _rank_of(run, known))],
        escape_loss=escape_loss_of(given.get("manifest")),
        grids=grids_of_runs([(grid, of_grid) for grid, of_grid, _ in grids], runs),
        tuned=tuned,
        speeds=read_speeds(given.get("speeds", [])),
        **data,
        **more,
    )


RATES = {"common": "one common rate", "best": "each at its best rate"}  # by the field of a `Choice`


def _compared_grids(
    grids: Iterable[Grid], given: Record, choices: dict[str, list[Choice]]
) -> Iterator[tuple[Grid, list[Path], list[Path]]]:
    """Grids with the folders of their runs and the manifest of each point; a tuned one once for each of RATES, of which
    the common rate has contrasts of operators alone: points that differ in more have another one."""
    for grid in grids:
        folders, manifests, count = given["grids"][grid.name], given["manifests"][grid.name], len(grid.seeds)
        if not grid.tune:
            yield grid, folders, manifests[::count]
        for field_of_choice, name in RATES.items() if grid.tune else ():
            chosen = [getattr(choice, field_of_choice) for choice in choices[grid.name]]
            begins = [count * (at * len(grid.rates) + grid.rates.index(rate)) for at, rate in enumerate(chosen)]
            of_grid = [folder for begin in begins for folder in folders[begin : begin + count]]
            is_best = field_of_choice == "best"
            contrasts = [each for each in grid.contrasts if is_best or each.first.keys() == {"attention"}]
            told = {"name": f"{grid.name}, {name}", "contrasts": contrasts}
            compared = replace(grid, **told, tune=None, chosen=chosen)
            yield compared, of_grid, manifests[:: count * len(grid.rates)]


def _suites(
    config: Configuration, last: int, given: Record, wanted: Iterable[tuple], known: Known
) -> dict[str, dict[str, pd.DataFrame]]:
    """By suite, GLUE first, the scores of the comparison and those over checkpoints."""
    sweep, scores, curves = config.sweep, {}, {}
    seeds = finetuned_pretrain_seeds(config)
    runs = [run for architecture, *run in wanted if architecture == ENCODER and run[-1] in seeds]
    of_curve = [run for run in runs if run[0] in sweep.curve.sizes]
    runs += [["", model, 1] for model in known.models]
    for suite in SUITES:
        tasks = tasks_of_suite(suite, sweep.tasks)
        if files := given.get("scores", {}).get(suite):
            read = read_scores(files, tasks, sweep.finetune_seeds, runs, known, last)
            scores[suite] = final_scores(read, last)
        if files := given.get("curve", {}).get(suite):
            curves[suite] = read_scores(files, tasks, sweep.curve.finetune_seeds, of_curve, known)
    return {"scores": scores, "curves": curves}


def _refuse_laxer(config: Configuration, data: Collection) -> None:
    """DataError for rows of tasks and lines of parts that the configuration refuses: results are shared, and an
    experiment that allows more may have made them."""
    allowed = config.corpus.filter.max_bad_fraction
    for counts in (part.counts for part in data.parts):
        if counts.bad > allowed * counts.read:
            raise DataError(
                f"{counts.part}: {counts.bad} of {counts.read} lines are bad, more than "
                f"corpus.filter.max_bad_fraction ({allowed:g}); raise it, or correct the file"
            )
    tables = [*data.scores.items(), *data.curves.items()]
    tables += [] if data.blimp is None else [("blimp", data.blimp.assign(task="blimp"))]
    tables += [] if data.robustness is None else [("glue", data.robustness)]
    for suite, table in tables:
        tasks = table.loc[table["partial"].astype(bool), "task"]
        if len(tasks) and not protocol_of(config, suite, MinimalPairSettings).allow_partial:
            raise DataError(
                f"{suite}: other rows than are published of {', '.join(dict.fromkeys(tasks))}, and "
                "'glue.allow_partial' is false; set it to true, or give the published rows"
            )


# Checks of rows.


def check(
    what: str,
    rows: Sequence[Record],
    key: Sequence[str],
    wanted: Iterable[tuple] | None = None,
    alike: Mapping[str, Sequence[str]] | None = None,
    beside: Sequence[Record] = (),
) -> None:
    """DataError that lists the first problems of rows and counts the others; nothing without problems.

    Each of the `wanted` cells of the key is there once, and no other; None wants any cells. `alike` has facts by which
    rows may not differ that are the same in some columns, nor from rows `beside` them; a fact that is not known is like
    any value.
    """
    counts = Counter(tuple(row[name] for name in key) for row in rows)
    wanted = counts.keys() if wanted is None else set(wanted)
    problems = [f"duplicate: {_named(key, cell)} is there {count} times" for cell, count in counts.items() if count > 1]
    for kind, cells in (("missing", wanted - counts.keys()), ("unexpected", counts.keys() - wanted)):
        problems += sorted(f"{kind}: {_named(key, cell)}" for cell in cells)
    problems += differing([*beside, *rows], key, alike or {})
    if problems := list(dict.fromkeys(problems)):
        more = f"; and {len(problems) - LISTED} more" if len(problems) > LISTED else ""
        raise DataError(f"{what}: {'; '.join(problems[:LISTED])}{more}; delete their files and run again")


def differing(rows: Sequence[Record], key: Sequence[str], alike: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """A line for each row in which a fact is not as in most rows that are the same in the columns of that fact."""
    for fact, columns in alike.items():
        groups: dict[tuple, Counter] = defaultdict(Counter)
        known = [row for row in rows if row.get(fact) is not None]
        for row in known:
            groups[tuple(row.get(name) for name in columns)][row[fact]] += 1
        for row in known:
            usual = groups[tuple(row.get(name) for name in columns)].most_common(1)[0][0]
            if row[fact] != usual:
                cell = _named(key, [row.get(name) for name in key])
                yield f"other {fact}: {cell} has {row[fact]!s:.16}, expected {usual!s:.16}"


def _named(key: Sequence[str], cell: Sequence[Any]) -> str:
    """A cell in words: 'tiny-original, pretrain_seed 1, step 1600, rte, finetune_seed 3'."""
    values = dict(zip(key, cell, strict=True))
    name = names.model_name(
        values.pop("size"), values.pop("attention"), architecture=values.pop("architecture", ENCODER)
    )
    words = [f"{key} {value}" if isinstance(value, int | float) else value for key, value in values.items() if value]
    return ", ".join([name, *dict.fromkeys(words)])


def _rank_of(row: Mapping[str, Any], known: Known) -> tuple:
    """Sort key of a run: by architecture, size, operator and seed."""
    architecture = list(ARCHITECTURES).index(row.get("architecture", ENCODER))
    return architecture, known.rank(row["size"], row["attention"]), row["pretrain_seed"]


# Scores.


def _cell_of(record: OfModel, key: Sequence[str], last: int) -> Record:
    """The cell of a record; a foreign model, which has no step, stands at the last one. `model` is its name, as it has
    rows and a tuning of its own; all models that were pre-trained here have the same."""
    cell = {name: getattr(record, name) for name in key}
    return cell if record.step is not None else cell | {"step": last, "model": record.attention}


def read_scores(
    files: list[Path],
    tasks: list[str],
    finetune_seeds: Sequence[int],
    runs: Iterable[Sequence[str | int]] = (),
    known: Known = OF_PROJECT,
    last: int = tidy.END,
) -> pd.DataFrame:
    """A row of SCORE_COLUMNS per score column of every record, by model, step, task and seed; foreign models stand at
    the step `last`.

    Scores are 0 to 1 (Matthews and correlations from -1); `details` are metrics by name. Other fine-tuning seeds are
    left out. DataError lists scores that are missing, twice, of other settings, rows or precision.
    Every model of a size needs every task and seed at every step of that size, and all of `runs` are needed.
    """
    records = [record for record in read_records(files, ScoreRecord) if record.finetune_seed in finetune_seeds]
    columns = {task: list(columns_of(task)) for task in tasks}
    rows = [
        _cell_of(record, (*CELL, *FLAGS, *CHECKED, *TUNED, *MADE), last)
        | {"suite": _made_with(record.task), "column": column, "score": score, "details": record.details.get(column)}
        | {"majority": record.majority.get(column, math.nan), "remark": remark_on(record, column)}
        for record in records
        for column, score in record.metrics.items()
    ]
    models, steps = defaultdict(set), defaultdict(set)
    for row in rows:
        models[row["size"]].add((row["attention"], row["pretrain_seed"]))
        steps[row["size"]].add(row["step"])
    for size, *model in runs:
        models[size].add(tuple(model))
    wanted = [
        (size, *model, step, task, seed, column)
        for size in models
        for model, step, task, seed in product(models[size], steps[size] or [0], tasks, finetune_seeds)
        for column in columns[task]
    ]
    alike = {**ALIKE, "precision": (), "data_sha256": ("model", "task", "column"), "majority": ("task", "column")}
    alike["learning_rate"] = (*RUN, "step", "task")
    check("scores", rows, (*CELL, "column"), wanted, alike)
    rows.sort(
        key=lambda row: (
            *_rank_of(row, known)[1:],
            row["step"],
            tasks.index(row["task"]),
            row["finetune_seed"],
            columns[row["task"]].index(row["column"]),
        )
    )
    return pd.DataFrame(rows, columns=SCORE_COLUMNS).astype({"score": float, "majority": float})


def _made_with(task: str) -> str:
    """The name of the tasks that are scored by one step: a suite, or a task of the user's own."""
    return suite_of(task).name if task in PUBLISHED else task


def remark_on(record: ScoreRecord, column: str) -> str:
    """What a reader must know of the rows behind a score; nothing where they are as they should be."""
    (seen, rows), moved = record.seen.get(column, (0, 0)), sum(record.moved.values())
    remarks = [f"{seen:,} of {rows:,} rows have the token ids of a training row"] if seen else []
    if moved:
        remarks.append(
            f"in {moved:,} row{'s' * (moved > 1)} a published place is that of other words: the text decided"
        )
    return "; ".join(remarks)


def read_robustness(files: list[Path], clean: pd.DataFrame) -> pd.DataFrame:
    """A row per set of every record: its cell, the set's facts, `score` and `majority` (0 to 1), flags.

    `label` is the column of tables that a row counts for: 'hans', or 'mixed_20' for 20 % of mixed noise. The score of
    the same model without noise is `clean` (NaN where the set has no column), which may be another than in the table
    `clean` where it was fine-tuned again. Rows are in the order of that table, whose other fine-tuning seeds are left
    out. DataError as of `read_scores`: every model of a task needs the same sets of the same rows, and the checkpoint,
    rows and precision of its clean score. Noise on a column outside the GLUE score (wnli, the user's own) is left out
    where others have some; MissingInputError without any set.
    """
    seeds, last = set(clean["finetune_seed"]), int(clean["step"].max())
    records = [record for record in read_records(files, RobustnessRecord) if record.finetune_seed in seeds]
    rows = [
        {
            **_cell_of(record, (*CELL, "stand_in", *MADE), last),
            "suite": _made_with(record.task),
            "label": level_name(of_set.name, of_set.share) if of_set.kind == NOISE else of_set.name,
            "clean": record.clean.get(of_set.column, math.nan),
            **{key: getattr(of_set, key) for key in OF_SET},
        }
        for record in records
        for of_set in record.sets.values()
    ]
    sets: dict[str, dict] = defaultdict(dict)  # of each task, by label and column
    for row in rows:
        sets[row["task"]][row["label"], row["column"]] = None
    cells = clean.drop_duplicates(list(CELL))[[*CELL, *CHECKED]].to_dict("records")
    rank = {tuple(cell[key] for key in CELL): place for place, cell in enumerate(cells)}
    wanted = [(*cell, *name) for cell in rank for name in sets.get(cell[4], ())]
    alike = {**ALIKE, **dict.fromkeys(("rows", "partial", "majority"), ("task", "label", "column"))}
    check("robustness", rows, (*CELL, "label", "column"), wanted, alike)
    measured = [_cell_of(record, (*CELL, *CHECKED), last) for record in records]
    check("robustness", measured, CELL, alike=dict.fromkeys(CHECKED, CELL), beside=cells)
    rows = [row for row in rows if row["kind"] == DOMAIN or row["column"] in COLUMNS] or rows
    if not rows:
        raise MissingInputError("robustness: no record has a set; choose other glue.robustness.noise or sets")
    table = pd.DataFrame(sorted(rows, key=lambda row: rank[tuple(row[key] for key in CELL)]))
    return table.drop(columns=["suite", "model", *MADE], errors="ignore")


def level_name(kind: str, share: float) -> str:
    """The label of a share of noise: 'mixed_20' for 20 %."""
    return f"{kind}_{100 * share:g}"


def read_minimal_pairs(
    files: list[Path], wanted: Iterable[tuple] = (), known: Known = OF_PROJECT, last: int = tidy.END
) -> pd.DataFrame:
    """A row per checkpoint and paradigm of BLiMP: the checkpoint and its architecture, `phenomenon`, `paradigm`, its
    pairs, `accuracy` in percent, and whether the pairs are stand-ins or not all that are published. A tie counts half.

    `wanted` are architectures, sizes, operators, seeds and steps, which others may stand beside. DataError as of
    `read_scores`.
    """
    records = []
    for file in files:
        record = msgspec.convert(checked(read_json(file, PairsRecord), str(file), REMEDY), PairsRecord)
        if list(record.paradigms) != list(PARADIGMS) or record.architecture not in ARCHITECTURES:
            raise DataError(f"{file}: not of BLiMP's {len(PARADIGMS)} paradigms and an architecture here; {REMEDY}")
        for paradigm, counts in record.paradigms.items():
            if counts.right + counts.ties > counts.pairs:
                raise DataError(f"{file}: counts of {paradigm} do not add up; {REMEDY}")
        records.append(_cell_of(record, record.__struct_fields__, last))
    present = [tuple(record[key] for key in CHECKPOINT) for record in records]
    check("blimp", records, CHECKPOINT, [*wanted, *present], {**dict.fromkeys((*MADE, "data_sha256"), ("model",))})
    records.sort(key=lambda record: (*_rank_of(record, known), record["step"]))
    rows = [
        {key: record[key] for key in (*CHECKPOINT, "partial", "stand_in")}
        | {"phenomenon": PARADIGMS[paradigm], "paradigm": paradigm, **msgspec.structs.asdict(counts)}
        for record in records
        for paradigm, counts in record["paradigms"].items()
    ]
    table = pd.DataFrame(rows)
    table["accuracy"] = 100 * (table["right"] + table["ties"] / 2) / table["pairs"]
    return table


# Pre-training.


def read_run(folder: Path) -> Record:
    """A run by its done.json and metrics.jsonl: its architecture, steps and validation losses, the measure of its
    architecture, means over layers of what was logged of the untrained model, and done.json itself.

    DataError names the file that is of another kind; IntegrityError the metrics.jsonl that is not the run's.
    """
    done, log = read_json(folder / "done.json", Done, OF_RUN), folder / "metrics.jsonl"
    architecture = done.get("architecture", ENCODER)
    if architecture not in ARCHITECTURES:
        raise DataError(
            f"{folder}/done.json: 'architecture' is {architecture}, expected one of {', '.join(ARCHITECTURES)}; "
            f"{OF_RUN}"
        )
    digest = sha256_of(log)
    if digest != done.get("metrics_sha256", digest):
        raise IntegrityError(f"{log}: sha256 expected {done['metrics_sha256']}, found {digest}; {OF_RUN}")
    measure = "loss" if architecture == ENCODER else ARCHITECTURES[architecture].measure
    lines = list(read_json_lines(log, OF_RUN))
    for number, line in enumerate(lines, start=1):
        if line.get("split") == "validation":
            check_shape(line, Validated, f"{log}:{number}", OF_RUN)
            check_shape(line, {measure: float}, f"{log}:{number}", OF_RUN)
    points = [line for line in lines if line.get("split") == "validation"]
    if not points or any(line["step"] >= following["step"] for line, following in pairwise(points)):
        raise DataError(f"{log}: expected validation losses at increasing steps; {OF_RUN}")
    initial = next((line for line in lines if line.get("split") == "initial"), {})
    return {
        **{key: done[key] for key in (*RUN, "steps")},
        "architecture": architecture,
        "step": [line["step"] for line in points],
        "loss": [line["loss"] for line in points],
        "measure": [line[measure] for line in points],
        **{key: statistics.fmean(initial[key]) if initial.get(key) else math.nan for key in tidy.INITIAL},
        "done": done,
        "folder": folder,
    }


def checked_runs(
    runs: list[Record], steps: Mapping[str, int], wanted: Iterable[tuple] = (), known: Known = OF_PROJECT
) -> list[Record]:
    """The same in the order of tables, architecture by architecture.

    DataError for a run that is there twice, of other steps than its architecture has, or missing of the `wanted`
    (architecture, size, operator, seed).
    """
    for run in runs:
        if run["steps"] != steps[run["architecture"]]:
            expected = f"expected {steps[run['architecture']]}"
            raise DataError(f"{run['folder']}/done.json: the run has {run['steps']} steps, {expected}; {OF_RUN}")
    key = ("architecture", *RUN)
    present = [tuple(run[name] for name in key) for run in runs]
    check("runs", runs, key, [*wanted, *present])
    return sorted(runs, key=lambda run: _rank_of(run, known))


def runs_of(runs: list[Record]) -> pd.DataFrame:
    """A row per validation of each run: `loss` is the mean cross-entropy (nats per masked token); `logit_std`,
    `logit_step` and `attention_entropy` (nats) are those of the untrained model, alike in all rows of a run, NaN where
    not logged."""
    columns = (*RUN, "step", "loss", *tidy.INITIAL)
    table = pd.DataFrame(runs, columns=columns).explode(["step", "loss"], ignore_index=True)
    return table.astype({"step": int, "loss": float, **dict.fromkeys(tidy.INITIAL, float)})


def losses_of(runs: pd.DataFrame, place: str = "runs", value: str = "loss") -> dict[tuple[str, str], pd.DataFrame]:
    """Validation losses by size and operator: a row per pre-training seed, a column per step.

    DataError when the seeds of one were evaluated at different steps.
    """
    models = {}
    for model, part in runs.groupby(["size", "attention"], sort=False):
        models[model] = losses = part.pivot(index="pretrain_seed", columns="step", values=value)
        for seed in losses.index[(losses.isna() != losses.iloc[0].isna()).any(axis=1)]:
            other = (losses.loc[seed].isna() != losses.iloc[0].isna()).idxmax()
            raise DataError(
                f"{place}: {names.model_name(*model)} seed {seed} was evaluated at other steps than {losses.index[0]}, "
                f"as step {other} shows; leave out the steps that not all its seeds have"
            )
    return models


def architectures_of(runs: list[Record]) -> pd.DataFrame:
    """A row per run of another architecture as it ended: architecture, size, attention, pretrain_seed, steps,
    validation_loss, parameters, and the architecture's `measure`."""
    rows = []
    for run in runs:
        measure, done = ARCHITECTURES[run["architecture"]].measure, run["done"]
        rows.append(
            {key: run[key] for key in ("architecture", *RUN, "steps")}
            | {"validation_loss": done["validation_loss"], "parameters": done["parameters"]}
            | {"measure": done[f"validation_{measure}"]}
        )
    return pd.DataFrame(rows)


def courses_of(runs: list[Record]) -> dict[tuple[str, str, str], pd.DataFrame]:
    """What architectures measure, by architecture, size and operator: a row per pre-training seed, a column per
    step."""
    table = pd.DataFrame(runs, columns=["architecture", *RUN, "step", "measure"]).explode(["step", "measure"])
    architectures = table.astype({"step": int, "measure": float}).groupby("architecture", sort=False)
    return {
        (architecture, *model): seeds
        for architecture, part in architectures
        for model, seeds in losses_of(part, value="measure").items()
    }


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
                        raise DataError(f"{folder}/done.json: '{key}' is {run[key]}, expected {value}; {OF_RUN}")
                losses[seed] = dict(zip(run["step"], run["loss"], strict=True))
            frames.append(pd.DataFrame.from_dict(losses, orient="index").sort_index())
        made.append((grid, frames))
    return made


def machine_of(run: Record) -> Record:
    """A run, how long it took, and on what, by timing.json, which has the longest session and all commits: the hours of
    several sessions are not known, nor those of one that ended before its first measurement."""
    timing = read_json(run["folder"] / "timing.json", Timing, OF_RUN)
    both = run["done"] | timing
    begun, ended = (datetime.fromisoformat(timing.get(key) or timing["started"]) for key in ("started", "until"))
    hours = (ended - begun).total_seconds() / 3600 if timing["sessions"] == 1 and timing.get("until") else None
    of_gpus = 0 if timing["device"] == "cpu" else timing["processes"]
    known = ("steps", "validation_loss", "settings_hash", "corpus_hash", "sessions")
    return {
        **{key: run[key] for key in ("architecture", *RUN)},
        **{key: both.get(key) for key in known},
        "wall_hours": hours,
        "gpu_hours": None if hours is None else hours * of_gpus,
        **{key: timing.get(key) for key in ("device", "processor", "processes", "threads", "precision", "compile")},
        "commit": "; ".join(timing["commits"]),
        "versions": ", ".join(map(" ".join, timing["versions"].items())),
    }


def read_speeds(files: list[Path]) -> pd.DataFrame:
    """A row per size and operator, from a file per size, as measured in turns; `machine` is in words.

    `step_milliseconds` is the median over rounds. `ratios` are the step times by those of `original` in the same round,
    None without it, and `of_original_percent` is their median. DataError names the file of another kind.
    """
    rows = []
    for file in files:
        if not read_json(file, dict[str, Any]).get("operators", True):
            continue  # they did not fit the memory side by side
        measured = read_json(file, Speeds)
        seconds = pd.DataFrame({name: each["step_seconds"] for name, each in measured["operators"].items()})
        if seconds.empty:
            raise DataError(f"{file}: no step was timed; {REMEDY}")
        machine = (
            f"{measured['device']} ({measured['processor']}), {measured['precision']}, {measured['threads']} threads, "
            f"{measured['micro_batch_size']:,} sequences at a time"
        )
        for name, each in measured["operators"].items():
            ratios = (seconds[name] / seconds["original"]).to_numpy() if "original" in seconds else None
            step, peak = float(seconds[name].median()), measured["peak_flops"]
            percent = None if ratios is None else 100 * float(pd.Series(ratios).median())
            mfu = peak and 100 * each["flops_per_step"] / step / peak
            values = (1000 * step, percent, measured["tokens_per_step"] / step, mfu, ratios, machine)
            rows.append((measured["size"], name, *values))
    return pd.DataFrame(rows, columns=["size", "attention", *SPEEDS, "ratios", "machine"])


# Corpus and heads.


def read_parts(files: list[Path]) -> list[PartRecord]:
    """The record of each part.

    DataError names the file whose documents or characters read are not kept + dropped + bad, and a part that is there
    twice.
    """
    parts = {}
    for file in files:
        part = read_struct(file, PartRecord)
        counts, characters = part.counts, part.counts.characters
        for what, count, expected in (
            ("documents read", counts.read, counts.kept + counts.bad + sum(counts.dropped.values())),
            ("characters read", characters.read, characters.kept + sum(characters.dropped.values())),
            ("documents with tokens", part.record.documents, counts.kept),
        ):
            if count != expected:
                raise DataError(f"{file}: {count} {what}, but {expected} kept, dropped and bad; {REMEDY}")
        if parts.setdefault(counts.part, part) is not part:
            raise DataError(f"parts: duplicate: {counts.part}; delete one file of it")
    return list(parts.values())


def read_manifest(file: Path, parts: list[PartRecord]) -> Packed:
    """What was packed; DataError where documents and tokens are more than was kept, or do not add up."""
    manifest = read_struct(file, Packed)
    packed = sum(manifest.rows.values()) * manifest.sequence_length
    left_over = manifest.remainder_tokens + sum(manifest.surplus_tokens.values())
    documents, tokens = sum(manifest.documents.values()), manifest.tokens
    kept = sum(part.counts.kept for part in parts), sum(part.record.tokens for part in parts)
    if packed + left_over != tokens or (parts and (documents > kept[0] or tokens > kept[1])):
        raise DataError(
            f"{file}: {documents} documents and {tokens} tokens, {packed} in rows and {left_over} left, do not fit "
            f"the {kept[0]} documents and {kept[1]} tokens kept; {REMEDY}"
        )
    return manifest


def read_escape_loss(manifest: Path) -> float:
    """The loss at or below which a run has escaped the plateau, where none is set: a share of the unigram entropy of
    the validation rows."""
    return ESCAPED * read_struct(manifest, Manifest).unigram_entropy


def read_table(file: Path, columns: list[str], known: Known) -> pd.DataFrame:
    """A csv file with these columns in the order of tables; DataError for another file."""
    try:
        table = pd.read_csv(file, keep_default_na=False, na_values=[""])  # an operator may be called NA
    except (ValueError, OSError) as error:
        raise DataError(f"{file}: no csv ({line_of(error)}); {REMEDY}") from None
    if missing := [column for column in columns if column not in table]:
        raise DataError(f"{file}: no column '{missing[0]}'; {REMEDY}")
    ordered = {"size": known.sizes, "attention": known.attentions}

    def rank(column: pd.Series) -> pd.Series:
        return column.map(ordered[column.name](column).index) if column.name in ordered else column

    keys = [column for column in (*HEAD, "head") if column in table]
    return table.sort_values(keys, key=rank, kind="stable", ignore_index=True)


def counted(sizes: Iterable[str], attention: Sequence[str], known: Known, runs: Iterable[Path] = ()) -> Record:
    """By size, of those here and of the paper, its `shape`, and by operator the `parameters` of a model with BERT's
    30,522 word pieces, tied weights once, and the `attention_parameters` of a layer.

    They are as the `runs` counted them, and without a run by the formula that the operator states.
    """
    ran: Record = {}
    for file in (folder / "done.json" for folder in runs):
        done = read_json(file, Done, OF_RUN)
        ran.setdefault((done["size"], done["attention"]), done.get("attention_parameters"))
    counts = {}
    for size, shape in known.shapes.items():
        if size not in {*PAPERS_SIZES, *sizes}:
            continue
        of_layer = {name: ran.get((size, name)) or _by_formula(name, shape, known) for name in attention}
        of_layer = {name: of for name, of in of_layer.items() if of}
        usual = shape.parameters() - _by_formula("original", shape, known)["layers"]
        counts[size] = {
            "shape": {**msgspec.structs.asdict(shape), "vocab_size": VOCABULARY_SIZE},
            "parameters": {name: usual + of["layers"] for name, of in of_layer.items()},
            "attention_parameters": {name: of["layer"] for name, of in of_layer.items()},
        }
    return counts


def _by_formula(name: str, shape: Shape, known: Known) -> Record | None:
    """The parameters of an operator as a run counts them; None of one that states no formula."""
    layer = known.operators[name].count(shape.hidden_size, shape.num_attention_heads, known.operators)
    return layer and {"layer": layer, "layers": shape.num_hidden_layers * layer}
