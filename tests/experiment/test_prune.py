import os
import platform
import time

import pytest
from symbert.pretrain.state import UNTOUCHED

from symbert import cli
from symbert.files import sha256_of, single_writer, write_json
from symbert.paths import Run
from traces import write

ORIGINAL, SHARED = Run("tiny", "original", 1), Run("tiny", "shared", 1)
NOBODY = 2**22 + 1  # no process has it


pytestmark = pytest.mark.usefixtures("project")


@pytest.fixture
def pruned(capsys):
    """Runs the command and gives what it printed."""

    def run(*options: str) -> str:
        assert cli.main(["prune", *options]) == 0
        return capsys.readouterr().out

    return run


def checkpoint(state, step: int, size: int = 1000):
    """A resume checkpoint and the kept weights of a step."""
    folder = state / f"resume/step-{step:08d}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(bytes(size))
    write_json(folder / "checkpoint.json", {"sha256": {"model.safetensors": sha256_of(folder / "model.safetensors")}})
    weights = state / f"weights/step-{step:08d}.safetensors"
    weights.parent.mkdir(exist_ok=True)
    weights.write_bytes(bytes(size))
    return folder, weights


def leave(path, process: int | str = NOBODY, age: float = 2 * UNTOUCHED, size: int = 10):
    """A temporary file beside a path."""
    temporary = path.with_name(f".{path.name}.{process}.tmp")
    temporary.parent.mkdir(parents=True, exist_ok=True)
    temporary.write_bytes(bytes(size))
    os.utime(temporary, (time.time() - age,) * 2)
    return temporary


def test_of_a_fresh_experiment_nothing_may_go(pruned, experiment):
    assert pruned("--yes").startswith("Experiment demo-embedded: nothing to remove")


def test_without_yes_everything_stays(pruned, traces):
    state = traces.run(ORIGINAL)
    superseded = write(state.with_name("state.superseded-0123abcd") / "identity.json", {})
    said = pruned()
    assert superseded.is_file() and f"{superseded.parent}" in said and "nothing was removed; --yes removes it" in said


def test_superseded_runs_go_with_all_that_they_published(pruned, traces):
    state = traces.run(ORIGINAL)
    old = state.with_name("state.superseded-0123abcd")
    write(old / "published/step-300/model.safetensors", "x" * 998)
    assert "1 kB may go" in pruned() and "freed 1 kB" in pruned("--yes")
    assert not old.exists() and (state / "identity.json").is_file()


def test_superseded_runs_of_an_operator_that_is_in_the_sweep_no_more_go_too(pruned, traces, experiment):
    old = experiment.place(experiment.state, Run("small", "original", 7)).with_name("state.superseded-0123abcd")
    write(old / "identity.json", {})
    pruned("--yes")
    assert not old.exists()


def test_a_finished_run_keeps_its_last_checkpoint_and_its_weights(pruned, traces):
    """With the last one the run can be published once more without being trained again."""
    state = traces.run(ORIGINAL)
    folders, weights = zip(*(checkpoint(state, step) for step in (1800, 2100, 2400)), strict=True)
    said = pruned("--yes")
    assert [folder.is_dir() for folder in folders] == [False, False, True] and all(path.is_file() for path in weights)
    assert "--surplus-weights would free 2 kB more" in said


def test_weights_of_steps_that_nothing_asks_for_go_on_request_only(pruned, traces):
    """The demo's curve has the steps 300, 1,200 and 2,400."""
    state = traces.run(ORIGINAL)
    weights = [checkpoint(state, step)[1] for step in (300, 600, 1200, 2400)]
    pruned("--yes", "--surplus-weights")
    assert [path.is_file() for path in weights] == [True, False, True, True]


def test_a_run_that_is_not_finished_keeps_everything(pruned, traces):
    for run, state in ((ORIGINAL, "preempted"), (SHARED, "running")):
        folder = traces.run(run, state, 900)
        for step in (300, 600, 900):
            checkpoint(folder, step)
    assert pruned("--yes", "--surplus-weights").startswith("Experiment demo-embedded: nothing to remove")


