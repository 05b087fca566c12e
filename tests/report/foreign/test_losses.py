"""Validation losses as a dashboard exports them become curves over steps; what is no curve is named."""

import pytest

from symbert.errors import DataError
from symbert.report.foreign import losses
from symbert.report.foreign.naming import Naming

PAIRWISE = "bert_base_pairwise_20240204-093411"


def read_losses(file, steps, pattern=None):
    return losses.read_losses(file, steps, Naming(pattern))


def test_evaluations_are_at_even_steps_and_the_one_after_the_training_is_left_out(write_losses):
    run = read_losses(write_losses(evaluations=8), 200_000)
    assert run.values.tolist() == [["base", "pairwise", 1, 25_000 * at, 10.0 - at] for at in range(1, 9)]
    assert read_losses(write_losses(evaluations=8, after=0), 200_000).equals(run)


def test_a_table_of_something_else_has_no_losses(write_losses):
    file = write_losses()
    assert losses.recognizes(file)
    file = write_losses(end=" - train/loss")
    assert not losses.recognizes(file)
    for content in (b"", b"caf\xe9;1\n\xff", b"a,b\n" + 200_000 * b"x", 200_000 * b"x"):
        file.write_bytes(content)
        assert not losses.recognizes(file)


def test_a_table_of_losses_that_is_cut_off_by_a_field_without_an_end_is_named(write_losses):
    file = write_losses()
    with open(file, "ab") as lines:
        lines.write(b'"' + 200_000 * b"x")
    with pytest.raises(DataError, match="EOF inside string .*; export it again") as caught:
        read_losses(file, 200_000)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("cells", "steps", "problem"),
    [
        ({}, 200_001, "8 evaluations in '.* - eval/loss' do not share 200001 steps"),
        ({"cell": "NaN"}, 200_000, "is NaN at Step 43; expected two numbers"),
        ({"cell": "low"}, 200_000, "is low at Step 43"),
        ({"cell": ""}, 200_000, "the evaluations in '.*' are not evenly spaced"),
        (
            {"names": (f"{PAIRWISE}-seed1_mnli_20240207-232501",)},
            200_000,
            "is of a fine-tuning run; expected losses of",
        ),
        ({"names": ("pairwise-run-7",)}, 200_000, "'pairwise-run-7' is no run's name; expected bert_"),
    ],
)
def test_losses_that_are_no_curve_are_named(write_losses, cells, steps, problem):
    file = write_losses(**cells)
    with pytest.raises(DataError, match=problem) as caught:
        read_losses(file, steps)
    assert str(caught.value).startswith(f"{file}: ") and "\n" not in str(caught.value)


def test_a_table_of_losses_without_rows_is_named(write_losses):
    file = write_losses()
    file.write_text(file.read_text().splitlines()[0])
    with pytest.raises(DataError, match="are not evenly spaced; export all of them"):
        read_losses(file, 200_000)


def test_runs_of_other_names_are_read_by_a_pattern(write_losses):
    file = write_losses(names=["large_mine_7"])
    run = read_losses(file, 200_000, "{size}_{operator}_{pretrain_seed}")
    assert run[["size", "attention", "pretrain_seed"]].drop_duplicates().values.tolist() == [["large", "mine", 7]]
    with pytest.raises(DataError, match="'large_mine_7 - eval/loss' has no size, which Figure 2 needs; give --pattern"):
        read_losses(file, 200_000, "{model}_{pretrain_seed}")
