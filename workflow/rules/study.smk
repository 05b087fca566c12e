# A study: texts, cells of runs, and the page that answers its question. `--config study=NAME` reads studies/NAME.yaml.
import json

from symbert.settings import hash_of, values_of
from symbert.study import design

STUDIES = PROJECT / "studies"
STUDY_FILE = STUDIES / f"{config['study']}.yaml"
RESULTS = f"results/studies/{config['study']}"
LOGS = f"{RESULTS}/logs"
SHARED = "results/studies"  # of all studies: a run that one of them has is not trained again

with one_line_errors():
    STUDY = design.read_study(STUDY_FILE)
    CELLS = {cell.name: (cell, seeds) for cell, seeds in design.seeds_by_cell(STUDY).items()}
    TEXTS = {f"{name}-{hash_of(text)}": text for name, text in STUDY.texts.items()}


wildcard_constraints:
    text="|".join(TEXTS),
    cell="|".join(CELLS),


def manifest_of(wildcards):
    """The rows that a cell is trained on."""
    cell, _ = CELLS[wildcards.cell]
    return f"{SHARED}/texts/{cell.text_name}-{hash_of(cell.text)}/manifest.json"


rule write_study_text:
    output:
        f"{SHARED}/texts/{{text}}/manifest.json",
    log:
        f"{LOGS}/write_study_text/{{text}}.log",
    conda:
        ENVIRONMENT
    params:
        text=lambda wildcards: json.dumps(values_of(TEXTS[wildcards.text])),
    shell:
        "python -m symbert --log {log:q} write-study-text --text {params.text:q} --output {output:q}"


rule train_cell:
    input:
        manifest=manifest_of,
    output:
        f"{RESULTS}/cells/{{cell}}.json",
    log:
        f"{LOGS}/train_cell/{{cell}}.log",
    conda:
        ENVIRONMENT
    threads: 1
    params:
        text=lambda wildcards: CELLS[wildcards.cell][0].text_name,
        definition=lambda wildcards: json.dumps(CELLS[wildcards.cell][0].definition, sort_keys=True),
        seeds=lambda wildcards: CELLS[wildcards.cell][1],
        runs=f"{SHARED}/runs/{{cell}}",
    shell:
        "exec python -m symbert --log {log:q} train-cell --text {params.text:q} --cell {params.definition:q}"
        " --seeds {params.seeds} --manifest {input.manifest:q} --runs {params.runs:q} --output {output:q}"
        " --threads {threads}"


rule collect_runs:
    input:
        expand(f"{RESULTS}/cells/{{cell}}.json", cell=CELLS),
    output:
        f"{RESULTS}/runs.csv",
    log:
        f"{LOGS}/collect_runs.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert --log {log:q} collect-runs --cells {input:q} --output {output:q}"


rule write_study:
    input:
        runs=f"{RESULTS}/runs.csv",
        study=STUDY_FILE,
    output:
        f"{RESULTS}/README.md",
    log:
        f"{LOGS}/write_study.log",
    conda:
        ENVIRONMENT
    shell:
        "python -m symbert --log {log:q} write-study --study {input.study:q} --runs {input.runs:q}"
        " --output {output:q}"


PAGE = f"{RESULTS}/README.md"
EVERYTHING = [PAGE]
