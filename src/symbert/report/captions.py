"""What a caption must say: experiment, scale, recipe, where corpus and tasks come from, and what stands in for them."""

import pandas as pd

from symbert.report import published
from symbert.settings import ReportSettings

CORPUS = {
    "embedded": "a stand-in corpus made from documentation text",
    "mirror": "OSCAR from a local mirror",
    "hub": "OSCAR-2301 from its publisher",
}
TASKS = {
    "embedded": "stand-in tasks made from documentation text, not GLUE",
    "mirror": "GLUE from a local mirror",
    "hub": "GLUE from its publisher",
}


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
    finetuned = settings.glue_source == "hub" and settings.glue == published.GLUE
    return is_pretrained_as_the_paper(settings) and finetuned


def has_stand_ins(settings: ReportSettings) -> bool:
    """Whether the tasks are stand-ins for GLUE's."""
    return settings.glue_source == "embedded"


def corpus_of(settings: ReportSettings) -> str:
    """The corpus in words."""
    return CORPUS.get(settings.corpus_source, f"the user's own (source {settings.corpus_source})")


def tasks_of(settings: ReportSettings) -> str:
    """The tasks in words."""
    return TASKS.get(settings.glue_source, f"the user's own (source {settings.glue_source})")


def experiment_of(settings: ReportSettings) -> str:
    """Experiment, scale and recipe."""
    return f"Experiment {settings.experiment}, scale {settings.scale}, recipe {settings.recipe}"


def seeds_of(pretrain_seeds: int) -> str:
    """How many pre-training seeds there are, and what a single one does not tell."""
    if pretrain_seeds == 1:
        return "one pre-training seed: differences between operators may be chance"
    return f"{pretrain_seeds} pre-training seeds"


def pretraining_of(settings: ReportSettings, pretrain_seeds: int) -> str:
    """How the models were pre-trained."""
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
    partial = partial_tasks(scores)
    if partial:
        notes.append(f"Partial tasks (fewer rows than GLUE has): {partial}.")
    constant = scores[scores["constant_prediction"].astype(bool)].drop_duplicates(["size", "attention", "task"])
    if len(constant):
        cells = [f"{row.task} by {row.size}-{row.attention}" for row in constant.itertuples()]
        notes.append(f"One class predicted throughout by at least one seed: {', '.join(cells)}.")
    return " ".join(notes)


def partial_tasks(scores: pd.DataFrame) -> str:
    """The tasks that were trained or scored with fewer rows than GLUE has; empty when there is none."""
    partial = list(dict.fromkeys(scores.loc[scores["partial"].astype(bool), "task"]))
    return "all" if len(partial) == scores["task"].nunique() else ", ".join(partial)
