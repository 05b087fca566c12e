"""A table's own file is a document, and the page gets back exactly what it was made of."""

from symbert.report.document import body_of, standing_alone


def test_what_a_document_was_made_of_comes_back():
    body = "<figure>&lt;body&gt; $x and </figure>\n"
    document = standing_alone(body, "tab:test")
    assert body_of(document) == body
    assert document.startswith("<!DOCTYPE html>") and "<title>tab:test</title>" in document and "<style>" in document


def test_a_document_loads_nothing():
    document = standing_alone("", "tab:test")
    assert not {"src=", "href=", "url(", "@import", "<script"} & set(document.split()) and "//" not in document
