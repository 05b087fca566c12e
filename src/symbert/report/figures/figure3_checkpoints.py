"""Figure 3: GLUE score over pre-training checkpoints, the 95 % line, and where each operator first reaches it."""

import pandas as pd
from matplotlib.axes import Axes

from symbert.configuration import ReportSettings
from symbert.report import captions, order, panels, statistics
from symbert.report.collect import Collection
from symbert.report.formats import heading
from symbert.report.panels import Entry
from symbert.report.plots import Plot
from symbert.report.scores import majority_of
from symbert.report.style import LIMIT_LINE, MAJORITY_LINE, MARK, Look, looks_of

COLUMNS = [("95 % reached at", 0.79), ("final score", panels.RIGHT)]


def checkpoints_figure(data: Collection) -> Plot | None:
    """Curves of the score over pre-training checkpoints, one per operator, with the line of 95 % of the highest final
    score; the key beneath says where each curve first reaches it, and its final score.

    A panel per size; an empty one where no task counts for GLUE.
    """
    if data.curve is None:
        return None
    return curves_of_checkpoints(data.curve, data.settings)


def suite_checkpoints_figure(data: Collection, suite: str) -> Plot | None:
    """Curves of the score of the suite over pre-training checkpoints, one per operator, with the line of 95 % of the
    highest final score; the key beneath says where each curve first reaches it, and its final score.
    """
    curve = data.curve_of(suite)
    return None if curve is None else curves_of_checkpoints(curve, data.settings_of(suite))


def curves_of_checkpoints(scores: pd.DataFrame, settings: ReportSettings) -> Plot:
    """The figure of the scores of a suite over checkpoints."""
    majority_of(scores)
    sizes = order.sizes(scores["size"])
    curves = {size: statistics.curves_of(scores[scores["size"] == size]) for size in sizes}
    seeds = {size: [*map(len, curves[size].values())] or [1] for size in sizes}  # of each operator
    bands = {size: panels.band_entries(seeds[size]) for size in sizes}
    baseline = statistics.glue_scores(scores.assign(score=scores["majority"])).dropna()
    majority = [float(baseline.iloc[0])] if len(baseline) else []  # none where no column that counts has one
    name = statistics.means_of(scores)[0]
    kind = "stand-in task score" if name in statistics.stand_in_names(scores) else heading(name)
    figure, places = panels.figure_of(
        [[panels.PANEL]] * len(sizes),
        [len(curves[size]) + 1 + len(majority) + len(bands[size]) for size in sizes],
    )
    for size, ([panel], key) in zip(sizes, places, strict=True):
        panels.prepare(panel, f"{kind} (%)")
        panel.set_title(captions.family(size), loc="left")
        entries = []
        if curves[size]:
            means, line = statistics.mean_curves(scores[scores["size"] == size])
            panel.axhline(line, zorder=1.5, **LIMIT_LINE)
            entries += _draw_curves(panel, curves[size], means, line, looks_of(scores["attention"]))
            entries += bands[size]
            entries.append(Entry(LIMIT_LINE, "95 % of the highest final score", ["", f"{line:.2f}"]))
        for score in majority:
            panel.axhline(score, zorder=1.5, **MAJORITY_LINE)
            entries.append(Entry(MAJORITY_LINE, "majority baseline", ["", f"{score:.2f}"]))
        panels.draw_key(key, COLUMNS, entries, panels.seeds_heading(seeds[size]))
    return Plot(figure, _caption(scores, settings, max(map(max, seeds.values()))))


def _caption(scores: pd.DataFrame, settings: ReportSettings, pretrain_seeds: int) -> str:
    wording = captions.wording_of(settings)
    shown = f"Scores on {wording.tasks}; {captions.seeds_of(pretrain_seeds)}."
    return f"{shown}\n\n{_explanation(scores, settings)}."


def _explanation(scores: pd.DataFrame, settings: ReportSettings) -> str:
    stand_ins, partial = captions.stand_in_tasks(scores), captions.partial_tasks(scores)
    kinds = [f"stand-ins: {stand_ins}"] if stand_ins and not captions.has_stand_ins(settings) else []
    kinds += [f"partial: {partial}"] if partial else []
    notes = [
        captions.wording_of(settings).experiment,
        f"pre-trained on {captions.wording_of(settings).corpus}",
        f"scored on {captions.wording_of(settings).tasks}" + (f" ({'; '.join(kinds)})" if kinds else ""),
    ]
    runs = scores.drop_duplicates([*statistics.SEEDS, "task"])["constant_prediction"]
    constant, known = int(runs.eq(True).sum()), int(runs.notna().sum())
    if constant:
        limits = "" if known == len(runs) else " of which it is known"
        notes.append(f"one class predicted throughout in {constant:,} of {known:,} fine-tuning runs{limits}")
    return "; ".join(notes)


def _draw_curves(
    panel: Axes, curves: dict[str, pd.DataFrame], means: dict[str, pd.Series], line: float, looks: dict[str, Look]
) -> list[Entry]:
    """Draw the curves; a large marker is where a curve, straight between checkpoints, first meets the line."""
    entries = []
    for attention, mean in means.items():
        look, crossing = looks[attention], statistics.first_crossing(list(mean.index), list(mean), line)
        panels.draw_seeds(panel, list(mean.index), curves[attention].to_numpy(), look)
        if crossing:
            height = mean.iloc[0] if crossing.before is None else line
            panel.plot([crossing.step], [height], zorder=4, **look.line(**MARK))
        entries.append(Entry(look.line(), panels.name_of(attention), [bracket(crossing), f"{mean.iloc[-1]:.2f}"]))
    return entries


def bracket(crossing: statistics.Crossing | None) -> str:
    """A first crossing and the checkpoints around it: '32.8k (30k–35k)'."""
    if crossing is None:
        return "not reached"
    if crossing.before is None:
        return f"≤ {panels.short(crossing.after)}"
    return f"{panels.short(crossing.step)} ({panels.short(crossing.before)}–{panels.short(crossing.after)})"
