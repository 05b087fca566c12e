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

from symbert.configuration import annotations_of, source_of
from symbert.console import aligned, data_size
from symbert.corpus.lines import read_lines
from symbert.errors import InputOutputError
from symbert.experiment.layout import Experiment, Scoring
from symbert.experiment.project import read_experiment
from symbert.experiment.sweep import packed_as, text_of
from symbert.files import free_space, read_json_or_empty, reading
from symbert.glue.blimp import PAIRS_OF_PARADIGM, PARADIGMS, PIECES
from symbert.glue.tasks import PUBLISHED, SUITES, Task, suite_of, task_named
from symbert.hosts import ENCODER, HOSTS, Rows, encoder_flops, head_flops
from symbert.paths import ROWS, Run
from symbert.pretrain.storage import FLOAT32, parameters_of, storage_of
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
TEXT_OF_PART = PAPER_TOKENS / PAPER_PARTS * TEXT_PER_TOKEN / KEPT  # bytes of one that is not here yet
# Per second and core, measured on 2 shared cores (docs/measurements/bench-corpus.md).
FILTER = 203e6  # bytes of JSON lines
ANNOTATE = 16e6  # bytes of text: harmful perplexity, quality warnings, categories
TOKENIZE = 7.7e6  # tokens
PACK = 139e6  # tokens
TOKEN_BYTES, DOCUMENT_BYTES = 2, 36  # per token; per document of a part: its place, its line in the index

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
    return [*_corpus(experiment), *_pretraining(experiment), *_scores(experiment), *_report(experiment)]


def _left(file: str | Path) -> float:
    return 0.0 if Path(file).exists() else 1.0


# The corpus.


def _corpus(experiment: Experiment) -> Iterator[Output]:
    """Parts and rows; once the rows are packed nothing is read again."""
    config = experiment.config
    source, manifests = (
        SOURCES[source_of(config, "corpus")],
        dict.fromkeys(map(experiment.manifest, experiment.pretrainings())),
    )
    shards = [manifest for manifest in manifests if "/shards-" in manifest]
    packed = all(Path(manifest).exists() for manifest in shards)
    if shards:
        tokens = 0.0
        for part, name in experiment.texts.items():
            file, text, of_part = f"{experiment.parts_folder}/{part}.npy", _text_of(name, source.is_remote), 0.0
            of_part = _kept(config) * text / TEXT_PER_TOKEN
            left = 0.0 if packed else _left(file)
            if source.is_remote:
                raw = COMPRESSED * text
                yield Output("corpus", name, left * _left(name), bytes=raw * config["corpus"]["keep_raw"], download=raw)
            seconds = JSON * text / FILTER + of_part / TOKENIZE
            seconds += text / ANNOTATE if annotations_of(config) == "computed" else 0
            written = TOKEN_BYTES * of_part + DOCUMENT_BYTES * of_part / TOKENS_PER_DOCUMENT
            yield Output("corpus", file, left, seconds, bytes=written)
            tokens += of_part
        tokens = min(tokens, config["corpus"]["pack"]["max_documents"] * TOKENS_PER_DOCUMENT)
        for manifest in shards:
            yield Output("corpus", manifest, _left(manifest), tokens / PACK, bytes=TOKEN_BYTES * tokens)
    yield from (Output("corpus", manifest, _left(manifest)) for manifest in manifests if manifest not in shards)


def _kept(config: dict[str, Any]) -> float:
    """The share of the text that passes the filter."""
    return KEPT if config["corpus"]["filter"]["rules"] else 1.0


def _text_of(name: str, is_remote: bool) -> float:
    """Bytes of text in a part, by the size of its file."""
    path = Path(located(name))
    if is_remote and not path.exists():
        return TEXT_OF_PART
    ratios = {".zst": COMPRESSED, ".gz": COMPRESSED, ".parquet": PARQUET, ".txt": 1, ".csv": 1, ".tsv": 1, ".arrow": 1}
    with reading(path, absent="ask for fewer corpus.parts, or complete the mirror"):
        if path.is_dir():
            return sum(file.stat().st_size for file in path.rglob("*.arrow"))
        return path.stat().st_size / ratios.get(path.suffix, JSON)


# Pre-training.


