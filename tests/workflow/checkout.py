"""A copy of the project as a fresh clone has it, and Snakemake run in it as a user does."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

TRACKED = ("Snakefile", "config.yaml", "profiles", "workflow", "envs", "src")

TINY = """\
# The whole chain in seconds: fewer steps and examples than the demo.
corpus: {parts: 1, pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}}
pretrain: {steps: 20, batch_size: 8, warmup_steps: 5, evaluate_every: 5, save_every: 10}
glue: {max_examples: 32, max_evaluation_examples: 32, max_length: 32, epochs: 1, robustness: {noise: [0.2]}}
sweep:
  attention: [original, pairwise]
  curve: {steps: {tiny: [10, 20]}}
"""


@dataclass(frozen=True)
class Outcome:
    """How a run of Snakemake ended."""

    code: int
    output: str

    @property
    def jobs(self) -> dict[str, int]:
        """Jobs by rule, from the table that Snakemake prints before it starts; {} when there is nothing to do."""
        table = self.output.partition("Job stats:")[2].partition("\n\n")[0]
        return {name: int(count) for name, count in re.findall(r"^(\w+) +(\d+)$", table, re.M) if name != "total"}


@dataclass(frozen=True)
class Checkout:
    """A working copy of the project."""

    directory: Path

    def snakemake(self, *arguments: str, timeout: int = 600) -> Outcome:
        """Run Snakemake here; its output is kept, with the command's error stream."""
        done = subprocess.run(
            [sys.executable, "-m", "snakemake", "--cores", "2", *arguments],
            cwd=self.directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            env={**os.environ, "PYTHONPATH": "", "HF_HUB_OFFLINE": "1"},
        )
        return Outcome(done.returncode, done.stdout)

    def tiny(self, *arguments: str, **options) -> Outcome:
        """Snakemake with the tiny settings."""
        (self.directory / "tiny.yaml").write_text(TINY)
        return self.snakemake(*arguments, "--configfile", "tiny.yaml", **options)


def check_out(origin: Path, directory: Path) -> Checkout:
    """Copy what the workflow needs to `directory`."""
    directory.mkdir(parents=True)
    for name in TRACKED:
        copy = shutil.copytree if (origin / name).is_dir() else shutil.copy
        copy(origin / name, directory / name)
    return Checkout(directory)
