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
from msgspec.structs import replace
from safetensors.torch import load_file

from damage import assert_named
from pretrain.corpora import command, killed, losses, options, own, start, unpublish, wait_for, write_corpus
from symbert.cli import main
from symbert.files import read_json, sha256_of, write_json
from symbert.model.bert import MaskedModel
from symbert.model.configuration import configuration_of
from symbert.operators import OPERATORS, operator_of
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.compute import Updater
from symbert.pretrain.run import Pretraining
from symbert.pretrain.train import Trainer
from symbert.provenance import PROJECT, commit_of
from symbert.report.collect import counted
from symbert.report.names import Known
from symbert.sizes import SIZES
from symbert.steps import version_of


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


def test_a_run_ends_with_its_summary_its_losses_and_its_speed(whole, uninterrupted):
    done, timing = read_json(whole / "done.json"), read_json(whole / "timing.json")
    assert done["metrics_sha256"] == sha256_of(whole / "metrics.jsonl")
    assert (done["size"], done["attention"], done["pretrain_seed"], done["steps"]) == ("tiny", "pairwise", 1, 30)
    first, *lines = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert (first["split"], first["step"]) == ("initial", 0) and len(first["logit_std"]) == len(
        first["logit_step"]
    ) == 2
    assert all(0 < entropy <= np.log(16) for entropy in first["attention_entropy"])
    validation = {line["step"]: line["loss"] for line in lines if line["split"] == "validation"}
    assert list(validation) == [10, 20, 30] and validation[30] == done["validation_loss"]
    assert all(3.5 < loss < 4.6 for loss in validation.values())  # ln 60 = 4.09 knows nothing
    assert lines[0].keys() == {"split", "step", "loss", "learning_rate", "gradient_norm"}
    assert [line["step"] for line in lines if line["split"] == "train"] == [10, 20, 30]
    assert timing["step_seconds"] > 0 and timing["tokens_per_second"] > 0 and timing["mfu"] is None
    assert timing["steps_timed"] == 29 and timing["processes"] == timing["threads"] == timing["sessions"] == 1
    (session,) = read_json(whole / "state/provenance.json")["sessions"]
    assert session["commit"] == timing["commit"] == commit_of(PROJECT)


NUMBERS = {  # validation losses of 30 steps, where code that every operator shares computes as it does in this version
    ("pairwise", "encoder", 1): [4.174706459, 4.172177315, 4.183212598],
    ("shared", "decoder", 2): [3.574057007, 3.036399078, 2.843892670],
    ("wide", "encoder", 1): [4.232490857, 4.206491788, 4.210952123],
}
VERSION = 1  # of these numbers


def test_a_run_has_the_numbers_of_its_version(finished, tmp_path, manifest, brief, here):
    """Another loss, mask, start or schedule retrained nothing, and results of both were mixed without a word."""
    assert version_of(Pretraining) == VERSION, "write the numbers of the new version here"
    for (name, architecture, seed), expected in NUMBERS.items():
        operator = own("wide", **{"class": "original", "init_scale": "wide"}) if name == "wide" else name
        run = finished if name == "pairwise" else tmp_path / name
        if run != finished:
            assert here(options(manifest, brief(), run, operator, architecture=architecture, seed=seed))[0] == 0
        assert losses(run)["validation"] == pytest.approx(expected, rel=1e-4), (
            "raise Pretraining's version (symbert/pretrain/run.py), and say why under 'Breaks results'"
        )


def test_a_killed_run_continues_to_the_same_bits(tmp_path, manifest, brief, uninterrupted):
    arguments = command(manifest, brief(), tmp_path / "killed")
    process = start(arguments)
    wait_for(tmp_path / "killed/state/weights/step-00000010.json", process)
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "done.json").exists()
    assert main(options(manifest, brief(), tmp_path / "killed")) == 0
    assert outcome(tmp_path / "killed") == uninterrupted


@pytest.mark.parametrize("state", ["finished", "unpublished"])
def test_a_run_that_began_on_another_device_or_corpus_is_refused_in_one_line(
    tmp_path, request, manifest, brief, here, monkeypatch, state
):
    run = shutil.copytree(request.getfixturevalue(state), tmp_path / "run")
    other, before = write_corpus(tmp_path / "other", rows=60), contents(run)
    for rows, precision, said in (
        (other, "fp32", r"corpus_hash: \w{16} → \w{16}"),
        (manifest, "bf16", "precision: fp32 → bf16"),
    ):
        monkeypatch.setattr("symbert.pretrain.compute.resolve_precision", lambda *_, chosen=precision: chosen)
        code, error = here(options(rows, brief(), run))
        assert code == 64 and error.count("began otherwise") == 1
        assert re.search(rf"state/identity.json: the run began otherwise \({said}\); move .*/state away", error)
        assert contents(run) == before


