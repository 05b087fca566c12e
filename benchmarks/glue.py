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
from benchmarks.harness import Figure, Round, in_turn, progress, ratio
from symbert.configuration import GlueSettings, TaskSettings, protocol_of, values_of
from symbert.experiment.project import read_config
from symbert.files import write_json
from symbert.glue.prepare import prepare_task
from symbert.glue.tasks import GLUE, Task, suite_of
from symbert.glue.train import load_classifier, predict, read_rows, reset_head, train
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.hf import fold
from symbert.model.loading import write_weights
from symbert.sources import DEMO, VOCABULARY

PACKAGES = ("torch", "transformers", "accelerate", "numpy", "pyarrow")
PAPER = read_config(Path(__file__).parents[1], {"scale": "paper", "source": "hub"})
DEVICE, PRECISION = torch.device("cpu"), "fp32"
STOCK = "stock Trainer"
TRAINING, WHOLE, EVALUATION = "training", "training and evaluation", "evaluation"
EVALUATE_EVERY = 0.005  # of all steps (authors): 200 times
EVALUATION_BATCH_SIZE, MAX_LENGTH = 128, 128  # rows, and tokens to which they are padded (authors)
UNTIMED = 1  # step before the clock starts, each time
PROMISED = 3  # times the authors' examples/s, of WHOLE
ROWS = 8  # compared: a single batch, so that the order of the rows decides nothing
OUTPUT_TOLERANCE, LOSS_TOLERANCE = 1e-4, 1e-5  # of the largest output, and of the loss, in fp32
LEARNED = 1e-3  # of the loss: less would show nothing


def main() -> None:
    """Prepare rows and checkpoints, compare, measure, and write the page."""
    parser = harness.options_of("bench-glue", __doc__, rounds=5, work="bench-glue")
    parser.add_argument("--tasks", nargs="+", choices=["rte", "mrpc"], default=["rte", "mrpc"])
    parser.add_argument("--operators", nargs="*", default=["pairwise"], help="beside the original")
    parser.add_argument("--size", default="small")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mirror", type=Path, default=DEMO, help="in the publishers' layout")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    conditions = [
        harness.machine(),
        harness.versions(*PACKAGES),
        f"rows of {'the demo, which are stand-ins' if options.mirror == DEMO else 'GLUE'}",
        f"BERT-{options.size} as initialised; fp32 on a CPU; {torch.get_num_threads()} threads; all in one process",
        f"interleaved rounds: {options.rounds}; steps that are not timed, before those that are: {UNTIMED}",
        "peer: Hugging Face's Trainer, rows padded to 128 tokens, without saving or logging meanwhile",
    ]
    figures, rounds, operators = [], [{} for _ in range(options.rounds)], ["original", *options.operators]
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as place:
        folder = Path(place).resolve()
        checkpoints = {name: write_checkpoint(options.size, name, folder / name) for name in operators}
        finetunings = [prepare(name, options.mirror, folder / "glue") for name in options.tasks]
        for finetuning in finetunings:
            conditions += [finetuning.describe(), compare(finetuning, checkpoints, folder)]
            progress(conditions[-1])
        for finetuning in finetunings:
            figures += measure(finetuning, checkpoints, rounds, folder / "authors")
    harness.write_page(
        options.output, "fine-tuning", conditions, [harness.figure_table(figures, rounds), speed_table(rounds)]
    )


def write_checkpoint(size: str, attention: str, folder: Path) -> Path:
    """A model as initialised, which is as fast as a trained one."""
    model = MaskedModel(configuration_of(size, attention))
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

    def describe(self) -> str:
        """Which rows are fine-tuned on, and which part of a fine-tuning is timed."""
        training, evaluation = (self.rows(split).num_rows for split in ("train", "validation"))
        steps, interval, evaluated = self.steps, self.interval, evaluation / self.settings.batch_size
        return (
            f"{self.task.name}: {training:,} to train on and {evaluation:,} to evaluate on; "
            f"timed in each round: {interval} of {steps:,} steps ({100 * interval / steps:.1f} %) and one evaluation; "
            f"the Trainer evaluates every {interval} steps ({evaluated / interval:.2f} rows for each row trained), "
            f"this project once, after {steps:,} ({evaluated / steps:.3f})"
        )


def prepare(name: str, mirror: Path, folder: Path, **limits: int) -> Finetuning:
    """A task, all rows prepared as the workflow does for the paper, from a directory in the publishers' layout."""
    task, wanted = GLUE[name], {**values_of(protocol_of(PAPER, "glue", TaskSettings)), **limits}
    del wanted["allow_partial"]
    files = {"source": str(mirror / suite_of(task).repository), "vocabulary": str(mirror / VOCABULARY.location)}
    write_json(folder / "settings.json", {"kind": "tasks", **wanted, **files})
    prepare_task(folder / f"{name}.parquet", allow_partial=True)
    return Finetuning(task, folder / f"{name}.parquet", protocol_of(PAPER, "glue", GlueSettings))


