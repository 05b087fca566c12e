"""`symbert evaluate`: a model from elsewhere through the workflow, and its scores as a table on the terminal.

It computes nothing itself: Snakemake runs the project's Snakefile with a configuration of one model.
"""

import json
import re
import shlex
import signal
import subprocess
import sys
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from symbert.configuration import Configuration, GlueSettings, experiment_name, protocol_of
from symbert.console import aligned
from symbert.errors import MissingInputError, UsageError
from symbert.experiment.power import FEWEST
from symbert.experiment.project import read_chosen
from symbert.glue.score import ScoreRecord, read_records
from symbert.glue.tasks import suite_of, task_named, tasks_of
from symbert.provenance import PROJECT
from symbert.report.collect import RESULTS, read_record
from symbert.report.statistics import paired_interval, spread

SOURCES = {"hub": "encoders", "mirror": "encoders", "embedded": "demo"}  # of tasks; with the scale of each
PASSED_ON = (signal.SIGTERM, signal.SIGHUP)  # Ctrl-C reaches Snakemake from the terminal


def evaluate(
    path: Annotated[str, "owner/name of the hub, or a folder in Hugging Face's layout with its tokenizer"],
    /,
    tasks: Annotated[list[str], "tasks of GLUE, SuperGLUE and SQuAD 2.0"],
    seeds: Annotated[int, "fine-tunings of each task, with the seeds 1 to NUMBER"] = 5,
    source: Annotated[str, "where tasks come from: hub, mirror or embedded (stand-ins, to try the command)"] = "hub",
    mirror: Annotated[str | None, "the folder of --source mirror, in the publishers' layout"] = None,
    learning_rate: Annotated[
        list[float] | None, "one rate, or several, of which each task's is chosen on three other seeds (default: 1e-5)"
    ] = None,
    name: Annotated[
        str | None, "name of the model, and of the folder in results/ (default: the last part of PATH)"
    ] = None,
    cores: Annotated[int | None, "cores that Snakemake may use (default: all)"] = None,
    gpus: Annotated[int, "GPUs that Snakemake may use, where torch finds any"] = 1,
) -> None:
    """Fine-tune a model from elsewhere on tasks with several seeds, and print its scores with intervals.

    A checkpoint of a run here becomes such a folder by `symbert export`. Tasks (docs/glue.md) are fine-tuned by the
    paper's protocol; each has one row of the table, mnli has two. Scores on the stand-ins of --source embedded, which
    have the demo's settings, say nothing of the model.

    Snakemake does the work in the folder where this is run, and writes what it would without this command, the page
    results/NAME/report/report.html among it. The same command resumes, and computes only what is not there: more seeds
    and tasks are added to those that are.

    Time: a model of two layers takes half a minute on two cores on stand-ins, of which most starts processes. BERT-base
    on rte and mrpc with five seeds takes minutes on a GPU, and a day without one, both as reckoned. `symbert plan` with
    the words after --config, which are printed first, says it for a model, and docs/encoders.md what was measured.
    """
    snakefile = PROJECT / "Snakefile"
    if not snakefile.is_file():
        raise MissingInputError(
            f"{snakefile}: no such file: this installation has no workflow; clone the project, and pip install -e it"
        )
    if source not in SOURCES:
        raise UsageError(f"--source is {source}; choose from {', '.join(SOURCES)}")
    if seeds < 1:
        raise UsageError(f"--seeds is {seeds}; give 1 or more")
    words = words_of(path, tasks, seeds, source, mirror, learning_rate, name or name_of(path))
    config = read_chosen(PROJECT, None, None, words)  # a mistake is told before Snakemake starts
    folder = RESULTS / experiment_name(config)
    command = ["--snakefile", str(snakefile), "--cores", str(cores or "all"), "--resources", f"gpu={gpus}"]
    command += ["--config", *words]
    print(shlex.join(["snakemake", *command]), file=sys.stderr)
    if code := snakemake(command):
        raise SystemExit(code if code > 0 else 128 - code)
    print("\n".join([*lines_of(folder, config), f"page: {folder}/report/report.html"]))


