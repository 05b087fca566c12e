"""The figures: Figure 2 with the escapes from the plateau, Figure 3, and those of sweeps, architectures, robustness,
minimal pairs and heads. A function returns None where an experiment has no data for its figure."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symbert.architectures import ARCHITECTURES
from symbert.experiment.sweep import Grid
from symbert.pretrain.tuning import Choice, Tried
from symbert.report import names, published, setting, statistics, style
from symbert.report.collect import Collection, level_name, losses_of
from symbert.report.formats import heading
from symbert.report.names import Known
from symbert.report.statistics import escapes_of
from symbert.report.style import PANEL, ROW, Look
from symbert.report.tables.pretraining import place_of
from symbert.report.tables.robustness import baseline_scores, noise_levels, noise_scores
from symbert.report.tables.scores import accuracies

LOSSES = 2.3  # inches: a panel of losses
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}
Panels = Mapping[tuple[str, str], Mapping[str, pd.DataFrame]]  # curves by title and unit, and by operator


def curves_figure(
    known: Known, panels: Panels, height: float = PANEL, line: tuple[float, str] | None = None, **axis: Any
) -> Figure:
    """A figure of panels: a curve per operator, the mean of rows (seeds) over columns (steps), and a level `line` with
    its name; `axis` as of `style.prepare`."""
    looks = style.looks_of((name for curves in panels.values() for name in curves), known)
    figure, places = style.figure_of([height] * len(panels), columns=min(2, len(panels)))
    for panel, ((title, unit), curves) in zip(places, panels.items(), strict=True):
        for name, seeds in curves.items():
            style.draw_seeds(panel, seeds, looks[name], name)
        if line:
            panel.axhline(line[0], zorder=1.5, label=line[1], **style.MAJORITY_LINE)
        panel.set_title(title)
        style.prepare(panel, unit, **axis)
    style.add_legend(figure)
    return figure


def loss_figures(data: Collection) -> dict[str, Figure]:
    """Validation loss over pre-training steps, and beneath it where each operator escapes the initial plateau: at the
    first evaluation at or below the dashed line, a row for each. Large markers are medians over seeds, ticks single
    seeds; a + is a run that has not escaped by its end. Hollow markers are the authors’ runs.
    """
    return {size: loss_figure(data, size, runs) for size, runs in data.runs.groupby("size", sort=False)}


def loss_figure(data: Collection, size: str, runs: pd.DataFrame) -> Figure:
    """The figure of the runs of one size; the authors' losses are hollow markers where they may stand beside these."""
    losses = {attention: seeds for (_, attention), seeds in losses_of(runs).items()}
    looks, is_comparable = style.looks_of(losses, data.known), setting.other_training(data) is None
    level = data.escape_loss
    figure, (curves, *beneath) = style.figure_of([LOSSES, *[ROW * (len(losses) + 3)] * (level is not None)])
    for name, seeds in losses.items():
        printed = published.LOSSES.get((size, name)) if is_comparable else None
        label = f"{name}: {_escapes_in_words(seeds, level)}{seeds.iloc[:, -1].mean():.3f}"
        style.draw_seeds(curves, seeds, looks[name], label, markevery=[] if printed else (0.0, 0.1))
        if printed:
            line = looks[name].line(markeredgecolor=looks[name].color) | HOLLOW
            curves.plot(published.LOSS_STEPS, printed, zorder=3, **line, label="hollow: the authors' runs")
    style.prepare(curves, "validation loss\n(nats per token)", "" if beneath else "pre-training step", logarithmic=True)
    for panel in beneath:
        curves.axhline(level, zorder=1.5, label=f"escape at or below {level:.2f}", **style.LIMIT_LINE)
        _draw_escapes(panel, curves, losses, level, looks)
        panel.set_xlim(curves.get_xlim())
        style.prepare(panel, "", logarithmic=True)
        style.name_rows(panel, losses)
        curves.tick_params(labelbottom=False)
    median, mean = ("median ", "mean ") if max(map(len, losses.values())) > 1 else ("", "")
    style.add_legend(figure, f"{f'{median}escape; ' if beneath else ''}{mean}final loss", across=1)
    return figure


def _escapes_in_words(losses: pd.DataFrame, level: float | None) -> str:
    """'825 (700 to > 1,800); 2 of 5 diverged; '; nothing where the level is not known."""
    if level is None:
        return ""
    escapes = escapes_of(losses, level)
    diverged = f"{escapes.diverged.sum()} of {len(losses)} diverged; " if escapes.diverged.any() else ""
    return f"{escapes.in_words}; {diverged}"


