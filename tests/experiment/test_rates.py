from pathlib import Path

import pytest

from experiment.traces import write
from symbert.config import merge
from symbert.experiment import operations
from symbert.experiment.layout import Experiment
from symbert.experiment.operations import Work
from symbert.experiment.rates import configured, finetuning_speed_of, speed_of
from symbert.pretrain.job import Run

ORIGINAL = Run("tiny", "original", 1)
TIMING = {"size": "tiny", "attention": "original", "recipe": "faithful", "processes": 1, "device": "cpu"}


def time_run(name: str, mfu: float | None, seed: int = 1, **changes) -> None:
    path = Path("results") / name / f"pretrain/tiny-original/seed-{seed}/timing.json"
    write(path, {**TIMING, "mfu": mfu, "peak_flops": 1e11, **changes})


def test_hours_are_arithmetic_and_what_is_beside_it(experiment):
    rates = experiment.config["rates"]
    speed = configured(experiment, "tiny")
    expected = 7e12 / rates["core_flops"] + 100 * rates["core_layer_seconds"]
    assert speed.hours(Work(7e12, 100)) * 3600 == pytest.approx(expected)
    assert not speed.on_gpu and configured(experiment, "base").on_gpu and speed.measured is None


def test_without_a_finished_run_a_speed_is_configured(experiment):
    time_run(experiment.name, mfu=None)  # of a session that timed no step
    assert speed_of(experiment, ORIGINAL) == configured(experiment, "tiny")


def test_a_finished_run_of_the_size_and_operator_says_how_fast_it_is(experiment):
    time_run("other", mfu=0.3, processes=2)
    found = speed_of(experiment, ORIGINAL)
    assert (found.flops, found.layer_seconds) == (pytest.approx(0.15e11), 0.0), "of one of two processes"
    assert found.measured == "other on cpu" and not found.on_gpu
    assert speed_of(experiment, Run("tiny", "symmetric", 1)).measured is None
    fast = Experiment(merge(experiment.config, {"recipe": "fast"}))
    assert speed_of(fast, ORIGINAL).measured is None


def test_runs_of_the_experiment_itself_stand_before_others_and_their_median_counts(experiment):
    time_run("other", mfu=0.9)
    for seed, mfu in enumerate((0.1, 0.2, 0.6), 1):
        time_run(experiment.name, mfu, seed)
    assert speed_of(experiment, ORIGINAL).flops == pytest.approx(0.2e11)


def test_what_a_cpu_did_with_all_its_threads_is_of_so_many_cores(experiment):
    time_run("other", mfu=0.4, threads=4)
    assert speed_of(experiment, ORIGINAL).flops == pytest.approx(0.1e11)


def test_what_a_gpu_did_is_of_the_gpu_whatever_its_threads(experiment):
    time_run("other", mfu=0.4, threads=4, device="NVIDIA H200")
    found = speed_of(experiment, ORIGINAL)
    assert found.flops == pytest.approx(0.4e11) and found.on_gpu


def test_devices_are_not_mixed_and_the_newest_runs_counts(experiment):
    time_run(experiment.name, 0.9, 1, device="NVIDIA H200", until="2026-01-01T00:00:00Z")
    for seed, mfu in ((2, 0.1), (3, 0.3)):
        time_run(experiment.name, mfu, seed, until=f"2026-02-0{seed}T00:00:00Z")
    found = speed_of(experiment, ORIGINAL)
    assert found.flops == pytest.approx(0.2e11) and not found.on_gpu


def test_fine_tuning_on_a_machine_without_a_gpu_takes_no_gpu_hours_but_those_of_its_cores(changed):
    small = changed({"sweep": {"sizes": ["small"], "curve": {"sizes": []}}})
    path = Path(small.results) / "benchmarks/finetune/small-original-seed-1-step-2400.tsv"
    path.parent.mkdir(parents=True)
    path.write_text("s\th:m:s\n3600.0\t1:00:00\n")
    amount = operations.total(operations.finetuning(small, "small", task, 2) for task in small.tasks)
    found = finetuning_speed_of(small, "small")
    assert found.on_gpu and found.hours(amount) == pytest.approx(1)
    timing = small.place(small.run, Run("small", "original", 1)) / "timing.json"
    write(timing, {**TIMING, "size": "small", "threads": 4})
    found = finetuning_speed_of(small, "small")
    assert not found.on_gpu and found.hours(amount) == pytest.approx(4)


def test_a_timing_that_lacks_a_number_is_left_out(experiment):
    true = {**TIMING, "mfu": True, "peak_flops": 1e12}
    for number, odd in enumerate(([], {}, {**TIMING, "mfu": 0.5}, {**TIMING, "mfu": 0.5, "peak_flops": None}, true)):
        write(Path(f"results/odd{number}/pretrain/tiny-original/seed-1/timing.json"), odd)
    assert speed_of(experiment, ORIGINAL).measured is None


def test_a_timing_that_cannot_be_read_is_left_out(experiment):
    time_run("whole", mfu=0.5)
    write(Path("results/broken/pretrain/tiny-original/seed-1/timing.json"), 0).write_text("{")
    assert speed_of(experiment, ORIGINAL).measured == "whole on cpu"


def test_fine_tuning_is_as_fast_as_the_slowest_job_of_the_experiment(experiment):
    """A job that found seeds in its state folder was short. The demo fine-tunes step 300 with one seed."""
    amount = operations.total(operations.finetuning(experiment, "tiny", task) for task in experiment.tasks)
    reckoned = 3600 * configured(experiment, "tiny").hours(amount)
    for attention, seconds in (("original", 2 * reckoned), ("shared", 1.0)):
        path = Path(experiment.results) / f"benchmarks/finetune/tiny-{attention}-seed-1-step-300.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"s\th:m:s\n{seconds}\t0:00:00\n")
    found = finetuning_speed_of(experiment, "tiny")
    assert found.hours(amount) * 3600 == pytest.approx(2 * reckoned) and found.measured == experiment.name


def test_without_a_finished_job_fine_tuning_is_as_fast_as_configured(experiment):
    assert finetuning_speed_of(experiment, "tiny") == configured(experiment, "tiny")
