"""Figures of scores over checkpoints (Figure 3), noise and sets, of minimal pairs, and of heads over pre-training."""

from textwrap import wrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from symbert.report import captions, order, statistics, style
from symbert.report.collect import DOMAIN, Collection, level_name, majority_of
from symbert.report.formats import heading
from symbert.report.style import PANEL, ROW, Entry, Look, Plot
from symbert.report.tables.robustness import (
    baseline_scores,
    domain_scores,
    fine_tuned_again,
    noise_levels,
    noise_scores,
)
from symbert.report.tables.scores import accuracies, pairs_in_words

MAJORITY_ENTRY = Entry(style.MAJORITY_LINE, "majority baseline")


def checkpoints_figure(data: Collection, suite: str = "glue") -> Plot | None:
    """Figure 3: score over pre-training checkpoints, with the line of 95 % of the highest final score.

    A panel per size, with a legend that says where each curve first reaches the line, and its final score; an empty
    panel where no task counts for the score.
    """
    scores = data.curve_of(suite)
    if scores is None:
        return None
    majority_of(scores)  # models were scored on the same rows
    settings, sizes, looks = data.settings_of(suite), order.sizes(scores["size"]), style.looks_of(scores["attention"])
    baseline = statistics.glue_scores(scores.assign(score=scores["majority"])).dropna()[:1].tolist()
    mean_name = statistics.means_of(scores)[0]
    kind = "stand-in task score" if mean_name in statistics.stand_in_names(scores) else heading(mean_name)
    entries = len(looks) + len(baseline) + 3  # of a legend at most, with its title
    figure, panels = style.figure_of([PANEL + ROW * entries] * len(sizes), columns=min(2, len(sizes)))
    most = 1
    for size, panel in zip(sizes, panels, strict=True):
        style.prepare(panel, f"{kind} (%)")
        legend, of_size = [], scores[scores["size"] == size]
        curves = statistics.curves_of(of_size)
        if curves:
            means, line = statistics.mean_curves(of_size)
            counts = [*map(len, curves.values())]
            most = max(most, *counts)
            panel.axhline(line, zorder=1.5, **style.LIMIT_LINE)
            for attention, mean in means.items():
                name = style.name_of(attention)
                reached = _draw_curve(panel, curves[attention], mean, line, looks[attention])
                legend.append(Entry(looks[attention].line(), f"{name}: {reached}; {mean.iloc[-1]:.2f}"))
            legend += style.band_entries(counts)
            legend.append(Entry(style.LIMIT_LINE, f"95 % of the highest final score: {line:.2f}"))
        for score in baseline:
            panel.axhline(score, zorder=1.5, **style.MAJORITY_LINE)
            legend.append(MAJORITY_ENTRY._replace(name=f"majority baseline: {score:.2f}"))
        style.draw_legend(panel, legend, f"{captions.family(size)}: 95 % reached at; final score")
    wording, partial = captions.wording_of(settings), captions.partial_tasks(scores)
    stand_ins = "" if captions.has_stand_ins(settings) else captions.stand_in_tasks(scores)
    kinds = [f"stand-ins: {stand_ins}"] * bool(stand_ins) + [f"partial: {partial}"] * bool(partial)
    notes = [
        wording.experiment,
        f"pre-trained on {wording.corpus}",
        f"scored on {wording.tasks}" + (f" ({'; '.join(kinds)})" if kinds else ""),
    ]
    runs = scores.drop_duplicates([*statistics.SEEDS, "task"])["constant_prediction"]
    if constant := int(runs.eq(True).sum()):
        notes.append(f"one class predicted throughout in {constant:,} of {runs.notna().sum():,} fine-tuning runs")
    return Plot(figure, f"Scores on {wording.tasks}; {captions.seeds_of(most)}.\n\n{'; '.join(notes)}.")


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


SET, DOT, LEAST = 0.1, 0.065, 0.27  # inches: room of an out-of-domain set, of each operator in it, and of both at least
LABELS = 0.5  # inches above and below these rooms
DOTS = 0.8  # of the room of a set: where its dots are
NAME = 10  # characters in a line of a set's name


