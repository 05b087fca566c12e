"""What a caption must say: experiment, scale, recipe, where corpus and tasks come from, and what stands in for them."""

from collections.abc import Iterable

import pandas as pd
from msgspec.structs import replace

from symbert.configuration import ReportSettings, Wording
from symbert.glue.tasks import BESIDE_GLUE, OWN, SUITES, suite_of, task_named, tasks_of_suite
from symbert.hosts import ENCODER, HOSTS
from symbert.report import published
from symbert.sources import SOURCES, is_stand_in

UNTRAINED = "no pre-training"
GLOSSARY = {
    "operator": "how the score of two tokens in attention is computed; original is that of BERT",
    "size": "the shape of a model: its layers, heads and widths",
    "host": "the model that an operator stands in: encoder, decoder, or encoder–decoder",
    "run": "one pre-training of a size with an operator in a host, from a pre-training seed",
    "pre-training seed": "fixes initial weights, order of rows and masks; operators of one seed start and read alike",
    "fine-tuning seed": "fixes the head’s initial weights and the order of a task’s rows",
    "plateau, exit": "the loss first stays near that of guessing by frequency; the exit is the evaluation after it",
    "stand-in": "text or a task made from documentation in place of the published one, for tests",
    "partial": "a task of which other rows were read or scored than are published",
    "†": "a model that predicts one class throughout",
    "std": "the sample standard deviation over seeds",
    "majority baseline": "the score of predicting the most frequent class of the training rows",
    "Welch’s interval": "a 95 % interval of the difference of two means whose variances may differ",
    "p, Holm": "a permutation test over all splits of the seeds; Holm’s correction for the number of tests",
}
STAND_IN_TEXT = "The parallel text is a stand-in, numbers in English and German words."


def model_name(size: str, attention: str, step: int = 1) -> str:
    """What a model is called: 'tiny-original', and at step 0 'tiny-original, no pre-training'.

    Models of others may have no size.
    """
    name = f"{size}-{attention}" if size else attention
    return name if step else f"{name}, {UNTRAINED}"


def family(size: str) -> str:
    """What models of a size are called: 'BERT-tiny'."""
    return f"BERT-{size}" if size else "models without a size"


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


def wording_of(settings: ReportSettings) -> Wording:
    """What is said of an experiment: by its settings, or else by what follows from their other keys."""
    if settings.wording is not None:
        return settings.wording
    corpus = SOURCES.get(settings.corpus_source)
    documents = corpus.corpus if corpus else f"the user's own (source {settings.corpus_source})"
    batch = f"batches of {settings.batch_size} × {settings.sequence_length} tokens"
    reason = "the corpus is a stand-in" if is_stand_in(settings.corpus_source) else "pre-training is not the paper’s"
    return Wording(
        experiment=f"Experiment {settings.experiment}, scale {settings.scale}, recipe {settings.recipe}",
        corpus=documents,
        tasks=tasks_in_words(settings, ["glue"]),
        pretraining=f"Pre-trained for {settings.steps:,} steps in {batch} on {documents}",
        beside_printed="",
        facts={"Scale": settings.scale, "Recipe": settings.recipe, **_other_suites(settings)},
        warnings=[] if is_the_papers(settings) else _warnings(settings),
        other_training=None if is_pretrained_as_the_paper(settings) else reason,
        other_finetuning=None if is_the_papers(settings) else "fine-tuning is not the paper’s",
    )


def tasks_in_words(settings: ReportSettings, suites: Iterable[str] = tuple(SUITES)) -> str:
    """The tasks of some suites that models are scored on, where they come from, and whether they are stand-ins."""
    titles = " and ".join(SUITES[name].title for name in suites if published_tasks(settings, name))
    source, own = SOURCES.get(settings.glue_source), own_tasks(settings) if "glue" in suites else []
    of_source = source.tasks.replace("GLUE", titles) if source else f"{titles} (source {settings.glue_source})"
    return ", and ".join([of_source] * bool(titles) + [f"{', '.join(own)} of the user's own"] * bool(own))


def published_tasks(settings: ReportSettings, suite: str) -> list[str]:
    """The tasks of a suite that are not the user's own."""
    return [task for task in tasks_of_suite(suite, settings.tasks) if task not in OWN]


def data_of(settings: ReportSettings) -> dict[str, str]:
    """Corpus and tasks, as far as models read them: facts of the page."""
    wording, hosts = wording_of(settings), hosts_of(settings)
    corpus = {"Corpus": wording.corpus} if any(HOSTS[host].reads_corpus for host in hosts) else {}
    tasks = wording.tasks if settings.wording else tasks_in_words(settings)
    return corpus | ({"Tasks": tasks} if ENCODER in hosts and tasks else {})


def hosts_of(settings: ReportSettings) -> list[str]:
    """The hosts that models are trained in."""
    others = list(dict.fromkeys(host for host, *_ in settings.host_runs or []))
    return [*([ENCODER] if settings.runs or not others else []), *others]


def training_of_hosts(settings: ReportSettings, hosts: list[str]) -> str:
    """How the encoder was trained; of other hosts the steps, and the data where these are no rows of its corpus."""
    wording = wording_of(settings)
    parts = [wording.pretraining] if ENCODER in hosts else []
    for host in hosts[len(parts) :]:
        parallel = "a stand-in of parallel text" if settings.stand_in_text else "parallel text"
        on = wording.corpus if HOSTS[host].reads_corpus else parallel
        steps = (settings.host_steps or {}).get(host, settings.steps)
        parts.append(f"{host}s for {steps:,} steps{'' if parts and HOSTS[host].reads_corpus else f' on {on}'}")
    return ("" if ENCODER in hosts else "Pre-trained: ") + "; ".join(parts)


