"""The page of a study: a table of exits, a figure and a table of contrasts for each grid, all from `runs.csv`."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from symbert.files import write_text
from symbert.report.panels import draw_seeds, draw_survival, set_log_steps
from symbert.report.style import GREY, PAGE_WIDTH, house_style, looks_of, save_figure
from symbert.study.design import AXES, Grid, Study, points_of, read_study
from symbert.study.results import Answer, Runs, answers_of, complete_grids, read_runs, runs_of

PANEL_HEIGHT = 1.7  # inches
PANELS, TICKS = 4, 4  # side by side, and steps on the axis of each


def write_study(study: Path, runs: Path, output: Path) -> None:
    """Publish the page of a study from its runs.csv, as Markdown.

    Beside `output` it writes contrasts.csv, where the study has contrasts, and a figure of curves and exits for each
    grid whose runs are all trained.
    """
    design, frame = read_study(study), read_runs(runs)
    complete, answers = complete_grids(design, frame), answers_of(design, frame)
    if design.contrasts:
        write_text(output.with_name("contrasts.csv"), _answers_frame(answers).to_csv(index=False, lineterminator="\n"))
    parts = [f"# {design.title}"]
    for name, grid in design.grids.items():
        parts.append(f"## {name}")
        if name not in complete:
            parts.append("Not all of these runs are trained yet.")
            continue
        with house_style():
            save_figure(draw_grid(design, grid, frame), [output.with_name(f"{name}.png")])
        caption = "Above, the validation loss, mean and range over seeds; below, the share of runs still on the plateau"
        parts += [
            f"Median exit from the plateau over {len(grid.seeds)} seeds, with its range:",
            exits_table(design, grid, frame),
            f"![{caption}]({name}.png)",
        ]
        if asked := [answer for answer in answers if design.contrasts[answer.name].grid == name]:
            parts.append(contrasts_table(design, asked))
    write_text(output, "\n\n".join(parts) + "\n")


def exit_in_words(runs: Runs) -> str:
    """The median exit, and its range over seeds: '825 (700–never)'."""
    steps = np.where(runs.exits.left, runs.exits.steps, np.inf)
    median, lowest, highest = (_step(value) for value in (runs.median, steps.min(), steps.max()))
    return median if lowest == highest else f"{median} ({lowest}–{highest})"


def _step(step: float) -> str:
    return f"{step:,.0f}" if math.isfinite(step) else "never"


def _places(study: Study, grid: Grid, frame: pd.DataFrame) -> dict[str, dict[str, Runs]]:
    """The runs of a grid by what varies beside the operator, in words, and by operator."""
    varied = [axis for axis, values in grid.axes.items() if axis != "attention" and len(values) > 1] or ["text"]
    places: dict[str, dict[str, Runs]] = {}
    for point, cell in points_of(study, grid):
        place = ", ".join(_axis_in_words(axis, point[axis]) for axis in varied)
        places.setdefault(place, {})[point["attention"]] = runs_of(frame, cell, grid.seeds)
    return places


def _axis_in_words(axis: str, value: Any) -> str:
    """A text, a size and an operator say themselves what they are."""
    return str(value) if axis in AXES else f"{axis.replace('_', ' ')} {value}"


def exits_table(study: Study, grid: Grid, frame: pd.DataFrame) -> str:
    """Markdown: a row per operator, a column per point of the other axes, with median exits and their ranges."""
    columns = {
        place: {attention: exit_in_words(runs) for attention, runs in by_operator.items()}
        for place, by_operator in _places(study, grid, frame).items()
    }
    return pd.DataFrame(columns).rename_axis("operator").to_markdown(disable_numparse=True)


def contrasts_table(study: Study, answers: list[Answer]) -> str:
    """Markdown: a row per point at which two cells were compared."""
    rows = []
    for answer in answers:
        contrast, result = study.contrasts[answer.name], answer.result
        axes = study.grids[contrast.grid].axes
        sides = [" ".join(_axis_in_words(*item) for item in side.items()) for side in (contrast.first, contrast.second)]
        at = [_axis_in_words(axis, value) for axis, value in answer.place.items() if len(axes[axis]) > 1]
        rows.append(
            {
                "contrast": " / ".join(sides),
                **({"at": ", ".join(at)} if at else {}),
                "exit": exit_in_words(answer.first),
                "of the second": exit_in_words(answer.second),
                "ratio of medians, 95 %": f"{_ratio(result.ratio)} [{_ratio(result.low)}, {_ratio(result.high)}]",
                "90 %": f"[{_ratio(result.narrow_low)}, {_ratio(result.narrow_high)}]",
                "Holm p": _p_value(answer.corrected),
                "expected": contrast.expected,
                "verdict": answer.verdict,
            }
        )
    return pd.DataFrame(rows).to_markdown(index=False, disable_numparse=True)


def _p_value(p_value: float) -> str:
    return f"{p_value:.4f}" if p_value >= 0.0001 else "< 0.0001"


def _ratio(ratio: float) -> str:
    return "–" if math.isnan(ratio) else "∞" if math.isinf(ratio) else f"{ratio:.2f}"


def _answers_frame(answers: list[Answer]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "contrast": answer.name,
            **answer.place,
            "seeds": answer.result.seeds,
            "first_median_exit": answer.first.median,
            "second_median_exit": answer.second.median,
            **vars(answer.result),
            "holm_p_value": answer.corrected,
            "verdict": answer.verdict,
        }
        for answer in answers
    )


def draw_grid(study: Study, grid: Grid, frame: pd.DataFrame) -> Figure:
    """For each point of a grid the mean loss of each operator, and below it the share of runs still on the plateau."""
    places, looks = _places(study, grid, frame), looks_of(grid.axes["attention"])
    columns = min(PANELS, len(places))
    rows = math.ceil(len(places) / columns)
    figure = Figure(figsize=(PAGE_WIDTH, PANEL_HEIGHT * 2 * rows + 0.6))
    panels = figure.subplots(2 * rows, columns, squeeze=False)
    for panel in panels.flat:
        panel.set_visible(False)
    for position, (place, by_operator) in enumerate(places.items()):
        above, below = (panels[2 * (position // columns) + part, position % columns] for part in (0, 1))
        above.set_title(place, fontsize=7)
        above.set_ylabel("loss (nats)" if position % columns == 0 else "")
        below.set_ylabel("on the plateau" if position % columns == 0 else "")
        below.set_xlabel("step")
        for panel in (above, below):
            panel.set_visible(True)
        for attention, runs in by_operator.items():
            whole, first, last = _curves(runs), runs.cell.pretrain.evaluate_every, runs.cell.pretrain.steps
            draw_seeds(above, whole.columns, whole.to_numpy(), looks[attention], marker="")
            draw_survival(below, runs.exits, first, last, looks[attention])
            for panel in (above, below):
                set_log_steps(panel, first, last, TICKS)
        below.axhline(0.5, color=GREY, linewidth=0.4)
    handles = [panels[0, 0].plot([], [], **look.line(), label=name)[0] for name, look in looks.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), fontsize=7, frameon=False)
    return figure


def _curves(runs: Runs) -> pd.DataFrame:
    """The losses of the runs that did not diverge: a row per seed, a column per step."""
    steps = max(runs.frame["steps_evaluated"], key=len)
    return pd.DataFrame([losses for losses in runs.frame["losses"] if len(losses) == len(steps)], columns=steps)
