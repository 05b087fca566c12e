"""Figures of pre-training: Figure 2 with the exits from the plateau, points of a sweep, and hosts but the encoder."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from symbert.configuration import ReportSettings
from symbert.hosts import HOSTS
from symbert.report import captions, published, style
from symbert.report.collect import Collection, losses_of
from symbert.report.statistics import FEWEST, exits_of
from symbert.report.style import PANEL, ROW, Entry, Look, Plot
from symbert.report.tables.pretraining import place_of

MARKERS = 9  # along a curve
SURVIVAL = 0.9  # inches: a panel of shares of runs on the plateau
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}
PRINTED_ENTRY = Entry({"color": style.GREY, "marker": "o", **HOLLOW}, "hollow: the authors' runs")
RULE = (
    "The exit is the first evaluation after the last one on the plateau, by the rule of the table of milestones, which "
    "works on the logarithm of the step as the axis does."
)
OF_SEVERAL = "Large markers are medians over seeds, ticks single seeds; a + is a run that is on the plateau at its end."


def loss_figures(data: Collection) -> dict[str, Plot]:
    """Figure 2 of each size: validation loss, and beneath it where each operator leaves the initial plateau."""
    return {size: loss_figure(runs, size, data.settings) for size, runs in data.runs.groupby("size", sort=False)}


def loss_figure(runs: pd.DataFrame, size: str, settings: ReportSettings) -> Plot:
    """The figure of the runs of one size.

    The authors' losses are hollow markers where they may stand beside these. From three pre-training seeds there is a
    panel with the share of runs that are still on the plateau.
    """
    losses = {attention: seeds for (_, attention), seeds in losses_of(runs).items()}
    looks, counts, wording = style.looks_of(losses), [*map(len, losses.values())], captions.wording_of(settings)
    is_comparable = wording.other_training is None
    printed = {name: published.LOSSES.get((size, name)) for name in losses if is_comparable}
    printed = {name: values for name, values in printed.items() if values}
    entries = [
        Entry(looks[name].line(), f"{style.name_of(name)}: {exits_of(seeds).in_words}; {seeds.iloc[:, -1].mean():.3f}")
        for name, seeds in losses.items()
    ]
    entries += [*style.band_entries(counts), *[PRINTED_ENTRY] * bool(printed)]
    many = max(counts)
    heights = [PANEL, ROW * (len(losses) + 0.5), *[SURVIVAL] * (many >= FEWEST)]
    title = "exit; final loss" if many == 1 else "median exit; final loss"
    figure, (curves, exits, *shares) = style.figure_of(heights, entries, title)
    style.prepare(curves, "validation loss (nats per token)")
    for position, (name, seeds) in enumerate(losses.items()):
        marks = [] if name in printed else _marks(seeds.columns, position / len(losses))
        style.draw_seeds(curves, seeds.columns, seeds.to_numpy(), looks[name], markevery=marks)
    for name, values in printed.items():
        line = looks[name].line(markeredgecolor=looks[name].color) | HOLLOW
        curves.plot(published.LOSS_STEPS, values, zorder=3, **line)
    _draw_exits(exits, curves, losses, looks)
    for panel in shares:
        for name, seeds in losses.items():
            style.draw_survival(panel, exits_of(seeds), seeds.columns[0], seeds.columns[-1], looks[name])
        panel.set_ylabel("on the plateau")
    steps = [step for seeds in losses.values() for step in seeds.columns]
    for panel in (curves, exits, *shares):
        style.set_log_steps(panel, min(steps), max(steps))
        panel.set_xlabel("")
        panel.tick_params(labelbottom=False)
    panel.set_xlabel("pre-training step")
    panel.tick_params(labelbottom=True)
    shown = f"BERT-{size}, on {wording.corpus}; {captions.seeds_of(many)}."
    return Plot(figure, f"{shown}\n\n{wording.experiment}. {RULE}{f' {OF_SEVERAL}' if many > 1 else ''}")


def _marks(steps: Sequence[int], offset: float) -> list[int]:
    """Evaluations that get a marker: evenly along the axis, shifted from curve to curve so that none hides another."""
    position = np.log(np.array(steps) / steps[0])
    places = (np.arange(MARKERS) + offset) / MARKERS * position[-1]
    return sorted({int(np.abs(position - place).argmin()) for place in places})


def _draw_exits(panel: Axes, curves: Axes, losses: dict[str, pd.DataFrame], looks: dict[str, Look]) -> None:
    """Draw a row per operator: a large marker at the median exit of its seeds, ticks at each; lines up to the curves.

    Where most seeds stay on the plateau, there are but ticks of those that leave.
    """
    bottom = curves.get_ylim()[0]
    for row, (name, seeds) in enumerate(losses.items()):
        exits, look = exits_of(seeds), looks[name]
        left = sorted(exits.steps[exits.left])
        if len(seeds) > 1 and left:
            ticks = {"linewidth": 0.8, "marker": "|", "markersize": 5, "color": look.color}
            panel.plot(left, [row] * len(left), zorder=2.5, **ticks)
        if exits.median is not None:
            loss = float(np.interp(exits.median, seeds.columns, seeds.to_numpy().mean(axis=0)))
            line = {"color": look.color, "linewidth": 0.8, "linestyle": ":", "zorder": 1.5}
            curves.vlines(exits.median, bottom, loss, **line)
            panel.vlines(exits.median, -1, row, **line)
            panel.plot([exits.median], [row], zorder=4, **look.line(**style.MARK))
    curves.set_ylim(bottom=bottom)
    panel.set_ylim(len(losses) - 0.3, -0.7)
    panel.set_yticks([])
    panel.set_ylabel("exit")


def grids_figure(data: Collection) -> Plot | None:
    """At each point of a sweep the validation loss over seeds; beneath it the share of runs still on the plateau."""
    if not data.grids:
        return None
    places: dict[str, dict[str, pd.DataFrame]] = {}  # losses by place and operator
    for grid, of_points in data.grids:
        for point, losses in zip(grid.points, of_points, strict=True):
            places.setdefault(f"{grid.name}\n{place_of(grid, point)}", {})[point["attention"]] = losses
    looks = style.looks_of(attention for models in places.values() for attention in models)
    columns = min(2, len(places))
    rows = math.ceil(len(places) / columns)
    heights = [height for height in [PANEL, SURVIVAL] * rows for _ in range(columns)]
    figure, panels = style.figure_of(heights, style.entries_of(looks), columns=columns)
    spare = set(panels)
    for at, (place, models) in enumerate(places.items()):
        first_row, column = divmod(at, columns)
        losses_panel, shares = (panels[(2 * first_row + part) * columns + column] for part in (0, 1))
        spare -= {losses_panel, shares}
        style.prepare(losses_panel, "loss (nats)")
        losses_panel.set(title=place, xlabel="")
        style.prepare(shares, "on the plateau")
        shares.axhline(0.5, color=style.GREY, linewidth=0.4)
        for attention, losses in models.items():
            first, *_, last = losses.columns
            style.draw_seeds(losses_panel, losses.columns, losses.to_numpy(), looks[attention], marker="")
            style.draw_survival(shares, exits_of(losses), first, last, looks[attention])
            style.set_log_steps(losses_panel, first, last)
            style.set_log_steps(shares, first, last)
    for panel in spare:
        panel.remove()
    return Plot(figure, f"{captions.wording_of(data.settings).experiment}.")


VALUES = 7  # numbers in the height of a panel, at most
ON_LOG_AXIS = "perplexity"  # of which ratios say more than differences


def hosts_figure(data: Collection) -> Plot | None:
    """Curves over training steps of what each host but the encoder measures on held-out data, one per operator; a panel
    per host and size.
    """
    if not data.courses:
        return None
    courses = data.courses
    looks, counts = style.looks_of(attention for *_, attention in courses), [*map(len, courses.values())]
    models = list(dict.fromkeys((host, size) for host, size, _ in courses))
    entries = style.entries_of(looks) + style.band_entries(counts)
    figure, panels = style.figure_of([PANEL] * len(models), entries, columns=min(2, len(models)))
    for (host, size), panel in zip(models, panels, strict=True):
        measure = HOSTS[host].measure
        style.prepare(panel, measure.replace("_", " "))
        panel.set_title(f"{host}, {size}")
        for (*model, name), seeds in courses.items():
            if model == [host, size]:
                style.draw_seeds(panel, seeds.columns, seeds.to_numpy(), looks[name])
                style.set_log_steps(panel, seeds.columns[0], seeds.columns[-1])
        if measure == ON_LOG_AXIS:
            _set_log_values(panel)
    shown = f"Hosts but the encoder over training; {captions.seeds_of(max(counts))}."
    tasks = captions.tasks_of_hosts(data.settings, (host for host, _ in models))
    return Plot(figure, f"{shown}\n\n{captions.wording_of(data.settings).experiment}. {tasks}")


def _set_log_values(panel: Axes) -> None:
    """A logarithmic axis of the values drawn, with round numbers; a linear one where fewer than two of them fit."""
    panel.set_yscale("log")
    ticks = style.round_numbers(*panel.get_ylim(), VALUES)
    if len(ticks) < 2:
        panel.set_yscale("linear")
        return
    panel.yaxis.set_major_locator(FixedLocator(ticks))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter("{x:g}")