def test_a_run_is_not_trained_with_other_code_than_planned(tmp_path, manifest, brief, here):
    """The key of its folder would not be theirs."""
    words = options(manifest, brief(), tmp_path / "run")
    run = read_json(tmp_path / "run/run.json")
    for changes, said in (
        (
            {"operator": {**run["operator"], "versions": {"PairwiseAttention": 2}}},
            "the code of 'pairwise' is of version 1",
        ),
        ({"version": 2}, "has version 2, this project has 1; run snakemake again"),
        ({"shape": {**run["shape"], "layers": 2}}, "unknown key 'layers'"),
    ):
        write_json(tmp_path / "run/run.json", {**run, **changes})
        code, error = here(words)
        assert code == 64 and f"run.json: {said}" in error
    keyed = tmp_path / f"tiny-pairwise-{'0' * 8}/seed-1"
    assert here(options(manifest, brief(), keyed))[0] == 64, "its folder has the key of another run"
    assert not any(folder.exists() for folder in (tmp_path / "run/state", keyed / "state"))


def test_an_operator_and_a_size_of_the_users_own_are_those_of_run_json(tmp_path, manifest, brief, here):
    """A job knows no configuration."""
    wide, flat = own("wide", **{"class": "original", "init_scale": "wide"}), replace(SIZES["tiny"], num_hidden_layers=1)
    words = options(manifest, brief(steps=10), tmp_path / "run", wide, size="flat", shape=flat)
    assert here(words)[0] == 0
    config = read_json(tmp_path / "run/state/config.json")
    assert operator_of(config) == wide and config["num_hidden_layers"] == 1
    assert read_json(tmp_path / "run/done.json")["settings"]["num_hidden_layers"] == 1


def test_no_operator_is_trained_whose_state_no_checkpoint_restores(tmp_path, manifest, brief, here):
    """A resumed training went on with other random features."""
    late = own("late", **{"class": "model.wrong_operators:LateFeatures"})
    code, error = here(options(manifest, brief(steps=10), tmp_path / "run", late))
    assert code == 65 and "attention 'late': state: its model computes otherwise once a checkpoint" in error
    ahead = own("ahead", **{"class": "model.wrong_operators:Ahead"})
    code, error = here(options(manifest, brief(steps=10), tmp_path / "ahead", ahead))
    assert code == 65 and "attention 'ahead': causal: in a decoder a token depends on later ones" in error


def test_weights_that_share_memory_or_are_no_blocks_of_it_are_saved_and_restored(
    tmp_path, manifest, brief, here, monkeypatch
):
    """Tensors that share memory, or are no blocks of it, ended with 70 at the first save."""
    tied = own("tied", **{"class": "model.wrong_operators:Tied"})
    words = options(manifest, brief(steps=10, save_every=5, dropout=0.0), tmp_path / "run", tied)
    with monkeypatch.context() as patch:
        patch.setattr("symbert.pretrain.run.Records.publish", killed)
        assert here(words)[0] == 75
    code, error = here(words)  # loads the last checkpoint
    assert code == 0 and "warning" not in error
    saved = load_file(tmp_path / "run/state/weights/step-00000010.safetensors")
    place = "bert.encoder.layer.0.attention.self."
    assert torch.equal(saved[f"{place}key.weight"], saved[f"{place}query.weight"])
    assert saved[f"{place}mix"].count_nonzero() == 12 and saved[f"{place}key.bias"].shape == (64,)
    counted = read_json(tmp_path / "run/done.json")["attention_parameters"]
    assert counted == {"layer": 2 * 64 * 64 + 3 * 64 + 12, "layers": 2 * (2 * 64 * 64 + 3 * 64 + 12)}


def test_an_operator_is_checked_in_the_size_that_it_trains_in(tmp_path, manifest, brief, here):
    """And its parameters are those that its run counted: the report made it in sizes that it cannot have."""
    shape = replace(SIZES["tiny"], hidden_size=48)
    sized = own("sized", **{"class": "model.wrong_operators:OfThisSize"})
    code, error = here(options(manifest, brief(steps=10), tmp_path / "run", sized, size="fortyeight", shape=shape))
    assert code == 0, error
    counts = counted(
        ["fortyeight"],
        ["original", "sized"],
        Known({**SIZES, "fortyeight": shape}, {**OPERATORS, "sized": sized}),
        [tmp_path / "run"],
    )
    whole = MaskedModel(configuration_of(shape, sized))
    assert counts["fortyeight"]["parameters"]["sized"] == sum(each.numel() for each in whole.parameters())
    assert counts["fortyeight"]["attention_parameters"]["sized"] == 2 * (48 * 48 + 48) + 48
    assert "sized" not in counts["base"]["parameters"] and "original" in counts["base"]["parameters"]


