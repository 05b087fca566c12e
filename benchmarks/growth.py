"""How time and memory grow with the input: fit, picture and page of `make bench-scaling`, from its record.

The fit is seconds = start + work · size ^ exponent, with size 1 for 1 ×, by least squares of relative errors.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import least_squares

from benchmarks.tables import table
from symbert.files import write_text
from symbert.report.style import house_style, save_figure

UNIT = 16  # sixteenths, of which the smallest size is one
STEEPEST, LARGEST = 1.1, 1.1  # what exponent and ratio of memory are called linear and flat
GROWING = 2  # times the smallest input's seconds that the largest takes: in less there is no exponent
RESAMPLES = 200
TITLE = "# How time and memory grow with the input"


@dataclass(frozen=True)
class Growth:
    """What one stage takes: parameters of the fit, a 95 % interval of its exponent, and memory at 1 × and 16 ×."""

    stage: str
    items: str
    unit: int  # items of 1 ×
    start: float  # seconds
    work: float  # seconds at 1 × beside the start
    exponent: float | None  # None: the time hardly depends on the size
    interval: tuple[float, float] | None
    seconds: float  # measured at 16 ×, median
    memory: tuple[float, float]  # peak MB at 1 × and 16 ×, medians

    @property
    def ratio(self) -> float:
        """Memory of 16 × in that of 1 ×."""
        return self.memory[1] / self.memory[0]

    @property
    def bytes_per_item(self) -> float:
        """What memory grows by for one more."""
        return 1e6 * (self.memory[1] - self.memory[0]) / (15 * self.unit)


def fit(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float, float]:
    """Start, work and exponent for seconds [rounds, sizes] of sizes in units of 1 ×."""
    medians = np.median(seconds, axis=0)
    guess = medians[0], (medians[-1] - medians[0]) / sizes[-1], 1.0
    found = least_squares(lambda law: ((law[0] + law[1] * sizes ** law[2]) / seconds - 1).ravel(), guess, method="lm")
    return tuple(found.x.tolist())


def interval_of_exponent(sizes: np.ndarray, seconds: np.ndarray) -> tuple[float, float]:
    """Where 95 % of the exponents lie that rounds drawn with replacement give: a bootstrap over rounds."""
    draws = np.random.default_rng(1).integers(0, len(seconds), (RESAMPLES, len(seconds)))
    exponents = [fit(sizes, seconds[draw])[2] for draw in draws]
    low, high = np.percentile(exponents, [2.5, 97.5])
    return float(low), float(high)


def growth_of(stage: str, measured: pd.DataFrame) -> Growth:
    """The growth of a stage from its rows of the record."""
    by_size = {name: measured.pivot(index="round", columns="count", values=name) for name in ("cpu_seconds", "peak_mb")}
    counts, seconds = by_size["cpu_seconds"].columns.to_numpy(), by_size["cpu_seconds"].to_numpy()
    unit, memory = UNIT * counts[0], by_size["peak_mb"].median()
    ends = np.median(seconds[:, 0]), np.median(seconds[:, -1])
    start, work, exponent, interval = ends[0], 0.0, None, None
    if ends[1] > GROWING * ends[0]:
        start, work, exponent = fit(counts / unit, seconds)
        interval = interval_of_exponent(counts / unit, seconds)
    peaks = float(memory.loc[unit]), float(memory.iloc[-1])
    items = measured["items"].iloc[0]
    return Growth(stage, items, int(unit), float(start), work, exponent, interval, float(ends[1]), peaks)


def read_growths(record: Path) -> list[Growth]:
    """The growth of each stage, in the order of the record."""
    measured = pd.read_csv(record, comment="#")
    return [growth_of(str(stage), rows) for stage, rows in measured.groupby("stage", sort=False)]


def conditions(record: Path) -> list[str]:
    """On what it was measured: the comments at the head of the record."""
    lines = record.read_text(encoding="utf-8").splitlines()
    return [line.removeprefix("# ") for line in lines if line.startswith("# ")]


def write_page(folder: Path, growing: dict[str, str]) -> str:
    """Write scaling.png and README.md beside the folder's scaling.csv; returns the page. `growing` says of stages why
    their memory grows."""
    growths = read_growths(folder / "scaling.csv")
    with house_style():
        save_figure(picture(growths), [folder / "scaling.png"])
    page = page_of(growths, conditions(folder / "scaling.csv"), growing)
    write_text(folder / "README.md", page)
    return page


def page_of(growths: list[Growth], lines: list[str], growing: dict[str, str]) -> str:
    """What is promised and kept, each stage, and why the memory of some grows."""
    head = [
        TITLE,
        "",
        "Each stage on inputs of 1/16, 1, 4 and 16 times a size, by `make bench-scaling` "
        "([how](../../benchmarks.md#make-bench-scaling)); all measurements: [scaling.csv](scaling.csv).",
        "",
        *(f"* {line}" for line in lines),
        "",
        figure_table(growths),
        "![Exponents of time and peak memory of each stage](scaling.png)",
        "",
        stage_table(growths),
        "Seconds are CPU seconds, user and system: start + work · size ^ exponent, fitted to all rounds; the interval "
        "has 95 % of what a bootstrap over rounds gives. No exponent: 16 × takes less than twice the time of 1/16 ×, "
        "which goes into starting. Memory is the peak of resident pages, medians; bytes an item: its growth from 1 × "
        "to 16 ×, for each item more.",
    ]
    reasons = [
        f"* {each.stage}: {growing[each.stage]}." for each in growths if not is_flat(each) and growing.get(each.stage)
    ]
    return "\n".join([*head, *(["", "Why memory grows:", "", *reasons] if reasons else []), ""])


def is_flat(growth: Growth) -> bool:
    """Whether 16 times the input takes about as much memory."""
    return growth.ratio <= LARGEST


def is_linear(growth: Growth) -> bool:
    """Whether time grows with the input, or slower."""
    return growth.exponent is None or growth.exponent <= STEEPEST


def figure_table(growths: list[Growth]) -> str:
    """What is promised, in the rows that `benchmarks.summary` reads: the worst stage that keeps it, and all others."""
    timed = sorted((each for each in growths if each.exponent is not None), key=lambda each: -each.exponent)
    by_memory = sorted(growths, key=lambda each: -each.ratio)
    rows = [_time_row(each.stage, each, "**missed**") for each in timed if not is_linear(each)]
    if linear := [each for each in timed if is_linear(each)]:
        rows.append(_time_row(f"{linear[0].stage}, the steepest of {len(linear)}", linear[0], "met"))
    rows += [_memory_row(each.stage, each, "**missed**") for each in by_memory if not is_flat(each)]
    if flat := [each for each in by_memory if is_flat(each)]:
        rows.append(_memory_row(f"{flat[0].stage}, the largest of {len(flat)}", flat[0], "met"))
    return table("| figure | measured | interval | target | |", "|---|---:|---:|---:|---|", rows)


def _time_row(name: str, growth: Growth, verdict: str) -> str:
    low, high = growth.interval
    return f"| exponent of time: {name} | {growth.exponent:.2f} | {low:.2f}–{high:.2f} | ≤ {STEEPEST} | {verdict} |"


def _memory_row(name: str, growth: Growth, verdict: str) -> str:
    return f"| memory, 16 × / 1 ×: {name} | {growth.ratio:.2f} × | – | ≤ {LARGEST} × | {verdict} |"


def stage_table(growths: list[Growth]) -> str:
    """A row per stage: what 1 × is, the fit, and memory."""
    rows = []
    for each in growths:
        exponent, interval = "–", "–"
        if each.exponent is not None:
            exponent, interval = f"{each.exponent:.2f}", "{:.2f}–{:.2f}".format(*each.interval)
        work = f"{each.start:.2f} | {each.work:.2f} | {each.seconds:.2f} | {exponent} | {interval}"
        memory = f"{each.memory[0]:.0f} | {each.memory[1]:.0f} | {each.ratio:.2f} | {max(0, each.bytes_per_item):,.0f}"
        rows.append(f"| {each.stage} | {each.unit:,} {each.items} | {work} | {memory} |")
    seconds, memory = "start, s | work at 1 ×, s | 16 ×, s", "MB at 1 × | at 16 × | ratio | bytes an item"
    head = f"| stage | 1 × | {seconds} | exponent | interval | {memory} |"
    return table(head, "|---|---|" + "---:|" * 9, rows)


def picture(growths: list[Growth]) -> Figure:
    """Exponents with their intervals, and peak memory at 1 × and 16 ×, a line for each stage."""
    figure = Figure(figsize=(7, 0.6 + 0.24 * len(growths)), layout="constrained")
    time, memory = figure.subplots(1, 2, sharey=True)
    places = np.arange(len(growths))
    for place, each in zip(places, growths, strict=True):
        if each.exponent is not None:
            time.plot(each.interval, [place, place], color="C0")
            time.plot(each.exponent, place, "o", color="C0")
        memory.plot(each.memory, [place, place], color="C1")
        memory.plot(each.memory[0], place, "o", color="C1", fillstyle="none", label="1 ×" if not place else None)
        memory.plot(each.memory[1], place, "o", color="C1", label="16 ×" if not place else None)
    time.axvline(1, color="0.6", linewidth=0.8)
    time.set(xlabel="exponent of CPU time, 95 % interval", yticks=places, yticklabels=[each.stage for each in growths])
    time.invert_yaxis()
    memory.set(xlabel="peak memory, MB", xlim=(0, None))
    memory.legend()
    return figure
