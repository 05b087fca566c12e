"""What each host but the encoder measures on held-out data over its training."""

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from symbert.hosts import HOSTS
from symbert.report import captions, style
from symbert.report.collect import Collection
from symbert.report.style import Plot, looks_of

VALUES = 7  # numbers in the height of a panel, at most
ON_LOG_AXIS = "perplexity"  # of which ratios say more than differences


def hosts_figure(data: Collection) -> Plot | None:
    """Curves over training steps of what each host but the encoder measures on held-out data, one per operator; a panel
    per host and size.
    """
    if data.hosts is None:
        return None
    courses = data.courses
    looks, counts = looks_of(attention for _, _, attention in courses), [*map(len, courses.values())]
    models = list(dict.fromkeys((host, size) for host, size, _ in courses))
    entries = style.entries_of(looks) + style.band_entries(counts)
    figure, places = style.figure_of([style.PANEL] * len(models), entries, columns=min(2, len(models)))
    for (host, size), panel in zip(models, places, strict=True):
        measure = HOSTS[host].measure
        style.prepare(panel, measure.replace("_", " "))
        panel.set_title(f"{host}, {size}")
        for (of_host, of_size, name), seeds in courses.items():
            if (of_host, of_size) == (host, size):
                style.draw_seeds(panel, seeds.columns.tolist(), seeds.to_numpy(), looks[name])
                style.set_log_steps(panel, seeds.columns[0], seeds.columns[-1])
        if measure == ON_LOG_AXIS:
            _set_log_values(panel)
    shown = f"Hosts but the encoder over training; {captions.seeds_of(max(counts))}."
    tasks = captions.tasks_of_hosts(data.settings, (host for host, _ in models))
    return Plot(figure, f"{shown}\n\n{captions.wording_of(data.settings).experiment}. {tasks}")


def _set_log_values(panel: Axes) -> None:
    """A logarithmic axis of what is drawn, with round numbers; a linear one where fewer than two of them fit."""
    panel.set_yscale("log")
    ticks = style.round_numbers(*panel.get_ylim(), VALUES)
    if len(ticks) < 2:
        panel.set_yscale("linear")
        return
    panel.yaxis.set_major_locator(FixedLocator(ticks))
    panel.yaxis.set_minor_locator(NullLocator())
    panel.yaxis.set_major_formatter("{x:g}")
