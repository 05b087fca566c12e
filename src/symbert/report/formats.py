"""A table and its three file formats: csv for programs, Markdown for readers, LaTeX (booktabs) for papers."""

import csv
import io
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import UsageError
from symbert.files import write_text

WIDE = 8  # columns from which a LaTeX table is shrunk to the text width


@dataclass(frozen=True)
class Formula:
    """A cell with mathematics: as plain text, and as LaTeX math without the dollars."""

    text: str
    latex: str


@dataclass(frozen=True)
class Table:
    """What a table file holds.

    Cells are text, `Formula`, bool (yes or no), int, float (written with two decimals, as the paper does),
    Decimal (written with the decimals that it has) or None (does not apply). Csv has neither caption nor
    emphasis, and numbers without thousands separators.
    """

    frame: pd.DataFrame
    caption: str
    label: str  # of LaTeX references
    best: frozenset[tuple[int, str]] = frozenset()  # row position and column of emphasised cells
    csv_only: frozenset[int] = frozenset()  # row positions left out of Markdown and LaTeX
    readable: pd.DataFrame | None = None  # what Markdown and LaTeX show in place of `frame`

    def for_readers(self) -> "Table":
        """The table that Markdown and LaTeX show."""
        return self if self.readable is None else Table(self.readable, self.caption, self.label)


def table_of(rows: list[dict[str, Any]], caption: str, label: str, **options: Any) -> Table:
    """A table of rows that have the same keys in the same order."""
    return Table(pd.DataFrame(rows, columns=list(rows[0]), dtype=object), caption, label, **options)


def decimal_of(value: float, decimals: int) -> Decimal:
    """A cell for a number that needs other than two decimals."""
    return Decimal(f"{value:.{decimals}f}")


def write_table(table: Table, output: list[Path]) -> None:
    """Write the table to each file in the format of its suffix; UsageError when there is none for it."""
    for path in output:
        if path.suffix not in FORMATS:
            raise UsageError(f"{path}: no table format for '{path.suffix}'; choose from {', '.join(FORMATS)}")
    for path in output:
        write_text(path, FORMATS[path.suffix](table))


def heading(column: str) -> str:
    """A column's name for readers: 'saved_percent' as 'saved (%)', 'glue_score' as 'GLUE score'."""
    for name, shown in (("_percent", " (%)"), ("_milliseconds", " (ms)"), ("_", " "), ("glue", "GLUE"), ("mfu", "MFU")):
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
    return "" if _is_empty(value) else _plain(value).replace(",", "")


def _guarded(text: str) -> str:
    text = " ".join(text.split())
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def to_markdown(table: Table) -> str:
    """A GitHub table under its caption; the best values are bold."""
    table = table.for_readers()
    columns = list(table.frame.columns)
    rules = ["---:" if right else "---" for right in _right_aligned(table)]
    body = _shown(table, lambda value: _markdown(_plain(value)), "**{}**")
    rows = [[_markdown(heading(column)) for column in columns], rules, *body]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([_markdown(table.caption), "", *lines]) + "\n"


def _markdown(text: str) -> str:
    for character in "\\`*_[]|":
        text = text.replace(character, "\\" + character)
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def to_latex(table: Table) -> str:
    """A `table` environment; needs the package booktabs, and graphicx when it is wide."""
    table = table.for_readers()
    columns = list(table.frame.columns)
    alignment = "".join("r" if right else "l" for right in _right_aligned(table))
    rows = [" & ".join(row) + r" \\" for row in _shown(table, _latex_cell, r"\textbf{{{}}}")]
    head = " & ".join(latex_text(heading(column)) for column in columns) + r" \\"
    tabular = [rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}", r"\toprule", head, r"\midrule", *rows]
    tabular += [r"\bottomrule", r"\end{tabular}"]
    if len(columns) >= WIDE:
        tabular = [r"\resizebox{\textwidth}{!}{%", *tabular[:-1], tabular[-1] + "}"]
    caption = [rf"\caption{{{latex_text(table.caption)}}}", rf"\label{{{table.label}}}"]
    return "\n".join([r"\begin{table*}", r"\centering", *caption, *tabular, r"\end{table*}"]) + "\n"


def _latex_cell(value: Any) -> str:
    return f"${value.latex}$" if isinstance(value, Formula) else latex_text(_plain(value))


_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{character: "\\" + character for character in "&%$#_{}"},
    **{"×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$"},
    **{"²": "$^2$", "√": r"$\surd$", "–": "--", "§": r"\S{}", "≠": r"$\neq$"},
}


def latex_text(text: str) -> str:
    """Text in which no character has a meaning for LaTeX."""
    return " ".join("".join(_LATEX.get(character, character) for character in text).split())


FORMATS: dict[str, Callable[[Table], str]] = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex}


def _shown(table: Table, cell: Callable[[Any], str], bold: str) -> list[list[str]]:
    rows = enumerate(table.frame.itertuples(index=False, name=None))
    return [
        [
            bold.format(cell(value)) if (position, column) in table.best else cell(value)
            for column, value in zip(table.frame.columns, row, strict=True)
        ]
        for position, row in rows
        if position not in table.csv_only
    ]


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
        return f"{value:,}"
    if isinstance(value, float):
        return f"{round(value, 2) + 0.0:.2f}"
    return value.text if isinstance(value, Formula) else str(value)
