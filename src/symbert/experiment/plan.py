"""What an experiment will cost, before anything is spent: jobs, hours, disk and download of each stage.

A plan is a list of files, each with what making it takes; what exists costs nothing. Imports no torch.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

from symbert.architectures import ARCHITECTURES, ENCODER, Rows, encoder_flops
from symbert.configuration import annotations_of, source_of
from symbert.console import aligned, data_size
from symbert.corpus.annotation import INSTALL_KENLM
from symbert.corpus.lines import read_lines
from symbert.corpus.shards import Pack
from symbert.experiment.layout import Experiment, Score
from symbert.experiment.models import code_left_out, shape_of
from symbert.experiment.power import lines_of_seeds
from symbert.experiment.project import ConfigFiles, ConfigWords, Scale, read_experiment
from symbert.experiment.sweep import packed_as, text_of
from symbert.files import free_space, read_json, size_of
from symbert.foreign import ForeignModel
from symbert.glue.score import Finetune, MinimalPairs, Robustness, Work, finished_at
from symbert.paths import Run
from symbert.pretrain.run import FLOAT32, Continuation, Timing, lost_weights, storage_of
from symbert.sizes import SIZES, VOCABULARY_SIZE, Shape
from symbert.sources import located
from symbert.steps import RESULTS

# Section 3.1 of arXiv 2406.06366, and its authors' README, which reads the first 300 parts (900 in another line).
PAPER_PARTS, PAPER_TOKENS = 300, 70_000_000_000
TOKENS_PER_DOCUMENT = PAPER_TOKENS / 30_000_000
# Measured on 22,915 real documents in OSCAR's form (web pages, encyclopedia, news, reviews), of which 3,845 were kept.
KEPT = 0.67  # of the text, where there is a filter
TEXT_PER_TOKEN = 4.68  # bytes of UTF-8
JSON, COMPRESSED = 1.34, 0.382  # bytes per byte of text
BYTES = {".zst": COMPRESSED, ".gz": COMPRESSED, ".parquet": 0.41, ".txt": 1, ".csv": 1, ".tsv": 1}
TEXT_OF_PART = PAPER_TOKENS / PAPER_PARTS * TEXT_PER_TOKEN / KEPT  # bytes of one that is not here yet
# Kept tokens per second and core, by who annotates: filtered, tokenized and packed (docs/measurements/bench-corpus.md).
TOKENS_PER_SECOND = {"published": 5.5e6, "computed": 1.6e6}
TOKEN_BYTES = 2
MANY_EMPTY = 0.01  # expected steps of a run without a hidden token, which are said
CHARACTERS = 100  # of a small text without word pieces, about
CUSTOM_ROWS = 10_000  # of a split of a task whose publisher says no number, about


class Gpu(NamedTuple):
    """How fast a GPU trains."""

    flops: dict[str, float]  # model operations per second in bf16, compiled, with dropout, by size
    weight_seconds: float  # of a fine-tuning's step, per weight of the layers, beside its arithmetic: memory traffic
    source: str


# Model operations: 6 per weight of a matrix and token, and attention's (`architectures.step_flops`). A pre-training of
# small took 2.38 million tokens per second, of base 0.56 (docs/measurements/gpu-check.md); a fine-tuning's step of base
# 6.3 ms in a prototype, 16 rows padded to 128.
H200 = Gpu(
    {"small": 2.18e14, "base": 3.16e14},
    6.1e-11,
    "pre-training measured, fine-tuning measured in a prototype of its step (6.3 ms of base), not in this code",
)


def scaled(name: str, flops: float, bandwidth: float) -> Gpu:
    """A GPU that nobody measured, by data sheets: dense FLOP/s in bf16, and bytes per second of its memory."""
    share, slower = flops / 989e12, 4.8e12 / bandwidth
    rates = {size: share * of_size for size, of_size in H200.flops.items()}
    return Gpu(rates, slower * H200.weight_seconds, f"an H200's, scaled by the data sheet of the {name}, not measured")


GPUS = {
    "H200": H200,
    "H100": scaled("H100", 989e12, 3.35e12),
    "A100": scaled("A100", 312e12, 2.04e12),
    "RTX 4090": scaled("RTX 4090", 165e12, 1.01e12),
}
NOTES = """
Good within a factor of two. Download: corpus and models alone. Disk at its most; raw parts are removed once
they are read.
For less: a smaller scale (single-gpu, laptop, demo); fewer sizes, operators, seeds, tasks or curve steps in `sweep`;
fewer pretrain.steps; fewer corpus.parts; weights of fewer steps: a larger pretrain.save_every."""


@dataclass(frozen=True)
class Output:
    """A file that a job writes, and what it takes."""

    stage: str  # corpus | pretrain | glue | report
    file: str
    is_missing: bool  # whether it is to come
    seconds: float = 0.0  # of one device
    on_gpu: bool = False  # beside a GPU one core is busy
    bytes: float = 0.0  # at most, with what lies beside it
    download: float = 0.0  # bytes


def plan(scale: Scale = None, configfile: ConfigFiles = None, config: ConfigWords = None) -> None:
    """Print what of the chosen experiment is still to come by stage: jobs, hours, disk, download; what its seeds can
    show; and what costs less.

    Run it in the folder with results/.
    """
    experiment = read_experiment(scale, configfile, config)
    print("\n".join(lines_of(experiment, outputs_of(experiment))))


def outputs_of(experiment: Experiment) -> list[Output]:
    """The files of an experiment that take time, room or a download."""
    measured = [file for files in experiment.measured.values() for file in files]
    report = [*measured, experiment.reported]
    return [
        *_corpus(experiment),
        *_pretraining(experiment),
        *_scores(experiment),
        *(Output("report", file, _is_missing(file)) for file in report),
    ]


def _is_missing(*files: str) -> bool:
    return not all(Path(file).exists() for file in files)


def _corpus(experiment: Experiment) -> Iterator[Output]:
    """Parts and rows; once the rows are packed nothing is read again."""
    config = experiment.config
    is_of_hub = source_of(config, "corpus") == "hub"
    rows = {experiment.manifest(run): experiment.rows(run.variant) for run in experiment.runs}
    shards = [manifest for manifest, step in rows.items() if isinstance(step, Pack)]
    tokens = 0.0
    for part, name in experiment.texts.items() if shards else ():
        file = experiment.parts.paths(part=part)["tokens"]
        text = _text_of(name, experiment.sizes_of.get(name))
        of_part = text / TEXT_PER_TOKEN * (KEPT if config.corpus.filter.rules else 1.0)
        seconds = of_part / TOKENS_PER_SECOND[annotations_of(config)]
        is_remote = is_of_hub or name in experiment.sizes_of
        download = is_remote * _is_missing(name) * experiment.sizes_of.get(name, COMPRESSED * text)
        written = TOKEN_BYTES * of_part + download * config.corpus.keep_raw
        is_missing = _is_missing(*shards) and _is_missing(file)
        yield Output("corpus", file, is_missing, seconds, bytes=written, download=download)
        tokens += of_part
    tokens = min(tokens, config.corpus.pack.max_documents * TOKENS_PER_DOCUMENT)
    for manifest in rows:
        packed = tokens if manifest in shards else 0.0
        yield Output("corpus", manifest, _is_missing(manifest), bytes=TOKEN_BYTES * packed)


def _text_of(name: str, size: int | None = None) -> float:
    """Bytes of text in a part, by the size of its file; of one of unknown size, as much as of the paper's."""
    path = Path(located(name))
    if path.is_dir():
        return sum(size_of(file) or 0 for file in path.rglob("*.arrow"))
    size = size_of(path) if size_of(path) is not None else size
    return TEXT_OF_PART if size is None else size / BYTES.get(path.suffix, JSON)


