"""How many jobs of each rule a fresh experiment has, by the stage that needs them.

`tests/experiment/test_jobs.py` compares these with Snakemake's own tables, so they cannot drift from the rules.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from symbert.config import batches_of, has_filter, needs_harmful_model, parts_of, source_of
from symbert.experiment.layout import Experiment
from symbert.report.exhibits import EXHIBITS

STAGES = ("corpus", "pretrain", "glue", "report")
SETTINGS_OF = {  # the sections that a stage's rules read
    "corpus": ("corpus_source", "blocklist_source", "embedded", "filter", "intake", "pack"),
    "pretrain": ("pretrain",),
    "glue": ("glue_source", "task", "glue", "robustness"),
    "report": ("report",),
}

Jobs = Counter[str]
Job = tuple[str, Mapping[str, str]]  # its rule and wildcards


def jobs_of(experiment: Experiment) -> dict[str, Jobs]:
    """Jobs by stage and rule, targets such as `all` left out. Checkpoints are extracted for the stage glue."""
    counts = (_corpus(experiment), _pretrain(experiment), _glue(experiment), _report(experiment))
    return {stage: +jobs for stage, jobs in zip(STAGES, counts, strict=True)}  # + leaves out rules without jobs


def count_by_stage(experiment: Experiment, jobs: Iterable[Job]) -> Jobs:
    """How many of these jobs each stage has; what is of no other stage is of the report."""
    stages = {rule: stage for stage, counts in jobs_of(experiment).items() for rule in counts}
    sections = {section: stage for stage, read in SETTINGS_OF.items() for section in read}
    sections |= dict.fromkeys(experiment.models, "pretrain")
    return Jobs(
        sections[wildcards["section"]] if rule == "write_settings" else stages.get(rule, "report")
        for rule, wildcards in jobs
    )


def _corpus(experiment: Experiment) -> Jobs:
    config, embedded = experiment.config, experiment.is_embedded
    own = source_of(config, "corpus") == "files"
    parts, batches = len(parts_of(config)), len(batches_of(config))
    once = ("resolve_corpus", "download_vocabulary", "scan_characters", "pack_shards")
    by_category = has_filter(config, "categories")
    return Jobs(
        dict.fromkeys((*once, *(("download_blocklist", "build_blocklist") if by_category else ())), 1),
        write_settings=len(SETTINGS_OF["corpus"]) - (not embedded) - (not by_category),
        write_documentation=int(embedded),
        write_embedded_corpus=int(embedded),
        record_files=int(own),
        download_part=0 if own else parts,
        download_harmful_model=int(needs_harmful_model(config)),
        filter_part=parts,
        tokenize_part=parts,
        count_batch=max(batches - 2, 0),
    )


def _pretrain(experiment: Experiment) -> Jobs:
    return Jobs(write_settings=1 + len(experiment.models), pretrain_model=len(experiment.runs()))


def _glue(experiment: Experiment) -> Jobs:
    tasks, measured = len(experiment.tasks), len(experiment.measured_tasks)
    checkpoints = len(experiment.checkpoints())
    embedded = source_of(experiment.config, "glue") == "embedded"
    return Jobs(
        write_settings=len(SETTINGS_OF["glue"]) - (not measured),
        write_documentation=int(embedded and not experiment.is_embedded),  # otherwise the corpus's
        write_embedded_tasks=int(embedded),
        resolve_glue=1,
        download_task=tasks,
        prepare_task=tasks,
        extract_checkpoint=checkpoints,
        finetune=checkpoints,
        prepare_robustness=measured,
        measure_robustness=len(experiment.runs()) if measured else 0,
    )


def _report(experiment: Experiment) -> Jobs:
    config = experiment.config
    exist = {
        "categories": has_filter(config, "categories"),
        "curve": bool(config["sweep"]["curve"]["sizes"]),
        "robustness": bool(experiment.measured_tasks),
    }
    lacking = {read for read, exists in exist.items() if not exists}
    made = [exhibit for exhibit in EXHIBITS.values() if lacking.isdisjoint(exhibit.reads)]
    jobs = {exhibit.rule: len(config["sweep"]["sizes"]) if exhibit.per_size else 1 for exhibit in made}
    return Jobs(jobs, write_settings=1, count_parameters=1, write_page=1)
