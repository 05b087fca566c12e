"""The command that trains one run."""

from pathlib import Path

from symbert.pretrain.run import StopRequest


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
    from symbert.pretrain.train import train

    train(folder, stop, threads, micro_batch_size, recompute_activations, shard_parameters)
