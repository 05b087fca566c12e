"""Results that others measured, as an experiment of its own: the report reads them as it reads ours."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
from msgspec import to_builtins

from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import read_json, sha256_of, write_json, write_text
from symbert.report import order, published
from symbert.report.captions import model_name
from symbert.report.foreign import tables
from symbert.report.foreign.losses import read_losses
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.reading import Reading, read_foreign
from symbert.report.scores import CELL, Record
from symbert.settings import ReportSettings, Wording
from symbert.tasks import GLUE, OWN, task_named

IMPORTED = "imported"  # what settings say where only those who measured know
RHYTHM = 250  # steps between two evaluations of the paper's authors
TABLE = "scores.csv"  # all scores of an import, as `import-scores` reads them
MODEL = ["size", "attention"]
RUN = [*MODEL, "pretrain_seed"]

Losses = dict[tuple[str, str, int], pd.DataFrame]  # by run: a row per evaluation


def import_scores(
    path: Path,
    /,
    name: str,
    pattern: str | None = None,
    mapping: Path | None = None,
    output: Path | None = None,
    steps: int | None = None,
) -> None:
    """Write the scores in a file, or in all files below a folder, as the experiment results/imported-<name>.

    Known are csv and parquet tables, runs of Hugging Face's Trainer and results of lm-evaluation-harness
    (docs/scores.md), and csv exports of validation losses. Folders of runs are called as `pattern` says
    ('{model}_{task}_s{finetune_seed}'), as the csv file `mapping` says (columns folder, model, task, finetune_seed), or
    as the paper's authors call theirs. Runs of checkpoints go to glue/curve.json, the others to glue/final.json;
    without any, those of the last checkpoint. `steps` is the length of pre-training: without it, it is the last
    checkpoint's step or, without checkpoints, the paper's; losses must fit it then. `output` is another folder. Prints
    what was read, what is missing and what was left out. An earlier import in that folder is replaced; ConfigError when
    the folder holds something else.
    """
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"import-scores: --name is '{name}', expected letters, digits, '.', '_' and '-'")
    naming = Naming(pattern, mapping)
    reading = read_foreign(path, naming)
    length, source = length_of(reading.scores, steps)
    losses = _pretrained(reading.losses, length, None if steps else source, naming)
    final, curve = parted(reading.scores, length)
    output = output or Path("results") / f"{IMPORTED}-{name}"
    files = _files(final, curve, losses, length)
    facts = {
        "name": name,
        **_origin(path, reading),
        "steps": length,
        "steps_from": source,
        "sweep": _sweep(final, curve, losses),
        **_report(len(curve) > 0, losses),
    }
    settings = _settings(f"{IMPORTED}-{name}", length, facts["sweep"]["tasks"])
    files["settings/report.json"] = _json(to_builtins(settings))
    files[TABLE] = tables.write(reading.scores, output / TABLE)
    is_replaced = _write(output, files, facts)
    print(f"import-scores: {len(reading.scores)} scores of {facts['files']} files, of {', '.join(facts['kinds'])}")
    print(reading.summary().to_string(index=False))
    print("".join(f"left out: {line}\n" for line in reading.left_out()), end="")
    print(f"{output}: {'written again, in place of what was imported before' if is_replaced else 'written'}")


def parted(scores: pd.DataFrame, steps: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The scores of the comparison, at the last step, and those over checkpoints.

    A model without final runs is compared by those of its checkpoint at that step; UsageError when it has none.
    """
    is_final = scores["step"].isna()
    curve, final = scores[~is_final], scores[is_final].assign(step=steps)
    final_models, models = (list(part[MODEL].itertuples(index=False, name=None)) for part in (final, curve))
    has_none = pd.Series([model not in final_models for model in models], curve.index, dtype=bool)
    final = pd.concat([final, curve[(curve["step"] == steps) & has_none]], ignore_index=True)
    compared = set(final[MODEL].itertuples(index=False, name=None))
    if lacking := sorted(model_name(*model) for model in set(models) - compared):
        raise UsageError(
            f"scores: no run of {', '.join(lacking)} is at the last step, {steps}; add it, or leave out the step of "
            "its final runs"
        )
    return final, curve


def records_of(scores: pd.DataFrame) -> list[Record]:
    """Score records, as fine-tuning writes them, of scores that others measured; what is not known is null."""
    records = []
    for cell, columns in scores.groupby(list(CELL), sort=False):
        identity = {key: value if isinstance(value, str) else int(value) for key, value in zip(CELL, cell, strict=True)}
        task = task_named(identity["task"])
        details = dict(zip(columns["column"], columns["details"], strict=True))
        rows = {
            split: int(count)
            for split, column in task.scores.items()
            for count in columns.loc[columns["column"] == column, "rows"].dropna()
        }
        # Of all metrics only Matthews' tells whether one class was predicted throughout: it is 0 then.
        is_known = task.metrics == ("matthews",) and all(details.values())
        constant = any(scores["matthews"] == 0 for scores in details.values()) if is_known else None
        records.append(
            identity
            | {
                "metrics": dict(zip(columns["column"], map(float, columns["score"]), strict=True)),
                "details": details,
                "majority": None,
                "constant_prediction": constant,
                "rows": rows,
                "official_rows": task.official_rows,
                "partial": any(count != task.official_rows.get(split, count) for split, count in rows.items()),
                "stand_in": False,
                "settings_hash": None,
                "recipe": None,
                "precision": None,
                "versions": {},
                "origin": IMPORTED,
            }
        )
    return records


