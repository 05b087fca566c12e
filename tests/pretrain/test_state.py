import os
import platform
from pathlib import Path

import pytest
import torch

from symbert.config import merge
from symbert.cost import Work
from symbert.flops import step_flops
from symbert.model.configuration import configuration_of
from symbert.model.network import MaskedModel
from symbert.paths import Experiment, Run
from symbert.pretrain.pace import model_flops
from symbert.pretrain.state import RunState, pretraining_speed, pretraining_work, run_state
from symbert.sizes import SIZES
from traces import Traces, write

ORIGINAL = Run("tiny", "original", 1)
NOBODY = 2**22 + 1  # no process has it


def test_a_finished_run_is_done(experiment, traces):
    traces.run(ORIGINAL)
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "done", 2400)


def test_a_run_that_the_extended_experiment_has_finished_on_the_same_rows_is_done_there(experiment, traces, changed):
    other = changed({"experiment": "other", "extends": experiment.name})
    traces.run(ORIGINAL)
    assert run_state(other, ORIGINAL).state == "missing", "of which rows it is, is not known"
    traces.corpus()
    there = RunState(ORIGINAL, "done", 2400, "in results/demo-embedded", is_shared=True)
    assert run_state(other, ORIGINAL) == there
    assert run_state(other, Run("tiny", "original", 2)).state == "missing"
    faster = changed({"experiment": "other", "extends": experiment.name, "pretrain": {"learning_rate": 1.0}})
    assert run_state(faster, ORIGINAL).state == "missing"
    Traces(other).corpus("of the hub as it is today")
    assert run_state(other, ORIGINAL).state == "missing"
    Traces(other).corpus()
    assert run_state(other, ORIGINAL) == there
    Traces(other).run(ORIGINAL)
    assert run_state(other, ORIGINAL) == RunState(ORIGINAL, "done", 2400), "its own comes first"


@pytest.mark.parametrize("state", ["preempted", "failed", "diverged"])
def test_a_run_that_ended_before_says_how_at_which_step_and_why(experiment, traces, state):
    traces.run(ORIGINAL, state, 600, "SIGTERM: saved at step 600")
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, state, 600, "SIGTERM: saved at step 600")


def test_a_run_whose_process_is_no_more_is_stopped_and_not_running(experiment, traces):
    state = traces.run(ORIGINAL, "running", 300)
    traces.lease(state.parent, platform.node(), NOBODY)
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "stopped", 300)


def test_a_run_whose_process_lives_is_running_here_or_elsewhere(experiment, traces):
    state = traces.run(ORIGINAL, "running", 300)
    traces.lease(state.parent, platform.node(), os.getpid())
    note = f"by process {os.getpid()} on {platform.node()}"
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "running", 300, note)
    traces.lease(state.parent, "node-7", 12)
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "running", 300, "by process 12 on node-7")


def test_a_run_elsewhere_that_ended_is_not_running_whatever_its_lease_says(experiment, traces):
    traces.lease(traces.run(ORIGINAL, "preempted", 300, "why").parent, "node-7", 12)
    assert run_state(experiment, ORIGINAL).state == "preempted"


def test_a_run_of_other_settings_is_not_done_and_says_what_differs(experiment, traces):
    traces.run(ORIGINAL, learning_rate=5e-4)
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "other settings", 0, "learning_rate: 0.0005 → 0.001")


def test_a_precision_that_only_the_machine_knows_and_a_corpus_that_is_not_packed_are_not_compared(experiment, traces):
    traces.run(ORIGINAL, precision="bf16")
    assert run_state(experiment, ORIGINAL).is_done
    traces.corpus("another")
    assert run_state(experiment, ORIGINAL).note == "corpus_hash: c → another"


def test_a_dropout_that_only_the_machine_knows_is_no_other_run(changed, traces):
    fast = changed({"recipe": "fast"})
    traces.run(ORIGINAL, recipe="fast", attention_dropout=0.125)
    assert run_state(fast, ORIGINAL).is_done


def test_a_precision_that_is_chosen_is_compared(changed, traces):
    traces.run(ORIGINAL, precision="bf16")
    assert run_state(changed({"precision": "fp32"}), ORIGINAL).note == "precision: bf16 → fp32"


def test_what_is_published_of_other_settings_is_not_done_though_its_state_is_gone(experiment, traces):
    traces.done(ORIGINAL, learning_rate=5e-4)
    note = "published under other settings: learning_rate: 0.0005 → 0.001"
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "missing", 0, note)
    traces.done(ORIGINAL)
    assert run_state(experiment, ORIGINAL).is_done


