# report, continued: tables and figures of what only an experiment of one's own has: corpus, training, robustness.


rule tabulate_corpus:
    input:
        counts=COUNTS,
        records=records(PARTS),
        manifest=f"{SHARDS}/manifest.json",
        settings=settings("report"),
    output:
        table("corpus", "corpus", "Corpus: read, dropped by reason, kept"),
    log:
        f"{LOGS}/tabulate_corpus.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-corpus --counts {input.counts:q} --records {input.records:q} --manifest {input.manifest:q}"
        " --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_categories:
    input:
        counts=COUNTS,
        settings=settings("report"),
    output:
        table("corpus_categories", "corpus_categories", "Blocked categories: OSCAR's metadata and UT1"),
    log:
        f"{LOGS}/tabulate_categories.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-categories --counts {input.counts:q} --settings {input.settings:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule draw_corpus:
    input:
        counts=COUNTS,
        records=records(PARTS),
        settings=settings("report"),
    output:
        figure("corpus", "corpus_figure", "Corpus: perplexity, length and tokens of documents"),
    log:
        f"{LOGS}/draw_corpus.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert draw-corpus --counts {input.counts:q} --records {input.records:q}"
        " --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_training:
    input:
        done=runs(f"{RUN}/done.json"),
        metrics=runs(f"{RUN}/metrics.jsonl"),
        timing=runs(f"{RUN}/timing.json"),
        settings=settings("report"),
    output:
        table("table2_training", "table2_training", "Table 2, continued: training"),
    log:
        f"{LOGS}/tabulate_training.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-training --done {input.done:q} --metrics {input.metrics:q}"
        " --timing {input.timing:q} --settings {input.settings:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_robustness:
    input:
        scores=final_scores(),
        robustness=robustness(),
        settings=settings("report"),
    output:
        table("robustness", "robustness", "Robustness: noise and out-of-domain sets"),
    log:
        f"{LOGS}/tabulate_robustness.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert tabulate-robustness --scores {input.scores:q} --robustness {input.robustness:q}"
        " --settings {input.settings:q} --finetune-seeds {params.seeds:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule draw_robustness:
    input:
        scores=final_scores(),
        robustness=robustness(),
        settings=settings("report"),
    output:
        figure("robustness", "robustness_figure", "Robustness: noise and out-of-domain sets"),
    log:
        f"{LOGS}/draw_robustness.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert draw-robustness --scores {input.scores:q} --robustness {input.robustness:q}"
        " --settings {input.settings:q} --finetune-seeds {params.seeds:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"
