import os
import shutil
from pathlib import Path

import pytest

from symbert.errors import ConfigError, IntegrityError
from symbert.files import read_json
from symbert.pretrain.guard import difference, guard_settings, recorded_settings
from symbert.settings import PretrainSettings, read_settings

OLD, NEW = {"learning_rate": 1e-3, "steps": 10}, {"learning_rate": 2e-3, "steps": 10}


def publish_results(run, mark: str) -> None:
    """What a finished run and the extraction of one checkpoint leave in the folder of results."""
    for name in ("done.json", "metrics.jsonl", "timing.json", "step-00000010/model.safetensors"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        (run / name).write_text(mark)


def test_the_same_run_goes_on(tmp_path):
    state = tmp_path / "state"
    guard_settings(state, OLD, "refuse", tmp_path)
    (state / "weights").mkdir()
    publish_results(tmp_path, "old")
    guard_settings(state, OLD, "supersede", tmp_path)
    assert (state / "weights").is_dir()
    assert (tmp_path / "done.json").read_text() == "old"


def test_a_key_that_is_null_says_nothing_so_a_run_from_before_it_is_the_same(write_section):
    """`schedule_steps` came later: the runs from before it neither stop nor start over."""
    settings = read_settings(write_section("pretrain"), PretrainSettings)
    told = recorded_settings(settings)
    assert settings.schedule_steps is None
    assert set(settings.__struct_fields__) - told.keys() == {"schedule_steps", "optimizer"}
    longer = read_settings(write_section("pretrain", schedule_steps=9600), PretrainSettings)
    assert difference(told, recorded_settings(longer)) == "schedule_steps: absent → 9600"


def test_another_run_is_refused_with_the_difference_and_the_remedy_and_keeps_its_results(tmp_path):
    state = tmp_path / "state"
    guard_settings(state, OLD, "refuse", tmp_path)
    publish_results(tmp_path, "old")
    with pytest.raises(ConfigError, match=r"\(learning_rate: 0.001 → 0.002\); .*experiment"):
        guard_settings(state, NEW, "refuse", tmp_path)
    assert read_json(state / "identity.json") == OLD
    assert (tmp_path / "step-00000010/model.safetensors").read_text() == "old"


def test_another_run_supersedes_without_losing_any(tmp_path):
    state = tmp_path / "state"
    for steps in (1, 2, 3, 4):
        guard_settings(state, {"steps": steps}, "supersede", tmp_path)
        (state / "mark").write_text(str(steps))
    assert read_json(state / "identity.json") == {"steps": 4}
    aside = sorted(path for path in tmp_path.iterdir() if path.is_dir() and path != state)
    assert len(aside) == 3
    assert sorted((path / "mark").read_text() for path in aside) == ["1", "2", "3"]


def test_settings_that_return_go_on_with_the_run_that_was_set_aside(tmp_path):
    state = tmp_path / "state"
    for identity in (OLD, NEW, OLD, NEW):
        guard_settings(state, identity, "supersede", tmp_path)
        with open(state / "sessions", "a") as file:
            file.write(f"{identity['learning_rate']} ")
    assert read_json(state / "identity.json") == NEW
    assert (state / "sessions").read_text() == "0.002 0.002 "
    (aside,) = (path for path in tmp_path.iterdir() if ".superseded-" in path.name)
    assert (aside / "sessions").read_text() == "0.001 0.001 "


def test_a_run_that_is_taken_back_brings_nothing_that_it_had_published(tmp_path):
    """Its rules publish again, and beside the state nobody would look for it."""
    state = tmp_path / "state"
    guard_settings(state, OLD, "supersede", tmp_path)
    publish_results(tmp_path, "old")
    guard_settings(state, NEW, "supersede", tmp_path)
    guard_settings(state, OLD, "supersede", tmp_path)
    assert [path.name for path in state.iterdir()] == ["identity.json"] and read_json(state / "identity.json") == OLD


def test_a_folder_that_holds_no_run_does_not_keep_a_run_from_being_taken_back(tmp_path):
    """A session that failed at once leaves its status alone."""
    state = tmp_path / "state"
    guard_settings(state, OLD, "supersede", tmp_path)
    (state / "mark").touch()
    guard_settings(state, NEW, "supersede", tmp_path)
    shutil.rmtree(state)
    state.mkdir()
    (state / "status.json").write_text("{}")
    guard_settings(state, OLD, "supersede", tmp_path)
    assert sorted(path.name for path in state.iterdir()) == ["identity.json", "mark"]


def another_disk(tmp_path):
    """A folder to be of a file system other than that of `tmp_path`."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK) or shared.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second file system to write to")
    return shared / tmp_path.name


@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside", "on another disk"])
def test_nothing_of_a_superseded_run_lies_beside_the_new_one(tmp_path, elsewhere, request):
    run = tmp_path / "results"
    place = another_disk(tmp_path) if elsewhere else run
    request.addfinalizer(lambda: shutil.rmtree(place))
    state = place / "state"
    guard_settings(state, OLD, "refuse", run)
    publish_results(run, "old")
    (run / "done.json").unlink()  # as Snakemake does before it starts the job again
    guard_settings(state, NEW, "supersede", run)
    (aside,) = state.parent.glob("state.superseded-*")
    assert read_json(aside / "identity.json") == OLD and read_json(state / "identity.json") == NEW
    assert {path.name for path in run.iterdir()} <= {state.name, aside.name, "state.json"}
    assert sorted(os.listdir(aside / "published")) == ["metrics.jsonl", "step-00000010", "timing.json"]
    assert (aside / "published/step-00000010/model.safetensors").read_text() == "old"


@pytest.mark.parametrize("killed_at", range(5))
def test_a_kill_while_a_run_is_set_aside_mixes_nothing_and_loses_nothing(tmp_path, monkeypatch, killed_at):
    state, moved = tmp_path / "state", []
    guard_settings(state, OLD, "refuse", tmp_path)
    publish_results(tmp_path, "old")

    def move(origin, destination):
        if len(moved) == killed_at:
            if origin.is_dir():  # half copied to another file system
                shutil.copytree(origin, destination)
                (destination / "model.safetensors").write_text("o")
            raise KeyboardInterrupt
        moved.append(os.replace(origin, destination))

    with monkeypatch.context() as patch:
        patch.setattr("symbert.pretrain.guard.shutil.move", move)
        patch.setattr("symbert.pretrain.guard.free_name", stop)  # reached when all four were moved
        with pytest.raises(KeyboardInterrupt):
            guard_settings(state, NEW, "supersede", tmp_path)
    assert read_json(state / "identity.json") == OLD
    guard_settings(state, NEW, "supersede", tmp_path)
    (aside,) = tmp_path.glob("state.superseded-*")
    assert sorted(os.listdir(tmp_path)) == ["state", "state.json", aside.name]
    assert sorted(os.listdir(aside / "published")) == ["done.json", "metrics.jsonl", "step-00000010", "timing.json"]
    assert (aside / "published/step-00000010/model.safetensors").read_text() == "old"


def stop(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("damage", ["remove", "truncate"])
def test_checkpoints_whose_settings_are_not_known_are_not_gone_on_with(tmp_path, damage):
    state = tmp_path / "state"
    guard_settings(state, OLD, "refuse", tmp_path)
    (state / "resume/step-00000010").mkdir(parents=True)
    record = state / "identity.json"
    record.unlink() if damage == "remove" else record.write_text("{")
    with pytest.raises(IntegrityError, match=f"{record}: missing or damaged.* move {state} away"):
        guard_settings(state, OLD, "supersede", tmp_path)


def test_a_state_that_lies_elsewhere_is_not_started_over(tmp_path):
    """Another `storage.checkpoints` used to begin a half-done run at step 0 without a word."""
    run, old, new = tmp_path / "run", tmp_path / "scratch/state", tmp_path / "other/state"
    guard_settings(old, OLD, "refuse", run)
    with pytest.raises(ConfigError, match=r"scratch/state: holds the state of this run.*storage.checkpoints"):
        guard_settings(new, OLD, "refuse", run)
    assert not new.exists()
    new.parent.mkdir()
    old.rename(new)
    guard_settings(new, OLD, "refuse", run)
    assert read_json(run / "state.json") == {"state": "../other/state"}
