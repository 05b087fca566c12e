"""The same table as csv, Markdown and LaTeX."""

import csv
import html
import io
import re
import shutil
import subprocess
from dataclasses import replace

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.errors import UsageError
from symbert.report.formats import (
    Formula,
    Table,
    decimal_of,
    frame_of,
    heading,
    table_of,
    to_csv,
    to_html,
    to_latex,
    to_markdown,
    write_table,
)
from symbert.report.latex import latex_text
from symbert.report.page import body_of

ROW = {"name": "tiny_one", "parameters": 28795194, "saved_percent": 3.645, "match": True, "note": None}


def table(**changes):
    return table_of([ROW | changes, ROW | {"saved_percent": -0.001, "note": 5}], "Caption: 95 % of A&B_c", "tab:test")


def test_csv_has_plain_numbers_and_empty_cells():
    rows = list(csv.reader(io.StringIO(to_csv(table()))))
    assert rows[0] == ["name", "parameters", "saved_percent", "match", "note"]
    assert rows[1] == ["tiny_one", "28795194", "3.645", "yes", ""], "all digits that there are"
    assert rows[2][2] == "-0.001"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=x", "\r=1"])
def test_text_that_a_spreadsheet_would_compute_is_guarded_in_csv(text):
    assert (
        next(csv.reader(io.StringIO(to_csv(table(name=text)).split("\n", 1)[1], newline="")))[0] == "'" + text.strip()
    )


def test_csv_has_every_digit_of_a_number_of_which_readers_see_some():
    cells = table(parameters=decimal_of(28795194.23456, 3))
    assert to_csv(cells).splitlines()[1].split(",")[1] == "28795194.23456"
    assert "| 28,795,194.235 |" in to_markdown(cells) and to_markdown(cells).splitlines()[3].split(" | ")[1] == "---:"
    assert "28,795,194.235" in to_latex(cells)


def test_readers_see_no_column_of_dashes_alone():
    cells = table_of([ROW, ROW], "Caption", "tab:test")
    assert "note" in to_csv(cells)
    assert not [
        text for text in (to_markdown(cells), to_latex(cells), to_html(cells)) if "note</th>" in text or "–" in text
    ]
    assert "| name | parameters | saved (%) | match |\n" in to_markdown(cells)


def test_negative_numbers_are_not_guarded_in_csv_and_have_a_minus_for_readers():
    cells = table(saved_percent=-5.5, parameters=decimal_of(-1234.5, 1))
    assert to_csv(cells).splitlines()[1].split(",")[1:3] == ["-1234.5", "-5.5"]
    assert "| −1,234.5 | −5.50 |" in to_markdown(cells) and "$-$1,234.5 & $-$5.50 &" in to_latex(cells)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_csv_gives_back_any_text_but_for_its_white_space(text):
    read = next(csv.reader(io.StringIO(to_csv(table(name=text)).split("\n", 1)[1], newline="")))[0]
    words = " ".join(text.split())
    assert read == ("'" if words.startswith(("=", "+", "-", "@")) else "") + words


def test_markdown_has_caption_headings_thousands_and_alignment():
    lines = to_markdown(table()).splitlines()
    assert lines[0] == r"Caption: 95 % of A&amp;B\_c"
    assert lines[2:5] == [
        "| name | parameters | saved (%) | match | note |",
        "| --- | ---: | ---: | --- | ---: |",
        r"| tiny\_one | 28,795,194 | 3.65 | yes | – |",
    ]


def test_a_cell_cannot_break_out_of_its_markdown_row():
    row = to_markdown(table(name="a|b\nc<script>")).splitlines()[4]
    assert row.startswith(r"| a\|b c&lt;script&gt; | 28,795,194 |")


def test_the_best_cells_are_bold_for_readers_only():
    best = table_of([ROW, ROW], "", "tab:test", best=frozenset({(1, "saved_percent")}))
    assert to_markdown(best).count("**3.65**") == 1 and to_markdown(best).splitlines()[-1].count("**") == 2
    assert to_latex(best).count(r"\textbf{3.65}") == 1
    assert "*" not in to_csv(best) and "textbf" not in to_csv(best)


def test_rows_for_csv_only_are_not_in_the_other_formats():
    both = table_of([ROW | {"name": "part"}, ROW | {"name": "total"}], "", "tab:test", readable=frame_of([ROW]))
    assert "part," in to_csv(both) and "total," in to_csv(both)
    for text in (to_markdown(both), to_latex(both), to_html(both)):
        assert "part" not in text.replace("parameters", "") and "28,795,194" in text


