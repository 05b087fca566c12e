"""How far an experiment is: which name is which path, and what of it exists; and what a start of Snakemake will do."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Annotated, Any

from msgspec import to_builtins

from symbert.console import aligned
from symbert.experiment.layout import Experiment, Scoring
from symbert.experiment.plan import (
    disk_line,
    lines_of_continuations,
    lines_of_lost,
    lines_of_rates,
    outputs_of,
    warnings_of,
)
from symbert.experiment.project import ConfigFiles, ConfigWords, Scale, one_line, read_experiment
from symbert.files import holder, read_json_or_empty
from symbert.glue.score import Robustness
from symbert.operators import unfollowed_code
from symbert.paths import Run
from symbert.steps import RESULTS


def status(
    name: Annotated[str | None, "an experiment, as it was started last"] = None,
    /,
    scale: Scale = None,
    configfile: ConfigFiles = None,
    config: ConfigWords = None,
) -> None:
    """Print the path and the state of each pre-training, and which scores of each checkpoint exist.

    Without NAME the options say which experiment: the one that Snakemake would start with them. Run it in the folder
    with results/; nothing is changed.
    """
    folder = Path(RESULTS, name or "")
    if origin := read_json_or_empty(folder / "experiment.json").get("inputs", {}).get("origin"):
        page = folder / "report/report.html"
        made = page if page.is_file() else "no report yet: symbert report makes it"
        print(f"Experiment {name}: imported from {', '.join(origin['files'])}, so nothing is to be run; {made}")
        return
    print("\n".join(status_of(read_experiment(scale, configfile, config, name))))


def status_of(experiment: Experiment) -> list[str]:
    """The status as lines: runs, then a row per checkpoint, with '.' where no scores are asked for; `lost` is a model
    that is needed, and of which no weights are left."""
    states = {run: state_of(experiment, run) for run in experiment.runs}
    for run, before in experiment.continuations.items():
        if before.step and states[run] == "missing":
            states[run] = f"missing, goes on from step {before.step:,} of {before.folder}"
    done = sum(state == "done" for state in states.values())
    page = f"{experiment.folder}/report/report.html"
    trained = f"{done} of {len(states)} pre-trainings done; " if states else ""
    lines = [
        f"Experiment {experiment.name}: {trained}"
        f"{page if Path(experiment.reported).is_file() else 'no report of this configuration yet'}",
        *([""] if states else []),
        *(f"{file}: {_exists(file)}" for file in dict.fromkeys(map(experiment.manifest, experiment.runs))),
        *(f"{run}: {experiment.runs[run]}: {state}" for run, state in states.items()),
        *lines_of_rates(experiment, outputs_of(experiment)),
    ]
    cells = {
        (str(score.run), score.step, score.scoring.folder): _exists(file) for file, score in experiment.scores.items()
    }
    folders = {scoring.folder: _title_of(scoring) for scoring, _ in experiment.scorings}
    rows, lost = [("checkpoint", "step", "extracted", *folders.values())], experiment.lost_steps
    for run in experiment.runs:
        for step in experiment.extracted_steps(run):
            is_lost = step in lost.get(run, [])
            extracted = "lost" if is_lost else _exists(f"{experiment.checkpoint(run, step)}/model.safetensors")
            scores = (cells.get((str(run), step, folder), ".") for folder in folders)
            rows.append((str(run), f"{step:,}", extracted, *scores))
    if rows[1:]:
        lines += ["", *aligned(rows), *lines_of_lost(experiment)]
    return [*lines, *([""] if experiment.models else []), *_models(experiment)]


def _models(experiment: Experiment) -> Iterator[str]:
    """A line per model from elsewhere: where it is described, whether its files are here, and which scores exist."""
    for model in experiment.models.values():
        files = "here" if all(Path(file).exists() for file in model.reads()) else "to be downloaded"
        scores = {file: score for file, score in experiment.scores.items() if score.run is model}
        exist = (f"{_title_of(score.scoring)} {_exists(file)}" for file, score in scores.items())
        yield f"{model}: {model.folder}: {model.origin} is {files}; scores: {', '.join(exist)}"


def _title_of(scoring: Scoring) -> str:
    return f"{'noise: ' if isinstance(scoring, Robustness) else ''}{Path(scoring.folder).name}"


def _exists(file: str) -> str:
    return "yes" if Path(file).is_file() else "no"


def state_of(experiment: Experiment, run: Run) -> str:
    """How a run stands: done, missing, or its last step and why it is not done."""
    folder = Path(experiment.runs[run])
    if (folder / "done.json").is_file():
        return "done"
    status, user = read_json_or_empty(folder / "state/status.json"), holder(folder)
    if not status and user is None:
        return "missing"
    step = f"step {status.get('step', 0):,} of {experiment.training(run).steps:,}"
    if user:
        return f"{step}, running by {user}"
    ended = status.get("state")
    state = "stopped" if ended in ("running", "done", None) else ended  # whose process ended without a word
    return f"{step}, {state}{f': {reason}' if (reason := status.get('reason')) else ''}"


@one_line()
def begin(experiment: Experiment) -> None:
    """Say on stderr what a start of Snakemake will do, and write experiment.json and settings; a failure is one line
    and ends Snakemake."""
    heed_signals()
    print("\n".join(announcement_of(experiment)), file=sys.stderr)
    experiment.write()


def heed_signals() -> None:
    """Have Snakemake end by SIGTERM whenever it comes, and by SIGHUP as by SIGTERM: it starts no more jobs, waits for
    those that run, and releases its lock.

    Its handler waits for a lock that the interrupted thread, the main one, may hold, which then waits for itself
    (docs/upstream/snakemake-sigterm.md): so another thread calls it. It is set before `onstart`, where this belongs.
    """
    handle = signal.getsignal(signal.SIGTERM)
    received: SimpleQueue[int] = SimpleQueue()  # whose `put` a signal may interrupt
    if not callable(handle):  # outside of Snakemake
        return

    def follow() -> None:
        while True:
            handle(received.get(), None)

    Thread(target=follow, daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as `nohup` has it
            signal.signal(number, lambda number, frame: received.put(number))


def announcement_of(experiment: Experiment) -> Iterator[str]:
    """The lines that are said before anything runs: the experiment, how it differs from the last one of its name, and
    the disk."""
    yield f"symbert: {experiment.summary}"
    record = read_json_or_empty(Path(experiment.folder, "experiment.json"))
    config = to_builtins(experiment.config)
    yield from (f"  changed  {line}" for line in differences(record.get("configuration", config), config))
    if anew := trained_anew(experiment, record.get("settings", {})):
        yield (
            f"  anew     {len(anew)} of {len(experiment.runs)} pre-trainings: they are done with other settings, whose "
            "folders stay until symbert prune"
        )
    yield from (f"  steps    {line}" for line in lines_of_continuations(experiment))
    outputs = outputs_of(experiment)
    yield from (f"  tuning   {line}" for line in lines_of_rates(experiment, outputs))
    yield f"  disk     {disk_line(outputs)}"
    if equal := experiment.equal_texts:
        which, count = " like ".join(equal[0]), len(equal) + len(experiment.texts)
        yield f"  warning  corpus: {len(equal):,} of {count:,} files equal another and are read once: {which}"
    yield from (f"  warning  {line}" for line in warnings_of(experiment))
    custom_texts = {text.source for text in experiment.config.texts.values() if ":" in text.source}
    unfollowed = unfollowed_code(experiment.operators, sorted(custom_texts))
    yield from (f"  warning  {line}" for line in (*experiment.longer_rows, *unfollowed))


def trained_anew(experiment: Experiment, before: dict[str, Any]) -> list[str]:
    """The folders of runs to come whose architecture, model and seed are done with the settings that stand in `before`,
    which has those of an earlier start by their files; without those that go on from a finished run."""

    def model(folder: str) -> str:
        return re.sub("-[0-9a-f]{8}(?=/seed-)", "", folder)  # without its key

    done = {model(str(Path(file).parent)) for file in before if Path(file).with_name("done.json").is_file()}
    going_on = {run for run, before in experiment.continuations.items() if before.step}
    runs = {run: folder for run, folder in experiment.runs.items() if run not in going_on}
    coming = (folder for folder in runs.values() if not Path(folder, "done.json").is_file())
    return [folder for folder in coming if model(folder) in done]


def differences(before: Any, after: Any, key: str = "") -> Iterator[str]:
    """The keys whose values differ, as `pretrain.steps: 1000 → 2000`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for name in dict.fromkeys([*before, *after]):
            yield from differences(before.get(name), after.get(name), f"{key}.{name}" if key else name)
    elif before != after:
        yield f"{key}: {json.dumps(before)} → {json.dumps(after)}"