def _pretraining(experiment: Experiment) -> Iterator[Output]:
    """Runs, and the checkpoints that are taken from them."""
    continuations, taken = experiment.continuations, taken_by(experiment)
    following = [run for grid in experiment.tuned for run in experiment.may_follow(grid)]
    for run in dict.fromkeys([*experiment.runs, *following]):
        folder = experiment.pretrainings[run].folder
        settings, rows = experiment.training(run), rows_of(experiment, run)
        shape, architecture = experiment.shapes[run.size], ARCHITECTURES[run.architecture]
        pack = text_of(experiment.config, run.variant) or packed_as(experiment.config, run.variant)
        held_out = settings.steps / settings.evaluate_every * pack.validation_sequences
        sequences = settings.steps * settings.batch_size + held_out / 3  # of a validation the way forward alone
        flops = architecture.step_flops(shape, shape.layer_weights, rows, sequences)
        seconds, done = seconds_of(experiment, shape, flops, settings.steps, finetunes=False), f"{folder}/done.json"
        seconds *= taken.pretraining.get(shape, 1.0)
        if (before := continuations.get(run)) and before.step:
            seconds *= 1 - before.step / settings.steps
        parameters = shape.parameters(rows.vocabulary_size)  # of the operator `original`, the most of ours
        yield Output("pretrain", done, _is_missing(done), seconds, shape.needs_gpu, storage_of(parameters, settings))
        for step in experiment.extracted_steps(run):
            weights = f"{experiment.checkpoint(run, step)}/model.safetensors"
            yield Output("pretrain", weights, _is_missing(weights), bytes=FLOAT32 * parameters)