def test_a_note_stands_under_the_table_escaped_like_the_caption_and_not_in_csv():
    plain, noted = table(), replace(table(), note="p < 0.05 & a_b")
    assert to_csv(noted) == to_csv(plain)
    assert to_markdown(noted) == to_markdown(plain) + "\np &lt; 0.05 &amp; a\\_b\n"
    *start, end = to_latex(plain).splitlines()
    note = r"\par\smallskip\parbox{\linewidth}{\footnotesize p \textless{} 0.05 \& a\_b}"
    assert to_latex(noted).splitlines() == [*start, note, end]
    shown = replace(noted, readable=pd.DataFrame({"other": ["cell"]}))
    assert to_markdown(shown).splitlines()[-1] == to_markdown(noted).splitlines()[-1]


def test_what_follows_the_first_paragraph_of_a_caption_is_an_explanation_that_folds():
    explained = replace(table(), caption="Caption\nof a < b.\n\nHow to\nread it.\n\nAnd more.", note="It shows.")
    assert to_csv(explained) == to_csv(table())
    lines = to_markdown(explained).splitlines()
    assert lines[:4] == ["Caption of a &lt; b.", "", "How to read it. And more.", ""] and lines[-1] == "It shows."
    caption, note, explanation = re.findall(r"caption\{(.*)\}|footnotesize (.*)\}", to_latex(explained))
    assert (caption[0], note[1]) == (r"Caption of a \textless{} b.", "It shows.")
    assert explanation[1] == "How to read it. And more."
    page = to_html(explained)
    assert '<figcaption id="tab-test">Caption of a &lt; b.</figcaption>\n<details class="explanation">' in page
    assert "<p>How to read it. And more.</p>" in page and "details" not in body_of(to_html(table()))


def test_rows_fold_on_a_page_and_are_in_the_other_formats():
    rows = [ROW | {"name": name} for name in ("tested", "untested", "tested too")]
    folding = table_of(rows, "", "tab:test", folded=frozenset({1}), folded_as="1 claim not tested")
    shown, _, folded = body_of(to_html(folding)).partition("<details>\n<summary>1 claim not tested</summary>")
    assert re.findall('<th scope="row">([^<]+)<', shown) == ["tested", "tested too"]
    assert re.findall('<th scope="row">([^<]+)<', folded) == ["untested"]
    assert re.findall(r"^\| (\w[\w ]*) \|", to_markdown(folding), re.M)[1:] == [row["name"] for row in rows]


def test_a_table_without_rows_is_its_head():
    empty = Table(pd.DataFrame(columns=["name", "saved_percent"]), "Caption.", "tab:test")
    assert to_csv(empty) == "name,saved_percent\n"
    assert to_markdown(empty).splitlines()[2:] == ["| name | saved (%) |", "| ---: | ---: |"]
    assert "name & \\shortstack[r]{saved\\\\(\\%)} \\\\\n\\midrule\n\\bottomrule" in to_latex(empty)


