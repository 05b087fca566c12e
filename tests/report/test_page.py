"""The page is one file that opens offline: complete, escaped, reachable, the same bytes, and right in a browser."""

import base64
import re
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib.image
import numpy as np
import pytest
from markupsafe import escape

from symbert.report.exhibits import EXHIBITS
from symbert.report.formats import table_of, write_table
from symbert.report.page import Written, write_page
from symbert.report.report import FORMATS

NASTY = "<script>alert('x')</script> & \"co\""
VOID = {"meta", "link", "img"}
BLUE = (0, 0, 255)


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
def write_exhibits(tmp_path):
    """Writes tables in all formats and blue pictures, 200 pixels wide."""

    def make(
        tables=("claims", "table3_glue", "corpus"), figures=("corpus", "figure2_tiny"), cell="a", caption="Caption."
    ):
        for name in tables:
            row = {
                "model": cell,
                "glue_score": 75.5,
                "what it says": f"{cell} and a sentence longer than forty characters",
            }
            made = table_of([row, row], caption, f"tab:{name}", best=frozenset({(0, "glue_score")}), note="A note.")
            write_table(made, [tmp_path / f"report/tables/{name}.{suffix}" for suffix in ("html", "csv", "md", "tex")])
        folder = tmp_path / "report/figures"
        folder.mkdir(parents=True, exist_ok=True)
        for name in figures:
            matplotlib.image.imsave(folder / f"{name}.png", np.full((100, 200, 3), BLUE, dtype=np.uint8))
            (folder / f"{name}.pdf").write_bytes(b"%PDF")
            (folder / f"{name}.txt").write_text(f"{caption}\n\nHow to read {cell}.\n")

    return make


def in_order(folder):
    """The exhibits that have files in a folder, in the order of the page; figure 2 of the size tiny."""
    written = []
    for chapter, exhibits in EXHIBITS.items():
        for exhibit in exhibits:
            named = replace(exhibit, name="figure2_tiny") if exhibit.name == "figure2" else exhibit
            made = exhibit.function(None) if exhibit.name == "figure1_operators" else None
            kind = "figures" if exhibit.caption else "texts" if exhibit.name == "summary" else "tables"
            files = [made] if made else [folder / kind / f"{named.name}.{suffix}" for suffix in FORMATS[kind]]
            if files[0].is_file():
                written.append(Written(chapter, named, [file for file in files if file.is_file()]))
    return written


@pytest.fixture
def written(tmp_path, write_exhibits, report_settings):
    """Writes a page; returns its text."""

    def make(settings=None, **exhibits):
        write_exhibits(**exhibits)
        sentences = "What was <compared>.\nOn what.\nThe GLUE score (stand-in) is higher.\n"
        (tmp_path / "report/texts").mkdir(exist_ok=True)
        (tmp_path / "report/texts/summary.txt").write_text(sentences)
        write_page(tmp_path / "report", report_settings(**(settings or {})), in_order(tmp_path / "report"))
        return (tmp_path / "report/report.html").read_text(encoding="utf-8")

    return make


def test_the_page_loads_nothing_and_runs_nothing(written):
    page = Reader(written())
    assert not page.all("script", "iframe", "object", "embed", "form", "base")
    assert not re.findall(r"url\(|@import", written())
    assert all(
        attributes["src"].startswith(("data:image/png;base64,", "data:image/svg+xml;base64,"))
        for attributes in page.all("img")
    )
    assert [attributes["href"] for attributes in page.all("link")] == ["data:,"]
    outside = {attributes["href"] for attributes in page.all("a") if not attributes["href"].startswith(("#", "data:"))}
    assert outside == {"https://arxiv.org/abs/2406.06366"}
    assert not [
        name for _, attributes in page.elements for name in attributes if name.startswith("on") or name == "srcset"
    ]
    policy = next(found["content"] for found in page.all("meta") if found.get("http-equiv"))
    assert policy == "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def test_every_link_within_the_page_arrives_and_files_are_in_their_links_byte_for_byte(written, tmp_path):
    page = Reader(written())
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"] for attributes in page.all("a")]
    assert {link[1:] for link in links if link.startswith("#")} <= set(ids)
    assert {found["aria-labelledby"] for _, found in page.elements if "aria-labelledby" in found} <= set(ids)
    files = {found["download"]: found["href"] for found in page.all("a") if "download" in found}
    assert len(files) == 3 * 3 + 2 * 2  # corpus.csv is a table's, corpus.pdf a figure's
    for name, link in files.items():
        (file,) = (tmp_path / "report").rglob(name)
        assert base64.b64decode(link.partition(";base64,")[2], validate=True) == file.read_bytes()
    assert files["claims.csv"].startswith("data:text/csv;charset=utf-8;base64,")
    assert files["corpus.pdf"].startswith("data:application/pdf;base64,")


def test_text_has_no_meaning_for_html(written):
    text = written(settings={"experiment": NASTY}, cell=NASTY, caption=NASTY)
    page = Reader(text)
    assert not page.all("script") and "alert" not in str([found for _, found in page.elements])
    assert (
        page.text.count(NASTY) == 2 + 3 * (2 * 2 + 1) + 2 * 2
    )  # title and heading; two rows and caption; figures' texts
    assert escape(NASTY) in text
