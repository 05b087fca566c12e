"""The same table as csv, Markdown and LaTeX."""

import csv
import html
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.report.formats import (
    Words,
    body_of,
    latex_text,
    table_of,
    to_csv,
    to_latex,
    to_markdown,
    write_table,
)

ROW = {"name": "tiny_one", "parameters": 28795194, "saved_percent": 3.645, "match": True, "note": None}
WORDS = Words("test", "Caption: 95 % of A&B_c", "A note.")


def table(**changes):
    return table_of([ROW | changes, ROW | {"saved_percent": -0.001, "note": 5}])


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=x", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_is_guarded_in_csv(text):
    assert (
        next(csv.reader(io.StringIO(to_csv(table(name=text)).split("\n", 1)[1], newline="")))[0] == "'" + text.strip()
    )


def test_csv_has_every_digit_of_a_number_of_which_readers_see_some():
    cells = table_of([ROW | {"parameters": 28795194.23456}], decimals={"parameters": 3})
    assert to_csv(cells).splitlines()[1].split(",")[1] == "28795194.23456"
    assert (
        "| 28,795,194.235 |" in to_markdown(cells, WORDS)
        and to_markdown(cells, WORDS).splitlines()[3].split(" | ")[1] == "---:"
    )
    assert "28,795,194.235" in to_latex(cells, WORDS)


def test_negative_numbers_are_not_guarded_in_csv_and_have_a_minus_for_readers():
    cells = table_of([ROW | {"saved_percent": -5.5, "parameters": -1234.5}], decimals={"parameters": 1})
    assert to_csv(cells).splitlines()[1].split(",")[1:3] == ["-1234.5", "-5.5"]
    assert "| −1,234.5 | −5.50 |" in to_markdown(cells, WORDS) and "$-$1,234.5 & $-$5.50 &" in to_latex(cells, WORDS)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_csv_gives_back_any_text_but_for_its_white_space(text):
    read = next(csv.reader(io.StringIO(to_csv(table(name=text)).split("\n", 1)[1], newline="")))[0]
    words = " ".join(text.split())
    assert read == ("'" if words.startswith(("=", "+", "-", "@")) else "") + words


def test_a_cell_cannot_break_out_of_its_markdown_row():
    row = to_markdown(table(name="a|b\nc<script>"), WORDS).splitlines()[4]
    assert row.startswith(r"| a\|b c&lt;script&gt; | 28,795,194 |")


@given(st.text(alphabet="\\{}$&#%_^~<>ab ×−²–≥", max_size=30))
def test_no_character_of_text_has_a_meaning_for_latex(text):
    escaped = latex_text(text)
    for known in (r"\\text\w+\{\}", r"\\[&%$#_{}]", r"\$(\\\w+|-|\^2)\$", "--"):
        escaped = re.sub(known, "", escaped)
    assert not set(escaped) & set("\\{}$&#%_^~<>×−²≥")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=20))
def test_no_character_of_text_has_a_meaning_for_html(text):
    escaped = body_of(table(name=text), WORDS).split('<th scope="row">')[1].split("</th>")[0]
    assert html.unescape(escaped) == " ".join(text.split()) and not set(escaped) & set("<>\"'")


def test_the_suffix_decides_the_format(tmp_path):
    files = [tmp_path / name for name in ("t.csv", "t.md", "t.tex")]
    write_table(table(), WORDS, files)
    assert [file.read_text() for file in files] == [
        to_csv(table()),
        to_markdown(table(), WORDS),
        to_latex(table(), WORDS),
    ]
