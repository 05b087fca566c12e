"""Word pieces that keep case and spaces: text comes back as it was, whatever its language."""

import hypothesis.strategies as st
from hypothesis import given

from symbert.pretrain.parallel_text import END, PADDING, START, UNKNOWN, TextPieces

TEXT = ["The cat (a tabby) sat; it didn't move.", "Der Kater saß — wie immer — auf dem Ofen!", "猫は静かに座った。"]
PIECES = TextPieces.learned_from(TEXT * 3, 120)


def test_a_line_comes_back_with_its_case_its_spaces_and_its_signs():
    """A sentence without a space was one word, which as a whole was unknown from its 101st letter on."""
    for line in [*TEXT, "the Tabby cat; (didn't) move!", "Kater; 猫 sat。", "猫は静かに座った。" * 20]:
        (ids,) = PIECES.encode([line])
        assert UNKNOWN not in ids and PIECES.decode(ids) == line
        assert PIECES.decode([START, *ids, END, *ids, PADDING]) == line


@given(st.lists(st.text(sorted({*"".join(TEXT)} - {" "}), min_size=1, max_size=12), max_size=6))
def test_all_lines_of_known_letters_come_back(words):
    line = " ".join(words)
    (ids,) = PIECES.encode([line])
    assert UNKNOWN not in ids and PIECES.decode(ids) == line


def test_the_name_of_a_special_token_in_a_text_is_text():
    """As a token, </s> in a web page would end the translation there."""
    pieces = TextPieces.learned_from(["a < b > c / s </s> <pad>"] * 3, 60)
    (ids,) = pieces.encode(["</s> <pad>"])
    assert {PADDING, START, END}.isdisjoint(ids) and pieces.decode(ids) == "</s> <pad>"


def test_pieces_are_the_same_each_time():
    assert TextPieces.learned_from(TEXT * 3, 120).pieces == PIECES.pieces