def test_latex_is_booktabs_with_an_escaped_caption():
    text = to_latex(table())
    assert r"\caption{Caption: 95 \% of A\&B\_c}" in text and r"\label{tab:test}" in text
    assert r"\begin{tabular}{@{}lrrlr@{}}" in text
    assert [text.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    assert r"tiny\_one & 28,795,194 & 3.65 & yes & -- \\" in text


def test_a_formula_is_mathematics_in_latex_and_text_elsewhere():
    formula = table(note=Formula("2h² + h²/n", "2h^2 + h^2/n"))
    assert "$2h^2 + h^2/n$" in to_latex(formula)
    assert "| 2h² + h²/n |" in to_markdown(formula) and ",2h² + h²/n" in to_csv(formula)


@given(st.text(alphabet="\\{}$&#%_^~<>ab ×−²–≥", max_size=30))
def test_no_character_of_text_has_a_meaning_for_latex(text):
    escaped = latex_text(text)
    for known in (r"\\text\w+\{\}", r"\\[&%$#_{}]", r"\$(\\\w+|-|\^2)\$", "--"):
        escaped = re.sub(known, "", escaped)
    assert not set(escaped) & set("\\{}$&#%_^~<>×−²≥")


def test_long_text_is_wrapped_in_latex_into_as_few_lines_as_it_needs():
    """60 characters are two lines of 30; half an em is a character."""
    text = to_latex(table_of([{"claim": 60 * "x", "verdict": 20 * "x", "count": 12345}], "", "tab:test"))
    assert r"\begin{tabular}{@{}>{\raggedright\arraybackslash}p{15.0em}lr@{}}" in text
    assert r"\begin{sidewaystable*}" in text and r"\begin{table*}" in to_latex(table())


def test_latex_sets_every_table_within_its_page(tmp_path):
    """Narrow, of 30 columns, and with as many and as long texts as the table of claims."""
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex on the path")
    wide = table_of([{f"column{number}": 1000.5 * number for number in range(30)}], "", "tab:wide")
    text = {"claim": "a claim of words " * 6, "models": "base: pairwise", "verdict": "not tested here " * 4, "n": 1}
    claims = replace(table_of([text] * 19, "A caption of some length. " * 40, "tab:claims"), note="A note. " * 20)
    tables = "\n".join(rf"{to_latex(each)}\clearpage" for each in (table(), wide, claims))
    packages = r"\usepackage{booktabs,array,graphicx,rotating}"
    document = rf"\documentclass{{article}}{packages}\begin{{document}}{tables}\end{{document}}"
    (tmp_path / "all.tex").write_text(document)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout and "too large" not in done.stdout, done.stdout


def test_a_long_table_has_parts_under_one_number_in_latex():
    """A row per seed of twelve models was a page and a half high, and LaTeX cut it."""
    rows = [ROW | {"name": f"row {number}"} for number in range(70)]
    text = to_latex(table_of(rows, "Long.", "tab:test", note="A note."))
    parts = text.split(r"\begin{table*}")[1:]
    assert [part.count("row ") for part in parts] == [24, 24, 22] and text.count(r"\label{tab:test}") == 1
    assert [r"\addtocounter{table}{-1}\caption{Continued.}" in part for part in parts] == [False, True, True]
    assert [part.count("A note.") for part in parts] == [0, 0, 1] and text.count(r"\toprule") == 3
    assert all(r"name & parameters" in part for part in parts)


def test_html_has_headings_of_columns_and_rows_and_the_caption_beneath():
    noted = to_html(replace(table(), note="A note.", best=frozenset({(0, "saved_percent")})))
    lines = body_of(noted).splitlines()
    assert '<th scope="col">name</th><th scope="col" class="number">parameters</th>' in lines[4]
    numbers = '<td class="number">28,795,194</td><td class="number"><strong>3.65</strong></td>'
    assert lines[7] == f'<tr><th scope="row">tiny_one</th>{numbers}<td>yes</td><td class="number">&#8211;</td></tr>'
    assert lines[-3:] == [
        '<p class="note">A note.</p>',
        '<figcaption id="tab-test">Caption: 95 % of A&amp;B_c</figcaption>',
        "</figure>",
    ]
    assert '<th scope="row" class="text">' in to_html(table(name=41 * "x"))


@given(st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), min_size=1, max_size=20))
def test_no_character_of_text_has_a_meaning_for_html(text):
    escaped = to_html(table(name=text)).split('<th scope="row">')[1].split("</th>")[0]
    assert html.unescape(escaped) == " ".join(text.split()) and not set(escaped) & set("<>\"'") and escaped.isascii()


def test_headings_are_words():
    assert heading("paper_saved_percent") == "paper saved (%)" and heading("glue_score") == "GLUE score"
    assert heading("mfu_percent") == "MFU (%)" and heading("step_milliseconds") == "step (ms)"
    assert heading("gpu_hours") == "GPU hours" and heading("cpu_hours") == "CPU hours"


def test_the_suffix_decides_the_format_and_an_unknown_one_writes_nothing(tmp_path):
    files = [tmp_path / name for name in ("t.csv", "t.md", "t.tex")]
    write_table(table(), files)
    assert [file.read_text() for file in files] == [to_csv(table()), to_markdown(table()), to_latex(table())]
    with pytest.raises(UsageError, match=r"no table format for '\.xlsx'; choose from \.csv, \.md, \.tex"):
        write_table(table(), [tmp_path / "u.csv", tmp_path / "u.xlsx"])
    assert not (tmp_path / "u.csv").exists()
