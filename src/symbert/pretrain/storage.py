"""What a run writes into its state directory: how much, planned beforehand, and the weights kept. Imports no torch."""

from dataclasses import dataclass
from pathlib import Path

from symbert.configuration import PretrainSettings
from symbert.console import data_size
from symbert.errors import InputOutputError, MissingInputError
from symbert.files import extracted_again, free_space, read_json, sha256_of, verify_sha256
from symbert.hosts import HOSTS
from symbert.operators import operator_named
from symbert.paths import Run
from symbert.sizes import SIZES

DAMAGED = "the file is damaged"
DIVERGED = "the last checkpoint is kept: lower 'pretrain.learning_rate' or raise 'pretrain.warmup_steps'"
CHECKSUM = "model.sha256"  # beside extracted weights; no output of a rule
KEEP = 3  # checkpoints to resume from
FLOAT32 = 4  # bytes
MOMENTS = 2  # numbers that AdamW keeps of each weight; of an optimizer of the user's own as many are assumed


@dataclass(frozen=True)
class StorageNeed:
    """What a run writes at most, in bytes."""

    weights: int  # of one kept step
    kept: int  # steps

    @property
    def weights_bytes(self) -> int:
        """All kept weights."""
        return self.kept * self.weights

    @property
    def checkpoint_bytes(self) -> int:
        """A checkpoint to resume from: weights, and what the optimizer keeps."""
        return (1 + MOMENTS) * self.weights

    @property
    def resume_bytes(self) -> int:
        """All checkpoints to resume from, while one more than KEEP is being written."""
        return (KEEP + 1) * self.checkpoint_bytes


def storage_of(parameters: int, settings: PretrainSettings) -> StorageNeed:
    """What a run of a model with so many parameters writes: all in float32, whatever the precision of training."""
    kept = settings.steps // settings.save_every + (settings.steps % settings.save_every > 0)
    return StorageNeed(FLOAT32 * parameters, kept)


def parameters_of(run: Run, vocabulary_size: int) -> int:
    """Parameters of a run's model by formula; as with `original` where its operator states no formula."""
    shape = SIZES[run.size]
    counts = [
        operator_named(name).count(shape.hidden_size, shape.num_attention_heads) for name in (run.attention, "original")
    ]
    saved = 0 if counts[0] is None else counts[1] - counts[0]
    host = HOSTS[run.host]
    return host.parameters(shape, vocabulary_size) - host.sites * shape.num_hidden_layers * saved


def refuse_full(storage: StorageNeed, state: Path) -> None:
    """InputOutputError when the run still has to write more bytes than its disk has free.

    Existing weights are not written twice, and a new checkpoint replaces an old one.
    """
    kept, resumable = (
        sum(file.stat().st_size for file in state.glob(files))
        for files in ("weights/step-*.safetensors", "resume/step-*/*")
    )
    needed = max(storage.weights_bytes - kept, 0) + max(storage.resume_bytes - resumable, 0)
    free, mount = free_space(state)
    if needed > free:
        raise InputOutputError(
            f"{state}: needs {data_size(needed)}, {data_size(free)} free on {mount}; free space there and run again"
        )


def kept_weights(state: Path, step: int) -> Path:
    """The verified weights file of a step; MissingInputError names the nearest kept steps."""
    path = state / "weights" / f"{name_of_step(step)}.safetensors"
    if not path.is_file():
        kept = sorted(int(file.stem.removeprefix("step-")) for file in (state / "weights").glob("*.safetensors"))
        near = ", ".join(str(number) for number in sorted(kept, key=lambda number: abs(number - step))[:3]) or "none"
        raise MissingInputError(f"{path}: step {step} was not kept; the nearest kept steps: {near}")
    verify_sha256(path, recorded_hash(path), DAMAGED)
    return path


def extracted_sha256(checkpoint: Path) -> str:
    """The SHA-256 of a checkpoint's weights; IntegrityError when they were damaged since they were extracted here."""
    weights, noted = checkpoint / "model.safetensors", checkpoint / CHECKSUM
    if noted.is_file():
        verify_sha256(weights, noted.read_text().strip(), extracted_again(weights))
    return sha256_of(weights)


def recorded_hash(path: Path) -> str:
    """The SHA-256 that was noted beside a kept weights file."""
    return read_json(path.with_suffix(".json"), {"sha256": str}, DAMAGED)["sha256"]


def name_of_step(step: int) -> str:
    """The name of a checkpoint or of kept weights, which sorts by step."""
    return f"step-{step:08d}"
