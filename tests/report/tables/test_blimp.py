"""The table of minimal pairs: means by hand, what its caption says, and records that cannot stand beside others."""

import math

import pytest

from report.conftest import write
from report.minimal_pairs import minimal_pairs
from report.written import collected
from symbert.errors import DataError, IntegrityError
from symbert.glue.blimp import PARADIGMS, PHENOMENA
from symbert.glue.metrics import hashed
from symbert.report.collect import read_minimal_pairs
from symbert.report.tables.scores import blimp_table


@pytest.fixture
def files_of(tmp_path):
    """The files of records."""
    return lambda *records: [write(tmp_path / f"pairs/{at}.json", one) for at, one in enumerate(records)]


@pytest.fixture
def table_of(files_of, report_settings):
    """The table of such records."""
    return lambda *records, settings=None, **sweep: blimp_table(
        collected(report_settings(settings), sweep=sweep, blimp=files_of(*records))
    )


def test_the_accuracy_is_the_mean_over_paradigms_and_a_tie_counts_half(table_of):
    """Of 67 paradigms the two of ellipsis are all right; phenomena have from two to nine, so their mean is another."""
    one, two = minimal_pairs(right=6), minimal_pairs(seed=2, right=4, ties=2)
    (row,) = table_of(one, two).readable.to_dict("records")
    first, second = (65 * 60 + 200) / 67, (65 * 50 + 200) / 67
    assert row["model"] == "tiny-original" and row["accuracy"] == pytest.approx((first + second) / 2)
    assert row["std"] == pytest.approx((first - second) / math.sqrt(2))
    assert (row["ellipsis"], row["island_effects"]) == (100, 55)
    assert [name for name in row if name in PHENOMENA] == list(PHENOMENA)


def test_a_wanted_run_is_not_left_out_of_the_table(table_of):
    """What was asked for was told by the files alone, as once for scores."""
    asked = {"architectures": ["encoder", "decoder"], "sizes": ["tiny"], "attention": ["original"]}
    asked["settings"] = {"architectures.decoder.steps": 900}
    judged = minimal_pairs(), minimal_pairs(step=900, architecture="decoder")
    assert len(table_of(*judged, **asked).readable) == 2
    last = "tiny-original, pretrain_seed 1, step"
    for left, lost in ((judged[:1], f"decoder {last} 900"), (judged[1:], f"{last} 1800")):
        with pytest.raises(DataError, match=f"^blimp: missing: {lost}"):
            table_of(*left, **asked)
    with pytest.raises(
        DataError, match="^blimp: duplicate: tiny-original, pretrain_seed 1, step 1800 is there 2 times"
    ):
        table_of(minimal_pairs(), *judged)


def test_a_flipped_digit_of_a_record_does_not_go_into_the_table(files_of):
    (file,) = files_of(hashed(minimal_pairs()))
    assert len(read_minimal_pairs([file])) == len(PARADIGMS)
    file.write_text(file.read_text().replace('"right": 6', '"right": 7', 1))
    with pytest.raises(IntegrityError, match=f"{file}: sha256 expected .*; delete it"):
        read_minimal_pairs([file])


@pytest.mark.parametrize(
    ("changes", "flaw"),
    [
        ({"settings_hash": "cafe"}, "tiny-pairwise, pretrain_seed 1, step 1800 has cafe, expected b11a"),
        ({"data_sha256": "others"}, "other data_sha256: tiny-pairwise"),
        ({"right": 9, "ties": 2}, "counts of anaphor_gender_agreement do not add up"),
        ({"right": -1}, "expected 'int' >= 0"),
        ({"pairs": 0, "right": 0}, "expected 'int' >= 1"),
        ({"paradigms": {}}, "not of BLiMP's 67 paradigms"),
        ({"paradigms": {name: {"pairs": 1, "right": True, "ties": 0} for name in PARADIGMS}}, "expected 'int'"),
        ({"step": "1800"}, "'step'"),
        ({"stand_in": 0}, "'stand_in'"),
        ({"architecture": "radio"}, "not of BLiMP's 67 paradigms and an architecture"),
    ],
)
def test_a_record_that_cannot_stand_beside_the_others_is_named(files_of, changes, flaw):
    files = files_of(minimal_pairs(), minimal_pairs("pairwise", **changes))
    with pytest.raises(DataError, match=flaw):
        read_minimal_pairs(files)
