"""Table 3: means, deviations, baselines, captions, and what is refused."""

import itertools
import json
import random
import statistics
from dataclasses import replace

import pytest

from csv_rows import read_shown
from symbert.errors import DataError, MissingInputError
from symbert.operators import OPERATORS
from symbert.report.data import write_exhibit
from symbert.tasks import GLUE, OWN

ATTENTION = tuple(OPERATORS)
TASKS = ["mrpc", "cola", "mnli", "qqp", "rte", "stsb", "qnli", "sst2"]
PAPER = {"scale": "paper", "experiment": "paper-hub", "corpus_source": "hub", "glue_source": "hub"}
PAPER |= {"steps": 200_000, "batch_size": 256, "sequence_length": 512}


def tabulate_corpus(counts, records, manifest, settings, output):
    files = {"counts": counts, "records": records, "manifest": manifest, "settings": settings}
    write_exhibit("table-corpus", output, **files)


def seeds_of(records):
    return sorted({entry["finetune_seed"] for entry in records})


@pytest.fixture
def corpus(tmp_path, settings_file, corpus_files):
    """Writes counts and records of parts, and a manifest; returns their files."""

    def make(*numbers, documents=(900, 50), tokens=640_060, record=None, **part):
        manifest = tmp_path / "manifest.json"
        values = {"documents": {"train": documents[0], "validation": documents[1]}, "tokens": tokens}
        values |= {"rows": {"train": 9900, "validation": 100}, "sequence_length": 64}
        values |= {"remainder_tokens": 10, "surplus_tokens": {"train": 30, "validation": tokens - 640_040}}
        manifest.write_text(json.dumps(values))
        return *corpus_files(*numbers, part=part, record=record), manifest, settings_file()

    return make


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


def test_table_3_has_mean_and_sample_deviation_of_the_nine_columns(demo_records, write_scores, settings_file, outputs):
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(demo_records),
        settings=settings_file(),
        finetune_seeds=seeds_of(demo_records),
    )
    original, pairwise, majority = read_shown(outputs[0])
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


@pytest.mark.parametrize(
    "changes",
    [
        {"glue_source": "mirror"},
        {"corpus_source": "mirror"},
        {"scale": "demo"},
        {"recipe": "fast"},
        {"pretrain": {"learning_rate": 1e-3}},
        {"glue": {"epochs": 3}},
    ],
)
def test_the_papers_numbers_stand_beside_ours_only_where_models_and_data_are_the_papers(
    record, write_scores, settings_file, outputs, changes
):
    records = [record("base", "pairwise", 200_000, task, 1) for task in TASKS]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(records),
        settings=settings_file(**PAPER),
        finetune_seeds=seeds_of(records),
    )
    rows = read_shown(outputs[0])
    assert [row["model"] for row in rows] == ["base-pairwise", "base-pairwise, the paper", "majority baseline"]
    assert (rows[1]["glue_score"], rows[1]["std"], rows[1]["cola"]) == ("79.36", "0.37", "46.91")
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(records),
        settings=settings_file(**(PAPER | changes)),
        finetune_seeds=seeds_of(records),
    )
    assert all("the paper" not in path.read_text() for path in outputs)


def test_nothing_is_bold_where_nothing_is_inferred_or_all_are_equal(record, write_scores, settings_file, outputs):
    """100.00 stood in bold for every operator; and the better one of two that share two seeds."""

    def bold(scores, seeds):
        records = [
            record("tiny", name, 1800, task, seed, scores[name])
            for name, task, seed in itertools.product(scores, TASKS, seeds)
        ]
        options = {"scores": write_scores(records), "finetune_seeds": list(seeds), "settings": settings_file()}
        write_exhibit("table-table3_glue", outputs, **options)
        return "**" in outputs[1].read_text()

    assert bold({"original": 0.6, "pairwise": 0.9}, (1, 2, 3))
    assert not bold({"original": 0.6, "pairwise": 0.9}, (1, 2))
    assert not bold({"original": 1.0, "pairwise": 1.0}, (1, 2, 3))