def robustness_figure(data: Collection) -> Plot | None:
    """Curves of the score over the share of changed letters, and scores on out-of-domain sets, per operator.

    Panels of each size: one per kind of noise, one for other sets.
    """
    if data.robustness is None:
        return None
    clean, measured, settings = data.trained, data.robustness, data.settings
    looks, sizes = style.looks_of(clean["attention"]), order.sizes(clean["size"])
    levels, domains = noise_levels(measured), domain_scores(measured)
    shown = [(size, kind) for size in sizes for kind in [*levels, *[DOMAIN] * bool(len(domains))]]
    of_domains = max(PANEL / 2, LABELS + len(domains.columns) * max(LEAST, SET + DOT * len(looks)))
    heights = [of_domains if kind == DOMAIN else PANEL for _, kind in shown]
    seeds = len(clean[["pretrain_seed", "finetune_seed"]].drop_duplicates())
    entries = [*style.entries_of(looks), *[Entry(style.BAND_LINE, "range of seeds")] * (seeds > 1), MAJORITY_ENTRY]
    figure, places = style.figure_of(heights, entries, columns=min(2, len(heights)))
    noise, baseline = noise_scores(measured), baseline_scores(measured)
    for (size, kind), panel in zip(shown, places, strict=True):
        if kind == DOMAIN:
            _draw_domains(panel, domains.xs(size), domain_scores(baseline).iloc[0], looks)
            panel.set_title(f"{captions.family(size)}, out-of-domain sets")
        else:
            shares = {"clean": 0, **{level_name(kind, share): share for share in levels[kind]}}
            _draw_noise(panel, noise.xs(size)[list(shares)], list(shares.values()), looks)
            panel.axhline(noise_scores(baseline)["clean"].iloc[0], zorder=1.5, **style.MAJORITY_LINE)
            panel.set_ylabel("mean stand-in score (%)" if captions.stand_in_tasks(clean) else "mean score (%)")
            panel.set_title(f"{captions.family(size)}, {kind} noise")
    wording, partial = captions.wording_of(settings), captions.partial_tasks(clean)
    finetune_seeds = clean["finetune_seed"].nunique()
    means = f"means over {finetune_seeds} fine-tuning seeds" if finetune_seeds > 1 else "one fine-tuning seed"
    notes = [wording.experiment, f"pre-trained on {wording.corpus}"]
    notes += [f"partial tasks: {partial}" if partial else "", fine_tuned_again(measured)]
    shown_on = f"On {wording.tasks}; {means}; {captions.seeds_of(clean['pretrain_seed'].nunique())}."
    return Plot(figure, f"{shown_on}\n\n{'; '.join(filter(None, notes))}.")


def _draw_noise(panel: Axes, scores: pd.DataFrame, shares: list[float], looks: dict[str, Look]) -> None:
    """Mean and range of each operator; `scores` has a column per share, and a row per model and seed."""
    panel.set_xlabel("letters changed (%)")
    panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    for attention, seeds in scores.groupby(level="attention", sort=False):
        percent, values = [100 * share for share in shares], seeds.to_numpy()
        style.draw_band(panel, percent, values.mean(axis=0), values.min(axis=0), values.max(axis=0), looks[attention])


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
    panel.hlines(rows[1:] - 0.5, 0, 1, transform=panel.get_yaxis_transform(), color=style.FAINT, linewidth=0.8)
    panel.vlines(baseline, rows - 0.45, rows + 0.45, zorder=1.5, **style.MAJORITY_LINE)
    models = list(scores.groupby(level="attention", sort=False))
    for place, (attention, seeds) in enumerate(models):
        heights, look = rows + DOTS * ((place + 0.5) / len(models) - 0.5), looks[attention]
        panel.hlines(heights, seeds.min(), seeds.max(), color=look.color, linewidth=1.2)
        panel.plot(seeds.mean(), heights, **look.line(linestyle="none"))


CHANCE = 50  # percent


def blimp_figure(data: Collection) -> Plot | None:
    """Share of minimal pairs in which each operator finds the acceptable sentence likelier, over pre-training steps; a
    panel per host and size.
    """
    judgements = data.blimp
    if judgements is None:
        return None
    means, looks = accuracies(judgements)["accuracy"], style.looks_of(judgements["attention"])
    curves = {  # of the seeds that judged at every step: others did at the last one only
        model: seeds.droplevel(["host", "size", "attention"]).unstack("step").sort_index(axis=1).dropna()
        for model, seeds in means.groupby(level=["host", "size", "attention"], sort=False)
    }
    models, seeds = list(dict.fromkeys((host, size) for host, size, _ in curves)), [*map(len, curves.values())]
    entries = [*style.entries_of(looks), *style.band_entries(seeds), Entry(style.MAJORITY_LINE, "chance")]
    figure, places = style.figure_of([PANEL] * len(models), entries, columns=min(2, len(models)))
    for model, panel in zip(models, places, strict=True):
        for (*of_model, name), curve in curves.items():
            if tuple(of_model) == model and len(curve):
                style.draw_seeds(panel, list(curve.columns), curve.to_numpy(), looks[name])
        panel.axhline(CHANCE, zorder=1.5, **style.MAJORITY_LINE)
        style.prepare(panel, "accuracy (%)")
        panel.set_title(captions.host_family(*model))
    shown, wording = f"Accuracy on {pairs_in_words(judgements)}", captions.wording_of(data.settings)
    notes = f"{wording.experiment}; pre-trained on {wording.corpus}; no fine-tuning."
    return Plot(figure, f"{shown}; {captions.seeds_of(max(seeds))}.\n\n{notes}")


HEADS = {
    "symmetry": "symmetry of scores",
    "logit_std": "width of logits",
    "attention_entropy": "attention entropy (nats)",
    "own_share": "share of the own token",
}
HEADS_PANEL = 2.0  # inches


def anatomy_figure(data: Collection) -> Plot | None:
    """Symmetry, width, entropy and own share of attention over pre-training, means over the heads of each operator; a
    panel per size and measure.
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
        panel.set_title(captions.family(size))
    wording = captions.wording_of(data.settings)
    means = f"Means over all heads of all layers, on {wording.corpus}; {captions.seeds_of(seeds)}."
    return Plot(figure, f"{means}\n\n{wording.experiment}.")
