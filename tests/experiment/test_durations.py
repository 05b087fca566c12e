"""The weights of the bar, beside what the jobs of a finished demo took."""

import csv
from pathlib import Path

import pytest

from symbert.experiment.durations import expected_seconds
from symbert.layout import Experiment, Run
from symbert.project import read_config
from symbert.snakemake_internals import Job

RECORDED = Path(__file__).parent / "demo.csv"  # the jobs of a demo on two cores: seconds of start and end
TRAINING = Job("pretrain_model", {"size": "tiny", "attention": "pairwise", "seed": "1"})
FINETUNING = Job("finetune", {**TRAINING.wildcards, "step": "2400"})
SHORT = Job("draw_figure2", {})


def recorded() -> list[tuple[float, float, Job]]:
    with open(RECORDED, newline="") as file:
        rows = list(csv.DictReader(file))
    wildcards = [dict(pair.split("=") for pair in row["wildcards"].split()) for row in rows]
    return [
        (float(row["start"]), float(row["end"]), Job(row["rule"], known))
        for row, known in zip(rows, wildcards, strict=True)
    ]


@pytest.fixture
def demo(root, folder) -> Experiment:
    """As it is configured, and was when it was recorded."""
    return Experiment(read_config(root))


def test_the_bar_of_the_demo_is_within_a_twentieth_of_its_time(demo):
    """It said 58 % after 1.3 of 37 minutes, because it counted jobs; then 33 % at a quarter, because each job had three
    seconds to start."""
    run = recorded()
    seconds = expected_seconds(demo, [job for *_, job in run])
    last = max(end for _, end, _ in run)
    errors = []
    for wall in (0.25, 0.5, 0.75):
        now = wall * last

        def done(start: float, end: float, expected: float, now: float = now) -> float:
            return expected if end <= now else min(max(now - start, 0) / expected, 0.95) * expected

        part = sum(done(start, end, each) for (start, end, _), each in zip(run, seconds, strict=True)) / sum(seconds)
        counted = sum(end <= now for _, end, _ in run) / len(run)
        errors.append((abs(part - wall), abs(counted - wall)))
    of_bar, of_count = map(max, zip(*errors, strict=True))
    assert of_bar < 0.05 < of_count


def test_a_training_takes_its_work_and_any_job_its_start(experiment):
    start = experiment.config["rates"]["job_seconds"]
    training, finetuning, short = expected_seconds(experiment, [TRAINING, FINETUNING, SHORT])
    assert short == start < min(training, finetuning)


def test_a_job_takes_time_also_where_its_start_is_configured_to_take_none(changed):
    """The bar divided by 0."""
    assert expected_seconds(changed({"rates": {"job_seconds": 0}}), [SHORT]) == [0.1]


def test_what_a_run_has_trained_is_not_to_come(experiment, traces, changed):
    whole, _ = expected_seconds(experiment, [TRAINING, SHORT])
    traces.run(Run("tiny", "pairwise", 1), "preempted", step=1200)
    half, start = expected_seconds(experiment, [TRAINING, SHORT])
    assert half - start == pytest.approx((whole - start) / 2)


def test_a_larger_model_weighs_more(paper):
    small, base = (Job("pretrain_model", {**TRAINING.wildcards, "size": size}) for size in ("small", "base"))
    seconds = expected_seconds(paper, [small, base])
    assert seconds[1] > 3 * seconds[0]


def test_the_corpus_weighs_by_its_parts(paper):
    """One part of 300, whatever number of them is to come."""
    part = Job("filter_part", {"part": "en_meta_part_1"})
    alone, _ = expected_seconds(paper, [part, SHORT])
    assert expected_seconds(paper, [part] * 10) == [alone] * 10 and alone > 10


def test_where_nothing_can_be_reckoned_all_jobs_are_equal(experiment):
    """Nor does it end a start."""
    strange = Job("finetune", {"size": "unknown", "attention": "pairwise", "seed": "1", "step": "2400"})
    assert len(set(expected_seconds(experiment, [strange, SHORT]))) == 1


def test_the_recorded_demo_is_todays(demo):
    """Where it is not, record it anew: its jobs are those that the demo has."""
    trained = {job.wildcards["attention"] for *_, job in recorded() if job.rule == "pretrain_model"}
    assert trained == set(demo.config["sweep"]["attention"])
