"""Two processes started by torchrun, and the arithmetic of sharing."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pretrain.corpora import losses, options, planned, wait_for
from symbert.cli import main
from symbert.files import read_json, sha256_of
from symbert.pretrain.compute import World
from symbert.pretrain.tasks import IGNORED, MaskedTokens


@given(st.integers(0, 1000), st.integers(1, 17))
def test_shares_are_everything_once_and_differ_by_one_at_most(count, size):
    shares = [World(rank, size, torch.device("cpu")).share(count) for rank in range(size)]
    assert [row for share in shares for row in share] == list(range(count))
    lengths = list(map(len, shares))
    assert max(lengths) - min(lengths) <= 1


@given(st.integers(1, 60), st.integers(1, 7), st.integers(1, 20))
def test_every_process_has_as_many_batches_and_together_they_are_everything_once(count, size, batch_size):
    batches = [World(rank, size, torch.device("cpu")).batches(count, batch_size) for rank in range(size)]
    assert len(set(map(len, batches))) == 1 and max(len(batch) for rank in batches for batch in rank) <= batch_size
    assert [row for rank in batches for batch in rank for row in batch] == list(range(count))


def torchrun(arguments: list[str], processes: int = 2) -> subprocess.Popen:
    """The command in several processes, as docs/pretraining.md starts it."""
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "--shutdown-timeout", "60"]
    signals = ["--signals-to-handle", "SIGTERM,SIGINT,SIGUSR1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", *launch, *signals, "-m", "symbert", *arguments]
    heed = partial(signal.signal, signal.SIGHUP, signal.SIG_DFL)  # processes outlive their launcher under a `nohup`
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heed)


def finish(arguments: list[str], processes: int = 2) -> None:
    process = torchrun(arguments, processes)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 0, error


def test_two_processes_learn_what_one_does(tmp_path, manifest, brief):
    """Also in steps in which one of them, or both, have no hidden token."""
    settings = brief(dropout=0.0, batch_size=2, mask_probability=0.05)
    task = MaskedTokens(planned(manifest, settings))
    counts = [(task.training_batch(step)["targets"] != IGNORED).sum(1).tolist() for step in range(settings.steps)]
    assert [0, 0] in counts and any(0 in rows and sum(rows) for rows in counts)
    assert main(options(manifest, settings, tmp_path / "one")) == 0
    finish(options(manifest, settings, tmp_path / "two"))
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert two["train"] == pytest.approx(one["train"], rel=1e-4)
    assert two["validation"] == pytest.approx(one["validation"], rel=1e-4)
    assert read_json(tmp_path / "two/timing.json")["processes"] == 2


@pytest.mark.campaign
def test_three_processes_go_on_to_the_same_bits_after_they_lost_their_launcher(tmp_path, manifest, brief):
    """Three, because gradients of two add up to the same bits in any order. A killed torchrun leaves them alone."""
    runs = {name: options(manifest, brief(dropout=0.0, steps=200, save_every=10), tmp_path / name) for name in "ab"}
    finish(runs["a"], 3)
    process = torchrun(runs["b"], 3)
    wait_for(tmp_path / "b/state/weights/step-00000010.json", process)
    process.kill()
    process.communicate(timeout=60)
    status = tmp_path / "b/state/status.json"
    while read_json(status)["state"] == "running":
        time.sleep(0.05)
    assert read_json(status)["exit_code"] == 75 and 10 <= read_json(status)["step"] < 200
    finish(runs["b"], 3)
    for name in ("metrics.jsonl", "done.json", "state/weights/step-00000200.safetensors"):
        assert sha256_of(tmp_path / "a" / name) == sha256_of(tmp_path / "b" / name), name
