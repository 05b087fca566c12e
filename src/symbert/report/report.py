"""The command `report`: one process reads the files of an experiment, and writes its tables, figures and page.

The page is one HTML file that opens offline: pictures stand in it as data, nothing is loaded, and it forbids scripts.
"""

import base64
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Annotated

from markupsafe import Markup
from matplotlib.figure import Figure

from symbert import __version__
from symbert.files import copy_file, write_text
from symbert.glue.tasks import SUITES
from symbert.paths import REPORTED
from symbert.report import formats, setting
from symbert.report.collect import Collection, collect, read_record
from symbert.report.exhibits import EXHIBITS, OF_SWEEP, Made
from symbert.report.formats import TEMPLATES, Table, Words, body_of, write_table
from symbert.report.statistics import STAND_IN
from symbert.report.style import DPI, house_style, write_figure
from symbert.report.summary import FIRST
from symbert.report.tidy import tables_of, write_csv

FORMATS = {"tables": ("csv", "md", "tex"), "figures": ("png", "pdf"), "texts": ("txt",)}  # by kind
MEDIA = {".png": "image/png", ".svg": "image/svg+xml"}
FOLDED = ("Operators", "GLUE", "Corpus", "Provenance")  # chapters that a reader opens
PIXEL = 0.64  # CSS pixels per pixel of a figure: its text of 8 pt is as large as a table's
NARROW = 512  # CSS pixels up to which a figure leaves room for another beside it
DRAWING = (720, 404)  # CSS pixels, as its file says


@dataclass(frozen=True)
class Shown:
    """An exhibit of a chapter: its files, and what the page shows of it."""

    chapter: str
    id: str  # of the page: 'table-corpus'
    heading: str
    files: list[Path]
    body: Markup | list[str]  # HTML, or the lines of a text
    is_narrow: bool = False


def report(folder: Annotated[Path, "folder of the experiment: results/NAME, with its experiment.json"], /) -> None:
    """Write every table, figure and text of an experiment, and one page with all of them, into its folder report/.

    `folder` is results/<experiment>, whose experiment.json names what is read. DataError names a file that is missing,
    damaged or of another experiment.
    """
    folder, record = read_record(folder)
    data, output = collect(record), folder / "report"
    shown = write_exhibits(data, output)
    tables = [file for name, rows in tables_of(data).items() for file in write_csv(output / f"data/{name}.csv", rows)]
    surplus = {file for kind in (*FORMATS, "data") for file in output.glob(f"{kind}/*")}
    surplus |= {*output.glob("experiment-*.json")}
    for file in surplus.difference(tables, *(exhibit.files for exhibit in shown)):
        file.unlink(missing_ok=True)  # of an earlier configuration
    write_page(output, data, shown)
    copy_file(folder / "experiment.json", folder / REPORTED.format(key=record["key"]))


def write_exhibits(data: Collection, folder: Path) -> list[Shown]:
    """Write every exhibit that there are data for, in all formats, in the order of the page.

    Of a sweep of other keys these are its escapes.
    """
    chosen = OF_SWEEP if data.grids else None
    shown, note = [], setting.note_of(data)
    with house_style():
        for chapter, exhibits in EXHIBITS.items():
            for exhibit in exhibits:
                made = exhibit.function(data) if chosen is None or exhibit.name in chosen else None
                for size, part in (made if isinstance(made, dict) else {"": made} if made is not None else {}).items():
                    heading = f"{exhibit.heading}, {size}" if size else exhibit.heading
                    words = Words(f"{exhibit.name}_{size}" if size else exhibit.name, exhibit.caption, note)
                    shown.append(write_exhibit(part, words, folder, chapter, heading))
    return shown


def write_exhibit(made: Made, words: Words, folder: Path, chapter: str, heading: str) -> Shown:
    """Write a table, figure or text in all formats of its kind."""
    kind = "tables" if isinstance(made, Table) else "texts" if isinstance(made, list) else "figures"
    files = [made] if isinstance(made, Path) else [folder / kind / f"{words.name}.{end}" for end in FORMATS[kind]]
    place = chapter, f"{kind[:-1]}-{words.name}", heading, files
    if isinstance(made, Table):
        write_table(made, words, files)
        return Shown(*place, body_of(made, words))
    if isinstance(made, list):
        write_text(files[0], "\n".join(made) + "\n")
        return Shown(*place, made)
    size = DRAWING
    if isinstance(made, Figure):
        write_figure(made, words.note, files)
        size = [round(PIXEL * DPI * inches) for inches in made.get_size_inches()]
    picture = Markup(
        '<figure>\n<img src="{}" alt="{}" width="{}" height="{}">\n<figcaption>{}</figcaption>\n</figure>\n'
    )
    body = picture.format(address_of(files[0]), heading, *size, words.caption)
    return Shown(*place, body, is_narrow=size[0] <= NARROW)


def write_page(folder: Path, data: Collection, shown: list[Shown]) -> None:
    """Write report.html."""
    exhibits = [exhibit for exhibit in shown if not isinstance(exhibit.body, list)]
    told = [line for text in shown if isinstance(text.body, list) for line in text.body]
    if setting.has_stand_ins_alone(data):  # a heading says it for all columns
        exhibits = [_named_stand_ins(exhibit) for exhibit in exhibits]
    page = TEMPLATES.get_template("page.html").render(
        version=__version__,
        experiment=data.experiment,
        has_operators=setting.is_pretrained_here(data.experiment),
        summary=told[:FIRST],
        notes=[*told[FIRST:], *setting.sentences_of(data)],
        folded=FOLDED,
        chapters=[(name, list(group)) for name, group in groupby(exhibits, key=lambda exhibit: exhibit.chapter)],
    )
    write_text(folder / "report.html", page)


def _named_stand_ins(exhibit: Shown) -> Shown:
    """An exhibit whose heading says that its numbers are of stand-ins, in place of each column."""
    if STAND_IN not in exhibit.body:
        return exhibit
    body = exhibit.body
    for suite in SUITES.values():  # a mean of stand-ins is no score of the suite
        body = body.replace(f"{formats.heading(suite.score)}{STAND_IN}", "mean score")
    return replace(exhibit, heading=f"{exhibit.heading} (stand-in tasks)", body=body.replace(STAND_IN, ""))


def address_of(file: Path) -> str:
    """The content of a file as an address that holds it."""
    return f"data:{MEDIA[file.suffix]};base64,{base64.b64encode(file.read_bytes()).decode()}"
