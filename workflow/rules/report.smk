# report: counts, losses and scores → the paper's tables and figures.


localrules:
    tables,
    figures,
    paper_tables,


rule tables:
    input:
        page("tables", "csv", REPORTED_TABLES),


rule figures:
    input:
        page("figures", "png", REPORTED_FIGURES),


rule paper_tables:
    input:
        page("tables", "csv", PAPER_TABLES),


rule count_parameters:
    output:
        PARAMETERS,
    log:
        f"{LOGS}/count_parameters.log",
    conda:
        ENVIRONMENT
    params:
        sizes=[size for size in SIZES if size in ("small", "base", *SWEEP["sizes"])],
        attention=SWEEP["attention"],
    shell:
        "python -m symbert count-parameters --sizes {params.sizes:q} --attention {params.attention:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


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
        done=lambda wildcards: losses("done.json", [wildcards.size]),
        metrics=lambda wildcards: losses("metrics.jsonl", [wildcards.size]),
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


rule tabulate_scores:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("scores", "scores", "Scores of every seed"),
    log:
        f"{LOGS}/tabulate_scores.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert tabulate-scores --scores {input.scores:q} --settings {input.settings:q} --finetune-seeds {params.seeds:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_statistics:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("statistics", "statistics", "Differences between operators, with intervals"),
    log:
        f"{LOGS}/tabulate_statistics.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert tabulate-statistics --scores {input.scores:q} --settings {input.settings:q} --finetune-seeds {params.seeds:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_milestones:
    input:
        done=losses("done.json"),
        metrics=losses("metrics.jsonl"),
        scores=curve_scores(),
        settings=settings("report"),
    output:
        table("milestones", "milestones", "Milestones: plateau and 95 %"),
    log:
        f"{LOGS}/tabulate_milestones.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        done=option("done"),
        metrics=option("metrics"),
        scores=option("scores"),
        seeds=lambda wildcards, input: ["--finetune-seeds", *CURVE["finetune_seeds"]] if input.scores else [],
    shell:
        "python -m symbert tabulate-milestones {params.done:q} {params.metrics:q} {params.scores:q} --settings {input.settings:q}"
        " {params.seeds:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule tabulate_claims:
    input:
        parameters=PARAMETERS,
        scores=final_scores(),
        curve=curve_scores(),
        done=losses("done.json"),
        metrics=losses("metrics.jsonl"),
        timing=timings(),
        robustness=robustness(),
        settings=settings("report"),
    output:
        table("claims", "claims", "Claims of the papers and what became of them"),
    log:
        f"{LOGS}/tabulate_claims.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        curve=option("curve"),
        done=option("done"),
        metrics=option("metrics"),
        timing=option("timing"),
        robustness=option("robustness"),
        seeds=SWEEP["finetune_seeds"],
        curve_seeds=lambda wildcards, input: ["--curve-seeds", *CURVE["finetune_seeds"]] if input.curve else [],
    shell:
        "python -m symbert tabulate-claims --parameters {input.parameters:q} --scores {input.scores:q} --finetune-seeds {params.seeds:q}"
        " {params.curve:q} {params.curve_seeds:q} {params.done:q} {params.metrics:q} {params.timing:q}"
        " {params.robustness:q} --settings {input.settings:q}"
        " --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule draw_operators:
    output:
        figure("figure1_operators", "figure1", "Figure 1: the operators"),
    log:
        f"{LOGS}/draw_operators.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert draw-operators --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"


rule write_page:
    input:
        tables=page("tables", "html", REPORTED_TABLES),
        figures=page("figures", "png", REPORTED_FIGURES),
        provenance=provenance(),
        settings=settings("report"),
    output:
        PAGE,
    log:
        f"{LOGS}/write_page.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert write-page --tables {input.tables:q} --figures {input.figures:q} --provenance {input.provenance:q}"
        " --settings {input.settings:q} --output {output:q} 2> >(trap '' INT TERM USR1; exec tee {log:q} >&2)"
