"""Declared types in words, as every refusal has them."""

from typing import Literal

import pytest

from symbert.declared import mistake_in
from symbert.settings import IntakeSettings, number


@pytest.mark.parametrize(
    ("value", "kind", "mistake"),
    [
        (
            {"a": {"max_documents": 0}},
            dict[str, IntakeSettings],
            "'a.max_documents' is 0, expected an integer ≥ 1; correct it",
        ),
        ({"a": {}}, dict[str, IntakeSettings], "missing key 'max_documents' in 'a'; add it"),
        (
            {"a": {"max_document": 1}},
            dict[str, IntakeSettings],
            "unknown key 'max_document' in 'a'; did you mean 'max_documents'?",
        ),
        ({"b": 1, "x": 1}, dict[Literal["a", "b"], int], "unknown key 'x'; choose from a, b"),
        ({"a": [1, 2.5]}, dict[str, list[int]], "'a.1' is 2.5, expected an integer; correct it"),
        ({"a": "c"}, dict[str, Literal["on", "off"] | None], "'a' is 'c'; choose from on, off, null"),
        ({"a": 3}, dict[str, number(le=2)], "'a' is 3, expected a number ≤ 2; correct it"),
    ],
)
def test_the_innermost_mistake_is_named_with_its_key(value, kind, mistake):
    assert mistake_in(value, kind, strict=True) == mistake
