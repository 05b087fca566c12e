"""Fine-tuning beside the authors' way, Hugging Face's `Trainer`: `make bench-glue`.

The Trainer runs as the authors' scripts call it: rows padded to 128 tokens, the stock model, an evaluation of all
evaluation rows every 0.005 of the steps; nothing is saved or logged. It needs accelerate. Both fine-tune in this
process, a few steps at a time in turn.
"""

import dataclasses
import math
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
import transformers
from msgspec.structs import replace
from transformers import BertForSequenceClassification, default_data_collator

from benchmarks import harness
from benchmarks.harness import Figure, Round, progress, ratio
from benchmarks.pretrain import STOCK, UNTIMED, Clock, arguments
from symbert.configuration import GlueSettings, TaskLimits, protocol_of
from symbert.experiment.project import read_config
from symbert.files import write_json
from symbert.glue.prepare import PrepareTasks, prepare_rows
from symbert.glue.tasks import GLUE, Task, suite_of
from symbert.glue.train import Packed, load_classifier, predict, read_rows, reset_head, train
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
PROMISED = 3  # times the authors' examples/s, of WHOLE
ROWS, OUTPUT_TOLERANCE = 8, 1e-4  # compared; of the largest output, in fp32


def main() -> None:
    """Prepare rows and checkpoints, compare, measure, and write the page."""
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
        f"BERT-{SIZE} as initialised; fp32 on a CPU; {options.threads} threads; all in one process",
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
    tables = [harness.figure_table(figures, rounds), speed_table(rounds)]
    harness.write_page(options.output, "fine-tuning", conditions, tables)


def write_checkpoint(size: str, attention: str, folder: Path) -> Path:
    """A model as initialised, which is as fast as a trained one."""
    model = MaskedModel(configuration_of(SIZES[size], BUILT_IN[attention]))
    initialize(model, seed=1)
    write_weights(model, folder / "model.safetensors")
    write_json(folder / "config.json", model.config.to_dict())
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
    stock = stock_classifier(checkpoints["original"], finetuning.task.num_labels, finetuning.settings.dropout)
    built = {f"{name}: {STOCK}": Authors(finetuning, stock, folder)}
    built |= {f"{name}: {attention}": Ours(finetuning, path) for attention, path in checkpoints.items()}
    for number, measured in enumerate(rounds):
        for contestant in harness.in_turn(built, number):
            step, evaluation = built[contestant].measure()
            measured[f"{contestant}: {TRAINING}"] = step / rows
            measured[f"{contestant}: {WHOLE}"] = (step + evaluation / built[contestant].evaluate_every) / rows
            measured[f"{contestant}: {EVALUATION}"] = evaluation
            progress(f"round {number + 1}: {contestant}: {step:.3f} s a step, {evaluation:.2f} s an evaluation")
    figures = []
    for part, promised in ((TRAINING, None), (WHOLE, PROMISED)):
        for attention in checkpoints:
            faster = ratio(f"{name}: {STOCK}: {part}", f"{name}: {attention}: {part}")
            title = f"{name}: examples/s, {part}, {attention} / {STOCK}"
            figures.append(Figure(title, "×", faster, at_least=promised))
    return figures


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
    """One operator, fine-tuned by this project."""

    def __init__(self, finetuning: Finetuning, checkpoint: Path) -> None:
        self.finetuning, self.evaluate_every, self.seed = finetuning, finetuning.steps, 0
        self.rows = read_rows(finetuning.data, finetuning.task, DEVICE)
        self.trainee = Packed(classifier(checkpoint, finetuning.task.num_labels, finetuning.settings.dropout))

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

    def __init__(self, finetuning: Finetuning, model: BertForSequenceClassification, folder: Path) -> None:
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


def compare(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> str:
    """What agrees on a few rows without dropout, in words, and how well; SystemExit if an output differs."""
    name, data = finetuning.task.name, folder / f"{finetuning.task.name}-few.parquet"
    pq.write_table(finetuning.rows("validation").slice(0, ROWS), data)
    few = Finetuning(finetuning.task, data, finetuning.settings)
    differences = {attention: output_difference(few, path) for attention, path in checkpoints.items()}
    worst = max(differences, key=lambda attention: differences[attention])
    if not differences[worst] <= OUTPUT_TOLERANCE:
        raise SystemExit(
            f"{name}, {worst}: the contestants do not compute the same: outputs of this project and of the stock model "
            f"with the same weights differ by {differences[worst]:.0e} of the largest"
        )
    return (
        f"{name}: without dropout, in fp32, outputs of each operator equal those of the stock model with its weights "
        f"on rows padded to {MAX_LENGTH} (largest difference {differences[worst]:.0e})"
    )


@torch.no_grad()
def output_difference(few: Finetuning, checkpoint: Path) -> float:
    """The largest difference of the outputs for evaluation rows, as a share of the largest output.

    The classifiers have one output, because predictions of grades are the outputs themselves.
    """
    graded = dataclasses.replace(read_rows(few.data, few.task, DEVICE)["validation"], task=GLUE["stsb"])
    ours = torch.from_numpy(predict(Packed(classifier(checkpoint, 1, 0.0)), graded))
    inputs = {**default_data_collator(padded_rows(few, "validation")), "labels": None}
    stock = stock_classifier(checkpoint, 1, 0.0)(**inputs).logits[:, 0]
    return ((ours - stock).abs().max() / stock.abs().max()).item()


if __name__ == "__main__":
    main()
