"""The corpus table: sums per part, tokens and rows, and files whose numbers do not add up."""

import json

import pytest

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.errors import DataError


def tabulate_corpus(files, outputs):
    write_exhibit("table-corpus", outputs, **files)


@pytest.fixture
def corpus(tmp_path, report_settings, corpus_files):
    """Writes parts and a manifest; returns the data of the table."""

    def make(*numbers, documents=(900, 50), tokens=640_060, record=None, **part):
        manifest = tmp_path / "manifest.json"
        values = {"documents": {"train": documents[0], "validation": documents[1]}, "tokens": tokens}
        values |= {"rows": {"train": 9900, "validation": 100}, "sequence_length": 64}
        values |= {"remainder_tokens": 10, "surplus_tokens": {"train": 30, "validation": tokens - 640_040}}
        manifest.write_text(json.dumps(values))
        parts = corpus_files(*numbers, part=part, record=record)
        return {"parts": parts, "manifest": manifest, "settings": report_settings()}

    return make


def test_the_corpus_table_sums_its_parts_in_natural_order(corpus, outputs):
    tabulate_corpus(corpus(10, 9, 1), outputs)
    *parts, total, paper = read_shown(outputs[0])
    assert [row["part"] for row in parts] == ["en_meta_part_1", "en_meta_part_9", "en_meta_part_10"]
    assert [
        total[key] for key in ("part", "read", "bad", "blocked_category", "blocked_url", "quality_warning", "kept")
    ] == (["total", "3035", "6", "9", "0", "20", "3000"])
    assert [total[key] for key in ("characters_read", "characters_kept", "words", "tokens")] == [
        "12000450",
        "12000000",
        "1440000",
        "1926000",
    ]
    packed = ("packed_documents", "packed_tokens", "left_over_tokens", "train_rows", "validation_rows")
    assert [total[key] for key in packed] == ["950", "640000", "60", "9900", "100"]
    assert total["characters_dropped_quality_warning"] == "300"
    assert (paper["kept"], paper["tokens"]) == ("30000000", "70000000000")
    assert (paper["train_rows"], paper["validation_rows"]) == ("137000000", "10000")


def test_every_row_of_the_corpus_table_adds_up(corpus, outputs):
    tabulate_corpus(corpus(1, 2), outputs)
    for row in read_shown(outputs[0])[:-1]:
        reasons = [key for key in row if key.startswith(("blocked", "no_", "perplexity", "quality"))]
        assert len(reasons) == 6
        assert int(row["read"]) == int(row["kept"]) + int(row["bad"]) + sum(int(row[reason]) for reason in reasons)


def test_tokens_per_word_do_not_count_cls_and_sep(corpus, outputs):
    """3,600,000 tokens of 1,000 documents are 3,598,000 of words; 1,799,000 words a part."""
    tabulate_corpus(corpus(1, 2, record={"tokens": 3_600_000, "words": 1_799_000}), outputs)
    assert [row["fertility"] for row in read_shown(outputs[0])] == ["2.00", "2.00", "2.00", ""]


def test_more_documents_or_tokens_than_were_kept_are_refused(corpus, outputs):
    with pytest.raises(DataError, match="1050 documents packed, but 1000 kept"):
        tabulate_corpus(corpus(1, documents=(1000, 50)), outputs)
    with pytest.raises(DataError, match=r"manifest.json: 642001 tokens packed, but 642000 kept"):
        tabulate_corpus(corpus(1, tokens=642_001), outputs)
    files = corpus(1)
    files["manifest"].write_text(json.dumps(json.loads(files["manifest"].read_text()) | {"remainder_tokens": 11}))
    with pytest.raises(DataError, match="640000 tokens in rows and 61 left over are not its 640060"):
        tabulate_corpus(files, outputs)
    assert not any(path.exists() for path in outputs)
