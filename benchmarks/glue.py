"""Fine-tuning beside the authors' way, Hugging Face's `Trainer`: `make bench-glue`.

The Trainer runs as the authors' scripts call it: rows padded to 128 tokens, the stock model, an evaluation of all
evaluation rows every 0.005 of the steps; nothing is saved or logged. Both fine-tune in this process, a few steps at a
time in turn; peak memory is that of a process of its own. Beside BERT there is a family that reads padded rows here,
too: ELECTRA, which has BERT's word pieces. On a GPU `benchmarks.glue_gpu` measures.
"""

import dataclasses
import math
import multiprocessing
import re
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
import transformers
from msgspec.structs import replace
from transformers import (
    AutoModelForSequenceClassification,
    BertForSequenceClassification,
    ElectraConfig,
    ElectraForPreTraining,
    PreTrainedModel,
    default_data_collator,
)

from benchmarks import harness
from benchmarks.harness import Figure, Round, progress, ratio
from benchmarks.pretrain import STOCK, UNTIMED, Clock, arguments
from symbert.configuration import GlueSettings, TaskLimits, protocol_of
from symbert.experiment.project import read_config
from symbert.files import write_json
from symbert.foreign import ForeignModel, Tokenizer
from symbert.glue import stock
from symbert.glue.prepare import PrepareTasks, prepare_rows
from symbert.glue.tasks import GLUE, Task, suite_of
from symbert.glue.train import Packed, Trainee, load_classifier, predict, read_rows, reset_head, train
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.hf import fold
from symbert.model.loading import write_weights
from symbert.operators import OPERATORS as BUILT_IN
from symbert.sizes import SIZES
from symbert.sources import DEMO, VOCABULARY
from symbert.steps import File

PACKAGES = ("torch", "transformers", "accelerate", "numpy", "pyarrow")
PAPER = read_config(Path(__file__).parents[1], {"scale": "paper", "source": "hub"})
DEVICE, PRECISION = torch.device("cpu"), "fp32"
SIZE, OPERATORS = "small", ("original", "pairwise")
TRAINING, WHOLE, EVALUATION = "training", "training and evaluation", "evaluation"
EVALUATE_EVERY = 0.005  # of all steps (authors): 200 times
EVALUATION_BATCH_SIZE, MAX_LENGTH = 128, 128  # rows, and tokens to which they are padded (authors)
FAMILY = "electra"  # of the small size, as published
PROMISED = {**dict.fromkeys(OPERATORS, 3), FAMILY: 1.5}  # times the authors' examples/s, of WHOLE
ROWS, OUTPUT_TOLERANCE = 8, 1e-4  # compared; of the largest output, in fp32


