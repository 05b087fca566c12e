from pathlib import Path

import pytest
import torch

from experiment.traces import write
from symbert.config import merge
from symbert.experiment.cost import (
    Work,
    configured_speed,
    evaluated_rows,
    finetuning_speed,
    finetuning_steps,
    finetuning_work,
    pretraining_speed,
    pretraining_work,
    robustness_work,
)
from symbert.experiment.layout import Experiment
from symbert.flops import step_flops
from symbert.model.bert import SymBertForMaskedLM, build_config
from symbert.pretrain.pace import model_flops
from symbert.pretrain.run import Run
from symbert.sizes import SIZES

ORIGINAL = Run("tiny", "original", 1)
TIMING = {"size": "tiny", "attention": "original", "recipe": "faithful", "processes": 1, "device": "cpu"}


def time_run(name: str, mfu: float | None, seed: int = 1, **changes) -> None:
    path = Path("results") / name / f"pretrain/tiny-original/seed-{seed}/timing.json"
    write(path, {**TIMING, "mfu": mfu, "peak_flops": 1e11, **changes})


@pytest.mark.parametrize("size", SIZES)
def test_a_step_has_the_operations_that_pretraining_counts_on_the_model_itself(size):
    with torch.device("meta"):
        model = SymBertForMaskedLM(build_config(size, "original", vocabulary_size=30522))
    counted = model_flops(model, 256, 512, 0.15 * 256 * 512)
    shape = SIZES[size]
    assert step_flops(shape, shape.layer_weights, 30522, 256, 512, 0.15 * 256 * 512) == pytest.approx(
        counted, rel=1e-12
    )


@pytest.mark.parametrize(("size", "exaflop"), [("small", 2.68), ("base", 15.4)])
def test_the_papers_runs_take_their_operations_and_a_twentieth_more_for_evaluations(paper, size, exaflop):
    """800 evaluations of 10,000 rows, forward only, beside 200,000 steps of 256 rows: 8e6/3 of 51.2e6 rows."""
    found = pretraining_work(paper, size)
    assert found.flops == pytest.approx(exaflop * 1e18 * (1 + 8 / 3 / 51.2), rel=0.005)
    assert found.layers == 200_000 * SIZES[size].num_hidden_layers


def test_a_run_that_was_interrupted_has_its_other_steps_and_their_evaluations_before_it(experiment):
    whole, half = pretraining_work(experiment, "tiny"), pretraining_work(experiment, "tiny", done=1200)
    assert half.flops == pytest.approx(whole.flops / 2, rel=1e-12) and half.layers * 2 == whole.layers
    assert pretraining_work(experiment, "tiny", done=2400) == Work(0, 0)


def test_glue_takes_the_papers_number_of_steps(paper):
    """Five seeds of eight tasks, five epochs in batches of 16."""
    assert 5 * sum(finetuning_steps(paper, task) for task in paper.tasks) == 1_483_075
    assert evaluated_rows(paper, "mnli") == 9_815 + 9_832


def test_limits_and_stand_ins_make_tasks_smaller(experiment):
    """The demo's tasks are stand-ins of 1,000 rows; 500 are evaluated of each split."""
    assert (finetuning_steps(experiment, "mnli"), evaluated_rows(experiment, "mnli")) == (5 * 63, 1000)
    fewer = Experiment(merge(experiment.config, {"glue": {"max_examples": 160, "max_evaluation_examples": 7}}))
    assert (finetuning_steps(fewer, "mnli"), evaluated_rows(fewer, "mnli")) == (5 * 10, 14)
    assert (finetuning_steps(fewer, "rte"), evaluated_rows(fewer, "rte")) == (5 * 10, 7)


def test_fine_tuning_the_base_model_is_nine_minutes_of_an_h200s_peak(paper):
    """Five seeds of eight tasks, without what is beside the arithmetic (the floor that was estimated)."""
    found = sum((finetuning_work(paper, "base", task, 5) for task in paper.tasks), Work())
    assert found.flops / 790e12 / 60 == pytest.approx(9, abs=0.5)
    assert found.layers == 12 * 1_483_075


def test_robustness_of_models_that_were_not_kept_is_fine_tuned_again(experiment):
    kept = robustness_work(experiment, "tiny", "rte", 2)
    unkept = Experiment(merge(experiment.config, {"glue": {"keep_finetuned": False}}))
    again = robustness_work(unkept, "tiny", "rte", 2)
    assert again == kept + finetuning_work(experiment, "tiny", "rte", 2)
    quiet = Experiment(merge(experiment.config, {"glue": {"robustness": {"noise": []}}}))
    assert robustness_work(quiet, "tiny", "rte", 2).flops * 4 == pytest.approx(kept.flops), "three levels and none"


def test_hours_are_arithmetic_and_what_is_beside_it(experiment):
    rates = experiment.config["rates"]
    speed = configured_speed(experiment, "tiny")
    expected = 7e12 / rates["core_flops"] + 100 * rates["core_layer_seconds"]
    assert speed.hours(Work(7e12, 100)) * 3600 == pytest.approx(expected)
    assert not speed.on_gpu and configured_speed(experiment, "base").on_gpu and speed.measured is None