def _draw_escapes(
    panel: Axes, curves: Axes, losses: dict[str, pd.DataFrame], level: float, looks: dict[str, Look]
) -> None:
    """Draw a row per operator: a large marker at the median escape of its seeds, ticks at each; lines up to the curves.

    Where most seeds have not escaped, there are but ticks of those that have.
    """
    bottom = curves.get_ylim()[0]
    for row, (name, seeds) in enumerate(losses.items()):
        escapes, look = escapes_of(seeds, level), looks[name]
        for marker, steps in (("|", escapes.at[escapes.escaped]), ("+", escapes.before[~escapes.escaped])):
            panel.plot(steps, [row] * len(steps), marker, color=look.color, markersize=5, zorder=2.5, **style.WHOLE)
        if (step := escapes.median.step) is not None:
            loss = float(np.interp(step, seeds.columns, seeds.to_numpy().mean(axis=0)))
            line = {"color": look.color, "linewidth": 0.8, "linestyle": ":", "zorder": 1.5}
            curves.vlines(step, bottom, loss, **line)
            panel.vlines(step, -1, row, **line)
            panel.plot([step], [row], zorder=4, **look.line(**style.MARK))
    curves.set_ylim(bottom=bottom)
    panel.set_ylim(len(losses) - 0.3, -0.7)


def grids_figure(data: Collection) -> Figure | None:
    """Validation loss at each point of the sweep."""
    panels: dict[tuple[str, str], dict[str, pd.DataFrame]] = defaultdict(dict)
    for grid, of_points in data.grids:
        for point, losses in zip(grid.points, of_points, strict=True):
            panels[f"{grid.name}\n{place_of(grid, point)}", "loss (nats)"][point["attention"]] = losses
    return curves_figure(data.known, panels, LOSSES, logarithmic=True) if panels else None


def rates_figure(data: Collection) -> Figure | None:
    """Each contrast of a tuned grid over the learning rate, the same one on both sides, by the tuning seeds: the first
    less the second. Bands: 95 % intervals over seeds (Student’s, of two seeds their range). Large marks lie at the best
    rate of the first (filled) and of the second (hollow). A rate at which a loss was not finite, or of escapes a run
    did not escape or diverged, has no point.
    """
    looks: dict[str, Look] = {}
    drawn: dict[tuple[str, str], list[tuple[Grid, str, Choice, Choice, pd.DataFrame]]] = defaultdict(list)
    for grid, choices in data.tuned:
        looks |= style.looks_of((choice.attention for choice in choices), data.known)
        for contrast, place, *sides in grid.pairs():
            first, second = (choices[at] for at in sides)
            words = ", ".join(str(value) for axis, value in place.items() if axis != "architecture")
            for unit, outcome in OF_SEED.items():
                if unit.endswith("(nats)") and "text" in contrast.first:
                    continue  # losses of two texts are no measure of one another
                tried = zip(first.tried, second.tried, strict=True)
                seeds = pd.DataFrame({ours.rate: outcome(ours) - outcome(theirs) for ours, theirs in tried})
                if seeds.notna().all().any():
                    curve = (grid, contrast.name.removeprefix(f"{grid.name}-"), first, second, seeds)
                    drawn[f"{grid.name}\n{words}", unit].append(curve)
    if not drawn:
        return None
    figure, panels = style.figure_of([LOSSES] * len(drawn), columns=2)
    for panel, ((title, unit), curves) in zip(panels, drawn.items(), strict=True):
        for _, name, first, second, seeds in curves:
            look, means = looks[first.attention], seeds.mean(skipna=False)
            style.draw_seeds(panel, seeds, look, name)
            for choice, face in ((second, {"markerfacecolor": "none", "markersize": 10}), (first, {})):
                panel.plot([choice.best], [means[choice.best]], zorder=4, **look.line(**style.MARK | face))
        panel.axhline(0, zorder=1.5, **style.MAJORITY_LINE)
        panel.set_title(title)
        style.prepare(panel, unit, "learning rate", ticks=curves[0][0].rates)
    style.add_legend(figure, across=1)
    return figure


def _losses(tried: Tried) -> pd.Series:
    """The last losses of seeds; NaN of one that was not finite."""
    return pd.Series(tried.losses, dtype=float)


def _logarithms(tried: Tried) -> pd.Series:
    """The logarithms of steps to the escape; NaN of a run that diverged, or did not escape."""
    return np.log2(pd.Series(tried.escapes, dtype=float)).mask(tried.diverged)


OF_SEED = {"log₂ of the ratio of escapes": _logarithms, "difference of last losses (nats)": _losses}  # by the unit


