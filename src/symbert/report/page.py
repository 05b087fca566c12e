"""The command that writes the page: every table and figure of an experiment in one HTML file that opens offline.

Figures and files stand in it as data, and nothing else is loaded: the page itself forbids scripts and addresses.
"""

import base64
from dataclasses import dataclass
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from urllib.parse import quote

from symbert import __version__
from symbert.errors import DataError, UsageError
from symbert.files import write_text
from symbert.report import captions
from symbert.report.document import body_of
from symbert.report.exhibits import Exhibit, exhibit_of
from symbert.report.stylesheet import STYLESHEET
from symbert.settings import ReportSettings, read_settings

PNG = b"\x89PNG\r\n\x1a\n"
PIXEL = 0.64  # CSS pixels per pixel of a figure: its text of 8 pt is as large as a table's
FILES = {  # other formats of tables and figures, with their media types
    ".csv": "text/csv;charset=utf-8",
    ".md": "text/markdown;charset=utf-8",
    ".tex": "application/x-tex;charset=utf-8",
    ".pdf": "application/pdf",
}
NARROW = 800  # pixels up to which a figure leaves room for another beside it
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="symbert $version">
<title>$experiment – symbert</title>
<link rel="icon" href="data:,">
<style>$style</style>
</head>
<body>
<header>
<h1>$experiment</h1>
<p class="subtitle">Attention operators compared as in
<a href="https://arxiv.org/abs/2406.06366">Symmetric Dot-Product Attention for Efficient Training of BERT Language
Models</a> (arXiv 2406.06366): every table and figure of one experiment.</p>
$notice<dl class="facts">
$facts
</dl>
</header>
<nav aria-labelledby="contents">
<h2 id="contents">Contents</h2>
<ul>
$contents
</ul>
</nav>
<main>
$chapters
</main>
<footer>Written by symbert $version. The page loads nothing: it can be kept, sent and printed as one file. Links to
files save what the page itself holds.</footer>
</body>
</html>
""")


@dataclass(frozen=True)
class Shown:
    """A table or figure on the page, as HTML."""

    exhibit: Exhibit
    body: str
    is_narrow: bool = False


def write_page(tables: list[Path], figures: list[Path], settings: Path, output: Path) -> None:
    """Write the report's page.

    `tables` are the .html files of tables, `figures` the .png files; files of the same name in other formats are
    offered with them. UsageError and DataError name a file of another kind.
    """
    shown = sorted([*map(_table, tables), *map(_figure, figures)], key=lambda shown: shown.exhibit.rank)
    write_text(output, _page(read_settings(settings, ReportSettings), shown))


def _table(file: Path) -> Shown:
    """A table from its .html file; UsageError for a file of another format."""
    if file.suffix != ".html":
        raise UsageError(f"{file}: not an .html file of a table; give that format of each table")
    return Shown(exhibit_of("table", file.stem), body_of(file.read_text(encoding="utf-8")) + _links(file))


def _figure(file: Path) -> Shown:
    """A figure from its PNG file; DataError for a file of another format."""
    content, figure = file.read_bytes(), exhibit_of("figure", file.stem)
    if not content.startswith(PNG):
        raise DataError(f"{file}: not a PNG picture; give that format of each figure")
    width, height = (int.from_bytes(content[at : at + 4]) for at in (16, 20))  # in the header, IHDR
    image = (
        f'<img src="{_data("image/png", content)}" '
        f'alt="{escape(figure.caption)}" width="{PIXEL * width:.0f}" height="{PIXEL * height:.0f}">'
    )
    return Shown(figure, f"<figure>\n{image}\n</figure>\n{_links(file)}", width <= NARROW)


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


def _page(report: ReportSettings, exhibits: list[Shown]) -> str:
    chapters = [(name, list(group)) for name, group in groupby(exhibits, key=lambda shown: shown.exhibit.chapter)]
    return PAGE.substitute(
        version=__version__,
        experiment=escape(report.experiment),
        style=STYLESHEET,
        notice=_notice(report),
        facts=_facts(report),
        contents="\n".join(_entry(*chapter) for chapter in chapters),
        chapters="\n".join(_chapter(*chapter) for chapter in chapters),
    )


def _notice(settings: ReportSettings) -> str:
    """What a reader must know before any number; empty where the experiment is the paper's."""
    text = " ".join(_warnings(settings))
    return f'<aside class="notice"><p>{escape(text)}</p></aside>\n' if text else ""


def _warnings(settings: ReportSettings) -> list[str]:
    if captions.is_imported(settings):
        return ["Imported scores: others trained and scored these models; only tables and figures are made here."]
    if captions.is_the_papers(settings):
        return []
    stand_ins = []
    if settings.corpus_source == "embedded":
        stand_ins.append("The corpus is a stand-in made from documentation text.")
    if captions.has_stand_ins(settings):
        stand_ins.append("The tasks are stand-ins made from documentation text, not GLUE.")
    told = "Captions name tasks that are stand-ins or have other rows than GLUE’s."
    notes = stand_ins if captions.has_stand_ins(settings) else [*stand_ins, told]
    return [*notes, "This is not the paper’s experiment: its numbers are not comparable with the paper’s."]


def _facts(settings: ReportSettings) -> str:
    computed = {} if captions.is_imported(settings) else {"Scale": settings.scale, "Recipe": settings.recipe}
    facts = computed | {"Corpus": captions.corpus_of(settings), "Tasks": captions.tasks_of(settings)}
    return "\n".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts.items())


def _entry(chapter: str, exhibits: list[Shown]) -> str:
    """A chapter's lines in the table of contents."""
    lines = [f'<li><a href="#{quote(shown.exhibit.id)}">{escape(shown.exhibit.heading)}</a></li>' for shown in exhibits]
    return f"<li>{escape(chapter)}\n<ul>\n{chr(10).join(lines)}\n</ul></li>"


def _chapter(name: str, exhibits: list[Shown]) -> str:
    bodies = "\n".join(_section(shown) for shown in exhibits)
    return f'<section>\n<h2>{escape(name)}</h2>\n<div class="exhibits">\n{bodies}\n</div>\n</section>'


def _section(shown: Shown) -> str:
    narrow = " narrow" if shown.is_narrow else ""
    heading = escape(shown.exhibit.heading)
    return f'<div class="exhibit{narrow}" id="{escape(shown.exhibit.id)}">\n<h3>{heading}</h3>\n{shown.body}</div>'
