"""A run directory holds one run: other settings are refused or set aside, never mixed."""

import os
from pathlib import Path
from typing import Any

from symbert.errors import ConfigError
from symbert.files import read_json, write_json
from symbert.settings import hash_of


def guard_settings(state: Path, identity: dict[str, Any], on_settings_change: str) -> None:
    """Make `state` the working directory of the run with this identity.

    When it holds another run: `refuse` raises ConfigError with the difference; `supersede` moves that run to
    `<state>.superseded-<hash8>` and starts anew.
    """
    record = state / "identity.json"
    if record.is_file():
        existing = read_json(record)
        if existing == identity:
            return
        if on_settings_change == "refuse":
            raise ConfigError(
                f"{state}: holds a run with other settings ({difference(existing, identity)}); "
                "name a new 'experiment', or set 'on_settings_change: supersede'"
            )
        os.replace(state, free_name(state, hash_of(existing)[:8]))
    state.mkdir(parents=True, exist_ok=True)
    write_json(record, identity)


def difference(existing: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The keys that differ, as `key: existing → wanted`."""
    keys = sorted(existing.keys() | wanted.keys())
    changed = [key for key in keys if existing.get(key) != wanted.get(key)]
    return ", ".join(f"{key}: {existing.get(key)} → {wanted.get(key)}" for key in changed)


def free_name(state: Path, mark: str) -> Path:
    """A name beside `state` that no earlier superseded run has."""
    name = state.with_name(f"{state.name}.superseded-{mark}")
    count = 1
    while name.exists():
        count += 1
        name = state.with_name(f"{state.name}.superseded-{mark}-{count}")
    return name
