"""Figure 1: the papers' operators as diagrams, from the hidden states of two tokens to what the first one gets.

The controls differ from an operator in their initial values only and are not drawn. Lengths are inches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.operators import OPERATORS
from symbert.report.style import FAINT, GREY, INK, LOOKS, MARK, PAGE_WIDTH, new_figure
from symbert.sizes import SIZES

QUERY, KEY, VALUE = range(3)  # the paths of a diagram: what x asks, what y answers, what y gives
TOKENS = {"x": [QUERY], "y": [KEY, VALUE]}


@dataclass(frozen=True)
class Diagram:
    """What an operator learns: projections with the paths that go through them, and factors by path."""

    projections: dict[str, Sequence[int]]
    factors: dict[int, str]


DIAGRAMS: dict[str, Diagram] = {
    "original": Diagram({"Q": [QUERY], "K": [KEY], "V": [VALUE]}, {}),
    "symmetric": Diagram({"Q": [QUERY, KEY], "V": [VALUE]}, {}),
    "pairwise": Diagram({"Q": [QUERY, KEY], "V": [VALUE]}, {QUERY: "S"}),
    "shared": Diagram({"P": [QUERY, KEY, VALUE]}, {QUERY: "∘ a", KEY: "∘ b", VALUE: "∘ c"}),
}

COLUMN, HEIGHT = PAGE_WIDTH / len(DIAGRAMS), 4.85
SIDES = ((0.12, 0.68), (0.73, 1.17), (1.22, 1.66))  # in a column, of a box around each path
PATHS, LEFT = [mean(sides) for sides in SIDES], SIDES[QUERY][0]
LEVELS = {"hidden": 1.52, "projection": 2.0, "factor": 2.58, "dot": 3.06, "softmax": 3.46, "mix": 3.86, "output": 4.24}
TITLE, NAME, LOGITS, PARAMETERS, COUNT, NOTE = 4.66, 4.35, 1.16, 0.92, 0.74, 0.46
HALF_HEIGHT = 0.13  # of a box
TINT = 0.25  # of an operator's colour in what it learns
COMPUTED: dict[str, Any] = {"facecolor": "white", "edgecolor": GREY, "linewidth": 0.8}
GIVEN: dict[str, Any] = {"facecolor": FAINT, "edgecolor": FAINT, "linewidth": 0.8}
BASE = SIZES["base"]
NOTES = (
    "Coloured, thick frames: learned; thin frames: computed, in each head. h: hidden size; n: heads; d = h/n.",
    "S: a d × d matrix per head; a, b, c: vectors of length h; ∘: element by element. Parameters: of a layer, "
    "with biases.",
)


@exhibit(
    chapter="Operators",
    place=1,
    heading="Figure 1: the operators",
    caption="Diagram of each operator: the projections that two tokens go through, and what stands between them in "
    "the dot product.",
)
def operators_figure(data: Data) -> Figure:
    """A diagram per operator; what it learns has its colour, what is computed is white."""
    figure = new_figure(HEIGHT, PAGE_WIDTH)
    figure.set_layout_engine("none")
    figure.text(LEFT / PAGE_WIDTH, TITLE / HEIGHT, "How a token x attends to a token y", fontsize=9, fontweight="bold")
    figure.text(LEFT / PAGE_WIDTH, NOTE / HEIGHT, "\n".join(NOTES), va="top", color=GREY, linespacing=1.25)
    for position, (name, diagram) in enumerate(DIAGRAMS.items()):
        axes = figure.add_axes((position / len(DIAGRAMS), 0, 1 / len(DIAGRAMS), 1))
        axes.set(xlim=(0, COLUMN), ylim=(0, HEIGHT))
        axes.set_axis_off()
        _write_name(axes, name)
        _draw_tokens(axes)
        _draw_learned(axes, diagram, _look(name))
        _draw_computed(axes)
        _write_formulas(axes, name, diagram)
    return figure


def _look(name: str) -> dict[str, Any]:
    """Of what an operator learns: its colour around a tint of it."""
    color = LOOKS[name].color
    return {"facecolor": [1 - TINT * (1 - part) for part in to_rgb(color)], "edgecolor": color, "linewidth": 1.6}


def _write_name(axes: Axes, name: str) -> None:
    axes.plot([LEFT + 0.05], [NAME + 0.04], **LOOKS[name].line(**MARK))
    axes.text(LEFT + 0.17, NAME, name, fontweight="bold")


def _draw_tokens(axes: Axes) -> None:
    for token, paths in TOKENS.items():
        _draw_box(axes, "hidden", paths, f"hidden {token}", GIVEN)


def _draw_learned(axes: Axes, diagram: Diagram, look: dict[str, Any]) -> None:
    """Each projection, which a token enters once and leaves on each of its paths, and the factors."""
    for projection, paths in diagram.projections.items():
        _draw_box(axes, "projection", paths, projection, look)
        for token, own in TOKENS.items():
            through = [path for path in own if path in paths]
            if through:
                _draw_arrow(axes, mean(PATHS[path] for path in through), "hidden", "projection")
            for path in through:
                _draw_arrow(axes, PATHS[path], "projection", "factor" if path in diagram.factors else _end(path))
                axes.text(PATHS[path] + 0.04, LEVELS["projection"] + 0.25, f"{projection}({token})", va="center")
    for path, factor in diagram.factors.items():
        _draw_box(axes, "factor", [path], factor, look)
        _draw_arrow(axes, PATHS[path], "factor", _end(path))


def _end(path: int) -> str:
    """Where a path leads."""
    return "mix" if path == VALUE else "dot"


def _draw_computed(axes: Axes) -> None:
    """What every operator does with the three: dot product, softmax, and the weighted sum of values."""
    middle = mean([PATHS[QUERY], PATHS[KEY]])
    _draw_box(axes, "dot", [QUERY, KEY], "dot product / √d", COMPUTED)
    _draw_arrow(axes, middle, "dot", "softmax")
    _draw_box(axes, "softmax", [QUERY, KEY], "softmax over y", COMPUTED)
    _draw_arrow(axes, middle, "softmax", "mix")
    _draw_box(axes, "mix", [QUERY, KEY, VALUE], "weighted sum over y", COMPUTED)
    _draw_arrow(axes, middle, "mix", "output")
    axes.text(middle + 0.06, LEVELS["output"] - HALF_HEIGHT, "output for x", va="center")


def _write_formulas(axes: Axes, name: str, diagram: Diagram) -> None:
    """Logits, parameters of a layer, and how many these are in BERT-base."""
    operator = OPERATORS[name]
    factors = [factor.removeprefix("∘ ") for factor in diagram.factors.values()]
    axes.text(COLUMN / 2, LOGITS, f"{operator.expression.text} / √d", ha="center")
    learned = ", ".join([*diagram.projections, *factors])
    axes.text(COLUMN / 2, PARAMETERS, f"{learned}: {operator.exact.text}", ha="center")
    axes.text(COLUMN / 2, COUNT, f"base: {_count(name):,}{_saved(name)}", ha="center")


def _count(name: str) -> int:
    return OPERATORS[name].count(BASE.hidden_size, BASE.num_attention_heads)


def _saved(name: str) -> str:
    """The share of parameters saved against `original`; empty when there is none."""
    saved = 1 - _count(name) / _count("original")
    return f" (−{100 * saved:.1f} %)" if saved else ""


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
