"""Counts and records of parts that do not add up or do not fit each other are refused by name."""

import json

import pytest

from symbert.errors import DataError
from symbert.report.collect import read_parts


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"part": {"kept": 999}}, r"documents read are not kept \+ dropped \+ bad"),
        (
            {"part": {"characters": {"read": 7, "kept": 4, "dropped": {"quality_warning": 2}}}},
            "characters read are not kept",
        ),
        ({"record": {"documents": 998}}, "998 documents have tokens, but 1000 were kept"),
    ],
)
def test_a_part_that_does_not_add_up_is_named(corpus_files, changes, problem):
    with pytest.raises(DataError, match=rf"en_meta_part_4\.json: {problem}"):
        read_parts(corpus_files(4, **changes))


def test_a_part_given_twice_is_refused(corpus_files):
    files = corpus_files(1, 2)
    with pytest.raises(DataError, match="duplicate: en_meta_part_1"):
        read_parts([*files, files[0]])


def test_parts_that_lack_a_key_are_refused(corpus_files):
    for half, key in [("counts", "bad"), ("counts", "histograms"), ("record", "words")]:
        (file,) = corpus_files(1)
        content = json.loads(file.read_text())
        del content[half][key]
        file.write_text(json.dumps(content))
        with pytest.raises(DataError, match=rf"en_meta_part_1.json: .*`{key}` - at `\$.{half}`"):
            read_parts([file])