def test_a_subset_of_tasks_is_not_called_the_benchmark(record, write_scores, settings_file, outputs):
    tasks = ["rte", "mnli"]
    records = [record("base", "original", 200_000, task, 1) for task in tasks]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(records),
        settings=settings_file(**PAPER, tasks=tasks),
        finetune_seeds=seeds_of(records),
    )
    assert "Not the whole benchmark: the GLUE score is the mean of 3 columns (" in outputs[1].read_text()
    ours, paper, _ = read_shown(outputs[0])
    assert list(ours)[3:6] == ["rte", "mnli_matched", "mnli_mismatched"]
    assert (paper["glue_score"], paper["rte"]) == ("", "59.42"), "the paper's mean is of all its columns"


@pytest.fixture
def seed_records(record):
    """Two operators, three pre-training seeds and two fine-tuning seeds: scores 0.60, 0.70, 0.65 and 0.01 around."""
    return [
        record("tiny", name, 1800, task, seed, score + 0.02 * seed - 0.03 + better, stand_in=True)
        | {"pretrain_seed": pretrain_seed}
        for (name, better), task, seed in itertools.product((("original", 0), ("pairwise", 0.05)), TASKS, (1, 2))
        for pretrain_seed, score in ((1, 0.60), (2, 0.70), (3, 0.65))
    ]


def test_pre_training_seeds_have_rows_of_their_own_and_one_of_their_mean(
    seed_records, write_scores, settings_file, outputs
):
    write_exhibit(
        "table-table3_glue", outputs, scores=write_scores(seed_records), settings=settings_file(), finetune_seeds=[1, 2]
    )
    rows = read_shown(outputs[0])
    assert [row["model"] for row in rows[:4]] == [
        *(f"tiny-original, seed {seed}" for seed in (1, 2, 3)),
        "tiny-original, mean of 3 seeds",
    ]
    assert [row["glue_score (stand-in)"] for row in rows[:4]] == ["60.00", "70.00", "65.00", "65.00"]
    over_finetune_seeds, over_pretrain_seeds = statistics.stdev([59, 61]), statistics.stdev([60, 70, 65])
    assert [row["std"] for row in rows[:4]] == [*[f"{over_finetune_seeds:.2f}"] * 3, f"{over_pretrain_seeds:.2f}"]
    assert {row["mean_of_tasks (stand-in)"] for row in rows[3:4]} == {"65.00"}
    assert [row["finetune_seeds"] for row in rows] == [*["2"] * 8, ""]


def test_a_mean_with_a_collapsed_run_in_it_has_a_dagger(demo_records, write_scores, settings_file, outputs):
    """The mean hides such a run: two of three seeds that found nothing look like an operator that is worse."""
    for entry in demo_records:
        entry["constant_prediction"] = (entry["attention"], entry["task"]) == ("original", "mnli")
    demo_records[-1]["constant_prediction"] = True
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(demo_records),
        settings=settings_file(),
        finetune_seeds=[1, 2, 3],
    )
    lines = {line.split(" | ")[0]: line for line in outputs[1].read_text().splitlines()}
    means = [f"{100 * (0.5 + 0.02 + 0.003 * 14 / 3):.2f}†", f"**{100 * (0.6 + 0.07 + 0.003 * 14 / 3):.2f}†**"]
    assert lines["| tiny-original"].count(f" {means[0]} ") == lines["| tiny-original"].count("†") == 2
    assert lines["| tiny-pairwise"].count(f" {means[1]} ") == lines["| tiny-pairwise"].count("†") == 1
    assert (
        "mnli by tiny-original (3 of 3 runs, fine-tuning seeds 1, 2, 3); sst2 by tiny-pairwise (1 of"
        in outputs[1].read_text()
    )
    assert outputs[2].read_text().count(r"\dag{}") == 4 and "†" not in outputs[0].read_text()


@pytest.fixture
def untrained_records(demo_records, record):
    """The same models, and as they were initialised."""
    models = itertools.product(["original", "pairwise"], TASKS, [1, 2, 3])
    return [*demo_records, *(record("tiny", name, 0, task, seed, 0.9, stand_in=True) for name, task, seed in models)]


