"""Whole runs, in processes of their own: finished, killed, asked to stop, changed, diverged."""

import json
import math
import os
import re
import shutil
import signal
import subprocess

import numpy as np
import pytest
import torch
from safetensors import safe_open

from pretrain.corpora import command, killed, options, start, wait_for, write_corpus
from symbert.cli import main
from symbert.files import read_json, sha256_of, write_json
from symbert.model import bert
from symbert.operators import OPERATORS, define
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.compute import RECIPES, Recipe, Updater, linear_rate
from symbert.pretrain.train import Trainer
from symbert.provenance import PROJECT, commit_of
from symbert.sizes import SIZES
from symbert.sizes import define as define_size


def finish(arguments: list[str]) -> tuple[int, str]:
    process = start(arguments)
    error = process.communicate(timeout=240)[1]
    return process.returncode, error


@pytest.fixture
def here(capsys):
    """Runs a command's words in this process, which has imported torch already; gives exit code and error output."""

    def run(words: list[str]) -> tuple[int, str]:
        return main(words), capsys.readouterr().err

    return run


def contents(run) -> dict[str, str]:
    """All files that a training reads or writes, but for who was there last."""
    files = (path for path in run.rglob("*") if path.is_file())
    return {path.name: sha256_of(path) for path in files if path.name not in ("lock", "status.json", "run.json")}


def outcome(run) -> dict[str, str]:
    """Everything that a run leaves for others, by content."""
    files = [run / "done.json", run / "metrics.jsonl", *sorted((run / "state" / "weights").glob("*.safetensors"))]
    return {path.name: sha256_of(path) for path in files}


@pytest.fixture
def uninterrupted(finished):
    return outcome(finished)


def test_a_run_ends_with_its_summary(whole, uninterrupted):
    done = read_json(whole / "done.json")
    assert done["metrics_sha256"] == sha256_of(whole / "metrics.jsonl")
    assert (done["size"], done["attention"], done["pretrain_seed"], done["steps"]) == ("tiny", "pairwise", 1, 30)
    lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    validation = {line["step"]: line["loss"] for line in lines if line["split"] == "validation"}
    assert list(validation) == [10, 20, 30] and validation[30] == done["validation_loss"]
    assert all(3.5 < loss < 4.6 for loss in validation.values())  # ln 60 = 4.09 knows nothing
    assert [line["step"] for line in lines if line["split"] == "train"] == [10, 20, 30]
    assert lines[1].keys() == {"split", "step", "loss", "learning_rate", "gradient_norm"}
    assert len(uninterrupted) == 5


def test_a_longer_run_learns(tmp_path, manifest, brief):
    settings = brief(steps=400, learning_rate=3e-3, dropout=0.0, evaluate_every=100, save_every=400)
    assert main(options(manifest, settings, tmp_path / "run")) == 0
    assert read_json(tmp_path / "run/done.json")["validation_loss"] < 3.0


def test_a_run_says_how_its_attention_started_and_how_fast_it_was(whole, uninterrupted):
    first = json.loads((whole / "metrics.jsonl").read_text().splitlines()[0])
    assert (first["split"], first["step"]) == ("initial", 0)
    assert len(first["logit_std"]) == len(first["attention_entropy"]) == 2  # layers
    assert all(0 < entropy <= np.log(16) for entropy in first["attention_entropy"])
    timing = read_json(whole / "timing.json")
    assert timing["step_seconds"] > 0 and timing["tokens_per_second"] > 0 and timing["mfu"] is None
    assert timing["steps_timed"] == 29 and timing["processes"] == timing["threads"] == timing["sessions"] == 1
    assert read_json(whole / "state/status.json")["state"] == "done"


def test_a_killed_run_continues_to_the_same_bits(tmp_path, manifest, brief, uninterrupted):
    arguments = command(manifest, brief(), tmp_path / "killed")
    process = start(arguments)
    wait_for(tmp_path / "killed/state/weights/step-00000010.json", process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "done.json").exists()
    assert main(options(manifest, brief(), tmp_path / "killed")) == 0
    assert outcome(tmp_path / "killed") == uninterrupted


