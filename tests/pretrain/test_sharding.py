"""Processes that have weights, gradients and the optimizer's state in parts, beside one that has them whole.

They are forks of the process that runs the tests, which has loaded torch (with fsdp), and meet over loopback.
"""

import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.distributed.fsdp
from safetensors.torch import load_file

from pretrain.corpora import losses, options, planned, unpublish
from symbert.cli import main
from symbert.errors import ConfigError, explain
from symbert.files import read_json, sha256_of
from symbert.pretrain import compute
from symbert.pretrain.checkpoint import CheckpointStore
from symbert.pretrain.compute import World, join_world
from symbert.pretrain.train import Trainer

FORK = multiprocessing.get_context("fork")
CPU = torch.device("cpu")
STEPS = 3
LENGTH = {"steps": 12, "save_every": 4, "evaluate_every": 6, "dropout": 0.0}  # of a run
PATIENCE = 120  # seconds


def in_processes(function: Callable, size: int) -> list:
    """What the function returns in each of `size` processes, which find each other as those of a torchrun do.

    None of one that was killed.
    """
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    ends = []
    for rank in range(size):
        mine, theirs = FORK.Pipe()
        process = FORK.Process(target=_process, args=(function, rank, size, store.port, theirs))
        process.start()
        theirs.close()
        ends.append((process, mine))
    try:
        returned = [_received(mine) for _, mine in ends]
    finally:
        for process, _ in ends:
            process.join(30)
            process.kill()
    return returned


def _received(end):
    assert end.poll(PATIENCE), "a process waits for another one"
    try:
        return end.recv()
    except EOFError:
        return None


def _process(function: Callable, rank: int, size: int, port: int, end) -> None:
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    os.environ |= {**place, "TORCHELASTIC_RUN_ID": "x", **{name: str(value) for name, value in places.items()}}
    torch.set_num_threads(1)
    # A fork ends without cleaning up: Gloo's threads need the interpreter's lock, for longer than SETTLING where others
    # keep the machine busy, and whoever deletes their group holds it.
    compute.SETTLING, dist.destroy_process_group = 0.0, lambda: None
    try:
        end.send(function())
    except Exception as error:
        end.send(explain(error))
    end.close()
    os._exit(0)


@pytest.mark.parametrize(("size", "architecture", "micro_batch_size"), [(4, "encoder", 1), (2, "decoder", None)])
def test_processes_with_parts_of_the_parameters_learn_what_one_does(
    manifest, brief, size, architecture, micro_batch_size
):
    """The gradient is clipped in each step."""
    settings = brief(dropout=0.0, warmup_steps=0, gradient_clip=0.5)

    def take_steps() -> dict[str, list[float]]:
        with join_world() as world:
            run = planned(manifest, settings, architecture=architecture)
            trainer = Trainer(run, world, micro_batch_size, shard_parameters=True)
            start = trainer.evaluate()
            steps = [trainer.step(step) for step in range(STEPS)]
            return {
                "losses": [start["loss"], *(step.loss for step in steps), trainer.evaluate()["loss"]],
                "norms": [step.gradient_norm for step in steps],
                "local": sum(p.to_local().numel() for p in trainer.model.parameters()) if world.size > 1 else 0,
                "whole": trainer.parameters,
            }

    one, several = take_steps(), in_processes(take_steps, size)
    assert min(one["norms"]) > 0.5 and len(set(one["losses"])) == STEPS + 2
    for each in several:
        assert each["losses"] == pytest.approx(one["losses"], rel=2e-5)
        assert each["norms"] == pytest.approx(one["norms"], rel=2e-4)
    assert sum(each["local"] for each in several) == one["whole"]
    assert max(each["local"] for each in several) < one["whole"] / size * 1.1


def train(arguments: list[str], size: int, shards: bool = True) -> list[int]:
    """Exit codes of the command in so many processes."""
    words = [*arguments, "--shard-parameters"] if shards else arguments
    return in_processes(lambda: main(words), size)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """The folder of one uninterrupted run of four processes, made by the first test that needs it."""
    return tmp_path_factory.mktemp("together")


@pytest.fixture(autouse=True)
def resumable(monkeypatch):
    """As a kill after publishing leaves it: the checkpoints to resume from of a finished run stay."""
    monkeypatch.setattr(CheckpointStore, "remove_resumable", lambda store: None)


@pytest.fixture
def by_four(together, manifest, brief):
    if not (together / "done.json").exists():
        assert train(options(manifest, brief(**LENGTH), together), 4) == [0] * 4
    return together


def test_the_files_of_four_processes_are_those_that_one_process_writes(tmp_path, manifest, brief, by_four):
    assert main(options(manifest, brief(**LENGTH), tmp_path)) == 0
    one, four = losses(tmp_path), losses(by_four)
    assert four["train"] == pytest.approx(one["train"], rel=1e-4)
    assert four["validation"] == pytest.approx(one["validation"], rel=1e-4)
    for name in ("weights/step-00000012.safetensors", "resume/step-00000012.safetensors"):
        ours, theirs = (load_file(run / "state" / name) for run in (by_four, tmp_path))
        assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}
    session = read_json(by_four / "timing.json")
    assert session["shard_parameters"] and session["processes"] == 4


def test_when_one_of_four_is_killed_the_others_end_with_65_and_all_go_on_to_the_same_bits(
    tmp_path, manifest, brief, by_four, monkeypatch
):
    """Weights were kept and a checkpoint saved at step 4; the process dies before the exchange of another step."""
    step = Trainer.start

    def fatal_step(trainer: Trainer, number: int, *flags):
        if number == 6 and trainer.world.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(trainer, number, *flags)

    arguments = options(manifest, brief(**LENGTH), tmp_path / "killed")
    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "start", fatal_step)
        assert train(arguments, 4) == [65, None, 65, 65]
    status = read_json(tmp_path / "killed/state/status.json")
    assert (status["state"], status["exit_code"]) == ("failed", 65)
    assert "another process of this run ended" in status["reason"]
    assert train(arguments, 4) == [0] * 4
    for name in ("metrics.jsonl", "done.json", "state/weights/step-00000012.safetensors"):
        assert sha256_of(tmp_path / "killed" / name) == sha256_of(by_four / name), name
    sessions = read_json(tmp_path / "killed/state/provenance.json")["sessions"]
    assert [session["step"] for session in sessions] == [4, 12]


def test_any_number_of_processes_goes_on_with_a_checkpoint(tmp_path, manifest, brief, by_four):
    for size, shards in ((2, True), (1, False)):
        run = shutil.copytree(by_four, tmp_path / str(size))
        (run / "state/resume/step-00000012.json").unlink()
        unpublish(run)
        assert train(options(manifest, brief(**LENGTH), run), size, shards) == [0] * size
        assert losses(run)["train"] == pytest.approx(losses(by_four)["train"], rel=1e-4)
        sessions = read_json(run / "state/provenance.json")["sessions"]
        assert [session["step"] for session in sessions] == [12, 12]


def test_what_cannot_be_sharded_is_refused_before_processes_wait_for_each_other(manifest, brief):
    world = World(0, 2, CPU)
    for changes, said in (({"compile": True}, "'compile' is true"), ({"batch_size": 9}, "'pretrain.batch_size' is 9")):
        with pytest.raises(ConfigError, match=said):
            Trainer(planned(manifest, brief(**changes)), world, shard_parameters=True)