def test_a_finished_run_whose_last_checkpoint_is_damaged_keeps_the_others(pruned, traces):
    state = traces.run(ORIGINAL)
    (before, _), (last, _) = checkpoint(state, 2100), checkpoint(state, 2400)
    (last / "model.safetensors").write_bytes(bytes(999))
    pruned("--yes")
    assert before.is_dir()


def test_a_run_of_other_settings_keeps_everything(pruned, traces):
    state = traces.run(ORIGINAL, learning_rate=5e-4)
    folders = [checkpoint(state, step)[0] for step in (2100, 2400)]
    pruned("--yes", "--surplus-weights")
    assert all(folder.is_dir() for folder in folders)


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(pruned, traces, experiment, folder):
    state = traces.run(ORIGINAL, "preempted", 300)
    corpus = folder / experiment.results / "corpus/filtered/part.parquet"
    finetuned = traces.kept(ORIGINAL, 300, "rte", 1).with_name("seed-2-0123abcd.json")
    left = [leave(path) for path in (corpus, state / "weights/step-00000300.safetensors", finetuned)]
    left += [leave(corpus, "begun"), state / "resume/.step-00000300.tmp"]
    half = write(left[-1] / "model.safetensors", 0)
    for path in (half, half.parent):
        os.utime(path, (time.time() - 2 * UNTOUCHED,) * 2)
    stay = [write(state / "resume/.step-00000600.tmp/model.safetensors", 0)]
    stay += [leave(corpus, os.getpid()), leave(corpus, NOBODY - 1, age=60)]
    pruned("--yes")
    assert not any(path.exists() for path in left), left
    assert all(path.exists() for path in stay), "of a process that is there; written to within the hour"


def test_a_run_that_was_set_aside_and_is_wanted_again_stays(pruned, traces):
    state = traces.aside(ORIGINAL, 1200)
    other = write(state.with_name("state.superseded-ff") / "identity.json", {})
    pruned("--yes")
    assert state.is_dir() and not other.parent.exists()


def test_a_folder_in_which_another_machine_seems_to_work_is_named_and_skipped(pruned, traces):
    state = traces.run(ORIGINAL, "running", 300)
    old = write(state.with_name("state.superseded-0123abcd") / "x", 0)
    traces.lease(state.parent, "node-7", 12)
    assert f"skipped: {state.parent}: in use by process 12 on node-7, as it seems" in pruned("--yes") and old.is_file()
    traces.run(ORIGINAL, "preempted", 300)
    pruned("--yes")
    assert not old.exists()


def test_fine_tunings_that_another_machine_seems_to_make_are_skipped_until_it_was_silent_for_an_hour(pruned, traces):
    traces.scores(ORIGINAL, 2400, "rte", [1])
    old = traces.kept(ORIGINAL, 2400, "rte", 1, settings_hash="before")
    traces.lease(old.parents[1], "node-7", 12)
    assert "skipped: " in pruned("--yes") and old.is_file()
    for path in (old, old.parents[1] / "lock"):
        os.utime(path, (time.time() - 2 * UNTOUCHED,) * 2)
    pruned("--yes")
    assert not old.exists()


def test_nothing_outside_the_experiments_folders_is_looked_at_though_the_root_has_a_folder_pretrain(
    pruned, changed, folder
):
    """The root was once cut at the first /pretrain/ in it."""
    scratch = folder / "x/pretrain/scratch"
    outside = leave(folder / "x/precious")
    inside = leave(scratch / "demo-embedded/pretrain/part")
    pruned("--yes", "--config", f"storage={{checkpoints: {scratch}}}")
    assert outside.is_file() and not inside.exists()


