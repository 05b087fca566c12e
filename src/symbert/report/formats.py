"""A table and its file formats: csv for programs, Markdown and HTML for readers, LaTeX (booktabs) for papers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from symbert.errors import UsageError
from symbert.files import write_text

DAGGER = "†"
HEADINGS = {"_percent": " (%)", "_milliseconds": " (ms)", "_": " "}  # what parts of columns' names become for readers
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
SHRUNK = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"  # what is wider than its page


@dataclass(frozen=True)
class Formula:
    """A cell with mathematics: as plain text, and as LaTeX math without the dollars."""

    text: str
    latex: str


@dataclass(frozen=True)
class Table:
    """What a table file holds.

    Cells are text, `Formula`, bool (yes or no), int, float (written with two decimals, as the paper does),
    Decimal (written with the decimals that it has) or None (does not apply). Csv has neither caption, note nor
    emphasis, and numbers without thousands separators.
    """

    frame: pd.DataFrame
    caption: str
    label: str  # of LaTeX references
    best: frozenset[tuple[int, str]] = frozenset()  # row position and column of emphasised cells
    csv_only: frozenset[int] = frozenset()  # row positions left out of Markdown and LaTeX
    readable: pd.DataFrame | None = None  # what Markdown and LaTeX show in place of `frame`
    note: str = ""  # plain sentences under the table
    marked: frozenset[tuple[int, str]] = frozenset()  # row position and column of cells that get a dagger

    def for_readers(self) -> "Table":
        """The table that Markdown and LaTeX show."""
        return self if self.readable is None else Table(self.readable, self.caption, self.label, note=self.note)


def table_of(rows: list[dict[str, Any]], caption: str, label: str, **options: Any) -> Table:
    """A table of rows that have the same keys in the same order."""
    return Table(pd.DataFrame(rows, columns=list(rows[0]), dtype=object), caption, label, **options)


def decimal_of(value: float, decimals: int) -> Decimal:
    """A cell for a number that needs other than two decimals."""
    return Decimal(f"{value:.{decimals}f}")


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
    frame = table.frame.map(_csv_cell)
    return frame.to_csv(index=False, header=[_guarded(str(name)) for name in frame], lineterminator="\n")


def _csv_cell(value: Any) -> str:
    if isinstance(value, str | Formula):
        return _guarded(_plain(value))
    return "" if _is_empty(value) else _plain(value).replace(",", "").replace("−", "-")


def _guarded(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def to_markdown(table: Table) -> str:
    """A GitHub table between its caption and its note; the best values are bold."""
    table = table.for_readers()
    rules = ["---:" if right else "---" for right in _right_aligned(table)]
    body = _shown(table, lambda value: _markdown(_plain(value)), "**{}**")
    rows = [[_markdown(heading(name)) for name in table.frame], rules, *body]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    note = ["", _markdown(table.note)] if table.note else []
    return "\n".join([_markdown(table.caption), "", *lines, *note]) + "\n"


def _markdown(text: str) -> str:
    for character in "\\`*_[]|":
        text = text.replace(character, "\\" + character)
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def to_latex(table: Table) -> str:
    """A `table*`, shrunk where it is wider than the text, or a `sidewaystable*` where text is wrapped.

    Numbers stand at the right; long text has lines of one length, as few of at most LONG characters as it needs. Needs
    the packages booktabs and graphicx, and array and rotating where text is wrapped.
    """
    table = table.for_readers()
    columns = []
    for right, length in zip(_right_aligned(table), _lengths(table), strict=True):
        width = CHARACTER * length / math.ceil(length / LONG) if length > LONG else None
        wrapped = rf">{{\raggedright\arraybackslash}}p{{{width:.1f}em}}" if width else "l"
        columns.append("r" if right else wrapped)
    cells = _shown(
        table,
        lambda value: f"${value.latex}$" if isinstance(value, Formula) else latex_text(_plain(value)),
        r"\textbf{{{}}}",
    )
    place = "table*" if set(columns) <= {"l", "r"} else "sidewaystable*"
    lines = [
        rf"\begin{{{place}}}",
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\label{{{table.label}}}",
        SHRUNK,
        rf"\begin{{tabular}}{{@{{}}{''.join(columns)}@{{}}}}",
        r"\toprule",
        " & ".join(latex_text(heading(name)) for name in table.frame) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in cells),
        r"\bottomrule",
        r"\end{tabular}}",
        *([rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {latex_text(table.note)}}}"] if table.note else []),
        rf"\end{{{place}}}",
    ]
    return "\n".join(lines) + "\n"


def to_html(table: Table, template: str = "figure.html") -> str:
    """A `figure` for `symbert.report.page`: the table, which scrolls where it is wide, its note, and its caption.

    In ASCII, so that a file is read right without its page.
    """
    table = table.for_readers()
    kinds = [
        "number" if right else "text" if length > LONG else ""
        for right, length in zip(_right_aligned(table), _lengths(table), strict=True)
    ]
    columns = [
        {"heading": heading(name), "is_number": kind == "number", "kind": kind and Markup(' class="{}"').format(kind)}
        for name, kind in zip(table.frame, kinds, strict=True)
    ]
    rows = _shown(table, lambda value: escape(" ".join(_plain(value).split())), Markup("<strong>{}</strong>"))
    text = TEMPLATES.get_template(template).render(
        name=table.label.replace(":", "-"),
        label=table.label,
        columns=columns,
        rows=[list(zip(columns, row, strict=True)) for row in rows],
        note=" ".join(table.note.split()),
        caption=" ".join(table.caption.split()),
    )
    return text.encode("ascii", "xmlcharrefreplace").decode()


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    **{"×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$"},
    **{"²": "$^2$", "√": r"$\surd$", "–": "--", "§": r"\S{}", "≠": r"$\neq$", DAGGER: r"\dag{}"},
}


def latex_text(text: str) -> str:
    """Text in which no character has a meaning for LaTeX."""
    return " ".join("".join(_LATEX.get(character, character) for character in text).split())


FORMATS: dict[str, Callable[[Table], str]] = {
    ".csv": to_csv,
    ".md": to_markdown,
    ".tex": to_latex,
    ".html": lambda table: to_html(table, "table.html"),
}


def _shown(table: Table, cell: Callable[[Any], str], bold: str) -> list[list[str]]:
    def text(position: int, column: str, value: Any) -> str:
        marked = cell(value) + (cell(DAGGER) if (position, column) in table.marked else "")
        return bold.format(marked) if (position, column) in table.best else marked

    return [
        [text(position, column, value) for column, value in zip(table.frame.columns, row, strict=True)]
        for position, row in enumerate(table.frame.itertuples(index=False, name=None))
        if position not in table.csv_only
    ]


def _lengths(table: Table) -> list[int]:
    """The characters of each column's longest cell."""
    columns = (table.frame[column] for column in table.frame.columns)
    return [max((len(_plain(value)) for value in values), default=0) for values in columns]


def _right_aligned(table: Table) -> list[bool]:
    """Whether each column holds numbers only."""
    columns = (table.frame[column] for column in table.frame.columns)
    return [all(_is_number(value) for value in values if not _is_empty(value)) for values in columns]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, float) and pd.isna(value))


def _plain(value: Any) -> str:
    if _is_empty(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | Decimal):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return two_decimals(value)
    return value.text if isinstance(value, Formula) else str(value)
