"""Scores that others measured, one tidy csv, as an experiment of its own: the report reads them as it reads ours."""

import csv
import json
import math
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any

import msgspec

from symbert.configuration import FOLDER, ReportSettings, Wording
from symbert.declared import mistake_in, suggestion
from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import read_json_or_empty, reading, sha256_of, write_json, write_text
from symbert.glue.tasks import GLUE, OWN, task_named
from symbert.paths import key
from symbert.report import order, published
from symbert.report.captions import model_name
from symbert.report.collect import RESULTS
from symbert.report.report import report
from symbert.report.scores import CELL, Record, is_score
from symbert.report.statistics import MEANS

IMPORTED = "imported"  # what settings say where only those who measured know
RUN = ("size", "attention", "pretrain_seed")

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+ -]*$")]  # folders are called so
Seed = Annotated[int, msgspec.Meta(ge=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Score(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The columns of a csv of scores; an empty cell is the default."""

    size: Name = ""
    attention: Name  # an operator here, or any name of a model
    pretrain_seed: Seed = 1
    step: Count | None = None  # of a checkpoint; none: the end of pre-training
    task: str  # a score column: of MNLI there are two
    finetune_seed: Seed
    metric: str = ""  # one of those whose mean is the score of the task; none: the value is the score
    value: float  # from -1 to 1
    rows: Count | None = None  # that were scored; none: not known


class Loss(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The columns of a csv of validation losses."""

    size: Name
    attention: Name
    pretrain_seed: Seed = 1
    step: Count
    loss: float  # nats per masked token


def import_scores(path: Path, /, name: str, losses: Path | None = None, steps: int | None = None) -> None:
    """Write the scores in a csv file as the experiment results/<name>, and its report; docs/report.md has the columns.

    Scores with a step are a curve, the others the comparison; a model without these is compared at its last step.
    `losses` is a csv of validation losses. `steps` is the length of pre-training: without it, the highest step in the
    files or, where they have none, the paper's. An earlier import under that name is replaced; ConfigError when the
    folder holds something else. DataError names file, line and column.
    """
    if not re.fullmatch(FOLDER, name):
        raise UsageError(f"--name is '{name}', expected letters, digits, '.', '_' and '-'")
    records, runs = read_tidy(path), _curves_of(losses) if losses else {}
    length, source = length_of(
        [*(record["step"] for record in records), *(step for run in runs.values() for step in run)], steps
    )
    for (size, attention, seed), points in runs.items():
        if max(points) != length:
            run = f"{model_name(size, attention)}, pretrain_seed {seed},"
            raise DataError(f"{losses}: {run} ends at step {max(points)}, and pre-training at {length}; add that loss")
    final, curve = parted(records, length)
    folder = RESULTS / name
    if folder.is_dir() and any(folder.iterdir()) and "origin" not in _inputs_in(folder):
        raise ConfigError(f"{folder}: not empty, and no import; remove it, or choose another --name")
    shutil.rmtree(folder, ignore_errors=True)
    files = {"scores": {"glue": []}, "curve": {"glue": []}, "runs": []}
    for option, part in (("scores", final), ("curve", curve)):
        if part:
            write_json(folder / f"{option}.json", part)
            files[option]["glue"].append(str(folder / f"{option}.json"))
    for run in sorted(runs, key=lambda run: (*order.model_rank(*run[:2]), run[2])):
        place = folder / f"runs/{run[0]}-{run[1]}/seed-{run[2]}"
        points = [{"split": "validation", "step": step, "loss": loss} for step, loss in sorted(runs[run].items())]
        write_json(place / "done.json", dict(zip(RUN, run, strict=True)) | {"steps": length, "origin": IMPORTED})
        write_text(place / "metrics.jsonl", "".join(json.dumps(point) + "\n" for point in points))
        files["runs"].append(str(place))
    models = {*((record["size"], record["attention"]) for record in records), *(run[:2] for run in runs)}
    tasks = [task for task in (*GLUE, *OWN) if task in {record["task"] for record in records}]
    settings = msgspec.to_builtins(_settings(name, length, tasks))
    origin = {"name": name, "files": {file.name: sha256_of(file) for file in (path, losses) if file}}
    inputs = {**files, "origin": origin | {"steps": length, "steps_from": source}}
    sweep = {
        "sizes": order.sizes(size for size, _ in models),
        "attention": order.attentions(attention for _, attention in models),
        "pretrain_seeds": [],
        "finetune_seeds": sorted({record["finetune_seed"] for record in final}),
        "curve": {"finetune_seeds": sorted({record["finetune_seed"] for record in curve})},
    }
    written = {"experiment": name, "key": key(inputs, settings), "configuration": {"sweep": sweep, "tasks": {}}}
    written |= {"report": settings, "inputs": inputs, "checkpoints": [], "settings": {}}
    write_json(folder / "experiment.json", written)
    for model in sorted(models, key=lambda model: order.model_rank(*model)):
        print(f"{model_name(*model)}: {_counted(model, records)}")
    report(folder)
    print(f"{folder}/report/report.html: written")


def _inputs_in(folder: Path) -> Any:
    """What the experiment.json in a folder names; nothing where there is none."""
    return read_json_or_empty(folder / "experiment.json").get("inputs", {})


def read_tidy(path: Path) -> list[Record]:
    """Score records, as fine-tuning writes them, of a csv of scores; the step of final ones, and all that is not known,
    is null.

    DataError names the file and the line of a cell that is no score, of an unknown task, of a metric that does not
    count for it, and of a second score of one cell; and a score of which a metric is missing.
    """
    columns = {column: task for task in (*GLUE.values(), *OWN.values()) for column in task.scores.values()}
    found: dict[tuple, dict[str, dict[str, tuple[str, Score]]]] = {}
    for place, row in _rows(path, Score):
        if not is_score(row.value):
            raise DataError(f"{place}: value is {row.value}, expected -1 to 1; divide percentages by 100")
        if row.task not in columns:
            raise DataError(f"{place}: unknown task '{row.task}'; choose from {', '.join(columns)}")
        task = columns[row.task]
        if row.metric and row.metric not in task.metrics:
            counted = " and ".join(task.metrics)
            raise DataError(f"{place}: {row.metric} does not count for {row.task}; leave it out, and give {counted}")
        cell = (row.size, row.attention, row.pretrain_seed, row.step, task.name, row.finetune_seed)
        values = found.setdefault(cell, {}).setdefault(row.task, {})
        if values and (row.metric in values or "" in (*values, row.metric)):
            first, _ = next(iter(values.values()))
            raise DataError(f"{place}: a second score of the cell in {first.rpartition(':')[2]}; keep one of them")
        values[row.metric] = (place, row)
    if not found:
        raise DataError(f"{path}: no score in it; give a row for each")
    cells = sorted(found, key=lambda cell: (*cell[:3], cell[3] or 0, cell[5], cell[4]))
    return [_record(cell, task_named(cell[4]), found[cell]) for cell in cells]


def _record(cell: tuple, task: Any, columns: dict[str, dict[str, tuple[str, Score]]]) -> Record:
    """The record of a cell, from its rows by score column and metric."""
    metrics, details, rows = {}, {}, {}
    for split, column in task.scores.items():
        if column not in columns:
            continue
        values = {metric: row.value for metric, (_, row) in columns[column].items()}
        place, row = next(iter(columns[column].values()))
        for metric in task.metrics if "" not in values else ():
            if metric not in values:
                raise DataError(f"{place}: {column} lacks {metric}; add it, or leave the column 'metric' empty")
        metrics[column] = fmean(values.values())
        details[column] = {metric: values[metric] for metric in task.metrics if metric in values}
        rows |= {split: row.rows} if row.rows else {}
    # Of all metrics only Matthews' tells whether one class was predicted throughout: it is 0 then.
    is_known = task.metrics == ("matthews",) and all(details.values())
    return dict(zip(CELL, cell, strict=True)) | {
        "metrics": metrics,
        "details": details,
        "majority": None,
        "constant_prediction": any(scores["matthews"] == 0 for scores in details.values()) if is_known else None,
        "rows": rows,
        "official_rows": task.official_rows,
        "partial": any(count != task.official_rows.get(split, count) for split, count in rows.items()),
        "stand_in": False,
        **dict.fromkeys(("settings_hash", "recipe", "precision")),
        "versions": {},
        "origin": IMPORTED,
    }


def _rows(file: Path, kind: type[msgspec.Struct]) -> Iterator[tuple[str, Any]]:
    """The place of each row of a csv file, as 'scores.csv:line 7', and its cells as `kind` declares them."""
    fields = {field.name: field.required for field in msgspec.structs.fields(kind)}
    if file.is_dir():
        raise DataError(
            f"{file}: a folder; give a csv file, into which scripts in tools/ convert folders (docs/report.md)"
        )
    try:
        with reading(file), open(file, encoding="utf-8-sig", newline="") as lines:
            table = csv.DictReader(lines, strict=True)
            columns = table.fieldnames or []
            if any(column.startswith(MEANS[0]) for column in columns):
                remedy = "give a row for each score (docs/report.md), or the experiment's folder to symbert compare"
                raise DataError(f"{file}: a column for each task, as tables of a report have; {remedy}")
            for column in (*columns, *(name for name, is_required in fields.items() if is_required)):
                if column not in fields:
                    raise DataError(f"{file}: unknown column '{column}'{suggestion(column, fields)}")
                if columns.count(column) != 1:
                    raise DataError(f"{file}: {columns.count(column) or 'no'} columns '{column}', expected one")
            for row in table:
                place = f"{file}:line {table.line_num}"
                if None in row or None in row.values():
                    raise DataError(f"{place}: not {len(columns)} cells, as the header has; write it as csv")
                cells = {column: cell.strip() for column, cell in row.items() if cell.strip()}
                try:
                    yield place, msgspec.convert(cells, kind, strict=False)
                except msgspec.ValidationError:
                    raise DataError(f"{place}: {mistake_in(cells, kind, strict=False)}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise DataError(f"{file}: {error}; write it as csv in UTF-8") from None


def _curves_of(file: Path) -> dict[tuple[str, str, int], dict[int, float]]:
    """Losses by step of each run; DataError names the line of a second loss of one step."""
    runs: dict[tuple[str, str, int], dict[int, float]] = {}
    for place, row in _rows(file, Loss):
        points = runs.setdefault((row.size, row.attention, row.pretrain_seed), {})
        if not 0 <= row.loss < math.inf:
            raise DataError(f"{place}: loss is {row.loss}, expected a number from 0 on")
        if row.step in points:
            raise DataError(f"{place}: a second loss of step {row.step} of this run; keep one of them")
        points[row.step] = row.loss
    return runs


def length_of(steps: Iterable[int | None], given: int | None = None) -> tuple[int, str]:
    """The steps of pre-training, and how they are known."""
    last = max((step for step in steps if step is not None), default=None)
    if given is None:
        return (last, "the last step") if last else (published.TRAINING[0], "the paper")
    if given < (last or 1):
        raise UsageError(f"--steps is {given}, expected at least {last or 1}, the last step")
    return given, "the command"


def parted(records: list[Record], steps: int) -> tuple[list[Record], list[Record]]:
    """The records of the comparison, at the last step, and those over checkpoints.

    A model without final runs is compared by those of its checkpoint at that step; UsageError when it has none.
    """
    final = [record | {"step": steps} for record in records if record["step"] is None]
    curve = [record for record in records if record["step"] is not None]
    models = {(record["size"], record["attention"]) for record in final}
    at_end = [record for record in curve if record["step"] == steps]
    final += [record for record in at_end if (record["size"], record["attention"]) not in models]
    compared = {(record["size"], record["attention"]) for record in final}
    if lacking := {(record["size"], record["attention"]) for record in curve} - compared:
        names = ", ".join(sorted(model_name(*model) for model in lacking))
        raise UsageError(
            f"scores: no run of {names} is at the last step, {steps}; add it, or leave out the step of its final runs"
        )
    return final, curve


def _counted(model: tuple[str, str], records: list[Record]) -> str:
    """The number of a model's scores and runs, and of the scores that its runs lack."""
    records = [record for record in records if (record["size"], record["attention"]) == model]
    runs = {(record["pretrain_seed"], record["step"], record["finetune_seed"]) for record in records}
    columns = {column for record in records for column in record["metrics"]}
    scores = sum(len(record["metrics"]) for record in records)
    missing = len(runs) * len(columns) - scores
    return f"{scores} scores of {len(runs)} runs in {len(columns)} columns{f', {missing} missing' if missing else ''}"


def _settings(experiment: str, steps: int, tasks: list[str]) -> ReportSettings:
    sources = dict.fromkeys(("scale", "corpus_source", "glue_source", "recipe"), IMPORTED)
    wording = wording_of_import(experiment, steps)
    unknown = ("sequence_length", "batch_size", "settings_hash", "match")
    unknown += ("min_harmful_perplexity", "max_harmful_perplexity")
    known = {"experiment": experiment, "tasks": tasks, "steps": steps, "wording": wording, "pretrain": {}, "glue": {}}
    return ReportSettings(**known, **sources, **dict.fromkeys(unknown))


def wording_of_import(experiment: str, steps: int) -> Wording:
    """What is said of results that others measured: no more than their files tell.

    The paper's scores stand beside them, and its losses where they are over as many steps.
    """
    papers = published.TRAINING[0]
    return Wording(
        experiment=f"Others' results ({experiment}; nothing was computed here)",
        corpus="a corpus that the imported files do not name",
        tasks="GLUE as in the imported files",
        pretraining="How the models were pre-trained, the imported files do not say",
        beside_printed="Beside them what the paper prints; whether these are its models, the files do not say.",
        facts={},
        warnings=["Imported scores: others trained and scored these models; only tables and figures are made here."],
        other_training=None if steps == papers else f"pre-training took {steps:,} steps, the paper’s {papers:,}",
        other_finetuning=None,
    )
