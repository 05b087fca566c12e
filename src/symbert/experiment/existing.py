"""What of an experiment's runs is there, by their folders. Reads only, and takes no lock."""

from dataclasses import dataclass
from pathlib import Path

from symbert.experiment.inputs import has_corpus, manifest_of
from symbert.experiment.layout import Experiment
from symbert.experiment.leases import holder
from symbert.experiment.reading import Values, facts
from symbert.pretrain.guard import difference, settings_told
from symbert.pretrain.job import Run


@dataclass(frozen=True)
class FoundRun:
    """A run as its folders show it."""

    run: Run
    state: str  # done | running | preempted | failed | diverged | stopped | set aside | other settings | missing
    step: int  # completed
    note: str = ""  # why, or who

    @property
    def is_done(self) -> bool:
        """Whether it need not be trained any more."""
        return self.state == "done"


def find_runs(experiment: Experiment) -> list[FoundRun]:
    """All runs of the sweep."""
    return [find_run(experiment, run) for run in experiment.runs()]


def find_run(experiment: Experiment, run: Run) -> FoundRun:
    """The state of a run; `stopped` is one whose process ended without a word, `set aside` one that will come back."""
    other, published = settings_changed(experiment, run), _published(experiment, run)
    if other is None and published == "":
        return FoundRun(run, "done", experiment.final)
    if aside := set_aside(experiment, run):
        return FoundRun(run, "set aside", _step_of(facts(aside / "status.json")), "comes back")
    if other is not None:
        return FoundRun(run, "other settings", 0, other)
    return _unfinished(experiment, run, f"published under other settings: {published}" if published else "")


def _unfinished(experiment: Experiment, run: Run, published: str) -> FoundRun:
    state = experiment.place(experiment.state, run)
    status = facts(state / "status.json")
    if who := holder(state.parent):
        return FoundRun(run, "running", _step_of(status), f"by {who}")
    if not status:
        return FoundRun(run, "missing", 0, published)
    told = status.get("state")
    return FoundRun(
        run, "stopped" if told in ("running", "done", None) else told, _step_of(status), status.get("reason") or ""
    )


def _step_of(status: Values) -> int:
    step = status.get("step")
    return step if isinstance(step, int) else 0


def settings_changed(experiment: Experiment, run: Run) -> str | None:
    """How the run in the state folder differs from the one that is wanted; None where it does not, or there is none."""
    existing = facts(experiment.place(experiment.state, run) / "identity.json")
    return _difference(experiment, run, existing) or None if existing else None


def _published(experiment: Experiment, run: Run) -> str | None:
    """How a finished run that is published differs from the one that is wanted: '' where it does not; None: no run."""
    path = experiment.place(experiment.run, run) / "done.json"
    if not path.is_file():
        return None
    done = facts(path)
    if not isinstance(done.get("settings"), dict):
        return ""  # it does not say
    told = {key: done[key] for key in ("corpus_hash",) if key in done}
    return _difference(experiment, run, {**vars(run), **done["settings"], **told})


def _difference(experiment: Experiment, run: Run, existing: Values) -> str:
    """What a device decides is known only where it trains, and of no corpus is known what it will be."""
    wanted, unknown = identity_of(experiment, run), ("precision", "attention_dropout", "corpus_hash")
    known = {key: value for key, value in existing.items() if key in wanted or key not in unknown}
    return difference(known, wanted)


def identity_of(experiment: Experiment, run: Run) -> Values:
    """All that determines a run's result, as far as it is known before the run."""
    wanted = {**vars(run), **run.model, **settings_told(experiment.pretraining)}
    if wanted["precision"] == "auto":
        del wanted["precision"]
    manifest = facts(manifest_of(experiment))
    return {**wanted, "corpus_hash": manifest.get("hash")} if has_corpus(experiment) else wanted


def set_aside(experiment: Experiment, run: Run) -> Path | None:
    """The state that was set aside and comes back when the run is started, as `symbert.pretrain.guard` decides."""
    state = experiment.place(experiment.state, run)
    begun = (state / "identity.json").is_file() and settings_changed(experiment, run) is None
    if begun or experiment.config["on_settings_change"] != "supersede":
        return None
    return next((path for path in superseded(state.parent) if is_wanted(experiment, path)), None)


def superseded(folder: Path) -> list[Path]:
    """The states that were set aside in the folder of a run, but for links."""
    return [path for path in sorted(folder.glob("state.superseded-*")) if not path.is_symlink()]


def is_wanted(experiment: Experiment, state: Path) -> bool:
    """Whether a state, maybe one that was set aside, is of a run that is wanted today."""
    identity = facts(state / "identity.json")
    run = run_of(experiment, identity)
    return run is not None and not _difference(experiment, run, identity)


def run_of(experiment: Experiment, identity: Values) -> Run | None:
    """The run of the sweep that a state is of."""
    return next((run for run in experiment.runs() if vars(run).items() <= identity.items()), None)