@pytest.mark.campaign
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


@pytest.mark.campaign
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


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"precision": "bf16"}, "precision: fp32 → bf16"),
        ({"rows": 60}, r"corpus_hash: \w{16} → \w{16}"),
    ],
)
@pytest.mark.parametrize("state", ["finished", "unpublished"])
def test_a_run_that_began_on_another_device_or_corpus_is_refused_in_one_line(
    tmp_path, request, manifest, brief, here, monkeypatch, state, change, said
):
    run = shutil.copytree(request.getfixturevalue(state), tmp_path / "run")
    before = contents(run)
    if "rows" in change:
        manifest = write_corpus(tmp_path / "other", **change)
    else:
        monkeypatch.setattr("symbert.pretrain.compute.resolve_precision", lambda chosen, device: change["precision"])
    code, error = here(options(manifest, brief(), run))
    assert code == 64
    assert re.search(rf"state/identity.json: the run began otherwise \({said}\); move .*/state away to train", error)
    assert len([line for line in error.splitlines() if "began otherwise" in line]) == 1
    assert contents(run) == before


def test_a_run_is_not_trained_with_other_code_or_another_shape_than_planned(
    tmp_path, manifest, brief, here, monkeypatch
):
    """The key of its folder would not be theirs."""
    words = options(manifest, brief(), tmp_path / "run")
    planned = read_json(tmp_path / "run/run.json")
    for key, value, said in (
        ("operator_code", "0123456789abcdef", "the code of 'pairwise' is"),
        ("intermediate_size", 128, "intermediate_size: 128 → 256 since it was planned"),
    ):
        changed = {**planned["model"], key: value}
        write_json(tmp_path / "run/run.json", {**planned, "model": changed})
        code, error = here(words)
        assert code == 64 and f"run.json: {said}" in error and "run snakemake again" in error
    assert not (tmp_path / "run/state").exists()


def test_an_operator_and_a_size_of_the_users_own_are_those_of_run_json(
    tmp_path, manifest, brief, here, nothing_of_ones_own
):
    """A job knows no configuration."""
    known = dict(OPERATORS), dict(SIZES)
    define("wide", {"class": "original", "start": "wide"})
    define_size("flat", {**vars(SIZES["tiny"]), "num_hidden_layers": 1})
    words = options(manifest, brief(steps=10), tmp_path / "run", "wide", size="flat")
    planned = read_json(tmp_path / "run/run.json")["model"]
    for registry, before in zip((OPERATORS, SIZES), known, strict=True):
        registry.clear()
        registry.update(before)
    assert here(words)[0] == 0
    done = read_json(tmp_path / "run/done.json")["settings"]
    assert (
        planned["operator"]
        == done["operator"]
        == {"class": "symbert.model.attention:OriginalAttention", "start": "wide"}
    )
    assert done["num_hidden_layers"] == 1


def test_each_session_notes_the_commit_that_trains(whole, uninterrupted):
    (session,) = read_json(whole / "state/provenance.json")["sessions"]
    assert session["commit"] == read_json(whole / "timing.json")["commit"] == commit_of(PROJECT)


@pytest.mark.parametrize("seed", [0, 1])
def test_ten_preemptions_give_the_same_bits_and_little_is_left_behind(
    tmp_path, manifest, brief, monkeypatch, uninterrupted, seed
):
    """In one process, so that ten stops cost no ten imports; the signals are real."""
    run, words = tmp_path / "run", options(manifest, brief(), tmp_path / "run")
    stops = sorted(np.random.default_rng(seed).choice(np.arange(29), 10, replace=False).tolist())
    compute, computed = Trainer.step, []

    def interrupted(trainer, step, *flags):
        if stops and step == stops[0]:
            os.kill(os.getpid(), [signal.SIGTERM, signal.SIGUSR1][stops.pop(0) % 2])
        computed.append(step)
        return compute(trainer, step, *flags)

    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)}
    monkeypatch.setattr(Trainer, "step", interrupted)
    try:
        codes = [main(words) for _ in range(11)]
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    assert codes == [75] * 10 + [0]
    assert computed == list(range(30))  # not one step twice
    assert outcome(run) == uninterrupted
    assert not (run / "state/resume").exists()
    assert len(read_json(run / "state/provenance.json")["sessions"]) == 11


