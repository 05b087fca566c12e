"""Figure `robustness`: score over the share of noise, and scores on out-of-domain sets."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from symbert.report import captions, order
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.panels import BAND_ENTRY, PANEL, Entry, draw_names, draw_seeds, name_of, page_of
from symbert.report.robustness import (
    DOMAIN,
    NOISE,
    baseline_scores,
    domain_scores,
    fine_tuned_again,
    level_name,
    noise_levels,
    noise_scores,
)
from symbert.report.style import FAINT, MAJORITY_LINE, Look, looks_of
from symbert.settings import ReportSettings

SET, DOT, LEAST = 0.1, 0.065, 0.27  # inches: room of an out-of-domain set, of each operator in it, and of both at least
DOTS = 0.8  # of the room of a set: where its dots are
NAME = 10  # characters in a line of a set's name
KEY_COLUMNS = 2  # in the width of a column
RANGE_ENTRY = Entry(BAND_ENTRY.line, "range of seeds")
MAJORITY_ENTRY = Entry(MAJORITY_LINE, "majority baseline")

Looks = dict[str, Look]


@dataclass(frozen=True)
class NoisePanel:
    """Curves of one size over the share of one kind of noise, and the majority baseline."""

    title: str
    vertical: str
    shares: list[float]
    curves: pd.DataFrame  # a column per share, a row per model and seed
    baseline: float

    def height(self, operators: int) -> float:
        """Inches."""
        return PANEL

    def draw(self, panel: Axes, looks: Looks) -> None:
        """Mean and range of each operator."""
        panel.set_title(self.title, loc="left")
        panel.set_xlabel("letters struck (%)")
        panel.set_ylabel(self.vertical)
        panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.axhline(self.baseline, zorder=1.5, **MAJORITY_LINE)
        percent = [100 * share for share in self.shares]
        for attention, seeds in self.curves.groupby(level="attention", sort=False):
            draw_seeds(panel, percent, seeds.to_numpy(), looks[attention])


@dataclass(frozen=True)
class DomainPanel:
    """Dots of one size, a row per out-of-domain set, with the majority baseline as a tick."""

    title: str
    scores: pd.DataFrame  # a column per set, a row per model and seed
    baseline: pd.Series

    def height(self, operators: int) -> float:
        """Inches."""
        return max(PANEL / 2, len(self.scores.columns) * max(LEAST, SET + DOT * operators))

    def draw(self, panel: Axes, looks: Looks) -> None:
        """In each row, mean and range of the operators one below the other."""
        self._label(panel)
        rows = np.arange(len(self.scores.columns))
        panel.hlines(rows[1:] - 0.5, 0, 1, transform=panel.get_yaxis_transform(), color=FAINT, linewidth=0.8)
        panel.vlines(self.baseline, rows - 0.45, rows + 0.45, zorder=1.5, **MAJORITY_LINE)
        models = list(self.scores.groupby(level="attention", sort=False))
        for place, (attention, seeds) in enumerate(models):
            heights, look = rows + DOTS * ((place + 0.5) / len(models) - 0.5), looks[attention]
            panel.hlines(heights, seeds.min(), seeds.max(), color=look.color, linewidth=1.2)
            panel.plot(seeds.mean(), heights, **look.line(linestyle="none"))

    def _label(self, panel: Axes) -> None:
        names = ["\n".join(wrap(name.replace("_", " "), NAME)) for name in self.scores]
        panel.set_title(self.title, loc="left")
        panel.set_xlabel("score (%)")
        panel.set_yticks(range(len(names)), names)
        panel.set_ylim(len(names) - 0.5, -0.5)
        panel.tick_params(axis="y", length=0)
        panel.grid(visible=False, axis="y")


@exhibit(
    chapter="Robustness",
    place=1,
    heading="Score over noise, and out of domain",
    reads=("settings", "scores", "robustness"),
)
def robustness_figure(data: Data) -> Figure:
    """Curves of the score over the share of changed letters, and scores on out-of-domain sets, per operator; the table
    of robustness gives the numbers.

    Panels of each size: one per kind of noise, one for other sets.
    """
    clean, robustness, settings = data.trained, data.robustness, data.settings
    looks = looks_of(clean["attention"])
    panels = list(_panels(clean, robustness))
    entries = [Entry(look.line(), name_of(name)) for name, look in looks.items()]
    entries += [RANGE_ENTRY] * (len(clean[["pretrain_seed", "finetune_seed"]].drop_duplicates()) > 1) + [MAJORITY_ENTRY]
    columns = KEY_COLUMNS * min(2, len(panels))
    heights, rows = [panel.height(len(looks)) for panel in panels], math.ceil(len(entries) / columns)
    figure, places, key = page_of(_title(robustness), _note(clean, robustness, settings), heights, rows)
    for panel, place in zip(panels, places, strict=True):
        panel.draw(place, looks)
    draw_names(key, entries, columns)
    return figure


def _title(robustness: pd.DataFrame) -> str:
    tested = {NOISE: "to noise", DOMAIN: "in other domains"}
    return f"Robustness {' and '.join(words for kind, words in tested.items() if kind in set(robustness['kind']))}"


def _note(clean: pd.DataFrame, robustness: pd.DataFrame, settings: ReportSettings) -> str:
    seeds, partial_tasks = clean["finetune_seed"].nunique(), captions.partial_tasks(clean)
    notes = [
        captions.experiment_of(settings),
        f"pre-trained on {captions.corpus_of(settings)}",
        f"fine-tuned on {captions.tasks_of(settings)}{f' (partial: {partial_tasks})' if partial_tasks else ''}",
        f"means over {seeds} fine-tuning seeds" if seeds > 1 else "one fine-tuning seed",
        captions.seeds_of(clean["pretrain_seed"].nunique()),
        fine_tuned_again(robustness),
    ]
    return "; ".join(filter(None, notes))


def _panels(clean: pd.DataFrame, robustness: pd.DataFrame) -> Iterator[NoisePanel | DomainPanel]:
    """The panels of each size in turn."""
    noise, domains = noise_scores(robustness), domain_scores(robustness)
    baselines = [scores(baseline_scores(robustness)) for scores in (noise_scores, domain_scores)]
    vertical = "mean stand-in score (%)" if captions.stand_in_tasks(clean) else "mean score (%)"
    for size in order.sizes(clean["size"]):
        for kind, shares in noise_levels(robustness).items():
            curves = noise.xs(size)[["clean", *(level_name(kind, share) for share in shares)]]
            baseline = baselines[0]["clean"].iloc[0]
            yield NoisePanel(f"BERT-{size}, {kind} noise", vertical, [0, *shares], curves, baseline)
        if len(domains):
            yield DomainPanel(f"BERT-{size}, out-of-domain sets", domains.xs(size), baselines[1].iloc[0])
