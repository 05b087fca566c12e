"""The GPUs of this machine: whether there are any, and which is free. Imports no torch."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
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


def who_counts_a_gpu(environment: Mapping[str, str] = os.environ, driver: Path | None = None) -> str | None:
    """Which program or variable gives this process a GPU, in words; None without one, or where CUDA_VISIBLE_DEVICES
    chooses none.

    In a job of Slurm the machine is not asked: it may show GPUs of other jobs.
    """
    chosen = environment.get("CUDA_VISIBLE_DEVICES")
    if chosen is not None:
        first = chosen.partition(",")[0].strip()  # CUDA reads up to the first entry that names no GPU
        names_a_gpu = first.isdecimal() or first.startswith(("GPU-", "MIG-"))
        return f"CUDA_VISIBLE_DEVICES is {chosen}" if names_a_gpu else None
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
