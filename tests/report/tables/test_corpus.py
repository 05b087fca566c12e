"""Tables of the corpus and of provenance: sums per part, settings beside the paper's, machines, hours and commits."""

import json

import pytest

from csv_rows import read_shown
from report.conftest import packed
from report.written import write_exhibit
from symbert.errors import DataError
from symbert.report.collect import Collection, machine_of, read_parts, read_run
from symbert.report.tables.corpus import provenance_table


@pytest.fixture
def corpus(tmp_path, report_settings, corpus_files):
    """Writes parts and a manifest; returns the data of the table."""

    def make(*numbers, documents=(900, 50), tokens=640_060, record=None, **part):
        manifest = tmp_path / "manifest.json"
        values = {"documents": {"train": documents[0], "validation": documents[1]}, "tokens": tokens}
        values |= {"surplus_tokens": {"train": 30, "validation": tokens - 640_040}}
        manifest.write_text(json.dumps(packed(**values)))
        parts = corpus_files(*numbers, part=part, record=record)
        return {"parts": parts, "manifest": manifest, "experiment": report_settings()}

    return make


def test_tokens_per_word_do_not_count_cls_and_sep(corpus, outputs):
    """3,600,000 tokens of 1,000 documents are 3,598,000 of words; 1,799,000 words a part."""
    write_exhibit("table-corpus", outputs, **corpus(1, 2, record={"tokens": 3_600_000, "words": 1_799_000}))
    assert [row["fertility"] for row in read_shown(outputs[0])] == ["2.00", ""]


def test_more_documents_or_tokens_than_were_kept_are_refused(corpus, outputs):
    with pytest.raises(DataError, match="1050 documents and 640060 tokens"):
        write_exhibit("table-corpus", outputs, **corpus(1, documents=(1000, 50)))
    with pytest.raises(DataError, match=r"manifest.json: 950 documents and 642001 tokens"):
        write_exhibit("table-corpus", outputs, **corpus(1, tokens=642_001))
    files = corpus(1)
    files["manifest"].write_text(json.dumps(json.loads(files["manifest"].read_text()) | {"remainder_tokens": 11}))
    with pytest.raises(DataError, match="640060 tokens, 640000 in rows and 61 left"):
        write_exhibit("table-corpus", outputs, **files)
    assert not any(path.exists() for path in outputs)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"part": {"kept": 999}}, "1009 documents read, but 1008"),
        (
            {"part": {"characters": {"read": 7, "kept": 4, "dropped": {"quality_warning": 2}}}},
            "7 characters read, but 6",
        ),
        ({"record": {"documents": 998}}, "998 documents with tokens, but 1000"),
    ],
)
def test_a_part_that_does_not_add_up_is_named(corpus_files, changes, problem):
    with pytest.raises(DataError, match=rf"en_meta_part_4\.json: {problem}"):
        read_parts(corpus_files(4, **changes))


def test_a_part_given_twice_is_refused(corpus_files):
    files = corpus_files(1, 2)
    with pytest.raises(DataError, match="duplicate: en_meta_part_1"):
        read_parts([*files, files[0]])


def facts(*runs):
    machines = [machine_of(read_run(folder)) for folder in runs]
    rows = provenance_table(Collection(machines=machines)).frame.to_dict("records")
    return {row["what"]: row["value"] for row in rows}


def test_a_report_that_is_made_again_does_not_have_to_differ_by_its_moment(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert facts()["written"] == "2023-11-14 22:13:20 UTC"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "")
    assert facts()["written"] > "2026", "an empty variable says nothing"


def test_the_hours_of_one_session_are_not_those_of_three(pretrained):
    """timing.json has the times of the longest session alone."""
    found = facts(pretrained("original", sessions=3))
    assert found["pre-training: runs"] == "1, in 3 sessions" and "pre-training: hours" not in found
    assert facts(pretrained("original", sessions=1))["pre-training: hours"] == "0.010, of GPUs 0.000"
    on_gpus = facts(pretrained("original", device="A card", processes=4))
    assert on_gpus["pre-training: hours"] == "0.010, of GPUs 0.040"
