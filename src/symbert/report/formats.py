"""A table and its file formats: csv for programs, Markdown and HTML for readers, LaTeX (booktabs) for papers."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from symbert.errors import UsageError
from symbert.files import write_text
from symbert.glue.tasks import BESIDE_GLUE
from symbert.report.latex import DAGGER, latex_note, latex_text

HEADINGS = {suite.name: suite.title for suite in BESIDE_GLUE}  # parts of columns' names
HEADINGS |= {"_percent": " (%)", "_milliseconds": " (ms)", "_": " "}
HEADINGS |= {word: word.upper() for word in ("glue", "mfu", "cpu", "gpu")}
TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    trim_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
)
LONG = 40  # characters from which the text of a column is wrapped
CHARACTER = 0.5  # em of one character of wrapped text in LaTeX
ROWS, CONTINUED = 32, "Continued."  # rows of a part of a long table in LaTeX, and the caption of the parts that follow
SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # what is wider than its page
MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {each: f"\\{each}" for each in "\\`*_[]|"})


@dataclass(frozen=True)
class Formula:
    """A cell with mathematics: as plain text, and as LaTeX math without the dollars."""

    text: str
    latex: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Rounded:
    """A number, and how many of its decimals readers see."""

    value: float
    decimals: int

    def __str__(self) -> str:
        return f"{self.value:,.{self.decimals}f}".replace("-", "−")

    def __float__(self) -> float:
        return float(self.value)


@dataclass(frozen=True)
class Table:
    """What a table file holds.

    Cells are text, `Formula`, bool (yes or no), int, float (readers see two decimals, as in the paper), `Rounded` or
    None (does not apply). Csv has neither caption, note nor emphasis, and numbers in full precision.
    """

    frame: pd.DataFrame
    caption: str  # and after an empty line its explanation, which readers of the caption can do without
    label: str  # of LaTeX references
    best: frozenset[tuple[int, str]] = frozenset()  # row position and column of emphasised cells
    readable: pd.DataFrame | None = None  # rows that the other formats show in place of those of `frame`
    note: str = ""  # plain sentences under the table: what it shows
    marked: frozenset[tuple[int, str]] = frozenset()  # row position and column of cells that get a dagger
    folded: frozenset[int] = frozenset()  # positions of rows that a page shows when it is asked to
    folded_as: str = ""  # what these rows are


@dataclass(frozen=True)
class Column:
    """What a format needs to know of a column."""

    heading: str
    is_number: bool  # whether it has no text
    length: int  # characters of its longest cell

    @property
    def kind(self) -> str | None:
        """Its class in HTML; that of text that is wrapped is "text"."""
        return "number" if self.is_number else "text" if self.length > LONG else None


def table_of(
    rows: list[dict[str, Any]],
    caption: str,
    label: str,
    names: Mapping[str, str] | None = None,
    best: Iterable[tuple[int, str]] = (),
    marked: Iterable[tuple[int, str]] = (),
    **more: Any,
) -> Table:
    """A table of rows that have the same keys in the same order; `names` renames some columns."""
    names = names or {}
    best, marked = (frozenset((at, names.get(column, column)) for at, column in cells) for cells in (best, marked))
    return Table(frame_of(rows).rename(columns=names), caption, label, best=best, marked=marked, **more)


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A column per key of the first row; cells keep their types."""
    return pd.DataFrame(rows, columns=list(rows[0]), dtype=object)


def best_of(
    rows: list[dict[str, Any]], groups: list[str | None], columns: Iterable[str], lowest: Iterable[str] = ()
) -> frozenset[tuple[int, str]]:
    """The cells with the highest value of their column, in `lowest` with the lowest, among rows of a group that differ.

    `groups` has the group of each row, or None: the row is not compared.
    """
    if not any(groups):
        return frozenset()
    values = pd.DataFrame(rows, columns=list(columns)).astype(float)
    values[list(lowest)] *= -1
    grouped = values.groupby(pd.Series(groups, dtype=object))
    best = values.eq(grouped.transform("max")) & grouped.transform("nunique").gt(1)
    return frozenset((at, column) for column in values for at in values.index[best[column]])


def decimal_of(value: float | None, decimals: int) -> Rounded | None:
    """A cell for a number of which readers see other than two decimals; None stays None."""
    return None if pd.isna(value) else Rounded(value, decimals)


def caption_and_explanation(text: str) -> tuple[str, str]:
    """The first paragraph of a text, and what follows it, as one line each."""
    caption, _, explanation = text.partition("\n\n")
    return " ".join(caption.split()), " ".join(explanation.split())


def two_decimals(value: float) -> str:
    """A number as cells and sentences have it; without the sign of a zero."""
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def write_table(table: Table, output: list[Path]) -> None:
    """Write the table to each file in the format of its suffix; UsageError for an unknown suffix."""
    for path in output:
        if path.suffix not in FORMATS:
            raise UsageError(f"{path}: no table format for '{path.suffix}'; choose from {', '.join(FORMATS)}")
    for path in output:
        write_text(path, FORMATS[path.suffix](table))


def heading(column: str) -> str:
    """A column's name for readers: 'saved_percent' as 'saved (%)', 'glue_score' as 'GLUE score'."""
    for name, shown in HEADINGS.items():
        column = column.replace(name, shown)
    return column