def test_ten_preemptions_give_the_same_bits_and_little_is_left_behind(
    tmp_path, manifest, brief, monkeypatch, uninterrupted, signals_kept
):
    """In one process, so that ten stops cost no ten imports; the signals are real."""
    run, words = tmp_path / "run", options(manifest, brief(), tmp_path / "run")
    stops = sorted(np.random.default_rng(0).choice(np.arange(29), 10, replace=False).tolist())
    compute, computed = Trainer.start, []

    def interrupted(trainer, step, *flags):
        if stops and step == stops[0]:
            os.kill(os.getpid(), [signal.SIGTERM, signal.SIGUSR1][stops.pop(0) % 2])
        computed.append(step)
        return compute(trainer, step, *flags)

    monkeypatch.setattr(Trainer, "start", interrupted)
    assert [main(words) for _ in range(11)] == [75] * 10 + [0]
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


def test_neither_a_damaged_shard_nor_an_edited_manifest_trains_on(tmp_path, manifest, brief, unpublished, here):
    """Neither a run that begins nor one that goes on: half of the training rows were left out without a word."""
    shutil.copytree(unpublished, tmp_path / "old")
    told, shard = read_json(manifest), manifest.parent / "train-00000.npy"
    intact = shard.read_bytes()
    for spoil, said in (
        (lambda: shard.write_bytes(intact[:-1] + bytes([intact[-1] ^ 1])), r"train-00000\.npy: sha256 expected"),
        (lambda: write_json(manifest, {**told, "shards": told["shards"][1:]}), r"manifest\.json: hash expected"),
    ):
        spoil()
        for run in ("new", "old"):
            code, error = here(options(manifest, brief(), tmp_path / run))
            assert code == 65 and re.search(said, error)
        shard.write_bytes(intact)
    assert not (tmp_path / "new/state/weights").exists()


def test_other_threads_change_no_bit(tmp_path, manifest, brief, unpublished, uninterrupted, here):
    run = shutil.copytree(unpublished, tmp_path / "run")
    code, error = here(options(manifest, brief(), run, threads=2))
    assert code == 0 and "threads: 1 → 2" in error and outcome(run) == uninterrupted


def test_a_diverging_run_ends_and_keeps_its_last_checkpoint(tmp_path, manifest, brief, here, monkeypatch):
    """In step 12, and in a weight that no validation row reads: fine-tuning, whose rows are longer, does."""
    update, steps = Updater.update, []

    def update_badly(updater, learning_rate):
        steps.append(learning_rate)
        update(updater, 1e30 if len(steps) == 12 else learning_rate)

    def update_and_lose_a_place(updater, learning_rate):
        update(updater, learning_rate)
        with torch.no_grad():
            updater.model.bert.embeddings.position_embeddings.weight[100] = math.nan

    for name, updating, kept in (("loss", update_badly, [10]), ("is not finite", update_and_lose_a_place, [])):
        run = tmp_path / name
        monkeypatch.setattr(Updater, "update", updating)
        code, error = here(options(manifest, brief(), run))
        assert code == 65 and name in error and "pretrain.learning_rate" in error
        status = read_json(run / "state/status.json")
        assert (status["state"], status["exit_code"]) == ("diverged", 65) and not (run / "done.json").exists()
        found = sorted(path.stem for path in (run / "state/resume").glob("step-*.json"))
        assert found == [f"step-{step:08d}" for step in kept]


@pytest.mark.parametrize("architecture", ["encoder", "decoder"])
def test_a_validation_that_is_not_finite_ends_a_run_as_divergence(tmp_path, manifest, brief, here, architecture):
    """It was believed that a training loss shows each divergence: the last step's weights are read by none."""
    settings = brief(learning_rate=1e30, warmup_steps=0, steps=1, evaluate_every=1, save_every=1)
    code, error = here(options(manifest, settings, tmp_path / "run", architecture=architecture))
    assert code == 65 and "validation loss nan" in error and "pretrain.learning_rate" in error
    assert not (tmp_path / "run/done.json").exists()


