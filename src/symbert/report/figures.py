"""The figures: Figure 2 with the exits from the plateau, Figure 3, and those of sweeps, hosts, robustness, minimal
pairs, heads and corpus. A function returns None where an experiment has no data for its figure."""

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FixedLocator, MaxNLocator, NullLocator

from symbert.corpus.counts import EDGES
from symbert.hosts import HOSTS
from symbert.report import names, published, setting, statistics, style
from symbert.report.collect import Collection, level_name, losses_of
from symbert.report.formats import heading
from symbert.report.statistics import FEWEST, exits_of
from symbert.report.style import PANEL, ROW, Entry, Look
from symbert.report.tables.pretraining import place_of
from symbert.report.tables.robustness import baseline_scores, noise_levels, noise_scores
from symbert.report.tables.scores import accuracies

MARKERS = 9  # along a curve
LOSSES, SURVIVAL = 2.3, 0.9  # inches: a panel of losses, one of shares of runs on the plateau
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}
PRINTED_ENTRY = Entry({"color": style.GREY, "marker": "o", **HOLLOW}, "hollow: the authors' runs")


def loss_figures(data: Collection) -> dict[str, Figure]:
    """Validation loss over pre-training steps, and beneath it where each operator leaves the initial plateau, by the
    rule of the table of exits. Large markers are medians over seeds, ticks single seeds; a + is a run that is on the
    plateau at its end. Hollow markers are the authors’ runs.
    """
    return {size: loss_figure(data, size, runs) for size, runs in data.runs.groupby("size", sort=False)}


def loss_figure(data: Collection, size: str, runs: pd.DataFrame) -> Figure:
    """The figure of the runs of one size.

    The authors' losses are hollow markers where they may stand beside these. From three pre-training seeds there is a
    panel with the share of runs that are still on the plateau.
    """
    losses = {attention: seeds for (_, attention), seeds in losses_of(runs).items()}
    looks, counts = style.looks_of(losses), [*map(len, losses.values())]
    is_comparable = setting.other_training(data) is None
    printed = {name: published.LOSSES[size, name] for name in losses if (size, name) in published.LOSSES}
    printed = printed if is_comparable else {}
    entries = [
        Entry(looks[name].line(), f"{style.name_of(name)}: {exits_of(seeds).in_words}; {seeds.iloc[:, -1].mean():.3f}")
        for name, seeds in losses.items()
    ]
    entries += [*style.band_entries(counts), *[PRINTED_ENTRY] * bool(printed)]
    heights = [LOSSES, ROW * (len(losses) + 0.5), *[SURVIVAL] * (max(counts) >= FEWEST)]
    title = "exit; final loss" if max(counts) == 1 else "median exit; final loss"
    figure, (curves, exits, *shares) = style.figure_of(heights, entries, title, across=1)
    style.prepare(curves, "validation loss (nats per token)")
    for position, (name, seeds) in enumerate(losses.items()):
        marks = [] if name in printed else (position / len(losses) / MARKERS, 1 / MARKERS)
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
    return figure


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


def grids_figure(data: Collection) -> Figure | None:
    """Above, the validation loss at each point of the sweep, mean and 95 % confidence over seeds; below, the share of
    runs still on the plateau.
    """
    places: dict[str, dict[str, pd.DataFrame]] = {}  # losses by place and operator
    for grid, of_points in data.grids:
        for point, losses in zip(grid.points, of_points, strict=True):
            places.setdefault(f"{grid.name}\n{place_of(grid, point)}", {})[point["attention"]] = losses
    if not places:
        return None
    looks = style.looks_of(attention for models in places.values() for attention in models)
    columns = min(2, len(places))
    rows = math.ceil(len(places) / columns)
    heights = [height for height in [LOSSES, SURVIVAL] * rows for _ in range(columns)]
    figure, panels = style.figure_of(heights, style.entries_of(looks), columns=columns)
    spare = set(panels)
    for at, (place, models) in enumerate(places.items()):
        row, column = divmod(at, columns)
        losses_panel, shares = (panels[(2 * row + part) * columns + column] for part in (0, 1))
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
    return figure


