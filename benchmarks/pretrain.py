"""Pre-training measured beside the authors' way, in interleaved rounds: `make bench-pretrain`.

`builders` says who trains; `protocol` how much on which device; `figures` what is promised.
"""

import argparse
import gc
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu_steps import measure_peak
from benchmarks.host import machine, versions
from benchmarks.measure import Figure, Seconds, ratio, spread
from benchmarks.packed import write_corpus
from benchmarks.protocol import COMPILED, CPU, CUDA, OPERATORS, STOCK, Protocol, task_of
from benchmarks.tables import figure_table, table
from benchmarks.trainers import Authors, Ours, Task
from benchmarks.twins import compare_losses
from symbert.pretrain.compute import pick_device, resolve_precision

ROWS, VOCABULARY = 8192, 30_522
PACKAGES = ("torch", "transformers", "accelerate", "tokenizers", "numpy", "safetensors")

Builders = dict[str, Callable[[], Ours | Authors]]
"""Who trains, by name: built before the first round of a size, and in memory until the last."""


def builders(task: Task, protocol: Protocol, folder: Path) -> Builders:
    """Who trains in a round of one size; what they write lies in `folder`."""
    peers = {name: partial(Authors, task, name == COMPILED, folder / "authors") for name in protocol.peers}
    pairs = [(attention, recipe) for recipe in protocol.recipes for attention in OPERATORS]
    ours = {", ".join(pair): partial(Ours, task, *pair) for pair in pairs}
    return {**peers, **ours}


def measure_size(present: Builders, size: str, rounds: int, steps: int) -> tuple[list[Seconds], dict[str, float]]:
    """The rounds of one size, in names that begin with it; on a GPU also the operations of a step of each of ours."""
    torch.compiler.reset()  # what an earlier size left: compiled graphs, and memory
    gc.collect()
    built = {f"{size}: {name}": build() for name, build in present.items()}
    found = [measure_round(built, size, number, steps) for number in range(rounds)]
    ours = {name: one for name, one in built.items() if isinstance(one, Ours) and torch.cuda.is_available()}
    return found, {name: one.flops() for name, one in ours.items()}


def measure_round(built: dict[str, Ours | Authors], size: str, number: int, steps: int) -> Seconds:
    """Every contestant's seconds of a step, beginning with another one each round."""
    names, found = list(built), Seconds()
    for name in names[number % len(names) :] + names[: number % len(names)]:
        found[name] = built[name].seconds(steps)
        progress(f"round {number + 1}: {name}: {found[name]:.3f} s a step")
    if torch.cuda.is_available():
        found[f"{size}: peak"] = measure_peak(pick_device(), "bf16")
    return found


def figures(size: str, protocol: Protocol, flops: dict[str, float]) -> list[Figure[Seconds]]:
    """Tokens per second beside each peer's, the paper's operators beside the original, and, where `flops` has the
    operations of a step of each contestant of ours, the share of the card's rate in a dense bf16 product."""
    speeds = [
        Figure(
            f"{size}: tokens/s, {attention}, {recipe} / {peer}", "×",
            ratio(f"{size}: {peer}", f"{size}: {attention}, {recipe}"),
            at_least=protocol.speed.get(size) if recipe == protocol.promising and peer == STOCK else None,
        )
        for peer in protocol.peers
        for recipe in protocol.recipes
        for attention in OPERATORS
    ]  # fmt: skip
    operators = [
        Figure(
            f"{size}: step time, {attention} / original, {recipe}", "×",
            ratio(f"{size}: {attention}, {recipe}", f"{size}: original, {recipe}"), at_most=1,
        )
        for recipe in protocol.recipes
        for attention in ("symmetric", "pairwise")
    ]  # fmt: skip
    rates = [
        Figure(
            f"{name}: MFU", "%",
            lambda round, name=name: 100 * flops[name] / round[name] / round[f"{size}: peak"],
            at_least=45 if size == "base" and name.endswith("fast") else None,
        )
        for name in flops
    ]  # fmt: skip
    return [*speeds, *operators, *rates]


