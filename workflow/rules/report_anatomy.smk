# report: what the heads of checkpoints look like, and what operators can express, where `sweep.anatomy` and
# `sweep.probes` ask for it.
PROBED = SWEEP["probes"]
LOOKED_AT = [
    checkpoint_folder(run, step) for run in EXPERIMENT.runs() for step in sorted({*EXPERIMENT.steps(run), FINAL} - {0})
]


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
