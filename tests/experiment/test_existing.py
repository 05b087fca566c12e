import os
import platform
import subprocess
import sys

import pytest

from symbert.experiment.existing import FoundRun, find_run
from symbert.pretrain.job import Run

ORIGINAL = Run("tiny", "original", 1)
NOBODY = 2**22 + 1  # no process has it


def test_a_run_that_left_nothing_is_missing(experiment):
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "missing", 0)


def test_a_finished_run_is_done(experiment, traces):
    traces.run(ORIGINAL)
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "done", 2400)


@pytest.mark.parametrize("state", ["preempted", "failed", "diverged"])
def test_a_run_that_ended_before_says_how_at_which_step_and_why(experiment, traces, state):
    traces.run(ORIGINAL, state, 600, "SIGTERM: saved at step 600")
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, state, 600, "SIGTERM: saved at step 600")


def test_a_run_whose_process_is_no_more_is_stopped_and_not_running(experiment, traces):
    state = traces.run(ORIGINAL, "running", 300)
    traces.lease(state.parent, platform.node(), NOBODY)
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "stopped", 300)


def test_a_run_whose_process_lives_is_running_here_or_elsewhere(experiment, traces):
    state = traces.run(ORIGINAL, "running", 300)
    traces.lease(state.parent, platform.node(), os.getpid())
    note = f"by process {os.getpid()} on {platform.node()}"
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "running", 300, note)
    traces.lease(state.parent, "node-7", 12)
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "running", 300, "by process 12 on node-7")


def test_a_run_elsewhere_that_ended_is_not_running_whatever_its_lease_says(experiment, traces):
    traces.lease(traces.run(ORIGINAL, "preempted", 300, "why").parent, "node-7", 12)
    assert find_run(experiment, ORIGINAL).state == "preempted"


def test_a_run_of_other_settings_is_not_done_and_says_what_differs(experiment, traces):
    traces.run(ORIGINAL, learning_rate=5e-4)
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "other settings", 0, "learning_rate: 0.0005 → 0.001")


def test_a_precision_that_only_the_machine_knows_and_a_corpus_that_is_not_packed_are_not_compared(experiment, traces):
    traces.run(ORIGINAL, precision="bf16")
    assert find_run(experiment, ORIGINAL).is_done
    traces.corpus("another")
    assert find_run(experiment, ORIGINAL).note == "corpus_hash: c → another"


def test_a_dropout_that_only_the_machine_knows_is_no_other_run(changed, traces):
    fast = changed({"recipe": "fast"})
    traces.run(ORIGINAL, recipe="fast", attention_dropout=0.125)
    assert find_run(fast, ORIGINAL).is_done


def test_a_precision_that_is_chosen_is_compared(changed, traces):
    traces.run(ORIGINAL, precision="bf16")
    assert find_run(changed({"precision": "fp32"}), ORIGINAL).note == "precision: bf16 → fp32"


def test_what_is_published_of_other_settings_is_not_done_though_its_state_is_gone(experiment, traces):
    traces.done(ORIGINAL, learning_rate=5e-4)
    note = "published under other settings: learning_rate: 0.0005 → 0.001"
    assert find_run(experiment, ORIGINAL) == FoundRun(ORIGINAL, "missing", 0, note)
    traces.done(ORIGINAL)
    assert find_run(experiment, ORIGINAL).is_done


def test_what_is_published_of_another_corpus_is_not_done_though_its_state_is_gone(experiment, traces):
    traces.done(ORIGINAL)
    traces.corpus("another")
    assert find_run(experiment, ORIGINAL).note == "published under other settings: corpus_hash: c → another"


def test_a_run_that_was_set_aside_comes_back_when_its_settings_do(changed, experiment, traces):
    traces.aside(ORIGINAL, 1200)
    superseding = changed({"on_settings_change": "supersede"})
    assert find_run(superseding, ORIGINAL) == FoundRun(ORIGINAL, "set aside", 1200, "comes back")
    traces.run(ORIGINAL, learning_rate=5e-4)
    assert find_run(superseding, ORIGINAL).state == "set aside"
    refusing = changed({"on_settings_change": "refuse"})
    assert find_run(refusing, ORIGINAL).state == "other settings", "it is taken back where runs are superseded only"


def test_a_run_that_was_set_aside_under_settings_that_are_not_todays_stays_there(changed, traces):
    traces.aside(ORIGINAL, 1200, learning_rate=5e-4)
    assert find_run(changed({"on_settings_change": "supersede"}), ORIGINAL).state == "missing"


def test_what_is_planned_is_known_without_torch():
    """Importing it takes seconds, and every start of Snakemake would."""
    modules = "announcement, plan_text, status, prune"
    program = f"import sys; from symbert.experiment import {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
