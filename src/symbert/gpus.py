"""The GPUs of this machine: how many there are, and which is free. Imports no torch, so that the workflow can ask."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path

from symbert.errors import SymbertError
from symbert.files import single_writer

DRIVER = Path("/proc/driver/nvidia/gpus")
# Environment variables that say which GPUs a job has, and their values for none. Slurm's first two are lists of
# numbers, the others are counts.
GIVEN = [
    ("Slurm", "SLURM_JOB_GPUS", ("",)),
    ("Slurm", "SLURM_STEP_GPUS", ("",)),
    ("Slurm", "SLURM_GPUS_ON_NODE", ("", "0")),
    ("Snakemake", "SYMBERT_GPUS", ("", "0")),  # set by our rules
]
TIMEOUT = 20  # seconds for nvidia-smi, which wakes a driver that sleeps

_claims = ExitStack()  # of this process; released when it ends, however it ends


def count_gpus(environment: Mapping[str, str] = os.environ, driver: Path = DRIVER) -> int:
    """NVIDIA GPUs that a process with this environment sees here: CUDA_VISIBLE_DEVICES chooses among those present."""
    present, chosen = _present(driver), environment.get("CUDA_VISIBLE_DEVICES")
    return present if chosen is None else count_chosen(chosen, present)


def count_chosen(chosen: str, present: int) -> int:
    """GPUs that CUDA_VISIBLE_DEVICES chooses of those present: the entries before the first that names none of them."""

    def names_one(entry: str) -> bool:
        return int(entry) < present if entry.isdecimal() else entry.startswith(("GPU-", "MIG-"))

    entries = (entry.strip() for entry in chosen.split(","))
    return len(list(takewhile(names_one, entries))) if present else 0


def who_counts_a_gpu(environment: Mapping[str, str] = os.environ, driver: Path | None = None) -> str | None:
    """Which program or variable gives this process a GPU, in words; None without one, or where CUDA_VISIBLE_DEVICES
    chooses none.

    In a job of Slurm the machine is not asked: it may show GPUs of other jobs.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        return f"CUDA_VISIBLE_DEVICES is {chosen}" if count_chosen(chosen, present=sys.maxsize) else None
    for giver, name, none in GIVEN:
        if environment.get(name, "") not in none:
            return f"{giver} gave this job GPUs ({name}={environment[name]})"
    if "SLURM_JOB_ID" in environment:
        return None
    present = _present(driver or DRIVER)
    return f"this machine shows {present} GPUs (nvidia-smi, or the driver)" if present else None


def _present(driver: Path) -> int:
    """What nvidia-smi lists; where it cannot be asked, what the kernel's driver shows."""
    try:
        asked = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=TIMEOUT, check=True)
        return sum(line.startswith("GPU ") for line in asked.stdout.splitlines())
    except (OSError, subprocess.SubprocessError):
        return len(list(driver.iterdir())) if driver.is_dir() else 0


def claim_gpu(identities: Sequence[str], number: int = 0, processes: int = 1, folder: Path | None = None) -> int:
    """The number of the GPU that this process computes on until it ends: its own GPU, else a free one.

    `identities` name the GPUs that it sees: at least one for each of the training's `processes` on this machine, of
    which this is the one with that `number`. Where another process uses its GPU, it takes one that is no process's own,
    so that no two of a training ever meet. When none is free, it shares its own, and says on stderr with whom.
    """
    folder = folder or Path(tempfile.gettempdir(), f"symbert-gpus-{os.getuid()}")
    refusals = []
    for candidate in (number, *range(processes, len(identities))):
        try:
            _claims.enter_context(single_writer(folder / identities[candidate]))
            return candidate
        except (SymbertError, OSError) as refusal:  # whatever it is, a lock ends no training
            refusals.append(refusal)
    print(f"warning: GPU {number} is shared, for none is free: {refusals[0]}", file=sys.stderr)
    return number
