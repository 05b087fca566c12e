import pytest

from symbert import tasks
from symbert.config import merge
from symbert.cost import Work, configured_speed
from symbert.errors import ConfigError
from symbert.files import sha256_of
from symbert.glue.state import (
    bytes_to_download,
    evaluated_rows,
    finetuning_speed,
    finetuning_steps,
    finetuning_work,
    measured_tasks,
    missing_tasks,
    own_tasks,
    robustness_seeds,
    robustness_work,
    scored_seeds,
)
from symbert.layout import Experiment, Run
from symbert.pretrain.state import extracted_weights, run_state
from symbert.sizes import SIZES
from traces import write

ORIGINAL = Run("tiny", "original", 1)


def scores(experiment, step: int = 2400) -> dict[str, set[int]]:
    """By task, the seeds that are found of a checkpoint; of a run without any, nothing."""
    found = scored_seeds(experiment, run_state(experiment, ORIGINAL), step)
    return {task: seeds for task, seeds in found.items() if seeds}


def test_seeds_are_found_in_the_scores_and_in_the_state_under_the_settings_of_today_only(experiment, traces):
    traces.run(ORIGINAL)
    assert scores(experiment) == {}
    traces.scores(ORIGINAL, 2400, "rte", [1])
    assert scores(experiment) == {"rte": {1}}
    traces.kept(ORIGINAL, 2400, "rte", 2)
    assert scores(experiment) == {"rte": {1, 2}}
    traces.kept(ORIGINAL, 2400, "cola", 1, settings_hash="another")
    traces.scores(ORIGINAL, 2400, "mrpc", [1, 2], settings_hash="another")
    assert scores(experiment) == {"rte": {1, 2}}


def test_scores_of_other_weights_are_not_those_of_today(experiment, traces):
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1, 2], checkpoint_sha256="before")
    assert scores(experiment) == {}


def test_scores_of_a_run_that_is_trained_again_do_not_count(experiment, traces):
    traces.run(ORIGINAL, "preempted", 1200)
    traces.scores(ORIGINAL, 300, "rte", [1])
    assert scores(experiment, 300) == {}


def test_scores_of_other_rows_than_todays_do_not_count(experiment, traces, folder):
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1])
    write(folder / experiment.results / "settings/task.json", experiment.settings["task"])
    assert scores(experiment) == {"rte": {1}}
    write(folder / experiment.results / "settings/task.json", {**experiment.settings["task"], "max_examples": 7})
    assert scores(experiment) == {}


@pytest.fixture
def with_own_task(changed, folder, monkeypatch):
    """The demo with a task of the user's own, of as many rows as said; its rows have 100 bytes."""
    monkeypatch.setattr(tasks, "OWN", {})

    def experiment_of(count: int) -> Experiment:
        (folder / "rows.csv").write_text(f"{'a' * 99}\n" * count)
        definition = {"train": "rows.csv", "validation": "rows.csv", "columns": ["a"], "labels": ["b", "c"]}
        tasks.define("own", {**definition, "label": "d", "kind": "classification", "metric": "accuracy"})
        return changed({"sweep": {"tasks": ["rte", "own"]}})

    return experiment_of


def test_scores_of_a_task_of_ones_own_count_while_its_files_are_those_of_today(with_own_task, traces, folder):
    experiment = with_own_task(10)
    traces.run(ORIGINAL)
    for task in ("rte", "own"):
        traces.scores(ORIGINAL, 2400, task, [1])
    (section,) = own_tasks(experiment)
    write(folder / experiment.results / f"settings/{section}.json", own_tasks(experiment)[section])
    assert scores(experiment) == {"rte": {1}, "own": {1}}
    assert scores(with_own_task(11)) == {"rte": {1}}


def test_the_rows_of_a_task_of_ones_own_are_reckoned_from_its_bytes_and_none_are_downloaded(with_own_task):
    experiment = with_own_task(1000)
    assert (finetuning_steps(experiment, "own"), evaluated_rows(experiment, "own")) == (5 * 63, 500)
    assert evaluated_rows(with_own_task(30), "own") == 30
    hub = Experiment(merge(experiment.config, {"glue": {"source": "hub"}}))
    alone = Experiment(merge(hub.config, {"sweep": {"tasks": ["rte"]}}))
    assert bytes_to_download(hub) == bytes_to_download(alone) > 0


def test_the_weights_of_a_run_whose_state_is_gone_are_those_that_were_extracted(experiment, traces):
    """So are those of a model before its first step."""
    traces.done(ORIGINAL)
    extracted = write(extracted_weights(experiment, ORIGINAL, 2400), 0)
    traces.scores(ORIGINAL, 2400, "rte", [1], checkpoint_sha256=sha256_of(extracted))
    traces.scores(ORIGINAL, 2400, "cola", [1])
    assert scores(experiment) == {"rte": {1}}