def test_models_without_pre_training_have_rows_of_their_own(untrained_records, write_scores, settings_file, outputs):
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(untrained_records),
        settings=settings_file(),
        finetune_seeds=[1, 2, 3],
    )
    rows = {row["model"]: row for row in read_shown(outputs[0])}
    assert list(rows) == [
        "tiny-original, no pre-training",
        "tiny-original",
        "tiny-pairwise, no pre-training",
        "tiny-pairwise",
        "majority baseline",
    ]
    assert rows["tiny-original, no pre-training"]["glue_score (stand-in)"] == "90.00"
    assert float(rows["tiny-original"]["glue_score (stand-in)"]) < 60
    bold = [line.split(" | ")[0] for line in outputs[1].read_text().splitlines() if "**" in line]
    assert bold == ["| tiny-pairwise"], "the best is one of the pre-trained"


def test_stand_ins_in_a_mirror_are_called_so_and_the_other_tasks_are_not(record, write_scores, settings_file, outputs):
    records = [record("tiny", "original", 1800, task, 1, stand_in=task in ("rte", "mnli")) for task in TASKS]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(records),
        settings=settings_file(glue_source="mirror"),
        finetune_seeds=[1],
    )
    (row, _) = read_shown(outputs[0])
    assert [column.removesuffix(" (stand-in)") for column in row if "(stand-in)" in column] == [
        "glue_score",
        "mnli_matched",
        "mnli_mismatched",
        "rte",
        "mean_of_tasks",
    ]
    assert "Stand-ins for GLUE's tasks, not GLUE: mnli, rte." in outputs[1].read_text()


def test_missing_scores_are_refused_or_dashes_with_what_is_missing(demo_records, write_scores, settings_file, outputs):
    """A mean over other tasks than its neighbour's is no GLUE score: only complete seeds count for that."""
    gone = [("original", "rte", 3), ("pairwise", "cola", 1), ("pairwise", "cola", 2), ("pairwise", "cola", 3)]
    kept = [e for e in demo_records if (e["attention"], e["task"], e["finetune_seed"]) not in gone]
    files, settings = write_scores(kept), settings_file()
    with pytest.raises(DataError, match="missing: tiny-original/seed-1/step-1800/rte finetune_seed 3; "):
        write_exhibit("table-table3_glue", outputs, scores=files, settings=settings, finetune_seeds=[1, 2, 3])
    write_exhibit(
        "table-table3_glue", outputs, scores=files, settings=settings, finetune_seeds=[1, 2, 3], allow_missing=True
    )
    original, pairwise, _ = read_shown(outputs[0])
    assert original["rte (stand-in)"] == f"{100 * (0.5 + 0.04 + 0.003 * 5 / 2):.2f}", "over the two that there are"
    weights = [0, 1, 2, 2, 3, 4, 5, 6, 7]
    assert original["glue_score (stand-in)"] == f"{100 * (0.5 + 0.01 * sum(weights) / 9 + 0.003 * 5 / 2):.2f}"
    assert (original["finetune_seeds"], pairwise["finetune_seeds"]) == ("2", "0")
    assert (pairwise["cola (stand-in)"], pairwise["glue_score (stand-in)"], pairwise["std"]) == ("", "", "")
    assert pairwise["sst2 (stand-in)"] == f"{100 * (0.6 + 0.07 + 0.003 * 14 / 3):.2f}"
    assert "Missing scores: rte of tiny-original (2 of 3), cola of tiny-pairwise (0 of 3); " in outputs[1].read_text()


def test_a_score_of_other_settings_refuses_the_table(demo_records, write_scores, settings_file, outputs):
    with pytest.raises(DataError, match="stale: tiny-original/.* has settings aaaa, expected bbbb"):
        write_exhibit(
            "table-table3_glue",
            outputs,
            scores=write_scores(demo_records),
            settings=settings_file(settings_hash="bbbb"),
            finetune_seeds=[1, 2, 3],
        )
    assert not any(path.exists() for path in outputs)


