"""Table `robustness`: means, deviations, drops and baselines by hand, and what its caption says."""

import math
import statistics

import pytest

from report.written import collected
from symbert.report.formats import to_csv, to_markdown
from symbert.report.tables.robustness import robustness_table

GLUE = {"glue_source": "mirror", "corpus_source": "mirror"}
TASKS = ["mrpc", "mnli"]  # with three score columns
MODELS = [("tiny", "original", 0.6), ("tiny", "shared", 0.7), ("small", "original", 0.65)]


@pytest.fixture
def records(robustness_records):
    """Score and robustness records of such models in two tasks."""

    def make(models=MODELS, **options):
        return robustness_records(models, tasks=TASKS, **options)

    return make


@pytest.fixture
def table_of(write_scores, report_settings):
    """The table of such records."""

    def make(scores, measured, seeds=(1, 2), **changes):
        settings = report_settings(tasks=TASKS, **(GLUE | changes))
        files = write_scores(scores), write_scores(measured, "robustness")
        return robustness_table(
            collected(settings=settings, scores=files[0], robustness=files[1], finetune_seeds=list(seeds))
        )

    return make


def rows_of(table):
    return {row["model"]: row for row in table.frame.to_dict("records")}


def numbers(row):
    return [math.nan if value is None else value for value in list(row.values())[1:]]


def test_means_deviations_drops_and_baselines_are_those_by_hand(records, table_of):
    """Clean scores are 71 and 72; 40 % of the lead over 50 is lost: 8.4 and 8.8 points, or 40 %."""
    table = table_of(*records())
    rows = rows_of(table)
    assert list(table.frame)[1:] == ["clean", "mixed_10", "mixed_40", "mixed_drop", "mixed_lost_percent", "hans", "ax"]
    assert list(rows) == [
        *("tiny-original", "tiny-original, std", "tiny-shared", "tiny-shared, std"),
        *("small-original", "small-original, std", "majority baseline"),
    ]
    clean, drop = [71, 72], [8.4, 8.8]
    assert numbers(rows["tiny-shared"]) == pytest.approx([71.5, 69.35, 62.9, 8.6, 40.0, 61.5, 61.5])
    deviations = [0.9 * statistics.stdev(clean), 0.6 * statistics.stdev(clean), statistics.stdev(drop), 0.0]
    expected = [statistics.stdev(clean), *deviations, statistics.stdev(clean), statistics.stdev(clean)]
    assert numbers(rows["tiny-shared, std"]) == pytest.approx(expected, abs=1e-9)
    baseline = [50, 50, 50, math.nan, math.nan, 50, 50]
    assert numbers(rows["majority baseline"]) == pytest.approx(baseline, nan_ok=True)


def test_where_a_seed_has_nothing_to_lose_its_share_is_a_dash(records, table_of):
    table = table_of(*records([("tiny", "original", 0.495), ("tiny", "shared", 0.7)]))
    rows = rows_of(table)
    assert rows["tiny-original"]["mixed_lost_percent"] is None, "seed 1 leads by half a point"
    assert rows["tiny-original"]["mixed_drop"] == pytest.approx(0.4)
    assert not any(column == "mixed_lost_percent" for _, column in table.best)
    assert "| – |" in to_markdown(table) and ",," in to_csv(table)


def test_several_pre_training_seeds_have_one_mean_and_their_deviation(records, table_of):
    first, second = (
        records([("tiny", "original", score)], pretrain_seed=seed) for seed, score in ((1, 0.6), (2, 0.64))
    )
    table = table_of(first[0] + second[0], first[1] + second[1])
    rows = rows_of(table)
    assert list(rows) == ["tiny-original", "tiny-original, std", "majority baseline"]
    assert rows["tiny-original"]["clean"] == pytest.approx(63.5)
    assert rows["tiny-original, std"]["clean"] == pytest.approx(statistics.stdev([61.5, 65.5]))
    assert table.caption.endswith(
        "Standard deviations are over pre-training seeds, of the means over fine-tuning seeds."
    )
