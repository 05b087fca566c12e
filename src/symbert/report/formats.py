"""A table and its file formats: csv for programs, Markdown and HTML for readers, LaTeX (booktabs) for papers."""

import csv
import io
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import UsageError
from symbert.files import write_text
from symbert.report.document import standing_alone

DAGGER = "†"
HEADINGS = {"_percent": " (%)", "_milliseconds": " (ms)", "_": " "}  # what parts of columns' names become for readers
HEADINGS |= {word: word.upper() for word in ("glue", "mfu", "cpu", "gpu")}
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
    """Write the table to each file in the format of its suffix; UsageError when there is none for it."""
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
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([_guarded(str(column)) for column in table.frame.columns])
    for row in table.frame.itertuples(index=False, name=None):
        writer.writerow([_csv_cell(value) for value in row])
    return buffer.getvalue()


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
    columns = list(table.frame.columns)
    rules = ["---:" if right else "---" for right in _right_aligned(table)]
    body = _shown(table, lambda value: _markdown(_plain(value)), "**{}**")
    rows = [[_markdown(heading(column)) for column in columns], rules, *body]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    note = ["", _markdown(table.note)] if table.note else []
    return "\n".join([_markdown(table.caption), "", *lines, *note]) + "\n"


def _markdown(text: str) -> str:
    for character in "\\`*_[]|":
        text = text.replace(character, "\\" + character)
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def to_latex(table: Table) -> str:
    """A `table*`, shrunk where it is wider than the text, or a `sidewaystable*` where text is wrapped.

    Needs the packages booktabs and graphicx, and array and rotating where text is wrapped.
    """
    table = table.for_readers()
    columns = _latex_columns(table)
    rows = [" & ".join(row) + r" \\" for row in _shown(table, _latex_cell, r"\textbf{{{}}}")]
    head = " & ".join(latex_text(heading(column)) for column in table.frame) + r" \\"
    tabular = [rf"\begin{{tabular}}{{@{{}}{''.join(columns)}@{{}}}}", r"\toprule", head, r"\midrule", *rows]
    tabular += [r"\bottomrule", r"\end{tabular}}"]
    note = rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {latex_text(table.note)}}}"
    lines = [
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\label{{{table.label}}}",
        SHRUNK,
        *tabular,
        *([note] if table.note else []),
    ]
    place = "table*" if set(columns) <= {"l", "r"} else "sidewaystable*"
    return "\n".join([rf"\begin{{{place}}}", *lines, rf"\end{{{place}}}"]) + "\n"


def _latex_columns(table: Table) -> list[str]:
    """How each column is set: numbers to the right, and long text in lines of one length."""
    columns = zip(_right_aligned(table), _lengths(table), strict=True)
    return ["r" if right else _paragraph(length) if length > LONG else "l" for right, length in columns]


def _paragraph(length: int) -> str:
    """A column that wraps so many characters into as few lines of at most LONG as they need."""
    width = CHARACTER * length / math.ceil(length / LONG)
    return rf">{{\raggedright\arraybackslash}}p{{{width:.1f}em}}"


def _latex_cell(value: Any) -> str:
    return f"${value.latex}$" if isinstance(value, Formula) else latex_text(_plain(value))


def to_html(table: Table) -> str:
    """A `figure` for `symbert.report.page`: the table, which scrolls where it is wide, its note, and its caption."""
    table = table.for_readers()
    name, kinds = _html(table.label.replace(":", "-")), _html_kinds(table)
    head = [f'<th scope="col"{kind}>{_html(heading(key))}</th>' for key, kind in zip(table.frame, kinds, strict=True)]
    lines = [
        '<figure class="table">',
        f'<div class="scroll" role="region" tabindex="0" aria-labelledby="{name}">',
        "<table>",
        f"<thead>\n<tr>{''.join(head)}</tr>\n</thead>",
        "<tbody>",
        *(_html_row(row, kinds) for row in _shown(table, lambda value: _html(_plain(value)), "<strong>{}</strong>")),
        "</tbody>\n</table>\n</div>",
        *([f'<p class="note">{_html(table.note)}</p>'] if table.note else []),
        f'<figcaption id="{name}">{_html(table.caption)}</figcaption>',
        "</figure>\n",
    ]
    return "\n".join(lines)


def _html_kinds(table: Table) -> list[str]:
    """Each column's class: number, or text that is so long that it is wrapped."""
    kinds = zip(_right_aligned(table), _lengths(table), strict=True)
    return [' class="number"' if right else ' class="text"' if length > LONG else "" for right, length in kinds]


def _html_row(cells: list[str], kinds: list[str]) -> str:
    """Cells of which the first, unless it is a number, is the row's heading."""
    row = [f"<td{kind}>{cell}</td>" for cell, kind in zip(cells, kinds, strict=True)]
    if "number" not in kinds[0]:
        row[0] = f'<th scope="row"{kinds[0]}>{cells[0]}</th>'
    return f"<tr>{''.join(row)}</tr>"


def _html(text: str) -> str:
    """Text in which no character has a meaning for HTML; ASCII, so that a file is read right without its page."""
    return " ".join(escape(text).split()).encode("ascii", "xmlcharrefreplace").decode()


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
    ".html": lambda table: standing_alone(to_html(table), _html(table.label)),
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
