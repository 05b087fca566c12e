# glue: tasks → token ids → scores of a checkpoint, with every fine-tuning seed.


localrules:
    prepare_task,


rule prepare_task:
    input:
        ancient(EXPERIMENT.read_by_task),
    output:
        "results/tasks/{rows}/{task}.parquet",
    log:
        "results/tasks/{rows}/{task}.log",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
    shell:
        f"python -m symbert --log {{log:q}} prepare-task {{output:q}} {EXPERIMENT.allow_partial}"


rule score:
    input:
        ancient([f"{CHECKPOINT}/{file}" for file in CHECKPOINT_FILES]),
        ancient(EXPERIMENT.read_by_score),
    output:
        SCORES,
    log:
        SCORES.replace(".json", ".log"),
    priority: 2
    conda:
        "../../envs/symbert.yaml"
    threads: EXPERIMENT.threads
    resources:
        mem_mb=EXPERIMENT.memory,
        gpu=EXPERIMENT.gpus,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        request=EXPERIMENT.request_of,
    shell:
        "SYMBERT_GPUS={resources.gpu} exec python -m symbert --log {log:q} score {output:q} {params.request}"
        f" --threads {{threads}} {EXPERIMENT.keep_weights}"


# The fine-tuned models again, on noise and out-of-domain sets.
use rule score as score_robustness with:
    output:
        ROBUSTNESS,
    log:
        ROBUSTNESS.replace(".json", ".log"),
