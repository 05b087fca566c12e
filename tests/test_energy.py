"""Counters of energy: a fake /sys/class/powercap and a fake NVML. No machine of the tests has to have them."""

import math
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from symbert.energy import GPUS, NOT_MEASURED, PROCESSORS, EnergyMeter, in_words

RANGE = 262_143_328_850  # of a real processor, microjoules


@pytest.fixture
def powercap(tmp_path):
    """Two packages, each with a domain of its own that is part of it, and the zone of the whole platform."""
    names = {"intel-rapl:0": "package-0", "intel-rapl:0:0": "core", "intel-rapl:1": "package-1", "intel-rapl:2": "psys"}
    for zone, name in names.items():
        (tmp_path / zone).mkdir()
        (tmp_path / zone / "name").write_text(f"{name}\n")
        (tmp_path / zone / "max_energy_range_uj").write_text(f"{RANGE}\n")
    count(tmp_path, dict.fromkeys(names, 1_000_000))
    return tmp_path


def count(powercap: Path, microjoules: dict[str, int]) -> None:
    for zone, value in microjoules.items():
        (powercap / zone / "energy_uj").write_text(f"{value}\n")


@pytest.fixture
def nvml(monkeypatch):
    """A library of two GPUs whose counters, in millijoules, the test moves."""
    millijoules = {"GPU-a": 5_000_000, "GPU-b": 9_000_000}
    library = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetHandleByUUID=lambda uuid: {"GPU-a": "GPU-a", "GPU-b": "GPU-b"}[uuid],
        nvmlDeviceGetTotalEnergyConsumption=millijoules.__getitem__,
    )
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return millijoules


def test_packages_are_added_up_and_their_domains_are_not_added_again(powercap):
    meter = EnergyMeter(powercap=powercap)
    count(powercap, {"intel-rapl:0": 3_500_000, "intel-rapl:0:0": 2_900_000, "intel-rapl:1": 2_000_000})
    count(powercap, {"intel-rapl:2": 9_000_000})
    assert meter.read() == pytest.approx(2.5 + 1.0)
    assert meter.summary(meter.joules) == {"energy_joules": pytest.approx(3.5), "energy_source": PROCESSORS}


def test_a_counter_that_begins_again_goes_on_from_its_range(powercap):
    count(powercap, {"intel-rapl:0": RANGE - 4_000_000})
    meter = EnergyMeter(powercap=powercap)
    count(powercap, {"intel-rapl:0": 6_000_000})
    assert meter.read() == pytest.approx(10.0)
    count(powercap, {"intel-rapl:0": 1_000_000})
    assert meter.read() == pytest.approx(10.0 + (RANGE - 5_000_000) / 1e6)


def test_a_counter_is_read_each_minute_so_that_it_cannot_begin_again_twice(powercap):
    seconds = iter([0.0, 59.0, 61.0, 61.0, 100.0])
    meter = EnergyMeter(powercap=powercap, clock=lambda: next(seconds))
    count(powercap, {"intel-rapl:1": 8_000_000})
    assert meter.read(now=False) == 0.0
    assert meter.read(now=False) == pytest.approx(7.0)
    count(powercap, {"intel-rapl:1": 9_000_000})
    assert meter.read(now=False) == pytest.approx(7.0)


@pytest.mark.parametrize("damage", ["absent", "not permitted", "no package"])
def test_what_cannot_be_read_is_not_measured(powercap, damage, monkeypatch):
    if damage == "absent":
        powercap = powercap / "nowhere"
    elif damage == "no package":
        for zone in powercap.iterdir():
            (zone / "name").write_text("psys\n")
    else:

        def refuse(*_arguments, **_keywords):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(Path, "read_text", refuse)
    meter = EnergyMeter(powercap=powercap)
    assert math.isnan(meter.read())
    assert meter.summary(meter.joules) == {"energy_joules": None, "energy_source": None}


def test_a_counter_that_fails_later_is_not_measured_instead_of_too_little(powercap):
    meter = EnergyMeter(powercap=powercap)
    (powercap / "intel-rapl:1/energy_uj").unlink()
    assert math.isnan(meter.read()) and math.isnan(meter.read())


def test_a_gpu_is_counted_by_its_uuid(nvml):
    meter = EnergyMeter("GPU-b")
    nvml["GPU-a"] += 70_000
    nvml["GPU-b"] += 2_500
    assert meter.read() == 2.5 and meter.summary(2.5)["energy_source"] == GPUS
    assert math.isnan(EnergyMeter("GPU-c").read()), "a slice of a GPU has no counter of its own"


def test_without_the_library_a_gpu_is_not_measured(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert math.isnan(EnergyMeter("GPU-a").read())


def test_words_add_up_by_source_and_count_what_is_missing():
    measured = [{"energy_joules": joules, "energy_source": GPUS} for joules in (3.6e6, 1.8e6)]
    processors = {"energy_joules": 360.0, "energy_source": PROCESSORS}
    assert in_words([*measured, processors, {}, {"energy_joules": None}]) == (
        f"1.5000 kWh of {GPUS}, sessions: 2; 0.0001 kWh of {PROCESSORS}, sessions: 1; not measured, sessions: 2"
    )
    assert in_words([{}]) == in_words([]) == NOT_MEASURED