def rows_of(experiment: Experiment, run: Run) -> Rows:
    """The rows of a run."""
    config, mask_probability = experiment.config, experiment.training(run).mask_probability
    if text := text_of(config, run.variant):
        return Rows(text.vocabulary or CHARACTERS, text.sequence_length, mask_probability)
    vocabulary = Path(located(experiment.vocabulary.path))
    pieces = sum(1 for _ in read_lines(vocabulary)) if vocabulary.is_file() else VOCABULARY_SIZE
    return Rows(pieces, packed_as(config, run.variant).sequence_length, mask_probability)


def warnings_of(experiment: Experiment) -> list[str]:
    """What a plan and a start say beforehand: models that cannot be made, or are computed without their own code, a
    package that is missing, and settings under which a step without any hidden token is to be expected, whose loss and
    gradient are zero."""
    lines = [
        *lines_of_lost(experiment),
        *_lines_of_alone(experiment),
        *filter(None, map(code_left_out, experiment.models.values())),
    ]
    is_computed = annotations_of(experiment.config) == "computed" and experiment.config.corpus.filter.has("perplexity")
    if is_computed and _is_missing(experiment.shards) and not find_spec("kenlm"):
        lines.append(f"corpus: kenlm, which computes perplexities, is not installed; {INSTALL_KENLM}")
    for run in {run.variant: run for run in experiment.runs if run.architecture == ENCODER}.values():
        settings, tokens = experiment.training(run), rows_of(experiment, run).tokens
        expected = settings.steps * (1 - settings.mask_probability) ** (settings.batch_size * tokens)
        if expected > MANY_EMPTY:
            lines.append(
                f"pretrain: about {expected:.2g} of {settings.steps:,} steps hide no token and teach nothing: "
                f"batch_size {settings.batch_size}, rows of {tokens:.0f} tokens, mask_probability "
                f"{settings.mask_probability:g}; raise one"
            )
    return lines


def lines_of_lost(experiment: Experiment) -> list[str]:
    """A line for each run of which models are needed, and no weights are left."""
    lost = experiment.lost_steps.items()
    return [f"{run}: {lost_weights(experiment.trained_in(run)[0], steps)}" for run, steps in lost]


def _lines_of_alone(experiment: Experiment) -> list[str]:
    """A line for each reason why runs are trained alone, whatever `pretrain.together` says."""
    counts, all_runs = Counter(experiment.trained_alone.values()), len(experiment.runs)
    return [f"pretrain: 'together' does not reach {count} of {all_runs} runs: {why}" for why, count in counts.items()]


