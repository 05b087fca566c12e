"""The tables and the figure of a suite beside GLUE: its own mean, and nothing of it in GLUE's tables."""

import itertools
import statistics

import pytest

from csv_rows import read_shown
from report.written import write_exhibit
from symbert.errors import DataError
from symbert.glue.tasks import GLUE, SUITES

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
    text = outputs[1].read_text()
    assert "Only the SuperGLUE score is tested" in text and " GLUE score" not in text


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
    with pytest.raises(DataError, match="has settings ab12, expected cd34"):
        write_exhibit("table-superglue", outputs, **options)
