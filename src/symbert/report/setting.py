"""What the report says of an experiment as a whole: notes of the page and the note of every file.

All that depends on scale, sources, tasks and seeds is said here, once; captions depend on none of it.
"""

from collections.abc import Iterable, Iterator

import pandas as pd

from symbert.configuration import ReportSettings
from symbert.glue.tasks import SUITES
from symbert.report import published
from symbert.report.collect import DOMAIN, TUNED, Collection
from symbert.report.names import model_name
from symbert.report.statistics import COUNTED, FINETUNE_SEED, SEEDS
from symbert.sources import is_stand_in

MODEL = ["size", "attention", "pretrain_seed", "step", "task"]  # fine-tuned with one learning rate
ALL = "tasks"
IMPORTED = "imported"  # the scale of scores that others measured
CHOSEN = (
    "Text and settings of this scale were chosen to show an effect of the initialization; on documentation no effect "
    "was shown at this depth (docs/findings/start-and-symmetry.md)."
)
ONE_SEED = (
    "{} are of one pre-training seed: their intervals and p speak of the noise of fine-tuning, and another "
    "pre-training of the same operators may give other differences."
)
FOREIGN = "Differences from {}, their intervals and p speak of fine-tuning these checkpoints on these tasks."
OF_TWO_KINDS = (
    "Models from elsewhere read other text, in other tokens, for another time than those that were pre-trained here: a "
    "difference between the two kinds is no effect of an operator."
)
OF_PRETRAINING = ("corpus.", "pretrain.")  # keys


def is_deviation(experiment: ReportSettings, key: str) -> bool:
    """Whether a value is other than the paper's on purpose (docs/deviations.md)."""
    return key in published.DEVIATIONS and experiment.settings.get(key) == published.DEVIATIONS[key][0]


def is_pretrained_here(experiment: ReportSettings) -> bool:
    """Whether an experiment has models that were pre-trained here; those of imported scores count."""
    return experiment.scale == IMPORTED or experiment.steps is not None


def papers_settings(experiment: ReportSettings) -> dict[str, str | float | None]:
    """The paper's settings of what an experiment does: without pre-training those of fine-tuning."""
    without = () if is_pretrained_here(experiment) else OF_PRETRAINING
    return {key: value for key, value in published.SETTINGS.items() if not key.startswith(without)}


def other_settings(experiment: ReportSettings, section: str = "") -> list[str]:
    """The keys whose values are neither the paper's nor a deviation, of the encoder and GLUE; those of one section, or
    of all."""
    paper, ours = papers_settings(experiment), experiment.settings
    keys = [key for key in {**paper, **ours} if ours.get(key, ...) != paper.get(key, ...)]
    keys = [key for key in keys if not is_deviation(experiment, key)]
    return [
        key for key in keys if key.startswith(section) and not key.startswith(("architectures.", "suites.", "models."))
    ]


def other_training(data: Collection) -> str | None:
    """Why losses are not comparable with the paper's; None where they are."""
    experiment = data.experiment
    if experiment.scale == IMPORTED:
        if experiment.steps is None:
            return "the files do not say how long pre-training was"
        steps = f"pre-training took {experiment.steps:,} steps, the paper’s {published.STEPS:,}"
        return None if experiment.steps == published.STEPS else steps
    if len(other_settings(experiment)) == len(other_settings(experiment, "glue.")):
        return None
    return "the corpus is a stand-in" if has_stand_in_corpus(experiment) else "pre-training is not the paper’s"


def other_finetuning(data: Collection) -> str | None:
    """Why scores are not comparable with the paper's, although losses may be; None where others measured them."""
    is_the_papers = data.experiment.scale == IMPORTED or not other_settings(data.experiment)
    return None if is_the_papers else "fine-tuning is not the paper’s"


def other_scores(data: Collection) -> str | None:
    """Why scores may not be judged beside the paper's; None where they may."""
    tables = data.tables_of_scores.get("glue", [])
    tables = [table[table["column"].isin(published.COLUMNS)] for table in tables]
    if any(table["stand_in"].any() for table in tables):
        return "the tasks are stand-ins"
    if any(table["partial"].any() for table in tables):
        return "tasks have other rows than GLUE’s"
    return other_training(data) or other_finetuning(data)


def has_stand_in_corpus(experiment: ReportSettings) -> bool:
    """Whether the corpus is a stand-in."""
    return is_stand_in(experiment.settings.get("corpus.source"))


def sentences_of(data: Collection) -> list[str]:
    """What the notes of the page say of the whole experiment."""
    notes = "; ".join(_notes(data))
    return [f"{notes[:1].upper()}{notes[1:]}.", *_limits(data)] if notes else [*_limits(data)]


