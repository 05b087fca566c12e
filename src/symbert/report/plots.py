"""A figure and its files: pictures, its caption as text, and LaTeX that puts the pdf with its caption into a paper."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from symbert.errors import UsageError
from symbert.files import write_text
from symbert.report.formats import caption_and_explanation
from symbert.report.latex import latex_note, latex_text
from symbert.report.style import WIDTH, save_figure

HIGHEST = r"0.8\textheight"  # of a figure in LaTeX: room for its caption is left on the page


@dataclass(frozen=True)
class Plot:
    """What the function of a figure returns: the figure, without title or notes, and what its caption has to add.

    The caption begins with the first paragraph of the function's docstring. `caption` adds what only the data say:
    where they come from, stand-ins, seeds; and after an empty line an explanation, which readers can do without.
    """

    figure: Figure
    caption: str = ""


def write_plot(plot: Plot, caption: str, output: list[Path]) -> None:
    """Write the figure to each file in the format of its suffix; `caption` is that of the docstring.

    UsageError for an unknown suffix.
    """
    for path in output:
        if path.suffix not in (*PICTURES, *TEXTS):
            raise UsageError(
                f"{path}: no figure format for '{path.suffix}'; choose from {', '.join([*PICTURES, *TEXTS])}"
            )
    save_figure(plot.figure, [path for path in output if path.suffix in PICTURES])
    for path in output:
        if path.suffix in TEXTS:
            write_text(path, TEXTS[path.suffix](plot, f"{caption} {plot.caption}", path.stem))


def _to_text(plot: Plot, text: str, stem: str) -> str:
    """Caption and explanation, each a paragraph."""
    return "\n\n".join(filter(None, caption_and_explanation(text))) + "\n"


def _to_latex(plot: Plot, text: str, stem: str) -> str:
    """A `figure`, or a `figure*` where it is two columns wide, around the pdf of the same name. Needs graphicx."""
    place = "figure*" if plot.figure.get_figwidth() > WIDTH else "figure"
    caption, explanation = caption_and_explanation(text)
    lines = [
        rf"\begin{{{place}}}",
        r"\centering",
        rf"\includegraphics[width=\linewidth,height={HIGHEST},keepaspectratio]{{{stem}.pdf}}",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{fig:{stem}}}",
        *([latex_note(explanation)] if explanation else []),
        rf"\end{{{place}}}",
    ]
    return "\n".join(lines) + "\n"


PICTURES = (".png", ".pdf")
TEXTS: dict[str, Callable[[Plot, str, str], str]] = {".txt": _to_text, ".tex": _to_latex}