def test_without_a_finished_run_a_speed_is_configured(experiment):
    time_run(experiment.name, mfu=None)  # of a session that timed no step
    assert pretraining_speed(experiment, ORIGINAL) == configured_speed(experiment, "tiny")


def test_a_finished_run_of_the_size_and_operator_says_how_fast_it_is(experiment):
    time_run("other", mfu=0.3, processes=2)
    found = pretraining_speed(experiment, ORIGINAL)
    assert (found.flops, found.layer_seconds) == (pytest.approx(0.15e11), 0.0), "of one of two processes"
    assert found.measured == "other on cpu" and not found.on_gpu
    assert pretraining_speed(experiment, Run("tiny", "symmetric", 1)).measured is None
    fast = Experiment(merge(experiment.config, {"recipe": "fast"}))
    assert pretraining_speed(fast, ORIGINAL).measured is None


def test_runs_of_the_experiment_itself_stand_before_others_and_their_median_counts(experiment):
    time_run("other", mfu=0.9)
    for seed, mfu in enumerate((0.1, 0.2, 0.6), 1):
        time_run(experiment.name, mfu, seed)
    assert pretraining_speed(experiment, ORIGINAL).flops == pytest.approx(0.2e11)


def test_what_a_cpu_did_with_all_its_threads_is_of_so_many_cores(experiment):
    time_run("other", mfu=0.4, threads=4)
    assert pretraining_speed(experiment, ORIGINAL).flops == pytest.approx(0.1e11)


def test_what_a_gpu_did_is_of_the_gpu_whatever_its_threads(experiment):
    time_run("other", mfu=0.4, threads=4, device="NVIDIA H200")
    found = pretraining_speed(experiment, ORIGINAL)
    assert found.flops == pytest.approx(0.4e11) and found.on_gpu


def test_devices_are_not_mixed_and_the_newest_runs_counts(experiment):
    time_run(experiment.name, 0.9, 1, device="NVIDIA H200", until="2026-01-01T00:00:00Z")
    for seed, mfu in ((2, 0.1), (3, 0.3)):
        time_run(experiment.name, mfu, seed, until=f"2026-02-0{seed}T00:00:00Z")
    found = pretraining_speed(experiment, ORIGINAL)
    assert found.flops == pytest.approx(0.2e11) and not found.on_gpu


def test_fine_tuning_on_a_machine_without_a_gpu_takes_no_gpu_hours_but_those_of_its_cores(changed):
    small = changed({"sweep": {"sizes": ["small"], "curve": {"sizes": []}}})
    path = Path(small.results) / "benchmarks/finetune/small-original-seed-1-step-2400.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("s\th:m:s\n3600.0\t1:00:00\n")
    amount = sum((finetuning_work(small, "small", task, 2) for task in small.tasks), Work())
    found = finetuning_speed(small, "small")
    assert found.on_gpu and found.hours(amount) == pytest.approx(1)
    timing = small.place(small.run, Run("small", "original", 1)) / "timing.json"
    write(timing, {**TIMING, "size": "small", "threads": 4})
    found = finetuning_speed(small, "small")
    assert not found.on_gpu and found.hours(amount) == pytest.approx(4)


def test_a_timing_that_lacks_a_number_is_left_out(experiment):
    true = {**TIMING, "mfu": True, "peak_flops": 1e12}
    for number, odd in enumerate(([], {}, {**TIMING, "mfu": 0.5}, {**TIMING, "mfu": 0.5, "peak_flops": None}, true)):
        write(Path(f"results/odd{number}/pretrain/tiny-original/seed-1/timing.json"), odd)
    assert pretraining_speed(experiment, ORIGINAL).measured is None


def test_a_timing_that_cannot_be_read_is_left_out(experiment):
    time_run("whole", mfu=0.5)
    write(Path("results/broken/pretrain/tiny-original/seed-1/timing.json"), 0).write_text("{")
    assert pretraining_speed(experiment, ORIGINAL).measured == "whole on cpu"


def test_fine_tuning_is_as_fast_as_the_slowest_job_of_the_experiment(experiment):
    """A job that found seeds in its state folder was short. The demo fine-tunes step 300 with one seed."""
    amount = sum((finetuning_work(experiment, "tiny", task) for task in experiment.tasks), Work())
    reckoned = 3600 * configured_speed(experiment, "tiny").hours(amount)
    for attention, seconds in (("original", 2 * reckoned), ("shared", 1.0)):
        path = Path(experiment.results) / f"benchmarks/finetune/tiny-{attention}-seed-1-step-300.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\n{seconds}\t0:00:00\n")
    found = finetuning_speed(experiment, "tiny")
    assert found.hours(amount) * 3600 == pytest.approx(2 * reckoned) and found.measured == experiment.name


def test_without_a_finished_job_fine_tuning_is_as_fast_as_configured(experiment):
    assert finetuning_speed(experiment, "tiny") == configured_speed(experiment, "tiny")
