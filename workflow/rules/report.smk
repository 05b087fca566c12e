# report: counts, losses and scores → the paper's tables and figures.


rule tables:
    input:
        expand(
            f"{TABLES}/{{table}}.csv",
            table=[
                "corpus",
                "corpus_categories",
                "table1_operators",
                "table2_parameters",
                "table2_training",
                "table3_published",
                "table3_glue",
            ],
        ),


rule figures:
    input:
        f"{FIGURES}/corpus.png",
        expand(f"{FIGURES}/figure2_{{size}}.png", size=SWEEP["sizes"]),
        f"{FIGURES}/figure3_checkpoints.png" if curve_scores() else [],


rule paper_tables:
    input:
        expand(f"{TABLES}/{{table}}.csv", table=["table1_operators", "table2_parameters", "table3_published"]),


rule count_parameters:
    output:
        PARAMETERS,
    log:
        f"{LOGS}/count_parameters.log",
    conda:
        ENVIRONMENT
    params:
        sizes=sorted({"small", "base", *SWEEP["sizes"]}, key=list(SIZES).index),
        attention=SWEEP["attention"],
    shell:
        "python -m symbert count-parameters --sizes {params.sizes:q} --attention {params.attention:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


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


rule tabulate_operators:
    input:
        parameters=PARAMETERS,
    output:
        table("table1_operators", "table1_operators", "Table 1: parameters per operator"),
    log:
        f"{LOGS}/tabulate_operators.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-operators --parameters {input.parameters:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_parameters:
    input:
        parameters=PARAMETERS,
    output:
        table("table2_parameters", "table2_parameters", "Table 2: parameters per model"),
    log:
        f"{LOGS}/tabulate_parameters.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-parameters --parameters {input.parameters:q} --output {output:q}"
        " 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


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


rule tabulate_published:
    output:
        table("table3_published", "table3_published", "Table 3 as the paper printed it"),
    log:
        f"{LOGS}/tabulate_published.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert tabulate-published --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_glue:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("table3_glue", "table3_glue", "Table 3: GLUE scores of this experiment"),
    log:
        f"{LOGS}/tabulate_glue.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert tabulate-glue --scores {input.scores:q} --settings {input.settings:q}"
        " --finetune-seeds {params.seeds:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule draw_loss:
    input:
        done=lambda wildcards: runs(f"{RUN}/done.json", [wildcards.size]),
        metrics=lambda wildcards: runs(f"{RUN}/metrics.jsonl", [wildcards.size]),
        settings=settings("report"),
    output:
        figure("figure2_{size}", "figure2", "Figure 2: validation loss, {size}"),
    log:
        f"{LOGS}/draw_loss/{{size}}.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert draw-loss --done {input.done:q} --metrics {input.metrics:q} --settings {input.settings:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule draw_checkpoints:
    input:
        scores=curve_scores(),
        settings=settings("report"),
    output:
        figure("figure3_checkpoints", "figure3", "Figure 3: GLUE score over checkpoints"),
    log:
        f"{LOGS}/draw_checkpoints.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=CURVE["finetune_seeds"],
    shell:
        "python -m symbert draw-checkpoints --scores {input.scores:q} --settings {input.settings:q}"
        " --finetune-seeds {params.seeds:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"
