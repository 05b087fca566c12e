"""Many small runs as one model beside the same runs one after the other: `python -m benchmarks.together`, on a GPU.

Both take the steps of the same runs, seeds at two rates, in this process, a few steps at a time in turn: what a process
takes to start is left out, which each run alone has.
"""

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from msgspec.structs import replace

from benchmarks import harness
from benchmarks.harness import Figure, Round, ratio
from benchmarks.pretrain import now, run_of, settings_of, write_corpus
from symbert.pretrain.compute import pick_device, resolve_precision
from symbert.pretrain.run import Pretraining
from symbert.pretrain.together import Stack
from symbert.pretrain.train import Trainer

PACKAGES = ("torch", "numpy")
ROWS = 4096
RATES = (1e-3, 5e-4)
UNTIMED = 3  # steps of each before all others
COMPARED, TOLERANCE = 3, {"fp32": 1e-4, "bf16": 1e-2}  # steps; of losses, relative
ALONE, TOGETHER = "one after the other", "together"


class Setting(NamedTuple):
    """Runs of a size: rows of so many tokens and pieces, so many of them in a batch, and how many times as many runs a
    minute are promised."""

    size: str
    tokens: int
    vocabulary_size: int
    batch_size: int
    promised: float


SETTINGS = (Setting("tiny", 48, 1000, 32, 10), Setting("small", 128, 8192, 32, 4))  # as in docs/findings


def main() -> None:
    """Write the rows, measure, compare the losses, and write the page."""
    parser = harness.options_of("bench-together", __doc__, rounds=3, work=False)
    parser.add_argument("--sizes", nargs="+", choices=["tiny", "small"], default=["tiny", "small"])
    parser.add_argument("--runs", nargs="+", type=int, default=[16, 48], help="how many at once, each tried")
    parser.add_argument("--steps", type=int, default=10, help="timed, of each contestant in each round")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    device = pick_device()
    on_gpu = device.type == "cuda"
    conditions = [
        harness.machine(),
        harness.versions(*PACKAGES),
        f"{torch.cuda.get_device_name() if on_gpu else 'CPU'}; {resolve_precision('auto', device)}; {options.threads} "
        "threads; all in one process; `original`, no dropout, half of the runs at each of two rates",
        f"interleaved rounds: {options.rounds}; timed in each: {options.steps} steps",
    ]
    figures: list[Figure] = []
    rounds: list[Round] = [{} for _ in range(options.rounds)]
    with TemporaryDirectory() as place:
        for setting in (each for each in SETTINGS if each.size in options.sizes):
            folder = Path(place) / setting.size
            manifest = write_corpus(folder, ROWS, setting.tokens, setting.vocabulary_size)
            for count in options.runs:
                figures.append(measure(setting, manifest, count, rounds, options.steps, conditions, on_gpu))
                # What was measured is there where the time is over before the rest.
                tables = [harness.figure_table(figures, rounds), table_of(rounds)]
                harness.write_page(options.output, "runs together", conditions, tables)


def measure(
    setting: Setting,
    manifest: Path,
    count: int,
    rounds: Sequence[Round],
    steps: int,
    conditions: list[str],
    on_gpu: bool,
) -> Figure:
    """Add the seconds that a step of all runs takes either way to the rounds, and what their losses differ in to the
    conditions; SystemExit where they differ by more than rounding."""
    runs = runs_of(setting, manifest, count)
    alone, stack = [Trainer(run) for run in runs], Stack([Trainer(run) for run in runs], [0] * count)
    worst = 0.0
    for step in range(COMPARED):
        expected, results = [trainer.step(step).loss for trainer in alone], [result.loss for result in stack.step()]
        worst = max(worst, *(abs(one - other) / one for one, other in zip(expected, results, strict=True)))
    if not worst <= TOLERANCE[stack.lead.precision]:
        raise SystemExit(f"{setting.size}: the losses of {count} runs differ by {worst:.1e} together")
    conditions.append(
        f"{setting.size}, {count} runs: in {COMPARED} steps losses differ by at most {worst:.0e}, relative"
    )
    completed = [COMPARED]

    def step_alone() -> None:
        for trainer in alone:
            trainer.step(completed[0])
        completed[0] += 1

    names = {
        f"{setting.size}, {count} runs: {ALONE}": step_alone,
        f"{setting.size}, {count} runs: {TOGETHER}": stack.step,
    }
    for step in names.values():
        seconds_of(step, UNTIMED)
    for number, measured in enumerate(rounds):
        for name in harness.in_turn(names, number):
            measured[name] = seconds_of(names[name], steps) / count
            harness.progress(f"round {number + 1}: {name}: {1000 * measured[name]:.3f} ms a step of a run")
    slower, faster = names
    promised = setting.promised if on_gpu else None
    return Figure(f"{setting.size}: {count} runs, {TOGETHER} / {ALONE}", "×", ratio(slower, faster), at_least=promised)


def runs_of(setting: Setting, manifest: Path, count: int) -> list[Pretraining]:
    """Runs that differ in seed and rate."""
    settings = settings_of(batch_size=setting.batch_size, dropout=0.0, warmup_steps=100)
    one = run_of(setting.size, "original", settings, manifest)
    rates = [rate for rate in RATES for _ in range((count + 1) // len(RATES))][:count]
    return [
        replace(one, pretrain_seed=number, training=replace(settings, learning_rate=rate))
        for number, rate in enumerate(rates)
    ]


def seconds_of(step: Callable[[], object], count: int) -> float:
    """Seconds of a step, over so many."""
    begun = now()
    for _ in range(count):
        step()
    return (now() - begun) / count


def table_of(rounds: Sequence[Round]) -> str:
    """Milliseconds of a step of a run, and runs of 1,000 steps in a minute."""
    rows = []
    for name in rounds[0]:
        seconds = [measured[name] for measured in rounds]
        median, span = statistics.median(seconds), f"{1000 * min(seconds):.3f}–{1000 * max(seconds):.3f}"
        rows.append(f"| {name} | {1000 * median:.3f} | {span} | {60 / (1000 * median):.2f} |")
    head = "| contestant | ms of a step of a run | range over the rounds | runs of 1,000 steps a minute |"
    return harness.table(head, "|---|---:|---:|---:|", rows)


if __name__ == "__main__":
    main()
