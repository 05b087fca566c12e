# report: how fast operators train side by side; and what the heads of checkpoints look like, and what operators can
# express, where `sweep.anatomy` and `sweep.probes` ask for it.
PROBED = SWEEP["probes"]
LOOKED_AT = [
    checkpoint_folder(run, step) for run in EXPERIMENT.runs() for step in sorted({*EXPERIMENT.steps(run), FINAL} - {0})
]


AT_A_TIME = (
    f"--micro-batch-size {config['pretrain']['micro_batch_size']}" if config["pretrain"]["micro_batch_size"] else ""
)


rule measure_speeds:
    input:
        manifest=MANIFEST,
        settings=settings("pretrain"),
        models=lambda wildcards: [settings(f"model-{wildcards.size}-{name}") for name in operators_of(wildcards)],
    output:
        f"{RESULTS}/report/speeds/{{size}}.json",
    log:
        f"{LOGS}/measure_speeds/{{size}}.log",
    conda:
        ENVIRONMENT
    threads: training_threads
    resources:
        mem_mb=lambda wildcards, attempt: 2 * training_memory(wildcards, attempt),
        gpu=lambda wildcards: int(SIZES[wildcards.size].needs_gpu),
    params:
        operators=operators_of,
    shell:
        f"{GPUS_GIVEN} exec python -m symbert --log {{log:q}} measure-speeds --manifest {{input.manifest:q}}"
        " --settings {input.settings:q} --size {wildcards.size:q} --attention {params.operators:q}"
        f" --threads {{threads}} {AT_A_TIME} --output {{output:q}}"


rule anatomy:
    input:
        weights=expand("{folder}/model.safetensors", folder=LOOKED_AT),
        configs=expand("{folder}/config.json", folder=LOOKED_AT),
        manifest=MANIFEST,
    output:
        f"{RESULTS}/report/anatomy.csv",
    log:
        f"{LOGS}/anatomy.log",
    group:
        GROUP
    conda:
        ENVIRONMENT
    params:
        checkpoints=LOOKED_AT,
    shell:
        "python -m symbert --log {log:q} anatomy {params.checkpoints:q} --with-start --manifest {input.manifest:q}"
        " --output {output:q}"


rule probe:
    output:
        f"{RESULTS}/report/probes.csv",
    log:
        f"{LOGS}/probe.log",
    priority: LONG
    group:
        GROUP
    conda:
        ENVIRONMENT
    params:
        operators=PROBED,
        codes=[operator_code(name) for name in PROBED],
    shell:
        "python -m symbert --log {log:q} probe {params.operators:q} --output {output:q}"
