"""The tiny chain by stages: a folder to run it in, what each stage leaves, and what may differ between two runs."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from campaigns.chaos.faults import Undisturbed
from campaigns.chaos.preload import Notes
from workflow.checkout import ENVIRONMENT, heed_signals

TARGETS = {
    "corpus": ["--until", "pack"],
    "pretrain": ["--until", "pretrain"],
    "glue": ["--until", "score"],
    "report": [],
}
RESULTS = "results"
MEASURED = {"report", "claims", "table2_training", "provenance", "runs"}  # the page, and tables of speeds or machines
KEPT = ("results", ".snakemake")  # what a run leaves in its folder
HANG = 900  # seconds after which a start hangs, however busy the machine
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
  probes: []
  curve: {steps: {tiny: [10, 20]}}
"""


@dataclass
class Start:
    """A Snakemake that was started, and what it runs, in a process group of its own."""

    process: subprocess.Popen
    output: Path
    pids: dict[str, int] = field(default_factory=dict)  # of the newest process of each name

    def members(self) -> list[int]:
        """The processes of the group that have not ended."""
        found = []
        for folder in Path("/proc").iterdir():
            if folder.name.isdigit():
                with suppress(OSError):
                    words = (folder / "stat").read_text().rpartition(")")[2].split()
                    if int(words[2]) == self.process.pid and words[0] not in "ZX":
                        found.append(int(folder.name))
        return found

    def wait_for_all(self, seconds: float) -> bool:
        """Wait until all processes have ended; after so many seconds they are killed, and the answer is no."""
        end = time.monotonic() + seconds
        while self.members():
            if time.monotonic() > end:
                self.kill_all()
                return False
            time.sleep(0.05)
        return True

    def kill_all(self) -> None:
        """Kill what is left of the group."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def cpu_seconds(pid: int) -> float | None:
    """The CPU time of a process; None when it has ended."""
    with suppress(OSError, IndexError):
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if words[0] in "ZX" else (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return None


@dataclass(frozen=True)
class Folder:
    """Where the chain runs, with the code of a project."""

    root: Path
    project: Path

    @property
    def results(self) -> Path:
        """The results of the chain."""
        return self.root / RESULTS

    def start(self, notes: Notes, words: list[str], clock: tuple[float, float] | None = None) -> Start:
        """Start Snakemake as a user does."""
        (self.root / "chain.yaml").write_text(CHAIN, encoding="utf-8")
        output = notes.folder / f"output-{time.monotonic_ns()}"
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(self.project / "Snakefile"), "--cores", "2"]
        with open(output, "wb") as file:
            process = subprocess.Popen(
                [*command, *words, "--configfile", "chain.yaml"],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, **ENVIRONMENT, "SOURCE_DATE_EPOCH": "0", **notes.environment(self.root, clock)},
                start_new_session=True,
                preexec_fn=heed_signals,
            )
        return Start(process, output)

    def watch(self, start: Start, notes: Notes, look: Callable[[Start], bool] = lambda start: False) -> int | None:
        """Wait for the end of Snakemake and give its exit code; `look` is asked all the time, and ends the wait with
        True. None where it did so. TimeoutError when Snakemake hangs."""
        end, place = time.monotonic() + HANG, notes.length()
        try:
            while start.process.poll() is None:
                calls, place = notes.trace(place)
                start.pids |= {call.process: int(call.file) for call in calls if call.name == "start"}
                if look(start):
                    return None
                if time.monotonic() > end:
                    raise TimeoutError(start.output.read_text(encoding="utf-8", errors="replace"))
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


def is_compared(file: Path) -> bool:
    """Whether a file of the results is one by which two runs are compared: a final artefact, kept weights, or a score
    record; not what tells of the machine and its clock, nor what a session leaves for the next one."""
    if {"logs", "measured"} & {*file.parts} or file.name in ("lock", "log.txt", "timing.json"):
        return False
    if file.name.endswith(".log"):
        return False
    return "state" not in file.parts or "weights" in file.parts


def artefacts(results: Path) -> dict[str, str]:
    """The SHA-256 of each file by which two runs are compared."""
    files = [path for path in results.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(results)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(files)
        if is_compared(path.relative_to(results))
    }


def is_measured(name: str) -> bool:
    """Whether an artefact shows how long jobs took: a table or figure of such facts, or the page with all of them."""
    return Path(name).stem in MEASURED


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
        number = stages.index(stage)
        return self.folder / stages[number - 1] if number else self.folder / "nothing"

    def after(self, stage: str) -> Path:
        """What the stage leaves."""
        return self.folder / stage

    def artefacts(self, stage: str) -> dict[str, str]:
        """Those after the stage."""
        return json.loads((self.folder / f"{stage}.json").read_text())["artefacts"]

    def undisturbed(self, stage: str) -> Undisturbed:
        """What the processes of the stage did."""
        calls, _ = Notes(self.folder / f"{stage}-notes", Path()).trace()
        return Undisturbed(tuple(calls), json.loads((self.folder / f"{stage}.json").read_text())["seconds"])


def run_reference(folder: Folder, library: Path, destination: Path) -> Reference:
    """Run the chain stage by stage; an existing one in `destination` is taken as it is."""
    reference = Reference(destination)
    if (destination / "report.json").is_file():
        return reference
    shutil.rmtree(destination, ignore_errors=True)
    folder.restore(destination / "nothing")
    for stage, words in TARGETS.items():
        notes = Notes(destination / f"{stage}-notes", library)
        notes.folder.mkdir(parents=True)
        seconds: dict[str, float] = {}

        def note_time(start: Start, seconds: dict[str, float] = seconds) -> bool:
            taken = {name: cpu_seconds(pid) for name, pid in start.pids.items()}
            seconds.update({name: value for name, value in taken.items() if value is not None})
            return False

        start = folder.start(notes, words)
        code = folder.watch(start, notes, note_time)
        assert code == 0, start.output.read_text(encoding="utf-8")[-5000:]
        folder.save(reference.after(stage))
        facts = {"seconds": seconds, "artefacts": artefacts(folder.results)}
        (destination / f"{stage}.json").write_text(json.dumps(facts), encoding="utf-8")
    return reference
