"""What the stages of an experiment cost: operations by formula, and the speed that finished runs measured.

Operations are those of the operator `original`: no other has more, and they differ by a few per cent. Where nothing
was measured, speeds are those of `rates` in the configuration. Imports no torch.
"""

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median

from symbert.config import source_of
from symbert.corpus.plan import plan_of
from symbert.experiment.existing import RunState, Values, read_json_or_empty, share_of_corpus
from symbert.experiment.layout import Experiment
from symbert.experiment.scores import robustness_seeds, scored_seeds
from symbert.flops import encoder_flops, step_flops
from symbert.glue.stand_ins import STAND_IN_EVALUATION_ROWS, STAND_IN_ROWS
from symbert.pretrain.run import Run
from symbert.report.machines import read_benchmarks
from symbert.sizes import SIZES
from symbert.tasks import task_named

# Tokens of an example without padding: padding GLUE's training rows to 128 computes 3.6 times as many.
EXAMPLE_TOKENS = 36
BYTES_OF_A_ROW = 100  # of a file of the user's own, about
EMBEDDED_CORE_HOURS = 0.002  # to make the stand-in corpus: 4 s on two cores, and some for slower ones


@dataclass(frozen=True)
class Hours:
    """Time of devices; beside each GPU one core is busy."""

    gpu: float = 0.0
    core: float = 0.0

    def __add__(self, other: "Hours") -> "Hours":
        return Hours(self.gpu + other.gpu, self.core + other.core)


@dataclass(frozen=True)
class Cost:
    """Hours in all, and those of them that are to come."""

    whole: Hours = field(default_factory=Hours)
    to_come: Hours = field(default_factory=Hours)

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.whole + other.whole, self.to_come + other.to_come)


@dataclass(frozen=True)
class Work:
    """Operations of a model, and the layers of the optimizer steps that they are part of."""

    flops: float = 0.0
    layers: int = 0  # steps × layers of the model

    def __add__(self, other: "Work") -> "Work":
        return Work(self.flops + other.flops, self.layers + other.layers)


def corpus_cost(experiment: Experiment) -> Cost:
    """To filter, tokenize and pack all parts, and to make those of the stand-in."""
    hours = sum(plan_of(experiment.config).core_hours.values()) + (EMBEDDED_CORE_HOURS if experiment.is_embedded else 0)
    return Cost(Hours(core=hours), Hours(core=hours * (1 - share_of_corpus(experiment))))


def pretraining_cost(experiment: Experiment, state: RunState, speed: "Speed") -> Cost:
    """Of one run."""
    whole = pretraining_work(experiment, state.run.size)
    return speed.cost(whole, Work() if state.is_done else pretraining_work(experiment, state.run.size, state.step))


