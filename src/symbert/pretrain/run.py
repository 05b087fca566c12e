"""A run on the disk: its plan, its sessions, its status, its kept weights, and requests to stop.

Everything a run needs to resume lies in `state` within its folder, which no rule declares as an output (Snakemake
deletes outputs); the declared files are published when the last step is done. Imports no torch.
"""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from symbert.configuration import PretrainSettings, settings_from, values_of
from symbert.errors import (
    ConfigError,
    DivergedError,
    IntegrityError,
    MissingInputError,
    PreemptedError,
    SymbertError,
    explain,
)
from symbert.files import (
    copy_file,
    hash_of,
    read_json,
    read_json_or_empty,
    sha256_of,
    verify_sha256,
    write_json,
)
from symbert.operators import planned_operator
from symbert.paths import Run
from symbert.sizes import BUILT_IN, define

PLANNED = {"host": str, "size": str, "attention": str, "pretrain_seed": int, "manifest": str}  # run.json
PLANNED |= {"model": {"operator_code": str}, "training": dict}
METRICS = "metrics.jsonl"
DAMAGED = "the file is damaged"
OF_RUN = "restore it from a copy, or delete it to train the run again"  # a damaged file that a finished run published
KEEP = 3  # checkpoints to resume from
FLOAT32 = 4  # bytes
MOMENTS = 2  # numbers that AdamW keeps of each weight
# The facts of a session that may change the last bits.
SOFT = ("device", "processor", "threads", "processes", "micro_batch_size", "shard_parameters", "versions")
STATES = {PreemptedError: "preempted", DivergedError: "diverged"}  # other errors: failed
LIMIT = "SIGUSR1"  # the time limit is near: the signal of `sbatch --signal` in the profile


class StopRequest:
    """Remembers SIGTERM, SIGINT or SIGUSR1, so that a run can save at the next step boundary and exit with 75.

    SIGUSR1 says that the time limit is near. Any other signal replaces it: cancellation overrides the time limit.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._parent = os.getppid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            signal.signal(number, self._remember)

    @property
    def signal(self) -> str | None:
        """Why to stop, None to go on: the name of a signal, or that the parent process ended.

        A killed workflow or `torchrun` leaves its children alive, and nobody asks for their results.
        Whoever starts a run to outlive its parent ignores SIGHUP, as `nohup` does.
        """
        is_orphan = os.getppid() != self._parent and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
        return self._received or ("parent process ended" if is_orphan else None)

    def flags(self) -> tuple[float, float]:
        """Whether this process is asked to stop, and by the time limit."""
        return float(self.signal is not None), float(self.signal == LIMIT)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._received in (None, LIMIT):
            self._received = signal.Signals(number).name


# --- the plan ---------------------------------------------------------------------------------------------------------


def read_run(folder: Path) -> tuple[Run, PretrainSettings, Path]:
    """The run that run.json plans, its settings, and the manifest of its rows; its operator and size are known then.

    ConfigError where the code of its operator was edited since.
    """
    file = folder / "run.json"
    planned = read_json(file, PLANNED, "run snakemake again")
    run = Run(planned["size"], planned["attention"], planned["pretrain_seed"], planned["host"])
    define_model(run.size, run.attention, planned["model"], file)
    return run, settings_from(planned["training"], PretrainSettings, str(file)), Path(planned["manifest"])


def define_model(size: str, attention: str, model: dict[str, Any], origin: Path) -> None:
    """Make the operator and the size of a `Run.model` in the file `origin` known to this process.

    ConfigError where the operator's code was edited since.
    """
    planned_operator(attention, model, origin)
    if size not in BUILT_IN:
        define(size, {name: value for name, value in model.items() if name not in ("operator_code", "operator")})
    if differing := difference(model, Run(size, attention, 0).model):
        raise ConfigError(
            f"{origin}: {differing} since it was planned; run snakemake again, which computes it in another folder"
        )


def difference(existing: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The keys that differ, as `key: existing → wanted`."""
    keys = sorted(existing.keys() | wanted.keys())
    pairs = [(key, existing.get(key, "absent"), wanted.get(key, "absent")) for key in keys]
    return ", ".join(f"{key}: {old} → {new}" for key, old, new in pairs if old != new)


# --- sessions and status ----------------------------------------------------------------------------------------------


