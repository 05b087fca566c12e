# pretrain: a run per architecture, model and seed, and the checkpoints taken from it.

from symbert.pretrain.launch import launcher, options_of_training

OF_JOB = "results/runs/{wildcards.architecture}/{wildcards.model:q}/seed-{wildcards.seed}"


rule pretrain:
    input:
        ancient(EXPERIMENT.reads_of_training(lambda **batch: checkpoints.pretrain_together.get(**batch))),
    output:
        f"{RUN}/done.json",
        f"{RUN}/metrics.jsonl",
        f"{RUN}/timing.json",
    log:
        f"{RUN}/log.txt",
    priority: 3
    conda:
        "../../envs/symbert.yaml"
    threads: EXPERIMENT.needs_of_training.threads
    resources:
        **EXPERIMENT.nodes,
        mem_mb=EXPERIMENT.needs_of_training.memory,
        runtime=1440,  # minutes of a session; a run takes as many sessions as it needs
    shell:
        f"SYMBERT_GPUS={{resources.gpu}} exec {launcher(EXPERIMENT.config.pretrain)} pretrain {OF_JOB}"
        f" {options_of_training(EXPERIMENT.config.pretrain)} 2> {{log:q}}"


checkpoint pretrain_together:
    input:
        ancient(EXPERIMENT.reads("results/together/{batch}/ended.json")),
    output:
        "results/together/{batch}/ended.json",
    log:
        "results/together/{batch}/log.txt",
    priority: 3
    conda:
        "../../envs/symbert.yaml"
    threads: EXPERIMENT.needs_together.threads
    resources:
        mem_mb=EXPERIMENT.needs_together.memory,
        gpu=EXPERIMENT.needs_together.gpus,
        runtime=1440,
    shell:
        "SYMBERT_GPUS={resources.gpu} exec python -m symbert pretrain-together {output:q}"
        f" {options_of_training(EXPERIMENT.config.pretrain)} 2> {{log:q}}"


rule extract:
    input:
        ancient(f"{RUN}/done.json"),
        ancient(EXPERIMENT.reads(RUN)),
    output:
        [f"{CHECKPOINT}/{file}" for file in CHECKPOINT_FILES],
    log:
        f"{RUN}/step-{{step}}.log",
    priority: 3
    group:
        "extract-{architecture}-{model}-{seed}"
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
    shell:
        f"exec python -m symbert extract {OF_JOB} {{wildcards.step}} 2> {{log:q}}"
