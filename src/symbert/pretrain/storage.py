"""What a run writes into its state directory: how much, planned beforehand, and the weights kept. Imports no torch."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from symbert.errors import InputOutputError, IntegrityError, MissingInputError
from symbert.files import free_space, read_json, sha256_of
from symbert.progress import data_size
from symbert.settings import PretrainSettings

KEEP = 3  # checkpoints to resume from
FLOAT32 = 4  # bytes
RESUME_COPIES = 3  # weights and AdamW's two moments


@dataclass(frozen=True)
class Storage:
    """What a run writes at most, in bytes."""

    weights: int  # of one kept step
    kept: int  # steps

    @property
    def weights_bytes(self) -> int:
        """All kept weights."""
        return self.kept * self.weights

    @property
    def resume_bytes(self) -> int:
        """All checkpoints to resume from, while one more than KEEP is being written."""
        return (KEEP + 1) * RESUME_COPIES * self.weights

    def __str__(self) -> str:
        return (
            f"kept weights {self.kept} × {data_size(self.weights)} = "
            f"{data_size(self.weights_bytes)}, resume checkpoints at most {KEEP + 1} × "
            f"{data_size(RESUME_COPIES * self.weights)} = {data_size(self.resume_bytes)}"
        )


def storage_of(parameters: int, settings: PretrainSettings) -> Storage:
    """What a run of a model with so many parameters writes: all in float32, whatever the precision of training."""
    kept = settings.steps // settings.save_every + (settings.steps % settings.save_every > 0)
    return Storage(FLOAT32 * parameters, kept)


def plan(storage: Storage, state: Path) -> str:
    """One sentence: the bytes that a run writes, and those that are free on its disk."""
    free, mount = free_space(state)
    return f"{storage}; {data_size(free)} free on {mount}"


def refuse_full(storage: Storage, state: Path) -> None:
    """InputOutputError when the run still has to write more bytes than its disk has free."""
    needed = _missing(storage, state)
    free, mount = free_space(state)
    if needed > free:
        raise InputOutputError(
            f"{state}: needs {data_size(needed)}, {data_size(free)} free on {mount}; free space there "
            "and run again, or set 'storage.checkpoints'"
        )


def _missing(storage: Storage, state: Path) -> int:
    """Bytes still to write: existing weights are not written twice, and a new checkpoint replaces an old one."""
    kept = _size(state.glob("weights/step-*.safetensors"))
    resumable = _size(state.glob("resume/step-*/*"))
    return max(storage.weights_bytes - kept, 0) + max(storage.resume_bytes - resumable, 0)


def _size(files: Iterable[Path]) -> int:
    return sum(file.stat().st_size for file in files)


def kept_weights(state: Path, step: int) -> Path:
    """The verified weights file of a step; MissingInputError names the nearest kept steps."""
    path = state / "weights" / f"{name_of_step(step)}.safetensors"
    if not path.is_file():
        kept = sorted(int(file.stem.removeprefix("step-")) for file in (state / "weights").glob("*.safetensors"))
        near = ", ".join(str(number) for number in sorted(kept, key=lambda number: abs(number - step))[:3]) or "none"
        raise MissingInputError(f"{path}: step {step} was not kept; the nearest kept steps: {near}")
    verify(path, recorded_hash(path))
    return path


def recorded_hash(path: Path) -> str:
    """The SHA-256 that was noted beside a kept weights file."""
    return read_json(path.with_suffix(".json"), {"sha256": str}, "the file is damaged")["sha256"]


def name_of_step(step: int) -> str:
    """The name of a checkpoint or of kept weights, which sorts by step."""
    return f"step-{step:08d}"


def verify(path: Path, expected: str) -> None:
    """MissingInputError or IntegrityError, unless a file of a checkpoint is there with the expected SHA-256."""
    if not path.is_file():
        raise MissingInputError(f"{path}: file of a checkpoint is missing")
    computed = sha256_of(path)
    if computed != expected:
        raise IntegrityError(f"{path}: sha256 {computed[:12]}…, expected {expected[:12]}…: the file is damaged")
