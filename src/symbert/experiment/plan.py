"""What an experiment will cost, before anything is spent: jobs, hours, disk and download of each stage.

A plan is a list of outputs, each with what it takes. What is there already is what exists. Imports no torch.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq

from symbert.configuration import (
    GlueSettings,
    MinimalPairSettings,
    TaskSettings,
    annotations_of,
    protocol_of,
    source_of,
)
from symbert.console import aligned, data_size
from symbert.corpus.lines import read_lines
from symbert.errors import InputOutputError
from symbert.experiment.layout import Experiment, Score
from symbert.experiment.project import read_experiment
from symbert.experiment.sweep import packed_as, text_of
from symbert.files import free_space, read_json_or_empty, reading
from symbert.glue.blimp import PAIRS_OF_PARADIGM, PARADIGMS, PIECES
from symbert.glue.tasks import SUITES, published_split, suite_named, task_named
from symbert.hosts import ENCODER, HOSTS, Rows, encoder_flops, head_flops
from symbert.paths import RESULTS, ROWS, Run
from symbert.pretrain.run import FLOAT32, parameters_of, storage_of
from symbert.sizes import SIZES, VOCABULARY_SIZE, Shape
from symbert.sources import SOURCES, located

STAGES = ("corpus", "pretrain", "glue", "report")

# Section 3.1 of arXiv 2406.06366, and its authors' README, which reads the first 300 parts (900 in another line).
PAPER_PARTS, PAPER_DOCUMENTS, PAPER_TOKENS = 300, 30_000_000, 70_000_000_000
TOKENS_PER_DOCUMENT = PAPER_TOKENS / PAPER_DOCUMENTS
# Measured on 22,915 real documents in OSCAR's form (web pages, encyclopedia, news, reviews), of which 3,845 were kept.
KEPT = 0.67  # of the text, where there is a filter
TEXT_PER_TOKEN = 4.68  # bytes of UTF-8
JSON, COMPRESSED, PARQUET = 1.34, 0.382, 0.41  # bytes per byte of text
BYTES = {".zst": COMPRESSED, ".gz": COMPRESSED, ".parquet": PARQUET, ".txt": 1, ".csv": 1, ".tsv": 1, ".arrow": 1}
TEXT_OF_PART = PAPER_TOKENS / PAPER_PARTS * TEXT_PER_TOKEN / KEPT  # bytes of one that is not here yet
# Per second and core, measured on 2 shared cores (docs/measurements/bench-corpus.md).
FILTER = 203e6  # bytes of JSON lines
ANNOTATE = 16e6  # bytes of text: harmful perplexity, quality warnings, categories
TOKENIZE = 7.7e6  # tokens
PACK = 139e6  # tokens
TOKEN_BYTES, DOCUMENT_BYTES = 2, 36  # per token; per document of a part: its place, its line in the index
BYTES_OF_FILES = {"vocab.txt": 231_508}  # of the hub's; other sizes are not known beforehand
CHARACTERS = 100  # of a small text without word pieces, about
BYTES_OF_A_ROW = 100  # of a task's file of the user's own, about


@dataclass(frozen=True)
class Output:
    """A file that a job writes, and what it takes."""

    stage: str
    file: str
    left: float  # share of the work that is to come: 0 where the file exists
    seconds: float = 0.0  # of one device
    on_gpu: bool = False  # beside a GPU one core is busy
    bytes: float = 0.0  # at most, with what lies beside it
    download: float = 0.0  # bytes


@dataclass(frozen=True)
class Speed:
    """How fast one device computes one kind of model."""

    on_gpu: bool
    flops: float  # operations of the model per second
    layer_seconds: float  # per layer of a step, beside its arithmetic
    measured: str | None = None  # by which run; None where configured

    def seconds(self, flops: float, steps: float, shape: Shape) -> float:
        """Time for so many operations in so many optimizer steps."""
        return flops / self.flops + steps * shape.num_hidden_layers * self.layer_seconds


def plan(scale: str | None = None, configfile: list[Path] | None = None, config: list[str] | None = None) -> None:
    """Print what the chosen experiment costs by stage, what of it is to come, and what the numbers rest on.

    The options are those of Snakemake, and --scale. Run it in the folder with results/. InputOutputError when what is
    still to be written does not fit the disk.
    """
    experiment = read_experiment(scale, configfile, config)
    outputs = outputs_of(experiment)
    print("\n".join(lines_of(experiment, outputs)), flush=True)
    for mount, (needed, free) in room_for(outputs).items():
        if needed > free:
            raise InputOutputError(
                f"{mount}: {data_size(needed)} are still to be written, {data_size(free)} are free; free space there, "
                "or make results/ a link to a folder on a larger disk"
            )


def outputs_of(experiment: Experiment) -> list[Output]:
    """All outputs of an experiment; MissingInputError names a part that a mirror lacks."""
    page = f"{experiment.folder}/report/experiment-{experiment.key}.json"
    report = [*(file for files in experiment.measured.values() for file in files), page]
    outputs = [
        *_corpus(experiment),
        *_pretraining(experiment),
        *_scores(experiment),
        *(Output("report", file, _left(file)) for file in report),
    ]
    return [*outputs, *_read_by(experiment, outputs)]


def _left(*files: str) -> float:
    return 0.0 if all(Path(file).exists() for file in files) else 1.0


def _read_by(experiment: Experiment, outputs: list[Output]) -> Iterator[Output]:
    """The blocklist, and the published files that come from the hub: to come where a job that is to come reads them."""
    inputs = experiment.inputs_of  # a part's text is there by the name of the part
    jobs = [(output, [*inputs.get(output.file, ()), *inputs.get(Path(output.file).stem, ())]) for output in outputs]
    read = {file: 0.0 for _, files in jobs for file in files}
    read |= {file: 1.0 for output, files in jobs if output.left for file in files}
    for file in (file for file in read.copy() if file.endswith(".marisa")):
        left = read[file] * _left(file)
        yield Output("corpus", file, left)
        read |= {name: max(left, read.get(name, 0.0)) for name in inputs[file]}
    tasks = [(suite, task) for suite in SUITES.values() for task in suite.tasks.values()]
    rows = {
        published_split(task, split): task.official_rows.get(split, 1) for _, task in tasks for split in task.splits
    }
    for name in (name for name in read if name.startswith(f"{RESULTS}/published/")):
        file, is_kept = experiment.published[name], False
        stage, size = "corpus", BYTES_OF_FILES.get(file.name, 0.0)
        if suite := next((suite for suite in SUITES.values() if suite.repository == file.repository), None):
            of_suite = sum(rows[known] for known in rows if known.repository == file.repository) or len(PARADIGMS)
            stage, size = "glue", suite.bytes * rows.get(file, 1) / of_suite
        elif file.name.endswith(".jsonl.zst"):
            size, is_kept = COMPRESSED * TEXT_OF_PART, experiment.config["corpus"]["keep_raw"]
        yield Output(stage, name, read[name] * _left(name), bytes=size * is_kept, download=size)


# The corpus.


def _corpus(experiment: Experiment) -> Iterator[Output]:
    """Parts and rows; once the rows are packed nothing is read again."""
    config, is_remote = experiment.config, SOURCES[source_of(experiment.config, "corpus")].is_remote
    manifests = list(dict.fromkeys(map(experiment.manifest, experiment.runs)))
    shards = [manifest for manifest in manifests if "/shards-" in manifest]
    unpacked, tokens = _left(*shards), 0.0
    for part, name in experiment.texts.items() if shards else ():
        file, text = f"{experiment.parts_folder}/{part}.npy", _text_of(name, is_remote)
        of_part = _kept(config) * text / TEXT_PER_TOKEN
        seconds = JSON * text / FILTER + of_part / TOKENIZE
        seconds += text / ANNOTATE if annotations_of(config) == "computed" else 0
        written = TOKEN_BYTES * of_part + DOCUMENT_BYTES * of_part / TOKENS_PER_DOCUMENT
        yield Output("corpus", file, unpacked * _left(file), seconds, bytes=written)
        tokens += of_part
    tokens = min(tokens, config["corpus"]["pack"]["max_documents"] * TOKENS_PER_DOCUMENT)
    for manifest in manifests:
        packed = tokens if manifest in shards else 0.0
        yield Output("corpus", manifest, _left(manifest), packed / PACK, bytes=TOKEN_BYTES * packed)


def _kept(config: dict[str, Any]) -> float:
    """The share of the text that passes the filter."""
    return KEPT if config["corpus"]["filter"]["rules"] else 1.0


def _text_of(name: str, is_remote: bool) -> float:
    """Bytes of text in a part, by the size of its file."""
    path = Path(located(name))
    if is_remote and not path.exists():
        return TEXT_OF_PART
    with reading(path, absent="ask for fewer corpus.parts, or complete the mirror"):
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*.arrow"))
        return path.stat().st_size / BYTES.get(path.suffix, JSON)


# Pre-training.


def _pretraining(experiment: Experiment) -> Iterator[Output]:
    """Runs, and the checkpoints that are taken from them. A run resumes at the step of its last checkpoint."""
    for run, folder in experiment.runs.items():
        settings, rows, shape = experiment.training(run), rows_of(experiment, run), SIZES[run.size]
        speed, host = speed_of(experiment, run), HOSTS[run.host]
        evaluations = math.ceil(settings.steps / settings.evaluate_every)
        flops = settings.steps * host.step_flops(shape, shape.layer_weights, rows, settings.batch_size)
        held_out = host.step_flops(shape, shape.layer_weights, rows, _held_out(experiment, run))
        flops += evaluations * held_out / 3  # forward only
        parameters = parameters_of(run, rows.vocabulary_size)
        begun = read_json_or_empty(Path(folder, "state/status.json")).get("step")
        left = _left(f"{folder}/done.json") * (1 - (begun if isinstance(begun, int) else 0) / settings.steps)
        seconds, written = speed.seconds(flops, settings.steps, shape), storage_of(parameters, settings)
        yield Output("pretrain", f"{folder}/done.json", left, seconds, speed.on_gpu, written)
        for step in experiment.extracted_steps(run):
            weights = f"{experiment.checkpoint(run, step)}/model.safetensors"
            yield Output("pretrain", weights, _left(weights), bytes=FLOAT32 * parameters)


def rows_of(experiment: Experiment, run: Run) -> Rows:
    """The rows of a run; of pairs that are not packed yet, as long as they may be."""
    config, mask_probability = experiment.config, experiment.training(run).mask_probability
    if text := text_of(config, run.variant):
        return Rows(text["vocabulary"] or CHARACTERS, text["sequence_length"], mask_probability)
    if HOSTS[run.host].reads_corpus:
        vocabulary = Path(located(experiment.vocabulary))
        pieces = sum(1 for _ in read_lines(vocabulary)) if vocabulary.is_file() else VOCABULARY_SIZE
        return Rows(pieces, packed_as(config, run.variant)["sequence_length"], mask_probability)
    text, packed = experiment.text, read_json_or_empty(Path(experiment.manifest(run)))
    mean = packed.get("mean_tokens", dict.fromkeys(("source", "target"), text.max_length))
    return Rows(packed.get("vocabulary_size", text.vocabulary_size), mean["source"], target_tokens=mean["target"])


def _held_out(experiment: Experiment, run: Run) -> int:
    """How many sequences a validation has, at most."""
    if HOSTS[run.host].reads_corpus:
        rows = text_of(experiment.config, run.variant) or packed_as(experiment.config, run.variant)
        return rows["validation_sequences"]
    return sum(1 for _ in read_lines(experiment.text.path("validation_target")))


def configured_speed(experiment: Experiment, shape: Shape) -> Speed:
    """The speed that `rates` of the configuration gives a size."""
    rates, device = experiment.config["rates"], "gpu" if shape.needs_gpu else "core"
    return Speed(shape.needs_gpu, rates[f"{device}_flops"], rates[f"{device}_layer_seconds"])


def speed_of(experiment: Experiment, run: Run) -> Speed:
    """The speed that finished runs of this host, size, operator and recipe measured, on the device of the newest.

    A device is a GPU, or a core.
    """
    pattern = f"runs/{run.host}/{run.size}-{run.attention}-????????/seed-*/timing.json"
    timings = {file: read_json_or_empty(file) for file in sorted(Path(RESULTS).glob(pattern))}
    chosen = [file for file, timing in timings.items() if timing.get("flops_per_second")]  # those with steps
    measured = {file: timings[file] for file in chosen if timings[file]["recipe"] == experiment.config["recipe"]}
    if not measured:
        return configured_speed(experiment, SIZES[run.size])
    newest = max(measured, key=lambda file: measured[file]["until"])
    device = measured[newest]["device"]
    flops = (
        timing["flops_per_second"] / timing["processes"] / (timing["threads"] if device == "cpu" else 1)
        for timing in measured.values()
        if timing["device"] == device
    )
    return Speed(device != "cpu", median(flops), 0.0, f"{newest.parent} on {device}")


# Tasks and scores.


@dataclass(frozen=True)
class Examples:
    """What a classifier takes of a task, about."""

    train: int  # rows as it reads them
    scored: int
    tokens: int  # of a row
    steps: int  # of an optimizer, of one fine-tuning
    epochs: int

    def flops(self, shape: Shape, passes: float, rows: int) -> float:
        """Operations of so many forward passes over rows."""
        return passes * encoder_flops(shape, shape.layer_weights, rows, self.tokens)


def examples_of(experiment: Experiment, name: str) -> Examples:
    """By the task's files, by what its publisher says where they are not here yet, or by the bytes of the user's."""
    task, suite = task_named(name), suite_named(name).name
    prepared, settings = (protocol_of(experiment.config, suite, kind) for kind in (TaskSettings, GlueSettings))
    rows = dict(task.official_rows)
    for split, file in zip(task.splits, experiment.files_of(name), strict=False):  # none of GLUE's original files
        path = Path(located(file))
        if task.files:
            parts = (part for part in (path, *path.rglob("*")) if part.is_file())
            rows[split] = math.ceil(sum(part.stat().st_size for part in parts) / BYTES_OF_A_ROW)
        elif path.is_file():
            rows[split] = pq.read_metadata(path).num_rows
    limits = {"train": prepared.max_examples, **dict.fromkeys(task.scores, prepared.max_evaluation_examples)}
    train, *scored = (min(rows[split], limits[split] or rows[split]) * task.rows_of_row for split in task.splits)
    steps = settings.epochs * math.ceil(train // task.rows_of_example / settings.batch_size)
    return Examples(train, sum(scored), min(task.row_tokens, prepared.max_length), steps, settings.epochs)


def _scores(experiment: Experiment) -> Iterator[Output]:
    """Rows of tasks, and the scores of every checkpoint."""
    for rows in dict.fromkeys(score.scoring.rows for score in experiment.scores.values()):
        for file in (ROWS.format(rows=rows, task=task) for task in experiment.rows[rows]):
            yield Output("glue", file, _left(file))
    examples = {task: examples_of(experiment, task) for task in experiment.tasks}
    is_kept = experiment.config["glue"]["keep_finetuned"]
    for file, score in experiment.scores.items():
        shape, scoring, weights = SIZES[score.run.size], score.scoring, 0.0
        if is_kept and scoring.kind == "finetune" and score.step == experiment.final:
            parameters = parameters_of(score.run, rows_of(experiment, score.run).vocabulary_size)
            weights = FLOAT32 * parameters * len(scoring.tasks) * len(score.seeds)
        seconds = _seconds_of_scores(experiment, score, examples)
        yield Output("glue", file, _left(file), seconds, shape.needs_gpu, weights)


def _seconds_of_scores(experiment: Experiment, score: Score, examples: dict[str, Examples]) -> float:
    shape, kind, robustness = SIZES[score.run.size], score.scoring.kind, experiment.config["glue"]["robustness"]
    speed = configured_speed(experiment, shape)
    if kind == "judge":  # an encoder reads as many copies of a sentence as it has tokens to predict
        judging = protocol_of(experiment.config, "blimp", MinimalPairSettings)
        sentences = 2 * len(PARADIGMS) * (judging.max_evaluation_examples or PAIRS_OF_PARADIGM)
        predicted = sentences * (PIECES - 2)
        read = predicted if score.run.host == ENCODER else sentences
        head = head_flops(shape, rows_of(experiment, score.run).vocabulary_size, predicted)
        return speed.seconds(encoder_flops(shape, shape.layer_weights, read, PIECES) + head, 0, shape)
    trains = kind == "finetune" or not experiment.config["glue"]["keep_finetuned"]
    levels = trains + (1 + len(robustness["noise"]) * len(robustness["noise_kinds"])) * (kind == "robustness")
    flops = steps = 0.0  # of a seed
    for task in (examples[name] for name in score.scoring.tasks):
        flops += task.flops(shape, 3 * task.epochs * trains, task.train) + task.flops(shape, levels, task.scored)
        steps += task.steps * trains
    return len(score.seeds) * speed.seconds(flops, steps, shape)


# What is printed.


def room_for(outputs: list[Output]) -> dict[Path, tuple[float, int]]:
    """By file system: bytes that are still to be written, and bytes that are free."""
    needed: dict[Path, float] = defaultdict(float)
    free: dict[Path, int] = {}
    for output in outputs:
        if output.left and output.bytes:
            free_bytes, mount = free_space(Path(output.file))
            needed[mount] += output.left * output.bytes
            free[mount] = free_bytes
    return {mount: (needed[mount], free[mount]) for mount in needed}


def lines_of(experiment: Experiment, outputs: list[Output]) -> list[str]:
    """The plan as plain text; no line is wider than 120 columns but those with folders."""
    config, rates = experiment.config, experiment.config["rates"]
    runs = [output for output in outputs if output.file.endswith("/done.json")]
    costs = ("jobs", "GPU-hours", "core-hours", "disk")
    rows = [("stage", *costs, "| to come:", *costs, "download")]
    for name in (*STAGES, "all"):
        stage = [output for output in outputs if name in (output.stage, "all")]
        coming = [output for output in stage if output.left]
        download = data_size(sum(output.download for output in coming))
        to_come = _costs([(output, output.left) for output in coming], rates["job_seconds"])
        rows.append((name, *_costs([(output, 1.0) for output in stage], rates["job_seconds"]), "|", *to_come, download))
    measured = {speed.measured for run in experiment.runs if (speed := speed_of(experiment, run)).measured}
    steps = sum(examples_of(experiment, task).steps for task in experiment.tasks)
    return [
        f"Experiment {experiment.name}: scale {Path(config['scale']).stem}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']}; results in {experiment.folder}",
        "",
        *aligned(rows),
        "",
        f"{sum(not run.left for run in runs)} of {len(runs)} pre-trainings done",
        "",
        *(
            f"{mount}: {data_size(needed)} to come at most, {data_size(free)} free"
            for mount, (needed, free) in room_for(outputs).items()
        ),
        "",
        "rests on",
        *(f"  measured     {line}" for line in sorted(measured)),
        f"  rates        {rates['gpu_flops']:.2g} FLOP/s of a GPU, {rates['core_flops']:.2g} of a core; "
        f"{1000 * rates['gpu_layer_seconds']:g} and {1000 * rates['core_layer_seconds']:g} ms per step and layer; "
        f"{rates['job_seconds']:g} s to start a job",
        "  operators    hours of all as of `original`; bytes by the parameters of each",
        f"  fine-tuning  {steps:,} optimizer steps per seed and checkpoint",
        f"  corpus       {_tokens_in_words(experiment)}",
        "  disk         at its most; raw parts are removed once they are read, unless corpus.keep_raw is set",
        "  download     without the lists of UT1 and OSCAR and the model of perplexity, whose sizes are not known",
    ]


def _costs(shares: list[tuple[Output, float]], job_seconds: float) -> list[str]:
    """Jobs, hours and bytes of these shares of outputs."""
    gpu = sum(share * output.seconds for output, share in shares if output.on_gpu)
    core = sum(share * output.seconds + job_seconds for output, share in shares)
    disk = sum(share * output.bytes for output, share in shares)
    return [f"{len(shares):,}", hours_in_words(gpu / 3600), hours_in_words(core / 3600), data_size(disk)]


def hours_in_words(hours: float) -> str:
    """Hours with the digits that an estimate has."""
    if hours == 0:
        return "-"
    return "<0.01" if hours < 0.01 else f"{hours:,.2g}" if hours < 10 else f"{hours:,.0f}"


def _tokens_in_words(experiment: Experiment) -> str:
    """The corpus in tokens and rows, with three significant digits: more would promise too much."""
    config, is_remote = experiment.config, SOURCES[source_of(experiment.config, "corpus")].is_remote
    tokens = _kept(config) * sum(_text_of(name, is_remote) for name in experiment.texts.values()) / TEXT_PER_TOKEN
    counts = (tokens, tokens / config["corpus"]["pack"]["sequence_length"])
    known, rows = (f"{float(f'{count:.3g}'):,.0f}" for count in counts)
    wanted = config["pretrain"]["steps"] * config["pretrain"]["batch_size"]
    return f"{known} tokens of {len(experiment.texts):,} parts, {rows} rows; training reads {wanted:,} rows"
