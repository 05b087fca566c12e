"""The energy that a machine's processors or a GPU took while something ran, where counters can be read.

A counter is of the whole machine or of the whole GPU: what else ran there is in it. RAPL counts microjoules of each
processor package, below /sys/class/powercap (docs.kernel.org/power/powercap), and begins again at its largest value.
NVML counts millijoules of a GPU since its driver was loaded.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

RAPL = Path("/sys/class/powercap")
NOT_MEASURED = "not measured"
Counter = Callable[[], float]  # joules since some beginning


class EnergyMeter:
    """Joules since it was made; None where no counter can be read, or where one fails meanwhile."""

    def __init__(self, gpu_uuid: str | None = None, powercap: Path = RAPL) -> None:
        """Of the GPU with this UUID, or of this machine's processors."""
        self.source = "the GPU it ran on (NVML)" if gpu_uuid else "the machine's processors while it ran (RAPL)"
        try:
            self.counter = nvml_counter(gpu_uuid) if gpu_uuid else rapl_counter(powercap)
            self.start = self.counter()
        except Exception:  # no permission, no such counter, no library: whatever it is, it ends no training
            self.counter = None

    def summary(self) -> dict[str, Any]:
        """`energy_joules` and `energy_source`; both null where energy is not measured."""
        try:
            joules = self.counter() - self.start if self.counter else None
        except Exception:
            self.counter = joules = None
        return {"energy_joules": joules, "energy_source": self.source if joules is not None else None}


def rapl_counter(powercap: Path = RAPL) -> Counter:
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
    said = [f"{sum(each) / 3.6e6:,.4f} kWh of {source} ({len(each)} sessions)" for source, each in joules.items()]
    if not said:
        return NOT_MEASURED
    return "; ".join([*said, *([f"{missing} sessions: {NOT_MEASURED}"] if missing else [])])


def _is_package(zone: Path) -> bool:
    """A zone of a package, which its domains (core, dram) and the platform's zone are not added to."""
    return (zone / "name").read_text().startswith("package")


def _number(file: Path) -> int:
    return int(file.read_text())
