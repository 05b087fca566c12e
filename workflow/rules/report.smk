# report: counts, losses and scores → the paper's tables and figures, each declared in src/symbert/report.


localrules:
    tables,
    figures,
    paper_tables,


rule tables:
    input:
        pages([exhibit for exhibit in REPORTED if exhibit.kind == "table"]),
        wanted(),


rule figures:
    input:
        pages([exhibit for exhibit in REPORTED if exhibit.kind == "figure"]),
        wanted(),


rule paper_tables:
    input:
        pages([exhibit for exhibit in REPORTED if exhibit.kind == "table" and not exhibit.is_of_experiment]),


rule count_parameters:
    output:
        PARAMETERS,
    log:
        f"{LOGS}/count_parameters.log",
    group:
        GROUP
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


for exhibit in REPORTED:

    rule:
        name:
            exhibit.rule
        input:
            *[file for read in exhibit.follows for files in files_of(read).values() for file in files],
            **made_of(exhibit),
        output:
            outputs(exhibit),
        log:
            f"{LOGS}/{exhibit.log}",
        group:
            GROUP
        conda:
            ENVIRONMENT
        params:
            code=CODE,
            name=exhibit.id,
            options=options(exhibit),  # which Snakemake does not compare: they have inputs in them
            seeds=[WORDS[option] for read in read_by(exhibit) for option in options_of(read) if "seeds" in option],
            caption=exhibit.caption,
            is_of_experiment=exhibit.is_of_experiment,
        shell:
            "python -m symbert --log {log:q} exhibit {params.name} {params.options} --output {output:q}"


rule write_page:
    input:
        tables=pages([exhibit for exhibit in REPORTED if exhibit.kind == "table"], slice(1)),
        figures=pages([exhibit for exhibit in REPORTED if exhibit.kind == "figure"], slice(1)),
        settings=settings("report"),
    output:
        report(
            PAGE, caption="../report/page.rst", category="All on one page", labels={"shows": "Every table and figure"}
        ),
    log:
        f"{LOGS}/write_page.log",
    group:
        GROUP
    conda:
        ENVIRONMENT
    params:
        code=CODE,
    shell:
        "python -m symbert --log {log:q} write-page --tables {input.tables:q} --figures {input.figures:q}"
        " --settings {input.settings:q} --output {output:q}"
