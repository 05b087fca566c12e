"""What the models of an experiment were computed on; of imported ones, where their scores come from."""

from pathlib import Path
from typing import Any

from symbert.files import read_json
from symbert.report import captions
from symbert.report.formats import Table, decimal_of, table_of, write_table
from symbert.report.sessions import PretrainedRun, gpus, hours, read_pretrained
from symbert.settings import ReportSettings, read_settings

IMPORT = ("name", "directory", "files", "sha256", "steps", "steps_from")
KNOWN = {"directory": str, "files": int, "sha256": str}  # whatever the version that imported
MACHINE, COMPUTING = ("host", "device", "processor"), ("processes", "threads", "precision", "recipe", "versions")


def tabulate_runs(
    provenance: list[Path], settings: Path, output: list[Path], sessions: list[Path] | None = None
) -> None:
    """Write what each run was computed on, from its done.json and timing.json, or import.json of imported results.

    `sessions` are the provenance.json files in the runs' state; those that are gone are not missed.
    """
    imported = captions.is_imported(read_settings(settings, ReportSettings))
    table = import_table(provenance) if imported else runs_table(read_pretrained(provenance, sessions or []))
    write_table(table, output)


def runs_table(runs: list[PretrainedRun]) -> Table:
    """A row per run of pre-training."""
    caption = (
        "What pre-training ran on: sessions (more than one: it was interrupted and went on), their hours, and those "
        "times the GPUs; host, device, processor and the instructions used; hashes of the run's settings and of the "
        "corpus; versions. A dash: not told."
    )
    return table_of([_row(run) for run in runs], caption, "tab:runs")


def import_table(files: list[Path]) -> Table:
    """Where imported results come from, as import.json tells it."""
    rows = [{key: told.get(key) for key in IMPORT} for told in (read_json(file, KNOWN) for file in files)]
    caption = (
        "The directory that the results were imported from, the number of files read there, one hash of all of them, "
        "and the length of pre-training. How the models were made, these files do not say."
    )
    return table_of(rows, caption, "tab:runs")


def _row(run: PretrainedRun) -> dict[str, Any]:
    wall = sum(hours(session) for session in run.sessions)
    on_gpus = sum(hours(session) * gpus(session) for session in run.sessions)
    all_told = len(run.sessions) == run.facts.get("sessions", 1)
    return {
        "run": f"{run.size}-{run.attention} seed {run.pretrain_seed}",
        "sessions": run.facts.get("sessions"),
        "wall_hours": decimal_of(wall, 3) if all_told else None,
        "gpu_hours": decimal_of(on_gpus, 3) if all_told else None,
        **{key: run.told(key) for key in MACHINE},
        **{key: run.facts.get(key) for key in ("settings_hash", "corpus_hash")},
        **{key: run.told(key) for key in COMPUTING},
    }