def finetuning_cost(experiment: Experiment, state: RunState, step: int, speed: "Speed") -> Cost:
    """Of one checkpoint, on all tasks; its robustness too, where that is asked for."""
    size, cost = state.run.size, Cost()
    wanted = len(experiment.finetune_seeds(size, step))
    for task, seeds in scored_seeds(experiment, state, step).items():
        cost += speed.cost(*(finetuning_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    if step == experiment.final:
        wanted = len(experiment.config["sweep"]["finetune_seeds"])
        for task, seeds in robustness_seeds(experiment, state, step).items():
            cost += speed.cost(*(robustness_work(experiment, size, task, n) for n in (wanted, wanted - len(seeds))))
    return cost


def pretraining_work(experiment: Experiment, size: str, done: int = 0) -> Work:
    """The steps of one run after the first `done`, with their evaluations, which are forward only."""
    settings, pack, shape = experiment.pretraining, experiment.config["corpus"]["pack"], SIZES[size]
    left, length = settings.steps - done, pack["sequence_length"]

    def flops(rows: int) -> float:
        masked = settings.mask_probability * rows * length
        return step_flops(shape, shape.layer_weights, experiment.vocabulary_size, rows, length, masked)

    evaluations = math.ceil(left / settings.evaluate_every)
    total = left * flops(settings.batch_size) + evaluations * flops(pack["validation_sequences"]) / 3
    return Work(total, left * shape.num_hidden_layers)


def finetuning_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """One task on one checkpoint, with its evaluation."""
    shape, steps = SIZES[size], finetuning_steps(experiment, task)
    training = 3 * steps * _examples_flops(experiment, size, experiment.finetuning.batch_size)
    evaluation = _examples_flops(experiment, size, evaluated_rows(experiment, task))
    return Work(seeds * (training + evaluation), seeds * steps * shape.num_hidden_layers)


def robustness_work(experiment: Experiment, size: str, task: str, seeds: int = 1) -> Work:
    """Scores on noise, of models that were kept, or else are fine-tuned again. Out-of-domain sets are not counted."""
    glue = experiment.config["glue"]
    levels = 1 + len(glue["robustness"]["noise"]) * len(glue["robustness"]["noise_kinds"])
    scoring = Work(seeds * levels * _examples_flops(experiment, size, evaluated_rows(experiment, task)))
    return scoring if glue["keep_finetuned"] else scoring + finetuning_work(experiment, size, task, seeds)


def finetuning_steps(experiment: Experiment, task: str) -> int:
    """Optimizer steps of one seed."""
    settings = experiment.finetuning
    return settings.epochs * math.ceil(_rows(experiment, task, "train") / settings.batch_size)


def evaluated_rows(experiment: Experiment, task: str) -> int:
    """Rows of the splits that a fine-tuned model is scored on."""
    return sum(_rows(experiment, task, split) for split in task_named(task).scores)


def _rows(experiment: Experiment, task: str, split: str) -> int:
    """Rows of a split; one that is limited, or made here, has fewer than the official one. Of own files about."""
    glue, row = experiment.config["glue"], task_named(task)
    if row.files:
        path = Path(row.files[split])
        files = (file for file in (path, *path.rglob("*")) if file.is_file())
        rows = math.ceil(sum(file.stat().st_size for file in files) / BYTES_OF_A_ROW)
    elif source_of(experiment.config, "glue") == "embedded":
        rows = STAND_IN_ROWS if split == "train" else STAND_IN_EVALUATION_ROWS
    else:
        rows = row.official_rows[split]
    limit = glue["max_examples" if split == "train" else "max_evaluation_examples"]
    return min(rows, limit or rows)


def _examples_flops(experiment: Experiment, size: str, rows: int) -> float:
    """Operations, forward, on examples of GLUE."""
    tokens = min(EXAMPLE_TOKENS, experiment.config["glue"]["max_length"])
    return encoder_flops(SIZES[size], SIZES[size].layer_weights, rows, tokens)


@dataclass(frozen=True)
class Speed:
    """How fast one device computes one kind of model."""

    on_gpu: bool
    flops: float  # model operations per second
    layer_seconds: float  # of a step, per layer, beside its arithmetic
    measured: str | None = None  # where, and on what; None where configured

    def hours(self, work: Work) -> float:
        """Of one device."""
        return (work.flops / self.flops + work.layers * self.layer_seconds) / 3600

    def cost(self, whole: Work, to_come: Work) -> Cost:
        """The hours of some work, and of the part of it that is to come."""
        hours = (Hours(self.on_gpu * self.hours(work), self.hours(work)) for work in (whole, to_come))
        return Cost(*hours)


def configured_speed(experiment: Experiment, size: str) -> Speed:
    """The speed that `rates` gives a size."""
    rates, device = experiment.config["rates"], "gpu" if SIZES[size].needs_gpu else "core"
    return Speed(device == "gpu", rates[f"{device}_flops"], rates[f"{device}_layer_seconds"])


def pretraining_speed(experiment: Experiment, run: Run) -> Speed:
    """The speed that finished runs of the same size, operator and recipe measured: the median of one device.

    Runs of this experiment come before those of others in results/, and the device of the newest run counts.
    """
    files = sorted(Path("results").glob("*/pretrain/*/seed-*/timing.json"))
    timings = {file: timing for file in files if _is_like(timing := read_json_or_empty(file), experiment, run)}
    timings = {file: timings[file] for file in timings if file.parts[1] == experiment.name} or timings
    if not timings:
        return configured_speed(experiment, run.size)
    newest = max(timings, key=lambda file: str(timings[file].get("until", "")))
    device = timings[newest]["device"]
    flops = median(_flops_of_device(timing) for timing in timings.values() if timing["device"] == device)
    return Speed(device != "cpu", flops, 0.0, f"{newest.parts[1]} on {device}")


def _is_like(timing: Values, experiment: Experiment, run: Run) -> bool:
    """Whether a timing is whole, and of such a run."""
    wanted = {"size": run.size, "attention": run.attention, "recipe": experiment.config["recipe"]}
    numbers = [timing.get(key) for key in ("mfu", "peak_flops", "processes")]
    is_whole = bool(timing.get("device")) and all(type(one) in (int, float) and one > 0 for one in numbers)
    return is_whole and wanted.items() <= timing.items()


def _flops_of_device(timing: Values) -> float:
    """FLOP/s of one device: each process has a GPU, or else `threads` cores."""
    cores = timing.get("threads", 1) if timing["device"] == "cpu" else 1
    return timing["mfu"] * timing["peak_flops"] / (timing["processes"] * cores)


def finetuning_speed(experiment: Experiment, size: str) -> Speed:
    """The speed that this experiment's jobs of fine-tuning a size measured.

    The slowest job counts: one that only added to the work of an earlier one was short.
    """
    speed, slowest = configured_speed(experiment, size), 0.0
    jobs = read_benchmarks(Path(experiment.results) / "benchmarks")
    hours = {job.name: job.wall for job in jobs if job.rule == "finetune"}
    for run, step in experiment.checkpoints():
        name = f"{run.size}-{run.attention}-seed-{run.pretrain_seed}-step-{step}"
        if run.size == size and name in hours:
            seeds = len(experiment.finetune_seeds(size, step))
            work = sum((finetuning_work(experiment, size, task, seeds) for task in experiment.tasks), Work())
            slowest = max(slowest, hours[name] / speed.hours(work))
    if not slowest:
        return speed
    timings = [
        read_json_or_empty(experiment.place(experiment.run, run) / "timing.json") for run in experiment.runs([size])
    ]
    cores = max((timing.get("threads", 1) for timing in timings if timing.get("device") == "cpu"), default=0)
    slowest *= cores or 1
    return replace(
        speed,
        on_gpu=speed.on_gpu and not cores,
        flops=speed.flops / slowest,
        layer_seconds=speed.layer_seconds * slowest,
        measured=experiment.name,
    )
