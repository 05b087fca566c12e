# pretrain: a run per architecture, model and seed, the choice of learning rates, and the checkpoints taken from runs.

from symbert.pretrain.launch import launcher, options_of_training
from symbert.pretrain.tuning import ChooseRates

OF_JOB = "results/runs/{wildcards.architecture}/{wildcards.model:q}/seed-{wildcards.seed}"


rule pretrain:
    """Pre-train one model with one operator and one seed; an interrupted run resumes."""
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


# Where rates are tuned, which of the runs at all rates are compared; what waits for these runs is `CHOSEN`. Elsewhere
# there is no checkpoint, with which each job of a cluster would plan all rules.
if EXPERIMENT.tuned:

    localrules:
        choose_rates,

    checkpoint choose_rates:
        """Choose the learning rate of each point of a tuned grid."""
        input:
            ancient(EXPERIMENT.reads(ChooseRates.outputs()["rates"])),
        output:
            **ChooseRates.outputs(),
        log:
            "results/tuned/rates-{key}/log.txt",
        priority: 4
        conda:
            "../../envs/symbert.yaml"
        shell:
            "exec python -m symbert choose-rates {output:q} 2> {log:q}"


CHOSEN = EXPERIMENT.once_chosen(lambda **choice: checkpoints.choose_rates.get(**choice))


# Where runs are trained together, their own jobs take the results.
if EXPERIMENT.together:

    checkpoint pretrain_together:
        """Train many small runs as one model."""
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
    """Write a checkpoint of a run as a folder in Hugging Face's layout."""
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
