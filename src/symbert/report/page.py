"""The page: summary, tables and figures of an experiment in one HTML file that opens offline.

Figures and files stand in it as data, and nothing else is loaded: the page itself forbids scripts and addresses.
"""

import base64
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from markupsafe import Markup

from symbert import __version__
from symbert.configuration import ReportSettings
from symbert.files import write_text
from symbert.report import captions
from symbert.report.exhibits import CHAPTERS, Exhibit, exhibit_of
from symbert.report.formats import TEMPLATES, caption_and_explanation
from symbert.report.statistics import STAND_IN

PIXEL = 0.64  # CSS pixels per pixel of a figure: its text of 8 pt is as large as a table's
FILES = {  # other formats of tables and figures, with their media types
    ".csv": "text/csv;charset=utf-8",
    ".md": "text/markdown;charset=utf-8",
    ".tex": "application/x-tex;charset=utf-8",
    ".pdf": "application/pdf",
    ".txt": "text/plain;charset=utf-8",
}
# Chapters that a reader opens: what is compared, and how it was made.
FOLDED = ("Operators", "GLUE", "Corpus", "Provenance")
NARROW = 800  # pixels up to which a figure leaves room for another beside it
FIGURE_1 = Exhibit(
    "figure",
    "figure1_operators",
    "Operators",
    "Figure 1: the operators",
    "How a token x attends to a token y, by each operator: the projections that two tokens go through, and what stands "
    "between them in the dot product. What an operator learns has its colour, what is computed is white."
    "\n\nColoured, thick frames: learned; thin frames: computed, in each head. h: hidden size; n: heads; d = h/n. "
    "S: a d × d matrix per head; a, b, c: vectors of length h; ∘: element by element. Parameters: of a layer, with "
    "biases.",
    place=1,
)


@dataclass(frozen=True)
class Shown:
    """A table or figure on the page: HTML, and addresses of its other formats, which hold them, by name."""

    exhibit: Exhibit
    body: Markup
    files: dict[str, str]
    is_narrow: bool = False


def write_page(folder: Path, settings: ReportSettings) -> None:
    """Write report.html from the tables, figures and the summary in a folder; other formats are offered with them.

    The page says at its top which data are stand-ins, and not again in every heading as single files do.
    """
    wording, summary = captions.wording_of(settings), folder / "texts/summary.txt"
    tables, figures = sorted(folder.glob("tables/*.html")), sorted(folder.glob("figures/*.png"))
    shown = [*map(_table, tables), *map(_figure, figures), _operators()]
    shown.sort(key=lambda shown: shown.exhibit.rank)
    page = TEMPLATES.get_template("page.html").render(
        version=__version__,
        experiment=settings.experiment,
        warnings=wording.warnings,
        summary=_shortened(summary.read_text(encoding="utf-8")).splitlines() if summary.is_file() else [],
        first=CHAPTERS[0],
        folded=FOLDED,
        facts=wording.facts | captions.data_of(settings),
        chapters=[(name, list(group)) for name, group in groupby(shown, key=lambda shown: shown.exhibit.chapter)],
    )
    write_text(folder / "report.html", page)


def body_of(document: str) -> str:
    """What stands in the body of a table's .html file."""
    return document.partition("<body>\n")[2].rpartition("</body>\n")[0]


def _shortened(text: str) -> str:
    return text.replace(STAND_IN, "")


def _table(file: Path) -> Shown:
    """A table from its .html file."""
    body = Markup(_shortened(body_of(file.read_text(encoding="utf-8"))))  # escaped when it was written
    return Shown(exhibit_of("table", file.stem), body, _files(file))


def _figure(file: Path) -> Shown:
    """A figure from its PNG file."""
    content, figure = file.read_bytes(), exhibit_of("figure", file.stem)
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))  # in the header, IHDR
    text = _shortened(file.with_suffix(".txt").read_text(encoding="utf-8"))
    size = {"width": round(PIXEL * width), "height": round(PIXEL * height)}
    body = _body_of_figure(figure, text, _data("image/png", content), size)
    return Shown(figure, body, _files(file), width <= NARROW)


def _operators() -> Shown:
    """Figure 1, a drawing of the operators that are built in."""
    content = (Path(__file__).parent / "templates/figure1.svg").read_bytes()
    size = {"width": 720, "height": 404}  # as the file says
    return Shown(FIGURE_1, _body_of_figure(FIGURE_1, FIGURE_1.caption, _data("image/svg+xml", content), size), {})


def _body_of_figure(figure: Exhibit, text: str, source: str, size: dict[str, int]) -> Markup:
    caption, explanation = caption_and_explanation(text)
    alternative, _ = caption_and_explanation(figure.caption)
    parts = {"source": source, "alternative": alternative, "caption": caption, "explanation": explanation}
    return Markup(TEMPLATES.get_template("figure.html").render(**parts, **size))


def _files(file: Path) -> dict[str, str]:
    """The other formats of a table or figure, by name."""
    others = [other for suffix in FILES if (other := file.with_suffix(suffix)).is_file()]
    return {other.name: _data(FILES[other.suffix], other.read_bytes()) for other in others}


def _data(kind: str, content: bytes) -> str:
    """Content as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