def length_of(scores: pd.DataFrame, given: int | None) -> tuple[int, str]:
    """The steps of pre-training, and how they are known."""
    last = int(scores["step"].max()) if scores["step"].notna().any() else None
    if given is None:
        return (last, "the last checkpoint") if last else (published.TRAINING[0], "the paper")
    if given < 1:
        raise UsageError(f"import-scores: --steps is {given}, expected at least 1")
    if last and given < last:
        raise UsageError(f"import-scores: --steps is {given}, but there is a checkpoint {last}")
    return given, "the command"


def _pretrained(files: list[Path], steps: int, guessed_from: str | None, naming: Naming) -> Losses:
    """The losses of all files by run, in the order of tables; DataError when two are of one run.

    UsageError where losses do not fit a length of pre-training that nobody gave: an export does not say at which steps
    losses were computed, and over a wrong length they would be stretched.
    """
    if not files:
        return {}
    every = pd.concat({file: read_losses(file, steps, naming) for file in files}, names=["file"])
    runs = dict(sorted(every.groupby(RUN), key=lambda run: (order.model_rank(*run[0][:2]), run[0][2])))
    for (size, attention, _), run in runs.items():
        if run["step"].duplicated().any():
            raise DataError(f"losses: {model_name(size, attention)} has several curves; keep one csv file of it")
    for run in runs.values() if guessed_from else ():
        if len(run) * RHYTHM != steps:
            raise UsageError(
                f"{run.index[0][0]}: {len(run)} evaluations in {steps} steps, known from {guessed_from}, are not "
                f"{RHYTHM} steps apart as the authors' are; give --steps"
            )
    return runs


def _files(final: pd.DataFrame, curve: pd.DataFrame, losses: Losses, steps: int) -> dict[str, str]:
    """The content of each file with scores or losses, below the folder of the results."""
    files = {"glue/final.json": _json(records_of(final)), "glue/curve.json": _json(records_of(curve))}
    for run, points in losses.items():
        done = dict(zip(RUN, run, strict=True)) | {"steps": steps, "origin": IMPORTED}
        lines = [{"split": "validation"} | point for point in points[["step", "loss"]].to_dict("records")]
        files[f"{_folder(run)}/done.json"] = _json(done)
        files[f"{_folder(run)}/metrics.jsonl"] = "".join(json.dumps(line) + "\n" for line in lines)
    return files


def _write(output: Path, files: dict[str, str], facts: dict[str, Any]) -> bool:
    """Write an import, in place of an earlier one; whether there was one.

    Of the earlier one, files that this one does not have are removed. import.json is written last, so that what was
    interrupted can be written again. ConfigError when the folder holds something else.
    """
    record = output / "import.json"
    is_replaced = record.exists()
    if not is_replaced and output.is_dir() and any(output.iterdir()):
        raise ConfigError(f"{output}: not empty, and no import; choose another --name or --output")
    before = read_json(record, {"inputs_of_size": {str: {str: [str]}}}) if is_replaced else {"inputs_of_size": {}}
    for inputs in before["inputs_of_size"].values():
        for file in {file for listed in inputs.values() for file in listed} - files.keys():
            (output / file).unlink(missing_ok=True)
    for file, text in files.items():
        write_text(output / file, text)
    write_json(record, facts)
    return is_replaced


def _origin(path: Path, reading: Reading) -> dict[str, Any]:
    """What was read: the number of files, their kinds, and a hash over their sorted names and contents."""
    root = path if path.is_dir() else path.parent
    files = sorted([*reading.files, *reading.losses])
    lines = [f"{sha256_of(file)}  {file.relative_to(root).as_posix()}\n" for file in files]
    return {
        "directory": path.resolve().name,
        "kinds": sorted(set(reading.files.values())),
        "loss_files": [file.relative_to(root).as_posix() for file in reading.losses],
        "files": len(files),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
    }


def _sweep(final: pd.DataFrame, curve: pd.DataFrame, losses: Losses) -> dict[str, Any]:
    """The axes of what was imported, by the keys of the configuration's `sweep`."""
    every = pd.concat([final, curve])
    runs = {*every[RUN].itertuples(index=False, name=None), *losses}
    steps = {size: sorted(part["step"].unique().tolist()) for size, part in curve.groupby("size")}
    return {
        "sizes": order.sizes(size for size, _, _ in runs),
        "attention": order.attentions(attention for _, attention, _ in runs),
        "pretrain_seeds": sorted({seed for _, _, seed in runs}),
        "finetune_seeds": sorted(final["finetune_seed"].unique().tolist()),
        "tasks": [task for task in (*GLUE, *OWN) if task in set(every["task"])],
        "curve": {
            "sizes": order.sizes(steps),
            "finetune_seeds": sorted(curve["finetune_seed"].unique().tolist()),
            "steps": steps,
        },
    }


def _report(has_curve: bool, losses: Losses) -> dict[str, Any]:
    """The files that a report is made of, by the options of `symbert exhibit`, from the folder of the results."""
    of_size: dict[str, dict[str, list[str]]] = {}
    for run in losses:
        for option, file in (("done", "done.json"), ("metrics", "metrics.jsonl")):
            of_size.setdefault(run[0], {}).setdefault(option, []).append(f"{_folder(run)}/{file}")
    inputs = {option: ["settings/report.json"] for option in ("settings", "sections")}
    inputs |= {"scores": ["glue/final.json"], "curve": ["glue/curve.json"] if has_curve else []}
    return {"inputs": inputs | {"origin": ["import.json"]}, "inputs_of_size": of_size}


def _folder(run: tuple[str, str, int]) -> str:
    size, attention, pretrain_seed = run
    return f"pretrain/{size}-{attention}/seed-{pretrain_seed}"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


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
