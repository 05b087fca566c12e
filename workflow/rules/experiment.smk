# The experiment that the merged configuration describes: checked, named, announced.
import json
import re
import shlex
from functools import cache

from symbert.corpus.state import corpus_home
from symbert.experiment.announcement import announce, changed_runs, refuse_changed
from symbert.glue.state import EDITED_ROWS, PREPARED_ROWS, RAW_ROWS
from symbert.glue.state import judged_home, measured_tasks, own_tasks, pairs_file, robustness_home, rows_file
from symbert.glue.state import scores_home, seeds_of
from symbert.hosts import ENCODER, HOSTS
from symbert.layout import Experiment, Run, of_host
from symbert.pretrain.rows import manifest_of_pairs, pairs_home
from symbert.pretrain.state import checkpoint_home, run_home
from symbert.tasks import suite_named, tasks_of_suite

with one_line_errors():
    EXPERIMENT = Experiment(config)
    SECTIONS = EXPERIMENT.settings | EXPERIMENT.models | own_tasks(EXPERIMENT) | EXPERIMENT.parallel
RESULTS = EXPERIMENT.results
if starts_jobs(workflow):  # also in a dry run
    for line in changed_runs(EXPERIMENT):
        print(f"symbert: {line}", file=sys.stderr)
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
RAW = EXPERIMENT.raw
SHARDS = EXPERIMENT.shards

PARTS = configuration.parts_of(config)
FILES = configuration.files_of(config)
BY_CATEGORY = configuration.has_filter(config, "categories")
BY_MODEL = configuration.needs_harmful_model(config)
REPOSITORIES = configuration.repositories_of(config)
BATCHES = configuration.batches_of(config)
# Snakemake goes from a part to the batch before the last by recursion. More than this the stack of a process may not hold.
sys.setrecursionlimit(min(1000 + 10 * len(BATCHES), 20_000))
BATCH_OF = {part: number for number, batch in enumerate(BATCHES) for part in batch}
SWEEP = config["sweep"]
CURVE = SWEEP["curve"]
FINAL = EXPERIMENT.final
COMPARED = EXPERIMENT.compared


def one_of(names):
    """What a wildcard may be: names of the configuration, whatever letters they have."""
    return "|".join(map(re.escape, names))


wildcard_constraints:
    part=r"[\w-]+",  # and no list of them: of 10,000 names Snakemake would read the text for each file again
    batch=r"\d+",
    section=one_of(SECTIONS),
    size=one_of(SWEEP["sizes"]),
    attention=one_of(SWEEP["attention"]),
    seed=r"\d+",
    step=r"\d+",
    task=one_of(SWEEP["tasks"]),


def settings(section):
    """The settings file of a section: the trigger of the rules that read it."""
    return f"{RESULTS}/settings/{section}.json"


def records(parts, results=RESULTS):
    """What was counted when the documents of parts became tokens."""
    return expand(f"{results}/corpus/tokens/{{part}}.json", part=parts)


def counts(results=RESULTS):
    """What was counted when parts were filtered."""
    return expand(f"{results}/corpus/filtered/{{part}}.counts.json", part=PARTS)


# With files of one's own, sources.json names them: it changes with them, and downloads do not.
RESOLVED = f"{RESULTS}/corpus/{'repositories' if FILES else 'sources'}.json"


def batch_file(number):
    """The documents and tokens of a batch of parts and of all before it."""
    return f"{RESULTS}/corpus/batches/{number}.json"


def batch_before(wildcards):
    """The count that says whether a part is needed: that of the batch before the last; none for the first two."""
    if wildcards.part not in BATCH_OF:
        stop(f"{wildcards.part}: no part of this corpus; correct the name or corpus.parts", 64)
    number = BATCH_OF[wildcards.part]
    return ancient(batch_file(number - 2)) if number > 1 else []


RUN = EXPERIMENT.run
STATE = EXPERIMENT.state
CHECKPOINT = EXPERIMENT.checkpoint
SCORE = EXPERIMENT.score
ROBUSTNESS = EXPERIMENT.robustness
TOKENIZER_FILES = ["vocab.txt", "tokenizer.json", "tokenizer_config.json"]
CHECKPOINT_FILES = ["config.json", "model.safetensors", *TOKENIZER_FILES, "README.md"]
# How pre-training is computed, whatever its result: in no settings file and no parameter, so that it re-runs nothing.
EXECUTION = shlex.join(configuration.execution_options(config))
KEEP_FINETUNED = f"--keep-finetuned {FINAL}" if config["glue"]["keep_finetuned"] else ""  # of the last step alone
KEEP_MEASURED = "--keep-finetuned" if config["glue"]["keep_finetuned"] else ""


TASKS = EXPERIMENT.tasks


def rows_settings(wildcards):
    """The settings that the rows of a job's task are made by."""
    return settings(suite_named(wildcards.task).rows_section)


def own_task(wildcards):
    """What a task of one's own stands for, the content of its files among it; none for a task of GLUE."""
    section = f"task-{wildcards.task}"
    return [settings(section)] if section in SECTIONS else []


with one_line_errors():
    MEASURED_TASKS = measured_tasks(EXPERIMENT)


# What rules make lies in this experiment's folders. What they read may lie in those of the experiment that it extends.
with one_line_errors():
    CORPUS = corpus_home(EXPERIMENT)
    HOMES = {run: run_home(EXPERIMENT, run) for run in EXPERIMENT.runs()}
    HOMES_OF_OTHERS = {run: run_home(EXPERIMENT, run) for run in EXPERIMENT.runs_of_others()}
