"""The page is one file that opens offline: complete, escaped, and reachable."""

import re
from html.parser import HTMLParser

import pytest
from markupsafe import escape
from matplotlib.figure import Figure

from report.written import collected
from symbert.report.collect import Collection
from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import Words, table_of
from symbert.report.report import write_exhibit, write_page
from symbert.report.tables.operators import operators_drawing
from symbert.report.tables.scores import glue_table

NASTY = "<script>alert('x')</script> & \"co\""
VOID = {"meta", "link", "img"}


class Reader(HTMLParser):
    """All elements with their attributes, and the text outside of style; fails where tags do not nest."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text, self.open = [], "", []
        self.feed(page)
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.open += [tag] * (tag not in VOID)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += "" if self.open and self.open[-1] == "style" else data

    def all(self, *tags):
        return [attributes for tag, attributes in self.elements if tag in tags]


@pytest.fixture
def written(tmp_path, report_settings):
    """Writes a page of a table and a figure in two chapters, a drawing and a text; returns its text."""

    def make(words="Caption.", cell="a", title="A demo"):
        row = {
            "model": cell,
            "glue_score (stand-in)": 75.5,
            "what it says": f"{cell} and a sentence of forty characters",
        }
        table, shown = table_of([row, row]), []
        for chapter in ("At a glance", "Corpus"):
            figure = Figure((2, 1))
            figure.subplots()
            parts = {"claims": table, "corpus": figure}
            for name, made in parts.items():
                of_exhibit = Words(f"{name}-{len(shown)}", words, "A note.")
                shown.append(write_exhibit(made, of_exhibit, tmp_path / "report", chapter, f"{name} {words}"))
        drawing = Words("drawing", words, "")
        shown.append(
            write_exhibit(
                operators_drawing(Collection(parameters={"tiny": {}})), drawing, tmp_path, "Operators", "A drawing"
            )
        )
        lines = ["What was <compared>.", "The GLUE score (stand-in) is higher."]
        shown.append(write_exhibit(lines, Words("summary", "", ""), tmp_path / "report", "At a glance", ""))
        write_page(tmp_path / "report", Collection(report_settings(title=title)), shown)
        return (tmp_path / "report/report.html").read_text(encoding="utf-8")

    return make


def test_the_page_loads_nothing_and_runs_nothing(written):
    text = written()
    page = Reader(text)
    assert not page.all("script", "iframe", "object", "embed", "form", "base")
    assert not re.findall(r"url\(|@import", text)
    kinds = [found["src"].partition(";")[0] for found in page.all("img")]
    assert kinds == ["data:image/png", "data:image/png", "data:image/svg+xml"]
    assert [attributes["href"] for attributes in page.all("link")] == ["data:,"]
    outside = {attributes["href"] for attributes in page.all("a") if not attributes["href"].startswith("#")}
    assert outside == {"https://arxiv.org/abs/2406.06366"}
    assert not [name for _, found in page.elements for name in found if name.startswith("on") or name == "srcset"]
    policy = next(found["content"] for found in page.all("meta") if found.get("http-equiv"))
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_every_link_within_the_page_arrives(written):
    page = Reader(written())
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert {found["aria-labelledby"] for _, found in page.elements if "aria-labelledby" in found} <= set(ids)


def test_text_has_no_meaning_for_html_and_the_top_tells_of_stand_ins(written):
    text = written(words=NASTY, cell=NASTY, title=NASTY)
    page = Reader(text)
    assert not page.all("script") and escape(NASTY) in text
    assert page.text.count(NASTY) == 2 + 4 * 3 + 2 * 4 + 1  # titles; headings, contents, captions; cells; the drawing
    assert "The GLUE score (stand-in) is higher." in page.text and "Stand-in corpus." in page.text


def test_the_first_screen_is_a_title_two_sentences_figure_2_and_table_3_and_notes_follow(report_settings, tmp_path):
    """Sentences of intervals, exceptions and settings stood between the title and the first figure."""
    figure = Figure((2, 1))
    figure.subplots()
    lines = ["What it is.", "What was found.", "How sure that is.", "On what data."]
    made = {"summary": lines, "figure2": figure, "table3_glue": table_of([{"model": "a", "glue_score": 75.5}])}
    glance = [exhibit.name for exhibit in EXHIBITS["At a glance"] if exhibit.name in made]
    exhibits = [write_exhibit(made[name], Words(name, "", ""), tmp_path, "At a glance", name) for name in glance]
    exhibits.append(write_exhibit(table_of([{"a": 1}]), Words("claims", "", ""), tmp_path, "Claims", "claims"))
    write_page(tmp_path, Collection(report_settings()), exhibits)
    page = Reader((tmp_path / "report.html").read_text(encoding="utf-8"))
    order = [("h1", None), ("p", "summary"), ("p", "summary"), ("div", "figure-figure2"), ("div", "table-table3_glue")]
    order += [("aside", "notes"), ("nav", None), ("div", "table-claims")]
    ids = [(tag, found.get("id") or found.get("class")) for tag, found in page.elements]
    assert [place for place in ids if place in order] == order
    assert [page.text.index(line) for line in lines] == sorted(page.text.index(line) for line in lines)
    assert page.text.index("What was found.") < page.text.index("75.5") < page.text.index("How sure that is.")


def test_the_page_marks_stand_ins_unless_all_tasks_are_stand_ins(record, write_scores, report_settings, tmp_path):
    """The page stripped the mark of a mean of which one column was a stand-in: it called that a GLUE score."""

    def page(stand_ins):
        records = [record("tiny", "original", 1800, task, 1, stand_in=task in stand_ins) for task in ("rte", "cola")]
        sweep = {"tasks": ["rte", "cola"], "finetune_seeds": [1]}
        data = collected(report_settings(), sweep=sweep, scores=write_scores(records))
        words = Words("table3_glue", "Caption.", "")
        write_page(tmp_path, data, [write_exhibit(glue_table(data), words, tmp_path, "At a glance", "Table 3")])
        return Reader((tmp_path / "report.html").read_text(encoding="utf-8")).text

    assert "cola (stand-in)" in page(["cola"]) and "GLUE score (stand-in)" in page(["cola"])
    alone = page(["rte", "cola"])
    assert "Table 3 (stand-in tasks)" in alone and not re.findall(r"\(stand-in\)|GLUE score", alone)