def test_what_another_process_holds_is_named_and_skipped(pruned, traces):
    held, free = traces.run(ORIGINAL), traces.run(SHARED)
    old = [write(state.with_name("state.superseded-0123abcd") / "x", 0) for state in (held, free)]
    with single_writer(held.parent):
        said = pruned("--yes")
    assert f"skipped: {held.parent}: in use by process {os.getpid()} on {platform.node()}" in said
    assert [path.exists() for path in old] == [True, False]


def test_fine_tunings_under_other_settings_go_with_their_weights_and_their_robustness(pruned, traces):
    today = traces.kept(ORIGINAL, 2400, "rte", 1)
    old = traces.kept(ORIGINAL, 2400, "rte", 1, key="ffffffff", settings_hash="before")
    with_it = [old.with_suffix(".safetensors"), old.with_name(f"robustness-{old.stem}-12345678.json")]
    for path in with_it:
        write(path, 0)
    pruned("--yes")
    assert today.is_file() and not any(path.exists() for path in (old, *with_it))


def test_fine_tunings_of_other_weights_go_once_those_of_today_have_scores(pruned, traces):
    old = traces.kept(ORIGINAL, 2400, "rte", 1, key="ffffffff", checkpoint_sha256="before")
    pruned("--yes")
    assert old.is_file(), "nothing says that it is old"
    traces.scores(ORIGINAL, 2400, "rte", [1])
    surplus = traces.kept(ORIGINAL, 2400, "rte", 9)
    pruned("--yes")
    assert not old.exists() and surplus.is_file(), "a seed of today's that nobody asks for now"


def test_fine_tunings_of_another_dropout_than_the_published_are_not_what_the_scores_are_made_of(pruned, traces):
    """The device decides it for the recipe fast, as it decides the precision."""
    today = traces.kept(ORIGINAL, 2400, "rte", 1, attention_dropout=0.125)
    old = traces.kept(ORIGINAL, 2400, "rte", 1, key="ffffffff", attention_dropout=0.1)
    traces.scores(ORIGINAL, 2400, "rte", [1], attention_dropout=0.125)
    pruned("--yes")
    assert today.is_file() and not old.exists()


def test_fine_tunings_that_the_published_scores_are_made_of_stay_whatever_the_settings(pruned, traces):
    traces.scores(ORIGINAL, 2400, "rte", [1], settings_hash="before")
    kept = traces.kept(ORIGINAL, 2400, "rte", 1, settings_hash="before")
    pruned("--yes")
    assert kept.is_file()


def test_links_are_neither_followed_nor_taken(pruned, traces, folder):
    outside = folder / "outside"
    write(outside / "precious", 0)
    leave(outside / "part")
    state = traces.run(ORIGINAL)
    link = state.with_name("state.superseded-0123abcd")
    link.symlink_to(outside)
    old = state.with_name("state.superseded-ffffffff")
    old.mkdir()
    (old / "link").symlink_to(outside)
    (state.parents[2] / "tiny-linked").symlink_to(outside)
    write(outside / "seed-1/state.superseded-00000000/x", 0)
    pruned("--yes")
    assert (outside / "precious").is_file() and link.is_symlink() and not old.exists()
    assert (outside / "seed-1/state.superseded-00000000/x").is_file() and len(list(outside.iterdir())) == 3


def test_states_below_the_root_for_checkpoints_are_pruned_there(pruned, traces, changed, folder):
    scratch = folder / "scratch"
    elsewhere = changed({"storage": {"checkpoints": str(scratch)}})
    old = elsewhere.place(elsewhere.state, ORIGINAL).with_name("state.superseded-0123abcd")
    write(old / "x", 0)
    other = write(scratch / "another-experiment/pretrain/tiny-original/seed-1/state.superseded-0123abcd/x", 0)
    assert "nothing to remove" in pruned("--yes")
    pruned("--yes", "--config", f"storage={{checkpoints: {scratch}}}")
    assert not old.exists() and other.is_file(), "another experiment's is not this one's"