def test_a_run_in_use_is_not_entered(tmp_path, manifest, brief, here):
    process = start(command(manifest, brief(steps=100000, save_every=1000), tmp_path / "run"))
    wait_for(tmp_path / "run/state/status.json", process)
    code, error = here(options(manifest, brief(steps=100000, save_every=1000), tmp_path / "run"))
    assert code == 65 and f"process {process.pid}" in error and not (tmp_path / "run/done.json").exists()
    process.terminate()
    assert process.wait(120) == 75


def test_a_finished_run_tells_the_dropout_that_the_device_decided(tmp_path, manifest, brief, monkeypatch):
    """Its identity had it, and nothing that was published: models of two dropouts could not be told apart."""
    monkeypatch.setitem(RECIPES, "fast", Recipe(compiled=False, cudnn_attention=True))
    monkeypatch.setattr("symbert.pretrain.compute.takes_cudnn", lambda recipe, device: recipe.cudnn_attention)
    for recipe, told in (("fast", 0.125), ("faithful", None)):
        assert main(options(manifest, brief(recipe=recipe, steps=10), tmp_path / recipe)) == 0
        assert read_json(tmp_path / recipe / "done.json")["settings"].get("attention_dropout") == told


def test_a_damaged_shard_stops_the_run_before_it_trains(tmp_path, manifest, brief, capsys):
    shard = manifest.parent / "train-00000.npy"
    content = bytearray(shard.read_bytes())
    content[-1] ^= 1
    shard.write_bytes(content)
    assert main(options(manifest, brief(), tmp_path / "run")) == 65
    assert "train-00000.npy" in capsys.readouterr().err


def test_an_edited_manifest_with_the_old_hash_does_not_train_on(tmp_path, manifest, brief, unpublished, capsys):
    """Neither a run that begins nor one that goes on: half of the training rows were left out without a word."""
    shutil.copytree(unpublished, tmp_path / "old")
    told = read_json(manifest)
    write_json(manifest, {**told, "shards": told["shards"][1:]})
    for run in ("new", "old"):
        assert main(options(manifest, brief(), tmp_path / run)) == 65
        said = capsys.readouterr().err
        assert re.search(r"manifest\.json: hash expected \w+, found \w+: edited, or of .*; run snakemake -R pack", said)
    assert not (tmp_path / "new/state/weights").exists()


def test_a_session_on_other_threads_warns_and_goes_on(tmp_path, manifest, brief, unpublished, uninterrupted, capsys):
    run = shutil.copytree(unpublished, tmp_path / "run")
    assert main(options(manifest, brief(), run, threads=2)) == 0
    assert "threads: 1 → 2" in capsys.readouterr().err
    assert outcome(run) == uninterrupted
    assert len(read_json(run / "state/provenance.json")["sessions"]) == 2


def test_a_run_whose_layers_keep_nothing_for_their_gradients_has_the_same_bits(
    tmp_path, manifest, brief, uninterrupted, monkeypatch
):
    checkpoint, counted = bert.checkpoint, []

    def counting(layer, *inputs, **how):
        counted.append(layer)
        return checkpoint(layer, *inputs, **how)

    monkeypatch.setattr(bert, "checkpoint", counting)
    assert main([*options(manifest, brief(), tmp_path / "run"), "--recompute-activations"]) == 0
    assert outcome(tmp_path / "run") == uninterrupted and len(counted) >= 30 * 2


def test_a_diverging_run_ends_and_keeps_its_last_checkpoint(tmp_path, manifest, brief, here):
    run = tmp_path / "diverged"
    code, error = here(options(manifest, brief(learning_rate=1e30, warmup_steps=12), run))
    assert code == 65 and "pretrain.learning_rate" in error
    assert read_json(run / "state/status.json")["exit_code"] == 65
    assert not (run / "done.json").exists()


