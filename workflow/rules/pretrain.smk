# pretrain: one run per host × size × attention × seed, and the checkpoints taken from them.
from symbert.config import training_section
from symbert.hosts import EXTRACTION, PRETRAINING


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
TRAIN = (
    f"{GPUS_GIVEN} exec {LAUNCHER} pretrain-model --manifest {{input.manifest:q}}"
    " --settings {input.settings:q}"
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
        TRAIN


ROWS_READ = {"corpus": MANIFEST}

if EXPERIMENT.parallel:
    ROWS_READ["pairs"] = str(manifest_of_pairs(pairs_home(EXPERIMENT)))

    rule pack_pairs:
        input:
            settings=settings("parallel"),
        output:
            str(manifest_of_pairs(EXPERIMENT)),
        log:
            f"{LOGS}/pack_pairs.log",
        benchmark:
            f"{BENCHMARKS}/pack_pairs.tsv"
        conda:
            ENVIRONMENT
        resources:
            mem_mb=growing(4000),
        shell:
            "python -m symbert --log {log:q} pack-pairs --settings {input.settings:q} --output {output:q}"


for training, host in [each for each in PRETRAINING.items() if each[1] in EXPERIMENT.other_hosts]:

    rule:
        name:
            training
        input:
            manifest=ROWS_READ[HOSTS[host].rows],
            settings=settings(training_section(host)),
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
            host=host,  # a shell text is read when its job starts: the loop's variables then have their last values
        shell:
            f"{TRAIN} --host {{params.host:q}}"


rule extract_checkpoint:
    input:
        done=done_of(ENCODER),
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
        state=state_of(ENCODER),
        checkpoint=lambda wildcards, output: Path(output[0]).parent,
        corpus_source=configuration.source_of(config, "corpus"),
    shell:
        "python -m symbert --log {log:q} extract-checkpoint --state {params.state:q} --step {wildcards.step:q}"
        " --vocabulary {input.vocabulary:q} --done {input.done:q}"
        " --corpus-source {params.corpus_source:q} --output {params.checkpoint:q}"


OF_CORPUS = ["--corpus-source", configuration.source_of(config, "corpus")]


for extraction, host in [each for each in EXTRACTION.items() if each[1] in EXPERIMENT.other_hosts]:

    rule:
        name:
            extraction
        input:
            done=done_of(host),
            vocabulary=WORD_PIECES if HOSTS[host].reads_corpus else [],
        output:
            expand(f"{of_host(CHECKPOINT, host)}/{{file}}", file=files_of_host(host), allow_missing=True),
        log:
            f"{LOGS}/{extraction}/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.log",
        group:
            checkpoints_together and f"{checkpoints_together}-{host}"
        conda:
            ENVIRONMENT
        params:
            state=state_of(host),
            checkpoint=lambda wildcards, output: Path(output[0]).parent,
            vocabulary=option("vocabulary"),
            corpus_source=OF_CORPUS if HOSTS[host].reads_corpus else [],
        shell:
            "python -m symbert --log {log:q} extract-checkpoint --state {params.state:q} --step {wildcards.step:q}"
            " {params.vocabulary:q} --done {input.done:q} {params.corpus_source:q} --output {params.checkpoint:q}"


EVERYTHING += checkpoints_of_others()
