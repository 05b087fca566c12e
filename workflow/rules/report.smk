# report: counts, losses and scores → the paper's tables and figures.


localrules:
    tables,
    figures,
    paper_tables,


rule tables:
    input:
        page("tables", TABLE_FORMATS, REPORTED_TABLES),
        wanted(),


rule figures:
    input:
        page("figures", FIGURE_FORMATS, REPORTED_FIGURES),
        wanted(),


rule paper_tables:
    input:
        page("tables", TABLE_FORMATS, PAPER_TABLES),


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
        # Of other code or another shape, what is counted is another model.
        models=lambda wildcards: [*map(operator_code, SWEEP["attention"]), *(vars(SIZES[size]) for size in SIZES)],
    shell:
        "python -m symbert --log {log:q} count-parameters --sizes {params.sizes:q} --attention {params.attention:q}"
        " --output {output:q}"


rule tabulate_operators:
    input:
        parameters=PARAMETERS,
    output:
        table("table1_operators"),
    log:
        f"{LOGS}/tabulate_operators.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} tabulate-operators --parameters {input.parameters:q} --output {output:q}"


rule tabulate_parameters:
    input:
        parameters=PARAMETERS,
    output:
        table("table2_parameters"),
    log:
        f"{LOGS}/tabulate_parameters.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} tabulate-parameters --parameters {input.parameters:q} --output {output:q}"


rule tabulate_published:
    output:
        table("table3_published"),
    log:
        f"{LOGS}/tabulate_published.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} tabulate-published --output {output:q}"


rule tabulate_glue:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("table3_glue"),
    log:
        f"{LOGS}/tabulate_glue.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} tabulate-glue {params.scores} --settings {input.settings:q}"
        " --finetune-seeds {params.seeds:q} --output {output:q}"


rule draw_loss:
    input:
        done=lambda wildcards: losses("done.json", [wildcards.size]),
        metrics=lambda wildcards: losses("metrics.jsonl", [wildcards.size]),
        settings=settings("report"),
    output:
        figure("figure2_{size}"),
    log:
        f"{LOGS}/draw_loss/{{size}}.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        done=given("done"),
        metrics=given("metrics"),
    shell:
        "python -m symbert --log {log:q} draw-loss {params.done} {params.metrics} --settings {input.settings:q}"
        " --output {output:q}"


rule draw_checkpoints:
    input:
        scores=curve_scores(),
        settings=settings("report"),
    output:
        figure("figure3_checkpoints"),
    log:
        f"{LOGS}/draw_checkpoints.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        seeds=CURVE["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} draw-checkpoints {params.scores} --settings {input.settings:q}"
        " --finetune-seeds {params.seeds:q} --output {output:q}"


rule tabulate_scores:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("scores"),
    log:
        f"{LOGS}/tabulate_scores.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} tabulate-scores {params.scores} --settings {input.settings:q} --finetune-seeds {params.seeds:q}"
        " --output {output:q}"


rule tabulate_statistics:
    input:
        scores=final_scores(),
        settings=settings("report"),
    output:
        table("statistics"),
    log:
        f"{LOGS}/tabulate_statistics.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        seeds=SWEEP["finetune_seeds"],
    shell:
        "python -m symbert --log {log:q} tabulate-statistics {params.scores} --settings {input.settings:q} --finetune-seeds {params.seeds:q}"
        " --output {output:q}"


rule tabulate_milestones:
    input:
        done=losses("done.json"),
        metrics=losses("metrics.jsonl"),
        scores=curve_scores(),
        settings=settings("report"),
    output:
        table("milestones"),
    log:
        f"{LOGS}/tabulate_milestones.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        done=given("done"),
        metrics=given("metrics"),
        seeds=lambda wildcards, input: ["--finetune-seeds", *CURVE["finetune_seeds"]] if input.scores else [],
    shell:
        "python -m symbert --log {log:q} tabulate-milestones {params.done} {params.metrics} {params.scores} --settings {input.settings:q}"
        " {params.seeds:q}"
        " --output {output:q}"


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
        table("claims"),
    log:
        f"{LOGS}/tabulate_claims.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        scores=given("scores"),
        robustness=given("robustness"),
        done=given("done"),
        metrics=given("metrics"),
        timing=given("timing"),
        curve=given("curve"),
        seeds=SWEEP["finetune_seeds"],
        curve_seeds=lambda wildcards, input: ["--curve-seeds", *CURVE["finetune_seeds"]] if input.curve else [],
    shell:
        "python -m symbert --log {log:q} tabulate-claims --parameters {input.parameters:q} {params.scores} --finetune-seeds {params.seeds:q}"
        " {params.curve} {params.curve_seeds:q} {params.done} {params.metrics} {params.timing}"
        " {params.robustness} --settings {input.settings:q}"
        " --output {output:q}"


rule draw_operators:
    output:
        figure("figure1_operators"),
    log:
        f"{LOGS}/draw_operators.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} draw-operators --output {output:q}"


rule write_page:
    input:
        tables=page("tables", TABLE_FORMATS[:1], REPORTED_TABLES),
        figures=page("figures", FIGURE_FORMATS[:1], REPORTED_FIGURES),
        settings=settings("report"),
    output:
        report(
            PAGE, caption="../report/page.rst", category="All on one page", labels={"shows": "Every table and figure"}
        ),
    log:
        f"{LOGS}/write_page.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} write-page --tables {input.tables:q} --figures {input.figures:q}"
        " --settings {input.settings:q} --output {output:q}"


rule tabulate_runs:
    input:
        provenance=provenance(),
        settings=settings("report"),
    output:
        table("runs"),
    log:
        f"{LOGS}/tabulate_runs.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        provenance=given("provenance"),
        sessions=sessions,
    shell:
        "python -m symbert --log {log:q} tabulate-runs {params.provenance} {params.sessions} --settings {input.settings:q}"
        " --output {output:q}"


rule tabulate_provenance:
    input:
        final_scores(),
        curve_scores(),
        robustness(),
        runs=DESCRIBED_RUNS,
        settings=DESCRIBED_SETTINGS,
    output:
        table("provenance"),
    log:
        f"{LOGS}/tabulate_provenance.log",
    conda:
        ENVIRONMENT
    params:
        code=CODE,
        runs=given("runs"),
        sessions=sessions,
    shell:
        "python -m symbert --log {log:q} tabulate-provenance --settings {input.settings:q} {params.runs} {params.sessions}"
        " --output {output:q}"