def test_seeds_that_nobody_asks_for_are_not_counted(experiment, traces):
    """A checkpoint of the curve has one seed."""
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 300, "rte", [1, 2, 3])
    assert scores(experiment, 300) == {"rte": {1}}


def test_robustness_is_counted_by_seed_on_the_sets_and_settings_of_today(experiment, changed, traces):
    traces.run(ORIGINAL)
    traces.robustness(ORIGINAL, "rte", [1, 9])
    traces.robustness(ORIGINAL, "cola", [1], settings_hash="another")
    traces.robustness(ORIGINAL, "mrpc", [1], checkpoint_sha256="before")
    counts = robustness_seeds(experiment, run_state(experiment, ORIGINAL), 2400)
    assert counts == {**{task: set() for task in experiment.tasks}, "rte": {1}}
    louder = changed({"glue": {"robustness": {"noise": [0.5]}}})
    assert not any(robustness_seeds(louder, run_state(louder, ORIGINAL), 2400).values())


def test_files_that_are_being_written_count_as_absent(experiment, traces):
    traces.run(ORIGINAL)
    path = traces.scores(ORIGINAL, 2400, "rte", [1, 2])
    path.write_text(path.read_text()[:-3])
    assert scores(experiment) == {}


def test_odd_files_are_no_reason_to_fail(experiment, traces, folder):
    state = traces.run(ORIGINAL, "preempted", 300)
    for odd in ([], 7, {}, {"state": None, "step": "x"}):
        write(state / "status.json", odd)
        assert run_state(experiment, ORIGINAL).state in ("missing", "stopped")
    traces.run(ORIGINAL)
    path = traces.scores(ORIGINAL, 2400, "rte", [])
    write(path, [{}, 3, {"finetune_seed": 1}])
    write(path.parent / "state/rte/seed-1-0123abcd.json", {"record": {}})
    assert scores(experiment) == {}


def test_noise_measures_every_task_and_sets_those_that_answer_them(config):
    chosen = {"noise": [], "sets": ["hans"], "files": "here"}
    sets = merge(config, {"glue": {"robustness": chosen}})
    assert measured_tasks(Experiment(config)) == config["sweep"]["tasks"]
    assert measured_tasks(Experiment(sets)) == ["mnli"]
    with pytest.raises(ConfigError, match="no task of 'sweep.tasks' answers hans; add mnli"):
        measured_tasks(Experiment(merge(sets, {"sweep": {"tasks": ["cola"]}})))


def test_glue_of_the_hub_is_there_when_all_tables_are(changed, folder):
    hub = changed({"glue": {"source": "hub"}, "sweep": {"tasks": ["rte", "cola"]}})
    write(folder / hub.results / "glue/raw/rte.parquet", 0)
    assert missing_tasks(hub) == ["cola"] and missing_tasks(changed({})) == []
    write(folder / hub.results / "glue/raw/cola.parquet", 0)
    assert missing_tasks(hub) == []


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


def test_fine_tuning_on_a_machine_without_a_gpu_takes_no_gpu_hours_but_those_of_its_cores(changed):
    small = changed({"sweep": {"sizes": ["small"], "curve": {"sizes": []}}})
    hours = {"small-original-seed-1-step-2400": 1.0}
    amount = sum((finetuning_work(small, "small", task, 2) for task in small.tasks), Work())
    found = finetuning_speed(small, "small", hours)
    assert found.on_gpu and found.hours(amount).core == pytest.approx(1)
    timing = small.place(small.run, Run("small", "original", 1)) / "timing.json"
    write(timing, {"device": "cpu", "threads": 4})
    found = finetuning_speed(small, "small", hours)
    assert not found.on_gpu and found.hours(amount).core == pytest.approx(4)


def test_fine_tuning_is_as_fast_as_the_slowest_job_of_the_experiment(experiment):
    """A job that found seeds in its state folder was short. The demo fine-tunes step 300 with one seed."""
    amount = sum((finetuning_work(experiment, "tiny", task) for task in experiment.tasks), Work())
    reckoned = configured_speed(experiment.config["rates"], SIZES["tiny"]).hours(amount).core
    hours = {"tiny-original-seed-1-step-300": 2 * reckoned, "tiny-shared-seed-1-step-300": 1 / 3600}
    found = finetuning_speed(experiment, "tiny", hours)
    assert found.hours(amount).core == pytest.approx(2 * reckoned) and found.measured == experiment.name


def test_without_a_finished_job_fine_tuning_is_as_fast_as_configured(experiment):
    configured = configured_speed(experiment.config["rates"], SIZES["tiny"])
    assert finetuning_speed(experiment, "tiny", {}) == configured
