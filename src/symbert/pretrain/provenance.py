"""provenance.json: on what each session of a run was computed. It decides nothing, and is no input of any rule."""

import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers

import symbert
from symbert.files import read_json, write_json

# Every fact is on exactly one of these lists.
SOFT = ("device", "processor", "threads", "processes", "micro_batch_size", "versions")  # may change the last bits
SCIENTIFIC = ("precision", "recipe")  # part of the run's identity: another one is another run
INCIDENTAL = ("host", "commit")  # of the code, the operator's is part of the run's identity


def facts_of_machine(device: torch.device) -> dict[str, Any]:
    """The facts that this process can find out by itself."""
    modules = (symbert, torch, transformers, numpy)
    return {
        "host": platform.node(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "processor": f"{_processor()}, {torch.backends.cpu.get_cpu_capability()}",
        "versions": {module.__name__: module.__version__ for module in modules},
    }


def read_sessions(path: Path) -> list[dict[str, Any]]:
    """The sessions so far, the first one first."""
    return read_json(path, {"sessions": [dict]})["sessions"]


def open_session(path: Path, facts: dict[str, Any]) -> None:
    """Add a session; one line on stderr for each soft fact that is another than in the session before."""
    unknown = facts.keys() - {*SOFT, *SCIENTIFIC, *INCIDENTAL}
    if unknown:
        raise ValueError(f"facts on no list: {', '.join(sorted(unknown))}")
    sessions = read_sessions(path) if path.is_file() else []
    for change in _changes(sessions[-1], facts) if sessions else []:
        print(
            f"warning: {path}: {change} since the session before; the bits of the result may differ from those of an "
            "uninterrupted run",
            file=sys.stderr,
        )
    write_json(path, {"sessions": [*sessions, {**facts, "started": _now()}]})


def close_session(path: Path, **measured: Any) -> None:
    """Add what was measured so far to the newest session, and the time; may be called again and again."""
    *before, newest = read_sessions(path)
    write_json(path, {"sessions": [*before, {**newest, **measured, "until": _now()}]})


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """The soft facts that differ, each as `key: old → new`."""
    old, new = _flat(before), _flat(now)
    keys = sorted(old.keys() | new.keys())
    pairs = [(key, old.get(key, "absent"), new.get(key, "absent")) for key in keys]
    return [f"{key}: {was} → {is_now}" for key, was, is_now in pairs if was != is_now]


def _flat(facts: dict[str, Any]) -> dict[str, Any]:
    """The soft facts, each version by itself."""
    soft = {key: facts[key] for key in SOFT if key in facts}
    versions = soft.pop("versions", {})
    return soft | {f"versions.{package}": version for package, version in versions.items()}


def _processor() -> str:
    """The processor's name: what Linux says, or else what Python knows."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