def measure(finetuning: Finetuning, checkpoints: dict[str, Path], rounds: list[Round], folder: Path) -> list[Figure]:
    """Add seconds to the rounds, and return the figures made of them.

    TRAINING is a step, WHOLE a step with its share of the next evaluation; both per example.
    """
    task, rows = finetuning.task, finetuning.settings.batch_size
    stock = stock_classifier(checkpoints["original"], task.num_labels, finetuning.settings.dropout)
    built = {f"{task.name}: {STOCK}": Authors(finetuning, stock, folder)}
    built |= {f"{task.name}: {attention}": Ours(finetuning, path) for attention, path in checkpoints.items()}
    for number, measured in enumerate(rounds):
        for name in in_turn(built, number):
            step, evaluation = built[name].measure()
            measured[f"{name}: {TRAINING}"] = step / rows
            measured[f"{name}: {WHOLE}"] = (step + evaluation / built[name].evaluate_every) / rows
            measured[f"{name}: {EVALUATION}"] = evaluation
            progress(f"round {number + 1}: {name}: {step:.3f} s a step, {evaluation:.2f} s an evaluation")
    return [
        Figure(
            f"{task.name}: examples/s, {part}, {attention} / {STOCK}", "×",
            ratio(f"{task.name}: {STOCK}: {part}", f"{task.name}: {attention}: {part}"), at_least=promised,
        )
        for part, promised in ((TRAINING, None), (WHOLE, PROMISED))
        for attention in checkpoints
    ]  # fmt: skip


def speed_table(rounds: Sequence[Round]) -> str:
    """Examples per second of each contestant, and seconds of an evaluation."""
    rows = []
    for name in sorted(name.removesuffix(f": {WHOLE}") for name in rounds[0] if name.endswith(WHOLE)):
        cells = [name]
        for part in (TRAINING, WHOLE):
            speeds = [1 / measured[f"{name}: {part}"] for measured in rounds]
            cells += [f"{statistics.median(speeds):.1f}", f"{min(speeds):.1f}–{max(speeds):.1f}"]
        evaluation = statistics.median(measured[f"{name}: {EVALUATION}"] for measured in rounds)
        rows.append(f"| {' | '.join(cells)} | {evaluation:.2f} |")
    head = f"| contestant | examples/s, {TRAINING} | range | examples/s, {WHOLE} | range | seconds of an evaluation |"
    return harness.table(head, "|---|---:|---:|---:|---:|---:|", rows)


class Enough(Exception):
    """Stops a training."""


class Ours:
    """One operator, fine-tuned by this project."""

    def __init__(self, finetuning: Finetuning, checkpoint: Path) -> None:
        self.finetuning, self.evaluate_every, self.seed = finetuning, finetuning.steps, 0
        self.rows = read_rows(finetuning.data, finetuning.task, DEVICE)
        self.model = classifier(checkpoint, finetuning.task.num_labels, finetuning.settings.dropout)

    def measure(self) -> tuple[float, float]:
        """Seconds of a step, the first ones with another seed each time, and of an evaluation."""
        interval, ends = self.finetuning.interval, {}
        self.seed += 1

        def stop(step: int) -> None:
            ends[step] = perf_counter()
            if step == UNTIMED + interval:
                raise Enough

        try:
            train(self.model, self.rows["train"], self.finetuning.settings, PRECISION, self.seed, stop)
        except Enough:
            training = ends[UNTIMED + interval] - ends[UNTIMED]
        begun = perf_counter()
        predict(self.model, self.rows["validation"], PRECISION)
        return (training / interval, perf_counter() - begun)


class Authors:
    """Hugging Face's `Trainer`."""

    def __init__(self, finetuning: Finetuning, model: BertForSequenceClassification, folder: Path) -> None:
        self.evaluate_every, self.clock = finetuning.interval, Clock(finetuning.interval)
        self.trainer = transformers.Trainer(
            model,
            arguments(finetuning.settings, folder),
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


class Clock(transformers.TrainerCallback):
    """Times so many steps after the UNTIMED ones, and the evaluations between them; then it stops the training."""

    begun = stepped = ended = evaluating = 0.0

    def __init__(self, steps: int) -> None:
        self.last = UNTIMED + steps

    def on_step_end(self, args, state, control, **_) -> None:
        self.stepped = perf_counter()
        if state.global_step == UNTIMED:
            self.begun = self.stepped
        if state.global_step == self.last:
            self.ended = self.stepped
            control.should_training_stop = True

    def on_evaluate(self, args, state, control, **_) -> None:
        """Hugging Face's hook, after an evaluation."""
        if UNTIMED <= state.global_step < self.last:
            self.evaluating += perf_counter() - self.stepped


def arguments(settings: GlueSettings, folder: Path) -> transformers.TrainingArguments:
    """The paper's settings, and the authors' evaluations; nothing is logged or saved."""
    return transformers.TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=settings.epochs,
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=EVALUATION_BATCH_SIZE,
        eval_strategy="steps",
        eval_steps=EVALUATE_EVERY,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=settings.warmup_ratio,  # below 1 it is a share of the steps
        weight_decay=settings.weight_decay,
        adam_epsilon=settings.adam_epsilon,
        max_grad_norm=settings.gradient_clip,
        optim="adamw_torch_fused",
        use_cpu=True,
        save_strategy="no",
        logging_strategy="no",
        logging_nan_inf_filter=False,
        report_to="none",
        disable_tqdm=True,
    )


