"""What a pre-training run measured of its own speed, from its timing.json."""

from dataclasses import dataclass
from pathlib import Path

from symbert.errors import DataError
from symbert.files import read_json
from symbert.report.runs import Run
from symbert.report.statistics import spread

MEASURED = (int, float, type(None))
TIMING = {"size": str, "attention": str, "pretrain_seed": int, "device": str, "processor": str, "precision": str}
TIMING |= {"threads": int, "processes": int, "micro_batch_size": int, "step_seconds": MEASURED}
TIMING |= {"tokens_per_second": MEASURED, "mfu": MEASURED, "peak_flops": MEASURED}


@dataclass(frozen=True)
class Timing:
    """Speed of one run, and what it ran on; a speed is None where no step was timed."""

    size: str
    attention: str
    pretrain_seed: int
    device: str
    processor: str  # name, and the instructions that are used
    precision: str
    threads: int
    processes: int
    micro_batch_size: int | None  # None where a process computes its whole share of a batch at once
    step_seconds: float | None  # median
    tokens_per_second: float | None
    mfu: float | None  # share of `peak_flops` that the model's FLOPs take
    peak_flops: float | None  # per second, measured on the device

    @property
    def machine(self) -> str:
        """All that two timings must share to be compared, in words."""
        device = f"cpu ({self.processor})" if self.device == "cpu" else self.device
        parts = [device, self.precision, f"{self.threads} thread{'s' if self.threads > 1 else ''}"]
        if self.processes > 1:
            parts.append(f"{self.processes} processes")
        if self.micro_batch_size is not None:
            parts.append(f"micro-batches of {self.micro_batch_size:,}")
        return ", ".join(parts)


def read_timings(files: list[Path], runs: list[Run], batch_size: int) -> list[Timing]:
    """The timing of each run, in the order of `runs`; DataError names the file or the run that has no partner.

    `batch_size` is in sequences per step, over all processes.
    """
    found = [_timing(file, batch_size) for file in files]
    timings = {(timing.size, timing.attention, timing.pretrain_seed): timing for timing in found}
    keys = [(run.size, run.attention, run.pretrain_seed) for run in runs]
    for size, attention, seed in sorted(timings.keys() ^ keys):
        raise DataError(
            f"timing: {size}-{attention} seed {seed} has not all of done, metrics and timing; "
            "give the three files of each run"
        )
    return [timings[key] for key in keys]


def of_original(own: list[Timing], original: list[Timing]) -> float | None:
    """Mean step time in percent of that of `original` with the same seed on the same machine; None without a pair."""
    references = {(timing.pretrain_seed, timing.machine): timing.step_seconds for timing in original}
    pairs = [(timing.step_seconds, references.get((timing.pretrain_seed, timing.machine))) for timing in own]
    shares = [100 * step / reference for step, reference in pairs if step is not None and reference is not None]
    return spread(shares).mean if shares else None


def _timing(file: Path, batch_size: int) -> Timing:
    record = read_json(file, TIMING, "run pretrain again")
    share = batch_size // record["processes"]  # of the first process, which writes the file
    in_parts = record["micro_batch_size"] if record["micro_batch_size"] < share else None
    return Timing(**{key: record[key] for key in TIMING} | {"micro_batch_size": in_parts})
