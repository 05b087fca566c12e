"""A pre-training as a step, and on the disk: its sessions, its status, its kept weights, and requests to stop.

Everything a run needs to resume lies in `state` within its folder, which no rule declares as an output (Snakemake
deletes outputs); the declared files are published when the last step is done. Imports no torch.
"""

import math
import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import msgspec
from msgspec import structs, to_builtins

from symbert.architectures import ENCODER
from symbert.configuration import PretrainSettings
from symbert.corpus.shards import Pack
from symbert.corpus.texts import WriteText
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
from symbert.operators import Operator
from symbert.paths import RUN
from symbert.sizes import Shape
from symbert.steps import KEY_DIGITS, File, Step, fields_of, keys_of, other_key, step_in, without_paths

METRICS = "metrics.jsonl"
IDENTITY = ("size", "attention", "pretrain_seed", "step")  # that name a checkpoint
DAMAGED = "the file is damaged"
OF_RUN = "restore it from a copy, or delete it to train the run again"  # a damaged file that a finished run published
KEEP = 3  # checkpoints to resume from
FLOAT32 = 4  # bytes
MOMENTS = 2  # numbers that AdamW keeps of each weight
# What a session records that may change the last bits.
SOFT = ("device", "processor", "threads", "processes", "micro_batch_size", "shard_parameters", "together", "versions")
STATES = {PreemptedError: "preempted", DivergedError: "diverged"}  # other errors: failed
LIMIT = "SIGUSR1"  # the time limit is near: the signal of `sbatch --signal` in the profile


class StopRequest:
    """Remembers SIGTERM, SIGINT, SIGHUP or SIGUSR1, so that a run can save at the next step boundary and exit with 75.

    SIGUSR1 says that the time limit is near. Any other signal replaces it: cancellation overrides the time limit.
    """

    def __init__(self) -> None:
        self._received: str | None = None
        self._parent = os.getppid()
        self._outlives = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
        signal.signal(signal.SIGUSR1, self._remember)  # which the Snakefile has all other jobs ignore
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as in the background of a script, or under `nohup`
                signal.signal(number, self._remember)

    @property
    def signal(self) -> str | None:
        """Why to stop, None to go on: the name of a signal, or that the parent process ended.

        A killed workflow or `torchrun` leaves its children alive, and nobody asks for their results.
        Whoever starts a run to outlive its parent ignores SIGHUP, as `nohup` does.
        """
        is_orphan = os.getppid() != self._parent and not self._outlives
        return self._received or ("parent process ended" if is_orphan else None)

    def flags(self) -> tuple[float, float]:
        """Whether this process is asked to stop, and by the time limit."""
        return float(self.signal is not None), float(self.signal == LIMIT)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        if self._received in (None, LIMIT):
            self._received = signal.Signals(number).name


# --- the step ---------------------------------------------------------------------------------------------------------


class GivenRows(Step, frozen=True):
    """Rows that no experiment packed, as those of a benchmark."""

    manifest: str

    def paths(self, **wildcards: str) -> dict[str, str]:
        """The manifest."""
        return {"manifest": self.manifest}


class Pretraining(Step, frozen=True, kw_only=True):
    """The training of a model of an architecture from a seed: run.json, which `symbert.pretrain.train.train` reads.

    `version` is of all code that every operator is trained by: this package, and of `symbert.model` bert.py,
    from_transformers.py and init.py. A class of operators has a version of its own.
    """

    files: ClassVar[dict[str, str]] = {"done": "done.json", "metrics": METRICS, "timing": "timing.json"}

    architecture: str
    size: str
    shape: Shape
    operator: Operator
    training: PretrainSettings
    rows: Pack | WriteText | GivenRows  # that it learns from
    init_from: File | None = None  # the folder of a checkpoint, by its weights; None: the seed draws them
    corpus_source: str | None = None  # of rows of the corpus, for the model card
    pretrain_seed: int

    @property
    def attention(self) -> str:
        """The name of its operator."""
        return self.operator.name

    @property
    def key(self) -> str:
        """The key that all its seeds have."""
        fields = {name: value for name, value in to_builtins(self).items() if name != "pretrain_seed"}
        return hash_of(without_paths(fields))[:KEY_DIGITS]

    @cached_property
    def lineage(self) -> str:
        """The key of all runs that differ from it in their number of steps and in where their learning rate falls."""
        training = structs.replace(self.training, steps=1, schedule_steps=None, decay_steps=None)
        return structs.replace(self, training=training).key

    @property
    def folder(self) -> str:
        """Where its files lie, from the folder with results/."""
        model = f"{self.size}-{self.attention}-{self.key}"
        return RUN.format(architecture=self.architecture, model=model, seed=self.pretrain_seed)

    @property
    def settings_file(self) -> str:
        """The step itself."""
        return f"{self.folder}/run.json"

    def reads(self) -> list[str]:
        """The files that it waits for; not a checkpoint's, which is there and may be moved."""
        return [*self.rows.paths().values()]

    @property
    def begun_from(self) -> str | None:
        """The SHA-256 of the weights that it starts from; None: its seed draws them."""
        return self.init_from and self.init_from.sha256

    @property
    def manifest(self) -> Path:
        """The manifest of its rows."""
        return Path(self.rows.paths()["manifest"])

    @property
    def identity(self) -> dict[str, Any]:
        """What records say of it; those of an encoder omit the architecture."""
        architecture = {} if self.architecture == ENCODER else {"architecture": self.architecture}
        return {"size": self.size, "attention": self.attention, "pretrain_seed": self.pretrain_seed, **architecture}

    def __str__(self) -> str:
        architecture = "" if self.architecture == ENCODER else f"{self.architecture} "
        return f"{architecture}{self.size}-{self.attention} seed {self.pretrain_seed}"