def main() -> None:
    """Prepare rows and checkpoints, compare, measure, and write the page."""
    if torch.cuda.is_available():
        from benchmarks import glue_gpu  # which needs this module

        return glue_gpu.main()
    parser = harness.options_of("bench-glue", __doc__, rounds=5)
    parser.add_argument("--tasks", nargs="+", choices=["rte", "mrpc"], default=["rte", "mrpc"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mirror", type=Path, default=DEMO, help="in the publishers' layout")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    conditions = [
        harness.machine(),
        harness.versions(*PACKAGES),
        f"rows of {'the demo, which are stand-ins' if options.mirror == DEMO else 'GLUE'}",
        f"BERT-{SIZE} and ELECTRA-small as initialised; fp32 on a CPU; {options.threads} threads; all in one process",
        f"interleaved rounds: {options.rounds}; steps that are not timed, before those that are: {UNTIMED}",
        f"{STOCK}: rows padded to {MAX_LENGTH} tokens, an evaluation every {100 * EVALUATE_EVERY} % of the steps; "
        "no saving or logging meanwhile. This project evaluates once, at the end",
    ]
    figures: list[Figure] = []
    rounds: list[Round] = [{} for _ in range(options.rounds)]
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        folder = Path(place).resolve()
        checkpoints = {name: write_checkpoint(SIZE, name, folder / name) for name in OPERATORS}
        checkpoints[FAMILY] = write_foreign(folder / FAMILY)
        finetunings = [prepare(name, options.mirror, folder / "glue") for name in options.tasks]
        for finetuning in finetunings:
            training, evaluation = (finetuning.rows(split).num_rows for split in ("train", "validation"))
            conditions.append(
                f"{finetuning.task.name}: {training:,} rows to train on and {evaluation:,} to evaluate on; timed in "
                f"each round: {finetuning.interval} of {finetuning.steps:,} steps and one evaluation"
            )
            conditions.append(compare(finetuning, checkpoints, folder))
            progress(conditions[-1])
        for finetuning in finetunings:
            figures += measure(finetuning, checkpoints, rounds, folder / "authors")
        memory = memory_table(finetunings[0], checkpoints, folder / "authors")
    tables = [harness.figure_table(figures, rounds), speed_table(rounds), memory]
    harness.write_page(options.output, "fine-tuning", conditions, tables)


def write_checkpoint(size: str, attention: str, folder: Path) -> Path:
    """A model as initialised, which is as fast as a trained one."""
    model = MaskedModel(configuration_of(SIZES[size], BUILT_IN[attention]))
    initialize(model, seed=1)
    write_weights(model, folder / "model.safetensors")
    write_json(folder / "config.json", model.config.to_dict())
    return folder


def write_foreign(folder: Path) -> Path:
    """A model of FAMILY as initialised, as Hugging Face saves it."""
    torch.manual_seed(1)
    ElectraForPreTraining(ElectraConfig()).save_pretrained(folder)
    return folder


@dataclasses.dataclass(frozen=True)
class Finetuning:
    """What both fine-tune: a task with one evaluation split, its prepared rows, and the paper's protocol."""

    task: Task
    data: Path
    settings: GlueSettings

    def rows(self, split: str) -> pa.Table:
        return pq.read_table(self.data).filter(pc.field("split") == split)

    @property
    def steps(self) -> int:
        """Of a whole fine-tuning."""
        return self.settings.epochs * math.ceil(self.rows("train").num_rows / self.settings.batch_size)

    @property
    def interval(self) -> int:
        """Steps from one evaluation of the authors' to the next: as many are timed in a round."""
        return math.ceil(EVALUATE_EVERY * self.steps)


def prepare(name: str, mirror: Path, folder: Path, **limits: int) -> Finetuning:
    """A task, all rows prepared as the workflow does for the paper, from a directory in the publishers' layout."""
    task, limits = GLUE[name], replace(protocol_of(PAPER, "glue", TaskLimits), **limits)
    source, vocabulary = mirror / suite_of(name).repository, mirror / VOCABULARY.location
    step = PrepareTasks(suite="glue", limits=limits, vocabulary=File(str(vocabulary)), source=File(str(source)))
    prepare_rows(folder / f"{name}.parquet", step, task, allow_partial=True)
    return Finetuning(task, folder / f"{name}.parquet", protocol_of(PAPER, "glue", GlueSettings))


def measure(finetuning: Finetuning, checkpoints: dict[str, Path], rounds: list[Round], folder: Path) -> list[Figure]:
    """Add seconds to the rounds, and return the figures made of them.

    TRAINING is a step, WHOLE a step with its share of the next evaluation; both per example.
    """
    name, rows = finetuning.task.name, finetuning.settings.batch_size
    built = {title: make(finetuning, folder) for title, make in contestants(name, checkpoints).items()}
    for number, measured in enumerate(rounds):
        for contestant in harness.in_turn(built, number):
            step, evaluation = built[contestant].measure()
            measured[f"{contestant}: {TRAINING}"] = step / rows
            measured[f"{contestant}: {WHOLE}"] = (step + evaluation / built[contestant].evaluate_every) / rows
            measured[f"{contestant}: {EVALUATION}"] = evaluation
            progress(f"round {number + 1}: {contestant}: {step:.3f} s a step, {evaluation:.2f} s an evaluation")
    figures = []
    for part in (TRAINING, WHOLE):
        for kind in checkpoints:
            faster = ratio(f"{name}: {peer_of(kind)}: {part}", f"{name}: {kind}: {part}")
            title = f"{name}: examples/s, {part}, {kind} / {peer_of(kind)}"
            figures.append(Figure(title, "×", faster, at_least=PROMISED[kind] if part == WHOLE else None))
    return figures


def peer_of(kind: str) -> str:
    """The contestant that fine-tunes a model of the same family with the Trainer."""
    return f"{STOCK}, {FAMILY if kind == FAMILY else 'bert'}"


def contestants(name: str, checkpoints: dict[str, Path]) -> dict[str, Callable[[Finetuning, Path], "Ours | Authors"]]:
    """What makes each contestant, by its name."""
    made = {f"{name}: {peer_of(kind)}": Authors.of(kind, checkpoints[kind]) for kind in ("original", FAMILY)}
    return made | {f"{name}: {kind}": Ours.of(kind, checkpoint) for kind, checkpoint in checkpoints.items()}


def memory_table(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> str:
    """Peak memory of a process that fine-tunes and evaluates as in a round, of each contestant."""
    rows = []
    for name in contestants(finetuning.task.name, checkpoints):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            peak = pool.apply(peak_of, (name, finetuning, checkpoints, folder, torch.get_num_threads()))
        progress(f"{name}: {peak:.0f} MB")
        rows.append(f"| {name} | {peak:.0f} |")
    return harness.table("| contestant | peak MB of its process |", "|---|---:|", rows)


def peak_of(name: str, finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path, threads: int) -> float:
    """MB (10^6 bytes) resident at the peak of this process, which fine-tunes one contestant."""
    torch.set_num_threads(threads)
    contestants(finetuning.task.name, checkpoints)[name](finetuning, folder).measure()
    kibibytes = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(kibibytes[1]) * 1024 / 1e6


def speed_table(rounds: Sequence[Round]) -> str:
    """Examples per second of each contestant, and seconds of an evaluation."""
    rows = []
    for name in sorted(name.removesuffix(f": {WHOLE}") for name in rounds[0] if name.endswith(WHOLE)):
        training, whole, evaluation = (
            statistics.median(measured[f"{name}: {part}"] for measured in rounds)
            for part in (TRAINING, WHOLE, EVALUATION)
        )
        rows.append(f"| {name} | {1 / training:.1f} | {1 / whole:.1f} | {evaluation:.2f} |")
    head = f"| contestant | examples/s, {TRAINING} | examples/s, {WHOLE} | seconds of an evaluation |"
    return harness.table(head, "|---|---:|---:|---:|", rows)


class Enough(Exception):
    """Stops a training."""


class Ours:
    """One operator, or one of FAMILY, fine-tuned by this project."""

    def __init__(self, finetuning: Finetuning, trainee: Trainee) -> None:
        self.finetuning, self.evaluate_every, self.seed = finetuning, finetuning.steps, 0
        self.rows, self.trainee = read_rows(finetuning.data, finetuning.task, DEVICE), trainee

    @classmethod
    def of(cls, kind: str, checkpoint: Path) -> "Callable[[Finetuning, Path], Ours]":
        """What makes it of a checkpoint."""
        make = padded if kind == FAMILY else packed
        return lambda finetuning, _: cls(finetuning, make(checkpoint, finetuning.task, finetuning.settings.dropout))

    def measure(self) -> tuple[float, float]:
        """Seconds of a step, the first ones with another seed each time, and of an evaluation."""
        interval, ends = self.finetuning.interval, {}
        self.seed += 1

        def stop(step: int) -> None:
            ends[step] = perf_counter()
            if step == UNTIMED + interval:
                raise Enough

        try:
            train(self.trainee, self.rows["train"], self.finetuning.settings, self.seed, stop)
        except Enough:
            training = ends[UNTIMED + interval] - ends[UNTIMED]
        begun = perf_counter()
        predict(self.trainee, self.rows["validation"])
        return (training / interval, perf_counter() - begun)


class Authors:
    """Hugging Face's `Trainer`."""

    @classmethod
    def of(cls, kind: str, checkpoint: Path) -> "Callable[[Finetuning, Path], Authors]":
        """What makes it of a checkpoint."""
        make = foreign_classifier if kind == FAMILY else stock_classifier

        def made(finetuning: Finetuning, folder: Path) -> "Authors":
            model = make(checkpoint, finetuning.task.num_labels, finetuning.settings.dropout)
            return cls(finetuning, model, folder / kind)

        return made

    def __init__(self, finetuning: Finetuning, model: PreTrainedModel, folder: Path) -> None:
        self.evaluate_every, self.clock, settings = finetuning.interval, Clock(), finetuning.settings
        self.clock.last = UNTIMED + self.evaluate_every
        self.trainer = transformers.Trainer(
            model,
            arguments(
                settings,
                folder,
                num_train_epochs=settings.epochs,
                per_device_train_batch_size=settings.batch_size,
                per_device_eval_batch_size=EVALUATION_BATCH_SIZE,
                eval_strategy="steps",
                eval_steps=EVALUATE_EVERY,
                warmup_steps=settings.warmup_ratio,  # below 1 it is a share of the steps
                use_cpu=True,
            ),
            data_collator=default_data_collator,
            train_dataset=padded_rows(finetuning, "train"),
            eval_dataset=padded_rows(finetuning, "validation"),
            compute_metrics=accuracy,
            callbacks=[self.clock],
        )
        self.trainer.remove_callback(transformers.PrinterCallback)

    def measure(self) -> tuple[float, float]:
        """Seconds of a step, the first ones, and of the evaluation that falls among them."""
        self.clock.evaluating = 0.0
        self.trainer.train()
        training = self.clock.ended - self.clock.begun - self.clock.evaluating
        return (training / self.evaluate_every, self.clock.evaluating)


def accuracy(prediction: transformers.EvalPrediction) -> dict[str, float]:
    return {"accuracy": float(np.mean(prediction.predictions.argmax(axis=1) == prediction.label_ids))}


def padded_rows(finetuning: Finetuning, split: str) -> list[dict[str, list[int] | int]]:
    """Rows as `datasets` gives them: Python numbers, padded."""
    rows = finetuning.rows(split).select(["input_ids", "token_type_ids", "label"]).to_pylist()
    for row in rows:
        row["attention_mask"] = [1] * len(row["input_ids"])
        padding = [0] * (MAX_LENGTH - len(row["input_ids"]))
        row |= {name: values + padding for name, values in row.items() if name != "label"}
    return rows


def classifier(checkpoint: Path, num_labels: int, dropout: float) -> torch.nn.Module:
    """This project's classifier on a checkpoint, its head drawn with seed 1."""
    model = load_classifier(checkpoint, num_labels, dropout)
    reset_head(model, seed=1)
    return model.to(DEVICE)


def stock_classifier(checkpoint: Path, num_labels: int, dropout: float) -> BertForSequenceClassification:
    """Hugging Face's own model that computes the same."""
    return fold(classifier(checkpoint, num_labels, dropout))


def packed(checkpoint: Path, task: Task, dropout: float) -> Trainee:
    """This project's classifier, which reads rows end to end."""
    return Packed(classifier(checkpoint, task.num_labels, dropout))


def padded(checkpoint: Path, task: Task, dropout: float) -> Trainee:
    """A classifier of FAMILY in this project, which reads padded rows; its head is drawn with seed 1."""
    files = {name: File(str(checkpoint / name)) for name in ("config.json", "model.safetensors")}
    model = ForeignModel(name=FAMILY, model_type=FAMILY, parameters=0, content=files, tokenizer=Tokenizer(FAMILY, {}))
    loaded = stock.load(model, stock.read_config(model), task, dropout)
    reset_head(loaded, seed=1)
    return stock.Padded(loaded.to(DEVICE))


def foreign_classifier(checkpoint: Path, num_labels: int, dropout: float) -> PreTrainedModel:
    """Hugging Face's own model of FAMILY, loaded by its Auto class."""
    everywhere = dict.fromkeys(stock.dropouts_of(ElectraConfig()), dropout)
    return AutoModelForSequenceClassification.from_pretrained(checkpoint, num_labels=num_labels, **everywhere)


def compare(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> str:
    """What agrees on a few rows without dropout, in words, and how well; SystemExit if an output differs."""
    name, data = finetuning.task.name, folder / f"{finetuning.task.name}-few.parquet"
    pq.write_table(finetuning.rows("validation").slice(0, ROWS), data)
    few = Finetuning(finetuning.task, data, finetuning.settings)
    differences = {kind: output_difference(few, kind, path) for kind, path in checkpoints.items()}
    worst = max(differences, key=lambda kind: differences[kind])
    if not differences[worst] <= OUTPUT_TOLERANCE:
        raise SystemExit(
            f"{name}, {worst}: the contestants do not compute the same: outputs of this project and of the stock model "
            f"with the same weights differ by {differences[worst]:.0e} of the largest"
        )
    return (
        f"{name}: without dropout, in fp32, outputs of each model equal those of the stock one with its weights "
        f"on rows padded to {MAX_LENGTH} (largest difference {differences[worst]:.0e})"
    )


@torch.no_grad()
def output_difference(few: Finetuning, kind: str, checkpoint: Path) -> float:
    """The largest difference of the outputs for evaluation rows, as a share of the largest output.

    The classifiers have one output, because predictions of grades are the outputs themselves.
    """
    graded = dataclasses.replace(read_rows(few.data, few.task, DEVICE)["validation"], task=GLUE["stsb"])
    trainee = (padded if kind == FAMILY else packed)(checkpoint, graded.task, 0.0)
    ours = torch.from_numpy(predict(trainee, graded))
    inputs = {**default_data_collator(padded_rows(few, "validation")), "labels": None}
    if kind == FAMILY:
        peer = foreign_classifier(checkpoint, 1, 0.0).eval()
        peer.classifier.load_state_dict(trainee.model.classifier.state_dict())
    else:
        peer = stock_classifier(checkpoint, 1, 0.0)
    theirs = peer(**inputs).logits[:, 0]
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


if __name__ == "__main__":
    main()