def name_of(path: str) -> str:
    """The last part of a path or of owner/name, as a name of a folder."""
    last = Path(path).resolve().name
    return re.sub(r"[^A-Za-z0-9._-]+", "-", last).lstrip("._-") or "model"


def words_of(
    path: str,
    tasks: list[str],
    seeds: int,
    source: str,
    mirror: str | None,
    rates: list[float] | None,
    name: str,
) -> list[str]:
    """The words after Snakemake's --config: one model, and nothing that is pre-trained."""
    model = {"path": path} | ({"learning_rate": rates if rates[1:] else rates[0]} if rates else {})
    suites = [*dict.fromkeys(suite_of(task).name for task in tasks)]
    sweep = {"attention": [], "suites": suites, "tasks": tasks, "finetune_seeds": [*range(1, seeds + 1)]}
    values: dict[str, Any] = {"scale": SOURCES[source], "source": source, "experiment": name}
    values |= {"mirror": mirror} if mirror else {}
    values |= {"glue": {"keep_finetuned": False, "robustness": {"noise": []}}} if source == "embedded" else {}
    values |= {"models": {name: model}, "sweep": sweep}
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items()]


def snakemake(words: Sequence[str]) -> int:
    """Run Snakemake in a process of its own; its exit code, or minus the signal that ended it. Signals to end go to it
    alone, which waits for its jobs."""
    process: subprocess.Popen[bytes] | None = None
    received: list[int] = []

    def pass_on(number: int, frame: types.FrameType | None) -> None:
        received.append(number)
        if process and number in PASSED_ON:
            process.send_signal(number)

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, *PASSED_ON)}
    heeded = [number for number, handler in before.items() if handler != signal.SIG_IGN]  # not so under `nohup`
    for number in heeded:
        signal.signal(number, pass_on)
    try:
        process = subprocess.Popen([sys.executable, "-P", "-m", "snakemake", *words])
        for number in {*received}.intersection(PASSED_ON):  # before there was a process
            process.send_signal(number)
        return process.wait()
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def lines_of(folder: Path, config: Configuration) -> Iterator[str]:
    """The table of the model that a finished experiment is named after: a row per score column, in percent, and what a
    reader must know of it."""
    name, seeds, inputs = experiment_name(config), config.sweep.finetune_seeds, read_record(folder)[1]["inputs"]
    model = config.models[name]
    files = [file for of_suite in inputs["scores"].values() for file in of_suite]
    records = [record for record in read_records(files, ScoreRecord) if record.attention == name]
    rows, remarks = [], defaultdict[str, list[str]](list)
    for task in config.sweep.tasks:
        of_task = [record for record in records if record.task == task and record.finetune_seed in seeds]
        for split, column in task_named(task, tasks_of(config.tasks)).scores.items():
            percent = [100 * record.metrics[column] for record in of_task]
            over, first = spread(percent), of_task[0]
            rate = first.learning_rate or protocol_of(config, suite_of(task).name, GlueSettings, model).learning_rate
            low, high = paired_interval(np.array(percent)) if over.count >= FEWEST else (None, None)
            rows.append(
                {
                    "score": column,
                    **{"mean": over.mean, "std": over.deviation, "low": low, "high": high},
                    "majority": 100 * first.majority[column],
                    **{"rows": first.rows[split], "trained on": first.rows["train"]},
                    "rate": f"{rate:g}",
                }
            )
        constant = [str(record.finetune_seed) for record in of_task if record.constant_prediction]
        if constant:
            plural = "s" if constant[1:] else ""
            remarks[f"one class throughout with seed{plural} {', '.join(constant)}"].append(task)
        if first.stand_in:
            remarks["a stand-in, whose scores say nothing of the model"].append(task)
        elif first.partial:
            remarks["other rows than are published"].append(task)
    yield f"{name}: {len(seeds)} fine-tuning seeds, scores in percent; low, high: Student's 95 % interval of the mean"
    yield ""
    yield from aligned([[*rows[0]], *([*map(_cell, row.values())] for row in rows)])
    yield from (f"{', '.join(of)}: {remark}" for remark, of in remarks.items())


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else value
