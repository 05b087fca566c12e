"""The command that pre-trains one run (host × size × attention × seed).

Everything a run needs to resume lies in `state` within its folder, which no rule declares as an output (Snakemake
deletes outputs); the declared files are published when the last step is done.
"""

from pathlib import Path
from typing import Any

from symbert.configuration import PretrainSettings, recorded_settings, settings_from
from symbert.errors import ConfigError
from symbert.files import read_json
from symbert.operators import planned_operator
from symbert.paths import Run
from symbert.pretrain.stop import StopRequest
from symbert.sizes import BUILT_IN, define

PLANNED = {"host": str, "size": str, "attention": str, "pretrain_seed": int, "manifest": str}  # run.json
PLANNED |= {"model": {"operator_code": str}, "training": dict}


def pretrain(
    folder: Path,
    /,
    threads: int,
    micro_batch_size: int | None = None,
    recompute_activations: bool = False,
    shard_parameters: bool = False,
) -> None:
    """Train the model of `folder`/run.json, from its newest checkpoint if it was interrupted, and publish done.json,
    metrics.jsonl and timing.json there.

    SIGTERM, SIGINT and SIGUSR1 save at the next step boundary (PreemptedError, exit 75); the same command goes
    on from there with the same bits. SIGUSR1 means that the time limit is near (TimeLimitError): a job of Slurm then
    asks for another session. DivergedError when the loss or the gradient is not finite. Started by `torchrun`, its
    processes share each batch. The checkpoints of a finished run are removed, so that the same command trains it again.
    """
    stop = StopRequest()  # before torch is imported, which takes seconds
    from symbert.pretrain.session import SessionOptions, hold_session

    hold_session(folder, SessionOptions(threads, micro_batch_size, recompute_activations, shard_parameters), stop)


def read_run(folder: Path) -> tuple[Run, PretrainSettings, Path]:
    """The run that run.json plans, its settings, and the manifest of its rows; its operator and size are known then.

    ConfigError where the code of its operator or optimizer was edited since.
    """
    file = folder / "run.json"
    planned = read_json(file, PLANNED, "run snakemake again")
    run = Run(planned["size"], planned["attention"], planned["pretrain_seed"], planned["host"])
    define_model(run.size, run.attention, planned["model"], file)
    settings = {key: value for key, value in planned["training"].items() if key != "optimizer_code"}
    chosen = settings_from(settings, PretrainSettings, str(file))
    _refuse_changes(planned["training"], recorded_settings(chosen), file)
    return run, chosen, Path(planned["manifest"])


def define_model(size: str, attention: str, model: dict[str, Any], origin: Path) -> None:
    """Make the operator and the size of a `Run.model` in the file `origin` known to this process.

    ConfigError where the operator's code was edited since.
    """
    planned_operator(attention, model, origin)
    if size not in BUILT_IN:
        define(size, {name: value for name, value in model.items() if name not in ("operator_code", "operator")})
    _refuse_changes(model, Run(size, attention, 0).model, origin)


def _refuse_changes(planned: dict[str, Any], found: dict[str, Any], origin: Path) -> None:
    if differing := difference(planned, found):
        raise ConfigError(
            f"{origin}: {differing} since it was planned; run snakemake again, which computes it in another folder"
        )


def difference(existing: dict[str, Any], wanted: dict[str, Any]) -> str:
    """The keys that differ, as `key: existing → wanted`."""
    keys = sorted(existing.keys() | wanted.keys())
    pairs = [(key, existing.get(key, "absent"), wanted.get(key, "absent")) for key in keys]
    return ", ".join(f"{key}: {old} → {new}" for key, old, new in pairs if old != new)
