"""A table and its file formats: csv for programs, Markdown and HTML for readers, LaTeX (booktabs) for papers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

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
LATEX_TABLE = Path(__file__).with_name("templates") / "table.tex"
DAGGER, DOUBLE_DAGGER = "†", "‡"
LONG = 40  # characters from which the text of a column is wrapped
ALIGNMENTS = {"number": "r", "text": r">{\raggedright\arraybackslash}p{20em}", None: "l"}  # in LaTeX, by content
MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"} | {mark: f"\\{mark}" for mark in "\\`*_[]|"})
LATEX = str.maketrans(
    {
        **{mark: "\\" + mark for mark in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{
            "<": r"\textless{}",
            ">": r"\textgreater{}",
            "–": "--",
            "§": r"\S{}",
            DAGGER: r"\dag{}",
            DOUBLE_DAGGER: r"\ddag{}",
        },
        **{"×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≥": r"$\geq$", "≤": r"$\leq$", "≠": r"$\neq$"},
        **{"²": "$^2$", "³": "$^3$", "√": r"$\surd$", "∘": r"$\circ$", "ᵀ": r"$^\top$", "≈": r"$\approx$"},
        **{"∞": r"$\infty$", "→": r"$\to$", "‖": r"$\Vert$", "½": r"$\frac12$"},
    }
)


@dataclass(frozen=True)
class Table:
    """The cells of a table: text, bool (yes or no), int, float (readers see two decimals, as in the paper, unless
    `decimals` has others for a column) or None (does not apply). Csv has numbers in full precision."""

    frame: pd.DataFrame
    readable: pd.DataFrame | None = None  # rows that the other formats show in place of those of `frame`
    marked: frozenset[tuple[int, str]] = frozenset()  # row position and column of cells that get a dagger
    noted: frozenset[str] = frozenset()  # columns whose headings get a double dagger
    decimals: dict[str, int] = field(default_factory=dict)
    remark: str = ""  # what stands beneath it, of rows that readers are not shown


class Words(NamedTuple):
    """What stands with a table in its files."""

    name: str
    caption: str
    note: str  # of the experiment: what stands in for the paper's data

    @property
    def label(self) -> str:
        """The label of LaTeX references."""
        return f"tab:{self.name}"


class Column(NamedTuple):
    """A column for readers: its heading, and its content, "number", "text" (wrapped) or None."""

    heading: str
    content: str | None


def table_of(rows: list[dict[str, Any]], names: dict[str, str] | None = None, **marks: Any) -> Table:
    """A table of rows that have the same keys in the same order; `names` renames some columns."""
    names = names or {}
    marks["marked"] = frozenset((at, names.get(column, column)) for at, column in marks.get("marked", ()))
    marks["noted"] = frozenset(names.get(column, column) for column in marks.get("noted", ()))
    return Table(frame_of(rows).rename(columns=names), **marks)


def frame_of(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """A column per key of the first row; cells keep their types."""
    return pd.DataFrame(rows, columns=list(rows[0]), dtype=object)


def heading(column: str) -> str:
    """A column's name for readers: 'saved_percent' as 'saved (%)', 'glue_score' as 'GLUE score'."""
    for name, shown in HEADINGS.items():
        column = column.replace(name, shown)
    return column


def write_table(table: Table, words: Words, files: list[Path]) -> None:
    """Write the table to each file in the format of its suffix."""
    for path in files:
        write_text(path, FORMATS[path.suffix](table, words))


def to_csv(table: Table, words: Words | None = None) -> str:
    """Comma-separated values; text that a spreadsheet would take for a formula gets a leading apostrophe."""

    def cell(value: Any) -> str:
        if isinstance(value, str | bool):
            text = _plain(value)
            return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
        return "" if pd.isna(value) else str(value)

    frame = table.frame.map(cell)
    return frame.to_csv(index=False, header=[cell(str(name)) for name in frame], lineterminator="\n")


def to_markdown(table: Table, words: Words) -> str:
    """A GitHub table between its caption and the note."""

    def escaped(text: str) -> str:
        return text.translate(MARKDOWN)

    columns, body = _shown(table, escaped)
    rules = ["---:" if column.content == "number" else "---" for column in columns]
    rows = [[escaped(column.heading) for column in columns], rules, *body]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    beneath = [line for text in (table.remark, words.note) if text for line in ("", escaped(text))]
    return "\n".join([escaped(words.caption), "", *lines, *beneath]) + "\n"


def to_latex(table: Table, words: Words) -> str:
    """A `table*`, shrunk where it is wider or higher than the page. Needs booktabs, adjustbox and array.

    Numbers stand at the right, with the words of their heading one above the other; long text is wrapped.
    """

    def title(column: Column) -> str:
        words = latex_text(column.heading).split()
        is_stacked = column.content == "number" and len(words) > 1
        return r"\shortstack[r]{" + r"\\".join(words) + "}" if is_stacked else " ".join(words)

    columns, body = _shown(table, latex_text)
    return LATEX_TABLE.read_text(encoding="utf-8") % {
        "caption": latex_text(words.caption),
        "label": words.label,
        "alignments": "".join(ALIGNMENTS[column.content] for column in columns),
        "head": " & ".join(map(title, columns)),
        "body": "\n".join(" & ".join(row) + r" \\" for row in body),
        "note": latex_text(f"{table.remark} {words.note}"),
    }


def latex_text(text: str) -> str:
    """Text in which no character has a meaning for LaTeX."""
    return " ".join(text.translate(LATEX).split())


def body_of(table: Table, words: Words) -> Markup:
    """A `figure` of the page with the table, which scrolls where it is wide, and its caption."""
    columns, rows = _shown(table, escape)
    body = TEMPLATES.get_template("body.html").render(columns=columns, rows=rows, remark=table.remark, words=words)
    return Markup(body)  # escaped by the template


FORMATS: dict[str, Callable[[Table, Words], str]] = {".csv": to_csv, ".md": to_markdown, ".tex": to_latex}


def _shown(table: Table, escaped: Callable[[str], str]) -> tuple[list[Column], list[list[str]]]:
    """The columns and rows that readers see, with their marks; no column of dashes alone."""
    frame = table.frame if table.readable is None else table.readable
    frame = frame.dropna(axis="columns", how="all") if len(frame) else frame

    def text(position: int, column: str, value: Any) -> str:
        text = _plain(value, table.decimals.get(column, 2))
        return escaped(text + DAGGER * ((position, column) in table.marked))

    rows = [
        [text(position, column, value) for column, value in zip(frame, row, strict=True)]
        for position, row in enumerate(frame.itertuples(index=False, name=None))
    ]
    headings = {name: heading(name) + DOUBLE_DAGGER * (name in table.noted) for name in frame}
    return [Column(headings[name], _content_of(values)) for name, values in frame.items()], rows


def _content_of(values: pd.Series) -> str | None:
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values.dropna()):
        return "number"
    return "text" if max(len(_plain(value)) for value in values) > LONG else None


def _plain(value: Any, decimals: int = 2) -> str:
    """A cell as text of one line; a zero has no sign."""
    if pd.isna(value):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}".replace("-", "−")
    if isinstance(value, float):
        return f"{round(value, decimals) + 0.0:,.{decimals}f}".replace("-", "−")
    return " ".join(str(value).split())
