"""Where metadata and blocklist disagree, read back from the table's files."""

import json

import pytest

from csv_rows import read_shown
from symbert.report.data import write_exhibit

COLUMNS = ("both", "only_metadata", "only_url", "by_parent_domain", "agreement_percent")


def rows_of(path):
    return {row["category"]: tuple(row[column] for column in COLUMNS) for row in read_shown(path)}


def test_categories_are_summed_over_parts(corpus_files, settings_file, outputs):
    write_exhibit("table-corpus_categories", outputs, categories=corpus_files(1, 2, 3)[0], settings=settings_file())
    assert rows_of(outputs[0]) == {
        "any": ("9", "3", "0", "6", "75.00"),
        "adult": ("6", "3", "0", "6", "66.67"),
        "phishing": ("3", "0", "0", "0", "100.00"),
        "sect": ("0", "0", "0", "0", ""),
    }


def test_only_categories_with_documents_are_shown_to_readers(corpus_files, settings_file, outputs):
    write_exhibit("table-corpus_categories", outputs, categories=corpus_files(1)[0], settings=settings_file())
    assert "| adult | 2 | 1 | 0 | 2 | 66.67 |" in outputs[1].read_text() and "sect" not in outputs[1].read_text()
    assert r"phishing & 1 & 0 & 0 & 0 & 100.00" in outputs[2].read_text() and "sect" not in outputs[2].read_text()


def test_without_any_document_the_table_still_says_none(corpus_files, settings_file, outputs):
    zero = {"both": 0, "metadata_only": 0, "url_only": 0, "parent_only": 0}
    write_exhibit(
        "table-corpus_categories",
        outputs,
        categories=corpus_files(1, part={"categories": {"any": zero, "adult": zero}})[0],
        settings=settings_file(),
    )
    assert "| any | 0 | 0 | 0 | 0 | – |" in outputs[1].read_text() and "adult" not in outputs[1].read_text()


def test_without_metadata_their_columns_stay_empty(corpus_files, settings_file, outputs):
    counts, _ = corpus_files(1, part={"categories": {"any": {"url_only": 5, "parent_only": 2}}})
    write_exhibit("table-corpus_categories", outputs, categories=counts, settings=settings_file())
    assert rows_of(outputs[0]) == {"any": ("", "", "5", "2", "")}


def test_a_part_that_was_not_read_is_named(corpus_files, settings_file, outputs):
    counts, _ = corpus_files(1, 2)
    changes = {"taken": False, "read": 0, "kept": 0, "bad": 0, "dropped": {}, "categories": {}}
    counts[1].write_text(json.dumps(json.loads(counts[1].read_text()) | changes))
    write_exhibit("table-corpus_categories", outputs, categories=counts, settings=settings_file())
    assert rows_of(outputs[0])["any"] == ("3", "1", "0", "2", "75.00")
    assert "not read, because there were enough documents: en" in outputs[1].read_text()


@pytest.mark.parametrize("match", ["exact", "suffix"])
def test_the_caption_says_how_urls_were_looked_up(corpus_files, settings_file, outputs, match):
    write_exhibit(
        "table-corpus_categories", outputs, categories=corpus_files(1)[0], settings=settings_file(match=match)
    )
    for path in outputs[1:]:
        assert f"by the rule of this experiment ({match})" in path.read_text()
        assert "a stand-in corpus made from documentation text" in path.read_text()
