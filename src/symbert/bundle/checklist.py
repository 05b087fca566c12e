"""The reproducibility checklist of ACL venues, answered from the files of results.

Questions are in our words, after the checklists for responsible research of ACL Rolling Review and for
reproducibility of EMNLP. What no file says is "not recorded", with the reason.
"""

from collections import Counter
from collections.abc import Iterator
from statistics import mean

from symbert.bundle.licences import NOT_CHECKED, NOT_STATED, licences_of
from symbert.bundle.results import Results
from symbert.report.machines import PretrainedRun, hours_of
from symbert.report.tables.settings import PAPER
from symbert.sources import is_stand_in
from symbert.suites import SUITES

IMPORTED = "not recorded: the scores were imported, and their files do not say it"
AUTHORS = "not recorded: no file can know it; the authors of a paper answer it"
Answer = tuple[str, str]  # a question, and what files say of it


def checklist_text(results: Results) -> str:
    """A Markdown page of questions and answers."""
    lines = [
        f"# Reproducibility checklist of {results.settings.experiment}",
        "",
        "Questions follow the checklists of ACL venues, in our words. Answers are made from the files of this archive.",
        "",
    ]
    chapters = {
        "Claims and risks": _claims(results),
        "Data and models": _data(results),
        "Computing": _computing(results),
        "Experiments": _experiments(results),
        "People": _people(results),
    }
    for chapter, answers in chapters.items():
        lines += [f"## {chapter}", ""]
        for question, answer in answers:
            lines += [f"**{question}**", "", f"{answer[0].upper()}{answer[1:]}.", ""]
    return "\n".join(lines)


def _claims(results: Results) -> Iterator[Answer]:
    yield (
        "Are the limits of the work stated?",
        "yes: report.html begins with what the data support, and tables/claims.md says of each claim whether it was "
        "tested",
    )
    stand_ins = sorted({record["task"] for record in results.scores if record.get("stand_in")})
    stand_ins += ["blimp"] if results.has_judges and is_stand_in(results.settings.glue_source) else []
    partial = sorted({record["task"] for record in results.scores if record.get("partial")})
    if stand_ins:
        yield "Are the data those of the paper?", f"no: stand-ins replace {_names(stand_ins)}"
    elif partial:
        yield "Are the data those of the paper?", f"in part: of {_names(partial)} not all rows were used"
    elif results.scores:
        told = " for evaluation, as far as their number tells" if results.is_import else ""
        yield "Are the data those of the paper?", f"yes: all published rows of each task were used{told}"
    yield "Are risks of the work discussed?", AUTHORS


def _data(results: Results) -> Iterator[Answer]:
    licences = licences_of(results)
    open_questions = [each.data for each in licences if NOT_STATED in each.licence or each.licence == NOT_CHECKED]
    unknown = f"; without a stated or checked licence: {', '.join(open_questions)}" if open_questions else ""
    yield "Which data were used, under which licences?", f"LICENCES.md lists {len(licences)} of them{unknown}"
    yield "Is the use in agreement with what the data are meant for?", AUTHORS
    yield (
        "Was it checked whether data name people or offend?",
        "the rules of settings/filter.json dropped documents by blocklist, perplexity and quality warnings; nothing "
        "was anonymised"
        if results.read("settings/filter.json")
        else IMPORTED,
    )
    manifest = results.read("corpus/shards/manifest.json")
    counts = list(results.records("corpus/filtered/*.counts.json"))
    if counts:
        read, kept = (sum(part[key] for part in counts) for key in ("read", "kept"))
        yield (
            "How many documents were left out, and why?",
            f"kept {kept:,} of {read:,}; tables/corpus.md has the reasons",
        )
    if manifest:
        rows, tokens = manifest["rows"], manifest["tokens"]
        text = f"{rows['train']:,} rows for training and {rows['validation']:,} held out, of {tokens:,} tokens"
        yield "What are the splits of the corpus?", text
    elif not results.is_import:
        yield "What are the splits of the corpus?", "not recorded: the manifest of the rows lies in no folder given"
    tasks = {
        record["task"]: ", ".join(f"{split} {count:,}" for split, count in record["rows"].items())
        for record in results.scores
        if record.get("rows")
    }
    rows = "; ".join(f"`{task}`: {counts}" for task, counts in sorted(tasks.items()))
    yield "What are the splits of the tasks?", rows or IMPORTED


