"""The tiny chain by stages: a folder to run it in, what each stage does and leaves, what may differ between runs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from workflow.checkout import ENVIRONMENT, heed_signals

SNAKEMAKE = "snakemake"  # the name of the process that the user started; that of a job is its log
SITE = Path(__file__).with_name("inside")  # whose sitecustomize.py runs in all processes
TARGETS = {
    "corpus": ["--until", "pack"],
    "pretrain": ["--until", "pretrain"],
    "glue": ["--until", "score"],
    "report": [],
}
MEASURED = {"report", "claims", "table2_training", "provenance", "runs"}  # the page, and tables of speeds or machines
KEPT = ("results", ".snakemake")  # what a run leaves in its folder
HANG, ALONE = 900, 90  # seconds after which a start hangs: in all, and without any job, however busy the machine
CHAIN = """\
# The smallest chain that has a job of every rule of the demo.
corpus: {parts: 2, pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}}
pretrain:
  {steps: 20, schedule_steps: null, batch_size: 8, learning_rate: 1.0e-3, warmup_steps: 5, evaluate_every: 5,
   save_every: 5}
glue: {max_examples: 32, max_evaluation_examples: 32, max_length: 32, epochs: 1, robustness: {noise: [0.2]}}
sweep:
  attention: [original, pairwise]
  tasks: [mrpc, stsb]
  pretrain_seeds: [1]
  finetuned_pretrain_seeds: null
  finetune_seeds: [1, 2]
  suites: [glue]
  curve: {steps: {tiny: [10, 20]}}
"""


@dataclass(frozen=True)
class Call:
    """Something that a process did to a file of the run; a `start` has the process id as its file."""

    process: str  # SNAKEMAKE, or the log of a job
    name: str  # start, open (for writing), fsync, rename, unlink, mkdir
    file: str
    after: str = ""  # the name that a file has then


@dataclass(frozen=True)
class Notes:
    """The folder by which the campaign and the processes talk (site/sitecustomize.py)."""

    folder: Path

    def plan(self, lines: Iterable[tuple]) -> None:
        """Write the faults: number, process, call, count, action, error."""
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "faults").write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")

    def struck(self) -> dict[int, str]:
        """What was to be done to which file when each fault struck, by its number."""
        marks = self.folder.glob("struck-*")
        return {int(mark.name.removeprefix("struck-")): mark.read_text(encoding="utf-8") for mark in marks}

    def mark(self, number: int, text: str) -> None:
        """Say that a fault struck."""
        (self.folder / f"struck-{number}").write_text(text, encoding="utf-8")

    def trace(self) -> list[Call]:
        """What was done so far."""
        file = self.folder / "trace"
        lines = file.read_text("utf-8", "surrogateescape").splitlines() if file.is_file() else []
        return [Call(*words) for words in (line.split("\t") for line in lines) if 3 <= len(words) <= 4]


@dataclass
class Start:
    """A Snakemake that was started, in a process group of its own."""

    process: subprocess.Popen
    output: Path
    begun: float = field(default_factory=time.monotonic)
    hangs: bool = False

    def processes(self) -> int:
        """How many of the group have not ended."""
        alive = 0
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                alive += int(words[2]) == self.process.pid and words[0] not in "ZX"
        return alive

    def kill_all(self) -> None:
        """Kill what is left of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def text(self) -> str:
        """What was said so far."""
        return self.output.read_text(encoding="utf-8", errors="replace")