def test_what_is_published_of_another_corpus_is_not_done_though_its_state_is_gone(experiment, traces):
    traces.done(ORIGINAL)
    traces.corpus("another")
    assert run_state(experiment, ORIGINAL).note == "published under other settings: corpus_hash: c → another"


def test_a_run_that_was_set_aside_comes_back_when_its_settings_do(changed, experiment, traces):
    traces.aside(ORIGINAL, 1200)
    superseding = changed({"on_settings_change": "supersede"})
    assert run_state(superseding, ORIGINAL) == RunState(ORIGINAL, "set aside", 1200, "comes back")
    traces.run(ORIGINAL, learning_rate=5e-4)
    assert run_state(superseding, ORIGINAL).state == "set aside"
    refusing = changed({"on_settings_change": "refuse"})
    assert run_state(refusing, ORIGINAL).state == "other settings", "it is taken back where runs are superseded only"


def test_a_run_that_was_set_aside_under_settings_that_are_not_todays_stays_there(changed, traces):
    traces.aside(ORIGINAL, 1200, learning_rate=5e-4)
    assert run_state(changed({"on_settings_change": "supersede"}), ORIGINAL).state == "missing"


TIMING = {"size": "tiny", "attention": "original", "recipe": "faithful", "processes": 1, "device": "cpu"}


def time_run(name: str, flops: float | None, seed: int = 1, **changes) -> None:
    path = Path("results") / name / f"pretrain/tiny-original/seed-{seed}/timing.json"
    write(path, {**TIMING, "flops_per_second": flops, **changes})


@pytest.mark.parametrize("size", SIZES)
def test_a_step_has_the_operations_that_pretraining_counts_on_the_model_itself(size):
    with torch.device("meta"):
        model = MaskedModel(configuration_of(size, "original", vocabulary_size=30522))
    counted = model_flops(model, 256, 512, 0.15 * 256 * 512)
    shape = SIZES[size]
    assert step_flops(shape, shape.layer_weights, 30522, 256, 512, 0.15 * 256 * 512) == pytest.approx(
        counted, rel=1e-12
    )


def test_a_run_that_was_interrupted_has_its_other_steps_and_their_evaluations_before_it(experiment):
    whole, half = pretraining_work(experiment, ORIGINAL), pretraining_work(experiment, ORIGINAL, done=1200)
    assert half.flops == pytest.approx(whole.flops / 2, rel=1e-12) and half.layers * 2 == whole.layers
    assert pretraining_work(experiment, ORIGINAL, done=2400) == Work(0, 0)


def test_a_finished_run_of_the_size_and_operator_says_how_fast_it_is(experiment):
    time_run("other", flops=3e10, processes=2)
    found = pretraining_speed(experiment, ORIGINAL)
    assert (found.flops, found.layer_seconds) == (pytest.approx(0.15e11), 0.0), "of one of two processes"
    assert found.measured == "other on cpu" and not found.on_gpu
    assert pretraining_speed(experiment, Run("tiny", "symmetric", 1)).measured is None
    fast = Experiment(merge(experiment.config, {"recipe": "fast"}))
    assert pretraining_speed(fast, ORIGINAL).measured is None


def test_runs_of_the_experiment_itself_stand_before_others_and_their_median_counts(experiment):
    time_run("other", flops=9e10)
    for seed, flops in enumerate((1e10, 2e10, 6e10), 1):
        time_run(experiment.name, flops, seed)
    assert pretraining_speed(experiment, ORIGINAL).flops == pytest.approx(0.2e11)


def test_devices_are_not_mixed_and_the_newest_runs_counts(experiment):
    time_run(experiment.name, 9e10, 1, device="NVIDIA H200", until="2026-01-01T00:00:00Z")
    for seed, flops in ((2, 1e10), (3, 3e10)):
        time_run(experiment.name, flops, seed, until=f"2026-02-0{seed}T00:00:00Z")
    found = pretraining_speed(experiment, ORIGINAL)
    assert found.flops == pytest.approx(0.2e11) and not found.on_gpu


def test_a_timing_that_lacks_a_number_is_left_out(experiment):
    odd_ones = ([], {}, TIMING, {**TIMING, "flops_per_second": None}, {**TIMING, "flops_per_second": True})
    for number, odd in enumerate(odd_ones):
        write(Path(f"results/odd{number}/pretrain/tiny-original/seed-1/timing.json"), odd)
    assert pretraining_speed(experiment, ORIGINAL).measured is None
