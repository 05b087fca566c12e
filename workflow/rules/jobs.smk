# jobs: what they take, which of them are one job of a cluster, and how the processes of a training are started.
from symbert.launch import launcher, threads_per_process
from symbert.snakemake_internals import check_groups_together, look_behind_ancient_files, share_components

with one_line_errors():
    look_behind_ancient_files()


# Priorities of rules. Of the jobs that could run, long ones go first, so that no core waits for one at the end: trainings
# and what takes their checkpoints, then the fine-tunings of a last step, which have most seeds, then those of others.
LONGEST, LONGER, LONG = 3, 2, 1


def training_threads(wildcards):
    """Of one process."""
    return SIZES[wildcards.size].threads


def training_memory(wildcards, attempt):
    """MB of one process; each attempt asks for more."""
    return SIZES[wildcards.size].memory * attempt


def growing(amount):
    """A resource that each attempt asks more of: where one was too little, the next one has it."""
    return lambda wildcards, attempt: amount * attempt


SESSION = (
    1440  # minutes of a session of pre-training, unless the site has a shorter limit; it takes as many as it needs
)


NODES, PROCESSES = config["pretrain"]["nodes"], config["pretrain"]["processes"]
PROCESSES_PER_NODE = PROCESSES // NODES  # processes of a node
LAUNCHER = launcher(PROCESSES, NODES)
THREADS_PER_PROCESS = threads_per_process(PROCESSES, NODES)


def gpus_of_node(wildcards):
    """One per process, but for a model that is trained on a CPU."""
    return PROCESSES_PER_NODE * SIZES[wildcards.size].needs_gpu


GPUS_GIVEN = "SYMBERT_GPUS={resources.gpu}"  # so that a process that was given a GPU does not compute on the CPU


# On several nodes our command starts the tasks, one per node, each with its node's GPUs: the Slurm plugin starts none
# (mpi), derives none from the GPUs (tasks_per_gpu), and gres is counted per node.
SEVERAL_NODES = {
    "mpi": "srun",
    "tasks": NODES,
    "tasks_per_gpu": 0,
    "gres": lambda wildcards: f"gpu:{gpus_of_node(wildcards)}" if gpus_of_node(wildcards) else "",
}


# On a cluster the parts of a batch are one job, and the checkpoints of a run. Here each is a job of its own.
if is_on_cluster(workflow):
    # Under this name `--group-components parts=100` makes one job of a batch's parts, which need nothing of each other.
    with one_line_errors():
        check_groups_together()
        share_components(workflow, [f"parts-{number}" for number in range(len(BATCHES))], "parts")

    def parts_together(wildcards):
        """The group of a part: its batch."""
        return f"parts-{BATCH_OF[wildcards.part]}"

    checkpoints_together = "extract-{size}-{attention}-{seed}"

else:
    parts_together = checkpoints_together = None
