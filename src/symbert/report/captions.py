"""What a caption must say: experiment, scale, recipe, where corpus and tasks come from, and what stands in for them."""

import pandas as pd

from symbert.report import published
from symbert.settings import ReportSettings
from symbert.sources import SOURCES, is_stand_in
from symbert.tasks import OWN

UNTRAINED = "no pre-training"


def model_name(size: str, attention: str, step: int) -> str:
    """What a model is called: 'tiny-original', and at step 0 'tiny-original, no pre-training'."""
    return f"{size}-{attention}" if step else f"{size}-{attention}, {UNTRAINED}"


def is_pretrained_as_the_paper(settings: ReportSettings) -> bool:
    """Whether the corpus comes from the paper's publisher, and every setting that changes losses is the paper's.

    Its losses may stand beside ours then. A recipe other than faithful changes them too: it may round the dropout.
    """
    training = (settings.steps, settings.batch_size, settings.sequence_length)
    return (
        (settings.scale, settings.corpus_source, settings.recipe) == ("paper", "hub", "faithful")
        and training == published.TRAINING
        and settings.pretrain == published.PRETRAIN
    )


def is_the_papers(settings: ReportSettings) -> bool:
    """Whether pre-training, tasks and fine-tuning are the paper's, so that its scores may stand beside ours."""
    finetuned = settings.glue_source in ("hub", "files") and settings.glue == published.GLUE
    return is_pretrained_as_the_paper(settings) and finetuned


def is_imported(settings: ReportSettings) -> bool:
    """Whether others computed all numbers."""
    return settings.scale == "imported"


def shows_the_papers_losses(settings: ReportSettings) -> bool:
    """Whether the paper's losses stand beside those here: its own pre-training's, or those of others over its steps."""
    imported = is_imported(settings) and settings.steps == published.TRAINING[0]
    return imported or is_pretrained_as_the_paper(settings)


def shows_the_papers_scores(settings: ReportSettings) -> bool:
    """Whether the paper's scores stand beside those here: its own experiment's, or those of others."""
    return is_imported(settings) or is_the_papers(settings)


def has_stand_ins(settings: ReportSettings) -> bool:
    """Whether the source has nothing but stand-ins; whether those of another source are stand-ins, their scores say."""
    return is_stand_in(settings.glue_source)


def corpus_of(settings: ReportSettings) -> str:
    """The corpus in words."""
    if settings.corpus_source == "imported":
        return "a corpus that the imported files do not name"
    source = SOURCES.get(settings.corpus_source)
    return source.corpus if source else f"the user's own (source {settings.corpus_source})"


def tasks_of(settings: ReportSettings) -> str:
    """The tasks in words."""
    if settings.glue_source == "imported":
        return "GLUE as in the imported files"
    source = SOURCES.get(settings.glue_source)
    words = source.tasks if source else f"the user's own (source {settings.glue_source})"
    own = own_tasks(settings)
    return f"{words}, and {', '.join(own)} of the user's own" if own else words


def own_tasks(settings: ReportSettings) -> list[str]:
    """The tasks that are the user's own."""
    return [task for task in settings.tasks if task in OWN]


def experiment_of(settings: ReportSettings) -> str:
    """Experiment, scale and recipe; of imported results, that nothing was computed here."""
    if is_imported(settings):
        return f"Others' results ({settings.experiment}; nothing was computed here)"
    return f"Experiment {settings.experiment}, scale {settings.scale}, recipe {settings.recipe}"


def seeds_of(pretrain_seeds: int) -> str:
    """The number of pre-training seeds, and the limit of a single one."""
    if pretrain_seeds == 1:
        return "one pre-training seed: differences between operators may be chance"
    return f"{pretrain_seeds} pre-training seeds"


def pretraining_of(settings: ReportSettings, pretrain_seeds: int) -> str:
    """How the models were pre-trained."""
    if is_imported(settings):
        return f"How the models were pre-trained, the imported files do not say ({seeds_of(pretrain_seeds)})."
    batch = f"batches of {settings.batch_size} × {settings.sequence_length} tokens"
    where = f"on {corpus_of(settings)} ({seeds_of(pretrain_seeds)})"
    return f"Pre-trained for {settings.steps:,} steps in {batch} {where}."


def finetuning_of(settings: ReportSettings, scores: pd.DataFrame) -> str:
    """What the scores are: tasks, seeds, and what is partial or degenerate about them."""
    seeds = scores["finetune_seed"].nunique()
    notes = [
        f"Scores in percent on {tasks_of(settings)}; "
        f"mean over {seeds} fine-tuning seed{'s' if seeds > 1 else ''}"
        + (", std is the sample standard deviation." if seeds > 1 else "."),
    ]
    stand_ins, partial, constant = stand_in_tasks(scores), partial_tasks(scores), constant_predictions(scores)
    if stand_ins and not has_stand_ins(settings):
        notes.append(f"Stand-ins for GLUE's tasks, not GLUE: {stand_ins}.")
    if partial:
        whole = "GLUE or their files have" if own_tasks(settings) else "GLUE has"
        notes.append(f"Partial tasks (other rows than {whole}): {partial}.")
    if constant:
        notes.append(f"One class predicted throughout: {'; '.join(constant)}.")
    unknown = set(scores.loc[scores["constant_prediction"].isna(), "task"])
    if unknown:
        known = [task for task in dict.fromkeys(scores["task"]) if task not in unknown]
        extent = f"known for {', '.join(known)} only" if known else "not known"
        notes.append(f"Whether one class was predicted throughout is {extent}.")
    return " ".join(notes)


def partial_tasks(scores: pd.DataFrame) -> str:
    """The tasks that were trained or scored with other rows than GLUE has; empty without any."""
    return _tasks_where(scores["partial"], scores)


def stand_in_tasks(scores: pd.DataFrame) -> str:
    """The tasks that are no tasks of GLUE's, whatever their source; empty without any."""
    return _tasks_where(scores["stand_in"], scores)


def _tasks_where(flag: pd.Series, scores: pd.DataFrame) -> str:
    tasks = list(dict.fromkeys(scores.loc[flag.astype(bool), "task"]))
    return "all" if tasks and len(tasks) == scores["task"].nunique() else ", ".join(tasks)


def constant_predictions(scores: pd.DataFrame) -> list[str]:
    """Where one class was predicted throughout: 'cola by tiny-original (2 of 5 runs, fine-tuning seeds 1, 3)'.

    Of several checkpoints, each is named: 'cola by tiny-original at step 300 (…)'.
    """
    cell = ["size", "attention", "step", "task"]
    runs = scores.drop_duplicates([*cell, "pretrain_seed", "finetune_seed"])
    constant = runs[runs["constant_prediction"].eq(True)]
    counts = runs.groupby(cell).size()
    several_steps = scores.loc[scores["step"] > 0, "step"].nunique() > 1
    lines = []
    for (size, attention, step, task), part in constant.groupby(cell, sort=False):
        seeds = sorted(set(part["finetune_seed"]))
        which = f"fine-tuning seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
        at = f" at step {step:,}" if step and several_steps else ""
        count = f"{len(part)} of {counts[size, attention, step, task]} runs, {which}"
        lines.append(f"{task} by {model_name(size, attention, step)}{at} ({count})")
    return lines