def _computing(results: Results) -> Iterator[Answer]:
    if results.is_import:
        for question in ("How many parameters?", "Which machines?", "How long?"):
            yield question, IMPORTED
        return
    runs = results.runs
    parameters = {f"{run.size}-{run.attention}": run.facts["parameters"] for run in runs}
    yield "How many parameters has each model?", "; ".join(f"`{name}` {count:,}" for name, count in parameters.items())
    machines = Counter(_machine(run) for run in runs)
    yield (
        "Which machines computed?",
        "; ".join(f"{_counted(count, 'run')} of pre-training on {name}" for name, count in machines.items()),
    )
    wall, gpu = hours_of(session for run in runs for session in run.sessions)
    on_gpus = f" ({_hours(gpu)} of GPUs)" if gpu else ""
    per_run = f"{_counted(len(runs), 'run')} in {_hours(wall)}{on_gpus}, {_hours(wall / len(runs))} each on average"
    unknown = sum(run.unknown_sessions for run in runs)
    lost = f"; at least, for the records of {_counted(unknown, 'session')} are gone" if unknown else ""
    yield "How long did pre-training take?", per_run + lost
    fine = [job.wall for job in results.jobs if job.rule in {suite.rule for suite in SUITES.values()}]
    yield (
        "How long did fine-tuning take?",
        f"{_counted(len(fine), 'job')} in {_hours(sum(fine))}, {_hours(mean(fine))} each on average; a job "
        "is all tasks and seeds of a checkpoint"
        if fine
        else "not recorded: no benchmark file of fine-tuning",
    )
    yield "How much work went into trials that are not shown?", "not recorded: only jobs of these results are measured"


def _machine(run: PretrainedRun) -> str:
    facts = run.facts
    device = f"{facts['processes']} × {facts['device']}" if facts["device"] != "cpu" else facts["processor"]
    return f"{device}, in {facts['precision']}, threads: {facts['threads']}"


def _experiments(results: Results) -> Iterator[Answer]:
    settings = results.settings
    here = {"steps": settings.steps, "batch_size": settings.batch_size, **settings.pretrain}
    if results.is_import:
        yield "Which hyperparameters?", IMPORTED
    else:
        chosen = {f"pretrain.{key}": value for key, value in here.items()}
        chosen |= {f"glue.{key}": value for key, value in settings.glue.items()}
        shared = {key: value for key, value in chosen.items() if key in PAPER}
        same = sum(value == PAPER[key] for key, value in shared.items())
        listed = ", ".join(f"`{key}` {value}" for key, value in chosen.items())
        yield "Which hyperparameters?", f"{listed}; settings/ has all"
        yield (
            "How were hyperparameters chosen?",
            f"{same} of {len(shared)} are those of arXiv 2406.06366, the others of the scale {settings.scale} "
            "(tables/settings.md); the workflow makes no search, and one beside it is not recorded",
        )
        losses = ", ".join(f"{run.name} {run.facts['validation_loss']:.4f}" for run in results.runs)
        yield "What was reached on held-out text?", f"nats per masked token at the last step: {losses}"
    seeds = {record["finetune_seed"] for record in results.scores}
    pretrain_seeds = {run.pretrain_seed for run in results.runs}
    counted = [f"{_counted(len(pretrain_seeds), 'seed')} of pre-training"] if pretrain_seeds else []
    counted += [f"up to {_counted(len(seeds), 'seed')} of fine-tuning"] if seeds else []
    yield (
        "How many runs does a number stand for?",
        f"{' and '.join(counted)}; scores.csv has each score" if counted else ("not recorded: no scores and no runs"),
    )
    yield (
        "Which statistics are given?",
        "mean and sample standard deviation over seeds, differences with intervals, and permutation tests with Holm's "
        "correction; tables/statistics.md says what was tested",
    )
    yield (
        "Which rows were scored?",
        IMPORTED
        if results.is_import
        else "the evaluation rows of each task, by the model of the last epoch; no test labels were used, and no "
        "checkpoint was chosen by them",
    )
    tables = "tables/provenance.md and envs/constraints.txt have those of the tables"
    models = IMPORTED if results.is_import else "timing.json of each run has those that trained it"
    yield "Which versions of packages?", f"{tables}; of the models: {models}"


def _people(results: Results) -> Iterator[Answer]:
    yield "Did people annotate or take part?", IMPORTED if results.is_import else "no step of the workflow asks people"
    yield "Was writing or code assisted by programs?", AUTHORS


def _names(tasks: list[str]) -> str:
    return ", ".join(f"`{task}`" for task in tasks)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _hours(value: float) -> str:
    return f"{value:,.2f} hours" if value >= 0.1 else f"{60 * value:,.1f} minutes"
