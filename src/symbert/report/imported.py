"""Scores that others measured, one tidy csv, as an experiment of its own: the report reads them as it reads ours."""

import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from symbert.configuration import FOLDER, ReportSettings, Wording
from symbert.errors import ConfigError, DataError, MissingInputError, UsageError
from symbert.files import publish, read_json_or_empty, sha256_of, write_json
from symbert.glue.tasks import GLUE, OWN, PUBLISHED
from symbert.paths import key
from symbert.report import order, published
from symbert.report.captions import model_name
from symbert.report.collect import RESULTS, other_facts
from symbert.report.report import report
from symbert.report.tidy import length_of, parted, read_losses, read_scores

IMPORTED = "imported"  # what settings say where only those who measured know
MODEL = ["size", "attention"]


def import_scores(path: Path, /, name: str, losses: Path | None = None, steps: int | None = None) -> None:
    """Write the scores in a csv file as the experiment results/<name>, and its report; docs/report.md has the columns.

    Scores with a step are a curve, the others the comparison; a model without these is compared at its last step.
    `losses` is a csv of validation losses. `steps` is the length of pre-training: without it, the highest step in the
    files or, where they have none, the paper's. An earlier import under that name is replaced; ConfigError when the
    folder holds something else. DataError names file, line and column.
    """
    if not re.fullmatch(FOLDER, name):
        raise UsageError(f"--name is '{name}', expected letters, digits, '.', '_' and '-'")
    files = {"scores": path} | ({"losses": losses} if losses else {})
    for file in files.values():
        if not file.is_file():
            raise MissingInputError(f"{file}: no file; give a csv file, which is read twice")
    scores = read_scores(path)
    _refuse_unlike(path, scores)
    runs = read_losses(losses) if losses else pd.DataFrame(columns=[*MODEL, "pretrain_seed", "step"])
    length, source = length_of([*scores["step"], *runs["step"]], steps)
    for (*model, seed), last in runs.groupby([*MODEL, "pretrain_seed"])["step"].max().items():
        if last != length:
            run = f"{model_name(*model)}, pretrain_seed {seed},"
            raise DataError(f"{losses}: {run} ends at step {last}, and pre-training at {length}; add that loss")
    final, curve = parted(scores, length)
    folder = RESULTS / name
    if folder.is_dir() and any(folder.iterdir()) and "origin" not in _inputs_in(folder):
        raise ConfigError(f"{folder}: not empty, and no import; remove it, or choose another --name")
    contents = {kind: file.read_bytes() for kind, file in files.items()}  # which may lie in that folder
    digests = {file.name: sha256_of(file) for file in files.values()}
    shutil.rmtree(folder, ignore_errors=True)
    for kind, content in contents.items():
        with publish(folder / f"{kind}.csv") as temporary:
            temporary.write_bytes(content)
    models = {tuple(model) for table in (scores, runs) for model in table[MODEL].itertuples(index=False)}
    tasks = [task for task in (*PUBLISHED, *OWN) if task in set(scores["task"])]
    settings = msgspec.to_builtins(_settings(name, length, tasks))
    origin = {"name": name, "files": digests}
    inputs = {
        "scores": {"glue": [str(folder / "scores.csv")]},
        "curve": {},
        "runs": [],
        **({"losses": str(folder / "losses.csv")} if losses else {}),
        "origin": origin | {"steps": length, "steps_from": source},
    }
    sweep = {
        "sizes": order.sizes(size for size, _ in models),
        "attention": order.attentions(attention for _, attention in models),
        "pretrain_seeds": [],
        "finetune_seeds": sorted(set(map(int, final["finetune_seed"]))),
        "curve": {"finetune_seeds": sorted(set(map(int, curve["finetune_seed"])))},
    }
    written = {"experiment": name, "key": key(inputs, settings), "configuration": {"sweep": sweep, "tasks": {}}}
    written |= {"report": settings, "inputs": inputs, "checkpoints": [], "settings": {}}
    write_json(folder / "experiment.json", written)
    for size, attention in sorted(models, key=lambda model: order.model_rank(*model)):
        of_model = scores[(scores["size"] == size) & (scores["attention"] == attention)]
        print(f"{model_name(size, attention)}: {_counted(of_model)}")
    report(folder)
    print(f"{folder}/report/report.html: written")


def _refuse_unlike(path: Path, scores: pd.DataFrame) -> None:
    """DataError for a score of another suite than GLUE, and for scores of a column that no table may compare."""
    for column, task in zip(scores["column"], scores["task"], strict=True):
        if task not in GLUE and task not in OWN:
            raise DataError(f"{path}: task '{column}' is of another suite; leave its rows out")
    rows = scores.astype({"majority": object}).where(scores.notna(), None).to_dict("records")
    problems = (problem for fact in ("stand_in", "majority") for problem in other_facts(rows, fact, ("column",)))
    if problem := next(problems, None):
        raise DataError(f"{path}: {problem}; models are compared on the same rows: leave one of them out")


def _inputs_in(folder: Path) -> Any:
    """What the experiment.json in a folder names; nothing where there is none."""
    return read_json_or_empty(folder / "experiment.json").get("inputs", {})


def _counted(scores: pd.DataFrame) -> str:
    """The number of a model's scores and runs, and of the scores that its runs lack."""
    runs, columns = (
        len(scores[["pretrain_seed", "step", "finetune_seed"]].drop_duplicates()),
        scores["column"].nunique(),
    )
    missing = runs * columns - len(scores)
    return f"{len(scores)} scores of {runs} runs in {columns} columns{f', {missing} missing' if missing else ''}"


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
