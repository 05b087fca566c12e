"""Fine-tuning on a GPU beside Hugging Face's `Trainer` as the authors call it: `make bench-glue` where there is one.

The Trainer pads rows to 128 tokens and computes in bf16; it neither evaluates, saves nor logs here. Both take the same
rows of random pieces, as long as GLUE's. The first steps, in which code is compiled and graphs are recorded, and those
after them are timed apart; contestants take turns, each round with a new model.
"""

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from itertools import count, islice
from pathlib import Path

import torch
import transformers
from msgspec.structs import asdict
from transformers import BertConfig, BertForSequenceClassification, default_data_collator

from benchmarks import harness
from benchmarks.gpu_check import BATCH, MEAN_TOKENS, MOST_TOKENS, Arm, finetuning_settings, made_up_rows, trainee_on
from benchmarks.harness import Figure, Round, progress, ratio
from benchmarks.pretrain import STOCK, arguments, now
from symbert.glue.train import TaskRows, learning_rate, shuffled
from symbert.pretrain.compute import pick_device
from symbert.provenance import PROJECT, commit_of
from symbert.sizes import SIZES

PACKAGES = ("torch", "transformers", "accelerate", "numpy", "triton")
FIRST, STEADY = 300, 300  # steps
MODES = ("eager", "compiled")
PROMISED = 6  # times the Trainer's steps/s of base, compiled, in its steady state
DROPOUT, PRECISION = 0.1, "bf16"


def main() -> None:
    """Measure, and write the page."""
    parser = harness.options_of("bench-glue", __doc__, rounds=2, work=False)
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=["small", "base"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--steps", nargs=2, type=int, default=[FIRST, STEADY], help="first ones, and those after them")
    options, _ = parser.parse_known_args()  # of the CPU's page: tasks, threads, mirror
    device = pick_device()
    conditions = [
        f"{torch.cuda.get_device_name(device)}; CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}",
        harness.machine(),
        harness.versions(*PACKAGES),
        f"commit {commit_of(PROJECT)}",
        f"as initialised, {PRECISION}, dropout {DROPOUT}, AdamW; batches of {BATCH} rows of {MEAN_TOKENS} tokens in "
        f"the mean, at most {MOST_TOKENS}; {STOCK}: padded to {MOST_TOKENS}",
        f"milliseconds of a step: of the first {options.steps[0]}, with all that comes before them, and of the "
        f"{options.steps[1]} after them",
    ]
    contestants: dict[str, Callable[[int, int], tuple[float, float]]] = {}
    for size in options.sizes:
        contestants[f"{size}: {STOCK}"] = lambda *steps, size=size: trainer_speed(size, *steps)
        for mode in options.modes:
            arm = Arm(size, "original", mode, PRECISION)
            contestants[f"{size}: {mode}"] = lambda *steps, arm=arm: own_speed(arm, device, *steps)
    rounds: list[Round] = [{} for _ in range(options.rounds)]
    for number, measured in enumerate(rounds):
        for name in harness.in_turn(contestants, number):
            first, steady = contestants[name](*options.steps)
            measured |= {f"{name}: first": first, f"{name}: steady": steady}
            progress(f"round {number + 1}: {name}: {1e3 * first:.2f} ms, then {1e3 * steady:.2f} ms a step")
    figures = [
        Figure(
            f"{size}: steps/s, {part}, {mode} / {STOCK}",
            "×",
            ratio(f"{size}: {STOCK}: {part}", f"{size}: {mode}: {part}"),
            at_least=PROMISED if (size, mode, part) == ("base", "compiled", "steady") else None,
        )
        for part in ("first", "steady")
        for size in options.sizes
        for mode in options.modes
    ]
    tables = [harness.figure_table(figures, rounds), step_table(list(contestants), rounds)]
    harness.write_page(options.output, "fine-tuning on a GPU", conditions, tables)


def step_table(names: Sequence[str], rounds: Sequence[Round]) -> str:
    """Milliseconds of a step."""
    rows = []
    for name in names:
        first, steady = (
            1e3 * statistics.median(measured[f"{name}: {part}"] for measured in rounds) for part in ("first", "steady")
        )
        rows.append(f"| {name} | {first:.2f} | {steady:.2f} |")
    return harness.table("| contestant | ms a step, first | ms a step, steady |", "|---|---:|---:|", rows)


def own_speed(arm: Arm, device: torch.device, first: int, steady: int) -> tuple[float, float]:
    """Seconds of a step of this project; SystemExit where no graph is replayed."""
    begun, marks = now(), {}
    settings = finetuning_settings(arm, DROPOUT)
    trainee, recorder = trainee_on(arm, device, settings)
    rows = made_up_rows(device)
    steps = trainee.steps(rows, settings)
    batches = (index for epoch in count() for index in shuffled(rows, BATCH, 1, epoch))
    for number, index in enumerate(islice(batches, first + steady), start=1):
        steps.step(index, learning_rate(number - 1, first + steady, settings))
        if number in (first, first + steady):
            marks[number] = now()
    if device.type == "cuda" and (recorder is None or recorder.refusal):
        raise SystemExit(f"{arm}: no graph: {recorder and recorder.refusal}")
    return (marks[first] - begun) / first, (marks[first + steady] - marks[first]) / steady


def trainer_speed(size: str, first: int, steady: int) -> tuple[float, float]:
    """Seconds of a step of the Trainer, which fine-tunes the stock model."""
    begun, clock = now(), Marks((first, first + steady))
    settings = finetuning_settings(Arm(size, "original", "eager", PRECISION), DROPOUT)
    torch.manual_seed(1)
    model = BertForSequenceClassification(BertConfig(**asdict(SIZES[size]), num_labels=2))
    with tempfile.TemporaryDirectory() as folder:
        trainer = transformers.Trainer(
            model,
            arguments(
                settings,
                Path(folder),
                max_steps=first + steady,
                per_device_train_batch_size=BATCH,
                warmup_steps=settings.warmup_ratio,
                bf16=torch.cuda.is_available(),
            ),
            data_collator=default_data_collator,
            train_dataset=padded_rows(made_up_rows(torch.device("cpu"))),
            callbacks=[clock],
        )
        trainer.remove_callback(transformers.PrinterCallback)
        trainer.train()
    marks = clock.marks
    return (marks[first] - begun) / first, (marks[first + steady] - marks[first]) / steady


class Marks(transformers.TrainerCallback):
    """When the device was done with some steps."""

    def __init__(self, steps: Sequence[int]) -> None:
        self.steps, self.marks = steps, dict[int, float]()

    def on_step_end(self, args, state, control, **_) -> None:
        """Hugging Face's hook, after a step."""
        if state.global_step in self.steps:
            self.marks[state.global_step] = now()


def padded_rows(rows: TaskRows) -> list[dict[str, list[int] | int]]:
    """Rows as `datasets` gives them: Python numbers, padded."""
    padded = []
    for first, length, label in zip(rows.first, rows.lengths, rows.labels.tolist(), strict=True):
        tokens, padding = slice(first, first + length), [0] * (MOST_TOKENS - length)
        padded.append(
            {
                "input_ids": rows.input_ids[tokens].tolist() + padding,
                "token_type_ids": rows.token_type_ids[tokens].tolist() + padding,
                "attention_mask": [1] * length + padding,
                "label": label,
            }
        )
    return padded


if __name__ == "__main__":
    sys.exit(main())