@pytest.mark.parametrize("host", ["encoder", "decoder"])
def test_a_validation_that_is_not_finite_ends_a_run_as_divergence(tmp_path, manifest, brief, here, host):
    """It was believed that a training loss shows each divergence: the last step's weights are read by none."""
    settings = brief(learning_rate=1e30, warmup_steps=0, steps=1, evaluate_every=1, save_every=1)
    code, error = here(options(manifest, settings, tmp_path / "run", host=host))
    assert code == 65 and "validation loss nan" in error and "pretrain.learning_rate" in error
    status = read_json(tmp_path / "run/state/status.json")
    assert (status["state"], status["step"], status["exit_code"]) == ("diverged", 1, 65)
    assert not (tmp_path / "run/done.json").exists()


def test_a_finite_validation_does_not_show_that_the_last_steps_weights_are_finite(
    tmp_path, manifest, brief, here, monkeypatch
):
    """Of a place that no validation row has it says nothing: fine-tuning, whose rows are longer, reads it."""
    update, settings = Updater.update, brief(steps=4, warmup_steps=1, evaluate_every=4, save_every=4)

    def update_and_lose_a_place(updater, learning_rate):
        update(updater, learning_rate)
        if learning_rate == last:
            with torch.no_grad():
                updater.model.bert.embeddings.position_embeddings.weight[100] = math.nan

    last = linear_rate(3, 1e-3, 1, 4)
    monkeypatch.setattr(Updater, "update", update_and_lose_a_place)
    code, error = here(options(manifest, settings, tmp_path / "run"))
    assert code == 65 and "position_embeddings.weight is not finite" in error and "pretrain.learning_rate" in error
    assert read_json(tmp_path / "run/state/status.json")["state"] == "diverged"
    assert not (tmp_path / "run/done.json").exists() and not list((tmp_path / "run/state").glob("*/step-*"))


PUBLISHED = ("done.json", "metrics.jsonl", "timing.json")


@pytest.fixture
def forced(finished, tmp_path):
    """A copy of a finished run without its outputs: Snakemake deletes those of a forced job."""
    run = shutil.copytree(finished, tmp_path / "run")
    for name in PUBLISHED:
        (run / name).unlink()
    return run


def test_a_forced_pretraining_trains_again_to_the_same_bytes(forced, manifest, brief, uninterrupted, monkeypatch):
    steps, step = [], Trainer.step
    monkeypatch.setattr(Trainer, "step", lambda *given: steps.append(given[1]) or step(*given))
    assert main(options(manifest, brief(), forced)) == 0
    assert steps == list(range(30)) and outcome(forced) == uninterrupted
    (session,) = read_json(forced / "state/provenance.json")["sessions"]  # of this training
    assert session["step"] == 30


def test_a_forced_pretraining_computes_with_the_code_of_today(forced, manifest, brief, uninterrupted, monkeypatch):
    """It published the losses and weights of earlier code again."""
    monkeypatch.setattr("symbert.pretrain.compute.linear_rate", lambda step, peak, warmup_steps, end: peak / 2)
    assert main(options(manifest, brief(), forced)) == 0
    assert not set(outcome(forced).values()) & set(uninterrupted.values())


def test_a_forced_pretraining_that_is_killed_resumes(forced, manifest, brief, uninterrupted, monkeypatch):
    """The weights that the finished training kept are no sign of lost checkpoints."""
    save, words = CheckpointStore.save, options(manifest, brief(), forced)
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", lambda store, *_: store.resume.mkdir() or killed())
        assert main(words) == 75
    assert main(words) == 0 and outcome(forced) == uninterrupted and CheckpointStore.save is save


