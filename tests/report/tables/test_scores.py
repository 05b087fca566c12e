"""Tables of scores: Table 3 and other suites, every seed, SQuAD's kinds of questions; means, deviations, refusals."""

import itertools
import random
import statistics
from dataclasses import replace

import pytest

from csv_rows import read_shown
from report.written import unchecked, write_exhibit
from symbert.errors import DataError, MissingInputError
from symbert.glue.tasks import GLUE, OWN, SUITES
from symbert.report import published

TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
PAPER = {"scale": "paper", "experiment": "paper-hub", "corpus_source": "hub", "glue_source": "hub"}
PAPER |= {"steps": 200_000, "batch_size": 256, "sequence_length": 512}


@pytest.fixture
def tabulate(write_scores, report_settings, outputs):
    """Writes Table 3 of records; returns the rows of its csv, and its Markdown."""

    def write(records, **settings):
        write_exhibit(
            "table-table3_glue",
            outputs,
            scores=write_scores(records),
            settings=report_settings(**settings),
            finetune_seeds=sorted({entry["finetune_seed"] for entry in records}),
        )
        return read_shown(outputs[0]), outputs[1].read_text()

    return write


@pytest.fixture
def demo_records(record):
    """Two operators with three seeds; scores that differ by operator, seed and task."""
    records = []
    for (position, attention), (index, task), seed in itertools.product(
        enumerate(["original", "pairwise"]), enumerate(TASKS), [1, 2, 3]
    ):
        score = 0.5 + 0.1 * position + 0.01 * index + 0.003 * seed**2
        records.append(record("tiny", attention, 1800, task, seed, score, partial=task == "rte", stand_in=True))
    return records


def test_table_3_has_mean_and_sample_deviation_of_the_nine_columns(demo_records, tabulate):
    (original, pairwise, majority), _ = tabulate(demo_records)
    assert [row["model"] for row in (original, pairwise, majority)] == [
        "tiny-original",
        "tiny-pairwise",
        "majority baseline",
    ]
    weights = [0, 1, 2, 2, 3, 4, 5, 6, 7]  # index of each column's task; mnli is there twice
    seeds = [100 * (0.5 + 0.01 * sum(weights) / 9 + 0.003 * seed**2) for seed in (1, 2, 3)]
    assert original["glue_score (stand-in)"] == f"{statistics.mean(seeds):.2f}"
    assert original["std"] == f"{statistics.stdev(seeds):.2f}"
    eight = 100 * (0.5 + 0.01 * 28 / 8 + 0.003 * 14 / 3)
    assert original["mean_of_tasks (stand-in)"] == f"{eight:.2f}"
    assert pairwise["sst2 (stand-in)"] == f"{100 * (0.6 + 0.07 + 0.003 * 14 / 3):.2f}"
    assert pairwise["finetune_seeds"] == "3"
    assert majority["glue_score (stand-in)"] == "50.00" and majority["std"] == ""


@pytest.mark.parametrize("changes", [{"glue_source": "mirror"}, {"glue": {"epochs": 3}}])
def test_the_papers_numbers_stand_beside_ours_only_where_models_and_data_are_the_papers(record, tabulate, changes):
    records = [record("base", "pairwise", 200_000, task, 1) for task in TASKS]
    rows, _ = tabulate(records, **PAPER)
    assert [row["model"] for row in rows] == ["base-pairwise", "base-pairwise, the paper", "majority baseline"]
    assert (rows[1]["glue_score"], rows[1]["std"], rows[1]["cola"]) == ("79.36", "0.37", "46.91")
    rows, text = tabulate(records, **(PAPER | changes))
    assert len(rows) == 2 and "the paper" not in text


def test_nothing_is_bold_where_nothing_is_inferred_or_all_are_equal(record, tabulate):
    """100.00 stood in bold for every operator; and the better one of two that share two seeds."""

    def bold(scores, seeds):
        cells = itertools.product(scores, TASKS, seeds)
        _, text = tabulate([record("tiny", name, 1800, task, seed, scores[name]) for name, task, seed in cells])
        return "**" in text

    assert bold({"original": 0.6, "pairwise": 0.9}, (1, 2, 3))
    assert not bold({"original": 0.6, "pairwise": 0.9}, (1, 2))
    assert not bold({"original": 1.0, "pairwise": 1.0}, (1, 2, 3))