def lines_of_continuations(experiment: Experiment) -> list[str]:
    """What pre-trainings to come have of finished ones of fewer steps: a line for those that go on, and for each reason
    why others begin at step 0."""
    by_reason: dict[str, list[tuple[Run, Continuation]]] = {}
    for run, continuation in experiment.continuations.items():
        by_reason.setdefault(continuation.why_not, []).append((run, continuation))
    lines = []
    for why_not, alike in by_reason.items():
        run, first = alike[0]
        more = f", and {len(alike) - 1} more likewise" if alike[1:] else ""
        if why_not:
            of = f"{first.folder} ({first.steps:,} steps)"
            lines.append(f"{run} begins at step 0, not from {of}: {why_not}{more}")
        else:
            lines.append(f"{run} goes on from step {first.step:,} of {first.folder}{more}")
    return lines


def seconds_of(experiment: Experiment, shape: Shape, flops: float, steps: float, finetunes: bool) -> float:
    """The time of so many operations in so many optimizer steps, by what nobody has timed in this experiment."""
    rates = experiment.config.rates
    if not shape.needs_gpu:
        return flops / rates.core_flops + steps * shape.num_hidden_layers * rates.core_layer_seconds
    gpu = GPUS[rates.gpu]
    nearest = min(gpu.flops, key=lambda size: abs(math.log(SIZES[size].layer_weights / shape.layer_weights)))
    return flops / gpu.flops[nearest] + finetunes * steps * shape.layer_weights * gpu.weight_seconds


@dataclass(frozen=True)
class Taken:
    """How many times as long as reckoned the finished jobs of an experiment took, by the shape of their models."""

    pretraining: dict[Shape, float]
    finetuning: dict[Shape, float]

    @property
    def line(self) -> str:
        """What the hours of a plan go by, in words; empty where no job has ended."""
        by_stage = {"pre-training": self.pretraining, "fine-tuning": self.finetuning}
        said = [
            f"{stage} takes {_range(shapes)} × what rates say ({len(shapes)} {'size' if len(shapes) == 1 else 'sizes'})"
            for stage, shapes in by_stage.items()
            if shapes
        ]
        return "; ".join(said)


def _range(shapes: dict[Shape, float]) -> str:
    return "–".join(sorted({f"{share:.2g}" for share in (min(shapes.values()), max(shapes.values()))}, key=float))


def taken_by(experiment: Experiment) -> Taken:
    """By timing.json of runs, and by what finished jobs of scores say of their fine-tunings."""
    pretraining: dict[Shape, list[float]] = defaultdict(list)
    for run, folder in experiment.runs.items():
        if (file := Path(folder, "timing.json")).is_file() and (pace := read_json(file, Timing)["flops_per_second"]):
            shape = experiment.shapes[run.size]
            reckoned = seconds_of(experiment, shape, pace, 0.0, finetunes=False)
            pretraining[shape].append(1 / reckoned)
    finetuning: dict[Shape, list[tuple[float, float]]] = defaultdict(list)
    for name, score in experiment.scores.items():
        file = finished_at(Path(name))
        if isinstance(score.scoring, Finetune) and file.is_file() and (work := read_json(file, Work))["steps"]:
            shape = _shape_of(experiment, score.run)
            flops, steps = _finetuning(experiment, score, shape)
            reckoned = seconds_of(experiment, shape, flops, steps, finetunes=True) * work["steps"] / steps
            finetuning[shape].append((work["seconds"], reckoned))
    return Taken(
        {shape: median(shares) for shape, shares in pretraining.items()},
        {shape: sum(took for took, _ in jobs) / sum(said for _, said in jobs) for shape, jobs in finetuning.items()},
    )


