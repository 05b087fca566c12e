"""What a JSON value lacks of its shape, in words."""

import json

import pytest

from symbert.errors import DataError
from symbert.files import read_json
from symbert.shapes import flaws

SHAPE = {"step": int, "scaler": dict, "sha256": {str: str}, "shards": [{"rows": int}], "loss": (float, type(None))}
FITTING = {"step": 1, "scaler": {}, "sha256": {"a": "b"}, "shards": [{"rows": 2, "more": 3}], "loss": None, "other": 4}


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "is [], expected an object"),
        ("x" * 99, "is '" + "x" * 59 + "…, expected an object"),
        ({key: value for key, value in FITTING.items() if key != "step"}, "has no 'step'"),
        (FITTING | {"step": True}, "has the step True"),
        (FITTING | {"sha256": {"a": 1}}, "has the sha256.a 1"),
        (FITTING | {"shards": [{"rows": 1}, {}]}, "has no 'shards[1].rows'"),
        (FITTING | {"loss": "1"}, "has the loss '1'"),
    ],
)
def test_json_of_another_shape_is_told_by_what_is_wrong_with_it(tmp_path, value, told):
    assert list(flaws(FITTING, SHAPE)) == [] and told in flaws(value, SHAPE)
    (tmp_path / "x.json").write_text(json.dumps(value))
    with pytest.raises(DataError) as failure:
        read_json(tmp_path / "x.json", SHAPE)
    assert str(failure.value) == f"{tmp_path}/x.json: {told}; delete it and run again"
