"""The predictions of direction.md: ratios on texts with a direction, beside those of the same pairs on copies."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from studies.contrasts import effect, in_words
from studies.outcomes import COPIES, cell, interval, markdown

TIE, START = ("symmetric", "original"), ("original-wide", "original")
TIE_AT_THE_START, TIE_AFTER_IT = ("original-symmetric", "original"), ("symmetric", "original-symmetric")
SEEDS = [*range(11, 19)]
NEAR = 0.8, 1.25  # within 25 %
ELSEWHERE = ("step +0.2", "step -0.2", "rule")  # levels and the rule beside the level of a text
STRICTER = ("16", "17")  # predictions that are shown only where all of these agree
KINDS = {  # of partners on a text, in words of the figure
    "copying": "itself, copied again",
    "repeated": "itself",
    "chained": "another, copied again",
    "swapped": "another",
    "neighbours": "another, like frequency",
    "cycled": "another",
    "directed": "another, four to one",
    "addressed": "by content",
}
COPIED = {2: "direction", 8: "start-and-symmetry"}  # by layers the study of the runs on copies
Row = dict[str, Any]


def pair_of(runs: pd.DataFrame, pair: tuple[str, str], layers: int, text: str) -> list[pd.DataFrame]:
    """The runs of a pair on a text, of the seeds that both have."""
    study = COPIED[layers] if text == "copying" else "direction"
    place = COPIES[layers] | {"text": f"{text}-48", "study": study}
    cells = [cell(runs, {**place, "attention": attention}, SEEDS) for attention in pair]
    common = cells[0].index.intersection(cells[1].index)
    return [runs.loc[common] for runs in cells]


def ratio_of(runs: pd.DataFrame, pair: tuple[str, str], layers: int, *texts: str) -> Row | None:
    """The ratio of a pair on a text; of two texts the ratio of both ratios, of four the ratio of two such. Over the
    seeds that all have; None with fewer than two."""
    cells = [runs_of for text in texts for runs_of in pair_of(runs, pair, layers, text)]
    common = reduce(pd.Index.intersection, (runs_of.index for runs_of in cells))
    return effect(*(runs_of.loc[common] for runs_of in cells)) if len(common) > 1 else None


def judged(row: Row, least: float, most: float) -> str:
    """Whether a ratio is between two bounds: as its 95 % interval lies within, outside, or across one."""
    if least < row["low"] and row["high"] < most:
        return "held"
    return "refuted" if row["high"] <= least or row["low"] >= most else "undecided"


def ordered(first: Row, second: Row) -> str:
    """Whether two ratios are on one side of 1, so that the cell that both have is between the other two."""
    sides = {(row["low"] > 1) - (row["high"] < 1) for row in (first, second)}
    return "undecided" if 0 in sides else "held" if len(sides) == 1 else "refuted"


def elsewhere(row: Row) -> str:
    """A ratio at levels 0.2 nats above and below, and by the report's rule."""
    return " / ".join(f"{row[f'by {name}']:.2f}" for name in ELSEWHERE)


