"""A copy of the project as a fresh clone has it, and Snakemake run in it as a user does."""

import gc
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

TRACKED = ("Snakefile", "pyproject.toml", "config.yaml", "profiles", "workflow", "envs", "src")
HANG = 900  # seconds after which a run hangs, however slow the machine
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "HF_HUB_OFFLINE": "1"}  # not what is installed
LOADED = [  # what every start imports, but for our package: a copy has its own
    *("snakemake.cli", "snakemake.report.html_reporter", "smart_open", "pyarrow.parquet", "rich.live"),
    *("msgspec", "packaging.requirements"),
]

TINY = """\
# The whole chain in seconds: fewer steps and examples than the demo.
corpus: {pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}}
pretrain:
  {steps: 20, schedule_steps: null, batch_size: 8, learning_rate: 1.0e-3, warmup_steps: 5, evaluate_every: 5,
   save_every: 5}
glue: {max_examples: 32, max_evaluation_examples: 32, max_length: 32, epochs: 1, robustness: {noise: [0.2]}}
sweep:
  attention: [original, pairwise]
  pretrain_seeds: [1]
  finetuned_pretrain_seeds: null
  finetune_seeds: [1, 2]
  untrained: false
  suites: [glue]
  tasks: [mrpc, cola, mnli, qqp, rte, stsb, qnli, sst2]
  curve: {steps: {tiny: [10, 20]}}
"""


@dataclass(frozen=True)
class Outcome:
    """How a run of Snakemake ended."""

    code: int
    output: str  # as a user sees it
    log: str = ""  # Snakemake's own, of a run that is no dry one

    @property
    def jobs(self) -> dict[str, int]:
        """Jobs by rule, from the table that Snakemake makes before it starts; {} when there is nothing to do."""
        table = (self.output + self.log).partition("Job stats:")[2].partition("\n\n")[0]
        return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.M) if name != "total"}


@dataclass(frozen=True)
class Checkout:
    """A working copy of the project."""

    directory: Path

    @property
    def environment(self) -> dict[str, str]:
        """Snakemake and its plugins find the package of this copy, not the installed one."""
        path = f"{self.directory / 'src'}{os.pathsep}{ENVIRONMENT['PYTHONPATH']}"
        return {**os.environ, **ENVIRONMENT, "PYTHONPATH": path}

    def snakemake(self, *arguments: str) -> Outcome:
        """One command."""
        return self.commands(arguments)[0]

    def commands(self, *commands: Sequence[str]) -> list[Outcome]:
        """Commands one after the other, in one fork of a process that has loaded Snakemake: dry runs of other settings,
        or runs between which no module and no profile changes."""
        loaded = multiprocessing.get_context("forkserver")
        loaded.set_forkserver_preload(LOADED)
        outcomes, answers = loaded.Pipe(duplex=False)
        process = loaded.Process(target=_run_here, args=(self.directory, commands, self.environment, answers))
        process.start()
        answers.close()
        try:
            if not outcomes.poll(HANG):
                os.killpg(process.pid, signal.SIGKILL)
                raise TimeoutError(f"Snakemake hangs: {commands}")
            return outcomes.recv()
        finally:
            process.join()

    def tiny(self, *arguments: str) -> Outcome:
        """Snakemake with the tiny settings."""
        return self.tinies(arguments)[0]

    def tinies(self, *commands: Sequence[str]) -> list[Outcome]:
        """As `commands`, with the tiny settings."""
        return self.commands(*([*words, *self.tiny_settings()] for words in commands))

    def tiny_settings(self) -> list[str]:
        """The options of the tiny settings, whose file is written here."""
        (self.directory / "tiny.yaml").write_text(TINY)
        return ["--configfile", "tiny.yaml"]

    @contextmanager
    def running(self, *arguments: str) -> Iterator[tuple[subprocess.Popen, Path]]:
        """The command of a user as it runs, leading a process group, and the file of its output; killed at the end."""
        with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "output", "w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
                cwd=self.directory,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
                preexec_fn=heed_signals,
            )
            try:
                yield process, Path(output.name)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def copy(self, directory: Path) -> "Checkout":
        """A copy with all results, and with their times; `cp` takes half of the time that `shutil` takes."""
        subprocess.run(["cp", "-a", self.directory, directory], check=True)
        return Checkout(directory)


def heed_signals() -> None:
    """As a command in a terminal does, also where the tests run under `nohup` or in the background of a shell, which
    have their commands ignore hangups and Ctrl-C."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def _run_here(directory: Path, commands: list[Sequence[str]], environment: dict[str, str], answers: Connection) -> None:
    """Snakemake in this process, once per command; answers with all outcomes."""
    from snakemake.cli import main

    gc.freeze()  # all that was loaded stays
    os.setsid()
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = environment["PYTHONPATH"].split(os.pathsep)
    outcomes = []
    for words in commands:
        before, code = set(Path(".snakemake/log").glob("*.log")), 0
        with tempfile.NamedTemporaryFile("w+", buffering=1) as output:
            sys.stdout = sys.stderr = output
            for stream in (1, 2):  # those of the jobs
                os.dup2(output.fileno(), stream)
            sys.argv[1:] = ["--cores", "2", *words]
            try:
                main()
            except SystemExit as end:
                code = end.code
            logs = set(Path(".snakemake/log").glob("*.log")) - before
            outcomes.append(Outcome(code or 0, Path(output.name).read_text(), "".join(log.read_text() for log in logs)))
    answers.send(outcomes)
    os._exit(0)  # its streams are closed


def check_out(origin: Path, directory: Path) -> Checkout:
    """Copy what the workflow needs to `directory`."""
    directory.mkdir(parents=True)
    for name in TRACKED:
        if (origin / name).is_dir():
            shutil.copytree(origin / name, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(origin / name, directory / name)
    return Checkout(directory)


def wait_for(happened: Callable[[], bool], process: subprocess.Popen) -> None:
    """Wait until something happened while a process runs; AssertionError when it ends or takes too long before."""
    end = time.monotonic() + HANG
    while not happened():
        assert process.poll() is None, "it ended before"
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)
