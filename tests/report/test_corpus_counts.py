"""Counts and records of parts that do not add up or do not fit each other are refused by name."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.corpus_counts import COUNTS, RECORD, read_counts, read_records


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_parts_come_in_natural_order_and_records_in_theirs(corpus_files):
    counts, records = corpus_files(10, 2, 1)
    parts = read_counts(counts)
    assert [part["part"] for part in parts] == ["en_meta_part_1", "en_meta_part_2", "en_meta_part_10"]
    assert [record["part"] for record in read_records(records, parts)] == [part["part"] for part in parts]


def test_a_part_that_does_not_add_up_is_named(corpus_files):
    counts, _ = corpus_files(4, part={"kept": 999})
    with pytest.raises(DataError, match=r"4.counts.json: part en_meta_part_4: read 1009 is not kept 999 \+ bad 2 \+"):
        read_counts(counts)


def test_characters_that_do_not_add_up_are_named(corpus_files):
    characters = {"read": 7, "kept": 4, "dropped": {"quality_warning": 2}}
    counts, _ = corpus_files(4, part={"characters": characters})
    with pytest.raises(DataError, match=r"en_meta_part_4: characters read 7 is not kept 4 \+ bad 0 \+ dropped 2"):
        read_counts(counts)


def test_a_part_given_twice_is_refused(corpus_files):
    counts, records = corpus_files(1, 2)
    with pytest.raises(DataError, match="counts: part en_meta_part_1 is there twice"):
        read_counts([*counts, counts[0]])
    with pytest.raises(DataError, match="records: part en_meta_part_2 is there twice"):
        read_records([*records, records[1]], read_counts(counts))


def test_a_record_of_other_documents_is_refused(corpus_files):
    counts, records = corpus_files(1, 2)
    change(records[1], documents=998)
    with pytest.raises(DataError, match="2.json: part en_meta_part_2: 998 documents have tokens, but 1000 were kept"):
        read_records(records, read_counts(counts))


@pytest.mark.parametrize("key", COUNTS)
def test_counts_that_lack_a_key_are_refused(corpus_files, key):
    (file,), _ = corpus_files(1)
    file.write_text(json.dumps({name: value for name, value in json.loads(file.read_text()).items() if name != key}))
    with pytest.raises(DataError, match=f"en_meta_part_1.counts.json: has no '{key}'; run filter-part again"):
        read_counts([file])


@pytest.mark.parametrize("key", RECORD)
def test_records_that_lack_a_key_are_refused(corpus_files, key):
    counts, (file,) = corpus_files(1)
    file.write_text(json.dumps({name: value for name, value in json.loads(file.read_text()).items() if name != key}))
    with pytest.raises(DataError, match=f"en_meta_part_1.json: has no '{key}'; run tokenize-part again"):
        read_records([file], read_counts(counts))
