"""What a plan reckons; `tests/workflow/test_experiment.py` compares its jobs with Snakemake's."""

from pathlib import Path

import pytest
from msgspec.structs import asdict

from experiment.traces import Traces, write
from symbert.experiment.jobs import jobs_of
from symbert.experiment.plan import Hours, plan_experiment
from symbert.pretrain.job import Run

ORIGINAL = Run("tiny", "original", 1)
FLOORS = {"small": 1.9, "base": 9.0}  # hours of 200,000 steps on one H200, estimated for the fastest known kernels


def spent(experiment) -> dict[str, tuple[Hours, Hours]]:
    """By stage: in all, and to come."""
    return {stage.name: (stage.spent.whole, stage.spent.to_come) for stage in plan_experiment(experiment).stages}


def test_the_papers_pretraining_takes_more_than_the_floors_and_at_most_thrice_that(paper):
    floor = sum(3 * hours for hours in FLOORS.values())  # three operators of each size
    assert floor < spent(paper)["pretrain"][0].gpu < 3 * floor


def test_the_papers_fine_tuning_takes_more_than_its_floors_and_less_than_a_naive_loop(paper):
    """Of five seeds and eight tasks: base 34 minutes at least, 8 hours launch by launch; small 8 minutes at least."""
    sweeps = 3 + 3 * 17 / 5  # of the base models: five seeds at the last step, one at 17 others
    assert sweeps * 34 / 60 + 3 * 8 / 60 < spent(paper)["glue"][0].gpu < (sweeps + 3) * 8


def test_a_stage_takes_its_work_and_the_start_of_its_jobs(experiment):
    rates = experiment.config["rates"]
    report = plan_experiment(experiment).stages[-1]
    assert report.name == "report" and report.jobs == jobs_of(experiment)["report"].total() > 20
    assert report.spent.whole == report.spent.to_come == Hours(0.0, report.jobs * rates["job_seconds"] / 3600)


def test_the_size_tiny_takes_no_gpu_and_beside_a_gpu_one_core_is_busy(experiment, paper):
    assert all(whole.gpu == 0 for whole, _ in spent(experiment).values())
    starting = 13 * paper.config["rates"]["job_seconds"] / 3600
    assert spent(paper)["pretrain"][0].core == pytest.approx(spent(paper)["pretrain"][0].gpu + starting)


def test_what_is_done_is_not_to_come(experiment, traces):
    whole, to_come = spent(experiment)["pretrain"]
    starting = 9 * experiment.config["rates"]["job_seconds"] / 3600
    assert whole == to_come
    traces.run(ORIGINAL)
    traces.run(Run("tiny", "shared", 1), "preempted", 1200)
    left = spent(experiment)["pretrain"][1].core - starting
    assert left == pytest.approx((whole.core - starting) * 2.5 / 4), "two runs and a half of four"
    for run in experiment.runs():
        traces.run(run)
    assert spent(experiment)["pretrain"] == (whole, Hours())


def test_scores_that_are_there_are_not_to_come(experiment, traces):
    whole, before = spent(experiment)["glue"]
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1])
    one = (before.core - spent(experiment)["glue"][1].core) * 3600
    traces.kept(ORIGINAL, 2400, "rte", 2)
    assert (before.core - spent(experiment)["glue"][1].core) * 3600 == pytest.approx(2 * one) and one > 1
    assert spent(experiment)["glue"][0] == whole


def test_a_corpus_is_to_come_by_its_parts(experiment, traces):
    whole, before = spent(experiment)["corpus"]
    starting = 26 * experiment.config["rates"]["job_seconds"] / 3600
    assert whole == before
    write(Path(experiment.results) / "corpus/tokens/en_meta_part_2.json", {})
    assert spent(experiment)["corpus"][1].core - starting == pytest.approx((whole.core - starting) * 3 / 4)
    settings = write(Path(experiment.results) / "settings/filter.json", {"match": "another"})
    assert spent(experiment)["corpus"] == (whole, before), "all are filtered anew"
    settings.unlink()
    traces.corpus()
    assert spent(experiment)["corpus"][1] == Hours()


def test_only_the_hub_is_downloaded_from_and_only_once(paper, experiment):
    download = {stage.name: stage.download for stage in plan_experiment(paper).stages}
    assert download["corpus"] == pytest.approx(187e9, rel=0.01) and download["glue"] == pytest.approx(160e6, rel=0.01)
    assert {stage.download for stage in plan_experiment(experiment).stages} == {0}
    Traces(paper).corpus()
    assert plan_experiment(paper).stages[0].download == 0


def test_one_gpu_of_24_gb_finishes_its_scale_in_a_day_by_the_configured_rates(single_gpu):
    """At 6e13 FLOP/s, 36 % of an RTX 4090's 165e12: about 14 hours; at half that rate still a day."""
    hours = sum((whole for whole, _ in spent(single_gpu).values()), Hours())
    assert 10 < hours.gpu < 18 and hours.core < 20
    assert single_gpu.config["rates"]["gpu_flops"] < 0.4 * 165e12
    single_gpu.config["rates"]["gpu_flops"] /= 2
    assert sum((whole for whole, _ in spent(single_gpu).values()), Hours()).gpu < 24


def test_one_gpus_scale_is_the_first_part_of_the_papers_small_models(single_gpu, paper):
    ours, papers = asdict(single_gpu.pretraining), asdict(paper.pretraining)
    differing = {key: (ours[key], papers[key]) for key in ours if ours[key] != papers[key]}
    assert differing == {"steps": (30_000, 200_000), "schedule_steps": (200_000, None)}
    assert single_gpu.finetuning == paper.finetuning and single_gpu.tasks == paper.tasks
    assert {run.attention for run in single_gpu.runs()} == {"original", "symmetric", "pairwise"}
    assert single_gpu.finetune_seeds("small", 30_000) == [1, 2, 3, 4, 5]
    assert single_gpu.finetune_seeds("small", 15_000) == [1]
