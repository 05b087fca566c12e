"""What the report says of an experiment as a whole: the sentences of the page's top and the note of every file.

All that depends on scale, sources, tasks and seeds is said here, once; captions depend on none of it.
"""

from collections.abc import Iterator

import pandas as pd

from symbert.configuration import ReportFacts
from symbert.glue.tasks import SUITES
from symbert.hosts import HOSTS
from symbert.report import published
from symbert.report.collect import DOMAIN, Collection
from symbert.report.statistics import COUNTED, SEEDS
from symbert.sources import SOURCES, is_stand_in

ALL = "tasks"
IMPORTED = "imported"  # the scale of scores that others measured
CHOSEN = (
    "Text and settings of this scale were chosen to show an effect of the start; on other text none is shown "
    "(docs/findings/start-and-symmetry.md)."
)
GLOSSARY = {
    "operator": "how the score of two tokens in attention is computed; original is that of BERT",
    "host": "the model that an operator stands in: encoder, decoder, or encoder–decoder",
    "run": "one pre-training of a size with an operator in a host, from a pre-training seed",
    "plateau, exit": "the loss first stays near that of guessing by frequency; the exit is the evaluation after it",
    "stand-in": "made-up text or a made-up task in place of the published one, to try the chain",
    "band": "95 % confidence of the mean over seeds, of two seeds their range",
    "†": "a model that predicts one class throughout",
    "std": "the sample standard deviation over seeds",
    "p, Holm": "a permutation test over all splits of the seeds; Holm’s correction for the number of tests",
}


def other_settings(facts: ReportFacts, section: str = "") -> list[str]:
    """The keys whose values are not the paper's, of the encoder and GLUE; those of one section, or of all."""
    paper = dict(published.SETTINGS)
    if facts.settings.get("glue.source") == "files":  # GLUE's original files
        paper["glue.source"] = "files"
    keys = [key for key in {**paper, **facts.settings} if facts.settings.get(key, ...) != paper.get(key, ...)]
    return [key for key in keys if key.startswith(section) and not key.startswith(("hosts.", "suites."))]


def other_training(data: Collection) -> str | None:
    """Why losses are not comparable with the paper's; None where they are.

    A recipe other than faithful changes them too: it may round the dropout.
    """
    facts = data.facts
    if facts.scale == IMPORTED:
        steps = f"pre-training took {facts.steps:,} steps, the paper’s {published.STEPS:,}"
        return None if facts.steps == published.STEPS else steps
    if len(other_settings(facts)) == len(other_settings(facts, "glue.")):
        return None
    return "the corpus is a stand-in" if has_stand_in_corpus(facts) else "pre-training is not the paper’s"


def other_finetuning(data: Collection) -> str | None:
    """Why scores are not comparable with the paper's, although losses may be; None where others measured them."""
    is_the_papers = data.facts.scale == IMPORTED or not other_settings(data.facts)
    return None if is_the_papers else "fine-tuning is not the paper’s"


def other_scores(data: Collection) -> str | None:
    """Why scores may not be judged beside the paper's; None where they may."""
    tables = [table[table["column"].isin(published.COLUMNS)] for table in _scores(data, "glue")]
    if any(table["stand_in"].any() for table in tables):
        return "the tasks are stand-ins"
    if any(table["partial"].any() for table in tables):
        return "tasks have other rows than GLUE’s"
    return other_training(data) or other_finetuning(data)


def has_stand_in_corpus(facts: ReportFacts) -> bool:
    """Whether the corpus is a stand-in."""
    return is_stand_in(facts.settings.get("corpus.source"))


def sentences_of(data: Collection) -> list[str]:
    """What the top of the page says of the whole experiment."""
    return [sentence for _, sentence in _facts(data) if sentence]


def has_stand_ins_alone(data: Collection) -> bool:
    """Whether all tasks are stand-ins, so that no heading needs to say it again."""
    return _tasks_where("stand_in", data) == ALL


def note_of(data: Collection) -> str:
    """The line of every file: the experiment, and what a reader of that file alone must know of its numbers."""
    if data.facts is None:
        return ""
    return f"{data.facts.title}: {'; '.join(short for short, _ in _facts(data) if short)}."


