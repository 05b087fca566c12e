# report, continued: tables and figures of what only an experiment of one's own has: corpus, training, robustness, hours.


rule tabulate_corpus:
    input:
        counts=COUNTS,
        records=records(PARTS),
        manifest=f"{SHARDS}/manifest.json",
        settings=settings("report"),
    output:
        table("corpus"),
    log:
        f"{LOGS}/tabulate_corpus.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        counts=given("counts"),
        records=given("records"),
    shell:
        "python -m symbert --log {log:q} tabulate-corpus {params.counts} {params.records} --manifest {input.manifest:q}"
        " --settings {input.settings:q} --output {output:q}"


rule tabulate_categories:
    input:
        counts=COUNTS,
        settings=settings("report"),
    output:
        table("corpus_categories"),
    log:
        f"{LOGS}/tabulate_categories.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        counts=given("counts"),
    shell:
        "python -m symbert --log {log:q} tabulate-categories {params.counts} --settings {input.settings:q}"
        " --output {output:q}"


rule draw_corpus:
    input:
        counts=COUNTS,
        records=records(PARTS),
        settings=settings("report"),
    output:
        figure("corpus"),
    log:
        f"{LOGS}/draw_corpus.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        counts=given("counts"),
        records=given("records"),
    shell:
        "python -m symbert --log {log:q} draw-corpus {params.counts} {params.records}"
        " --settings {input.settings:q} --output {output:q}"


rule tabulate_training:
    input:
        done=runs(f"{RUN}/done.json"),
        metrics=runs(f"{RUN}/metrics.jsonl"),
        timing=runs(f"{RUN}/timing.json"),
        settings=settings("report"),
    output:
        table("table2_training"),
    log:
        f"{LOGS}/tabulate_training.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        done=given("done"),
        metrics=given("metrics"),
        timing=given("timing"),
    shell:
        "python -m symbert --log {log:q} tabulate-training {params.done} {params.metrics}"
        " {params.timing} --settings {input.settings:q} --output {output:q}"


rule tabulate_robustness:
    input:
        scores=final_scores(),
        robustness=robustness(),
        settings=settings("report"),
    output:
        table("robustness"),
    log:
        f"{LOGS}/tabulate_robustness.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        robustness=given("robustness"),
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} tabulate-robustness {params.scores} {params.robustness}"
        " --settings {input.settings:q} --finetune-seeds {params.seeds:q} --output {output:q}"


rule draw_robustness:
    input:
        scores=final_scores(),
        robustness=robustness(),
        settings=settings("report"),
    output:
        figure("robustness"),
    log:
        f"{LOGS}/draw_robustness.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        robustness=given("robustness"),
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} draw-robustness {params.scores} {params.robustness}"
        " --settings {input.settings:q} --finetune-seeds {params.seeds:q} --output {output:q}"


rule tabulate_settings:
    input:
        settings=settings("report"),
    output:
        table("settings"),
    log:
        f"{LOGS}/tabulate_settings.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} tabulate-settings --settings {input.settings:q} --output {output:q}"


rule tabulate_hours:
    input:
        final_scores(),
        curve_scores(),
        robustness(),
        runs=DESCRIBED_RUNS,
    output:
        table("hours"),
    log:
        f"{LOGS}/tabulate_hours.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        benchmarks=BENCHMARKS,
        runs=given("runs"),
        sessions=sessions,
    shell:
        "python -m symbert --log {log:q} tabulate-hours --benchmarks {params.benchmarks:q} {params.runs} {params.sessions}"
        " --output {output:q}"
