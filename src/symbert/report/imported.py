"""Results that others measured, as an experiment of its own: the report reads them as it reads ours."""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from symbert.errors import ConfigError, DataError, UsageError
from symbert.files import read_json, sha256_of, write_json, write_text
from symbert.glue.tasks import GLUE
from symbert.report import order, published
from symbert.report.runs import Run
from symbert.report.trainer_results import RESULTS, Record, files_below, read_losses, read_results
from symbert.settings import ReportSettings

IMPORTED = "imported"  # what settings say where only those who measured know
RHYTHM = 250  # steps between two evaluations of the paper's authors


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
    length, source = _steps(records, steps)
    losses = {file: read_losses(file, length) for file in files_below(directory) if file.suffix == ".csv"}
    runs, tables = _once(losses.values()), [file for file, found in losses.items() if found]
    if steps is None:
        _check_rhythm(losses, length, source)
    final, curve = _parted(records, length)
    left_out = _uncounted(final, curve)
    final, curve = ([record for record in part if record["task"] not in left_out] for part in (final, curve))
    output = output or Path("results") / f"{IMPORTED}-{name}"
    told = {"name": name, **_facts(directory, records, tables), "steps": length, "steps_from": source}
    told |= {"left_out": left_out, "sweep": _sweep(final, curve, runs)}
    told |= {"losses": [[*_model(run), run.pretrain_seed] for run in runs]}
    _check_output(output, told["sha256"])
    for run in runs:
        _write_run(output / "pretrain" / f"{run.size}-{run.attention}" / f"seed-{run.pretrain_seed}", run, length)
    write_json(output / "glue/final.json", final)
    write_json(output / "glue/curve.json", curve)
    write_json(output / "settings/report.json", to_builtins(_settings(name, length, told["sweep"]["tasks"])))
    write_json(output / "import.json", told)


def _steps(records: list[Record], given: int | None) -> tuple[int, str]:
    """The length of pre-training, and how it is known."""
    checkpoints = [record["step"] for record in records if record["step"] is not None]
    if given is None:
        return (max(checkpoints), "the last checkpoint") if checkpoints else (published.TRAINING[0], "the paper")
    if given < 1:
        raise UsageError(f"import-scores: --steps is {given}, expected at least 1")
    if given < max(checkpoints, default=1):
        raise UsageError(f"import-scores: --steps is {given}, but there is a checkpoint {max(checkpoints)}")
    return given, "the command"


def _check_rhythm(losses: dict[Path, list[Run]], steps: int, source: str) -> None:
    """UsageError where losses do not fit the length of a pre-training that nobody gave.

    An export does not say at which steps losses were computed: over a wrong length they would be stretched.
    """
    for file, runs in losses.items():
        for run in runs:
            if len(run.losses) * RHYTHM != steps:
                raise UsageError(
                    f"{file}: {len(run.losses)} evaluations in {steps} steps, known from {source}, are not "
                    f"{RHYTHM} steps apart as the authors' are; give --steps"
                )


def _once(losses: Iterable[list[Run]]) -> list[Run]:
    """The runs of all files in the order of tables; DataError when two are of one model."""
    runs = [run for found in losses for run in found]
    for (size, attention), count in Counter(map(_model, runs)).items():
        if count > 1:
            raise DataError(f"losses: {size}-{attention} is there {count} times; keep one csv file of it")
    return sorted(runs, key=lambda run: order.model_rank(*_model(run)))


def _model(run: Run) -> tuple[str, str]:
    return run.size, run.attention


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


def _uncounted(final: list[Record], curve: list[Record]) -> list[str]:
    """The tasks that do not count for the GLUE score and that a run lacks: reports would demand them everywhere."""
    cells: dict[str, set[tuple]] = {}
    for part, records in enumerate((final, curve)):
        for record in records:
            cells.setdefault(record["task"], set()).add((part, _name(record), record["step"], record["finetune_seed"]))
    runs = set().union(*cells.values())
    return [
        task
        for task, found in cells.items()
        if found < runs and not set(GLUE[task].scores.values()) & set(published.COLUMNS)
    ]


def _name(record: Record) -> str:
    return f"{record['size']}-{record['attention']}"


def _facts(directory: Path, records: list[Record], tables: list[Path]) -> dict[str, Any]:
    """What was read: directories by model, and a hash over the sorted names and contents of all files."""
    files = sorted([directory / record["origin"]["directory"] / RESULTS for record in records] + tables)
    lines = [f"{sha256_of(file)}  {file.relative_to(directory).as_posix()}\n" for file in files]
    models: dict[str, Counter] = {}
    for record in records:
        kind = "final" if record["step"] is None else "checkpoint"
        models.setdefault(_name(record), Counter())[kind] += 1
    return {
        "directory": directory.resolve().name,
        "directories": models,
        "loss_files": [file.relative_to(directory).as_posix() for file in tables],
        "files": len(files),
        "sha256": hashlib.sha256("".join(lines).encode()).hexdigest(),
    }


def _sweep(final: list[Record], curve: list[Record], runs: list[Run]) -> dict[str, Any]:
    """The axes of what was imported, by the keys of the configuration's `sweep`."""
    models = {(record["size"], record["attention"]) for record in (*final, *curve)}
    models |= set(map(_model, runs))
    sizes = order.sizes(record["size"] for record in curve)
    return {
        "sizes": order.sizes(size for size, _ in models),
        "attention": order.attentions(attention for _, attention in models),
        "pretrain_seeds": [1],
        "finetune_seeds": _values("finetune_seed", final),
        "tasks": [task for task in GLUE if any(record["task"] == task for record in (*final, *curve))],
        "curve": {
            "sizes": sizes,
            "finetune_seeds": _values("finetune_seed", curve),
            "steps": {size: _values("step", (record for record in curve if record["size"] == size)) for size in sizes},
        },
    }


def _values(key: str, records: Iterable[Record]) -> list[int]:
    return sorted({record[key] for record in records})


def _settings(name: str, steps: int, tasks: list[str]) -> ReportSettings:
    return ReportSettings(
        experiment=f"{IMPORTED}-{name}",
        scale=IMPORTED,
        corpus_source=IMPORTED,
        glue_source=IMPORTED,
        recipe=IMPORTED,
        tasks=tasks,
        sequence_length=None,
        steps=steps,
        batch_size=None,
        pretrain={},
        glue={},
        settings_hash=None,
        match=None,
        min_harmful_perplexity=None,
        max_harmful_perplexity=None,
    )


def _check_output(output: Path, sha256: str) -> None:
    """ConfigError when the output holds another import, or an experiment of one's own."""
    file = output / "import.json"
    if file.exists():
        if read_json(file, {"sha256": str})["sha256"] != sha256:
            raise ConfigError(f"{file}: of other files than these; choose another --name, or remove {output}")
    elif output.is_dir() and any(output.iterdir()):
        raise ConfigError(f"{output}: not empty, and no import; choose another --name or --output")


def _write_run(folder: Path, run: Run, steps: int) -> None:
    """The two files of a run that `symbert.report.runs` reads."""
    points = zip(run.steps, run.losses, strict=True)
    lines = [json.dumps({"split": "validation", "step": step, "loss": loss}) + "\n" for step, loss in points]
    identity = {"size": run.size, "attention": run.attention, "pretrain_seed": run.pretrain_seed, "steps": steps}
    write_json(folder / "done.json", identity | {"origin": IMPORTED})
    write_text(folder / "metrics.jsonl", "".join(lines))