def checkpoints_figure(data: Collection, suite: str = "glue") -> Figure | None:
    """Score over pre-training checkpoints, one curve per operator, with the line of 95 % of the highest final score.
    The legend says where each curve first reaches it, straight between the checkpoints in brackets, and its final
    score.
    """
    scores = data.curve_of(suite)
    if scores is None:
        return None
    sizes, looks = names.sizes(scores["size"]), style.looks_of(scores["attention"])
    baseline = statistics.glue_scores(scores.assign(score=scores["majority"])).dropna()[:1].tolist()
    mean_name = statistics.means_of(scores)[0]
    kind = "stand-in task score" if mean_name in statistics.stand_in_names(scores) else heading(mean_name)
    entries = len(looks) + len(baseline) + 3  # of a legend at most, with its title
    figure, panels = style.figure_of([PANEL + ROW * entries] * len(sizes), columns=min(2, len(sizes)))
    for size, panel in zip(sizes, panels, strict=True):
        style.prepare(panel, f"{kind} (%)")
        legend, of_size = [], scores[scores["size"] == size]
        if curves := statistics.curves_of(of_size):
            means, line = statistics.mean_curves(of_size)
            panel.axhline(line, zorder=1.5, **style.LIMIT_LINE)
            for attention, mean in means.items():
                reached = _draw_curve(panel, curves[attention], mean, line, looks[attention])
                words = f"{style.name_of(attention)}: {reached}; {mean.iloc[-1]:.2f}"
                legend.append(Entry(looks[attention].line(), words))
            legend += style.band_entries([*map(len, curves.values())])
            legend.append(Entry(style.LIMIT_LINE, f"95 % of the highest final score: {line:.2f}"))
        for score in baseline:
            panel.axhline(score, zorder=1.5, **style.MAJORITY_LINE)
            legend.append(Entry(style.MAJORITY_LINE, f"majority baseline: {score:.2f}"))
        style.draw_legend(panel, legend, f"{names.family(size)}: 95 % reached at; final score")
    return figure


def _draw_curve(panel: Axes, seeds: pd.DataFrame, mean: pd.Series, line: float, look: Look) -> str:
    """Draw a curve, with a large marker where it, straight between checkpoints, first meets the line.

    Returns this place and the checkpoints around it: '32.8k (30k–35k)'.
    """
    style.draw_seeds(panel, list(mean.index), seeds.to_numpy(), look)
    crossing = statistics.first_crossing(list(mean.index), list(mean), line)
    if crossing is None:
        return "not reached"
    height = mean.iloc[0] if crossing.before is None else line
    panel.plot([crossing.step], [height], zorder=4, **look.line(**style.MARK))
    if crossing.before is None:
        return f"≤ {style.short(crossing.after)}"
    return f"{style.short(crossing.step)} ({style.short(crossing.before)}–{style.short(crossing.after)})"


def hosts_figure(data: Collection) -> Figure | None:
    """What each host but the encoder measures on held-out data over training steps, a curve per operator."""
    if not data.courses:
        return None
    figure, panels, looks = _figure_of_hosts(data.courses)
    for (host, _), panel in panels.items():
        style.prepare(panel, HOSTS[host].measure.replace("_", " "))
    for (host, size, name), seeds in data.courses.items():
        style.draw_seeds(panels[host, size], seeds.columns, seeds.to_numpy(), looks[name])
        style.set_log_steps(panels[host, size], seeds.columns[0], seeds.columns[-1])
    return figure


