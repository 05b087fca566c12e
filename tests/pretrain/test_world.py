"""Two processes started by torchrun, and the arithmetic of sharing."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from pretrain.corpora import options, wait_for
from symbert.errors import InputOutputError
from symbert.files import read_json, sha256_of
from symbert.pretrain.world import World, peers_explained


@given(st.integers(0, 1000), st.integers(1, 17))
def test_shares_are_everything_once_and_differ_by_one_at_most(count, size):
    shares = [World(rank, size, torch.device("cpu")).share(count) for rank in range(size)]
    assert shares[0][0] == 0 and shares[-1][1] == count
    assert all(before[1] == after[0] for before, after in pairwise(shares))
    lengths = [last - first for first, last in shares]
    assert max(lengths) - min(lengths) <= 1


def torchrun(arguments: list[str], processes: int = 2) -> subprocess.Popen:
    """The command in several processes, as docs/pretraining.md starts it."""
    launch = ["torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "--shutdown-timeout", "60"]
    signals = ["--signals-to-handle", "SIGTERM,SIGINT,SIGUSR1"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src"), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", *launch, *signals, "-m", "symbert", *arguments]
    return subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=heed_hangup)


def heed_hangup() -> None:
    """Undo what a `nohup` around the tests would pass on: processes that outlive their launcher on purpose."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def started(arguments: list[str], run: Path, processes: int = 2) -> subprocess.Popen:
    """Several processes, once they have kept the weights of step 10."""
    process = torchrun(arguments, processes)
    wait_for(run / "state/weights/step-00000010.json", process)
    return process


JOIN = """
import os, signal, sys
from datetime import timedelta
import torch
from symbert.errors import explain
from symbert.pretrain import world
world.pick_device = lambda *given: torch.device(sys.argv[1])
end = lambda *given, **options: os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] and os.environ["RANK"] != "1":
    world.PATIENCE = timedelta(seconds=6)
elif sys.argv[2] == "devices":
    world._refuse_other_devices = end
elif sys.argv[2] == "group":
    world.dist.init_process_group = end
try:
    with world.join_world() as joined:
        print(joined.total(1.0))
except Exception as error:
    print(*explain(error))
"""


def joined(*devices: str, killed_before: str = "") -> list[str]:
    """What processes say that pick these devices and then join, as those of a torchrun, which holds their store.

    The one of number 1 may be killed before they tell each other their devices, or form their group.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(store.port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    counts = dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(len(devices)))
    started = []
    for rank, device in enumerate(devices):
        own = {**place, **counts, "TORCHELASTIC_RUN_ID": "x", "RANK": str(rank), "LOCAL_RANK": str(rank)}
        words = [sys.executable, "-c", JOIN, device, killed_before]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, **own}))
    try:
        return [process.communicate(timeout=120)[0].strip() for process in started]
    finally:
        for process in started:
            process.kill()


@pytest.mark.campaign
@pytest.mark.parametrize("step", ["devices", "group"])
def test_the_survivors_of_a_process_killed_while_they_join_end_with_65_too(step):
    """Only where gradients and sums are exchanged was it told; before that it was a bug (70)."""
    told = joined("cpu", "cpu", "cpu", killed_before=step)
    assert told[1] == ""
    for rank in (0, 2):
        assert told[rank].startswith(f"65 process {rank}: another process of this run ended (wait timeout after 6000ms")


def test_processes_that_picked_different_devices_do_not_wait_for_each_other():
    told = joined("cpu", "cuda")
    assert told[0] == told[1]
    assert "compute on different devices (0 on cpu, 1 on cuda); give each a GPU" in told[0]


def losses(run: Path) -> dict[str, list[float]]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return {split: [line["loss"] for line in lines if line["split"] == split] for split in ("train", "validation")}


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The folder of one uninterrupted run of two processes, made by the first test that needs it."""
    return tmp_path_factory.mktemp("together")


@pytest.fixture
def by_two(together, manifest, brief):
    if not (together / "done.json").exists():
        process = torchrun(options(manifest, brief(dropout=0.0), together))
        error = process.communicate(timeout=240)[1]
        assert process.returncode == 0, error
    return together


def test_two_processes_learn_what_one_does(tmp_path, manifest, brief, by_two):
    from symbert.cli import main

    assert main(options(manifest, brief(dropout=0.0), tmp_path / "one")) == 0
    one, two = losses(tmp_path / "one"), losses(by_two)
    assert two["train"] == pytest.approx(one["train"], rel=1e-4)
    assert two["validation"] == pytest.approx(one["validation"], rel=1e-4)
    assert read_json(by_two / "timing.json")["processes"] == 2