MANIFEST = f"{CORPUS.shards}/manifest.json"
WORD_PIECES = f"{CORPUS.results}/corpus/vocab.txt"
FILES_RECORD = [f"{CORPUS.results}/corpus/sources.json"] if FILES else []
FINETUNED = [run for run in EXPERIMENT.runs() if EXPERIMENT.steps(run)]


def published_files(name, sizes=SWEEP["sizes"]):
    """A published file of every run of the encoder of these sizes."""
    return [str(home.place(home.run, run) / name) for run, home in HOMES.items() if run.size in sizes]


def published_by_others(name):
    """A published file of every run of the other hosts."""
    return [str(home.place(home.run, run) / name) for run, home in HOMES_OF_OTHERS.items()]


def run_of(wildcards, host=ENCODER):
    """The run of a job."""
    return Run(wildcards.size, wildcards.attention, int(wildcards.seed), host)


def operators_of(wildcards):
    """The operators that are trained in a size."""
    return list(dict.fromkeys(run.attention for run in EXPERIMENT.runs() if run.size == wildcards.size))


def done_of(host):
    """An input: the file of a finished run of a host."""

    def file(wildcards):
        run = run_of(wildcards, host)
        home = run_home(EXPERIMENT, run)
        return str(home.place(home.run, run) / "done.json")

    return file


def state_of(host):
    """A parameter: the folder in which a run of a host worked, or will."""

    def folder(wildcards):
        run = run_of(wildcards, host)
        home = run_home(EXPERIMENT, run)
        return str(home.place(home.state, run))

    return folder


def checkpoint_folder(run, step):
    """An extracted step."""
    home = checkpoint_home(EXPERIMENT, run, step)
    return str(home.place(home.checkpoint, run, step=step))


def files_of_host(host):
    """The files of an extracted step of a host: without a tokenizer where it reads no corpus."""
    return [file for file in CHECKPOINT_FILES if HOSTS[host].reads_corpus or file not in TOKENIZER_FILES]


def checkpoint_of(host):
    """An input: the files of an extracted step of a host."""

    def files(wildcards):
        folder = checkpoint_folder(run_of(wildcards, host), int(wildcards.step))
        return [f"{folder}/{file}" for file in files_of_host(host)]

    return files


def checkpoints_of_others():
    """The files of the checkpoints of all hosts but the encoder."""
    return [
        f"{checkpoint_folder(run, step)}/{file}"
        for run in HOMES_OF_OTHERS
        for step in EXPERIMENT.extracted_steps(run)
        for file in files_of_host(run.host)
    ]


def rows(name, tasks=None):
    """An input: the files of rows of tasks, or of that of a job."""
    return lambda wildcards: [rows_file(EXPERIMENT, name, task) for task in tasks or [wildcards.task]]


@cache
def scores(run, step, suite):
    """The score files of a checkpoint on the tasks of a suite."""
    home = scores_home(EXPERIMENT, run, step, suite)
    return [str(home.scores(run, step, task)) for task in tasks_of_suite(suite, TASKS)]


def final_scores(suite):
    """The score files of the comparison: every run at its last step, and as it started where that is asked for."""
    return [file for run in FINETUNED for step in COMPARED for file in scores(run, step, suite)]


def measured_scores(wildcards):
    """The score files of the tasks that noise and out-of-domain sets are measured on."""
    home = scores_home(EXPERIMENT, run_of(wildcards), FINAL, "glue")
    return [str(home.scores(run_of(wildcards), FINAL, task)) for task in MEASURED_TASKS]


def robustness():
    """The scores of the comparison's models on noise and out-of-domain sets; none where neither is asked for."""
    homes = {run: robustness_home(EXPERIMENT, run) for run in FINETUNED if MEASURED_TASKS}
    return [
        str(home.place(home.robustness, run, step=FINAL, task=task))
        for run, home in homes.items()
        for task in MEASURED_TASKS
    ]


def curve_scores(suite):
    """The score files of Figure 3: the curve's sizes at their steps and at the last one, which sets the 95 % line."""
    steps = {run: EXPERIMENT.curve_steps(run.size) for run in FINETUNED}
    return [file for run in steps for step in steps[run] for file in scores(run, step, suite)]


def judgements():
    """How checkpoints judge BLiMP's pairs; none where that suite is not chosen."""
    judges = [(run, step) for run in EXPERIMENT.pretrainings() for step in EXPERIMENT.judging_steps(run)]
    return [str((home := judged_home(EXPERIMENT, *one)).place(home.judged, one[0], step=one[1])) for one in judges]


def kept_elsewhere(suite):
    """A parameter: the option for the fine-tunings on a suite that the extended experiment has; nothing without one.

    A shell text is read when its job starts, and would have the last value of the loop over suites.
    """

    def words(wildcards, input):
        if not EXPERIMENT.extended:
            return []
        of_checkpoint = EXPERIMENT.extended.finetuned.format(suite=suite, **wildcards)
        return ["--kept-elsewhere", f"{of_checkpoint}/state"]

    return words


def finetune_seeds(wildcards):
    """The seeds that the comparison and the curve want of one checkpoint."""
    return EXPERIMENT.finetune_seeds(wildcards.size, int(wildcards.step))


def forced_by_other_seeds(suite):
    """An input: no file, but a job where a checkpoint was scored with other seeds than the configuration wants."""
    first = tasks_of_suite(suite.name, TASKS)[0]

    def none(wildcards):
        file = SCORE.format(suite=suite.name, task=first, **wildcards)
        has_others = Path(file).is_file() and seeds_of(Path(file)) != finetune_seeds(wildcards)
        return force_if_outdated(file, has_others)

    return none