def has_stand_ins_alone(data: Collection) -> bool:
    """Whether all tasks are stand-ins, so that no heading needs to say it again."""
    return _tasks_where("stand_in", data) == ALL


def note_of(data: Collection) -> str:
    """The line of every file: the experiment, and what a reader of that file alone must know of its numbers."""
    return "" if data.experiment is None else f"{data.experiment.title}: {'; '.join(_notes(data))}."


def _notes(data: Collection) -> Iterator[str]:
    """What stands in for the paper's data, and the number of seeds, in few words each."""
    experiment = data.experiment
    if experiment.scale == IMPORTED:
        yield "measured by others"
    texts = ", ".join(dict.fromkeys(text for grid, _ in data.grids for text in grid.axes.get("text", [])))
    if texts:
        yield f"small texts: {texts}"
    if reads_corpus(data) and has_stand_in_corpus(experiment):
        yield "stand-in corpus"
    if tasks := _tasks_where("stand_in", data):
        suites = [SUITES[suite].title for suite in data.tables_of_scores] + ["BLiMP"] * (data.blimp is not None)
        yield f"stand-in tasks, not {' or '.join(suites)}" if tasks == ALL else f"stand-ins: {tasks}"
    if tasks := _tasks_where("partial", data):
        yield f"partial: {'all tasks' if tasks == ALL else tasks}"
    for suite, tables in data.tables_of_scores.items():
        whole = [column for column in SUITES[suite].columns if column in COUNTED]
        rows = pd.concat(tables)
        counted = rows[rows["column"].isin(whole)].groupby("size", sort=False)["column"].nunique()
        for number in counted[counted < len(whole)].unique():
            sizes = [size or "models from elsewhere" for size in counted.index[counted == number]]
            of = "" if len(sizes) == rows["size"].nunique() else f" in {', '.join(sizes)}"
            score = "mean score" if rows["stand_in"].any() else f"{SUITES[suite].title} score"
            yield f"{score} of {number} of {len(whole)} columns{of}"
    scored, trained = _seeds(data)
    known = trained or scored
    if known:
        seeds = "one pre-training seed" if known == [1] else f"{in_words(known)} pre-training seeds"
        fewer = scored and scored[-1] < known[-1]
        of_scores = f", scores of {'one' if scored == [1] else in_words(scored)}" if fewer else ""
        yield f"{seeds}{of_scores}"
    if data.models:
        several = len(data.models) > 1
        yield f"{len(data.models)} model{'s' * several} from elsewhere, one checkpoint{' each' * several}"


def _limits(data: Collection) -> Iterator[str]:
    """Sentences about models that predict one class throughout, about rows, and about comparisons."""
    experiment, tables = data.experiment, [table for tables in data.tables_of_scores.values() for table in tables]
    if reads_corpus(data) and has_stand_in_corpus(experiment) and experiment.scale == "demo":
        yield CHOSEN
    if tables:
        rows = pd.concat(tables)[[*SEEDS, "task", "constant_prediction"]]
        is_constant = (
            rows["constant_prediction"].map({True: 1.0, False: 0.0}).groupby([rows[key] for key in (*SEEDS, "task")])
        )
        runs = is_constant.max()  # of two columns one is enough
        known, unknown = runs.count(), runs.isna().sum()
        if runs.any() or (known and unknown):
            not_known = f"; of {unknown:,} it is not known" if unknown else ""
            yield f"† One class is predicted throughout in {runs.sum():,.0f} of {known:,} fine-tunings{not_known}."
        elif unknown:
            yield f"Whether one class is predicted throughout is not known of any of {unknown:,} fine-tunings."
        remarks = pd.concat(tables)[["column", "remark"]].drop_duplicates().query("remark != ''")
        yield from (f"‡ {row.column}: {row.remark}." for row in remarks.itertuples())
    inferred = [pair for pairs in data.comparisons.values() for pair in pairs if pair.interval]
    models = dict.fromkeys(model_name(pair.size, pair.model) for pair in inferred if pair.unit == FINETUNE_SEED)
    if models:
        are_all = not data.models and all(pair.unit == FINETUNE_SEED for pair in inferred)
        yield ONE_SEED.format("Scores" if are_all else f"Differences of {', '.join(models)}")
    if any(data.paired.values()):
        yield FOREIGN.format(data.known.models[0])
        if any(pair.size for pairs in data.paired.values() for pair in pairs):
            yield OF_TWO_KINDS
    yield from _of_rates(data)
    yield from _of_grids(data)
    if experiment.scale != IMPORTED and other_settings(experiment):
        yield "This is not the paper’s experiment: its numbers are not comparable with the paper’s."


def reads_corpus(data: Collection) -> bool:
    """Whether a model reads the corpus: one that is pre-trained here; those of a sweep may read small texts alone."""
    return is_pretrained_here(data.experiment) and (
        not data.grids or any("text" not in grid.axes for grid, _ in data.grids)
    )