@pytest.mark.parametrize("last", ["run.Records.publish", "checkpoint.CheckpointStore.remove_resumable"])
def test_a_run_that_is_killed_before_its_checkpoints_are_removed_is_published_again(
    tmp_path, manifest, brief, uninterrupted, monkeypatch, last
):
    """Snakemake deletes what it published, because the job did not end."""
    run, words = tmp_path / "run", options(manifest, brief(), tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(f"symbert.pretrain.{last}", killed)
        assert main(words) == 75
    assert (run / "done.json").exists() == (last != "run.Records.publish")
    for name in PUBLISHED:
        (run / name).unlink(missing_ok=True)
    monkeypatch.setattr(Trainer, "step", killed)  # nothing is computed
    assert main(words) == 0
    assert outcome(run) == uninterrupted and not (run / "state/resume").exists()


def test_the_operators_see_the_same_batches_and_start_from_the_same_embeddings(tmp_path, manifest, brief, here):
    first = {}
    for attention in ("original", "symmetric"):
        words = options(manifest, brief(steps=10, learning_rate=1e-12), tmp_path / attention, attention)
        assert here(words)[0] == 0
        with safe_open(tmp_path / attention / "state/weights/step-00000010.safetensors", "pt") as file:
            first[attention] = file.get_tensor("bert.embeddings.word_embeddings.weight")
    assert (first["original"] - first["symmetric"]).abs().max() < 1e-9


def test_a_run_killed_right_after_a_checkpoint_has_kept_the_weights_of_that_step(
    tmp_path, manifest, brief, monkeypatch, uninterrupted
):
    """Weights used to be kept after the checkpoint, so that a kill between the two lost them for good."""
    run = tmp_path / "run"
    save = CheckpointStore.save

    def save_and_end(store, model, optimizer, position):
        save(store, model, optimizer, position)
        raise KeyboardInterrupt

    words = options(manifest, brief(), run)
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", save_and_end)
        assert main(words) == 75
    assert main(words) == 0
    assert outcome(run) == uninterrupted


@pytest.mark.parametrize(
    "environment", [{"CXX": "/nonexistent"}, pytest.param({"PATH": "/nonexistent"}, marks=pytest.mark.campaign)]
)
def test_a_machine_without_a_compiler_is_no_bug_of_the_fast_recipe(tmp_path, manifest, brief, environment):
    """In a process of its own, because torch remembers what it compiled and with what."""
    words = command(manifest, brief(recipe="fast", steps=1, save_every=1), tmp_path / "run")
    told = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run(words, capture_output=True, text=True, env=told)
    assert done.returncode == 64, done.stderr
    said = done.stderr.splitlines()[-1]
    assert "config: 'recipe' is fast, which compiles the model, but no compiler works on this machine (" in said
    assert said.endswith("); install a C and C++ compiler (g++), or set 'recipe: faithful'")
    status = json.loads((tmp_path / "run/state/status.json").read_text())
    assert (status["state"], status["exit_code"]) == ("failed", 64)


OWN = """
import torch

def momentum(groups, adam_beta1):
    return torch.optim.SGD(groups, lr=0.0, momentum=adam_beta1)
"""


def test_an_optimizer_of_the_users_own_goes_on_with_the_same_bits_and_its_code_is_part_of_the_run(
    tmp_path, manifest, brief, monkeypatch, here
):
    (tmp_path / "my_optimizers.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    settings = brief(steps=20, optimizer="my_optimizers:momentum")
    assert here(options(manifest, settings, tmp_path / "whole"))[0] == 0
    save = CheckpointStore.save

    def save_and_end(store, model, optimizer, position):
        save(store, model, optimizer, position)
        raise KeyboardInterrupt

    words = options(manifest, settings, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", save_and_end)
        assert main(words) == 75
    with safe_open(tmp_path / "run/state/resume/step-00000010/optimizer.safetensors", "pt") as file:
        assert {name.rpartition("/")[2] for name in file.keys()} == {"momentum_buffer"}  # noqa: SIM118
    assert here(words)[0] == 0
    assert outcome(tmp_path / "run") == outcome(tmp_path / "whole")
    trained = read_json(tmp_path / "run/done.json")["settings"]
    assert trained["optimizer"] == "my_optimizers:momentum" and len(trained["optimizer_code"]) == 16
    monkeypatch.setattr("symbert.configuration.code_of", lambda *path: "0123456789abcdef")
    code, error = here(words)
    assert code == 64 and f"optimizer_code: {trained['optimizer_code']} → 0123456789abcdef" in error
