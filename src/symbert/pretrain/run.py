"""The command that pre-trains one run (host × size × attention × seed).

Everything a run needs to go on lies in its `state` directory, which no rule declares as an output (Snakemake
deletes outputs); the declared files are published when the last step is done.
"""

from pathlib import Path

from symbert.errors import UsageError
from symbert.hosts import ENCODER, HOSTS
from symbert.paths import Run
from symbert.pretrain.stop import StopRequest


def pretrain_model(
    manifest: Path,
    settings: Path,
    size: str,
    attention: str,
    seed: int,
    state: Path,
    done: Path,
    metrics: Path,
    timing: Path,
    threads: int,
    on_settings_change: str,
    micro_batch_size: int | None = None,
    recompute_activations: bool = False,
    shard_parameters: bool = False,
    host: str = ENCODER,
) -> None:
    """Train one model, from its newest checkpoint if it was interrupted, and publish metrics, timing and a summary.

    SIGTERM, SIGINT and SIGUSR1 save at the next step boundary (PreemptedError, exit 75); the same command goes
    on from there with the same bits. SIGUSR1 means that the time limit is near (TimeLimitError): a job of Slurm then
    asks for another session. DivergedError when the loss or the gradient is not finite. Started by `torchrun`, its
    processes share each batch.
    """
    if host not in HOSTS:
        raise UsageError(f"pretrain-model: no host '{host}'; choose from {', '.join(HOSTS)}")
    stop = StopRequest()  # before torch is imported, which takes seconds
    from symbert.pretrain.session import RunPaths, SessionOptions, hold_session

    paths = RunPaths(manifest, settings, state, done, metrics, timing)
    options = SessionOptions(threads, micro_batch_size, recompute_activations, shard_parameters, on_settings_change)
    hold_session(Run(size, attention, seed, host), paths, options, stop)