def _facts(data: Collection) -> Iterator[tuple[str, str]]:
    """Facts of an experiment, each in few words for the note and in a sentence for the page, or in one of them."""
    facts, titles = data.facts, [SUITES[suite].title for suite in data.suites]
    suites = ", ".join([*titles, *["BLiMP"] * (data.blimp is not None)])
    if facts.scale == IMPORTED:
        yield "measured by others", "Others trained and scored these models; how, the imported files do not say."
    texts = ", ".join(dict.fromkeys(text for grid, _ in data.grids for text in grid.axes.get("text", [])))
    if texts:
        yield f"small texts: {texts}", f"Models read small texts: {texts}."
    is_read = not data.grids or any("text" not in grid.axes for grid, _ in data.grids)
    if is_read and has_stand_in_corpus(facts) and any(HOSTS[host].reads_corpus for host in data.hosts_trained):
        yield "stand-in corpus", f"The corpus is {SOURCES[facts.settings['corpus.source']].corpus}."
        if facts.scale == "demo":
            yield "", CHOSEN
    if facts.stand_in_text:
        sentence = "The parallel text is a stand-in, numbers in English and German words."
        yield "stand-in parallel text", sentence
    if tasks := _tasks_where("stand_in", data):
        if tasks == ALL:
            yield (
                f"stand-in tasks, not {suites}",
                f"The tasks are stand-ins made from documentation text, not {suites}.",
            )
        else:
            yield f"stand-ins: {tasks}", f"Stand-ins made from documentation text: {tasks}."
    if tasks := _tasks_where("partial", data):
        of = "all tasks" if tasks == ALL else tasks
        yield f"partial: {of}", f"Other rows than published were read or scored of {of}."
    for suite in data.suites:
        whole = [column for column in SUITES[suite].columns if column in COUNTED]
        present = {column for table in _scores(data, suite) for column in table["column"]}
        counted, title = [column for column in whole if column in present], SUITES[suite].title
        if counted and len(counted) < len(whole):
            sentence = f"The {title} score is the mean of {', '.join(counted)}, not of the whole benchmark."
            yield f"{title} score of {len(counted)} of {len(whole)} columns", sentence
    yield from (("", sentence) for sentence in _flaws(data))
    yield from _seeds(data)
    if facts.scale != IMPORTED and other_settings(facts):
        computed = f"scale {facts.scale}, recipe {facts.settings['recipe']}"
        yield "", f"This is not the paper’s experiment ({computed}): its numbers are not comparable with the paper’s."


def _flaws(data: Collection) -> Iterator[str]:
    """Sentences about models that predict one class throughout, and about models that were fine-tuned again."""
    tables = [table for suite in data.suites for table in _scores(data, suite)]
    if tables:
        rows = pd.concat(tables)[[*SEEDS, "task", "constant_prediction"]]
        rows = rows.iloc[rows["constant_prediction"].ne(True).argsort(kind="stable")]  # of two columns, that which does
        runs = rows.drop_duplicates([*SEEDS, "task"]).sort_index(kind="stable")
        constant, unknown = runs["constant_prediction"].eq(True).sum(), runs["constant_prediction"].isna()
        if constant:
            yield f"† One class is predicted throughout in {constant:,} of {(~unknown).sum():,} fine-tunings."
        if unknown.any():
            known = ", ".join(dict.fromkeys(runs.loc[~unknown, "task"])) or "no task"
            yield f"Whether a model predicts one class throughout is known of {known}."
    if data.robustness is not None and data.robustness["differs"].any():
        again = data.robustness.drop_duplicates([*SEEDS, "task"])["differs"]
        yield (
            f"For noise and out-of-domain sets {again.sum()} of {len(again)} models were fine-tuned again, and score "
            "otherwise than in Table 3."
        )


def _seeds(data: Collection) -> Iterator[tuple[str, str]]:
    """The number of pre-training seeds, and the limit of a single one."""
    scored = max((suite.scores["pretrain_seed"].nunique() for suite in data.scored), default=0)
    trained = max(table["pretrain_seed"].nunique() for table in (data.runs, *[data.hosts] * (data.hosts is not None)))
    trained = max([trained, *(len(grid.seeds) for grid, _ in data.grids)])
    if trained > scored > 0:
        yield f"{trained} pre-training seeds, scores of {'one' if scored == 1 else scored}", ""
    elif number := max(trained, scored):
        yield "one pre-training seed" if number == 1 else f"{number} pre-training seeds", ""
    if scored == 1:
        yield (
            "",
            "Scores are of one pre-training seed: their intervals and p speak of the noise of fine-tuning, and another "
            "pre-training of the same operators may give other differences.",
        )


def _scores(data: Collection, suite: str) -> list[pd.DataFrame]:
    """The tables of scores of a suite."""
    of_suite = data.suites.get(suite)
    return [table for table in (of_suite and (of_suite.scores, of_suite.curve)) or () if table is not None]


def _tasks_where(flag: str, data: Collection) -> str:
    """The tasks that have a flag in some row, minimal pairs and partial out-of-domain sets with them; or ALL."""
    tables = [(table, "task") for suite in data.suites for table in _scores(data, suite)]
    if data.blimp is not None:
        tables.append((data.blimp.assign(task="BLiMP"), "task"))
    if data.robustness is not None and flag == "partial":
        tables.append((data.robustness[data.robustness["kind"] == DOMAIN], "label"))
    every = dict.fromkeys(name for table, key in tables for name in table[key])
    flagged = dict.fromkeys(name for table, key in tables for name in table.loc[table[flag].astype(bool), key])
    return ALL if len(flagged) == len(every) > 1 else ", ".join(flagged)
