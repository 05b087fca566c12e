# glue: tasks → token ids → scores of a checkpoint, with every fine-tuning seed.

PARTIAL = "--allow-partial" if EXPERIMENT.config.glue.allow_partial else ""
KEPT = f"--keep-weights {EXPERIMENT.final}" if EXPERIMENT.config.glue.keep_finetuned else ""


localrules:
    prepare_task,


rule prepare_task:
    """Encode the rows of a task as token ids."""
    input:
        ancient(EXPERIMENT.reads("results/tasks/{rows}/{task}.parquet")),
    output:
        "results/tasks/{rows}/{task}.parquet",
    log:
        "results/tasks/{rows}/{task}.log",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 2000 * attempt,
    shell:
        f"exec python -m symbert prepare-task results/tasks/{{wildcards.rows:q}} {{wildcards.task:q}} {PARTIAL} 2> {{log:q}}"


rule score:
    """Fine-tune a checkpoint on all tasks with all seeds, and score it."""
    input:
        ancient([f"{CHECKPOINT}/{file}" for file in CHECKPOINT_FILES]),
        ancient(EXPERIMENT.reads(SCORES)),
    output:
        SCORES,
    log:
        SCORES.replace(".json", ".log"),
    priority: 2
    conda:
        "../../envs/symbert.yaml"
    threads: EXPERIMENT.needs.threads
    resources:
        mem_mb=EXPERIMENT.needs.memory,
        gpu=EXPERIMENT.needs.gpus,
        runtime=lambda wildcards, attempt: 480 * attempt,
    params:
        options=EXPERIMENT.options(SCORES),
    shell:
        "SYMBERT_GPUS={resources.gpu} exec python -m symbert score {output:q} {params.options}"
        f" --threads {{threads}} {KEPT} 2> {{log:q}}"


# Score the fine-tuned models on noisy and out-of-domain rows.
use rule score as score_robustness with:
    input:
        ancient([f"{CHECKPOINT}/{file}" for file in CHECKPOINT_FILES]),
        ancient(EXPERIMENT.reads(ROBUSTNESS)),
    output:
        ROBUSTNESS,
    log:
        ROBUSTNESS.replace(".json", ".log"),
    params:
        options=EXPERIMENT.options(ROBUSTNESS),


# Fine-tune and score a model from elsewhere.
use rule score as score_model with:
    input:
        ancient(EXPERIMENT.reads(SCORES_OF_MODEL)),
    output:
        SCORES_OF_MODEL,
    log:
        SCORES_OF_MODEL.replace(".json", ".log"),
    params:
        options=EXPERIMENT.options(SCORES_OF_MODEL),


# Score fine-tuned models from elsewhere on noisy and out-of-domain rows.
use rule score as score_robustness_model with:
    input:
        ancient(EXPERIMENT.reads(ROBUSTNESS_OF_MODEL)),
    output:
        ROBUSTNESS_OF_MODEL,
    log:
        ROBUSTNESS_OF_MODEL.replace(".json", ".log"),
    params:
        options=EXPERIMENT.options(ROBUSTNESS_OF_MODEL),
