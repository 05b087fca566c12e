"""Figure 1: operators as diagrams, from the hidden states of two tokens to what the first one gets.

Controls, which have the parameters of another operator, are not drawn. Lengths are inches.
"""

import math
from collections.abc import Sequence
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from symbert.operators import OPERATORS, Operator
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.order import attentions
from symbert.report.plots import Plot
from symbert.report.style import FAINT, GREY, INK, MARK, PAGE_WIDTH, looks_of
from symbert.sizes import SIZES

QUERY, KEY, VALUE = "query", "key", "value"  # of a diagram: what x asks, what y answers, what y gives
TOKENS = {"x": [QUERY], "y": [KEY, VALUE]}
UNDESCRIBED = {"f": "query key value"}  # of an operator whose class does not describe them

COLUMNS, BOTTOM, TOP = 4, 0.62, 4.55  # of a row of diagrams
HEIGHT = TOP - BOTTOM
COLUMN = PAGE_WIDTH / COLUMNS
SIDES = {QUERY: (0.12, 0.68), KEY: (0.73, 1.17), VALUE: (1.22, 1.66)}  # in a column, of a box around each path
CENTRES, LEFT = {path: mean(sides) for path, sides in SIDES.items()}, SIDES[QUERY][0]
LEVELS = {"hidden": 1.52, "projection": 2.0, "factor": 2.58, "dot": 3.06, "softmax": 3.46, "mix": 3.86, "output": 4.24}
NAME, LOGITS, PARAMETERS, COUNT = 4.35, 1.16, 0.92, 0.74
HALF_HEIGHT = 0.13  # of a box
WIDEST = 32  # letters of a line
TINT = 0.25  # of an operator's colour in what it learns
COMPUTED: dict[str, Any] = {"facecolor": "white", "edgecolor": GREY, "linewidth": 0.8}
GIVEN: dict[str, Any] = {"facecolor": FAINT, "edgecolor": FAINT, "linewidth": 0.8}
BASE, ORIGINAL = SIZES["base"], OPERATORS["original"]
READING = (
    "Coloured, thick frames: learned; thin frames: computed, in each head. h: hidden size; n: heads; d = h/n. "
    "{symbols}; ∘: element by element. Parameters: of a layer, with biases."
)


@exhibit(chapter="Operators", place=1, heading="Figure 1: the operators")
def operators_figure(data: Data) -> Plot:
    """How a token x attends to a token y, by each operator: the projections that two tokens go through, and what stands
    between them in the dot product. What an operator learns has its colour, what is computed is white.
    """
    drawn = [OPERATORS[name] for name in attentions(OPERATORS) if not OPERATORS[name].description.control_of]
    rows = math.ceil(len(drawn) / COLUMNS)
    figure = Figure(figsize=(PAGE_WIDTH, rows * HEIGHT))
    figure.set_layout_engine("none")
    looks = looks_of(operator.name for operator in drawn)
    for position, operator in enumerate(drawn):
        row, column = divmod(position, COLUMNS)
        axes = figure.add_axes((column / COLUMNS, (rows - 1 - row) / rows, 1 / COLUMNS, 1 / rows))
        axes.set(xlim=(0, COLUMN), ylim=(BOTTOM, TOP))
        axes.set_axis_off()
        axes.plot([LEFT + 0.05], [NAME + 0.04], **looks[operator.name].line(**MARK))
        axes.text(LEFT + 0.17, NAME, operator.name, fontweight="bold")
        for token, paths in TOKENS.items():
            _draw_box(axes, "hidden", paths, f"hidden {token}", GIVEN)
        _draw_learned(axes, operator, looks[operator.name].color)
        _draw_computed(axes)
        _write_formulas(axes, operator)
    symbols = "; ".join(operator.description.symbols for operator in drawn if operator.description.symbols)
    return Plot(figure, f"\n\n{READING.format(symbols=symbols)}")


