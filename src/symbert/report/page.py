"""The command that writes the page: every table and figure of an experiment in one HTML file that opens offline.

Figures and files stand in it as data, and nothing else is loaded: the page itself forbids scripts and addresses.
"""

from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from urllib.parse import quote

from symbert import __version__
from symbert.files import write_text
from symbert.report import captions
from symbert.report.exhibits import Exhibit, figure_exhibit, table_exhibit
from symbert.report.stylesheet import STYLESHEET
from symbert.settings import ReportSettings, read_settings

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


def write_page(tables: list[Path], figures: list[Path], settings: Path, output: Path) -> None:
    """Write the report's page.

    `tables` are the .html files of tables, `figures` the .png files; files of the same name in other formats are
    offered with them. UsageError and DataError name a file of another kind.
    """
    exhibits = [*map(table_exhibit, tables), *map(figure_exhibit, figures)]
    ordered = sorted(exhibits, key=lambda exhibit: exhibit.place.rank)
    write_text(output, _page(read_settings(settings, ReportSettings), ordered))


def _page(report: ReportSettings, exhibits: list[Exhibit]) -> str:
    chapters = [(name, list(group)) for name, group in groupby(exhibits, key=lambda exhibit: exhibit.place.chapter)]
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


def _entry(chapter: str, exhibits: list[Exhibit]) -> str:
    """A chapter's lines in the table of contents."""
    lines = [f'<li><a href="#{quote(each.name)}">{escape(each.place.heading)}</a></li>' for each in exhibits]
    return f"<li>{escape(chapter)}\n<ul>\n{chr(10).join(lines)}\n</ul></li>"


def _chapter(name: str, exhibits: list[Exhibit]) -> str:
    bodies = "\n".join(_section(exhibit) for exhibit in exhibits)
    return f'<section>\n<h2>{escape(name)}</h2>\n<div class="exhibits">\n{bodies}\n</div>\n</section>'


def _section(exhibit: Exhibit) -> str:
    narrow = " narrow" if exhibit.is_narrow else ""
    heading = escape(exhibit.place.heading)
    return f'<div class="exhibit{narrow}" id="{escape(exhibit.name)}">\n<h3>{heading}</h3>\n{exhibit.body}</div>'
