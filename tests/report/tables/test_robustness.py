"""Table `robustness`: means, deviations, drops and baselines by hand, and what its caption says."""

import math
import statistics

import pytest

from csv_rows import read_shown
from symbert.report.data import Data, write_exhibit
from symbert.report.formats import DAGGER, to_csv, to_latex, to_markdown
from symbert.report.tables.robustness import CLAIM, robustness_table

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
def table_of(write_scores, settings_file):
    """The table of such records."""

    def make(scores, measured, seeds=(1, 2), **changes):
        settings = settings_file(tasks=TASKS, **(GLUE | changes))
        files = write_scores(scores), write_scores(measured, "robustness")
        return robustness_table(
            Data(settings=settings, scores=files[0], robustness=files[1], finetune_seeds=list(seeds))
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


def test_the_best_of_a_size_is_emphasised_and_less_lost_is_better(records, table_of):
    scores, measured = records(seeds=(1, 2, 3))
    for entry in measured:
        for name, facts in entry["sets"].items():
            if entry["attention"] == "shared" and name.startswith("mixed-40"):
                facts["score"] = 0.55
    table = table_of(scores, measured, seeds=(1, 2, 3))
    original = {(0, "mixed_40"), (0, "mixed_drop"), (0, "mixed_lost_percent")}
    assert table.best == original | {(2, column) for column in ("clean", "mixed_10", "hans", "ax")}
    assert "**62.00**" in to_markdown(table) and r"\textbf{62.00}" in to_latex(table)
    assert not table_of(*records()).best, "of two seeds nothing is inferred"


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


def test_one_seed_has_no_deviation(records, table_of):
    table = table_of(*records(seeds=(1,)), seeds=(1,))
    assert list(rows_of(table)) == ["tiny-original", "tiny-shared", "small-original", "majority baseline"]
    assert "std" not in table.caption


def test_noise_alone_and_sets_alone_have_their_columns_only(records, table_of):
    noise = table_of(*records(sets=(), kinds=("swap", "drop"), shares=(0.2,)))
    assert list(noise.frame)[1:] == [
        "clean",
        *("swap_20", "swap_drop", "swap_lost_percent", "drop_20", "drop_drop", "drop_lost_percent"),
    ]
    assert (
        "swapped with a neighbour (swap); dropped (drop)" in noise.caption
        and "Out-of-domain sets," not in noise.caption
    )
    assert noise.caption.startswith("Robustness at step 1,800: scores on noisy evaluation rows (")
    sets = table_of(*records(shares=()))
    assert sets.caption.startswith("Robustness at step 1,800: scores on out-of-domain sets (")
    assert list(sets.frame)[1:] == ["hans", "ax"] and "Clean:" not in sets.caption


def test_a_collapsed_run_is_marked_and_noted(records, table_of):
    scores, measured = records()
    assert DAGGER not in table_of(scores, measured).caption
    mnli = next(entry for entry in measured if (entry["attention"], entry["task"]) == ("shared", "mnli"))
    mnli["sets"]["hans"]["constant_prediction"] = True
    mnli["sets"]["mixed-40 mnli_matched"]["constant_prediction"] = True
    mnli["sets"]["ax"]["constant_prediction"] = None
    table = table_of(scores, measured)
    assert table.marked == {(2, "hans"), (2, "mixed_40")}
    assert f"{DAGGER} One class is predicted throughout by a seed" in table.caption
    assert f"61.50{DAGGER}" in to_markdown(table)


def test_clean_is_of_the_model_that_was_measured_and_the_caption_says_where_it_is_another(records, table_of):
    scores, measured = records()
    assert "fine-tuned again" not in table_of(scores, measured).caption
    for entry in measured:
        if entry["attention"] == "shared" and entry["finetune_seed"] == 1:
            entry["clean"] = {column: score + 0.02 for column, score in entry["clean"].items()}
    table = table_of(scores, measured)
    assert "In 2 of 12 runs the models were fine-tuned again and differ from those of Table 3." in table.caption
    assert rows_of(table)["tiny-shared"]["clean"] == pytest.approx(72.5)
    assert rows_of(table)["tiny-shared"]["mixed_drop"] == pytest.approx(8.6 + 1)


def test_stand_ins_are_named_in_headings_and_caption(records, table_of):
    records = records(stand_in=True, partial=True)
    table = table_of(*records, glue_source="embedded")
    assert list(table.frame)[1:4] == ["clean (stand-in)", "mixed_10 (stand-in)", "mixed_40 (stand-in)"]
    assert list(table.frame)[-2:] == ["hans", "ax"], "they are what they are called"
    assert "stand-in tasks made from documentation text, not GLUE" in table.caption
    assert "Partial tasks (other rows than GLUE has): all." in table.caption


def test_the_caption_says_sets_rows_noise_and_the_claim(records, table_of):
    scores, measured = records(sets=("ax", "adv_mnli", "adv_mnli_mismatched"))
    for entry in measured:
        if entry["task"] == "mnli":
            entry["sets"]["adv_mnli"] |= {"rows": 100, "official_rows": 121, "partial": True}
            entry["sets"]["ax"] |= {"metrics": ["matthews"]}
    caption = table_of(scores, measured).caption
    assert caption.startswith("Robustness at step 1,800: ") and "Experiment demo-embedded, scale demo" in caption
    assert "one pre-training seed: differences between operators may be chance" in caption
    assert "mean over 2 fine-tuning seeds, std is the sample standard deviation." in caption
    columns = "mrpc, mnli_matched, mnli_mismatched"
    assert (
        f"Clean: mean of the columns that have noise ({columns}); beside it the same with 10, 40 % of the letters"
        in caption
    )
    assert "swapped, dropped, followed by another or hit one key beside (mixed)." in caption
    assert (
        "ax (mnli, matthews, 1,104 rows), adv_mnli (mnli, accuracy, 100 of 121 rows), "
        "adv_mnli_mismatched (mnli, accuracy, 1,104 rows); adv mean: of AdvGLUE's sets." in caption
    )
    assert CLAIM in caption and "2412.00359" in CLAIM


def test_the_command_writes_the_same_bytes_whatever_the_order_of_the_inputs(
    records, write_scores, settings_file, tmp_path
):
    scores, measured = records()
    files, other = write_scores(scores), write_scores(measured, "robustness")
    first, second = ([tmp_path / f"{name}.{suffix}" for suffix in ("csv", "md", "tex")] for name in ("first", "second"))
    write_exhibit(
        "table-robustness",
        first,
        scores=files,
        robustness=other,
        settings=settings_file(tasks=TASKS),
        finetune_seeds=[1, 2],
    )
    write_exhibit(
        "table-robustness",
        second,
        scores=files[::-1],
        robustness=other[::-1],
        settings=settings_file(tasks=TASKS),
        finetune_seeds=[1, 2],
    )
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    row = read_shown(first[0])[0]
    assert ",".join(row) == "model,clean,mixed_10,mixed_40,mixed_drop,mixed_lost_percent,hans,ax"
    assert ",".join(row.values()) == "tiny-original,61.50,60.35,56.90,4.60,40.00,51.50,51.50"
    assert "mixed lost (%)" in first[1].read_text(encoding="utf-8")
    assert r"\label{tab:robustness}" in first[2].read_text(encoding="utf-8")