class Records:
    """provenance.json, the machine of each session; status.json, how the run stands, as `torchrun` hides exit codes.

    Neither is an input of any rule."""

    def __init__(self, state: Path, leads: bool) -> None:
        self.state, self.leads = state, leads
        self.provenance, self.status = state / "provenance.json", state / "status.json"
        self.step = 0  # completed ones
        self.sessions: list[dict[str, Any]] = []

    def claim(self, run: Run, settings: PretrainSettings, decided: dict[str, Any]) -> dict[str, Any]:
        """Note the facts that determine the run, with the precision and rows decided at its start; returns all.

        ConfigError where the run began with others; IntegrityError where that is not known.
        """
        identity = {**run.facts, **run.model, **values_of(settings), **decided}
        record, remedy = self.state / "identity.json", f"move {self.state} away to train the run again from its start"
        if not record.is_file():
            if any(self.state.glob("*/step-*")):
                raise IntegrityError(f"{record}: missing, so it is not known how the run beside it began; {remedy}")
            write_json(record, identity)
        elif (begun := read_json(record, dict, remedy)) != identity:
            raise ConfigError(f"{record}: the run began otherwise ({difference(begun, identity)}); {remedy}")
        return identity

    def open(self, facts: dict[str, Any]) -> None:
        """Add a session; a line on stderr for each soft fact that differs from the session before."""
        if self.provenance.is_file() and any(self.state.glob("resume/step-*")):  # not an earlier training's
            self.sessions = read_json(self.provenance, {"sessions": [dict]})["sessions"]
        before = self.sessions[-1] if self.sessions else facts
        soft = ({key: values.get(key) for key in SOFT} for values in (before, facts))
        if changes := difference(*soft):
            print(
                f"warning: {self.provenance}: {changes} since the session before; the bits of the result may differ "
                "from an uninterrupted run",
                file=sys.stderr,
            )
        self.sessions.append({**facts, "started": _now()})
        write_json(self.provenance, {"sessions": self.sessions})

    def update(self, **measured: Any) -> None:
        """Add the measurements so far to the newest session, and say that the run goes on."""
        self.sessions[-1] |= {"step": self.step, **measured, "until": _now()}
        write_json(self.provenance, {"sessions": self.sessions})
        self._write("running")

    def publish(self, run: Run, identity: dict[str, Any], manifest: Path, measured: dict[str, Any]) -> None:
        """Write the declared outputs: metrics.jsonl, timing.json and, last, done.json."""
        packed = read_json(manifest, {"vocabulary_sha256": str})
        others = {*run.facts, "corpus_hash"}
        done = {
            **run.facts,
            **measured,
            "corpus_hash": identity["corpus_hash"],
            "vocabulary_sha256": packed["vocabulary_sha256"],
            "settings_hash": hash_of(identity),
            "settings": {name: value for name, value in identity.items() if name not in others or name in run.model},
        }
        folder = self.state.parent
        copy_file(self.state / METRICS, folder / METRICS)
        longest = max(self.sessions, key=lambda session: session.get("steps_timed", 0))
        commits = list(dict.fromkeys(session["commit"] for session in self.sessions))
        write_json(folder / "timing.json", {**run.facts, **longest, "sessions": len(self.sessions), "commits": commits})
        write_json(folder / "done.json", {**done, "metrics_sha256": sha256_of(folder / METRICS)})

    @contextmanager
    def status_written(self) -> Iterator[None]:
        """Write how the session ended: state, step, exit code, reason, file.

        Of several processes the leader writes, the others only why they failed; the first failure of a session stays,
        because the rest fail in consequence.
        """
        if self.leads and self._has_failed():  # in an earlier session
            self.status.unlink()
        try:
            yield
        except BaseException as error:
            state = next((state for kind, state in STATES.items() if isinstance(error, kind)), "failed")
            if self.leads or state != "preempted":
                with suppress(OSError, SymbertError):  # a full disk may be the failure; the user shall see that one
                    if not self._has_failed():
                        self._write(state, *explain(error))
            raise
        if self.leads:
            self._write("done", 0)

    def _has_failed(self) -> bool:
        return read_json_or_empty(self.status).get("state") in ("failed", "diverged")

    def _write(self, state: str, exit_code: int | None = None, reason: str | None = None) -> None:
        named = (reason or "").partition(": ")[0]
        file = named if named and Path(named).exists() else None
        values = {"state": state, "step": self.step, "exit_code": exit_code, "reason": reason, "file": file}
        write_json(self.status, values)


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


# --- storage ----------------------------------------------------------------------------------------------------------


def storage_of(parameters: int, settings: PretrainSettings) -> int:
    """The most bytes that a run of a model with so many parameters writes, all in float32: weights of each kept step,
    and checkpoints to resume from, of weights and the optimizer's state, while one more than KEEP is written."""
    return FLOAT32 * parameters * (len(kept_steps(settings)) + (KEEP + 1) * (1 + MOMENTS))


def name_of_step(step: int) -> str:
    """The name of a checkpoint or of kept weights, which sorts by step."""
    return f"step-{step:08d}"


def kept_steps(settings: PretrainSettings) -> list[int]:
    """The steps whose weights a run keeps."""
    return sorted({*range(settings.save_every, settings.steps, settings.save_every), settings.steps})


def weights_file(state: Path, step: int) -> Path:
    """Where the weights of a step are kept."""
    return state / "weights" / f"{name_of_step(step)}.safetensors"


def lost_weights(folder: Path, steps: list[int]) -> str:
    """What to say of a finished run of which the weights of these steps are gone."""
    numbers = ", ".join(f"{step:,}" for step in steps)
    return f"no weights of step {numbers} are left; delete {folder / 'done.json'} to train it again"


def kept_weights(state: Path, step: int) -> Path:
    """The verified weights file of a step; MissingInputError names the nearest kept steps."""
    path = weights_file(state, step)
    if not path.is_file():
        kept = sorted(int(file.stem.removeprefix("step-")) for file in (state / "weights").glob("*.safetensors"))
        near = ", ".join(str(number) for number in sorted(kept, key=lambda number: abs(number - step))[:3]) or "none"
        raise MissingInputError(f"{path}: step {step} was not kept; the nearest kept steps: {near}")
    verify_sha256(path, read_json(path.with_suffix(".json"), {"sha256": str}, DAMAGED)["sha256"], DAMAGED)
    return path
