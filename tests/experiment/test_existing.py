import os
import platform
import subprocess
import sys

import pytest

from experiment.traces import write
from symbert.experiment import existing
from symbert.experiment.existing import RunState, has_corpus, run_state
from symbert.pretrain.run import Run

ORIGINAL = Run("tiny", "original", 1)
NOBODY = 2**22 + 1  # no process has it


def test_a_run_that_left_nothing_is_missing(experiment):
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "missing", 0)


def test_a_finished_run_is_done(experiment, traces):
    traces.run(ORIGINAL)
    assert run_state(experiment, ORIGINAL) == RunState(ORIGINAL, "done", 2400)


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


@pytest.mark.parametrize("section", existing.CORPUS_SETTINGS)
def test_a_corpus_of_other_settings_is_not_there(experiment, traces, folder, section):
    traces.corpus()
    path = write(folder / experiment.results / f"settings/{section}.json", experiment.settings[section])
    assert has_corpus(experiment)
    write(path, {"another": 1})
    assert not has_corpus(experiment)


def test_more_parts_are_more_work_unless_the_rows_were_full_without_them(experiment, changed, traces):
    manifest = traces.corpus()
    more = changed({"corpus": {"embedded": {"parts": 5}}})
    assert has_corpus(experiment) and not has_corpus(more)
    record = write(existing.tokens_record(more, "en_meta_part_5"), {})
    os.utime(record, (manifest.stat().st_mtime - 9,) * 2)
    assert has_corpus(more), "it was left out"
    os.utime(record, (manifest.stat().st_mtime + 9,) * 2)
    assert not has_corpus(more), "its tokens are still to be packed"
    assert not has_corpus(changed({"corpus": {"embedded": {"parts": 2}}})), "of fewer parts it is another corpus"


def test_glue_of_the_hub_is_there_when_all_tables_are(changed, folder):
    hub = changed({"glue": {"source": "hub"}, "sweep": {"tasks": ["rte", "cola"]}})
    write(folder / hub.results / "glue/raw/rte.parquet", 0)
    assert existing.missing_tasks(hub) == ["cola"] and existing.missing_tasks(changed({})) == []
    write(folder / hub.results / "glue/raw/cola.parquet", 0)
    assert existing.missing_tasks(hub) == []


@pytest.mark.parametrize("parts", [3, "en_meta_part_1", None, {"a": 1}, [[1], 2]])
def test_a_manifest_whose_parts_are_no_list_of_names_is_no_corpus_and_no_bug(experiment, traces, parts):
    write(traces.corpus(), {"hash": "c", "parts": parts})
    assert not has_corpus(experiment)


def test_what_is_planned_is_known_without_torch():
    """Importing it takes seconds, and every start of Snakemake would."""
    modules = "announcement, plan, status, prune"
    program = f"import sys; from symbert.experiment import {modules}; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
