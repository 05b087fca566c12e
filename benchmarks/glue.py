"""Fine-tuning measured beside the authors' way, in interleaved rounds: `make bench-glue`.

`finetuners` says who fine-tunes, what is timed, and on which rows.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.finetuners import UNTIMED, Authors, Finetuning, Ours, finetuning_settings, prepared, stock_classifier
from benchmarks.host import machine, versions
from benchmarks.learned import compare
from benchmarks.measure import Figure, Seconds, ratio, spread
from benchmarks.pretrain import progress
from benchmarks.protocol import STOCK
from benchmarks.tables import figure_table, table
from symbert.files import write_json
from symbert.glue.tasks import GLUE
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import configuration_of
from symbert.model.loading import write_weights
from symbert.sources import DEMO

PACKAGES = ("torch", "transformers", "accelerate", "numpy", "pyarrow")
TRAINING, WHOLE, EVALUATION = "training", "training and evaluation", "evaluation"
PROMISED = 3  # times the authors' examples/s, of WHOLE

Finetuners = dict[str, Ours | Authors]
"""Who fine-tunes, by task and name."""


def main() -> None:
    """Measure, and write the tables to a file and to the output."""
    options = _options()
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        page = measure(options, Path(folder).resolve())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def measure(options: argparse.Namespace, folder: Path) -> str:
    """The page of all figures; rows and checkpoints lie in `folder`."""
    lines, rounds = conditions(options), options.rounds
    operators = ["original", *options.operators]
    checkpoints = {name: write_checkpoint(options.size, name, folder / name) for name in operators}
    present = [prepare(name, options.mirror, folder / "glue") for name in options.tasks]
    for finetuning in present:
        lines += [describe(finetuning), compare(finetuning, checkpoints, folder)]
        progress(lines[-1])
    found, promised = [Seconds() for _ in range(rounds)], []
    for finetuning in present:
        built = build(finetuning, checkpoints, folder)
        more = [measure_round(built, number) for number in range(rounds)]
        found = [{**before, **after} for before, after in zip(found, more, strict=True)]
        promised += speed_figures(finetuning.task.name, operators)
    head = "\n".join(["# Figures of fine-tuning", "", *(f"* {line}" for line in lines), ""])
    return "\n".join([head, figure_table(promised, found), speed_table(found)])


def conditions(options: argparse.Namespace) -> list[str]:
    """On what, how, and how often it is measured."""
    return [
        machine(),
        versions(PACKAGES),
        f"rows of {'the demo, which are stand-ins' if options.mirror == DEMO else 'GLUE'}",
        f"BERT-{options.size} as initialised; fp32 on a CPU; {torch.get_num_threads()} threads; all in one process",
        f"interleaved rounds: {options.rounds}; steps that are not timed, before those that are: {UNTIMED}",
        "peer: Hugging Face's Trainer, rows padded to 128 tokens, without saving or logging meanwhile",
    ]


def describe(finetuning: Finetuning) -> str:
    """Which rows are fine-tuned on, and which part of a fine-tuning is timed."""
    rows, steps, interval = finetuning.rows, finetuning.steps, finetuning.interval
    evaluated = rows["validation"] / finetuning.settings.batch_size
    return (
        f"{finetuning.task.name}: {rows['train']:,} to train on and {rows['validation']:,} to evaluate on; "
        f"timed in each round: {interval} of {steps:,} steps ({100 * interval / steps:.1f} %) and one evaluation; the "
        f"Trainer evaluates every {interval} steps ({evaluated / interval:.2f} rows for each row trained), this "
        f"project once, after {steps:,} ({evaluated / steps:.3f})"
    )


def write_checkpoint(size: str, attention: str, folder: Path) -> Path:
    """A model as initialised, which is as fast as a trained one."""
    model = MaskedModel(configuration_of(size, attention))
    initialize(model, seed=1)
    write_weights(model, folder / "model.safetensors")
    write_json(folder / "config.json", model.config.to_dict())
    return folder


def prepare(name: str, mirror: Path, folder: Path, **limits: int) -> Finetuning:
    """A task in the paper's protocol."""
    return Finetuning(GLUE[name], prepared(GLUE[name], mirror, folder, **limits), finetuning_settings())


def build(finetuning: Finetuning, checkpoints: dict[str, Path], folder: Path) -> Finetuners:
    """The authors' way, and each operator in this project."""
    task, dropout = finetuning.task, finetuning.settings.dropout
    stock = stock_classifier(checkpoints["original"], task.num_labels, dropout)
    ours = {f"{task.name}: {name}": Ours(finetuning, path) for name, path in checkpoints.items()}
    return {f"{task.name}: {STOCK}": Authors(finetuning, stock, folder / "authors"), **ours}


def measure_round(built: Finetuners, number: int) -> Seconds:
    """Seconds of every contestant, beginning with another one each round.

    TRAINING is a step, WHOLE a step with its share of the next evaluation; both per example.
    """
    names, found = list(built), Seconds()
    for name in names[number % len(names) :] + names[: number % len(names)]:
        one = built[name]
        step, evaluation = one.measure()
        rows = one.finetuning.settings.batch_size
        found[f"{name}: {TRAINING}"] = step / rows
        found[f"{name}: {WHOLE}"] = (step + evaluation / one.evaluate_every) / rows
        found[f"{name}: {EVALUATION}"] = evaluation
        progress(f"round {number + 1}: {name}: {step:.3f} s a step, {evaluation:.2f} s an evaluation")
    return found


def speed_figures(task: str, operators: Sequence[str]) -> list[Figure[Seconds]]:
    """Examples per second beside those of the authors' way; with evaluation a target is set."""
    return [
        Figure(
            f"{task}: examples/s, {what}, {attention} / {STOCK}", "×",
            ratio(f"{task}: {STOCK}: {what}", f"{task}: {attention}: {what}"), at_least=promised,
        )
        for what, promised in ((TRAINING, None), (WHOLE, PROMISED))
        for attention in operators
    ]  # fmt: skip


def speed_table(rounds: Sequence[Seconds]) -> str:
    """Examples per second of each contestant, and seconds of an evaluation."""
    names = sorted(name.removesuffix(f": {WHOLE}") for name in rounds[0] if name.endswith(WHOLE))
    rows = []
    for name in names:
        found = {what: spread([round[f"{name}: {what}"] for round in rounds]) for what in (TRAINING, WHOLE, EVALUATION)}
        speeds = [
            f"{1 / found[what].median:.1f} | {1 / found[what].high:.1f}–{1 / found[what].low:.1f}"
            for what in (TRAINING, WHOLE)
        ]
        rows.append(f"| {name} | {' | '.join(speeds)} | {found[EVALUATION].median:.2f} |")
    head = f"| contestant | examples/s, {TRAINING} | range | examples/s, {WHOLE} | range | seconds of an evaluation |"
    return table(head, "|---|---:|---:|---:|---:|---:|", rows)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", choices=["rte", "mrpc"], default=["rte", "mrpc"])
    parser.add_argument("--operators", nargs="*", default=["pairwise"], help="beside the original")
    parser.add_argument("--size", default="small")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--mirror", type=Path, default=DEMO, help="in the publishers' layout")
    parser.add_argument("--work", type=Path, default=Path("results/bench-glue"), help="folder for a while")
    parser.add_argument("--output", type=Path, default=Path("results/bench-glue.md"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
