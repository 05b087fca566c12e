"""Tables and figures as parts of the page, which holds all that it shows and offers: pictures and files are data."""

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path

from symbert.errors import DataError, UsageError
from symbert.report.contents import Place, place_of
from symbert.report.document import body_of

PNG = b"\x89PNG\r\n\x1a\n"
PIXEL = 0.64  # CSS pixels per pixel of a figure: its text of 8 pt is as large as a table's
FILES = {  # other formats of tables and figures, with their media types
    ".csv": "text/csv;charset=utf-8",
    ".md": "text/markdown;charset=utf-8",
    ".tex": "application/x-tex;charset=utf-8",
    ".pdf": "application/pdf",
}
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


def table_exhibit(file: Path) -> Exhibit:
    """A table from its .html file; UsageError for a file of another format."""
    if file.suffix != ".html":
        raise UsageError(f"{file}: not an .html file of a table; give that format of each table")
    return Exhibit(f"table-{file.stem}", body_of(file.read_text(encoding="utf-8")) + _links(file))


def figure_exhibit(file: Path) -> Exhibit:
    """A figure from its PNG file; DataError for a file of another format."""
    content, name = file.read_bytes(), f"figure-{file.stem}"
    if not content.startswith(PNG):
        raise DataError(f"{file}: not a PNG picture; give that format of each figure")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))  # in the header, IHDR
    image = (
        f'<img src="{_data("image/png", content)}" '
        f'alt="{escape(place_of(name).description)}" width="{PIXEL * width:.0f}" height="{PIXEL * height:.0f}">'
    )
    return Exhibit(name, f"<figure>\n{image}\n</figure>\n{_links(file)}", width <= NARROW)


def _links(file: Path) -> str:
    """Links to the other formats of a table or figure, which are in the links themselves."""
    others = [other for suffix in FILES if (other := file.with_suffix(suffix)).is_file()]
    links = [
        f'<a download="{escape(other.name)}" href="{_data(FILES[other.suffix], other.read_bytes())}">'
        f"{escape(other.name)}</a>"
        for other in others
    ]
    return f'<p class="files">Files: {", ".join(links)}</p>\n' if links else ""


def _data(kind: str, content: bytes) -> str:
    """Content as an address, which leads nowhere else."""
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"