def _draw_learned(axes: Axes, operator: Operator, color: str) -> None:
    """Each projection, which a token enters once and leaves on each of its paths, and the factors."""
    factors = operator.description.factors
    look = {"facecolor": [1 - TINT * (1 - part) for part in to_rgb(color)], "edgecolor": color, "linewidth": 1.6}
    ends = {path: "mix" if path == VALUE else "dot" for path in SIDES}
    for projection, words in (operator.description.projections or UNDESCRIBED).items():
        paths = words.split()
        _draw_box(axes, "projection", paths, projection, look)
        for token, own in TOKENS.items():
            through = [path for path in own if path in paths]
            if through:
                _draw_arrow(axes, mean(CENTRES[path] for path in through), "hidden", "projection")
            for path in through:
                _draw_arrow(axes, CENTRES[path], "projection", "factor" if path in factors else ends[path])
                axes.text(CENTRES[path] + 0.04, LEVELS["projection"] + 0.25, f"{projection}({token})", va="center")
    for path, factor in factors.items():
        _draw_box(axes, "factor", [path], factor, look)
        _draw_arrow(axes, CENTRES[path], "factor", ends[path])


def _draw_computed(axes: Axes) -> None:
    """What every operator does with the three: dot product, softmax, and the weighted sum of values."""
    middle = mean([CENTRES[QUERY], CENTRES[KEY]])
    _draw_box(axes, "dot", [QUERY, KEY], "dot product / √d", COMPUTED)
    _draw_arrow(axes, middle, "dot", "softmax")
    _draw_box(axes, "softmax", [QUERY, KEY], "softmax over y", COMPUTED)
    _draw_arrow(axes, middle, "softmax", "mix")
    _draw_box(axes, "mix", [QUERY, KEY, VALUE], "weighted sum over y", COMPUTED)
    _draw_arrow(axes, middle, "mix", "output")
    axes.text(middle + 0.06, LEVELS["output"] - HALF_HEIGHT, "output for x", va="center")


def _write_formulas(axes: Axes, operator: Operator) -> None:
    """Logits, parameters of a layer, and how many these are in BERT-base; of each what the operator's class states."""
    description = operator.description
    if operator.formula:
        axes.text(COLUMN / 2, LOGITS, f"{operator.formula} / √d", ha="center")
    if not description.parameters:
        return
    factors = [factor.removeprefix("∘ ") for factor in description.factors.values()]
    learned = ", ".join([*(description.projections or UNDESCRIBED), *factors])
    formula = f"{learned}: {description.parameters}"
    if len(formula) > WIDEST and description.leading:
        formula = f"{learned}: {description.leading} + …"
    axes.text(COLUMN / 2, PARAMETERS, formula, ha="center")
    count, of_original = (each.count(BASE.hidden_size, BASE.num_attention_heads) for each in (operator, ORIGINAL))
    saved = 1 - count / of_original
    share = f" (−{100 * saved:.1f} %)" if saved > 0 else f" (+{-100 * saved:.1f} %)" if saved else ""
    axes.text(COLUMN / 2, COUNT, f"base: {count:,}{share}", ha="center")


def _draw_box(axes: Axes, level: str, paths: Sequence[int], text: str, look: dict[str, Any]) -> None:
    """A box around the paths with a text in its middle."""
    left, right, bottom = SIDES[paths[0]][0], SIDES[paths[-1]][1], LEVELS[level] - HALF_HEIGHT
    shape = {"boxstyle": "round,pad=0,rounding_size=0.05", "zorder": 2}
    axes.add_patch(FancyBboxPatch((left, bottom), right - left, 2 * HALF_HEIGHT, **shape, **look))
    axes.text((left + right) / 2, LEVELS[level], text, ha="center", va="center_baseline")


def _draw_arrow(axes: Axes, x: float, before: str, after: str) -> None:
    start, end = (x, LEVELS[before] + HALF_HEIGHT), (x, LEVELS[after] - HALF_HEIGHT)
    line = {"color": INK, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 1}
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=7, **line))
