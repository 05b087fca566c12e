"""Tables and figures as parts of the page: a table is its .html file, a picture stands in the page as data."""

import base64
import os
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from urllib.parse import quote

from symbert.errors import DataError, UsageError
from symbert.report.contents import Place, place_of
from symbert.report.formats import FORMATS

PNG = b"\x89PNG\r\n\x1a\n"
PIXEL = 0.64  # CSS pixels per pixel of a figure: its text of 8 pt is as large as a table's
DRAWN = (".pdf",)  # formats of figures beside PNG
NARROW = 800  # pixels up to which a figure leaves room for another beside it


@dataclass(frozen=True)
class Exhibit:
    """A table or figure on the page, as HTML; `name` is what `symbert.report.contents` calls it."""

    name: str
    body: str
    is_narrow: bool = False

    @property
    def place(self) -> Place:
        """Where it stands."""
        return place_of(self.name)


def table_exhibit(file: Path, page: Path) -> Exhibit:
    """A table from its .html file, for a page that will be at `page`; UsageError for a file of another format."""
    if file.suffix != ".html":
        raise UsageError(f"{file}: not an .html file of a table; give that format of each table")
    return Exhibit(f"table-{file.stem}", file.read_text(encoding="utf-8") + _links(file, page, FORMATS))


def figure_exhibit(file: Path, page: Path) -> Exhibit:
    """A figure from its PNG file, for a page that will be at `page`; DataError for a file of another format."""
    content, name = file.read_bytes(), f"figure-{file.stem}"
    if not content.startswith(PNG):
        raise DataError(f"{file}: not a PNG picture; give that format of each figure")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))  # in the header, IHDR
    image = (
        f'<img src="data:image/png;base64,{base64.b64encode(content).decode()}" '
        f'alt="{escape(place_of(name).description)}" width="{PIXEL * width:.0f}" height="{PIXEL * height:.0f}">'
    )
    return Exhibit(name, f"<figure>\n{image}\n</figure>\n{_links(file, page, DRAWN)}", width <= NARROW)


def _links(file: Path, page: Path, formats: Iterable[str]) -> str:
    """Links to the other formats of a table or figure, where they lie."""
    others = [file.with_suffix(suffix) for suffix in formats if suffix != file.suffix]
    others = [other for other in others if other.is_file()]
    links = [f'<a href="{quote(os.path.relpath(other, page.parent))}">{escape(other.name)}</a>' for other in others]
    return f'<p class="files">Files: {", ".join(links)}</p>\n' if links else ""
