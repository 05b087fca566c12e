"""Figure 2: validation loss over pre-training steps, with each run's exit from the initial plateau."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from symbert.report import captions, published
from symbert.report.panels import RIGHT, Entry, draw_key, figure_of, names_of, prepare
from symbert.report.runs import Run
from symbert.report.statistics import plateau_exit
from symbert.report.style import GREY, MARK, Look, looks_of
from symbert.settings import ReportSettings

MARKERS = 9  # along a curve
HOLLOW = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.9, "markersize": 4.5}


def loss_figure(runs: list[Run], settings: ReportSettings) -> Figure:
    """One panel with the runs of one size; at paper scale the authors' losses are overlaid as hollow markers."""
    looks = looks_of(run.attention for run in runs)
    comparable = captions.is_the_papers(settings)
    printed = [run for run in runs if comparable and (run.size, run.attention) in published.LOSSES]
    note = f"{captions.experiment_of(settings)}, on {captions.corpus_of(settings)}"
    rows = len(runs) + bool(printed)
    figure, [(panel, key)] = figure_of(f"Pre-training loss of BERT-{runs[0].size}", note, [rows])
    prepare(panel, "validation loss (nats per token)")
    for position, run in enumerate(runs):
        marks = [] if run in printed else _marks(run, position / len(runs))
        panel.plot(run.steps, run.losses, markevery=marks, **looks[run.attention].line())
    for run in printed:
        _draw_printed(panel, run, looks[run.attention])
    exits = [plateau_exit(run.steps, run.losses) for run in runs]
    for run, step in zip(runs, exits, strict=True):
        _mark_exit(panel, run, step, looks[run.attention])
    names, heading = names_of([(run.attention, run.pretrain_seed) for run in runs])
    entries = [
        Entry(looks[run.attention].line(), name, ["–" if step is None else f"{step:,}", f"{run.losses[-1]:.3f}"])
        for run, name, step in zip(runs, names, exits, strict=True)
    ]
    if printed:
        entries.append(Entry({"color": GREY, "marker": "o", **HOLLOW}, "hollow: the authors' runs"))
    draw_key(key, [("leaves plateau at", 0.79), ("final loss", RIGHT)], entries, heading)
    return figure


def _marks(run: Run, offset: float) -> list[int]:
    """Evaluations that get a marker, shifted from run to run so that they do not hide each other."""
    every = max(1, len(run.steps) // MARKERS)
    return list(range(int(offset * every), len(run.steps), every))


def _draw_printed(panel: Axes, run: Run, look: Look) -> None:
    steps, losses = published.LOSS_STEPS, published.LOSSES[run.size, run.attention]
    panel.plot(steps, losses, zorder=3, **look.line(markeredgecolor=look.color) | HOLLOW)


def _mark_exit(panel: Axes, run: Run, step: int | None, look: Look) -> None:
    """A large marker where the run leaves the plateau, and a line from it down to the step."""
    if step is None:
        return
    bottom = panel.get_ylim()[0]
    loss = run.losses[run.steps.index(step)]
    panel.vlines(step, bottom, loss, color=look.color, linewidth=0.8, linestyle=":", zorder=1.5)
    panel.plot([step], [loss], zorder=4, **look.line(**MARK))
    panel.set_ylim(bottom=bottom)