def _pretraining(experiment: Experiment) -> Iterator[Output]:
    """Runs, and the checkpoints that are taken from them. A run resumes at the step of its last checkpoint."""
    for run in experiment.pretrainings():
        settings, rows, shape = experiment.training(run), rows_of(experiment, run), SIZES[run.size]
        speed, host = speed_of(experiment, run), HOSTS[run.host]
        evaluations = math.ceil(settings.steps / settings.evaluate_every)
        flops = settings.steps * host.step_flops(shape, rows, settings.batch_size)
        flops += evaluations * host.step_flops(shape, rows, _held_out(experiment, run)) / 3  # forward only
        storage = storage_of(parameters_of(run, rows.vocabulary_size), settings)
        folder = experiment.run_folder(run)
        left = _left(f"{folder}/done.json") * (1 - step_of(folder) / settings.steps)
        seconds, written = speed.seconds(flops, settings.steps, shape), storage.weights_bytes + storage.resume_bytes
        yield Output("pretrain", f"{folder}/done.json", left, seconds, speed.on_gpu, written)
        for step in experiment.extracted_steps(run):
            weights = f"{experiment.checkpoint(run, step)}/model.safetensors"
            yield Output("pretrain", weights, _left(weights), bytes=storage.weights)


def step_of(run_folder: str) -> int:
    """The last step that a run has completed; 0 where it has not begun."""
    step = read_json_or_empty(Path(run_folder, "state/status.json")).get("step")
    return step if isinstance(step, int) else 0


def rows_of(experiment: Experiment, run: Run) -> Rows:
    """The rows of a run; of pairs that are not packed yet, as long as they may be."""
    config, mask_probability = experiment.config, experiment.training(run).mask_probability
    if text := text_of(config, run.variant):
        return Rows(text["vocabulary"] or CHARACTERS, text["sequence_length"], mask_probability)
    if HOSTS[run.host].reads_corpus:
        vocabulary = Path(located(experiment.vocabulary))
        pieces = sum(1 for _ in read_lines(vocabulary)) if vocabulary.is_file() else VOCABULARY_SIZE
        return Rows(pieces, packed_as(config, run.variant)["sequence_length"], mask_probability)
    text, packed = experiment.text, read_json_or_empty(Path(f"{experiment.pairs}/manifest.json"))
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
    """The speed that finished runs of this host, size, operator and recipe measured, on the device of the newest."""
    pattern = f"{run.host}/{run.size}-{run.attention}-????????/seed-*/timing.json"
    timings = {file: read_json_or_empty(file) for file in sorted(Path("results/runs").glob(pattern))}
    recipe = experiment.config["recipe"]
    timings = {file: one for file, one in timings.items() if one.get("recipe") == recipe and _is_whole(one)}
    if not timings:
        return configured_speed(experiment, SIZES[run.size])
    newest = max(timings, key=lambda file: str(timings[file].get("until", "")))
    device = timings[newest]["device"]
    flops = median(_flops_of_device(one) for one in timings.values() if one["device"] == device)
    return Speed(device != "cpu", flops, 0.0, f"{newest.parent} on {device}")


def _is_whole(timing: dict[str, Any]) -> bool:
    numbers = [timing.get(key) for key in ("flops_per_second", "processes")]
    return bool(timing.get("device")) and all(type(number) in (int, float) and number > 0 for number in numbers)


def _flops_of_device(timing: dict[str, Any]) -> float:
    """FLOP/s of one device: each process has a GPU, or else `threads` cores."""
    cores = timing.get("threads", 1) if timing["device"] == "cpu" else 1
    return timing["flops_per_second"] / (timing["processes"] * cores)


# Tasks and scores.


def _scores(experiment: Experiment) -> Iterator[Output]:
    """Rows of tasks, and the scores of every checkpoint."""
    is_remote, weights = SOURCES[source_of(experiment.config, "glue")].is_remote, experiment.config["glue"]
    asked = dict(experiment.asked_scores())
    for rows in {scoring.rows: experiment.rows[scoring.rows] for _, _, scoring in asked.values()}.values():
        for task, files in rows.files.items():
            absent = is_remote and any(not Path(file).exists() for file in files)
            file = ROWS.format(rows=rows.name, task=task)
            yield Output("glue", file, _left(file), download=_table_bytes(task) if absent else 0.0)
    for file, (run, step, scoring) in asked.items():
        speed, kept = configured_speed(experiment, SIZES[run.size]), 0.0
        if weights["keep_finetuned"] and step == experiment.final and scoring.kind == "finetune":
            parameters = parameters_of(run, rows_of(experiment, run).vocabulary_size)
            kept = FLOAT32 * parameters * len(scoring.tasks) * len(experiment.finetune_seeds(run.size, step))
        seconds = _seconds_of_scores(experiment, run, step, scoring, speed)
        yield Output("glue", file, _left(file), seconds, speed.on_gpu, kept)