def test_a_subset_of_tasks_is_not_called_the_benchmark(record, tabulate):
    tasks = ["rte", "mnli"]
    (ours, paper, _), text = tabulate(
        [record("base", "original", 200_000, task, 1) for task in tasks], **PAPER, tasks=tasks
    )
    assert "Not the whole benchmark" in text
    assert list(ours)[3:6] == ["rte", "mnli_matched", "mnli_mismatched"]
    assert (paper["glue_score"], paper["rte"]) == ("", "59.42"), "the paper's mean is of all its columns"


def test_pre_training_seeds_have_rows_of_their_own_and_one_of_their_mean(record, tabulate):
    records = [
        record("tiny", name, 1800, task, seed, score + 0.02 * seed - 0.03 + better, stand_in=True)
        | {"pretrain_seed": pretrain_seed}
        for (name, better), task, seed in itertools.product((("original", 0), ("pairwise", 0.05)), TASKS, (1, 2))
        for pretrain_seed, score in ((1, 0.60), (2, 0.70), (3, 0.65))
    ]
    rows, _ = tabulate(records)
    assert [row["model"] for row in rows[:4]] == [
        *(f"tiny-original, seed {seed}" for seed in (1, 2, 3)),
        "tiny-original, mean of 3 seeds",
    ]
    assert [row["glue_score (stand-in)"] for row in rows[:4]] == ["60.00", "70.00", "65.00", "65.00"]
    over_finetune_seeds, over_pretrain_seeds = statistics.stdev([59, 61]), statistics.stdev([60, 70, 65])
    assert [row["std"] for row in rows[:4]] == [*[f"{over_finetune_seeds:.2f}"] * 3, f"{over_pretrain_seeds:.2f}"]
    assert [row["finetune_seeds"] for row in rows] == [*["2"] * 8, ""]


def test_a_mean_with_a_collapsed_run_in_it_has_a_dagger(demo_records, tabulate):
    """The mean hides such a run: two of three seeds that found nothing look like an operator that is worse."""
    for entry in demo_records:
        entry["constant_prediction"] = (entry["attention"], entry["task"]) == ("original", "mnli")
    _, text = tabulate(demo_records)
    lines = {line.split(" | ")[0]: line for line in text.splitlines()}
    assert lines["| tiny-original"].count(f" {100 * (0.5 + 0.02 + 0.003 * 14 / 3):.2f}† ") == 2
    assert lines["| tiny-original"].count("†") == 2 and "†" not in lines["| tiny-pairwise"]
    assert "mnli by tiny-original (3 of 3 runs, fine-tuning seeds 1, 2, 3)" in text


def test_models_without_pre_training_have_rows_of_their_own(demo_records, record, tabulate):
    models = itertools.product(["original", "pairwise"], TASKS, [1, 2, 3])
    untrained = [record("tiny", name, 0, task, seed, 0.9, stand_in=True) for name, task, seed in models]
    found, text = tabulate([*demo_records, *untrained])
    rows = {row["model"]: row for row in found}
    assert len(rows) == 5 and rows["tiny-original, no pre-training"]["glue_score (stand-in)"] == "90.00"
    assert float(rows["tiny-original"]["glue_score (stand-in)"]) < 60
    bold = [line.split(" | ")[0] for line in text.splitlines() if "**" in line]
    assert bold == ["| tiny-pairwise"], "the best is one of the pre-trained"


def test_stand_ins_in_a_mirror_are_called_so_and_the_other_tasks_are_not(record, tabulate):
    records = [record("tiny", "original", 1800, task, 1, stand_in=task in ("rte", "mnli")) for task in TASKS]
    (row, _), text = tabulate(records, glue_source="mirror")
    named = {column.removesuffix(" (stand-in)") for column in row if "(stand-in)" in column}
    assert named == {"glue_score", "mnli_matched", "mnli_mismatched", "rte", "mean_of_tasks"}
    assert "not GLUE: mnli, rte." in text


