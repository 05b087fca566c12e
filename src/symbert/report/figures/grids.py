"""The losses and the exits at each point of a sweep."""

import math

import pandas as pd
from matplotlib.figure import Figure

from symbert.report import captions
from symbert.report.collect import Collection
from symbert.report.statistics import exits_of
from symbert.report.style import GREY, PAGE_WIDTH, Plot, draw_seeds, draw_survival, looks_of, set_log_steps
from symbert.report.tables.pretraining import place_of

PANEL_HEIGHT = 1.7  # inches
PANELS, TICKS = 4, 4  # side by side, and steps on the axis of each


def grids_figure(data: Collection) -> Plot | None:
    """Above, the validation loss, mean and range over seeds; below, the share of runs still on the plateau."""
    if not data.grids:
        return None
    places: dict[str, dict[str, pd.DataFrame]] = {}  # losses by place and operator
    for grid, of_points in data.grids:
        for point, losses in zip(grid.points, of_points, strict=True):
            places.setdefault(f"{grid.name}\n{place_of(grid, point)}", {})[point["attention"]] = losses
    looks = looks_of(list(dict.fromkeys(name for models in places.values() for name in models)))
    columns = min(PANELS, len(places))
    rows = math.ceil(len(places) / columns)
    figure = Figure(figsize=(PAGE_WIDTH, PANEL_HEIGHT * 2 * rows + 0.6))
    panels = figure.subplots(2 * rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_visible(False)
    for position, (place, models) in enumerate(places.items()):
        above, below = (panels[2 * (position // columns) + part, position % columns] for part in (0, 1))
        above.set_title(place, fontsize=7)
        above.set_ylabel("loss (nats)" if position % columns == 0 else "")
        below.set_ylabel("on the plateau" if position % columns == 0 else "")
        below.set_xlabel("step")
        for panel in (above, below):
            panel.set_visible(True)
        for name, losses in models.items():
            look, steps = looks[name], losses.columns
            draw_seeds(above, steps, losses.to_numpy(), look, marker="")
            draw_survival(below, exits_of(losses), steps[0], steps[-1], look)
            for panel in (above, below):
                set_log_steps(panel, steps[0], steps[-1], TICKS)
        below.axhline(0.5, color=GREY, linewidth=0.4)
    handles = [panels[0, 0].plot([], [], **look.line(), label=name)[0] for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), fontsize=7, frameon=False)
    return Plot(figure, f"{captions.wording_of(data.settings).experiment}.")