def step_table(rounds: Sequence[Seconds], protocol: Protocol) -> str:
    """Seconds of a step and tokens per second of each contestant."""
    rows = []
    for name in sorted(rounds[0]):
        size, _, contestant = name.partition(": ")
        if contestant in protocol.peers or contestant.endswith(protocol.recipes):
            found, batch = spread([round[name] for round in rounds]), protocol.batch_size[size]
            seconds = f"{found.median:.3f} | {found.low:.3f}–{found.high:.3f}"
            speed = batch * protocol.tokens / found.median
            rows.append(f"| {name} | {batch} × {protocol.tokens} | {seconds} | {speed:,.0f} |")
    head = "| contestant | batch | seconds of a step | range over the rounds | tokens/s |"
    return table(head, "|---|---:|---:|---:|---:|", rows)


def progress(line: str) -> None:
    """Say on stderr how far the benchmark is."""
    print(line, file=sys.stderr, flush=True)


def refuse_several_devices(count: int) -> None:
    """SystemExit when the peers would train on more GPUs than this project: Trainer takes all that it sees."""
    if count > 1:
        raise SystemExit(
            f"{count} GPUs are visible: Trainer would train on all of them, this project on one; show them one: "
            "CUDA_VISIBLE_DEVICES=0 make bench-pretrain"
        )


def conditions(protocol: Protocol, rounds: int) -> list[str]:
    """On what, how, and how often it is measured."""
    device = pick_device()
    lines = [machine(), versions(PACKAGES)]
    steps = ", ".join(f"{count} steps of {size}" for size, count in protocol.steps.items())
    if device.type == "cuda":
        peak = f"{measure_peak(device, 'bf16') / 1e12:.0f} TFLOP/s in a dense bf16 product"
        lines.append(f"{torch.cuda.get_device_name()}, {torch.cuda.mem_get_info()[1] / 1e9:.0f} GB, {peak}")
    return [
        *lines,
        f"{resolve_precision('auto', device)}; {torch.get_num_threads()} threads; all in one process",
        f"interleaved rounds: {rounds}; timed in each, of each contestant: {steps}; after {protocol.untimed} not timed",
        f"peers, {' and '.join(protocol.peers)}: no evaluation, saving or logging meanwhile; processes that collate "
        f"beside them: {protocol.workers}",
        f"targets of tokens/s are set beside {STOCK}, in the recipe {protocol.promising}",
    ]


def main() -> None:
    """Write the rows, compare the losses, measure, and write the tables to a file and to the output."""
    options = _options()
    refuse_several_devices(torch.cuda.device_count())
    torch.set_num_threads(options.threads)
    options.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        page = measure(options.sizes, options.rounds, Path(folder).resolve())
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page)
    print(page)


def measure(sizes: Sequence[str], rounds: int, folder: Path) -> str:
    """The page of all figures; rows and checkpoints lie in `folder`."""
    protocol = CUDA if torch.cuda.is_available() else CPU
    progress(f"{' and '.join(sizes)}: {rounds} rounds; writing rows")
    lines, promised = conditions(protocol, rounds), []
    manifest = write_corpus(folder / "rows", ROWS, protocol.tokens, VOCABULARY)
    tasks = {size: task_of(size, protocol, manifest) for size in sizes}
    # First: the compiled peer allows the whole process to multiply fp32 in TF32.
    for task in tasks.values():
        lines.append(compare_losses(task, OPERATORS, protocol.recipes))
        progress(lines[-1])
    found = [Seconds() for _ in range(rounds)]
    for size, task in tasks.items():
        more, flops = measure_size(builders(task, protocol, folder / size), size, rounds, protocol.steps[size])
        found = [{**before, **after} for before, after in zip(found, more, strict=True)]
        promised += figures(size, protocol, flops)
    head = "\n".join(["# Figures of pre-training", "", *(f"* {line}" for line in lines), ""])
    return "\n".join([head, figure_table(promised, found), step_table(found, protocol)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", choices=["small", "base"], default=["small", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("results/bench-pretrain"), help="folder for a while")
    parser.add_argument("--output", type=Path, default=Path("results/bench-pretrain.md"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
