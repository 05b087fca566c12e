"""Scores that others measured, one tidy csv, as an experiment of its own: the report reads them as it reads ours.

The results of the paper's authors come with the package, in authors/.
"""

import csv
import math
import re
import sys
from pathlib import Path
from typing import Annotated

from msgspec import to_builtins

from symbert.configuration import FOLDER, TAKEN, ReportSettings
from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import copy_file, sha256_of, write_json
from symbert.glue.tasks import GLUE
from symbert.paths import key
from symbert.report import names, published
from symbert.report.claims import NOT_TESTED
from symbert.report.collect import RESULTS, check, losses_of
from symbert.report.report import report
from symbert.report.setting import IMPORTED
from symbert.report.tidy import length_of, parted, read_losses, read_scores

AUTHORS = Path(__file__).with_name("authors")  # of the paper: their results, and their licence


def import_scores(
    path: Annotated[Path, "csv file of scores; docs/report.md has its columns"],
    /,
    name: Annotated[str, "name of the new folder in results/"],
    losses: Annotated[Path | None, "csv file of validation losses"] = None,
    steps: Annotated[int | None, "length of pre-training (default: the highest step in the files)"] = None,
    escape_loss: Annotated[float | None, "loss in nats at or below which a run has escaped the plateau"] = None,
) -> None:
    """Write the scores in a csv file as an experiment in results/, and its report.

    Scores with a step are a curve, the others the comparison; a model without these is compared at its last step. Where
    the files have no step and `steps` is not given, the length of pre-training is not known. Without `escape_loss` no
    escapes are stated. ConfigError when the folder is there already. DataError names file, line and column.
    """
    if not re.fullmatch(FOLDER, name):
        raise UsageError(f"--name is '{name}', expected letters, digits, '.', '_' and '-'")
    if name in TAKEN:
        raise UsageError(f"--name is {name}, which results/ has for all; choose another")
    if escape_loss is not None and not 0 < escape_loss < math.inf:
        raise UsageError(f"--escape-loss is {escape_loss:g}, expected nats above 0")
    if escape_loss is not None and losses is None:
        raise UsageError("--escape-loss is given without --losses, which it is a level of; add these, or leave it out")
    files = {"scores": path} | ({"losses": losses} if losses else {})
    scores = read_scores(path)
    for column, task in zip(scores["column"], scores["task"], strict=True):
        if task not in GLUE:
            raise DataError(f"{path}: task '{column}' is of another suite; leave its rows out")
    rows = scores.astype({"majority": object}).where(scores.notna(), None).to_dict("records")
    cell = ("size", "attention", "pretrain_seed", "step", "finetune_seed", "column")
    check(str(path), rows, cell, alike=dict.fromkeys(("stand_in", "partial", "majority"), ("column",)))
    runs = read_losses(losses) if losses else scores.iloc[:0]
    length = length_of([*scores["step"], *runs["step"]], steps)
    for (size, attention, seed), last in runs.groupby(["size", "attention", "pretrain_seed"])["step"].max().items():
        if last != length:
            run = f"{names.model_name(size, attention)}, pretrain_seed {seed},"
            fact = f"{run} ends at step {last}, and pre-training at {length}"
            raise DataError(f"{losses}: {fact}; add that loss, or leave the run out")
    losses_of(runs, str(losses))  # or it says which runs have other steps
    _, curve = parted(scores, length, str(path))  # or it says which model has no final scores
    for size, of_size in curve.groupby("size"):  # whose line and milestones are of the last checkpoint
        for attention, last in of_size.groupby("attention")["step"].max().items():
            if last != (end := of_size["step"].max()):
                fact = (
                    f"checkpoints of {names.model_name(size, attention)} end at step {last}, those of others at {end}"
                )
                raise DataError(f"{path}: {fact}; add that checkpoint, or leave the others of this model out")
    folder = RESULTS / name
    if folder.is_dir() and {file.name for file in folder.iterdir()} - {f"{kind}.csv" for kind in files}:
        raise ConfigError(f"{folder}: exists already; remove it, or choose another --name")
    settings = ReportSettings(name, f"Imported scores: {name}", IMPORTED, length, {}, escape_loss=escape_loss)
    _report(folder, files, settings)
    if losses and escape_loss is None:
        told = "--escape-loss is missing, so no escapes from the plateau are stated; give the loss of an escape in nats"
        print(f"warning: {told} ({published.ESCAPE_LOSS} for the paper's)", file=sys.stderr)
    print(f"{folder}/report/report.html: written")


def paper() -> None:
    """Write the paper's Tables 1 to 3, Figures 2 and 3, and what becomes of its claims, from its authors' results.

    The authors' scores and losses are files of this package; nothing is downloaded or trained. results/paper/report has
    the page, and the verdicts are printed.
    """
    folder = RESULTS / "paper"
    files = {kind: AUTHORS / f"{kind}.csv" for kind in ("scores", "losses")}
    title = f"{published.PAPER}, from its authors’ results"
    _report(
        folder, files, ReportSettings("paper", title, IMPORTED, published.STEPS, {}, escape_loss=published.ESCAPE_LOSS)
    )
    with open(folder / "report/tables/claims.csv", encoding="utf-8", newline="") as lines:
        claims = [row for row in csv.DictReader(lines) if not row["verdict"].startswith(NOT_TESTED)]
    for row in claims:
        print(f"{row['verdict']}: {row['claim']} ({row['models']}): {row['here']}")
    print(f"{folder}/report/report.html: written")


def _report(folder: Path, files: dict[str, Path], settings: ReportSettings) -> None:
    """Write files of scores and losses as an experiment of this name, and its report."""
    for kind, file in files.items():
        copy_file(file, folder / f"{kind}.csv")
    origin = {"name": settings.experiment, "files": {file.name: sha256_of(file) for file in files.values()}}
    inputs = {"scores": {"glue": [str(folder / "scores.csv")]}, "curve": {}, "runs": []}
    inputs |= {"losses": str(folder / "losses.csv")} if "losses" in files else {}
    inputs["origin"] = origin | {"steps": settings.steps}
    told = to_builtins(settings)
    record = {"experiment": settings.experiment, "key": key(inputs, told), "report": told, "inputs": inputs}
    record |= {"checkpoints": [], "settings": {}}
    write_json(folder / "experiment.json", record)
    report(folder)