def test_missing_scores_are_refused_and_of_imported_ones_dashes_with_what_is_missing(demo_records, tabulate):
    """A mean over other tasks than its neighbour's is no GLUE score: only complete seeds count for that."""
    gone = [("original", "rte", 3), ("pairwise", "cola", 1), ("pairwise", "cola", 2), ("pairwise", "cola", 3)]
    kept = [e for e in demo_records if (e["attention"], e["task"], e["finetune_seed"]) not in gone]
    with pytest.raises(DataError, match="missing: tiny-original/seed-1/step-1800/rte finetune_seed 3; "):
        tabulate(kept)
    with unchecked():
        (original, pairwise, _), text = tabulate(kept)
    assert original["rte (stand-in)"] == f"{100 * (0.5 + 0.04 + 0.003 * 5 / 2):.2f}", "over the two that there are"
    weights = [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert original["glue_score (stand-in)"] == f"{100 * (0.5 + 0.01 * sum(weights) / 9 + 0.003 * 5 / 2):.2f}"
    assert (original["finetune_seeds"], pairwise["finetune_seeds"]) == ("2", "0")
    assert (pairwise["cola (stand-in)"], pairwise["glue_score (stand-in)"], pairwise["std"]) == ("", "", "")
    assert pairwise["sst2 (stand-in)"] == f"{100 * (0.6 + 0.07 + 0.003 * 14 / 3):.2f}"
    assert "rte of tiny-original (2 of 3), cola of tiny-pairwise (0 of 3)" in text


@pytest.mark.parametrize(
    ("tasks", "score"),
    [(["wnli"], ""), (["rte", "wnli"], "60.00"), (["rte", "irony"], "60.00")],
)
def test_a_sweep_without_mnli_or_with_tasks_that_do_not_count_has_its_table(tabulate, tasks, score, monkeypatch):
    monkeypatch.setitem(OWN, "irony", replace(GLUE["wnli"], name="irony", scores={"validation": "irony"}))
    flags = dict.fromkeys(("partial", "stand_in", "constant_prediction"), False)
    records = [
        {"size": "tiny", "attention": attention, "pretrain_seed": 1, "step": 1800, "task": task, "finetune_seed": seed}
        | {"metrics": {task: 0.6}, "majority": {task: 0.5}, "settings_hash": "aaaa", **flags}
        for task, attention, seed in itertools.product(tasks, ("original", "symmetric"), (1, 2))
    ]
    rows, _ = tabulate(records, tasks=tasks, glue_source="hub")
    assert [row["glue_score"] for row in rows[:2]] == [score] * 2 and rows[0][tasks[-1]] == "60.00"
    assert [row[tasks[-1]] for row in rows[2:]] == ["50.00"], "the majority baseline"


def test_only_the_final_step_counts_and_it_must_be_there(demo_records, record, tabulate):
    models = itertools.product(["original", "pairwise"], TASKS, [1, 2, 3])
    earlier = [record("tiny", name, 300, task, seed, 0.9, stand_in=True) for name, task, seed in models]
    rows, _ = tabulate([*demo_records, *earlier])
    assert float(rows[0]["glue_score (stand-in)"]) < 60
    with pytest.raises(MissingInputError, match="the last step is 300, expected 1800"):
        tabulate(earlier)


def test_a_permutation_of_the_inputs_gives_the_same_bytes(demo_records, tabulate, outputs):
    tabulate(demo_records)
    before = [path.read_bytes() for path in outputs]
    random.Random(1).shuffle(demo_records)
    tabulate(demo_records)
    assert [path.read_bytes() for path in outputs] == before


def test_the_published_table_is_the_papers_and_says_so(outputs):
    write_exhibit("table-table3_published", outputs)
    rows = read_shown(outputs[0])
    assert [float(value) for value in list(rows[-1].values())[1:]] == list(published.SCORES["base", "pairwise"])
    for path in outputs[1:]:
        assert "The paper's own numbers, not this experiment's" in path.read_text()
    assert "**79.36**" in outputs[1].read_text() and r"\textbf{73.38}" in outputs[2].read_text()


@pytest.fixture
def tabulate_seeds(tmp_path, write_scores, report_settings):
    """Writes the table of records; returns the rows of its csv, and its Markdown."""

    def write(records, tasks=("rte", "mnli"), **settings):
        outputs = [tmp_path / "scores.csv", tmp_path / "scores.md"]
        seeds = sorted({entry["finetune_seed"] for entry in records})
        write_exhibit(
            "table-scores",
            outputs,
            scores=write_scores(records),
            settings=report_settings(tasks=list(tasks), **settings),
            finetune_seeds=seeds,
        )
        return read_shown(outputs[0]), outputs[1].read_text().replace("\\", "")

    return write


@pytest.fixture
def seed_records(record):
    """Records of `original` in which a score tells step, seeds and task."""

    def make(steps=(1800,), pretrain_seeds=(1,), seeds=(1, 2), **changes):
        return [
            record("tiny", "original", step, task, seed, score(step, pretrain_seed, task, seed), **changes)
            | {"pretrain_seed": pretrain_seed}
            for step, pretrain_seed, task, seed in itertools.product(steps, pretrain_seeds, ("rte", "mnli"), seeds)
        ]

    return make


def score(step, pretrain_seed, task, seed):
    return 0.4 + 0.1 * (step > 0) + 0.01 * pretrain_seed**2 + 0.001 * seed + 0.2 * (task == "mnli")


def test_each_seed_has_a_row_and_their_mean_and_deviation_follow(tabulate_seeds, seed_records):
    rows, _ = tabulate_seeds(seed_records(seeds=(1, 2, 3)))
    assert [row["finetune_seed"] for row in rows] == ["1", "2", "3", "mean", "std"]
    assert list(rows[0]) == [
        *("model", "finetune_seed", "glue_score", "mean_of_tasks", "rte", "mnli_matched", "mnli_mismatched")
    ]
    assert [row["rte"] for row in rows] == ["51.10", "51.20", "51.30", "51.20", "0.10"]
    assert [row["glue_score"] for row in rows[:3]] == [f"{51 + seed / 10 + 40 / 3:.2f}" for seed in (1, 2, 3)]
    assert rows[3]["mean_of_tasks"] == "61.20" and {row["model"] for row in rows} == {"tiny-original"}


def test_models_without_pre_training_stand_beside_theirs(tabulate_seeds, seed_records):
    rows, _ = tabulate_seeds(seed_records(steps=(0, 1800), seeds=(1,)))
    found = [(row["model"], row["rte"]) for row in rows]
    assert found == [("tiny-original, no pre-training", "41.10"), ("tiny-original", "51.10")]


def test_pre_training_seeds_have_rows_of_their_own_and_then_their_mean(tabulate_seeds, seed_records):
    rows, _ = tabulate_seeds(seed_records(pretrain_seeds=(1, 2, 3)))
    keys = [(row["pretrain_seed"], row["finetune_seed"]) for row in rows]
    own = [(str(seed), name) for seed in (1, 2, 3) for name in ("1", "2", "mean", "std")]
    assert keys == [*own, ("mean", ""), ("std", "")]
    means = [50.15 + seed**2 for seed in (1, 2, 3)]
    assert [row["rte"] for row in rows[2:12:4]] == [f"{mean:.2f}" for mean in means]
    assert [row["rte"] for row in rows[-2:]] == [f"{statistics.mean(means):.2f}", f"{statistics.stdev(means):.2f}"]


GLUE_TASKS, SUPERGLUE_TASKS = [name for name in GLUE if name != "wnli"], list(SUITES["superglue"].tasks)
SEEDS, STEPS = [1, 2, 3], [900, 1800]


@pytest.fixture
def superglue(record, write_scores, report_settings):
    """The options of SuperGLUE's exhibits: two operators with three seeds, whose scores differ by task and seed."""

    def score_of(position, index, seed, step):
        return 0.4 + 0.1 * position + 0.01 * index + 0.002 * seed**2 - 0.05 * (step < 1800)

    records = []
    cells = enumerate(["original", "pairwise"]), enumerate(SUPERGLUE_TASKS), SEEDS, STEPS
    for (position, attention), (index, task), seed, step in itertools.product(*cells):
        score = {task: score_of(position, index, seed, step)}
        made = record("tiny", attention, step, "rte", seed, partial=task == "boolq")
        records.append(
            made
            | {"task": task, "metrics": score, "majority": {task: 0.3}, "data_sha256": task, "settings_hash": "ab12"}
        )
    final = [each for each in records if each["step"] == 1800]
    settings = report_settings(
        tasks=[*GLUE_TASKS, *SUPERGLUE_TASKS], glue_source="mirror", suites={"superglue": "ab12"}
    )
    return {"scores": write_scores(final, "final"), "finetune_seeds": SEEDS, "settings": settings}, {
        "curve": write_scores(records, "curve"),
        "curve_seeds": SEEDS,
        "settings": settings,
    }


def test_the_table_has_the_mean_of_eight_tasks_and_names_what_is_partial(superglue, outputs):
    write_exhibit("table-superglue", outputs, **superglue[0])
    original, pairwise, majority = read_shown(outputs[0])
    seeds = [100 * (0.4 + 0.01 * 28 / 8 + 0.002 * seed**2) for seed in SEEDS]
    assert original["superglue_score"] == f"{statistics.mean(seeds):.2f}"
    assert original["std"] == f"{statistics.stdev(seeds):.2f}" and "glue_score" not in original
    assert pairwise["cb"] == f"{100 * (0.5 + 0.01 + 0.002 * 14 / 3):.2f}"
    assert majority["superglue_score"] == "30.00" and list(original)[3:11] == SUPERGLUE_TASKS
    text = outputs[1].read_text()
    assert "Scores in percent on SuperGLUE from a local mirror" in text
    assert "Partial tasks (other rows than SuperGLUE has): boolq." in text
    assert "Not the whole benchmark" not in text


def test_every_seed_and_the_differences_have_tables_whose_mean_is_tested(superglue, outputs):
    write_exhibit("table-superglue_scores", outputs, **superglue[0])
    assert [row["finetune_seed"] for row in read_shown(outputs[0])][:5] == ["1", "2", "3", "mean", "std"]
    write_exhibit("table-superglue_statistics", outputs, **superglue[0])
    first, *others = read_shown(outputs[0])
    assert (first["score"], float(first["difference"])) == ("superglue_score", pytest.approx(10))
    assert float(first["p"]) == pytest.approx(0.1) and not any(row["p"] for row in others)


def test_a_table_of_glue_has_no_column_of_superglue(superglue, record, write_scores, outputs):
    cells = itertools.product(["original", "pairwise"], GLUE_TASKS, SEEDS)
    records = [record("tiny", attention, 1800, task, seed) for attention, task, seed in cells]
    options = {**superglue[0], "scores": write_scores(records)}
    write_exhibit("table-table3_glue", outputs, **options)
    original, *_ = read_shown(outputs[0])
    assert original["glue_score"] == "60.00" and not {*original} & {*SUPERGLUE_TASKS}


def test_scores_of_another_protocol_than_the_suites_are_stale(superglue, report_settings, outputs):
    """They would be taken for those of GLUE's settings, whose hash they had while a suite had none of its own."""
    tasks = [*GLUE_TASKS, *SUPERGLUE_TASKS]
    options = {**superglue[0], "settings": report_settings(tasks=tasks, suites={"superglue": "cd34"})}
    with pytest.raises(DataError, match="has ab12, expected cd34"):
        write_exhibit("table-superglue", outputs, **options)


ANSWERS = ("exact", "f1", "has_answer_exact", "has_answer_f1", "no_answer_f1")


def test_each_kind_of_question_has_its_mean_over_seeds(record, write_scores, report_settings, outputs):
    records = []
    for position, attention in enumerate(["original", "pairwise"]):
        for seed in (1, 2):
            details = {name: 0.1 * (at + 1) + 0.01 * seed + 0.2 * position for at, name in enumerate(ANSWERS)}
            made = record("tiny", attention, 1800, "rte", seed, details={"squad2": details}, settings_hash="ab12")
            scored = {"metrics": {"squad2": details["f1"]}, "majority": {"squad2": 0.5}}
            records.append(made | scored | {"task": "squad2", "data_sha256": "squad2"})
    settings = report_settings(tasks=["rte", "squad2"], glue_source="mirror", suites={"squad2": "ab12"})
    options = {"scores": write_scores(records), "finetune_seeds": [1, 2], "settings": settings}
    write_exhibit("table-squad2_answers", outputs, **options)
    original, pairwise = read_shown(outputs[0])
    assert [original[name] for name in ANSWERS] == ["11.50", "21.50", "31.50", "41.50", "51.50"]
    assert pairwise["has_answer_f1"] == "61.50" and original["fine_tunings"] == "2"
    write_exhibit("table-squad2", outputs, **options)
    original, _, majority = read_shown(outputs[0])
    assert (original["squad2_score"], majority["squad2_score"]) == ("21.50", "50.00")
