"""How a run is called in lines and records."""

import re

from symbert.paths import Run, key

SWEPT = Run("tiny", "pairwise", 2, "decoder", (("learning_rate", 1e-3), ("start", 2)))


def test_a_run_is_called_by_all_that_makes_it_another():
    assert str(Run("tiny", "pairwise", 1)) == "tiny-pairwise seed 1"
    assert str(SWEPT) == "decoder tiny-pairwise learning_rate=0.001 start=2 seed 2"


def test_records_name_the_host_of_a_run_where_it_is_no_encoder():
    facts = {"size": "tiny", "attention": "pairwise", "pretrain_seed": 2}
    assert Run("tiny", "pairwise", 2).facts == facts
    assert SWEPT.facts == {**facts, "model_host": "decoder"}


def test_a_key_has_eight_hexadecimal_digits():
    assert re.fullmatch("[0-9a-f]{8}", key({"steps": 10}, "code")) and key(1) != key(2)
