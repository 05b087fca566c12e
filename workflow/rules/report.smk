# report: all scores and losses → every table and figure of the experiment, and one page.


rule measure_speeds:
    """Measure the seconds of a training step for each operator of a size."""
    input:
        ancient(EXPERIMENT.reads("results/measured/speeds-{size}-{key}/speeds.json")),
    output:
        "results/measured/speeds-{size}-{key}/speeds.json",
    log:
        "results/measured/speeds-{size}-{key}/log.txt",
    conda:
        "../../envs/symbert.yaml"
    threads: EXPERIMENT.needs.threads
    resources:
        mem_mb=EXPERIMENT.needs.memory,
        gpu=EXPERIMENT.needs.gpus,
    shell:
        "SYMBERT_GPUS={resources.gpu} exec python -m symbert measure-speeds {output:q} --threads {threads} 2> {log:q}"


rule measure_anatomy:
    """Describe the attention of trained and untrained heads."""
    input:
        ancient(EXPERIMENT.reads("results/measured/anatomy-{key}/anatomy.csv")),
    output:
        "results/measured/anatomy-{key}/anatomy.csv",
    log:
        "results/measured/anatomy-{key}/log.txt",
    priority: 1
    conda:
        "../../envs/symbert.yaml"
    shell:
        "exec python -m symbert measure-anatomy {output:q} 2> {log:q}"


rule report:
    """Write all tables and figures of the experiment, and the page that shows them."""
    input:
        ancient(EXPERIMENT.input_files),
        *map(ancient, CHOSEN),
    output:
        report(
            f"{EXPERIMENT.folder}/report/report.html",
            caption="../report/page.rst",
            category="All on one page",
            labels={"shows": "Every table and figure"},
        ),
        EXPERIMENT.reported,
    log:
        f"{EXPERIMENT.folder}/report.log",
    conda:
        "../../envs/symbert.yaml"
    resources:
        mem_mb=lambda wildcards, attempt: 4000 * attempt,
    shell:
        f"exec python -m symbert report {EXPERIMENT.folder} 2> {{log:q}}"


rule paper:
    """Write the paper's tables, figures and claims from its authors' results, in seconds."""
    output:
        directory("results/paper"),
    log:
        "results/paper.log",
    conda:
        "../../envs/symbert.yaml"
    shell:
        "exec python -m symbert paper 2> {log:q}"
