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
from symbert.report.exhibits import Exhibit
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
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
# Chapters that a reader opens: what is compared, and how it was made.
FOLDED = ("Operators", "GLUE", "Corpus", "Provenance")
NARROW = 512  # CSS pixels up to which a figure leaves room for another beside it


@dataclass(frozen=True)
class Written:
    """An exhibit of a chapter, and its files, that of the page first."""

    chapter: str
    exhibit: Exhibit
    files: list[Path]

    @property
    def id(self) -> str:
        """The anchor of the exhibit on the page: 'table-corpus'."""
        return f"{'table' if self.files[0].suffix == '.html' else 'figure'}-{self.exhibit.name}"


@dataclass(frozen=True)
class Shown:
    """A table or figure on the page: HTML, and addresses of its other formats, which hold them, by name."""

    id: str
    heading: str
    body: Markup
    files: dict[str, str]
    is_narrow: bool = False


def write_page(folder: Path, settings: ReportSettings, written: list[Written]) -> None:
    """Write report.html from the files of exhibits in a folder; other formats are offered with them.

    The page says at its top which data are stand-ins, and not again in every heading as single files do.
    """
    wording = captions.wording_of(settings)
    texts = [exhibit for exhibit in written if exhibit.files[0].suffix == ".txt"]
    chapters = groupby((exhibit for exhibit in written if exhibit not in texts), key=lambda exhibit: exhibit.chapter)
    page = TEMPLATES.get_template("page.html").render(
        version=__version__,
        experiment=settings.experiment,
        warnings=wording.warnings,
        summary=[line for text in texts for line in _shortened(_text_of(text.files[0])).splitlines()],
        folded=FOLDED,
        glossary=captions.GLOSSARY,
        facts=wording.facts | captions.data_of(settings),
        chapters=[(name, list(map(_shown, group))) for name, group in chapters],
    )
    write_text(folder / "report.html", page)


def body_of(document: str) -> str:
    """What stands in the body of a table's .html file."""
    return document.partition("<body>\n")[2].rpartition("</body>\n")[0]


def _shortened(text: str) -> str:
    return text.replace(STAND_IN, "")


def _text_of(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _shown(written: Written) -> Shown:
    """A table from its .html file, a figure from its .png with the caption of its .txt, or a drawing."""
    first, heading = written.files[0], written.exhibit.heading
    others = {file.suffix: file for file in written.files[1:]}
    addresses = {file.name: _data(FILES[suffix], file.read_bytes()) for suffix, file in others.items()}
    if first.suffix == ".html":
        return Shown(written.id, heading, Markup(_shortened(body_of(_text_of(first)))), addresses)  # escaped already
    content, text = first.read_bytes(), written.exhibit.caption
    if first.suffix == ".svg":
        width, height = 720, 404  # as the file says
    else:
        width, height = (round(PIXEL * int.from_bytes(content[at : at + 4])) for at in (16, 20))  # in the header, IHDR
        text = _shortened(_text_of(others[".txt"]))
    caption, explanation = caption_and_explanation(text)
    body = TEMPLATES.get_template("figure.html").render(
        source=_data(PICTURES[first.suffix], content),
        alternative=caption_and_explanation(written.exhibit.caption)[0],
        width=width,
        height=height,
        caption=caption,
        explanation=explanation,
    )
    return Shown(written.id, heading, Markup(body), addresses, width <= NARROW)


def _data(kind: str, content: bytes) -> str:
    """Content as an address that holds it."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
