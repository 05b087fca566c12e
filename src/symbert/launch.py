"""How the processes that train one model together are started: words of a shell command of the workflow.

Snakemake fills the braces in from the job. All else are numbers, so nothing needs quoting.
"""

from symbert.errors import ConfigError
from symbert.hosts import HOSTS

# Without the first, torchrun dies of SIGUSR1 and leaves its processes; seconds in which these may save.
SIGNALS = "--signals-to-handle SIGTERM,SIGINT,SIGUSR1 --shutdown-timeout 60"
# The rule's shell runs on the first node of the job. Two jobs there, of the few that a node has, differ in their port.
MEETING = "--rdzv-backend c10d --rdzv-id $SLURM_JOB_ID --rdzv-endpoint $(hostname):$((20000 + SLURM_JOB_ID % 10000))"
# Seconds in which the other nodes may save, or notice the loss, once the first node has ended.
SRUN = "srun --nodes {{resources.nodes}} --ntasks {nodes} --cpus-per-task {{threads}} --wait 120"


def launcher(processes: int, nodes: int) -> str:
    """What comes before a command: `python -m symbert`, or torchrun for several processes, which srun starts on several
    nodes. One log holds what all of them say, the launchers' own words among it."""
    if processes == 1:
        return "python -m symbert --log {log:q}"
    start = SRUN.format(nodes=nodes) + " torchrun" if nodes > 1 else "torchrun"
    log = "python -m symbert.console {log:q}"
    where = f"--nnodes {nodes} {MEETING}" if nodes > 1 else "--standalone"
    return f"{log} {start} {where} --nproc-per-node {processes // nodes} {SIGNALS} -m symbert"


def threads_per_process(processes: int, nodes: int) -> str:
    """The threads of one process: its share of what the job has on its node, and one at least."""
    share = processes // nodes
    return "{threads}" if share == 1 else f"$((({{threads}} + {share - 1}) / {share}))"


def refuse_sharding(recipe: str, host: str, processes: int, batch_size: int, key: str = "pretrain.batch_size") -> None:
    """ConfigError where processes cannot have the parameters in parts; `key` is where the size of the batch stands."""
    if recipe == "fast":
        raise ConfigError(
            "config: 'pretrain.shard_parameters' is true, but 'recipe' is fast, which compiles the model to one graph, "
            "and weights are gathered between layers; set recipe=faithful, or shard_parameters: false"
        )
    if not HOSTS[host].reads_corpus:
        raise ConfigError(
            "config: 'pretrain.shard_parameters' is true, but lines are translated token by token, by each process as "
            "long as its own need, and weights are gathered from all; set shard_parameters: false, or leave out the "
            "host encoder-decoder"
        )
    if batch_size % processes:
        raise ConfigError(
            f"config: 'pretrain.shard_parameters' is true, but '{key}' is {batch_size}, no multiple of "
            f"the {processes} processes, which compute layer by layer together; choose a multiple"
        )