@pytest.mark.campaign
def test_both_stop_at_one_step_and_go_on_to_the_same_bits(tmp_path, manifest, brief, by_two):
    run = tmp_path / "stopped"
    arguments = options(manifest, brief(dropout=0.0), run)
    process = started(arguments, run)
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=120)
    assert process.returncode != 0
    status = read_json(run / "state/status.json")
    assert (status["state"], status["exit_code"]) == ("preempted", 75) and 10 <= status["step"] < 30
    process = torchrun(arguments)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 0, error
    for name in ("metrics.jsonl", "done.json", "state/weights/step-00000030.safetensors"):
        assert sha256_of(run / name) == sha256_of(by_two / name), name


@pytest.mark.campaign
def test_three_processes_go_on_to_the_same_bits_after_they_lost_their_launcher(tmp_path, manifest, brief):
    """Three, because gradients of two add up to the same bits in any order. A killed torchrun leaves them alone."""
    runs = {name: options(manifest, brief(dropout=0.0, steps=200, save_every=10), tmp_path / name) for name in "ab"}
    process = torchrun(runs["a"], 3)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 0, error
    process = started(runs["b"], tmp_path / "b", 3)
    process.kill()
    process.communicate(timeout=60)
    status = tmp_path / "b/state/status.json"
    while read_json(status)["state"] == "running":
        time.sleep(0.05)
    assert read_json(status)["exit_code"] == 75 and 10 <= read_json(status)["step"] < 200
    process = torchrun(runs["b"], 3)
    error = process.communicate(timeout=240)[1]
    assert process.returncode == 0, error
    for name in ("metrics.jsonl", "done.json", "state/weights/step-00000200.safetensors"):
        assert sha256_of(tmp_path / "a" / name) == sha256_of(tmp_path / "b" / name), name


def test_a_refused_run_of_two_processes_ends_and_says_why(tmp_path, manifest, brief, by_two):
    run = shutil.copytree(by_two, tmp_path / "run")
    process = torchrun(options(manifest, brief(dropout=0.0, learning_rate=0.5), run))
    error = process.communicate(timeout=120)[1]
    assert process.returncode != 0 and "learning_rate: 0.001 → 0.5" in error and "internal error" not in error
    assert read_json(run / "state/status.json")["exit_code"] == 64


@pytest.mark.campaign
@pytest.mark.parametrize("victim", [0, 1])
def test_the_survivors_of_a_killed_process_end_with_65_and_say_that_another_one_ended(
    tmp_path, manifest, brief, victim
):
    """What gradients are exchanged by is no collective of ours: its RuntimeError was a bug, to the one who read it."""
    run = tmp_path / "run"
    process = started(options(manifest, brief(dropout=0.0, steps=5000, save_every=10), run), run, 3)
    workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(sorted(map(int, workers))[victim], signal.SIGKILL)
    error = process.communicate(timeout=240)[1]
    said = [line for line in error.splitlines() if line.startswith("symbert pretrain: ")]
    assert process.returncode != 0 and len(said) == 2 and "internal error" not in error, error
    for line in said:
        assert re.search(r": process [012]: another process of this run ended \(.+\); see why, and run the same", line)
    status = read_json(run / "state/status.json")
    assert (status["state"], status["exit_code"]) == ("failed", 65)


@pytest.mark.parametrize(
    "said",
    [
        "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:24131",
        "NCCL error in: ProcessGroupNCCL.cpp:3690, remote process exited or there was a network error",
        "NCCL error in: ProcessGroupNCCL.cpp:77, unhandled system error\nLast error:\nrecv: Connection reset by peer",
        "[/pytorch/third_party/gloo/gloo/transport/tcp/buffer.cc:1] Timed out waiting 1800000ms for recv operation",
        "wait timeout after 6000ms, keys: /device of 1",
    ],
)
@pytest.mark.parametrize("kind", [RuntimeError, dist.DistBackendError])
def test_a_process_that_is_gone_is_known_by_what_torch_says_wherever_it_says_it(said, kind):
    with pytest.raises(InputOutputError, match="process 0: another process of this run ended"), peers_explained(0):
        raise kind(f"{said}\nmore lines")


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        (dist.DistBackendError, "NCCL error in: NCCLUtils.cpp:93, invalid usage\nLast error:\nDuplicate GPU detected"),
        (dist.DistBackendError, "NCCL error in: a.cpp:1, unhandled cuda error\nException raised from wait by peer"),
        (RuntimeError, "CUDA error: the launch timed out and was terminated"),
    ],
)
def test_a_fault_of_nccl_or_cuda_is_not_laid_on_another_process(kind, said):
    """Every message with "NCCL" in it was, and sent people to look for a process that had not ended."""
    with pytest.raises(kind, match=re.escape(said)), peers_explained(0):
        raise kind(said)