def predictions(runs: pd.DataFrame) -> Iterator[list[str]]:
    """A row per prediction and depth whose runs are there: the prediction, ratios, and the outcome."""
    for layers in COPIED:
        depth = ", eight layers" if layers == 8 else ""
        bounded = [
            ("3: start, `directed` by `copying`, within 25 %", START, ("directed", "copying"), *NEAR),
            ("4: `addressed` below 0.9", TIE, ("addressed",), 0, 0.9),
            ("5: `swapped` below 0.9", TIE, ("swapped",), 0, 0.9),
            ("6: `cycled` above 0.9", TIE, ("cycled",), 0.9, np.inf),
            ("7: `cycled` by `swapped` above 1", TIE, ("cycled", "swapped"), 1, np.inf),
            ("8: `repeated` below 0.9", TIE, ("repeated",), 0, 0.9),
            ("9: `swapped` by `repeated` above 1", TIE, ("swapped", "repeated"), 1, np.inf),
            ("10: `chained` below 0.9", TIE, ("chained",), 0, 0.9),
            ("11: `chained` by `swapped` below 1", TIE, ("chained", "swapped"), 0, 1),
            ("16: `neighbours` by `swapped` below 1", TIE, ("neighbours", "swapped"), 0, 1),
            ("17: `neighbours` by `repeated` above 1", TIE, ("neighbours", "repeated"), 1, np.inf),
        ]
        if layers == 8:
            bounded += [
                ("1: `directed` above 0.9", TIE, ("directed",), 0.9, np.inf),
                ("1: `directed` by `copying` above 1", TIE, ("directed", "copying"), 1, np.inf),
            ]
        else:
            bounded += [
                ("12: `copying` below 0.9", TIE, ("copying",), 0, 0.9),
                ("13: `chained` by `copying` above 1", TIE, ("chained", "copying"), 1, np.inf),
                ("14: `repeated` by `copying` above 1", TIE, ("repeated", "copying"), 1, np.inf),
                ("15: 9 by 13 within 25 %", TIE, ("swapped", "repeated", "chained", "copying"), *NEAR),
            ]
        for words, pair, texts, least, most in bounded:
            if row := ratio_of(runs, pair, layers, *texts):
                outcome = judged(row, least, most)
                if words.startswith(STRICTER):
                    is_shown = all(least < row[f"by {name}"] < most for name in ELSEWHERE)
                    outcome += ", shown" if is_shown else ", not shown"
                yield [words + depth, in_words(row), elsewhere(row), outcome]
        sides = [ratio_of(runs, pair, layers, "directed") for pair in (TIE_AT_THE_START, TIE_AFTER_IT)]
        if all(sides):
            told = (" and ".join(map(tell, sides)) for tell in (in_words, elsewhere))
            yield [f"2: `original-symmetric` between both{depth}", *told, ordered(*sides)]


def numbers_of(runs: pd.DataFrame) -> dict[str, str]:
    """The tie by two factors, with two layers, and the table of predictions."""
    factors = []
    for symbols, *texts in (
        ("itself", "copying", "repeated"),
        ("another symbol", "chained", "swapped"),
        ("one of like frequency", None, "neighbours"),
    ):
        ties = [(text, ratio_of(runs, TIE, 2, text) if text else None) for text in texts]
        factors.append([symbols, *(f"`{text}`: {in_words(row)}" if row else "–" for text, row in ties)])
    rows = sorted(predictions(runs), key=lambda row: (row[0].index(":"), row[0]))
    return {
        "direction-factors": markdown(
            ["tie, two layers: a symbol's image is", "copied again", "not copied again"], factors
        ),
        "direction-predictions": markdown(
            ["the tie, two layers", "ratio", "0.2 higher / lower / by rule", "outcome"], rows
        ),
    }


def draw(runs: pd.DataFrame) -> plt.Figure:
    """Ratios with a dot per seed: of the tie by text, with two and eight layers, and there of two other pairs."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    texts = [(f"{text} ({kind})", TIE, text) for text, kind in KINDS.items()]
    others = [
        (f"{' / '.join(pair)}, {text}", pair, text)
        for pair in (TIE_AT_THE_START, START)
        for text in ("copying", "directed")
    ]
    for panel, layers, rows in zip(panels, COPIED, (texts, [*texts, *others]), strict=True):
        shown = [row for row in rows if ratio_of(runs, row[1], layers, row[2])]
        for height, (_, pair, text) in enumerate(reversed(shown)):
            first, second = (runs["step"] for runs in pair_of(runs, pair, layers, text))
            ratios, color = np.log(first / second).to_numpy(), "#888888" if text == "copying" else "#C00000"
            panel.plot(np.exp(ratios), [height] * len(ratios), "o", color=color, ms=4, alpha=0.5)
            panel.plot(np.exp(interval(ratios)), [height] * 2, color=color, lw=2)
            panel.plot(np.exp(ratios.mean()), height, "D", color=color)
        panel.axvline(1, color="grey", lw=0.8)
        panel.set(xscale="log", xlabel=f"{' / '.join(TIE)}: ratio of steps", title=f"{layers} layers", xlim=(0.28, 2.7))
        panel.set_xticks([0.3, 0.5, 0.7, 1, 1.4, 2], ["0.3", "0.5", "0.7", "1", "1.4", "2"])
        panel.minorticks_off()
        panel.set_yticks(range(len(shown)), [label for label, *_ in reversed(shown)])
    return figure