@pytest.mark.parametrize(
    ("tasks", "score", "note"),
    [
        (["wnli"], "", "There is no GLUE score. Wnli does not count for it, as in the paper."),
        (["rte", "wnli"], "60.00", "the mean of 1 column (rte). Wnli does not count for it, as in the paper."),
        (["rte", "cola"], "60.00", "the mean of 2 columns (rte, cola)."),
        (
            ["rte", "irony"],
            "60.00",
            "the mean of 1 column (rte). The user's own tasks do not count for it: irony.",
        ),
    ],
)
def test_a_sweep_without_mnli_or_with_tasks_that_do_not_count_has_its_table(
    write_scores, settings_file, outputs, tasks, score, note, monkeypatch
):
    monkeypatch.setitem(OWN, "irony", replace(GLUE["wnli"], name="irony", scores={"validation": "irony"}))
    records = [wnli(task, attention, seed) for task in tasks for attention in ATTENTION[:2] for seed in (1, 2)]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(records),
        settings=settings_file(tasks=tasks, glue_source="hub"),
        finetune_seeds=[1, 2],
    )
    rows = read_shown(outputs[0])
    assert [row["glue_score"] for row in rows[:2]] == [score] * 2 and rows[0][tasks[-1]] == "60.00"
    assert [row[tasks[-1]] for row in rows[2:]] == ["50.00"], "the majority baseline"
    assert note in outputs[1].read_text()


def wnli(task, attention, seed):
    """A record of any task, whose only column is called as the task."""
    entry = {"size": "tiny", "attention": attention, "pretrain_seed": 1, "step": 1800, "task": task}
    entry |= {"finetune_seed": seed, "metrics": {task: 0.6}, "majority": {task: 0.5}, "settings_hash": "aaaa"}
    return entry | dict.fromkeys(("partial", "stand_in", "constant_prediction"), False)


def test_only_the_final_step_counts_and_it_must_be_there(demo_records, record, write_scores, settings_file, outputs):
    models = itertools.product(["original", "pairwise"], TASKS, [1, 2, 3])
    earlier = [record("tiny", name, 300, task, seed, 0.9, stand_in=True) for name, task, seed in models]
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores([*demo_records, *earlier]),
        settings=settings_file(),
        finetune_seeds=seeds_of([*demo_records, *earlier]),
    )
    assert float(read_shown(outputs[0])[0]["glue_score (stand-in)"]) < 60
    with pytest.raises(MissingInputError, match="the last step is 300, expected 1800"):
        write_exhibit(
            "table-table3_glue",
            outputs,
            scores=write_scores(earlier),
            settings=settings_file(),
            finetune_seeds=seeds_of(earlier),
        )


def test_a_permutation_of_the_inputs_gives_the_same_bytes(demo_records, write_scores, settings_file, corpus, outputs):
    files, records, manifest, settings = corpus(1, 2, 3)
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(demo_records),
        settings=settings_file(),
        finetune_seeds=seeds_of(demo_records),
    )
    glue = [path.read_bytes() for path in outputs]
    write_exhibit("table-corpus", outputs, counts=files, records=records, manifest=manifest, settings=settings)
    counts = [path.read_bytes() for path in outputs]
    for seed in range(3):
        random.Random(seed).shuffle(demo_records)
        scores = write_scores(demo_records)
        write_exhibit(
            "table-table3_glue",
            outputs,
            scores=random.Random(seed).sample(scores, len(scores)),
            settings=settings_file(),
            finetune_seeds=[1, 2, 3],
        )
        assert [path.read_bytes() for path in outputs] == glue
        shuffled = random.Random(seed).sample(files, len(files)), random.Random(seed + 9).sample(records, len(records))
        tabulate_corpus(*shuffled, manifest, settings, outputs)
        assert [path.read_bytes() for path in outputs] == counts


def test_the_authors_results_as_an_experiment_print_table_3(authors_final, write_scores, settings_file, outputs):
    write_exhibit(
        "table-table3_glue",
        outputs,
        scores=write_scores(authors_final),
        settings=settings_file(**PAPER),
        finetune_seeds=seeds_of(authors_final),
    )
    rows = [list(row.values()) for row in read_shown(outputs[0])[:-1]]
    for ours, paper in zip(rows[::2], rows[1::2], strict=True):
        assert ours[1:12] == paper[1:12] and paper[0] == f"{ours[0]}, the paper"
