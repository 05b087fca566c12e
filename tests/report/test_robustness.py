"""Robustness files become one table, or an error that says what is wrong with them; and what is drawn from it."""

import pytest

from report.written import collected
from symbert.errors import DataError, MissingInputError
from symbert.report.collect import read_robustness, read_scores
from symbert.report.tables.robustness import baseline_scores, domain_scores, fine_tuned_again, noise_scores

TASKS, SEEDS = ["mrpc", "mnli"], [1, 2]
MODELS = [("tiny", "pairwise", 0.7), ("tiny", "original", 0.6)]
LAST = "tiny-original/seed-1/step-1800/mnli finetune_seed 2"  # the cell of the last record


@pytest.fixture
def records(robustness_records):
    """Score and robustness records of two operators, two tasks and two seeds."""
    return robustness_records(MODELS, tasks=TASKS)


@pytest.fixture
def read(write_scores):
    """Clean scores and robustness of such records."""

    def make(scores, measured, tasks=TASKS, seeds=SEEDS, settings_hash="aaaa"):
        clean = read_scores(write_scores(scores), tasks, seeds)
        return clean, read_robustness(write_scores(measured, "robustness"), clean, settings_hash)

    return make


@pytest.fixture
def problem(read):
    """What is said of such records."""

    def make(scores, measured, **options):
        with pytest.raises(DataError) as caught:
            read(scores, measured, **options)
        message = str(caught.value)
        assert "\n" not in message and message.startswith("robustness: ")
        return message

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


def test_clean_and_noisy_means_are_of_the_same_columns(records, read):
    scores, measured = records
    for score, noisy in zip(scores, measured, strict=True):
        if score["task"] == "mrpc":
            noisy["sets"], noisy["clean"] = {}, {}
            score["metrics"] = {"mrpc": 0.1}
    means = noise_scores(read(scores, measured)[1])
    assert means.loc[("tiny", "original", 1, 1800, 1), "clean"] == pytest.approx(61.0), "mrpc has no noise"


def test_wnli_counts_for_no_mean(robustness_records, read):
    scores, measured = robustness_records(MODELS, tasks=["rte", "rte"], seeds=[1])
    for entry in (scores[1], scores[3], measured[1], measured[3]):
        entry["task"] = entry["data_sha256"] = "wnli"
    for score in (scores[1], scores[3]):
        score["metrics"], score["majority"] = {"wnli": 0.9}, {"wnli": 0.5}
    for noisy in (measured[1], measured[3]):
        noisy["clean"] = {"wnli": 0.9}
        noisy["sets"] = {name: facts | {"column": "wnli", "score": 0.9} for name, facts in noisy["sets"].items()}
    means = noise_scores(read(scores, measured, ["rte", "wnli"], [1])[1])
    assert means["clean"].tolist() == pytest.approx([61.0, 71.0])


def test_the_sets_of_advglue_come_last_and_have_a_mean(robustness_records, read):
    scores, measured = robustness_records(MODELS, sets=("adv_mnli", "ax", "adv_mnli_mismatched"), tasks=TASKS)
    for entry in measured:
        if entry["task"] == "mnli":
            entry["sets"]["adv_mnli"]["score"] += 0.04
    sets = domain_scores(read(scores, measured)[1])
    assert list(sets) == ["ax", "adv_mnli", "adv_mnli_mismatched", "adv_mean"]
    assert sets.loc[("tiny", "original", 1, 1800, 1)].tolist() == pytest.approx([51.0, 55.0, 51.0, 53.0])


def test_the_majority_baseline_is_scored_alike(records, read):
    baseline = baseline_scores(read(*records)[1])
    assert set(noise_scores(baseline).to_numpy().flat) == {50.0}
    assert set(domain_scores(baseline).to_numpy().flat) == {50.0}


def test_scores_of_other_settings_are_stale(records, problem, read):
    records[1][-1]["settings_hash"] = "bbbb"
    assert f"other settings_hash: {LAST} has bbbb, expected aaaa" in problem(*records)
    for entry in records[1]:
        entry["settings_hash"] = "bbbb"
    assert problem(*records).count("has bbbb, expected aaaa") == 8, "models, tasks and seeds"
    assert len(read(*records, settings_hash=None)[1]) > 0, "None: any"


def test_clean_and_noisy_scores_are_of_the_same_model(records, read):
    """A seed without kept weights is fine-tuned again, and may come out otherwise than its clean score's model."""
    assert fine_tuned_again(read(*records)[1]) == ""
    records[1][-1]["clean"]["mnli_matched"] += 0.03
    records[1][0]["clean"]["mrpc"] += 1e-12
    table = read(*records)[1]
    assert fine_tuned_again(table) == (
        "in 1 of 8 runs the models were fine-tuned again and differ from those of Table 3"
    )
    assert noise_scores(table).loc[("tiny", "original", 1, 1800, 2), "clean"] == pytest.approx(63.0)


def changed_set(name, /, **changes):
    """Changes a set of the last record."""
    return lambda measured: measured[-1]["sets"][name].update(changes)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda measured: measured.pop(), f"missing: {LAST} ax;"),
        (lambda measured: measured.append(measured[-1]), f"duplicate: {LAST} hans is there 2 times"),
        (lambda measured: measured.append(measured[-1] | {"attention": "shared"}), "unexpected: tiny-shared/"),
        (changed_set("hans", score=float("nan")), f"not a score: {LAST} hans is nan"),
        (changed_set("hans", score=52.3), f"not a score: {LAST} hans is 52.3"),
        (lambda measured: measured[-1].update(checkpoint_sha256="b"), f"other checkpoint_sha256: {LAST} has b,"),
        (lambda measured: measured[-1].update(data_sha256="b"), f"other data_sha256: {LAST} has b,"),
        (lambda measured: measured[-1].update(precision="bf16"), f"other precision: {LAST} has bf16,"),
        (changed_set("hans", rows=1000), f"other rows: {LAST} hans has 1000, expected 1104"),
        (changed_set("hans", majority=0.4), f"other majority: {LAST} hans has 0.4, expected 0.5"),
        (lambda measured: measured[-1]["sets"].pop("ax"), f"missing: {LAST} ax"),
    ],
)
def test_a_cell_that_is_missing_twice_stale_unlike_or_no_number_is_named(records, problem, damage, told):
    damage(records[1])
    assert told in problem(*records)


def test_robustness_without_noise_and_sets_is_refused(robustness_records, read):
    with pytest.raises(
        MissingInputError, match="no record has a set that counts; choose other glue.robustness.noise or s"
    ):
        read(*robustness_records(MODELS, shares=(), sets=(), tasks=TASKS))


def test_the_comparison_is_of_the_last_step(records, record, write_scores, report_settings):
    """Models without pre-training (step 0) and checkpoints have clean scores and need no robustness."""
    scores, measured = records
    before = [entry | {"step": step} for entry in scores for step in (0, 900)]
    files = write_scores(scores + before), write_scores(measured, "robustness")
    given = {"scores": files[0], "robustness": files[1], "finetune_seeds": SEEDS}
    data = collected(settings=report_settings(tasks=TASKS), **given)
    assert set(data.trained["step"]) == set(data.robustness["step"]) == {1800}
    with pytest.raises(MissingInputError, match="the last step is 1800, expected 3600"):
        collected(settings=report_settings(tasks=TASKS, steps=3600), **given).robustness  # noqa: B018
