# jobs: what they take, which of them are one job of a cluster, and how the processes of a training are started.
from symbert import queue
from symbert.launch import launcher, threads_each

queue.mend_plugin()

TRAINING_THREADS = {"tiny": 1, "small": 4, "base": 8}
TRAINING_MEMORY = {"tiny": 2000, "small": 8000, "base": 16000}  # MB of host memory


def growing(amount):
    """A resource that each attempt asks more of: where one was too little, the next one has it."""
    return lambda wildcards, attempt: amount * attempt


NODES, PROCESSES = config["pretrain"]["nodes"], config["pretrain"]["processes"]
EACH = PROCESSES // NODES  # processes of a node
LAUNCHER = launcher(PROCESSES, NODES)
THREADS_EACH = threads_each(PROCESSES, NODES)


def gpus_of_node(wildcards):
    """The tiny model needs none."""
    return EACH if wildcards.size != "tiny" else 0


GIVEN = "SYMBERT_GPUS={resources.gpu}"  # so that a process that was given a GPU does not compute on the CPU


# On several nodes our command starts the tasks, one per node, each with its node's GPUs: the Slurm plugin starts none
# (mpi), derives none from the GPUs (tasks_per_gpu), and gres is counted per node.
SEVERAL_NODES = {
    "mpi": "srun",
    "tasks": NODES,
    "tasks_per_gpu": 0,
    "gres": lambda wildcards: f"gpu:{gpus_of_node(wildcards)}" if gpus_of_node(wildcards) else "",
}


BATCH_OF = {part: number for number, batch in enumerate(BATCHES) for part in batch}


def parts_together(wildcards):
    """The group of a part: its batch."""
    return f"parts-{BATCH_OF[wildcards.part]}"


# Under this name `--group-components parts=100` makes one job of a batch's parts, which need nothing of each other.
workflow.parent_groupids.update({f"parts-{number}": "parts" for number in range(len(BATCHES))})
