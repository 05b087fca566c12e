"""The predictions of direction.md: ratios on texts with a direction, beside those of the same pairs on copies."""

from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from studies.contrasts import effect, in_words
from studies.outcomes import COPIES, cell, interval, markdown
from symbert.report.statistics import welch_interval

TIE, START = ("symmetric", "original"), ("original-wide", "original")
TIE_AT_THE_START, TIE_AFTER_IT = ("original-symmetric", "original"), ("symmetric", "original-symmetric")
SEEDS = {"direction": range(11, 19), "start-and-symmetry": range(11, 19), "plateau": range(1, 11)}
CONTROLS = ("repeated", "swapped", "cycled", "chained")
TEXTS = [(8, "copying"), (8, "directed"), (2, "copying"), *((2, text) for text in CONTROLS)]  # of the figure
COPIED = {8: "start-and-symmetry", 2: "plateau"}  # by layers the study of the runs on copies
Row = dict[str, Any]


def pair_of(runs: pd.DataFrame, pair: tuple[str, str], layers: int, text: str = "directed-48") -> list[pd.DataFrame]:
    """The runs of a pair on a text of the study, or on copies, of the seeds that both have."""
    study = COPIED[layers] if text == "copying-48" else "direction"
    place = COPIES[layers] | {"text": text, "study": study}
    cells = [cell(runs, {**place, "attention": attention}, [*SEEDS[study]]) for attention in pair]
    common = cells[0].index.intersection(cells[1].index)
    return [runs.loc[common] for runs in cells]


def ratio_of(runs: pd.DataFrame, pair: tuple[str, str], layers: int, text: str = "directed-48") -> Row | None:
    """The ratio of a pair on a text; None with fewer than two seeds."""
    cells = pair_of(runs, pair, layers, text)
    return effect(*cells) if len(cells[0]) > 1 else None


def by_other_text(runs: pd.DataFrame, pair: tuple[str, str], layers: int, text: str, other: str) -> Row | None:
    """The ratio of a pair on a text by that on another: paired by their common seeds, or Welch's where there are none;
    None with fewer than two seeds."""
    cells = [pair_of(runs, pair, layers, name) for name in (text, other)]
    if min(len(first) for first, _ in cells) < 2:
        return None
    if len(common := cells[0][0].index.intersection(cells[1][0].index)):
        return effect(*(runs.loc[common] for pair in cells for runs in pair))
    ours, theirs = (np.log(first["step"] / second["step"]) for first, second in cells)
    bounds = np.exp([ours.mean() - theirs.mean(), *welch_interval(ours, theirs)])
    return dict(zip(("ratio", "low", "high"), bounds.tolist(), strict=True))


def judged(row: Row, least: float, most: float) -> str:
    """Whether a ratio is between two bounds: as its 95 % interval lies within, outside, or across one."""
    if least < row["low"] and row["high"] < most:
        return "held"
    return "refuted" if row["high"] <= least or row["low"] >= most else "undecided"


def ordered(first: Row, second: Row) -> str:
    """Whether two ratios are on one side of 1, so that the cell that both have is between the other two."""
    sides = {(row["low"] > 1) - (row["high"] < 1) for row in (first, second)}
    return "undecided" if 0 in sides else "held" if len(sides) == 1 else "refuted"


def predictions(runs: pd.DataFrame) -> Iterator[list[str]]:
    """A row per prediction and depth whose runs are there: what is predicted, the depth, ratios, and the outcome."""
    for layers in COPIED:
        ties = {text: ratio_of(runs, TIE, layers, f"{text}-48") for text in (*CONTROLS, "directed", "addressed")}
        start = by_other_text(runs, START, layers, "directed-48", "copying-48")
        cycled = by_other_text(runs, TIE, layers, "cycled-48", "swapped-48")
        swapped = by_other_text(runs, TIE, layers, "swapped-48", "repeated-48")
        chained = by_other_text(runs, TIE, layers, "chained-48", "swapped-48")
        bounded = [
            ("3: `original-wide` / `original` by that on copies is within 25 %", start, 0.8, 1.25),
            ("4: on `addressed` the tie is below 0.9", ties["addressed"], 0, 0.9),
            ("5: on `swapped` the tie is below 0.9", ties["swapped"], 0, 0.9),
            ("6: on `cycled` the tie is above 0.9", ties["cycled"], 0.9, np.inf),
            ("7: the tie on `cycled` by that on `swapped` is above 1", cycled, 1, np.inf),
            ("8: on `repeated` the tie is below 0.9", ties["repeated"], 0, 0.9),
            ("9: the tie on `swapped` by that on `repeated` is above 1", swapped, 1, np.inf),
            ("10: on `chained` the tie is below 0.9", ties["chained"], 0, 0.9),
            ("11: the tie on `chained` by that on `swapped` is below 1", chained, 0, 1),
        ]
        if layers == 8:
            directed = by_other_text(runs, TIE, layers, "directed-48", "copying-48")
            bounded += [
                ("1: on `directed` the tie is above 0.9", ties["directed"], 0.9, np.inf),
                ("1: the tie on `directed` by that on copies is above 1", directed, 1, np.inf),
                ("theory: on `directed` the tie is above 0.75", ties["directed"], 0.75, np.inf),
            ]
        for words, row, least, most in bounded:
            if row:
                yield [words, str(layers), in_words(row), judged(row, least, most)]
        sides = ratio_of(runs, TIE_AT_THE_START, layers), ratio_of(runs, TIE_AFTER_IT, layers)
        if all(sides):
            words = "2: `original-symmetric` is between `original` and `symmetric`"
            yield [words, str(layers), " and ".join(map(in_words, sides)), ordered(*sides)]


def facts_of(runs: pd.DataFrame) -> dict[str, str]:
    """The table of predictions."""
    rows = sorted(predictions(runs), key=lambda row: (row[0].index(":"), row[0]))
    return {"direction-predictions": markdown(["prediction", "layers", "ratio", "outcome"], rows)}


def draw(runs: pd.DataFrame) -> plt.Figure:
    """Ratios with a dot per seed: of the tie by text, and of three pairs on the directed text beside copies."""
    figure, (by_text, by_pair) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    texts = [(f"{text}, {layers} layers", TIE, layers, f"{text}-48") for layers, text in TEXTS]
    pairs = [
        (f"{' / '.join(pair)}, {text}", pair, 8, f"{text}-48")
        for pair in (TIE, TIE_AT_THE_START, START)
        for text in ("copying", "directed")
    ]
    for panel, rows, title in ((by_text, texts, " / ".join(TIE)), (by_pair, pairs, "8 layers")):
        for height, (_, pair, layers, text) in enumerate(reversed(rows)):
            first, second = (runs["step"] for runs in pair_of(runs, pair, layers, text))
            ratios, color = np.log(first / second).to_numpy(), "#888888" if text == "copying-48" else "#C00000"
            if len(ratios) > 1:
                panel.plot(np.exp(ratios), [height] * len(ratios), "o", color=color, ms=4, alpha=0.5)
                panel.plot(np.exp(interval(ratios)), [height] * 2, color=color, lw=2)
                panel.plot(np.exp(ratios.mean()), height, "D", color=color)
        panel.axvline(1, color="grey", lw=0.8)
        panel.set(xscale="log", xlabel="ratio of steps to the level of the text", title=title, xlim=(0.28, 2.2))
        panel.set_xticks([0.3, 0.5, 0.7, 1, 1.4, 2], ["0.3", "0.5", "0.7", "1", "1.4", "2"])
        panel.minorticks_off()
        panel.set_yticks(range(len(rows)), [label for label, *_ in reversed(rows)])
    return figure
