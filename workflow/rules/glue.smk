# glue: published tasks and one's own → token ids → scores of every seed of one checkpoint.


localrules:
    glue,
    resolve_glue,
    download_task,


rule glue:
    input:
        [final_scores(suite.name) for suite in EXPERIMENT.suites],
        [curve_scores(suite.name) for suite in EXPERIMENT.suites],
        INPUTS["blimp"],
        robustness(),


rule resolve_glue:
    input:
        settings=settings("glue_source"),
    output:
        f"{RESULTS}/glue/sources.json",
    log:
        f"{LOGS}/resolve_glue.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert --log {log:q} resolve-glue --settings {input.settings:q} --output {output:q}"


rule download_task:
    input:
        own_task,
        settings=settings("glue_source"),
        sources=f"{RESULTS}/glue/sources.json",
    output:
        f"{RESULTS}/glue/raw/{{task}}.parquet",
    log:
        f"{LOGS}/download_task/{{task}}.log",
    conda:
        ENVIRONMENT
    resources:
        download=1,
    shell:
        "python -m symbert --log {log:q} download-task --settings {input.settings:q} --sources {input.sources:q} --task {wildcards.task:q} --output {output:q}"


rule prepare_task:
    input:
        raw=rows(RAW_ROWS),
        vocabulary=WORD_PIECES,
        settings=rows_settings,
    output:
        f"{RESULTS}/glue/data/{{task}}.parquet",
    log:
        f"{LOGS}/prepare_task/{{task}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(2000),
    shell:
        "RAYON_NUM_THREADS={threads} python -m symbert --log {log:q} prepare-task --raw {input.raw:q} --task {wildcards.task:q}"
        " --vocabulary {input.vocabulary:q} --settings {input.settings:q} --output {output:q}"


# Of each suite a rule of its own: another suite, or other settings of one, leaves the scores of the others as they are.
for suite in EXPERIMENT.suites:

    rule:
        name:
            suite.rule
        input:
            forced_by_other_seeds(suite),
            checkpoint=checkpoint_of(ENCODER),
            data=rows(PREPARED_ROWS, tasks_of_suite(suite.name, TASKS)),
            settings=settings(suite.name),
        output:
            expand(SCORE, suite=suite.name, task=tasks_of_suite(suite.name, TASKS), allow_missing=True),
        log:
            f"{LOGS}/{suite.rule}/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.log",
        benchmark:
            f"{BENCHMARKS}/{suite.rule}/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.tsv"
        priority: lambda wildcards: LONGER if int(wildcards.step) == FINAL else LONG
        conda:
            ENVIRONMENT
        threads: training_threads
        resources:
            mem_mb=training_memory,
            gpu=lambda wildcards: int(SIZES[wildcards.size].needs_gpu),
            runtime=growing(480),  # what is finished is kept: the next attempt goes on
        params:
            checkpoint=lambda wildcards, input: Path(input.checkpoint[0]).parent,
            state=lambda wildcards, output: Path(output[0]).parent / "state",
            seeds=finetune_seeds,
            kept_elsewhere=kept_elsewhere(suite.name),
        shell:
            f"{GPUS_GIVEN} "
            "exec python -m symbert --log {log:q} finetune --checkpoint {params.checkpoint:q} --data {input.data:q}"
            " --settings {input.settings:q} --size {wildcards.size:q} --attention {wildcards.attention:q}"
            " --pretrain-seed {wildcards.seed:q} --step {wildcards.step:q} --finetune-seeds {params.seeds:q}"
            " --state {params.state:q} --output {output:q} --threads {threads}"
            f" {KEEP_FINETUNED} {{params.kept_elsewhere:q}}"


rule prepare_robustness:
    input:
        raw=rows(RAW_ROWS),
        vocabulary=WORD_PIECES,
        settings=settings("task"),
        robustness=settings("robustness"),
    output:
        f"{RESULTS}/glue/data/{{task}}.robustness.parquet",
    log:
        f"{LOGS}/prepare_robustness/{{task}}.log",
    conda:
        ENVIRONMENT
    resources:
        mem_mb=growing(2000),
    shell:
        "RAYON_NUM_THREADS={threads} python -m symbert --log {log:q} prepare-robustness --raw {input.raw:q} --task {wildcards.task:q}"
        " --vocabulary {input.vocabulary:q} --settings {input.settings:q} --robustness {input.robustness:q}"
        " --output {output:q}"


rule measure_robustness:
    input:
        checkpoint=checkpoint_of(ENCODER),
        data=rows(PREPARED_ROWS, MEASURED_TASKS),
        robustness=rows(EDITED_ROWS, MEASURED_TASKS),
        scores=measured_scores,
        settings=settings("glue"),
    output:
        expand(ROBUSTNESS, task=MEASURED_TASKS, allow_missing=True),
    log:
        f"{LOGS}/measure_robustness/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.log",
    benchmark:
        f"{BENCHMARKS}/measure_robustness/{{size}}-{{attention}}-seed-{{seed}}-step-{{step}}.tsv"
    priority: LONG
    conda:
        ENVIRONMENT
    threads: training_threads
    resources:
        mem_mb=training_memory,
        gpu=lambda wildcards: int(SIZES[wildcards.size].needs_gpu),
        runtime=growing(480),  # what is finished is kept: the next attempt goes on
    params:
        checkpoint=lambda wildcards, input: Path(input.checkpoint[0]).parent,
        state=lambda wildcards, output: Path(output[0]).parents[1] / "state",
        seeds=SWEEP["finetune_seeds"],
        kept_elsewhere=kept_elsewhere("glue"),
    shell:
        f"{GPUS_GIVEN} "
        "exec python -m symbert --log {log:q} measure-robustness --checkpoint {params.checkpoint:q} --data {input.data:q}"
        " --robustness {input.robustness:q} --settings {input.settings:q} --size {wildcards.size:q}"
        " --attention {wildcards.attention:q} --pretrain-seed {wildcards.seed:q} --step {wildcards.step:q}"
        " --finetune-seeds {params.seeds:q} --state {params.state:q} --output {output:q} --threads {threads}"
        f" {KEEP_MEASURED} {{params.kept_elsewhere:q}}"
