"""The corpus table: sums per part, tokens and rows, and files whose numbers do not add up."""

import json

import pytest

from csv_rows import read_shown
from symbert.errors import DataError
from symbert.report.data import write_exhibit


def tabulate_corpus(counts, records, manifest, settings, output):
    files = {"counts": counts, "records": records, "manifest": manifest, "settings": settings}
    write_exhibit("table-corpus", output, **files)


@pytest.fixture
def corpus(tmp_path, settings_file, corpus_files):
    """Writes counts and records of parts, and a manifest; returns their files."""

    def make(*numbers, documents=(900, 50), tokens=640_060, record=None, **part):
        manifest = tmp_path / "manifest.json"
        values = {"documents": {"train": documents[0], "validation": documents[1]}, "tokens": tokens}
        values |= {"rows": {"train": 9900, "validation": 100}, "sequence_length": 64}
        values |= {"remainder_tokens": 10, "surplus_tokens": {"train": 30, "validation": tokens - 640_040}}
        manifest.write_text(json.dumps(values))
        return *corpus_files(*numbers, part=part, record=record), manifest, settings_file()

    return make


def test_the_corpus_table_sums_its_parts_in_natural_order(corpus, outputs):
    tabulate_corpus(*corpus(10, 9, 1), outputs)
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
    tabulate_corpus(*corpus(1, 2), outputs)
    for row in read_shown(outputs[0])[:-1]:
        reasons = [key for key in row if key.startswith(("blocked", "no_", "perplexity", "quality"))]
        assert len(reasons) == 6
        assert int(row["read"]) == int(row["kept"]) + int(row["bad"]) + sum(int(row[reason]) for reason in reasons)


def test_tokens_per_word_do_not_count_cls_and_sep(corpus, outputs):
    """3,600,000 tokens of 1,000 documents are 3,598,000 of words; 1,799,000 words a part."""
    tabulate_corpus(*corpus(1, 2, record={"tokens": 3_600_000, "words": 1_799_000}), outputs)
    assert [row["fertility"] for row in read_shown(outputs[0])] == ["2.00", "2.00", "2.00", ""]


def test_the_corpus_table_for_readers_stands_on_its_side_with_shares_of_what_was_read(corpus, outputs):
    tabulate_corpus(*corpus(1, 9), outputs)
    text = outputs[1].read_text()
    assert "|  | en meta part 1 | en meta part 9 | total | of read (%) | the paper |" in text
    assert "| documents read | 1,006 | 1,014 | 2,020 | – | – |" in text
    assert "| bad lines | 2 | 2 | 4 | 0.20 | – |" in text
    assert "| dropped: quality warning | 1 | 9 | 10 | 0.50 | – |" in text
    assert "| documents kept | 1,000 | 1,000 | 2,000 | 99.01 | 30,000,000 |" in text
    assert "| characters kept | 4,000,000 | 4,000,000 | 8,000,000 | 100.00 | – |" in text
    assert "| tokens per word | 1.33 | 1.33 | 1.33 | – | – |" in text
    assert "| documents read without URL | 4 | 4 | 8 | 0.40 | – |" in text
    assert "| tokens left over | – | – | 60 | – | – |" in text
    assert "characters dropped" not in text
    assert "| train rows | – | – | 9,900 | – | 137,000,000 |" in text
    assert r"tokens kept & 642,000 & 642,000 & 1,284,000 & -- & 70,000,000,000 \\" in outputs[2].read_text()


def test_the_corpus_table_says_how_many_rows_were_passed_over(corpus, outputs):
    """Held-out rows that are also training rows were scored as if no model had seen them."""
    counts, records, manifest, settings = corpus(1)
    write_exhibit("table-corpus", outputs, counts=counts, records=records, manifest=manifest, settings=settings)
    assert "of held-out documents beyond their rows, beyond the budget" in outputs[1].read_text()
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"passed_over_rows": 1045}))
    write_exhibit("table-corpus", outputs, counts=counts, records=records, manifest=manifest, settings=settings)
    said = (
        "beyond their rows and in 1,045 rows that are also among the training rows, and so passed over, beyond the bud"
    )
    assert all(said in path.read_text() for path in outputs[1:])


def test_parts_that_were_not_read_are_named_and_count_nothing(corpus, outputs, settings_file):
    counts, records, manifest, settings = corpus(1, 2)
    empty = {"taken": False, "read": 0, "kept": 0, "bad": 0, "dropped": {}, "without_url": 0}
    empty["characters"] = {"read": 0, "kept": 0, "dropped": {}}
    counts[1].write_text(json.dumps(json.loads(counts[1].read_text()) | empty))
    nothing = {"documents": 0, "tokens": 0, "words": 0, "histogram": []}
    records[1].write_text(json.dumps({"part": "en_meta_part_2", **nothing}))
    write_exhibit("table-corpus", outputs, counts=counts, records=records, manifest=manifest, settings=settings)
    first, second, total, _ = read_shown(outputs[0])
    assert (first["taken"], second["taken"], total["taken"]) == ("yes", "no", "")
    assert (second["read"], second["kept"], second["tokens"], second["fertility"]) == ("0", "0", "0", "")
    assert (total["read"], total["tokens"], total["fertility"]) == ("1006", "642000", "1.33")
    for path in outputs[1:]:
        assert "Not read, because there were enough documents: en" in path.read_text()


def test_more_documents_or_tokens_than_were_kept_are_refused(corpus, outputs):
    with pytest.raises(DataError, match="1050 documents packed, but 1000 kept"):
        tabulate_corpus(*corpus(1, documents=(1000, 50)), outputs)
    with pytest.raises(DataError, match=r"manifest.json: 642001 tokens packed, but 642000 kept"):
        tabulate_corpus(*corpus(1, tokens=642_001), outputs)
    counts, records, manifest, settings = corpus(1)
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"remainder_tokens": 11}))
    with pytest.raises(DataError, match="640000 tokens in rows and 61 left over are not its 640060"):
        write_exhibit("table-corpus", outputs, counts=counts, records=records, manifest=manifest, settings=settings)
    assert not any(path.exists() for path in outputs)


@pytest.mark.parametrize(("dropped", "few"), [(998, False), (999, True)])
def test_the_corpus_caption_says_where_fewer_than_half_were_kept(corpus, outputs, dropped, few):
    """1,000 kept, 2 bad."""
    part = {"read": 1002 + dropped, "dropped": {"quality_warning": dropped}}
    tabulate_corpus(*corpus(1, **part), outputs)
    said = "1,000 of 2,001 documents were kept (quality_warning 999, bad 2), fewer than half; symbert filter-part"
    assert (said in outputs[1].read_text().replace("\\", "")) == few
    assert ("fewer than half" in outputs[2].read_text()) == few


def test_a_new_reason_gets_a_column(corpus, outputs):
    tabulate_corpus(*corpus(1, dropped={"too_long": 4}), outputs)
    assert read_shown(outputs[0])[0]["too_long"] == "4"
    assert "| dropped: too long | 4 | 4 |" in outputs[1].read_text()


def test_many_parts_are_listed_in_csv_only(corpus, outputs):
    tabulate_corpus(*corpus(*range(1, 21), documents=(20_000, 0)), outputs)
    assert len(read_shown(outputs[0])) == 22
    assert "|  | total | of read (%) | the paper |" in outputs[1].read_text()
    assert "| documents read | 20,310 |" in outputs[1].read_text()


def test_the_corpus_caption_names_the_stand_in(corpus, outputs):
    tabulate_corpus(*corpus(1), outputs)
    assert outputs[1].read_text().startswith("Documents of a stand-in corpus made from documentation text: read, bad, ")