def _other_suites(settings: ReportSettings) -> dict[str, str]:
    """The suites that models are scored on beside GLUE; nothing without any."""
    titles = [suite.title for suite in BESIDE_GLUE if suite.name in (settings.suites or ())]
    return {"Other suites": ", ".join(titles)} if titles else {}


def _warnings(settings: ReportSettings) -> list[str]:
    """What the top of the page says of an experiment that is not the paper's."""
    stand_ins, hosts = [], hosts_of(settings)
    if is_stand_in(settings.corpus_source) and any(HOSTS[host].reads_corpus for host in hosts):
        stand_ins.append("The corpus is a stand-in made from documentation text.")
    if settings.stand_in_text:
        stand_ins.append(STAND_IN_TEXT)
    if ENCODER in hosts and has_stand_ins(settings):
        titles = " and ".join(SUITES[name].title for name in SUITES if published_tasks(settings, name))
        tasks = f"tasks of {titles}" if own_tasks(settings) else "tasks"
        stand_ins.append(f"The {tasks} are stand-ins made from documentation text, not {titles}.")
    elif ENCODER in hosts:
        stand_ins.append("Captions name tasks that are stand-ins or have other rows than GLUE’s.")
    return [*stand_ins, "This is not the paper’s experiment: its numbers are not comparable with the paper’s."]


def of_suite(settings: ReportSettings, suite: str) -> ReportSettings:
    """The settings as those of one suite other than GLUE: its tasks, and what captions say of them."""
    wording = replace(wording_of(settings), tasks=tasks_in_words(settings, [suite]), beside_printed="")
    settings_hash = (settings.suites or {}).get(suite)
    return replace(settings, tasks=tasks_of_suite(suite, settings.tasks), wording=wording, settings_hash=settings_hash)


def has_stand_ins(settings: ReportSettings) -> bool:
    """Whether tasks are from a source of nothing but stand-ins; of those of another source, their scores say it."""
    return is_stand_in(settings.glue_source) and any(published_tasks(settings, suite) for suite in SUITES)


def own_tasks(settings: ReportSettings) -> list[str]:
    """The tasks that are the user's own."""
    return [task for task in settings.tasks if task in OWN]


def tasks_of_hosts(settings: ReportSettings, hosts: Iterable[str]) -> str:
    """What models of these hosts are trained on, and whether that is a stand-in."""
    hosts = list(dict.fromkeys(hosts))
    is_stand_in = settings.stand_in_text and any(not HOSTS[host].reads_corpus for host in hosts)
    return " ".join([*(HOSTS[host].sentence for host in hosts), *([STAND_IN_TEXT] if is_stand_in else [])])


def host_model(host: str, size: str, attention: str) -> str:
    """What a model of any host is called: 'tiny-original' of the encoder, 'decoder tiny-original' of another."""
    return model_name(size, attention) if host == ENCODER else f"{host} {model_name(size, attention)}"


def host_family(host: str, size: str) -> str:
    """What the models of a size and host are called: 'BERT-tiny', or 'decoder, tiny'."""
    return family(size) if host == ENCODER else f"{host}, {size}"


def seeds_of(pretrain_seeds: int) -> str:
    """The number of pre-training seeds, and the limit of a single one."""
    if pretrain_seeds == 1:
        return "one pre-training seed: differences between operators may be chance"
    return f"{pretrain_seeds} pre-training seeds"


def pretraining_of(settings: ReportSettings, pretrain_seeds: int) -> str:
    """How the models were pre-trained."""
    return f"{wording_of(settings).pretraining} ({seeds_of(pretrain_seeds)})."


def of_scores(subject: str, settings: ReportSettings, scores: pd.DataFrame) -> str:
    """The caption of scores, with their tasks and seeds, and the start of its note: how the models were trained."""
    wording, seeds = wording_of(settings), seeds_of(scores["pretrain_seed"].nunique())
    caption = f"{subject} ({seeds}). {_unit_of(settings, scores)}"
    return f"{caption}\n\n{wording.experiment}. {wording.pretraining}. {_flaws_of(settings, scores)}".rstrip()


def finetuning_of(settings: ReportSettings, scores: pd.DataFrame) -> str:
    """What the scores are: tasks, seeds, and what is partial or degenerate about them."""
    return f"{_unit_of(settings, scores)} {_flaws_of(settings, scores)}".rstrip()


def _unit_of(settings: ReportSettings, scores: pd.DataFrame) -> str:
    seeds = scores["finetune_seed"].nunique()
    of_several = ", std is the sample standard deviation" if seeds > 1 else ""
    mean = f"mean over {seeds} fine-tuning seed{'s' if seeds > 1 else ''}{of_several}"
    return f"Scores in percent on {wording_of(settings).tasks}; {mean}."


def _flaws_of(settings: ReportSettings, scores: pd.DataFrame) -> str:
    """Which scores are stand-ins or partial, and where one class was predicted throughout; empty without any."""
    notes, title = [], suite_of(task_named(scores["task"].iloc[0])).title
    stand_ins, partial, constant = stand_in_tasks(scores), partial_tasks(scores), constant_predictions(scores)
    if stand_ins and not has_stand_ins(settings):
        notes.append(f"Stand-ins for {title}'s tasks, not {title}: {stand_ins}.")
    if partial:
        whole = "GLUE or their files have" if own_tasks(settings) else f"{title} has"
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