def checkpoints_figure(data: Collection, suite: str = "glue") -> Figure | None:
    """Score over pre-training checkpoints, one curve per operator, with the line of 95 % of the highest final score.
    The legend says where each curve first reaches it, straight between the checkpoints in brackets, whether it ends
    below it all the same, and its final score, with the fine-tuning seeds where they are not those of the table.
    """
    scores = data.curves.get(suite)
    if scores is None:
        return None
    sizes, looks = data.known.sizes(scores["size"]), style.looks_of(scores["attention"], data.known)
    baseline = statistics.glue_scores(scores.assign(score=scores["majority"])).dropna()[:1].tolist()
    mean_name = statistics.mean_of(scores)
    kind = "stand-in task score" if mean_name in statistics.stand_in_names(scores) else heading(mean_name)
    of_seeds = {size: _other_seeds(scores[scores["size"] == size], data.scores.get(suite)) for size in sizes}
    height = PANEL + ROW * (len(looks) + len(baseline) + 3 + any(of_seeds.values()))
    figure, panels = style.figure_of([height] * len(sizes), columns=min(2, len(sizes)))
    for size, panel in zip(sizes, panels, strict=True):
        of_size = scores[scores["size"] == size]
        curves, (means, line) = statistics.curves_of(of_size), statistics.mean_curves(of_size)
        for name, mean in means.items():
            crossing = statistics.first_crossing(list(mean.index), list(mean), line)
            reached = crossing.in_words if crossing else "not reached"
            ends = f"; {'ends below: ' if crossing and mean.iloc[-1] < line else ''}{mean.iloc[-1]:.2f}"
            style.draw_seeds(panel, curves[name].dropna(axis=1), looks[name], f"{name}: {reached}{ends}")
            if crossing:
                height = mean.iloc[0] if crossing.before is None else line
                panel.plot([crossing.step], [height], zorder=4, **looks[name].line(**style.MARK))
        if means:
            panel.axhline(line, zorder=1.5, label=f"95 % of the highest final score: {line:.2f}", **style.LIMIT_LINE)
        for score in baseline:
            panel.axhline(score, zorder=1.5, label=f"majority baseline: {score:.2f}", **style.MAJORITY_LINE)
        style.prepare(panel, f"{kind} (%)")
        style.add_legend_above(panel, f"{names.family(size)}: 95 % reached at; final score{of_seeds[size]}")
    return figure


def _other_seeds(curve: pd.DataFrame, final: pd.DataFrame | None) -> str:
    """A line '(fine-tuning seed 1)', the seeds of a curve where the final scores have others."""
    seeds = sorted(set(curve["finetune_seed"]))
    if final is None or seeds == sorted(set(final.loc[final["size"].isin(curve["size"]), "finetune_seed"])):
        return ""
    return f"\n(fine-tuning seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))})"


def architectures_figure(data: Collection) -> Figure | None:
    """What each architecture but the encoder measures on held-out data over training steps, a curve per operator."""
    panels: dict[tuple[str, str], dict[str, pd.DataFrame]] = defaultdict(dict)
    for (architecture, size, name), seeds in data.courses.items():
        panels[names.family(size, architecture), ARCHITECTURES[architecture].measure.replace("_", " ")][name] = seeds
    return curves_figure(data.known, panels, logarithmic=True) if panels else None


CHANCE = 50  # percent


def blimp_figure(data: Collection) -> Figure | None:
    """Share of minimal pairs in which each operator finds the acceptable sentence likelier, over pre-training steps."""
    if data.blimp is None or data.own(data.blimp).empty:
        return None
    panels: dict[tuple[str, str], dict[str, pd.DataFrame]] = defaultdict(dict)
    model = ["architecture", "size", "attention"]
    for (architecture, size, name), means in accuracies(data.own(data.blimp))["accuracy"].groupby(
        level=model, sort=False
    ):
        curve = (
            means.droplevel(model).unstack("step").sort_index(axis=1).dropna()
        )  # others judged at the last step only
        if len(curve):
            panels[names.family(size, architecture), "accuracy (%)"][name] = curve
    return curves_figure(data.known, panels, line=(CHANCE, "chance")) if panels else None


def robustness_figure(data: Collection) -> Figure | None:
    """Mean score over the share of changed letters, by kind of noise. The table has the numbers, and
    those of out-of-domain sets.
    """
    levels = {} if data.robustness is None else noise_levels(data.robustness)
    if not levels:
        return None
    unit = "mean stand-in score (%)" if data.trained["stand_in"].any() else "mean score (%)"
    panels: dict[tuple[str, str], dict[str, pd.DataFrame]] = defaultdict(dict)
    noise, baseline = noise_scores(data.robustness), noise_scores(baseline_scores(data.robustness))["clean"].iloc[0]
    for kind, shares in levels.items():
        percents = {"clean": 0, **{level_name(kind, share): 100 * share for share in shares}}
        for (size, name), seeds in noise[list(percents)].groupby(level=["size", "attention"], sort=False):
            panels[f"{names.family(size)}, {kind} noise", unit][name] = seeds.rename(columns=percents)
    return curves_figure(data.known, panels, line=(baseline, "majority baseline"), horizontal="letters changed (%)")


HEADS = {
    "symmetry": "symmetry of scores",
    "logit_std": "width of logits",
    "attention_entropy": "attention entropy (nats)",
    "own_share": "share of the own token",
}


def anatomy_figure(data: Collection) -> Figure | None:
    """Symmetry, width, entropy and own share of attention over pre-training steps, means over all heads of each
    operator.
    """
    if data.anatomy is None:
        return None
    panels: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
    means = data.anatomy.groupby(["size", "attention", "pretrain_seed", "step"], sort=False)[list(HEADS)].mean()
    for size, of_size in means.groupby(level="size", sort=False):
        for measure, unit in HEADS.items():
            models = of_size.droplevel("size")[measure].groupby(level="attention", sort=False)
            curves = {name: seeds.droplevel("attention").unstack("step") for name, seeds in models}
            panels[names.family(size), unit] = {
                name: seeds for name, seeds in curves.items() if seeds.notna().all(axis=None)
            }
    return curves_figure(data.known, panels, height=2.0)