def _figure_of_hosts(
    curves: dict[tuple[str, str, str], pd.DataFrame], *entries: Entry
) -> tuple[Figure, dict[tuple[str, str], Axes], dict[str, Look]]:
    """A figure with a panel per host and size, and the looks of operators, for curves by host, size and operator."""
    models = list(dict.fromkeys((host, size) for host, size, _ in curves))
    looks, bands = style.looks_of(name for *_, name in curves), style.band_entries([*map(len, curves.values())])
    legend = [*style.entries_of(looks), *bands, *entries]
    figure, panels = style.figure_of([PANEL] * len(models), legend, columns=min(2, len(models)))
    for (host, size), panel in zip(models, panels, strict=True):
        panel.set_title(names.family(size, host))
    return figure, dict(zip(models, panels, strict=True)), looks


CHANCE = 50  # percent


def blimp_figure(data: Collection) -> Figure | None:
    """Share of minimal pairs in which each operator finds the acceptable sentence likelier, over pre-training steps."""
    if data.blimp is None:
        return None
    means = accuracies(data.blimp)["accuracy"].groupby(level=["host", "size", "attention"], sort=False)
    curves = {  # of the seeds that judged at every step: others did at the last one only
        model: seeds.droplevel(["host", "size", "attention"]).unstack("step").sort_index(axis=1).dropna()
        for model, seeds in means
    }
    figure, panels, looks = _figure_of_hosts(curves, Entry(style.MAJORITY_LINE, "chance"))
    for (*model, name), curve in curves.items():
        if len(curve):
            style.draw_seeds(panels[tuple(model)], list(curve.columns), curve.to_numpy(), looks[name])
    for panel in panels.values():
        panel.axhline(CHANCE, zorder=1.5, **style.MAJORITY_LINE)
        style.prepare(panel, "accuracy (%)")
    return figure


def robustness_figure(data: Collection) -> Figure | None:
    """Mean score over the share of changed letters, mean and range of the seeds of each operator, by kind of noise. The
    table has the numbers, and those of out-of-domain sets.
    """
    levels = {} if data.robustness is None else noise_levels(data.robustness)
    if not levels:
        return None
    clean, looks = data.trained, style.looks_of(data.trained["attention"])
    shown = [(size, kind) for size in names.sizes(clean["size"]) for kind in levels]
    has_range = len(clean[["pretrain_seed", "finetune_seed"]].drop_duplicates()) > 1
    entries = [*style.entries_of(looks), *[Entry(style.BAND_LINE, "range of seeds")] * has_range]
    entries += [Entry(style.MAJORITY_LINE, "majority baseline")]
    figure, places = style.figure_of([PANEL] * len(shown), entries, columns=min(2, len(shown)))
    noise, baseline = noise_scores(data.robustness), noise_scores(baseline_scores(data.robustness))["clean"].iloc[0]
    for (size, kind), panel in zip(shown, places, strict=True):
        shares = {"clean": 0, **{level_name(kind, share): share for share in levels[kind]}}
        for attention, seeds in noise.xs(size)[list(shares)].groupby(level="attention", sort=False):
            percent, values = [100 * share for share in shares.values()], seeds.to_numpy()
            bounds = values.mean(axis=0), values.min(axis=0), values.max(axis=0)
            style.draw_band(panel, percent, *bounds, looks[attention])
        panel.axhline(baseline, zorder=1.5, **style.MAJORITY_LINE)
        panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.set_xlabel("letters changed (%)")
        panel.set_ylabel("mean stand-in score (%)" if clean["stand_in"].any() else "mean score (%)")
        panel.set_title(f"{names.family(size)}, {kind} noise")
    return figure


HEADS = {
    "symmetry": "symmetry of scores",
    "logit_std": "width of logits",
    "attention_entropy": "attention entropy (nats)",
    "own_share": "share of the own token",
}
HEADS_PANEL = 2.0  # inches