def chosen_rates(data: Collection) -> pd.DataFrame:
    """A row per model and task whose learning rate was tuned: the rate, by rate the scores of the tuning seeds, and at
    which edge of the grid the rate lies, "lowest" or "highest", empty where it lies within."""
    tables = [table[table["tuned"].astype(bool)] for table in data.scores.values() if "tuned" in table]
    tuned = pd.concat(tables) if tables else pd.DataFrame(columns=[*MODEL, *TUNED])
    tuned = tuned.drop_duplicates(MODEL)[[*MODEL, *TUNED]]

    def edge(row: pd.Series) -> str:
        rates = sorted(map(float, row["tuned"]))
        return {rates[0]: "lowest", rates[-1]: "highest"}.get(row["learning_rate"], "") if len(rates) > 1 else ""

    return tuned.assign(edge=[edge(row) for _, row in tuned.iterrows()])


def _of_rates(data: Collection) -> Iterator[str]:
    """A sentence on the models whose learning rates are tuned, and on those whose are not."""
    chosen = chosen_rates(data)
    if chosen.empty:
        return
    count = chosen["edge"].ne("").sum()
    at_edge = f", {count:,} at the edge of their grid, so that a better one may lie beyond" if count else ""
    tables = pd.concat(data.scores.values()), chosen
    every, tuned = ({*map(model_name, table["size"], table["attention"])} for table in tables)
    rest = f"; those of {', '.join(sorted(every - tuned))} are fixed, so tuning is unequal" if every > tuned else ""
    yield (
        f"Learning rates of {', '.join(sorted(tuned))} are chosen for each task on other seeds than the reported ones"
        f"{at_edge}{rest}."
    )


def _of_grids(data: Collection) -> Iterator[str]:
    """A sentence on each tuned grid: how its rates were chosen, and which of the best ones lie at an edge."""
    for grid, choices in data.tuned:
        assert grid.tune
        outcome = {"final_loss": "last validation loss", "escape": "escape from the plateau"}[grid.tune.by]
        named = zip(grid.points, choices, strict=True)
        varied = [axis for axis, values in grid.axes.items() if len(values) > 1] or ["attention"]
        edges = [
            f"{', '.join(str(point[axis]) for axis in varied)} ({choice.best:g}, the {choice.edge})"
            for point, choice in named
            if choice.edge
        ]
        at_edge = (
            f" The best rate lies at the edge of those tried, so that a better one may lie beyond, of {len(edges)} of "
            f"{len(choices)}: {'; '.join(edges)}."
            if edges
            else " No best rate lies at the edge of those tried."
        )
        seeds = ", ".join(map(str, sorted(grid.tune.seeds)))
        yield (
            f"Learning rates of {grid.name} are chosen among {', '.join(f'{rate:g}' for rate in grid.rates)} by the "
            f"{outcome} of seeds {seeds}, which are not reported; models are compared at one common rate, the best of "
            f"{grid.axes['attention'][0]}, and each at its best.{at_edge}"
        )


def in_words(counts: Iterable[int]) -> str:
    """'3', or where models have different numbers '1 to 3'."""
    low, high = min(counts), max(counts)
    return f"{low}" if low == high else f"{low} to {high}"


def _seeds(data: Collection) -> tuple[list[int], list[int]]:
    """The numbers of pre-training seeds that models have scores of, and that were trained, smallest first."""
    scored = [_numbers(data.own(scores)) for scores in data.scores.values()]
    trained = [_numbers(table) for table in (data.runs, data.architectures) if table is not None]
    trained.append({len(grid.seeds) for grid, _ in data.grids})
    return sorted(set().union(*scored)), sorted(set().union(*trained))


def _numbers(table: pd.DataFrame) -> set[int]:
    model = [key for key in ("architecture", "size", "attention") if key in table]
    return {*table.groupby(model)["pretrain_seed"].nunique().tolist()}


def _tasks_where(flag: str, data: Collection) -> str:
    """The tasks that have a flag in some row, minimal pairs and partial out-of-domain sets with them; or ALL."""
    tables = [(table, "task") for tables in data.tables_of_scores.values() for table in tables]
    if data.blimp is not None:
        tables.append((data.blimp.assign(task="BLiMP"), "task"))
    if data.robustness is not None and flag == "partial":
        tables.append((data.robustness[data.robustness["kind"] == DOMAIN], "label"))
    every = dict.fromkeys(name for table, key in tables for name in table[key])
    flagged = dict.fromkeys(name for table, key in tables for name in table.loc[table[flag].astype(bool), key])
    return ALL if len(flagged) == len(every) > 1 else ", ".join(flagged)
