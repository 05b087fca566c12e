"""What an experiment will cost, before anything is spent: jobs, hours, disk and download of each stage."""

from dataclasses import dataclass, field
from pathlib import Path

from symbert.config import parts_of
from symbert.corpus.plan import plan_of
from symbert.experiment import operations
from symbert.experiment.disk import Files, files_of, glue_bytes_to_come
from symbert.experiment.existing import FoundRun, find_runs
from symbert.experiment.inputs import has_corpus, parts_done
from symbert.experiment.jobs import jobs_of
from symbert.experiment.layout import Experiment
from symbert.experiment.rates import Speed, finetuning_speed_of, speed_of
from symbert.experiment.scores import robustness_found, scores_found
from symbert.pretrain.job import Run

EMBEDDED_CORE_HOURS = 0.012  # to make the stand-in corpus


@dataclass(frozen=True)
class Hours:
    """Time of devices; beside each GPU one core is busy."""

    gpu: float = 0.0
    core: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.gpu + other.gpu, self.core + other.core)


@dataclass(frozen=True)
class Spent:
    """Hours in all, and those of them that are to come."""

    whole: Hours = field(default_factory=Hours)
    to_come: Hours = field(default_factory=Hours)

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.whole + other.whole, self.to_come + other.to_come)


@dataclass(frozen=True)
class Stage:
    """What a stage takes; sizes in bytes."""

    name: str
    jobs: int  # of a fresh experiment
    spent: Spent
    download: float  # to come
    files: list[Files]

    @property
    def disk(self) -> float:
        """Bytes of its files; of some, such as raw parts, at their most."""
        return sum(one.planned for one in self.files)

    @property
    def disk_to_come(self) -> float:
        """Bytes of them that are not written yet."""
        return sum(one.to_come for one in self.files)


@dataclass(frozen=True)
class Plan:
    """The stages in order, the runs as they are found, and what of the rates was measured."""

    stages: list[Stage]
    runs: list[FoundRun]
    measured: list[str]

    @property
    def files(self) -> list[Files]:
        """Of all stages."""
        return [one for stage in self.stages for one in stage.files]


def plan_experiment(experiment: Experiment) -> Plan:
    """The plan of an experiment; MissingInputError names a part that a mirror lacks."""
    runs = find_runs(experiment)
    by_run = {found.run: found for found in runs}
    trained = {found.run: speed_of(experiment, found.run) for found in runs}
    tuned = {size: finetuning_speed_of(experiment, size) for size in experiment.config["sweep"]["sizes"]}
    spent = {
        "corpus": _corpus(experiment),
        "pretrain": sum((_pretraining(experiment, found, trained[found.run]) for found in runs), Spent()),
        "glue": sum(
            (_finetuning(experiment, by_run[run], step, tuned[run.size]) for run, step in experiment.checkpoints()),
            Spent(),
        ),
        "report": Spent(),
    }
    download = {
        "corpus": 0 if has_corpus(experiment) else plan_of(experiment.config).download,
        "glue": glue_bytes_to_come(experiment),
    }
    files = files_of(experiment, runs)
    stages = [
        Stage(
            stage,
            jobs.total(),
            spent[stage] + _starting(experiment, stage, jobs.total(), spent[stage]),
            download.get(stage, 0),
            [one for one in files if one.stage == stage],
        )
        for stage, jobs in jobs_of(experiment).items()
    ]
    return Plan(stages, runs, _measured(trained, tuned))


def _starting(experiment: Experiment, stage: str, jobs: int, spent: Spent) -> Spent:
    """Starting the jobs of a stage, which is to come unless the stage is done."""
    hours = Hours(core=jobs * experiment.config["rates"]["job_seconds"] / 3600)
    is_done = spent.to_come == Hours()
    if stage == "report":
        is_done = (Path(experiment.results) / "report/report.html").is_file()
    return Spent(hours, Hours() if is_done else hours)


def _corpus(experiment: Experiment) -> Spent:
    hours = sum(plan_of(experiment.config).core_hours.values()) + (EMBEDDED_CORE_HOURS if experiment.is_embedded else 0)
    left = 0 if has_corpus(experiment) else 1 - parts_done(experiment) / len(parts_of(experiment.config))
    return Spent(Hours(core=hours), Hours(core=hours * left))


def _pretraining(experiment: Experiment, found: FoundRun, speed: Speed) -> Spent:
    size = found.run.size
    left = Hours() if found.is_done else _hours(speed, operations.pretraining(experiment, size, found.step))
    return Spent(_hours(speed, operations.pretraining(experiment, size)), left)


def _finetuning(experiment: Experiment, found: FoundRun, step: int, speed: Speed) -> Spent:
    """Of one checkpoint; its robustness too, where that is asked for."""
    size, spent = found.run.size, Spent()
    wanted = len(experiment.finetune_seeds(size, step))
    for task, seeds in scores_found(experiment, found, step).items():
        amounts = (operations.finetuning(experiment, size, task, count) for count in (wanted, wanted - len(seeds)))
        spent += Spent(*(_hours(speed, amount) for amount in amounts))
    if step != experiment.final:
        return spent
    wanted = len(experiment.config["sweep"]["finetune_seeds"])
    for task, there in robustness_found(experiment, found, step).items():
        amounts = (operations.robustness(experiment, size, task, count) for count in (wanted, wanted - there))
        spent += Spent(*(_hours(speed, amount) for amount in amounts))
    return spent


def _hours(speed: Speed, amount: operations.Work) -> Hours:
    hours = speed.hours(amount)
    return Hours(hours if speed.on_gpu else 0.0, hours)


def _measured(trained: dict[Run, Speed], tuned: dict[str, Speed]) -> list[str]:
    """Which speeds were measured, and where."""
    told = [f"pre-training {run}: {speed.measured}" for run, speed in trained.items() if speed.measured]
    return [*told, *(f"fine-tuning {size}: {speed.measured}" for size, speed in tuned.items() if speed.measured)]