def to_csv(table: Table) -> str:
    """Comma-separated values; text that a spreadsheet would take for a formula gets a leading apostrophe."""

    def guarded(text: str) -> str:
        text = " ".join(text.split())
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text

    def cell(value: Any) -> str:
        if isinstance(value, str | Formula):
            return guarded(str(value))
        if pd.isna(value):
            return ""
        return _plain(value) if isinstance(value, bool) else str(getattr(value, "value", value))

    frame = table.frame.map(cell)
    return frame.to_csv(index=False, header=[guarded(str(name)) for name in frame], lineterminator="\n")


def to_markdown(table: Table) -> str:
    """A GitHub table between its caption, with the explanation, and its note; the best values are bold."""

    def escaped(text: str) -> str:
        return " ".join(text.translate(MARKDOWN).split())

    columns, body = _shown(table, lambda value: escaped(_plain(value)), "**{}**")
    rules = ["---:" if column.is_number else "---" for column in columns]
    rows = [[escaped(column.heading) for column in columns], rules, *body]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    above = [line for text in caption_and_explanation(table.caption) if text for line in (escaped(text), "")]
    note = ["", escaped(table.note)] if table.note else []
    return "\n".join([*above, *lines, *note]) + "\n"


def to_latex(table: Table) -> str:
    """A `table*`, shrunk where it is wider than the text, or a `sidewaystable*` where text is wrapped.

    Numbers stand at the right; long text has lines of one length, as few of at most LONG characters as it needs. A
    table of many rows has several parts under one number. Needs the packages booktabs and graphicx, and array and
    rotating where text is wrapped.
    """

    def cell(value: Any) -> str:
        return f"${value.latex}$" if isinstance(value, Formula) else latex_text(_plain(value))

    columns, body = _shown(table, cell, r"\textbf{{{}}}")
    alignments = ["r" if column.is_number else "l" for column in columns]
    for at, column in enumerate(columns):
        if column.kind == "text":
            width = CHARACTER * column.length / math.ceil(column.length / LONG)
            alignments[at] = rf">{{\raggedright\arraybackslash}}p{{{width:.1f}em}}"
    place = "table*" if set(alignments) <= {"l", "r"} else "sidewaystable*"
    caption, explanation = caption_and_explanation(table.caption)
    lines = []
    rows = math.ceil(len(body) / math.ceil(len(body) / ROWS)) if body else 1  # of each part, as many in all
    for at in range(0, max(1, len(body)), rows):
        title = rf"\caption{{{latex_text(caption)}}}" + "\n" + rf"\label{{{table.label}}}"
        lines += [
            rf"\begin{{{place}}}",
            r"\centering",
            rf"\addtocounter{{table}}{{-1}}\caption{{{CONTINUED}}}" if at else title,
            SHRUNK,
            rf"\begin{{tabular}}{{@{{}}{''.join(alignments)}@{{}}}}",
            r"\toprule",
            " & ".join(map(_latex_heading, columns)) + r" \\",
            r"\midrule",
            *(" & ".join(row) + r" \\" for row in body[at : at + rows]),
            r"\bottomrule",
            r"\end{tabular}}",
            *(latex_note(text) for text in (table.note, explanation) if text and at + rows >= len(body)),
            rf"\end{{{place}}}",
        ]
    return "\n".join(lines) + "\n"


def _latex_heading(column: Column) -> str:
    """A heading; its words stand one above the other where it is wider than the numbers under it."""
    words = [latex_text(word) for word in column.heading.split()]
    if column.is_number and len(words) > 1 and len(column.heading) > column.length:
        return r"\shortstack[r]{" + r"\\".join(words) + "}"
    return " ".join(words)


def to_html(table: Table) -> str:
    """A document with one `figure`: the table, which scrolls where it is wide, its note, caption and explanation.

    In ASCII, so that a file is read right without its page. Rows to fold are a second table, which a reader opens.
    """
    columns, body = _shown(table, lambda value: escape(" ".join(_plain(value).split())), Markup("<strong>{}</strong>"))
    rows = [list(zip(columns, row, strict=True)) for row in body]
    caption, explanation = caption_and_explanation(table.caption)
    text = TEMPLATES.get_template("table.html").render(
        label=table.label,
        columns=columns,
        rows=[row for at, row in enumerate(rows) if at not in table.folded],
        folded=[rows[at] for at in sorted(table.folded)],
        folded_as=table.folded_as,
        note=" ".join(table.note.split()),
        caption=caption,
        explanation=explanation,
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


FORMATS: dict[str, Callable[[Table], str]] = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex, ".html": to_html}


def _shown(table: Table, cell: Callable[[Any], str], bold: str) -> tuple[list[Column], list[list[str]]]:
    """The columns and rows that readers see, with daggers, and the best cells in `bold`; no column of dashes alone."""
    frame = table.frame if table.readable is None else table.readable
    frame = frame.dropna(axis="columns", how="all") if len(frame) else frame

    def text(position: int, column: str, value: Any) -> str:
        marked = cell(value) + (cell(DAGGER) if (position, column) in table.marked else "")
        return bold.format(marked) if (position, column) in table.best else marked

    columns = [
        Column(
            heading(name),
            all(_is_number(value) for value in values.dropna()),
            max((len(_plain(value)) for value in values), default=0),
        )
        for name, values in frame.items()
    ]
    rows = [
        [text(position, column, value) for column, value in zip(frame, row, strict=True)]
        for position, row in enumerate(frame.itertuples(index=False, name=None))
    ]
    return columns, rows


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Rounded) and not isinstance(value, bool)


def _plain(value: Any) -> str:
    if pd.isna(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return two_decimals(value) if isinstance(value, float) else str(value)
