"""Declared types in words, as every refusal has them."""

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from symbert.declared import in_words, mistake_in
from symbert.settings import Count, EmbeddedSettings, Share, number


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Count, "an integer ≥ 1"),
        (Share | None, "a number ≥ 0 and < 1 | null"),
        (list[Literal["a", "b"]], "a list of a | b"),
        (Annotated[list[str], Meta(min_length=1)], "a non-empty list of a text"),
        (Annotated[str, Meta(pattern="^x")], "a text like ^x"),
        (dict[str, dict[str, Any]], "a map of a text to a map of a text to anything"),
        (dict[str, EmbeddedSettings], "a map of a text to a map of keys to values"),
    ],
)
def test_a_declared_type_is_told_in_words(kind, words):
    assert in_words(kind) == words


@pytest.mark.parametrize(
    ("value", "kind", "mistake"),
    [
        ({"a": {"parts": 0}}, dict[str, EmbeddedSettings], "'a.parts' is 0, expected an integer ≥ 1; correct it"),
        ({"a": {"parts": 1}}, dict[str, EmbeddedSettings], "missing key 'vocabulary_size' in 'a'; add it"),
        ({"a": {"part": 1}}, dict[str, EmbeddedSettings], "unknown key 'part' in 'a'; did you mean 'parts'?"),
        ({"b": 1, "x": 1}, dict[Literal["a", "b"], int], "unknown key 'x'; choose from a, b"),
        ({"a": [1, 2.5]}, dict[str, list[int]], "'a.1' is 2.5, expected an integer; correct it"),
        ({"a": "c"}, dict[str, Literal["on", "off"] | None], "'a' is 'c'; choose from on, off, null"),
        ({"a": 3}, dict[str, number(le=2)], "'a' is 3, expected a number ≤ 2; correct it"),
    ],
)
def test_the_innermost_mistake_is_named_with_its_key(value, kind, mistake):
    assert mistake_in(value, kind, strict=True) == mistake
