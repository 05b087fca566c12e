"""What the models of an experiment were computed on; of imported ones, where their scores come from."""

from typing import Any

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.machines import PretrainedRun, hours_of

LENGTH = ("steps", "steps_from")
MACHINE, COMPUTING = ("device", "processor"), ("processes", "threads", "precision", "recipe", "versions")


@exhibit(chapter="Provenance", place=3, heading="What the models were computed on", may_read=("machines", "origin"))
def runs_table(data: Data) -> Table:
    """What each model was pre-trained on: device, processor, precision, sessions, hours, hashes of settings and
    corpus, and versions; more than one session: the run was interrupted and went on. Of imported scores where they come
    from: their files do not say how the models were made.
    """
    if data.origin is not None:
        caption = (
            "The files that the results were imported from with their SHA-256, and the length of pre-training. How the "
            "models were made, these files do not say."
        )
        files = ", ".join(f"{name} {digest}" for name, digest in data.origin["files"].items())
        row = {"name": data.origin["name"], "files": files, **{key: data.origin.get(key) for key in LENGTH}}
        return table_of([row], caption, "tab:runs")
    caption = (
        "What pre-training ran on: sessions (more than one: it was interrupted and went on), their hours, and those "
        "times the GPUs; device, processor and the instructions used; hashes of the run's settings and of the "
        "corpus; versions. A dash: not told."
    )
    return table_of([_row(run) for run in data.machines], caption, "tab:runs")


def _row(run: PretrainedRun) -> dict[str, Any]:
    wall, on_gpus = hours_of(run.sessions)
    has_all_sessions = len(run.sessions) == run.facts.get("sessions", 1)
    return {
        "run": str(run.run),
        "sessions": run.facts.get("sessions"),
        "wall_hours": decimal_of(wall, 3) if has_all_sessions else None,
        "gpu_hours": decimal_of(on_gpus, 3) if has_all_sessions else None,
        **{key: run.facts_of(key) for key in MACHINE},
        **{key: run.facts.get(key) for key in ("settings_hash", "corpus_hash")},
        **{key: run.facts_of(key) for key in COMPUTING},
    }
