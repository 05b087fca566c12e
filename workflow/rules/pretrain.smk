# pretrain: one run per host × size × attention × seed, and the checkpoints taken from those of the encoder.
from symbert.hosts import HOSTS, PRETRAINING


localrules:
    pretrain,


rule pretrain:
    input:
        published_files("done.json"),
        published_by_others("done.json"),


# What every pre-training takes, and is told.
TRAINING_RESOURCES = {
    **(SEVERAL_NODES if NODES > 1 else {}),
    "nodes": NODES,
    "mem_mb": lambda wildcards, attempt: training_memory(wildcards, attempt) * PROCESSES_PER_NODE,
    "gpu": lambda wildcards: gpus_of_node(wildcards) if NODES == 1 else 0,
    "runtime": SESSION,
    "slurm_extra": "--signal=USR1@120",  # two minutes before the limit: save, and ask for another session
}
START = f"{GPUS_GIVEN} exec {LAUNCHER} pretrain-model"
TRAIN = (
    "--settings {input.settings:q}"
    " --size {wildcards.size:q} --attention {wildcards.attention:q} --seed {wildcards.seed:q}"
    " --state {params.state:q} --done {output.done:q} --metrics {output.metrics:q} --timing {output.timing:q}"
    f" --threads {THREADS_PER_PROCESS} {EXECUTION}"
)


rule pretrain_model:
    input:
        manifest=MANIFEST,
        settings=settings("pretrain"),
        model=settings("model-{size}-{attention}"),  # of which the command finds out by itself
    output:
        done=f"{RUN}/done.json",
        metrics=f"{RUN}/metrics.jsonl",
        timing=f"{RUN}/timing.json",
    log:
        f"{LOGS}/pretrain_model/{{size}}-{{attention}}-seed-{{seed}}.log",
    benchmark:
        f"{BENCHMARKS}/pretrain_model/{{size}}-{{attention}}-seed-{{seed}}.tsv"
    priority: LONGEST
    conda:
        ENVIRONMENT
    threads: lambda wildcards: training_threads(wildcards) * PROCESSES_PER_NODE
    resources:
        **TRAINING_RESOURCES,
    params:
        state=STATE,
    shell:
        f"{START} --manifest {{input.manifest:q}} {TRAIN}"


for training, host in [each for each in PRETRAINING.items() if each[1] in EXPERIMENT.other_hosts]:

    rule:
        name:
            training
        input:
            manifest=[] if HOSTS[host].data else MANIFEST,
            settings=settings("pretrain"),
            model=settings("model-{size}-{attention}"),
        output:
            done=f"{of_host(RUN, host)}/done.json",
            metrics=f"{of_host(RUN, host)}/metrics.jsonl",
            timing=f"{of_host(RUN, host)}/timing.json",
        log:
            f"{LOGS}/{training}/{{size}}-{{attention}}-seed-{{seed}}.log",
        benchmark:
            f"{BENCHMARKS}/{training}/{host}-{{size}}-{{attention}}-seed-{{seed}}.tsv"
        priority: LONGEST
        conda:
            ENVIRONMENT
        threads: lambda wildcards: training_threads(wildcards) * PROCESSES_PER_NODE
        resources:
            **TRAINING_RESOURCES,
        params:
            state=of_host(STATE, host),
            manifest=option("manifest"),
            host=host,  # a shell text is read when its job starts: the loop's variables then have their last values
        shell:
            f"{START} {{params.manifest:q}} {TRAIN} --host {{params.host:q}}"


rule extract_checkpoint:
    input:
        done=done_of,
        vocabulary=WORD_PIECES,
    output:
        expand(f"{CHECKPOINT}/{{file}}", file=CHECKPOINT_FILES, allow_missing=True),
    log:
        f"{LOGS}/extract_checkpoint/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.log",
    priority: LONGEST
    group:
        checkpoints_together
    conda:
        ENVIRONMENT
    params:
        state=state_of,
        checkpoint=lambda wildcards, output: Path(output[0]).parent,
        corpus_source=configuration.source_of(config, "corpus"),
    shell:
        "python -m symbert --log {log:q} extract-checkpoint --state {params.state:q} --step {wildcards.step:q}"
        " --vocabulary {input.vocabulary:q} --done {input.done:q}"
        " --corpus-source {params.corpus_source:q} --output {params.checkpoint:q}"
