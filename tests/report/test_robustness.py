"""Robustness files become one table, or an error that says what is wrong with them; and what is drawn from it."""

import pytest

from symbert.errors import DataError
from symbert.report.collect import read_robustness, read_scores
from symbert.report.tables.robustness import noise_scores

TASKS, SEEDS = ["mrpc", "mnli"], [1, 2]
SEEDS_OF_RUN = ["attention", "finetune_seed"]
MODELS = [("tiny", "pairwise", 0.7), ("tiny", "original", 0.6)]
LAST = "tiny-original, pretrain_seed 1, step 1800, mnli, finetune_seed 2"  # the cell of the last record


@pytest.fixture
def records(robustness_records):
    """Score and robustness records of two operators, two tasks and two seeds."""
    return robustness_records(MODELS, tasks=TASKS)


@pytest.fixture
def read(write_scores):
    """Clean scores and robustness of such records."""

    def make(scores, measured, tasks=TASKS, seeds=SEEDS):
        clean = read_scores(write_scores(scores), tasks, seeds)
        return clean, read_robustness(write_scores(measured, "robustness"), clean)

    return make


def test_there_is_a_row_per_set_in_the_order_of_the_clean_scores(records, read):
    clean, table = read(*records)
    assert len(table) == 2 * 2 * (3 * 2 + 2), "models, seeds, columns with shares, and sets of mnli"
    assert (
        list(dict.fromkeys(table["attention"])) == list(dict.fromkeys(clean["attention"])) == ["original", "pairwise"]
    )
    assert list(table["label"][:2]) == ["mixed_10", "mixed_40"] and table["task"][0] == "mrpc"
    row = table[(table["attention"] == "pairwise") & (table["label"] == "hans") & (table["finetune_seed"] == 2)]
    assert row[["task", "kind", "name", "rows", "majority"]].values.tolist() == [
        ["mnli", "out-of-domain", "hans", 1104, 0.5]
    ]
    assert row["score"].item() == pytest.approx(0.7 + 0.02 - 0.1)


def test_noise_lowers_the_mean_of_the_columns_that_have_it(records, read):
    """By hand: mrpc and both columns of mnli have one score, so their mean is that score."""
    means = noise_scores(read(*records)[1])
    assert list(means) == ["clean", "mixed_10", "mixed_40"]
    found = means.loc[("tiny", "pairwise", 1, 1800, 2)].tolist()
    assert found == pytest.approx([72.0, 50 + 22 * 0.9, 50 + 22 * 0.6])
    assert [index[1] for index in means.index] == ["original"] * 2 + ["pairwise"] * 2


def test_clean_and_noisy_scores_are_of_the_same_model(records, read):
    """A seed without kept weights is fine-tuned again, and may come out otherwise than its clean score's model."""
    assert not read(*records)[1]["differs"].any()
    records[1][-1]["clean"]["mnli_matched"] += 0.03
    records[1][0]["clean"]["mrpc"] += 1e-12
    table = read(*records)[1]
    assert table.drop_duplicates([*SEEDS_OF_RUN, "task"])["differs"].sum() == 1
    assert noise_scores(table).loc[("tiny", "original", 1, 1800, 2), "clean"] == pytest.approx(63.0)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda record: record["sets"].pop("ax"), f"missing: {LAST}, ax"),
        (lambda record: record["sets"]["hans"].update(score=52.3), f"not a score: {LAST}, hans is 52.3"),
        (lambda record: record.update(checkpoint_sha256="b"), f"other checkpoint_sha256: {LAST} has b,"),
        (
            lambda record: record.update(settings_hash="bbbb"),
            f"other settings_hash: {LAST}, .* has bbbb, expected aaaa",
        ),
        (lambda record: record["sets"]["hans"].update(rows=1000), f"other rows: {LAST}, hans has 1000, expected 1104"),
        (lambda record: record["sets"]["hans"].update(majority=0.4), f"other majority: {LAST}, hans has 0.4, expect"),
    ],
)
def test_a_set_that_is_missing_stale_unlike_or_no_number_is_named(records, read, damage, told):
    damage(records[1][-1])
    with pytest.raises(DataError, match=f"^robustness: .*{told}"):
        read(*records)