def _scores(experiment: Experiment) -> Iterator[Output]:
    """Rows of tasks, the scores of every checkpoint, and the weights of models from elsewhere."""
    for file in sorted({score.scoring.rows.file(task) for score in experiment.scores.values() for task in score.tasks}):
        yield Output("glue", file, _is_missing(file))
    is_kept, taken = experiment.config.glue.keep_finetuned, taken_by(experiment)
    for file, score in {**experiment.scores, **experiment.lacking_weights}.items():
        shape, weights = _shape_of(experiment, score.run), 0.0
        if is_kept and isinstance(score.scoring, Finetune) and score.step in (experiment.final, None):
            weights = FLOAT32 * _parameters_of(experiment, score.run) * len(score.tasks) * len(score.seeds)
        seconds = seconds_of(experiment, shape, *_finetuning(experiment, score, shape), finetunes=True)
        seconds *= taken.finetuning.get(shape, 1.0)
        yield Output("glue", file, _is_missing(file), seconds, shape.needs_gpu, weights)
    for model in experiment.models.values():
        is_scored = not any(_is_missing(file) for file, score in experiment.scores.items() if score.run is model)
        for file in (file.path for file in model.weights.values() if file.path in experiment.sizes_of):
            size = experiment.sizes_of[file]
            yield Output("glue", file, _is_missing(file) and not is_scored, bytes=size, download=size)


def _shape_of(experiment: Experiment, run: Run | ForeignModel) -> Shape:
    return shape_of(run) if isinstance(run, ForeignModel) else experiment.shapes[run.size]


def _parameters_of(experiment: Experiment, run: Run | ForeignModel) -> int:
    if isinstance(run, ForeignModel):
        return run.parameters
    return experiment.shapes[run.size].parameters(rows_of(experiment, run).vocabulary_size)


def _finetuning(experiment: Experiment, score: Score, shape: Shape) -> tuple[float, float]:
    """Operations and optimizer steps of all seeds, those on which a rate is tuned among them; minimal pairs are judged
    in seconds."""
    glue = experiment.config.glue
    noise, is_robustness = glue.robustness, isinstance(score.scoring, Robustness)
    trains = not (is_robustness and glue.keep_finetuned)
    passes = trains + (1 + len(noise.noise) * len(noise.noise_kinds)) * is_robustness  # of evaluation rows
    flops = steps = 0.0
    if isinstance(score.scoring, MinimalPairs):
        return flops, steps
    trained = score.scoring.trained if isinstance(score.scoring, Robustness) else score.scoring
    prepared, settings = trained.rows.limits, trained.protocol
    for task in map(trained.rows.task, score.tasks):
        rows = {split: task.official_rows.get(split, CUSTOM_ROWS) for split in task.splits}
        train = min(rows.pop("train"), prepared.max_examples or math.inf) * task.rows_of_row
        scored = sum(min(count, prepared.max_evaluation_examples or math.inf) for count in rows.values())
        read = 3 * settings.epochs * trains * train + passes * scored * task.rows_of_row
        flops += encoder_flops(shape, shape.layer_weights, read, min(task.row_tokens, prepared.max_length))
        steps += trains * settings.epochs * math.ceil(train / task.rows_of_example / settings.batch_size)
    fine_tunings = len(score.seeds) + (0 if is_robustness else tunings_of(trained))
    return fine_tunings * flops, fine_tunings * steps


def tunings_of(trained: Finetune) -> int:
    """Fine-tunings of a task that choose its rate."""
    return len(trained.tuning.rates) * len(trained.tuning.seeds) if trained.tuning else 0


def disk_line(outputs: list[Output]) -> str:
    """How much is still to be written, and whether the disk of the runs, which need most, has room."""
    needed = sum(output.bytes for output in outputs if output.is_missing)
    free, mount = free_space(Path(RESULTS, "runs"))
    warning = ": too small" if needed > free else ""
    return f"{data_size(needed)} to come at most, {data_size(free)} free on {mount}{warning}"