def accuracy(prediction: transformers.EvalPrediction) -> dict[str, float]:
    return {"accuracy": float(np.mean(prediction.predictions.argmax(axis=1) == prediction.label_ids))}


def padded_rows(finetuning: Finetuning, split: str) -> list[dict[str, list[int] | int]]:
    """Rows as `datasets` gives them: Python numbers, padded."""

    def pad(values: list[int]) -> list[int]:
        return values + [0] * (MAX_LENGTH - len(values))

    return [
        {
            "input_ids": pad(row["input_ids"]),
            "token_type_ids": pad(row["token_type_ids"]),
            "attention_mask": pad([1] * len(row["input_ids"])),
            "label": row["label"],
        }
        for row in finetuning.rows(split).select(["input_ids", "token_type_ids", "label"]).to_pylist()
    ]


def classifier(checkpoint: Path, num_labels: int, dropout: float) -> torch.nn.Module:
    """This project's classifier on a checkpoint, its head drawn with seed 1."""
    model = load_classifier(checkpoint, num_labels, dropout)
    reset_head(model, seed=1)
    return model.to(DEVICE)


def stock_classifier(checkpoint: Path, num_labels: int, dropout: float) -> BertForSequenceClassification:
    """Hugging Face's own model that computes the same."""
    return fold(classifier(checkpoint, num_labels, dropout))


def compare(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> str:
    """What agrees on a few rows without dropout, in words, and how well; SystemExit if an output or a loss differs."""
    name, data = finetuning.task.name, folder / f"{finetuning.task.name}-few.parquet"
    pq.write_table(pa.concat_tables(finetuning.rows(split).slice(0, ROWS) for split in finetuning.task.splits), data)
    few = Finetuning(finetuning.task, data, replace(finetuning.settings, dropout=0.0, batch_size=ROWS))
    differences = {attention: output_difference(few, path) for attention, path in checkpoints.items()}
    worst = max(differences, key=lambda attention: differences[attention])
    if not differences[worst] <= OUTPUT_TOLERANCE:
        raise SystemExit(
            f"{name}, {worst}: the contestants do not compute the same: outputs of this project and of the stock model "
            f"with the same weights differ by {differences[worst]:.0e} of the largest"
        )
    before, ours, authors = losses_of(few, checkpoints["original"], folder)
    if not (abs(ours - authors) <= LOSS_TOLERANCE * authors and abs(before - authors) >= LEARNED * authors):
        raise SystemExit(f"{name}: the contestants do not learn the same: loss {before}, then {ours} and {authors}")
    return (
        f"{name}: without dropout, in fp32, outputs of each operator equal those of the stock model with its weights "
        f"on rows padded to 128 (largest difference {differences[worst]:.0e}); after {few.steps} steps on {ROWS} rows "
        f"this project's loss equals the Trainer's ({before:.4f} before, then {authors:.4f}; difference "
        f"{abs(ours - authors) / authors:.0e})"
    )


@torch.no_grad()
def output_difference(few: Finetuning, checkpoint: Path) -> float:
    """The largest difference of the outputs for evaluation rows, as a share of the largest output.

    The classifiers have one output, because predictions of grades are the outputs themselves.
    """
    graded = dataclasses.replace(read_rows(few.data, few.task, DEVICE)["validation"], task=GLUE["stsb"])
    ours = torch.from_numpy(predict(classifier(checkpoint, 1, 0.0), graded, PRECISION))
    inputs = {**default_data_collator(padded_rows(few, "validation")), "labels": None}
    stock = stock_classifier(checkpoint, 1, 0.0)(**inputs).logits[:, 0]
    return ((ours - stock).abs().max() / stock.abs().max()).item()


def losses_of(few: Finetuning, checkpoint: Path, folder: Path) -> tuple[float, float, float]:
    """The loss of the training rows: at the start, after this project's training, and after the Trainer's."""
    ours, stock = (make(checkpoint, few.task.num_labels, 0.0) for make in (classifier, stock_classifier))
    before = loss_of(few, stock)
    train(ours, read_rows(few.data, few.task, DEVICE)["train"], few.settings, PRECISION, 1, lambda _: None)
    trainer = Authors(few, stock, folder / "few").trainer
    trainer.pop_callback(Clock)
    trainer.train()
    return before, loss_of(few, fold(ours)), loss_of(few, stock)


@torch.no_grad()
def loss_of(few: Finetuning, model: BertForSequenceClassification) -> float:
    return model.eval()(**default_data_collator(padded_rows(few, "train"))).loss.item()


if __name__ == "__main__":
    main()