def _seconds_of_scores(experiment: Experiment, run: Run, step: int, scoring: Scoring, speed: Speed) -> float:
    shape = SIZES[run.size]
    if scoring.kind == "judge":  # an encoder reads as many copies of a sentence as it has tokens to predict
        sentences = 2 * len(PARADIGMS) * (experiment.judging.max_evaluation_examples or PAIRS_OF_PARADIGM)
        predicted = sentences * (PIECES - 2)
        read = predicted if run.host == ENCODER else sentences
        head = head_flops(shape, rows_of(experiment, run).vocabulary_size, predicted)
        return speed.seconds(encoder_flops(shape, shape.layer_weights, read, PIECES) + head, 0, shape)
    seconds, seeds = 0.0, len(experiment.finetune_seeds(run.size, step))
    glue = experiment.config["glue"]
    for task in scoring.tasks:
        if scoring.kind == "finetune" or not glue["keep_finetuned"]:
            settings = experiment.finetuning(task)
            epoch = _forward(experiment, shape, task, "train")
            flops = 3 * settings.epochs * epoch + _forward(experiment, shape, task, *task_named(task).scores)
            seconds += seeds * speed.seconds(flops, finetuning_steps(experiment, task), shape)
        if scoring.kind == "robustness":
            levels = 1 + len(glue["robustness"]["noise"]) * len(glue["robustness"]["noise_kinds"])
            seconds += (
                seeds * levels * speed.seconds(_forward(experiment, shape, task, *task_named(task).scores), 0, shape)
            )
    return seconds


def finetuning_steps(experiment: Experiment, task: str) -> int:
    """Optimizer steps of one seed."""
    settings = experiment.finetuning(task)
    examples = _rows_of_split(experiment, task_named(task), "train") // task_named(task).rows_of_example
    return settings.epochs * math.ceil(examples / settings.batch_size)


def _forward(experiment: Experiment, shape: Shape, task: str, *splits: str) -> float:
    """Operations, forward, on splits of a task as a classifier reads them."""
    rows = sum(_rows_of_split(experiment, task_named(task), split) for split in splits)
    return encoder_flops(shape, shape.layer_weights, rows, example_tokens(experiment, task))


def example_tokens(experiment: Experiment, task: str) -> int:
    """Tokens of a row that a classifier reads, about."""
    return min(task_named(task).row_tokens, experiment.preparation(task).max_length)


def _rows_of_split(experiment: Experiment, task: Task, split: str) -> int:
    """Rows of a split as a classifier reads them, as far as the limit: of its file, or those published; of files of the
    user's about."""
    if task.files:
        path = Path(task.files[split])
        files = (file for file in (path, *path.rglob("*")) if file.is_file())
        rows = math.ceil(sum(file.stat().st_size for file in files) / BYTES_OF_A_ROW)
    else:
        names = dict(zip(task.splits, experiment.files_of(task), strict=False))  # none of GLUE's original files
        table = Path(located(names[split])) if split in names else None
        rows = pq.read_metadata(table).num_rows if table and table.is_file() else task.official_rows[split]
    settings = experiment.preparation(task.name)
    limit = settings.max_examples if split == "train" else settings.max_evaluation_examples
    return min(rows, limit or rows) * task.rows_of_row


def _table_bytes(task: str) -> float:
    """Bytes of a task's tables at the hub: by its share of the rows of its suite."""
    if task not in PUBLISHED:
        return SUITES["blimp"].bytes if task == "blimp" else 0.0
    suite = suite_of(PUBLISHED[task])
    rows = {name: sum(each.official_rows.values()) for name, each in suite.tasks.items()}
    return suite.bytes * rows[task] / sum(rows.values())


def _report(experiment: Experiment) -> Iterator[Output]:
    """What is measured, and the page."""
    files = [*experiment.speeds, experiment.anatomy, experiment.probes]
    page = f"{experiment.folder}/report/experiment-{experiment.key}.json"
    for file in [*filter(None, files), page]:
        yield Output("report", file, _left(file))


# The plan in words.


