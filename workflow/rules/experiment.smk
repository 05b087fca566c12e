# The experiment that the merged configuration describes: checked, named, announced.
import json
import re
import shlex

from symbert.experiment.announcement import announce
from symbert.glue.sources import published_split
from symbert.glue.state import measured_tasks, own_tasks
from symbert.layout import Experiment
from symbert.sources import BLOCKLIST, BLOCKLIST_CHECKSUMS, CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY
from symbert.sources import is_stand_in, part_file
from symbert.tasks import task_named

with one_line_errors():
    EXPERIMENT = Experiment(config)
    SECTIONS = EXPERIMENT.settings | EXPERIMENT.models | own_tasks(EXPERIMENT)
RESULTS = EXPERIMENT.results
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
EMBEDDED = f"{RESULTS}/embedded"
RAW = EXPERIMENT.raw
SHARDS = EXPERIMENT.shards

PARTS = configuration.parts_of(config)
FILES = configuration.files_of(config)
BY_CATEGORY = configuration.has_filter(config, "categories")
BY_MODEL = configuration.needs_harmful_model(config)
REPOSITORIES = configuration.repositories_of(config)
BATCHES = configuration.batches_of(config)
SWEEP = config["sweep"]
CURVE = SWEEP["curve"]
FINAL = EXPERIMENT.final
COMPARED = EXPERIMENT.compared


def one_of(names):
    """What a wildcard may be: names of the configuration, whatever letters they have."""
    return "|".join(map(re.escape, names))


wildcard_constraints:
    part=one_of(PARTS),
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


def published(stage, *files):
    """The publishers' files that must have been made first; none unless the stage's source has stand-ins."""
    is_made_here = is_stand_in(configuration.source_of(config, stage))
    return [f"{EMBEDDED}/{file.location}" for file in files] if is_made_here else []


def records(parts):
    """What was counted when the documents of parts became tokens."""
    return expand(f"{RESULTS}/corpus/tokens/{{part}}.json", part=parts)


# With files of one's own, sources.json names them: it changes with them, and downloads do not.
RESOLVED = f"{RESULTS}/corpus/{'repositories' if FILES else 'sources'}.json"
FILES_RECORD = [f"{RESULTS}/corpus/sources.json"] if FILES else []
COUNTS = expand(f"{RESULTS}/corpus/filtered/{{part}}.counts.json", part=PARTS)


def batch_file(number):
    """The documents and tokens of a batch of parts and of all before it."""
    return f"{RESULTS}/corpus/batches/{number}.json"


def batch_before(wildcards):
    """The count that says whether a part is needed: that of the batch before the last; none for the first two."""
    number = next(number for number, batch in enumerate(BATCHES) if wildcards.part in batch)
    return ancient(batch_file(number - 2)) if number > 1 else []


RUN = EXPERIMENT.run
STATE = EXPERIMENT.state
CHECKPOINT = EXPERIMENT.checkpoint
SCORE = EXPERIMENT.score
ROBUSTNESS = EXPERIMENT.robustness
CHECKPOINT_FILES = [
    "config.json",
    "model.safetensors",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "README.md",
]
# How pre-training is computed, whatever its result: in no settings file and no parameter, so that it re-runs nothing.
EXECUTION = shlex.join(configuration.execution_options(config))
KEEP_FINETUNED = f"--keep-finetuned {FINAL}" if config["glue"]["keep_finetuned"] else ""  # of the last step alone
KEEP_MEASURED = "--keep-finetuned" if config["glue"]["keep_finetuned"] else ""


def runs(pattern, sizes=SWEEP["sizes"], seeds=SWEEP["pretrain_seeds"]):
    """`pattern` for every run of the sweep."""
    return expand(pattern, size=sizes, attention=SWEEP["attention"], seed=seeds, allow_missing=True)


def finetuned(pattern, sizes=SWEEP["sizes"]):
    """`pattern` for every run whose checkpoints are fine-tuned."""
    return runs(pattern, sizes, configuration.finetuned_pretrain_seeds(config))


TASKS = EXPERIMENT.tasks
TASK_FILES = {
    task.name: [] if task.files else [published_split(task, split) for split in task.splits]
    for task in map(task_named, TASKS)
}


def own_task(wildcards):
    """What a task of one's own stands for, the content of its files among it; none for a task of GLUE."""
    section = f"task-{wildcards.task}"
    return [settings(section)] if section in SECTIONS else []


with one_line_errors():
    MEASURED_TASKS = measured_tasks(EXPERIMENT)


def final_scores():
    """The score files of the comparison: every run at its last step, and as it started where that is asked for."""
    return expand(finetuned(SCORE), step=COMPARED, task=TASKS)


def robustness():
    """The scores of the comparison's models on noise and out-of-domain sets; none where neither is asked for."""
    return expand(finetuned(ROBUSTNESS), step=FINAL, task=MEASURED_TASKS)


def curve_scores():
    """The score files of Figure 3: the curve's sizes at their steps and at the last one, which sets the 95 % line."""
    steps = {size: EXPERIMENT.curve_steps(size) for size in CURVE["sizes"]}
    return [score for size in steps for score in expand(finetuned(SCORE, [size]), step=steps[size], task=TASKS)]


def finetune_seeds(wildcards):
    """The seeds that the comparison and the curve want of one checkpoint."""
    return EXPERIMENT.finetune_seeds(wildcards.size, int(wildcards.step))


def score_of(wildcards):
    """The first of a checkpoint's score files."""
    return SCORE.format(task=TASKS[0], **wildcards)


def has_other_seeds(wildcards):
    """Whether a checkpoint was scored with other seeds than the configuration wants."""
    file = Path(score_of(wildcards))
    return file.is_file() and configuration.seeds_of(file) != finetune_seeds(wildcards)