def anatomy_figure(data: Collection) -> Figure | None:
    """Symmetry, width, entropy and own share of attention over pre-training steps, means over all heads of each
    operator.
    """
    heads = data.anatomy
    if heads is None:
        return None
    looks, seeds = style.looks_of(heads["attention"]), heads["pretrain_seed"].nunique()
    shown = [(size, measure) for size in dict.fromkeys(heads["size"]) for measure in HEADS]
    entries = style.entries_of(looks) + style.band_entries([seeds])
    figure, places = style.figure_of([HEADS_PANEL] * len(shown), entries, columns=2)
    for (size, measure), panel in zip(shown, places, strict=True):
        of_size = heads[heads["size"] == size]
        means = of_size.groupby(["attention", "pretrain_seed", "step"], sort=False)[measure].mean()
        for name, look in looks.items():
            if name in means and means[name].notna().all():
                values = means[name].unstack("step")
                style.draw_seeds(panel, list(values.columns), values.to_numpy(), look)
        style.prepare(panel, HEADS[measure])
        panel.set_title(names.family(size))
    return figure


BINS = 1.5  # inches: a panel of documents by bins
COLORS = {"read": "#B8B8B8", "kept": "#0072B2"}
TICKS = 7  # at most, on an axis
SHORT = EngFormatter(sep="")  # 950, 1.5k, 20k, 137M, 70G
MARGIN = 1.25  # factor between the outermost bin or mark and the edge of a panel


def corpus_figure(data: Collection) -> Figure | None:
    """Documents read and kept, by harmful perplexity, length in characters, and tokens."""
    if not data.parts:
        return None
    histograms = [part["counts"]["histograms"] for part in data.parts]
    perplexity, characters = (
        {side: np.sum([of_part[quantity][side] for of_part in histograms], axis=0) for side in COLORS}
        for quantity in ("harmful_perplexity", "characters")
    )
    tokens = {"kept": np.sum([part["record"]["histogram"] for part in data.parts], axis=0)}
    without = characters["read"].sum() - perplexity["read"].sum()
    missing = f" ({SHORT(without)} documents have none)" if without else ""
    bounds = [data.facts.settings.get(f"corpus.filter.{end}_harmful_perplexity") for end in ("min", "max")]
    window = [bound for bound in bounds if bound is not None]
    figure, panels = style.figure_of([BINS + ROW * lines for lines in (2 + bool(window), 2, 1)])
    _fill(panels[0], f"harmful perplexity{missing}", "harmful_perplexity", perplexity, window)
    _fill(panels[1], "characters per document", "characters", characters)
    _fill(panels[2], "tokens per document, [CLS] and [SEP] included", "tokens", tokens)
    return figure


def _fill(panel: Axes, label: str, quantity: str, sides: dict[str, np.ndarray], window: Iterable[float] = ()) -> None:
    """Draw documents by bins, those kept over those read; `window` is the range of documents kept, exclusive.

    Documents beyond all edges are drawn as one bin at each end.
    """
    edges = np.array(EDGES[quantity])
    bounds = np.concatenate([[edges[0] ** 2 / edges[1]], edges, [edges[-1] ** 2 / edges[-2]]])
    marks, entries = list(window), []
    for side, bins in sides.items():
        panel.stairs(bins, bounds, fill=True, color=COLORS[side])
        filled = np.flatnonzero(bins)
        marks += [bounds[filled[0]], bounds[filled[-1] + 1]] if len(filled) else []
        line = {"color": COLORS[side], "linewidth": 5.5, "solid_capstyle": "butt"}
        entries.append(Entry(line, f"{side}: {bins.sum():,} documents"))
    for edge in window:
        panel.axvline(edge, **style.LIMIT_LINE)
    entries += [Entry(style.LIMIT_LINE, "kept only between {:,g} and {:,g}".format(*window))] if window else []
    panel.set_xscale("log")
    panel.set_xlim((min(marks) / MARGIN, max(marks) * MARGIN) if marks else (1 / MARGIN, 10 * MARGIN))
    panel.set_ylim(bottom=0)
    panel.set_xlabel(label)
    panel.set_ylabel("documents")
    panel.xaxis.set_major_locator(FixedLocator(style.round_numbers(*panel.get_xlim(), TICKS)))
    panel.xaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_locator(MaxNLocator(3))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(SHORT)
    style.draw_legend(panel, entries)
