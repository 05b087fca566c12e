"""A table and its file formats: csv for programs, Markdown and HTML for readers, LaTeX (booktabs) for papers."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from symbert.errors import UsageError
from symbert.files import write_text
from symbert.glue.tasks import BESIDE_GLUE

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
DAGGER = "†"
LONG = 40  # characters from which the text of a column is wrapped
ALIGNMENTS = {"number": "r", "text": r">{\raggedright\arraybackslash}p{20em}", None: "l"}  # in LaTeX, by kind
LARGEST = r"max width=\linewidth,max totalheight=0.8\textheight"  # of a table in LaTeX, which is shrunk to that
MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"\\{mark}" for mark in "\\`*_[]|"})
LATEX = str.maketrans(
    {
        **{mark: "\\" + mark for mark in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "–": "--", "§": r"\S{}", DAGGER: r"\dag{}"},
        **{"×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$"},
        **{"²": "$^2$", "³": "$^3$", "√": r"$\surd$", "∘": r"$\circ$", "ᵀ": r"$^\top$", "≈": r"$\approx$"},
        **{"∞": r"$\infty$", "→": r"$\to$"},
    }
)


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

    Cells are text, bool (yes or no), int, float (readers see two decimals, as in the paper), `Rounded` or
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


class Column(NamedTuple):
    """A column for readers: its heading, and its kind, "number", "text" (wrapped) or None."""

    heading: str
    kind: str | None


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


def heading(column: str) -> str:
    """A column's name for readers: 'saved_percent' as 'saved (%)', 'glue_score' as 'GLUE score'."""
    for name, shown in HEADINGS.items():
        column = column.replace(name, shown)
    return column


def write_table(table: Table, output: list[Path]) -> None:
    """Write the table to each file in the format of its suffix; UsageError for an unknown suffix."""
    for path in output:
        if path.suffix not in FORMATS:
            raise UsageError(f"{path}: no table format for '{path.suffix}'; choose from {', '.join(FORMATS)}")
    for path in output:
        write_text(path, FORMATS[path.suffix](table))


def to_csv(table: Table) -> str:
    """Comma-separated values; text that a spreadsheet would take for a formula gets a leading apostrophe."""

    def cell(value: Any) -> str:
        if isinstance(value, str | bool):
            text = _plain(value)
            return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
        return "" if pd.isna(value) else str(getattr(value, "value", value))

    frame = table.frame.map(cell)
    return frame.to_csv(index=False, header=[cell(str(name)) for name in frame], lineterminator="\n")


def to_markdown(table: Table) -> str:
    """A GitHub table between its caption, with the explanation, and its note; the best values are bold."""

    def escaped(value: Any) -> str:
        return _plain(value).translate(MARKDOWN)

    columns, body = _shown(table, escaped, "**{}**")
    headings = [escaped(column.heading) for column in columns]
    rules = ["---:" if column.kind == "number" else "---" for column in columns]
    lines = [f"| {' | '.join(row)} |" for row in (headings, rules, *body)]
    above = [line for text in caption_and_explanation(table.caption) if text for line in (escaped(text), "")]
    return "\n".join([*above, *lines, *(["", escaped(table.note)] if table.note else [])]) + "\n"


def to_latex(table: Table) -> str:
    """A `table*`, shrunk where it is wider or higher than the page. Needs booktabs, adjustbox and array.

    Numbers stand at the right, with the words of their heading one above the other; long text is wrapped.
    """

    def cell(value: Any) -> str:
        return latex_text(_plain(value))

    def title(column: Column) -> str:
        words = latex_text(column.heading).split()
        is_stacked = column.kind == "number" and len(words) > 1
        return r"\shortstack[r]{" + r"\\".join(words) + "}" if is_stacked else " ".join(words)

    columns, body = _shown(table, cell, r"\textbf{{{}}}")
    caption, explanation = caption_and_explanation(table.caption)
    lines = [
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{latex_text(caption)}}}",
        rf"\label{{{table.label}}}",
        rf"\begin{{adjustbox}}{{{LARGEST}}}",
        rf"\begin{{tabular}}{{@{{}}{''.join(ALIGNMENTS[column.kind] for column in columns)}@{{}}}}",
        r"\toprule",
        " & ".join(map(title, columns)) + r" \\",
        r"\midrule",
        *(" & ".join(row) + r" \\" for row in body),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{adjustbox}",
        *(latex_note(text) for text in (table.note, explanation) if text),
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def latex_note(text: str) -> str:
    """A paragraph in small print under a table or figure."""
    return rf"\par\smallskip\parbox{{\linewidth}}{{\footnotesize {latex_text(text)}}}"


def latex_text(text: str) -> str:
    """Text in which no character has a meaning for LaTeX."""
    return " ".join(text.translate(LATEX).split())


def to_html(table: Table) -> str:
    """A document with one `figure`: the table, which scrolls where it is wide, its note, caption and explanation.

    In ASCII, so that a file is read right without its page. Rows to fold are a second table, which a reader opens.
    """
    columns, body = _shown(table, lambda value: escape(_plain(value)), Markup("<strong>{}</strong>"))
    caption, explanation = caption_and_explanation(table.caption)
    text = TEMPLATES.get_template("table.html").render(
        label=table.label,
        columns=columns,
        rows=[row for at, row in enumerate(body) if at not in table.folded],
        folded=[body[at] for at in sorted(table.folded)],
        folded_as=table.folded_as,
        note=_plain(table.note),
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

    rows = [
        [text(position, column, value) for column, value in zip(frame, row, strict=True)]
        for position, row in enumerate(frame.itertuples(index=False, name=None))
    ]
    return [Column(heading(name), _kind(values)) for name, values in frame.items()], rows


def _kind(values: pd.Series) -> str | None:
    if all(isinstance(value, int | float | Rounded) and not isinstance(value, bool) for value in values.dropna()):
        return "number"
    return "text" if max(len(_plain(value)) for value in values) > LONG else None


def _plain(value: Any) -> str:
    """A cell as text of one line."""
    if pd.isna(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    return two_decimals(value) if isinstance(value, float) else " ".join(str(value).split())
