from pathlib import Path

import pytest
from symbert.pretrain.state import extracted_weights, run_state

from symbert.config import merge
from symbert.errors import ConfigError
from symbert.files import sha256_of
from symbert.glue.state import (
    PREPARED_ROWS,
    RAW_ROWS,
    is_judged,
    judged_home,
    measured_tasks,
    own_tasks,
    pairs_file,
    robustness_seeds,
    rows_file,
    scored_seeds,
    scores_home,
)
from symbert.paths import Experiment, Run
from traces import Traces, write

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


def test_scores_of_a_task_of_ones_own_count_while_its_files_are_those_of_today(with_own_task, traces, folder):
    experiment = with_own_task(10)
    traces.run(ORIGINAL)
    for task in ("rte", "own"):
        traces.scores(ORIGINAL, 2400, task, [1])
    (section,) = own_tasks(experiment)
    write(folder / experiment.results / f"settings/{section}.json", own_tasks(experiment)[section])
    assert scores(experiment) == {"rte": {1}, "own": {1}}
    assert scores(with_own_task(11)) == {"rte": {1}}


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


def test_scores_of_the_extended_experiment_are_used_where_all_wanted_ones_are_there(experiment, traces, changed):
    """One by one they are taken from its state, which spares their computation."""
    other = changed({"experiment": "other", "extends": experiment.name, "sweep": {"tasks": ["rte", "cola"]}})
    traces.corpus()
    traces.run(ORIGINAL)
    traces.scores(ORIGINAL, 2400, "rte", [1, 2, 3])
    assert scores_home(other, ORIGINAL, 2400, "glue") is other and scores(other) == {"rte": {1, 2}}
    traces.scores(ORIGINAL, 2400, "cola", [1, 2], checkpoint_sha256="another")
    assert scores_home(other, ORIGINAL, 2400, "glue") is other
    traces.scores(ORIGINAL, 2400, "cola", [1, 2])
    assert scores_home(other, ORIGINAL, 2400, "glue") is other.extended
    Traces(other).scores(ORIGINAL, 2400, "rte", [1, 2])
    Traces(other).scores(ORIGINAL, 2400, "cola", [1, 2])
    assert scores_home(other, ORIGINAL, 2400, "glue") is other, "its own come first"


def test_rows_of_the_extended_experiment_are_used_where_their_settings_are_equal(experiment, traces, changed, folder):
    extends = {"experiment": "other", "extends": experiment.name}
    longer = changed({**extends, "glue": {"max_length": 32}})
    for name in ("raw/rte", "data/rte"):
        write(folder / experiment.results / f"glue/{name}.parquet", 0)
    write(folder / experiment.results / "settings/task.json", experiment.settings["task"])
    assert rows_file(changed(extends), PREPARED_ROWS, "rte").startswith("results/other/"), "of which vocabulary?"
    traces.corpus()
    assert rows_file(changed(extends), PREPARED_ROWS, "rte") == f"{experiment.results}/glue/data/rte.parquet"
    assert rows_file(longer, PREPARED_ROWS, "rte") == "results/other/glue/data/rte.parquet"
    assert rows_file(longer, RAW_ROWS, "rte") == f"{experiment.results}/glue/raw/rte.parquet"


def test_pairs_are_judged_where_weights_and_settings_are_those_of_today(changed, folder):
    experiment = changed({"sweep": {"suites": ["glue", "blimp"]}})
    made = Traces(experiment)
    made.run(ORIGINAL)
    state = run_state(experiment, ORIGINAL)
    assert experiment.judging_steps(ORIGINAL) == [300, 1200, 2400] and not is_judged(experiment, state, 300)
    made.judged(ORIGINAL, 300)
    made.judged(ORIGINAL, 1200, checkpoint_sha256="other")
    made.judged(ORIGINAL, 2400, settings_hash="other")
    assert [is_judged(experiment, state, step) for step in (300, 1200, 2400)] == [True, False, False]
    write(Path(experiment.results) / "settings/glue_source.json", {"source": "elsewhere"})
    assert not is_judged(experiment, state, 300), "of other pairs"


def test_judgements_of_the_extended_experiment_are_used(changed, folder):
    suites = {"sweep": {"suites": ["blimp"], "finetuned_pretrain_seeds": []}}
    first = changed(suites)
    made = Traces(first)
    made.corpus()
    write(made.run(ORIGINAL) / "weights/step-00002400.json", {"step": 2400, "sha256": "w"})
    made.judged(ORIGINAL, 2400)
    second = changed({**suites, "experiment": "second", "extends": first.name})
    assert second.judging_steps(ORIGINAL) == [2400], "the last, though nothing is fine-tuned"
    assert judged_home(second, ORIGINAL, 2400).name == first.name
    assert is_judged(second, run_state(second, ORIGINAL), 2400)
    other = changed({**suites, "experiment": "third", "extends": first.name, "suites": {"blimp": {"max_length": 16}}})
    assert judged_home(other, ORIGINAL, 2400).name == "third"


def test_pairs_of_the_extended_experiment_were_thought_downloaded_anew_for_the_checkpoints_that_judge(changed, folder):
    """Other bytes of the same pairs, as another pyarrow writes them, made a table of both refuse the judgements."""
    first = changed({"sweep": {"suites": ["blimp"]}})
    second = changed({"sweep": {"suites": ["blimp"]}, "experiment": "second", "extends": first.name})
    assert pairs_file(second) == second.pairs
    write(folder / first.pairs, 0)
    assert pairs_file(second) == first.pairs
    write(folder / first.results / "settings/glue_source.json", {"source": "elsewhere"})
    assert pairs_file(second) == second.pairs, "those of the other are of another source"
