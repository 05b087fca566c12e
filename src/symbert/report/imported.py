"""Results that others measured, as an experiment of its own: the report reads them as it reads ours."""

import hashlib
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import to_builtins

from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import read_json, sha256_of, write_json, write_text
from symbert.report import order, published
from symbert.report.trainer_results import RESULTS, Record, files_below, read_losses, read_results
from symbert.settings import ReportSettings, Wording
from symbert.tasks import GLUE

IMPORTED = "imported"  # what settings say where only those who measured know
RHYTHM = 250  # steps between two evaluations of the paper's authors
MODEL = ["size", "attention"]
UNITS = (
    "A unit is a fine-tuning seed, of the same number in both models. Whether that gives both the same order of rows, "
    "the imported files do not say: if not, which seeds are paired is arbitrary, and the unpaired interval is the one "
    "to read."
)
PRETRAIN_SEED = 1  # of all models: names of directories have none

Losses = dict[tuple[str, str], pd.DataFrame]  # by size and operator: a row per evaluation


def import_scores(directory: Path, /, name: str, output: Path | None = None, steps: int | None = None) -> None:
    """Write the results below `directory` as the experiment results/imported-<name>, or to `output`.

    They are those of `symbert.report.trainer_results`: fine-tuning runs of Hugging Face's Trainer, known by the names
    of their directories, and csv files of validation losses. Runs of checkpoints go to glue/curve.json, the others to
    glue/final.json; without any, those of the last checkpoint. `steps` is the length of pre-training, which the names
    do not say: null means the last checkpoint's step or, without checkpoints, the paper's; losses must fit it then.
    A task that does not count for the GLUE score (wnli) is left out where some run of the others lacks it. import.json
    says what was read and left out, and how long pre-training is. ConfigError when the output holds something else.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"import-scores: --name is '{name}', expected letters, digits, '.', '_' and '-'")
    records = read_results(directory)
    length, source = _length(records, steps)
    losses = {file: read_losses(file, length) for file in files_below(directory) if file.suffix == ".csv"}
    runs = _pretrained(losses, length, None if steps else source)
    final, curve = _parted(records, length)
    left_out = _uncounted(final, curve)
    final, curve = ([record for record in part if record["task"] not in left_out] for part in (final, curve))
    facts = {
        "name": name,
        **_origin(directory, records, [file for file, curves in losses.items() if len(curves)]),
        "steps": length,
        "steps_from": source,
        "left_out": left_out,
        "sweep": _sweep(final, curve, runs),
        **_report(final, curve, runs),
    }
    output = output or Path("results") / f"{IMPORTED}-{name}"
    record = output / "import.json"
    if record.exists():
        if read_json(record, {"sha256": str})["sha256"] != facts["sha256"]:
            raise ConfigError(f"{record}: of other files than these; choose another --name, or remove {output}")
    elif output.is_dir() and any(output.iterdir()):
        raise ConfigError(f"{output}: not empty, and no import; choose another --name or --output")
    for (size, attention), run in runs.items():
        folder = output / "pretrain" / f"{size}-{attention}" / f"seed-{PRETRAIN_SEED}"
        identity = {"size": size, "attention": attention, "pretrain_seed": PRETRAIN_SEED, "steps": length}
        write_json(folder / "done.json", identity | {"origin": IMPORTED})
        points = run[["step", "loss"]].to_dict("records")
        lines = [json.dumps({"split": "validation"} | point) + "\n" for point in points]
        write_text(folder / "metrics.jsonl", "".join(lines))
    write_json(output / "glue/final.json", final)
    write_json(output / "glue/curve.json", curve)
    settings = _settings(f"{IMPORTED}-{name}", length, facts["sweep"]["tasks"])
    write_json(output / "settings/report.json", to_builtins(settings))
    write_json(record, facts)


def _length(records: list[Record], given: int | None) -> tuple[int, str]:
    """The steps of pre-training, and how they are known."""
    last = max((record["step"] for record in records if record["step"] is not None), default=None)
    if given is None:
        return (last, "the last checkpoint") if last else (published.TRAINING[0], "the paper")
    if given < 1:
        raise UsageError(f"import-scores: --steps is {given}, expected at least 1")
    if last and given < last:
        raise UsageError(f"import-scores: --steps is {given}, but there is a checkpoint {last}")
    return given, "the command"


def _pretrained(losses: dict[Path, pd.DataFrame], steps: int, guessed_from: str | None) -> Losses:
    """The losses of all files by model, in the order of tables; DataError when two are of one model.

    UsageError where losses do not fit a length of pre-training that nobody gave: an export does not say at which steps
    losses were computed, and over a wrong length they would be stretched.
    """
    every = pd.concat(losses.values(), keys=losses, names=["file"]) if losses else pd.DataFrame(columns=MODEL)
    runs = dict(sorted(every.groupby(MODEL), key=lambda run: order.model_rank(*run[0])))
    for (size, attention), run in runs.items():
        if run["step"].duplicated().any():
            raise DataError(f"losses: {size}-{attention} has several curves; keep one csv file of it")
    for run in runs.values() if guessed_from else ():
        if len(run) * RHYTHM != steps:
            raise UsageError(
                f"{run.index[0][0]}: {len(run)} evaluations in {steps} steps, known from {guessed_from}, are not "
                f"{RHYTHM} steps apart as the authors' are; give --steps"
            )
    return runs


def _parted(records: list[Record], steps: int) -> tuple[list[Record], list[Record]]:
    """The scores of the comparison, at the last step, and those over checkpoints.

    A model without final runs is compared by those of its checkpoint at that step; UsageError when it has none.
    """
    curve = [record for record in records if record["step"] is not None]
    final = [record | {"step": steps} for record in records if record["step"] is None]
    named = set(map(_name, final))
    final += [record for record in curve if record["step"] == steps and _name(record) not in named]
    if lacking := sorted(set(map(_name, curve)) - set(map(_name, final))):
        raise UsageError(
            f"import-scores: no run of {', '.join(lacking)} is at the last step, {steps}; add it, or correct --steps"
        )
    return final, curve


def _name(record: Record) -> str:
    return f"{record['size']}-{record['attention']}"


def _uncounted(final: list[Record], curve: list[Record]) -> list[str]:
    """The tasks that do not count for the GLUE score and that a run lacks: reports would demand them everywhere."""
    table = pd.DataFrame(
        [{"part": part, **record} for part, records in enumerate((final, curve)) for record in records]
    )
    runs = len(table.drop_duplicates(["part", "size", "attention", "step", "finetune_seed"]))
    counted = {task for task in GLUE if set(GLUE[task].scores.values()) & set(published.COLUMNS)}
    scores = table["task"].value_counts(sort=False)
    return [task for task, count in scores.items() if count < runs and task not in counted]


def _origin(directory: Path, records: list[Record], tables: list[Path]) -> dict[str, Any]:
    """What was read: directories by model, and a hash over the sorted names and contents of all files."""
    files = sorted([directory / record["origin"]["directory"] / RESULTS for record in records] + tables)
    lines = [f"{sha256_of(file)}  {file.relative_to(directory).as_posix()}\n" for file in files]
    models: dict[str, Counter] = {}
    for record in records:
        models.setdefault(_name(record), Counter())["final" if record["step"] is None else "checkpoint"] += 1
    return {
        "directory": directory.resolve().name,
        "directories": models,
        "loss_files": [file.relative_to(directory).as_posix() for file in tables],
        "files": len(files),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
    }


def _sweep(final: list[Record], curve: list[Record], runs: Losses) -> dict[str, Any]:
    """The axes of what was imported, by the keys of the configuration's `sweep`."""
    compared, checkpoints = (pd.DataFrame(part, columns=["size", "step", "finetune_seed"]) for part in (final, curve))
    models = {(record["size"], record["attention"]) for record in (*final, *curve)} | runs.keys()
    tasks = {record["task"] for record in (*final, *curve)}
    steps = {size: sorted(part["step"].unique().tolist()) for size, part in checkpoints.groupby("size")}
    return {
        "sizes": order.sizes(size for size, _ in models),
        "attention": order.attentions(attention for _, attention in models),
        "pretrain_seeds": [PRETRAIN_SEED],
        "finetune_seeds": sorted(compared["finetune_seed"].unique().tolist()),
        "tasks": [task for task in GLUE if task in tasks],
        "curve": {
            "sizes": order.sizes(steps),
            "finetune_seeds": sorted(checkpoints["finetune_seed"].unique().tolist()),
            "steps": steps,
        },
    }


def _report(final: list[Record], curve: list[Record], runs: Losses) -> dict[str, Any]:
    """The files that a report is made of, by the options of `symbert exhibit`, from the folder of the results."""
    of_size: dict[str, dict[str, list[str]]] = {}
    for size, attention in runs:
        for option, file in (("done", "done.json"), ("metrics", "metrics.jsonl")):
            files = of_size.setdefault(size, {}).setdefault(option, [])
            files.append(f"pretrain/{size}-{attention}/seed-{PRETRAIN_SEED}/{file}")
    inputs = {option: ["settings/report.json"] for option in ("settings", "sections")}
    inputs |= {"scores": ["glue/final.json"], "curve": ["glue/curve.json"] if curve else [], "origin": ["import.json"]}
    return {"inputs": inputs, "inputs_of_size": of_size}


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
        units=UNITS,
        beside_printed="Beside them what the paper prints; whether these are its models, the files do not say.",
        facts={},
        warnings=["Imported scores: others trained and scored these models; only tables and figures are made here."],
        other_training=None if steps == papers else f"pre-training took {steps:,} steps, the paper’s {papers:,}",
        other_finetuning=None,
    )