class PretrainTogether(Step, frozen=True, kw_only=True):
    """Runs that one process trains as one model. What it makes lies in their own folders, and is what each alone would
    have made, but for the last bits."""

    files: ClassVar[dict[str, str]] = {"ended": "ended.json"}

    runs: list[Pretraining]

    @property
    def place(self) -> str:
        """The folder below results/, without the key."""
        return f"together/{self.runs[0].size}-{self.runs[0].attention}"

    def reads(self) -> list[str]:
        """The files that it waits for."""
        return list(dict.fromkeys(file for run in self.runs for file in run.reads()))


def why_alone(training: PretrainSettings) -> str:
    """Why a run is trained by itself, whatever `pretrain.together` says; empty where it need not be."""
    if training.dropout:
        return f"'dropout' {training.dropout:g}, whose draws would not be those of a run alone"
    if training.compile:
        return "'compile' makes a graph of one model"
    return "'precision' fp16 has a scale of the loss for each run" if training.precision == "fp16" else ""


def read_run(folder: Path) -> Pretraining:
    """The step that run.json of a folder holds.

    ConfigError where another version of this project planned it, and where the code of its operator was edited since.
    """
    file = folder / "run.json"
    run = step_in(file, Pretraining)
    run.operator.refuse_edited(file)
    if (keys := keys_of(folder.absolute().parent)) and run.key not in keys:
        raise other_key(file, run)
    return run


# --- records ----------------------------------------------------------------------------------------------------------