def lines_of(experiment: Experiment, outputs: list[Output]) -> list[str]:
    """The plan as plain text."""
    rates, rows = experiment.config.rates, [("to come", "files", "GPU-hours", "core-hours", "disk", "download")]
    for stage in ("corpus", "pretrain", "glue", "report", "all"):
        files = [output for output in outputs if stage in (output.stage, "all")]
        coming = [output for output in files if output.is_missing]
        gpu = sum(output.seconds * output.on_gpu for output in coming) / 3600
        core = sum(output.seconds + rates.job_seconds for output in coming) / 3600
        disk = sum(output.bytes for output in coming)
        download = data_size(sum(output.download for output in coming))
        count = f"{len(coming):,} of {len(files):,}"
        rows.append((stage, count, hours_in_words(gpu), hours_in_words(core), data_size(disk), download))
    hours = f"{gpu:,.0f} GPU-hours: {gpu / 24:.1f} days on one GPU, {gpu / 96:.1f} on four"
    return [
        f"Experiment {experiment.summary}; results in {experiment.folder}",
        "",
        *aligned(rows),
        "",
        *([hours, f"rates of one {rates.gpu}: {GPUS[rates.gpu].source}"] if gpu else []),
        *([f"finished jobs: {line}"] if (line := taken_by(experiment).line) else []),
        *_line_of_tuning(experiment),
        *(f"tuning: {line}" for line in lines_of_rates(experiment, outputs)),
        *(f"seeds: {line}" for line in lines_of_seeds(experiment.config)),
        f"disk: {disk_line(outputs)}",
        *lines_of_continuations(experiment),
        *(f"warning: {line}" for line in [*experiment.longer_rows, *warnings_of(experiment)]),
        NOTES,
    ]


def _line_of_tuning(experiment: Experiment) -> Iterator[str]:
    """What choosing learning rates costs of the fine-tunings to come."""
    seconds, counts = 0.0, {True: 0, False: 0}  # of fine-tunings that choose a rate, and of the others
    for file, score in experiment.scores.items():
        if isinstance(score.scoring, Finetune) and _is_missing(file):
            shape, tunings = _shape_of(experiment, score.run), tunings_of(score.scoring)
            counts[True] += tunings * len(score.tasks)
            counts[False] += len(score.seeds) * len(score.tasks)
            whole = seconds_of(experiment, shape, *_finetuning(experiment, score, shape), finetunes=True)
            seconds += whole * tunings / (tunings + len(score.seeds))
    if counts[True]:
        yield (
            f"tuning: {counts[True]:,} of {sum(counts.values()):,} fine-tunings choose learning rates, "
            f"{hours_in_words(seconds / 3600)} of the hours; one rate costs none"
        )


def lines_of_rates(experiment: Experiment, outputs: list[Output]) -> Iterator[str]:
    """How far the choice of pre-training's rates is in each tuned grid, and what it costs."""
    seconds = {output.file: output.seconds * output.is_missing for output in outputs}

    def cost(runs: list[Run]) -> str:
        files = [f"{experiment.pretrainings[run].folder}/done.json" for run in runs]
        coming, hours = sum(map(_is_missing, files)), sum(seconds.get(file, 0.0) for file in files) / 3600
        return f"{coming:,} of {len(files):,} pre-trainings to come ({hours_in_words(hours)} hours)"

    for grid in experiment.tuned:
        rates = f"{len(grid.rates)} learning rates at {len(grid.points)} points"
        tuning, compared = experiment.tuning_of(grid), experiment.compared_of(grid)
        if compared:
            edges = sum(bool(choice.edge) for choice in experiment.choices(grid))
            told = f"tried {rates} and chose in {experiment.rates_of(grid)}, {edges} at the edge; {cost(compared)}"
        else:
            told = f"tries {rates}: {cost(tuning)}; then at the chosen ones at most {cost(experiment.may_follow(grid))}"
        yield f"{grid.name} {told}"


def hours_in_words(hours: float) -> str:
    """Hours with the digits that an estimate has."""
    return f"{hours:,.1f}" if 0 < hours < 10 else f"{hours:,.0f}" if hours else "-"