def room_for(outputs: list[Output]) -> dict[Path, tuple[float, int]]:
    """By file system: bytes that are still to be written, at most, and bytes free."""
    needed, free = defaultdict(float), {}
    for output in outputs:
        if output.left and output.bytes:
            free_bytes, mount = free_space(Path(output.file))
            needed[mount] += output.left * output.bytes
            free[mount] = free_bytes
    return {mount: (needed[mount], free[mount]) for mount in needed}


def lines_of(experiment: Experiment, outputs: list[Output]) -> list[str]:
    """The plan as plain text; no line is wider than 120 columns but those with folders."""
    config = experiment.config
    runs = [output for output in outputs if output.file.endswith("/done.json")]
    return [
        f"Experiment {experiment.name}: scale {Path(config['scale']).stem}, corpus {source_of(config, 'corpus')}, "
        f"GLUE {source_of(config, 'glue')}, recipe {config['recipe']}; results in {experiment.folder}",
        "",
        *_table(outputs, config["rates"]["job_seconds"]),
        "",
        f"{sum(not run.left for run in runs)} of {len(runs)} pre-trainings done",
        "",
        *(
            f"{mount}: {data_size(needed)} to come at most, {data_size(free)} free"
            for mount, (needed, free) in room_for(outputs).items()
        ),
        "",
        *_reasons(experiment),
    ]


def _table(outputs: list[Output], job_seconds: float) -> list[str]:
    """A row per stage; in all, and to come."""
    costs = ("jobs", "GPU-hours", "core-hours", "disk")
    rows = [("stage", *costs, "| to come:", *costs, "download")]
    for name in (*STAGES, "all"):
        group = [output for output in outputs if name in (output.stage, "all")]
        coming = [output for output in group if output.left]
        rows.append(
            (
                name,
                *_costs(group, [1.0] * len(group), job_seconds),
                "|",
                *_costs(coming, [output.left for output in coming], job_seconds),
                data_size(sum(output.download for output in coming)),
            )
        )
    return aligned(rows)


def _costs(outputs: list[Output], shares: list[float], job_seconds: float) -> list[str]:
    """Jobs, hours and bytes of these shares of outputs."""
    pairs = list(zip(outputs, shares, strict=True))
    gpu = sum(share * output.seconds for output, share in pairs if output.on_gpu)
    core = sum(share * output.seconds + job_seconds for output, share in pairs)
    disk = sum(share * output.bytes for output, share in pairs)
    return [f"{len(pairs):,}", hours_in_words(gpu / 3600), hours_in_words(core / 3600), data_size(disk)]


def hours_in_words(hours: float) -> str:
    """Hours with the digits that an estimate has."""
    if hours == 0:
        return "-"
    return "<0.01" if hours < 0.01 else f"{hours:,.2g}" if hours < 10 else f"{hours:,.0f}"


def _reasons(experiment: Experiment) -> list[str]:
    """The grounds of the numbers."""
    config, rates = experiment.config, experiment.config["rates"]
    measured = {speed.measured for run in experiment.pretrainings() if (speed := speed_of(experiment, run)).measured}
    steps = sum(finetuning_steps(experiment, task) for task in experiment.tasks)
    text = sum(_text_of(name, SOURCES[source_of(config, "corpus")].is_remote) for name in experiment.texts.values())
    tokens, length = _kept(config) * text / TEXT_PER_TOKEN, config["corpus"]["pack"]["sequence_length"]
    wanted = config["pretrain"]["steps"] * config["pretrain"]["batch_size"]
    return [
        "rests on",
        *(f"  measured     {line}" for line in sorted(measured)),
        f"  rates        {rates['gpu_flops']:.2g} FLOP/s of a GPU, {rates['core_flops']:.2g} of a core; "
        f"{1000 * rates['gpu_layer_seconds']:g} and {1000 * rates['core_layer_seconds']:g} ms per step and layer; "
        f"{rates['job_seconds']:g} s to start a job",
        "  operators    hours of all as of `original`; bytes by the parameters of each",
        f"  fine-tuning  {steps:,} optimizer steps per seed and checkpoint",
        f"  corpus       {_count(tokens)} tokens of {len(experiment.texts):,} parts, {_count(tokens / length)} rows; "
        f"training reads {wanted:,} rows",
        "  disk         at its most; raw parts are removed once they are read, unless corpus.keep_raw is set",
    ]


def _count(number: float) -> str:
    """Three significant digits: more would promise too much."""
    return f"{float(f'{number:.3g}'):,.0f}"
