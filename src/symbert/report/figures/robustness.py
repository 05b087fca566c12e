"""Figure `robustness`: score over the share of noise, and scores on out-of-domain sets."""

from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from symbert.configuration import ReportSettings
from symbert.report import captions, order, panels, robustness
from symbert.report.collect import Collection
from symbert.report.panels import Entry
from symbert.report.plots import Plot
from symbert.report.style import FAINT, MAJORITY_LINE, Look, looks_of

SET, DOT, LEAST = 0.1, 0.065, 0.27  # inches: room of an out-of-domain set, of each operator in it, and of both at least
DOTS = 0.8  # of the room of a set: where its dots are
NAME = 10  # characters in a line of a set's name
RANGE_ENTRY = Entry(panels.BAND_LINE, "range of seeds")
MAJORITY_ENTRY = Entry(MAJORITY_LINE, "majority baseline")


def robustness_figure(data: Collection) -> Plot | None:
    """Curves of the score over the share of changed letters, and scores on out-of-domain sets, per operator; the table
    of robustness gives the numbers.

    Panels of each size: one per kind of noise, one for other sets.
    """
    if data.robustness is None:
        return None
    clean, measured, settings = data.trained, data.robustness, data.settings
    looks, sizes = looks_of(clean["attention"]), order.sizes(clean["size"])
    levels, domains = robustness.noise_levels(measured), robustness.domain_scores(measured)
    shown = [(size, kind) for size in sizes for kind in [*levels, *[robustness.DOMAIN] * bool(len(domains))]]
    of_domains = max(panels.PANEL / 2, len(domains.columns) * max(LEAST, SET + DOT * len(looks)))
    heights = [of_domains if kind == robustness.DOMAIN else panels.PANEL for _, kind in shown]
    entries = panels.entries_of(looks)
    entries += [RANGE_ENTRY] * (len(clean[["pretrain_seed", "finetune_seed"]].drop_duplicates()) > 1) + [MAJORITY_ENTRY]
    figure, places = panels.page_of(heights, entries)
    noise, baseline = robustness.noise_scores(measured), robustness.baseline_scores(measured)
    for (size, kind), panel in zip(shown, places, strict=True):
        if kind == robustness.DOMAIN:
            _draw_domains(panel, domains.xs(size), robustness.domain_scores(baseline).iloc[0], looks)
            panel.set_title(f"BERT-{size}, out-of-domain sets", loc="left")
        else:
            shares = {"clean": 0, **{robustness.level_name(kind, share): share for share in levels[kind]}}
            _draw_noise(panel, noise.xs(size)[list(shares)], list(shares.values()), looks)
            panel.axhline(robustness.noise_scores(baseline)["clean"].iloc[0], zorder=1.5, **MAJORITY_LINE)
            panel.set_ylabel("mean stand-in score (%)" if captions.stand_in_tasks(clean) else "mean score (%)")
            panel.set_title(f"BERT-{size}, {kind} noise", loc="left")
    return Plot(figure, _caption(clean, measured, settings))


def _caption(clean: pd.DataFrame, measured: pd.DataFrame, settings: ReportSettings) -> str:
    seeds, partial_tasks = clean["finetune_seed"].nunique(), captions.partial_tasks(clean)
    wording = captions.wording_of(settings)
    means = f"means over {seeds} fine-tuning seeds" if seeds > 1 else "one fine-tuning seed"
    notes = [
        wording.experiment,
        f"pre-trained on {wording.corpus}",
        f"partial tasks: {partial_tasks}" if partial_tasks else "",
        robustness.fine_tuned_again(measured),
    ]
    shown = f"On {wording.tasks}; {means}; {captions.seeds_of(clean['pretrain_seed'].nunique())}."
    return f"{shown}\n\n{'; '.join(filter(None, notes))}."


def _draw_noise(panel: Axes, scores: pd.DataFrame, shares: list[float], looks: dict[str, Look]) -> None:
    """Mean and range of each operator; `scores` has a column per share, and a row per model and seed."""
    panel.set_xlabel("letters changed (%)")
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for attention, seeds in scores.groupby(level="attention", sort=False):
        percent, values = [100 * share for share in shares], seeds.to_numpy()
        panels.draw_band(panel, percent, values.mean(axis=0), values.min(axis=0), values.max(axis=0), looks[attention])


def _draw_domains(panel: Axes, scores: pd.DataFrame, baseline: pd.Series, looks: dict[str, Look]) -> None:
    """In the row of each set, mean and range of the operators one below the other, and the baseline as a tick.

    `scores` has a column per set, and a row per model and seed.
    """
    names = ["\n".join(wrap(name.replace("_", " "), NAME)) for name in scores]
    panel.set_xlabel("score (%)")
    panel.set_yticks(range(len(names)), names)
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.tick_params(axis="y", length=0)
    panel.grid(visible=False, axis="y")
    rows = np.arange(len(names))
    panel.hlines(rows[1:] - 0.5, 0, 1, transform=panel.get_yaxis_transform(), color=FAINT, linewidth=0.8)
    panel.vlines(baseline, rows - 0.45, rows + 0.45, zorder=1.5, **MAJORITY_LINE)
    models = list(scores.groupby(level="attention", sort=False))
    for place, (attention, seeds) in enumerate(models):
        heights, look = rows + DOTS * ((place + 0.5) / len(models) - 0.5), looks[attention]
        panel.hlines(heights, seeds.min(), seeds.max(), color=look.color, linewidth=1.2)
        panel.plot(seeds.mean(), heights, **look.line(linestyle="none"))
