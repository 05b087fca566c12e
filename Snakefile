# symbert: from web text to every table and figure of arXiv 2406.06366.
# Data flows one way: corpus → pretrain → glue → report. `snakemake --cores all` makes everything.
from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common.smk"


if config["study"]:

    include: "workflow/rules/study.smk"

elif config["imported"]:

    include: "workflow/rules/imported.smk"
    include: "workflow/rules/report.smk"

else:

    include: "workflow/rules/experiment.smk"
    include: "workflow/rules/own.smk"
    include: "workflow/rules/report.smk"
    include: "workflow/rules/jobs.smk"
    include: "workflow/rules/settings.smk"
    include: "workflow/rules/corpus_sources.smk"
    include: "workflow/rules/corpus.smk"
    include: "workflow/rules/pretrain.smk"
    include: "workflow/rules/glue.smk"
    include: "workflow/rules/glue_blimp.smk"
    include: "workflow/rules/report_anatomy.smk"


report: "workflow/report/workflow.rst"


localrules:
    all,


rule all:
    default_target: True
    input:
        EVERYTHING,


onsuccess:
    print(f"symbert: done; {PAGE if Path(PAGE).exists() else RESULTS}", file=sys.stderr)


onerror:
    print(f"symbert: a step failed; its message is above and in {LOGS}", file=sys.stderr)