class OfRun(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What each record says of its run."""

    size: str
    attention: str
    pretrain_seed: int
    architecture: str = ENCODER


class Identity(msgspec.Struct, kw_only=True, omit_defaults=True):
    """state/identity.json: what the bits of a run follow from, with what was decided at its start."""

    architecture: str
    size: str
    shape: Shape
    operator: Operator
    training: PretrainSettings
    pretrain_seed: int
    precision: str
    corpus_hash: str
    begun_from: str | None = None  # the SHA-256 of a checkpoint's weights


class Done(OfRun, kw_only=True, omit_defaults=True):
    """done.json: a finished run. Losses are in nats per target."""

    steps: int
    validation_loss: float
    validation_perplexity: float | None = None  # of a decoder
    parameters: int  # tied weights once
    attention_parameters: dict[str, int]  # of one `layer`, and of all `layers`
    corpus_hash: str
    vocabulary_sha256: str
    settings_hash: str
    settings: dict[str, Any]
    metrics_sha256: str


class SessionFacts(msgspec.Struct, kw_only=True):
    """A session in provenance.json: a process or several that computed some of the steps, and how fast."""

    host: str  # the machine
    device: str
    processor: str
    versions: dict[str, str]
    commit: str
    threads: int
    processes: int
    micro_batch_size: int
    shard_parameters: bool = False
    together: int = 1  # runs that the process trained as one model
    precision: str
    compile: bool
    started: datetime
    step: int = 0  # completed ones
    step_seconds: float | None = None  # the median
    tokens_per_second: float | None = None
    flops_per_second: float | None = None
    mfu: float | None = None
    peak_flops: float | None = None
    memory_mb: float | None = None
    steps_timed: int = 0
    until: datetime | None = None


class Timing(SessionFacts, kw_only=True):
    """timing.json: the longest session of a finished run, and the commits of all."""

    size: str
    attention: str
    pretrain_seed: int
    architecture: str = ENCODER
    sessions: int
    commits: list[str]


class Initial(msgspec.Struct, kw_only=True, tag_field="split", tag="initial"):
    """The first line of metrics.jsonl: the attention of the untrained model, a number per layer."""

    step: int
    logit_std: list[float]
    logit_step: list[float]  # mean absolute change of a logit by one step at the peak rate (symbert.model.anatomy)
    attention_entropy: list[float]  # nats


class Validated(msgspec.Struct, kw_only=True, omit_defaults=True, tag_field="split", tag="validation"):
    """A line of metrics.jsonl after an evaluation."""

    step: int
    loss: float
    perplexity: float | None = None  # of a decoder


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
        self.identity: Identity | None = None  # once the run is claimed
        self.sessions: list[SessionFacts] = []

    def claim(self, run: Pretraining, precision: str, corpus_hash: str) -> Identity:
        """Note what the bits of the run follow from, with the precision and rows decided at its start; returns it.

        ConfigError where the run began with others; IntegrityError where that is not known.
        """
        of_run = {name: getattr(run, name) for name in Identity.__struct_fields__ if hasattr(run, name)}
        identity = Identity(**of_run, precision=precision, corpus_hash=corpus_hash)
        record, remedy = self.state / "identity.json", f"move {self.state} away to train the run again from its start"
        if not record.is_file():
            if any(self.state.glob("*/step-*")):
                raise IntegrityError(f"{record}: missing, so it is not known how the run beside it began; {remedy}")
            write_json(record, to_builtins(identity))
        elif (begun := msgspec.convert(read_json(record, Identity, remedy), Identity)) != identity:
            changes = difference(fields_of(begun), fields_of(identity))
            raise ConfigError(f"{record}: the run began otherwise ({changes}); {remedy}")
        self.identity = identity
        return identity

    def open(self, session: SessionFacts) -> None:
        """Add a session; a line on stderr for each of SOFT that differs from the session before."""
        if self.provenance.is_file() and any(self.state.glob("resume/step-*")):  # not an earlier training's
            before = read_json(self.provenance, {"sessions": [SessionFacts]})["sessions"]
            self.sessions = msgspec.convert(before, list[SessionFacts])
        soft = ({key: getattr(each, key) for key in SOFT} for each in ((self.sessions or [session])[-1], session))
        if changes := difference(*soft):
            print(
                f"warning: {self.provenance}: {changes} since the session before; the bits of the result may differ "
                "from an uninterrupted run",
                file=sys.stderr,
            )
        self.sessions.append(session)
        self._write_sessions()

    def update(self, **measured: Any) -> None:
        """Add the measurements so far to the newest session, and say that the run goes on."""
        self.sessions[-1] = structs.replace(self.sessions[-1], **measured, step=self.step, until=now())
        self._write_sessions()
        self._write("running")

    def publish(self, run: Pretraining, measured: dict[str, Any]) -> None:
        """Write the declared outputs: metrics.jsonl, timing.json and, last, done.json."""
        packed, folder = read_json(run.manifest, {"vocabulary_sha256": str}), self.state.parent
        identity = self.identity
        copy_file(self.state / METRICS, folder / METRICS)
        longest = max(self.sessions, key=lambda session: session.steps_timed)
        commits = list(dict.fromkeys(session.commit for session in self.sessions))
        timing = Timing(**structs.asdict(longest), **run.identity, sessions=len(self.sessions), commits=commits)
        write_json(folder / "timing.json", to_builtins(timing))
        done = Done(
            **run.identity,
            **measured,
            corpus_hash=identity.corpus_hash,
            vocabulary_sha256=packed["vocabulary_sha256"],
            settings_hash=hash_of(to_builtins(identity)),
            settings={
                **structs.asdict(run.shape),
                **to_builtins(run.training),
                "precision": identity.precision,
                **({"version": run.version} if run.version > 1 else {}),
                **({"begun_from": run.begun_from} if run.begun_from else {}),
            },
            metrics_sha256=sha256_of(folder / METRICS),
        )
        write_json(folder / "done.json", to_builtins(done))

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

    def _write_sessions(self) -> None:
        write_json(self.provenance, {"sessions": to_builtins(self.sessions)})

    def _write(self, state: str, exit_code: int | None = None, reason: str | None = None) -> None:
        named = (reason or "").partition(": ")[0]
        file = named if named and Path(named).exists() else None
        values = {"state": state, "step": self.step, "exit_code": exit_code, "reason": reason, "file": file}
        write_json(self.status, values)


def now() -> datetime:
    """The time in UTC, in whole seconds."""
    return datetime.now(UTC).replace(microsecond=0)


# --- more steps -------------------------------------------------------------------------------------------------------

# A run of more steps is another run, in a folder of its own. It goes on from the state of a finished one that is equal
# to it until then: of the same lineage and seed, whose learning rate was the same. The result is that of a run without
# a break, so nothing in its key or run.json says so; state/provenance.json has the sessions of both.


def branch_step(settings: PretrainSettings) -> int | None:
    """The last step whose state a run of more steps can go on from: before the learning rate falls to its end, or the
    end of a run that is the first part of a schedule. None: the rate falls to 0 at the end as soon as it has risen."""
    end = settings.schedule_steps or settings.steps
    if settings.decay_steps is not None:
        return min(settings.steps, end - settings.decay_steps) or None
    return settings.steps if settings.steps < end else None


def shared_steps(one: PretrainSettings, other: PretrainSettings) -> float:
    """How many steps, from the first, have the same learning rate in two runs of a lineage."""
    schedules = [(each.schedule_steps or each.steps, each.decay_steps) for each in (one, other)]
    if schedules[0] == schedules[1]:
        return math.inf
    return min(one.warmup_steps if decay is None else end - decay for end, decay in schedules)


@dataclass(frozen=True)
class Continuation:
    """What a run has of a finished one of its lineage and seed."""

    folder: Path  # of the finished run
    steps: int  # that it took
    step: int | None  # whose state the run goes on from; None: it begins at step 0
    why_not: str = ""


def continuation_of(run: Pretraining, finished: Iterable[tuple[Path, Pretraining]]) -> Continuation | None:
    """The finished run with the latest state that a run can go on from or, where there is none, the longest shorter one
    of its lineage and seed, with the reason; None without either."""
    found = []
    for folder, other in finished:
        if (other.lineage, other.pretrain_seed) != (run.lineage, run.pretrain_seed) or other.key == run.key:
            continue
        steps, shared = other.training.steps, shared_steps(run.training, other.training)
        branch = branch_step(other.training)
        why_not = ""
        if branch is None:
            why_not = (
                "its learning rate fell to 0 at its end (set 'pretrain.decay_steps', or 'schedule_steps' beyond it)"
            )
        elif branch > shared:
            why_not = f"their learning rates differ from step {shared:,} on"
        elif not (branches(folder / "state") / f"{name_of_step(branch)}.json").is_file():
            why_not = f"the state of its step {branch:,} is not there"
        if branch is not None and not why_not and branch < run.training.steps:
            found.append(Continuation(folder, steps, branch))
        elif why_not and steps < run.training.steps:
            found.append(Continuation(folder, steps, None, why_not))
    return max(found, key=lambda each: (each.step or 0, each.steps, str(each.folder)), default=None)


def finished_runs(folders: Iterable[Path]) -> Iterator[tuple[Path, Pretraining]]:
    """The finished runs among folders, but for those that another version of this project trained."""
    for folder in folders:
        with suppress(SymbertError):
            if (folder / "done.json").is_file():
                yield folder, step_in(folder / "run.json", Pretraining)


def beside(folder: Path, run: Pretraining) -> list[Path]:
    """The folders of all runs of the size, operator and seed of a run, beside its own."""
    keys = f"{run.size}-{run.attention}-{'[0-9a-f]' * KEY_DIGITS}/seed-{run.pretrain_seed}"
    model = (folder if len(folder.parents) > 2 else folder.absolute()).parent  # a path in a message stays short
    return sorted(model.parent.glob(keys))


def has_begun(folder: Path, after: int = 0) -> bool:
    """Whether a run has a state of its own, or weights of steps after that one."""
    kept = (int(file.stem.removeprefix("step-")) for file in (folder / "state/weights").glob("step-*.safetensors"))
    return (folder / "state/resume").is_dir() or any(step > after for step in kept)


# --- storage ----------------------------------------------------------------------------------------------------------


def storage_of(parameters: int, settings: PretrainSettings) -> int:
    """The most bytes that a run of a model with so many parameters writes, all in float32: weights of each kept step,
    and checkpoints to resume from, of weights and the optimizer's state, while one more than KEEP is written; and the
    one that a run of more steps goes on from."""
    checkpoints = KEEP + 1 + (branch_step(settings) is not None)
    return FLOAT32 * parameters * (len(kept_steps(settings)) + checkpoints * (1 + MOMENTS))


def name_of_step(step: int) -> str:
    """The name of a checkpoint or of kept weights, which sorts by step."""
    return f"step-{step:08d}"


def kept_steps(settings: PretrainSettings) -> list[int]:
    """The steps whose weights a run keeps."""
    return sorted({*range(settings.save_every, settings.steps, settings.save_every), settings.steps})


def branches(state: Path) -> Path:
    """Where the state is kept that a run of more steps goes on from."""
    return state / "continue"


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