@pytest.fixture
def forced(finished, tmp_path):
    """A copy of a finished run without its outputs: Snakemake deletes those of a forced job."""
    run = shutil.copytree(finished, tmp_path / "run")
    unpublish(run)
    return run


def test_a_forced_pretraining_computes_again_with_the_code_of_today(
    forced, manifest, brief, uninterrupted, monkeypatch
):
    """It published the losses and weights of earlier code again."""
    steps, step = [], Trainer.start
    monkeypatch.setattr(Trainer, "start", lambda *given: steps.append(given[1]) or step(*given))
    assert main(options(manifest, brief(), forced)) == 0
    assert steps == list(range(30)) and outcome(forced) == uninterrupted
    (session,) = read_json(forced / "state/provenance.json")["sessions"]  # of this training
    assert session["step"] == 30
    unpublish(forced)
    monkeypatch.setattr("symbert.pretrain.compute.linear_rate", lambda step, peak, *schedule: peak / 2)
    assert main(options(manifest, brief(), forced)) == 0
    assert not set(outcome(forced).values()) & set(uninterrupted.values())


def test_a_forced_pretraining_that_is_killed_resumes(forced, manifest, brief, uninterrupted, monkeypatch):
    """The weights that the finished training kept are no sign of lost checkpoints."""
    words = options(manifest, brief(), forced)
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", lambda store, *_: store.resume.mkdir() or killed())
        assert main(words) == 75
    assert main(words) == 0 and outcome(forced) == uninterrupted


def test_a_run_that_is_killed_before_its_checkpoints_are_removed_is_published_again(
    tmp_path, manifest, brief, uninterrupted, monkeypatch
):
    """Snakemake deletes what it published, because the job did not end."""
    run, words = tmp_path / "run", options(manifest, brief(), tmp_path / "run")
    for last in ("run.Records.publish", "checkpoint.CheckpointStore.remove_resumable"):
        with monkeypatch.context() as patch:
            patch.setattr(f"symbert.pretrain.{last}", killed)
            assert main(words) == 75
        assert (run / "done.json").exists() == (last != "run.Records.publish")
        monkeypatch.setattr(Trainer, "start", killed)  # nothing is computed from here on
    unpublish(run)
    assert main(words) == 0
    assert outcome(run) == uninterrupted and not (run / "state/resume").exists()


@pytest.mark.campaign
@pytest.mark.parametrize("environment", [{"CXX": "/nonexistent"}, {"PATH": "/nonexistent"}])
def test_a_machine_without_a_compiler_is_no_bug_of_compile(tmp_path, manifest, brief, environment):
    """In a process of its own, because torch remembers what it compiled and with what."""
    words = command(manifest, brief(compile=True, steps=1, save_every=1), tmp_path / "run")
    told = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache"), **environment}
    done = subprocess.run(words, capture_output=True, text=True, env=told)
    assert done.returncode == 64, done.stderr
    assert re.search("'compile' is true, .* no compiler works .*; install .*", done.stderr.splitlines()[-1])


@pytest.fixture
def resumable(unpublished, tmp_path):
    """A copy of a run that has published nothing, so that it goes on from its last checkpoint."""
    return shutil.copytree(unpublished, tmp_path / "run")


@pytest.fixture
def words(resumable, manifest, brief):
    return options(manifest, brief(), resumable)


def test_what_a_run_is_told_and_what_it_records_are_named_when_they_are_something_else(
    resumable, words, manifest, capsys
):
    records = (resumable / "state" / name for name in ("identity.json", "provenance.json"))
    for file in (manifest, resumable / "run.json", *records):
        assert_named(words, file, capsys)


def test_a_log_that_is_damaged_at_its_beginning_stops_the_run_and_is_named(resumable, words, capsys):
    log = resumable / "state/metrics.jsonl"
    log.write_bytes(b"#" + log.read_bytes()[1:])
    assert main(words) == 65
    said = capsys.readouterr().err.splitlines()[-1]
    assert "no intact checkpoint" in said and f"{log}: its first" in said and f"delete {resumable / 'state'}" in said


def test_what_an_extraction_reads_is_named_when_it_is_something_else(resumable, words, manifest, capsys):
    assert main(words) == 0
    words, state = ["extract", str(resumable), "20"], resumable / "state"
    read = (resumable / "run.json", resumable / "done.json", manifest.parent / "settings.json")
    for file in (*read, state / "config.json", state / "weights/step-00000020.json"):
        assert_named(words, file, capsys)
    assert main(words) == 0
