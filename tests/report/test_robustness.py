"""Robustness files become one table, or an error that says what is wrong with them; and what is drawn from it."""

import itertools

import pytest

from report.conftest import COLUMNS, domain_set, noise_set, record, robustness_record
from symbert.errors import DataError
from symbert.report.collect import read_robustness, read_scores
from symbert.report.tables.robustness import noise_scores

TASKS, SEEDS = ["mrpc", "mnli"], [1, 2]
MODELS = {"pairwise": 0.7, "original": 0.6}  # clean scores
LAST = "tiny-original, pretrain_seed 1, step 1800, mnli, finetune_seed 2"  # the cell of the last record


@pytest.fixture
def records():
    """Score and robustness records of two operators, two tasks and two seeds, of which each adds a point."""
    scores, measured = [], []
    for (attention, clean), task, seed in itertools.product(MODELS.items(), TASKS, SEEDS):
        score = clean + 0.01 * seed
        scores.append(record("tiny", attention, 1800, task, seed, score))
        sets = [noise_set(column, share, score - share / 10) for share in (0.1, 0.4) for column in COLUMNS[task]]
        sets += [domain_set(name, score - 0.1) for name in ("hans", "ax") if task == "mnli"]
        measured.append(robustness_record(scores[-1], *sets))
    return scores, measured


@pytest.fixture
def read(write_scores):
    """Clean scores and robustness of such records."""

    def make(scores, measured, tasks=TASKS, seeds=SEEDS):
        clean = read_scores(write_scores(scores), tasks, seeds)
        return clean, read_robustness(write_scores(measured, "robustness"), clean)

    return make


def test_clean_and_noisy_scores_are_of_the_same_model(records, read):
    """A seed without kept weights is fine-tuned again, and may come out otherwise than its clean score's model."""
    records[1][-1]["clean"]["mnli_matched"] += 0.03
    records[1][0]["clean"]["mrpc"] += 1e-12
    table = read(*records)[1]
    assert noise_scores(table).loc[("tiny", "original", 1, 1800, 2), "clean"] == pytest.approx(63.0)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda record: record["sets"].pop("ax"), f"missing: {LAST}, ax"),
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


def test_noise_on_tasks_outside_the_glue_score_counts_where_it_is_alone(read):
    """A task of the user's own alone, and wnli alone, at the demo's noise ended without a page."""
    own = {"task": "wnli", "metrics": {"wnli": 0.6}, "majority": {"wnli": 0.5}, "data_sha256": "wnli rows"}
    scores = [record("tiny", "original", 1800, "mrpc", seed, 0.6) for seed in SEEDS]
    scores = [score | own for score in scores] + scores
    noise = {"wnli": 0.5, "mrpc": 0.4}
    measured = [
        robustness_record(score, noise_set(score["task"], 0.2, noise[score["task"]])) | {"clean": score["metrics"]}
        for score in scores
    ]
    table = read(scores, measured, ["wnli", "mrpc"])[1]
    assert noise_scores(table)["mixed_20"].tolist() == pytest.approx([40, 40]), "without wnli, as ever"
    table = read(scores[:2], measured[:2], ["wnli"])[1]
    assert noise_scores(table)["mixed_20"].tolist() == pytest.approx([50, 50])
    assert noise_scores(table)["clean"].tolist() == pytest.approx([60, 60])
