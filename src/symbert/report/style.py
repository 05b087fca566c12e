"""How figures look: one place for sizes, fonts, and the colour, marker and line of each operator.

Colours are Okabe and Ito's, which people with colour-blindness can tell apart; markers and dashes tell
the same story in grey. Figures are as wide as one or two columns of a paper: no text is smaller than 8 pt in print.
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.colors import is_color_like
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from symbert.errors import ConfigError, UsageError
from symbert.files import publish
from symbert.operators import OPERATORS, Description, Operator
from symbert.report.order import attentions

WIDTH, PAGE_WIDTH = 3.5, 7.0  # inches: of a column of a paper, and of its two columns
DPI = 200
INK, GREY, FAINT = "#222222", "#666666", "#DDDDDD"
MARK: dict[str, Any] = {"markersize": 6.5, "markeredgecolor": INK, "markeredgewidth": 0.8}  # a point to look at

RC: dict[str, Any] = {
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.05,
    "figure.constrained_layout.w_pad": 0.05,
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.labelsize": 8,
    "axes.labelcolor": INK,
    "axes.edgecolor": GREY,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "text.color": INK,
    "lines.linewidth": 1.3,
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Look:
    """The looks of one operator's curve."""

    color: str
    marker: str
    linestyle: Any

    def line(self, **changes: Any) -> dict[str, Any]:
        """Keyword arguments of a curve with its markers."""
        face = {"markersize": 4, "markeredgecolor": "white", "markeredgewidth": 0.5}
        return {"color": self.color, "marker": self.marker, "linestyle": self.linestyle, **face, **changes}


LINES: dict[str, Any] = {  # by the words that an operator's class has for its line
    "solid": "-",
    "dotted": (0, (1, 1)),
    "dashed": (0, (4, 1.5)),
    "long-dashed": (0, (7, 1.5)),
    "dash-dot": (0, (5, 1.2, 1, 1.2)),
    "dash-dot-dot": (0, (5, 1.2, 1, 1.2, 1, 1.2)),
}
SPARE = (  # looks for operators whose class describes none
    Look("#7A5C00", "<", LINES["dotted"]),
    Look("#5A3E85", ">", LINES["dashed"]),
    Look("#00604A", "h", LINES["dash-dot"]),
    Look("#8C2D04", "p", LINES["long-dashed"]),
)
MAJORITY_LINE: dict[str, Any] = {"color": GREY, "linestyle": LINES["dotted"], "linewidth": 1.2}
LIMIT_LINE: dict[str, Any] = {"color": "#B22222", "linestyle": LINES["dashed"], "linewidth": 1.0}


def looks_of(names: Iterable[str]) -> dict[str, Look]:
    """The look of each operator, in the order of tables: as its class describes it, or else one that no other has.

    A known operator has the same look in every figure.
    """
    ordered, looks, spare = attentions(names), {}, cycle(SPARE)
    for name in attentions([*OPERATORS, *ordered]):
        own = _description(OPERATORS[name]) if name in OPERATORS else Description()
        if own.color and own.marker and own.line:
            looks[name] = Look(own.color, own.marker, LINES[own.line])
        else:
            look = next(spare)
            linestyle = LINES[own.line] if own.line else look.linestyle
            looks[name] = Look(own.color or look.color, own.marker or look.marker, linestyle)
    return {name: looks[name] for name in ordered}


def _description(operator: Operator) -> Description:
    """The description of an operator's class; ConfigError for looks that matplotlib does not have."""
    own = operator.description
    unknown = {
        "color": own.color and not is_color_like(own.color),
        "marker": own.marker and own.marker not in Line2D.markers,
        "line": own.line and own.line not in LINES,
    }
    for key, is_unknown in unknown.items():
        if is_unknown:
            known = ", ".join(LINES) if key == "line" else f"the {key}s of matplotlib"
            raise ConfigError(f"{operator.path}: '{key}' is {getattr(own, key)!r}; choose from {known}")
    return own


def house_style() -> AbstractContextManager[None]:
    """The context in which figures are drawn and saved."""
    return rc_context(RC)


def save_figure(figure: Figure, output: list[Path]) -> None:
    """Publish the figure as each output's suffix says (png, pdf); the same figure gives the same bytes."""
    metadata = {".png": {"Software": None}, ".pdf": {"CreationDate": None, "Producer": None, "Creator": None}}
    for path in output:
        if path.suffix not in metadata:
            raise UsageError(f"{path}: no figure format for '{path.suffix}'; choose from {', '.join(metadata)}")
    for path in output:
        picture = BytesIO()  # an error of the disk while matplotlib writes a pdf is an AttributeError
        figure.savefig(picture, format=path.suffix[1:], dpi=DPI, metadata=metadata[path.suffix])
        with publish(path) as temporary:
            temporary.write_bytes(picture.getvalue())