@dataclass(frozen=True)
class Folder:
    """Where the chain runs, with the code of a project."""

    root: Path
    project: Path

    @property
    def results(self) -> Path:
        """The results of the chain."""
        return self.root / "results"

    def start(self, notes: Notes, words: list[str]) -> Start:
        """Start Snakemake as a user does."""
        (self.root / "chain.yaml").write_text(CHAIN, encoding="utf-8")
        output = notes.folder / f"output-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(self.project / "Snakefile"), "--cores", "2"]
        chaos = {"CHAOS_ROOT": str(self.root), "CHAOS_FOLDER": str(notes.folder), "PYTHONPATH": str(SITE)}
        with open(output, "wb") as file:
            process = subprocess.Popen(
                [*command, *words, "--configfile", "chain.yaml"],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT, "SOURCE_DATE_EPOCH": "0", **chaos},
                start_new_session=True,
                preexec_fn=heed_signals,
            )
        return Start(process, output)

    def watch(self, start: Start, look: Callable[[Start], None] = lambda start: None) -> int:
        """The exit code of Snakemake, which is killed where it hangs; `look` is called all the time."""
        looked = busy = start.begun
        try:
            while start.process.poll() is None:
                look(start)
                now = time.monotonic()
                if now > looked + 1:
                    looked, busy = now, now if start.processes() > 1 else busy
                if now > min(start.begun + HANG, busy + ALONE):
                    start.hangs = True
                    start.kill_all()
                time.sleep(0.02)
        except BaseException:  # a campaign that is ended leaves nothing that runs
            start.kill_all()
            raise
        return start.process.returncode

    def save(self, snapshot: Path) -> None:
        """Copy what the run left."""
        for name in KEPT:
            shutil.copytree(self.root / name, snapshot / name, symlinks=True)

    def restore(self, snapshot: Path) -> None:
        """Begin as a run that left this; nothing where it is no folder."""
        for name in KEPT:
            shutil.rmtree(self.root / name, ignore_errors=True)
            if (snapshot / name).is_dir():
                shutil.copytree(snapshot / name, self.root / name, symlinks=True)


def artefacts(results: Path) -> dict[str, str]:
    """The SHA-256 of each file by which two runs are compared: final artefacts, kept weights and score records; not
    facts of the machine and its clock, nor what a session leaves for the next one."""

    def is_compared(file: Path) -> bool:
        if {"logs", "measured", "finished"} & {*file.parts} or file.name in ("lock", "log.txt", "timing.json"):
            return False
        return file.suffix != ".log" and ("state" not in file.parts or "weights" in file.parts)

    files = {path.relative_to(results): path for path in sorted(results.rglob("*")) if path.is_file()}
    return {
        str(name): hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items() if is_compared(name)
    }


def without_measured(files: dict[str, str]) -> dict[str, str]:
    """Without tables, figures and the page that show how long jobs took."""
    return {name: digest for name, digest in files.items() if Path(name).stem not in MEASURED}


def measurements(results: Path) -> dict[str, bytes]:
    """What jobs have taken, by file; that of a job that ran again is another."""
    files = [*results.glob("runs/*/*/*/timing.json"), *results.glob("measured/*/speeds.json")]
    return {str(path.relative_to(results)): path.read_bytes() for path in files}


def difference(wanted: dict[str, str], found: dict[str, str]) -> str:
    """In which files two runs differ, in words; nothing where they are equal."""
    names = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    words = [
        f"{name} ({'absent' if name not in found else 'surplus' if name not in wanted else 'other bytes'})"
        for name in names[:4]
    ]
    return f"{len(names)} files differ: {', '.join(words)}" if names else ""


@dataclass(frozen=True)
class Reference:
    """The chain, run stage by stage and not disturbed: what each stage leaves, does and takes."""

    folder: Path

    def before(self, stage: str) -> Path:
        """What the stage begins with."""
        stages = list(TARGETS)
        return self.folder / (stages[stages.index(stage) - 1] if stage != stages[0] else "nothing")

    def after(self, stage: str) -> Path:
        """What the stage leaves."""
        return self.folder / stage

    def calls(self, stage: str) -> list[Call]:
        """What the processes of the stage did."""
        return Notes(self.folder / f"{stage}-notes").trace()

    def seconds(self, stage: str) -> float:
        """How long the stage took."""
        return float((self.folder / f"{stage}.seconds").read_text())


def run_reference(folder: Folder, destination: Path) -> Reference:
    """Run the chain stage by stage; an existing one in `destination` is taken as it is."""
    reference = Reference(destination)
    if (destination / "report.seconds").is_file():
        return reference
    shutil.rmtree(destination, ignore_errors=True)
    folder.restore(destination / "nothing")
    for stage, words in TARGETS.items():
        notes = Notes(destination / f"{stage}-notes")
        notes.plan([])
        start = folder.start(notes, words)
        assert folder.watch(start) == 0, start.text()[-5000:]
        seconds = time.monotonic() - start.begun
        folder.save(reference.after(stage))
        (destination / f"{stage}.seconds").write_text(str(seconds))
    return reference
