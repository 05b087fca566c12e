# report: counts, losses and scores → the paper's tables and figures, each declared in src/symbert/report.
from symbert.operators import OPERATORS, operator_code
from symbert.report.exhibits import VERBS
from symbert.report.inputs import ReportFiles, report_code
from symbert.sizes import SIZES
from symbert.sources import is_stand_in

PAGE = f"{RESULTS}/report/report.html"
PARAMETERS = f"{RESULTS}/report/parameters.json"
REPORT = ReportFiles(f"{RESULTS}/report", INPUTS | {"parameters": [PARAMETERS]}, OF_SIZE, WORDS, OF_SUITE)
HAS_STAND_INS = is_stand_in(configuration.source_of(config, "glue"))  # of GLUE's tasks: a caption says so
TABLES, FIGURES, TEXTS = ([each for each in REPORT.exhibits if each.kind == kind] for kind in VERBS)
# Others' operators, of imported scores, have no code here to count the parameters of.
KNOWN_OPERATORS = [name for name in SWEEP["attention"] if name in OPERATORS] or ["original"]
COUNTED_SIZES = [size for size in SIZES if size in ("small", "base", *SWEEP["sizes"])]
# On a cluster, which has --jobs, the report is one job, but for what waits for files of all parts of the corpus, through
# which Snakemake would go whenever one of them is done; here each table is a job of its own.
GROUP = "report" if is_on_cluster(workflow) else None
# A parameter of every report rule: editing the report's code, or what it imports from the stages, makes tables and
# figures anew, and nothing else.
CODE = report_code(PROJECT / "src/symbert")
# The runs and scores that were asked for: inputs of the report's targets themselves. A table that lacks an input which
# no rule makes counts as finished where an old one lies there; a target, which has no file, is an error.
WANTED = REPORT.asked_for


localrules:
    tables,
    figures,
    paper_tables,


# Targets ask for all formats: Snakemake makes no lost file that nobody asks for, though its rule has made it before.
rule tables:
    input:
        REPORT.made(TABLES),
        WANTED,


rule figures:
    input:
        REPORT.made(FIGURES),
        WANTED,


EVERYTHING = [*rules.tables.input, *rules.figures.input, *REPORT.made(TEXTS), PAGE, FILES_RECORD]


rule paper_tables:
    input:
        REPORT.made(table for table in TABLES if not table.is_of_experiment),


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
        sizes=COUNTED_SIZES,
        attention=KNOWN_OPERATORS,
        # Of other code or another shape, what is counted is another model.
        models=lambda wildcards: [*map(operator_code, KNOWN_OPERATORS), *(vars(SIZES[size]) for size in COUNTED_SIZES)],
    shell:
        "python -m symbert --log {log:q} count-parameters --sizes {params.sizes:q} --attention {params.attention:q}"
        " --output {output:q}"


for exhibit in REPORT.exhibits:

    rule:
        name:
            exhibit.rule
        input:
            *REPORT.made_before(exhibit),
            **REPORT.made_of(exhibit),
        output:
            (
                report(
                    f"{REPORT.folder}/{exhibit.stem}.{exhibit.formats[0]}",
                    caption="../report/exhibit.rst",
                    category=exhibit.chapter,
                    labels={"shows": exhibit.heading},
                )
                if exhibit not in TEXTS  # which stand on the page
                else f"{REPORT.folder}/{exhibit.stem}.{exhibit.formats[0]}"
            ),
            *[f"{REPORT.folder}/{exhibit.stem}.{suffix}" for suffix in exhibit.formats[1:]],
        log:
            f"{LOGS}/{exhibit.log}",
        group:
            GROUP if exhibit.chapter != "Corpus" else None
        conda:
            ENVIRONMENT
        params:
            code=CODE,
            name=exhibit.id,
            options=REPORT.options(exhibit),  # which Snakemake does not compare: they have inputs in them
            seeds=REPORT.seeds(exhibit),
            caption=exhibit.caption,
            is_of_experiment=exhibit.is_of_experiment,
            has_stand_ins=HAS_STAND_INS,
        shell:
            "python -m symbert --log {log:q} exhibit {params.name} {params.options} --output {output:q}"


rule write_page:
    input:
        tables=REPORT.made(TABLES, slice(1)),
        figures=REPORT.made(FIGURES, slice(1)),
        summary=REPORT.made(TEXTS),
        settings=INPUTS["settings"],
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
        figures=given("figures"),  # scores alone have none
        has_stand_ins=HAS_STAND_INS,
    shell:
        "python -m symbert --log {log:q} write-page --tables {input.tables:q} {params.figures}"
        " --summary {input.summary:q} --settings {input.settings:q} --output {output:q}"
