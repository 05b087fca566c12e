"""Whole runs, in processes of their own: finished, killed, asked to stop, changed, diverged."""

import json
import shutil
import signal
import time

import pytest
from safetensors import safe_open

from pretrain.corpora import command, start
from symbert.files import read_json, sha256_of
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.run import pretrain_model


def finish(arguments: list[str]) -> tuple[int, str]:
    process = start(arguments)
    error = process.communicate(timeout=240)[1]
    return process.returncode, error


def outcome(run) -> dict[str, str]:
    """Everything that a run leaves for others, by content."""
    files = [run / "done.json", run / "metrics.jsonl", *sorted((run / "state" / "weights").glob("*.safetensors"))]
    return {path.name: sha256_of(path) for path in files}


def wait_for(path, process) -> None:
    """Until `path` exists; a run that ends before is an error."""
    while not path.exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.005)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of one uninterrupted run, made by the first test that needs it."""
    return tmp_path_factory.mktemp("whole")


@pytest.fixture
def uninterrupted(whole, manifest, brief):
    if not (whole / "done.json").exists():
        code, error = finish(command(manifest, brief(), whole))
        assert code == 0, error
    return outcome(whole)


def test_a_run_ends_with_its_summary_and_learns(whole, uninterrupted):
    done = read_json(whole / "done.json")
    assert (done["size"], done["attention"], done["pretrain_seed"], done["steps"]) == ("tiny", "pairwise", 1, 30)
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    validation = {line["step"]: line["loss"] for line in lines if line["split"] == "validation"}
    assert list(validation) == [10, 20, 30] and validation[30] == done["validation_loss"]
    assert 3.0 < validation[10] < 4.6 and validation[30] < validation[10]  # ln 60 = 4.09 knows nothing
    assert [line["step"] for line in lines if line["split"] == "train"] == [10, 20, 30]
    assert len(uninterrupted) == 5


def test_a_killed_run_continues_to_the_same_bits(tmp_path, manifest, brief, uninterrupted):
    arguments = command(manifest, brief(), tmp_path / "killed")
    process = start(arguments)
    wait_for(tmp_path / "killed/state/weights/step-00000010.json", process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "done.json").exists()
    assert finish(arguments)[0] == 0
    assert outcome(tmp_path / "killed") == uninterrupted


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_preempted_run_saves_exits_with_75_and_continues_to_the_same_bits(
    tmp_path, manifest, brief, uninterrupted, number
):
    arguments = command(manifest, brief(), tmp_path / "preempted")
    process = start(arguments)
    wait_for(tmp_path / "preempted/state/weights/step-00000010.json", process)
    process.send_signal(number)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 75 and "run the same command to go on" in error
    saved = max((tmp_path / "preempted/state/resume").iterdir())
    assert 10 <= read_json(saved / "checkpoint.json")["step"] < 30
    assert finish(arguments)[0] == 0
    assert outcome(tmp_path / "preempted") == uninterrupted


def test_a_damaged_newest_checkpoint_falls_back_to_the_same_bits(tmp_path, manifest, brief, uninterrupted):
    run = tmp_path / "damaged"
    process = start(command(manifest, brief(), run))
    wait_for(run / "state/resume/step-00000020", process)
    process.kill()
    process.communicate()
    newest = run / "state/resume/step-00000020/optimizer.safetensors"
    newest.write_bytes(newest.read_bytes()[:1000])
    code, error = finish(command(manifest, brief(), run))
    assert code == 0 and str(newest) in error
    assert outcome(run) == uninterrupted


def test_other_settings_are_refused_with_78_or_supersede(tmp_path, whole, manifest, brief, uninterrupted):
    run = shutil.copytree(whole, tmp_path / "run")
    code, error = finish(command(manifest, brief(learning_rate=0.01, on_settings_change="refuse"), run))
    assert code == 78 and "learning_rate: 0.001 → 0.01" in error
    assert outcome(run) == uninterrupted
    assert finish(command(manifest, brief(learning_rate=0.01, on_settings_change="supersede"), run))[0] == 0
    assert outcome(run)["metrics.jsonl"] != uninterrupted["metrics.jsonl"]
    assert len(list(run.glob("state.superseded-*"))) == 1


def test_a_diverging_run_stops_with_79_and_keeps_its_last_checkpoint(tmp_path, manifest, brief):
    run = tmp_path / "diverged"
    code, error = finish(command(manifest, brief(learning_rate=1e30, warmup_steps=12), run))
    assert code == 79 and "pretrain.learning_rate" in error
    assert not (run / "done.json").exists()


def test_the_operators_see_the_same_batches_and_start_from_the_same_embeddings(tmp_path, manifest, brief):
    first = {}
    for attention in ("original", "symmetric"):
        assert finish(command(manifest, brief(steps=10, learning_rate=1e-12), tmp_path / attention, attention))[0] == 0
        with safe_open(tmp_path / attention / "state/weights/step-00000010.safetensors", "pt") as file:
            first[attention] = file.get_tensor("bert.embeddings.word_embeddings.weight")
    assert (first["original"] - first["symmetric"]).abs().max() < 1e-9


def test_a_run_killed_right_after_a_checkpoint_has_kept_the_weights_of_that_step(
    tmp_path, manifest, brief, monkeypatch, uninterrupted
):
    """Weights used to be kept after the checkpoint, so that a kill between the two lost them for good."""
    run = tmp_path / "run"
    save = CheckpointStore.save

    def killed(store, model, optimizer, position):
        save(store, model, optimizer, position)
        raise KeyboardInterrupt

    files = (run / "state", run / "done.json", run / "metrics.jsonl")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(CheckpointStore, "save", killed)
        pretrain_model(manifest, brief(), "tiny", "pairwise", 1, *files, threads=1)
    pretrain_model(manifest, brief(), "tiny", "pairwise", 1, *files, threads=1)
    assert outcome(run) == uninterrupted
