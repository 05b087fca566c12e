"""A run directory holds one run: other settings are refused or set aside, never mixed."""

import os
import shutil
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError, DataError, IntegrityError
from symbert.files import read_json, write_json
from symbert.settings import PretrainSettings, code_of, hash_of, values_of
from symbert.syntax import file_of

PUBLISHED = ("done.json", "metrics.jsonl", "timing.json", "step-*")  # what a run and its checkpoints have in `run`


def recorded_settings(settings: PretrainSettings) -> dict[str, Any]:
    """The settings that identify a run, without those that have their default.

    Of an optimizer of the user's own its code, too.
    """
    values = values_of(settings)
    module, _, function = settings.optimizer.partition(":")
    if function:
        if file_of(module) is None:
            raise ConfigError(
                f"config: 'pretrain.optimizer' is {settings.optimizer}: no module {module}; correct the path, or put "
                "the module into this folder"
            )
        values["optimizer_code"] = code_of(module, function)
    return values


def guard_settings(state: Path, identity: dict[str, Any], on_settings_change: str, run: Path) -> None:
    """Make `state` the working directory of the run with this identity, whose results are published in `run`.

    When it holds another run: `refuse` raises ConfigError with the difference; `supersede` moves that run to
    `<state>.superseded-<hash8>`, its published files (Snakemake has deleted some) into `published` therein, and
    starts anew, or goes on with a run of this identity that was set aside before. What was made from it elsewhere
    (scores, tables, logs) remains until its rules run again.
    """
    record = state / "identity.json"
    _refuse_another_place(state, run / "state.json")
    existing = _read_identity(state, record)
    if existing == identity:
        return
    if existing is not None and on_settings_change == "refuse":
        raise refusal(state, difference(existing, identity))
    if existing is not None:
        _set_aside(state, run, hash_of(existing)[:8])
    if on_settings_change == "supersede":
        _take_back(state, identity)
    state.mkdir(parents=True, exist_ok=True)
    write_json(record, identity)


def refusal(state: Path, differing: str) -> ConfigError:
    """The error for a run folder with different settings."""
    return ConfigError(
        f"{state}: holds a run with other settings ({differing}); "
        "name a new 'experiment', or set 'on_settings_change: supersede'"
    )


def _refuse_another_place(state: Path, record: Path) -> None:
    """ConfigError when an existing folder elsewhere holds the state of this run; else record the folder."""
    place = os.path.relpath(state.resolve(), record.parent.resolve())  # so a copy of all results refers to itself
    before = read_json(record, {"state": str})["state"] if record.is_file() else place
    if before != place and (record.parent / before / "identity.json").is_file():
        raise ConfigError(
            f"{record.parent / before}: holds the state of this run, and {state} is to hold it now; move the one to "
            "the other, or set 'storage.checkpoints' back"
        )
    if before != place or not record.is_file():
        write_json(record, {"state": place})


def _read_identity(state: Path, record: Path) -> dict[str, Any] | None:
    """The identity of the run in `state`, None without a run; IntegrityError when its record is missing or damaged."""
    try:
        if record.is_file() and (identity := read_json(record, dict)):
            return identity
    except DataError:
        pass
    else:
        if not any(state.glob("*/step-*")):
            return None
    raise IntegrityError(
        f"{record}: missing or damaged, so the settings of the run in its folder are not known; move {state} away to "
        "start it over"
    )


def difference(existing: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The keys that differ, as `key: existing → wanted`."""
    keys = sorted(existing.keys() | wanted.keys())
    pairs = [(key, existing.get(key, "absent"), wanted.get(key, "absent")) for key in keys]
    return ", ".join(f"{key}: {old} → {new}" for key, old, new in pairs if old != new)


def _set_aside(state: Path, run: Path, mark: str) -> None:
    """Move a run out of the way, its state last and in one step: until then the old run is known, even after a kill."""
    for pattern in PUBLISHED:
        for path in sorted(run.glob(pattern)):
            aside = state / "published" / path.name
            aside.parent.mkdir(exist_ok=True)
            if aside.is_dir():  # the remains of a move to another file system that was killed
                shutil.copytree(path, aside, dirs_exist_ok=True)
                shutil.rmtree(path)
            else:
                shutil.move(path, aside)
    os.replace(state, free_name(state, mark))


def _take_back(state: Path, identity: dict[str, Any]) -> None:
    """Put a run of this identity that was set aside back into its place: returning to earlier settings reuses that run.

    Its published files are removed: they are published again from its state. The folder in its place holds no run.
    """
    for aside in sorted(state.parent.glob(f"{state.name}.superseded-{hash_of(identity)[:8]}*")):
        if _read_identity(aside, aside / "identity.json") == identity:
            shutil.rmtree(aside / "published", ignore_errors=True)
            shutil.rmtree(state, ignore_errors=True)
            os.replace(aside, state)
            return


def free_name(state: Path, mark: str) -> Path:
    """A name beside `state` that no earlier superseded run has."""
    name = first = state.with_name(f"{state.name}.superseded-{mark}")
    count = 1
    while name.exists():
        count += 1
        name = first.with_name(f"{first.name}-{count}")
    return name
