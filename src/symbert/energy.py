"""The energy that a machine's processors or a GPU took while something ran, where counters can be read.

A counter is of the whole machine or of the whole GPU: what else ran there is in it. RAPL counts microjoules of each
processor package, below /sys/class/powercap (docs.kernel.org/power/powercap), and begins again at its largest value.
NVML counts millijoules of a GPU since its driver was loaded.
"""

import math
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RAPL = Path("/sys/class/powercap")
NOT_MEASURED = "not measured"
PROCESSORS = "the machine's processors while it ran (RAPL)"
GPUS = "the GPUs that it ran on (NVML)"
SECONDS_BETWEEN_READINGS = 60  # RAPL's 32 bits of 61 microjoules are full after 17 minutes at 250 W
Counter = Callable[[], float]  # joules since some beginning


class EnergyMeter:
    """Joules since it was made, of one GPU or of this machine's processors; NaN where they are not measured."""

    def __init__(
        self, gpu: str | None = None, powercap: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`gpu` is the UUID of a GPU, as NVML has it; None: the processors."""
        self.source = GPUS if gpu else PROCESSORS
        self.clock, self.joules = clock, 0.0
        try:
            self.counter = nvml_counter(gpu) if gpu else rapl_counter(powercap or RAPL)
            self.start = self.counter()
        except Exception:  # no permission, no such counter, no library: whatever it is, it ends no training
            self.joules = math.nan
        self.read_at = clock()

    def read(self, now: bool = True) -> float:
        """The joules; those of the last reading, unless it is `now` that counts or a minute has passed."""
        if not math.isnan(self.joules) and (now or self.clock() >= self.read_at + SECONDS_BETWEEN_READINGS):
            self.read_at = self.clock()
            try:
                self.joules = self.counter() - self.start
            except Exception:  # as above
                self.joules = math.nan
        return self.joules

    def summary(self, joules: float) -> dict[str, Any]:
        """What a session's record says of that many joules; nulls where they are not measured."""
        is_measured = math.isfinite(joules)
        return {
            "energy_joules": joules if is_measured else None,
            "energy_source": self.source if is_measured else None,
        }


def rapl_counter(powercap: Path) -> Counter:
    """Joules of all processor packages; OSError where they cannot be read."""
    packages = [zone for zone in sorted(powercap.glob("intel-rapl:*")) if _is_package(zone)]
    if not packages:
        raise FileNotFoundError(f"{powercap}: no counter of a processor package")
    before = {zone: _number(zone / "energy_uj") for zone in packages}
    ranges = {zone: _number(zone / "max_energy_range_uj") for zone in packages}
    total = 0

    def joules() -> float:
        nonlocal total
        for zone, last in before.items():
            before[zone] = now = _number(zone / "energy_uj")
            total += now - last if now >= last else now - last + ranges[zone]
        return total / 1e6

    return joules


def nvml_counter(gpu_uuid: str) -> Counter:
    """Joules of a GPU; an exception of NVML, or ImportError without nvidia-ml-py, where they cannot be read."""
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(gpu_uuid)
    return lambda: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle) / 1e3


def in_words(records: Iterable[dict[str, Any]]) -> str:
    """The energy in the records of sessions, added up by source, and how many have none."""
    joules: dict[str, list[float]] = {}
    missing = 0
    for record in records:
        if record.get("energy_joules") is None:
            missing += 1
        else:
            joules.setdefault(record["energy_source"], []).append(record["energy_joules"])
    said = [f"{sum(each) / 3.6e6:,.4f} kWh of {source}, sessions: {len(each)}" for source, each in joules.items()]
    if not said:
        return NOT_MEASURED
    return "; ".join([*said, *([f"{NOT_MEASURED}, sessions: {missing}"] if missing else [])])


def _is_package(zone: Path) -> bool:
    """A zone of a package, which its domains (core, dram) and the platform's zone are not added to."""
    return (zone / "name").read_text().startswith("package")


def _number(file: Path) -> int:
    return int(file.read_text())
