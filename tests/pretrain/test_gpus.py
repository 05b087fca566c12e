"""Whether there is a GPU, and claiming one, without any."""

import resource
import subprocess
import sys

import pytest

from symbert.pretrain.gpus import claim_gpu, who_counts_a_gpu

LISTED = "GPU 0: NVIDIA A100 (UUID: GPU-1)\n  MIG 1g.5gb Device 0: (UUID: MIG-1)\nGPU 1: NVIDIA A100 (UUID: GPU-2)\n"
HOLD = "import sys\nfrom pathlib import Path\nfrom symbert.pretrain.gpus import claim_gpu\n"
HOLD += "print(claim_gpu(sys.argv[2:], folder=Path(sys.argv[1])), flush=True)\nsys.stdin.read()\n"


@pytest.fixture
def nvidia_smi(tmp_path, monkeypatch):
    """Puts a program of that name on an otherwise empty path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(script: str) -> None:
        program = tmp_path / "nvidia-smi"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return write


@pytest.fixture
def driver(tmp_path):
    """What the kernel's driver shows of three GPUs."""
    for name in ("0000:07:00.0", "0000:0f:00.0", "0000:47:00.0"):
        (tmp_path / "gpus" / name).mkdir(parents=True)
    return tmp_path / "gpus"


def test_gpus_are_those_that_nvidia_smi_lists_and_not_their_slices(nvidia_smi, driver):
    nvidia_smi(f"echo '{LISTED}'")
    assert who_counts_a_gpu({}, driver) == "this machine shows 2 GPUs (nvidia-smi, or the driver)"


def test_without_an_answer_of_nvidia_smi_the_driver_is_looked_at(nvidia_smi, driver):
    nvidia_smi("echo 'Failed to initialize NVML' >&2; exit 18")
    assert who_counts_a_gpu({}, driver) == "this machine shows 3 GPUs (nvidia-smi, or the driver)"


def test_a_gpu_is_counted_by_machine_scheduler_or_configuration_and_the_user_may_choose_none(
    nvidia_smi, driver, tmp_path
):
    nowhere = tmp_path / "none"
    assert who_counts_a_gpu({}, nowhere) is None
    assert who_counts_a_gpu({}, driver) == "this machine shows 3 GPUs (nvidia-smi, or the driver)"
    assert who_counts_a_gpu({"SLURM_JOB_GPUS": "0"}, nowhere) == "Slurm gave this job GPUs (SLURM_JOB_GPUS=0)"
    assert who_counts_a_gpu({"SLURM_GPUS_ON_NODE": "2"}, nowhere) == "Slurm gave this job GPUs (SLURM_GPUS_ON_NODE=2)"
    assert who_counts_a_gpu({"SYMBERT_GPUS": "1"}, nowhere) == "Snakemake gave this job GPUs (SYMBERT_GPUS=1)"
    assert who_counts_a_gpu({"SLURM_GPUS_ON_NODE": "0", "SYMBERT_GPUS": "0", "SLURM_JOB_GPUS": ""}, nowhere) is None
    for chosen in ("4", "0,-1,1", "GPU-8932f937,GPU-11"):
        assert who_counts_a_gpu({"CUDA_VISIBLE_DEVICES": chosen}, nowhere) == f"CUDA_VISIBLE_DEVICES is {chosen}"
    for none in ("", "-1", "NoDevFiles"):
        assert (
            who_counts_a_gpu({"CUDA_VISIBLE_DEVICES": none, "SLURM_JOB_GPUS": "0", "SYMBERT_GPUS": "1"}, driver) is None
        )


@pytest.fixture
def hold(tmp_path):
    """Starts a process that claims one of the GPUs and keeps it; gives it and the number that it got."""
    processes = []

    def start(*identities: str) -> tuple[subprocess.Popen, int]:
        command = [sys.executable, "-c", HOLD, str(tmp_path / "locks"), *identities]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        processes.append(subprocess.Popen(command, text=True, **pipes))
        return processes[-1], int(processes[-1].stdout.readline())

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def test_no_two_processes_have_one_gpu_and_a_killed_one_gives_its_own_back(hold):
    first, number = hold("GPU-a", "GPU-b")
    assert number == 0
    assert hold("GPU-a", "GPU-b")[1] == 1
    assert hold("GPU-b", "GPU-c")[1] == 1, "the same GPU by its name, whatever its number where others are visible"
    first.kill()
    first.communicate()
    assert hold("GPU-a", "GPU-b")[1] == 0


def test_where_every_gpu_is_taken_one_is_shared_and_its_holder_named(hold):
    holder, _ = hold("GPU-a")
    sharer, number = hold("GPU-a")
    assert number == 0
    said = sharer.communicate("")[1]
    assert said.startswith("warning: GPU 0 is shared, for none is free: ") and said.count("\n") == 1
    assert f"GPU-a: in use by process {holder.pid} on " in said


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(("taken", "free"), [("a", {1, 2}), ("ab", {2, 3}), ("ac", {1, 3}), ("cd", {0, 1})])
def test_two_that_train_together_find_two_free_gpus_in_any_order(tmp_path, hold, capsys, taken, free, first):
    for name in taken:
        hold(name)
    assert {claim_gpu("abcd", number, 2, tmp_path / "locks") for number in (first, 1 - first)} == free
    assert capsys.readouterr().err == ""


def test_a_lock_that_cannot_be_written_is_warned_of_and_ends_no_training(tmp_path, capsys):
    """What the disk said of the line that names the holder was taken for no failure of the lock."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        assert claim_gpu(["GPU-a"], folder=tmp_path / "locks") == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr().err
    assert said.startswith(f"warning: GPU 0 is shared, for none is free: {tmp_path}/locks/GPU-a/lock: ")
    assert said.count("\n") == 1


def test_a_job_of_slurm_that_was_given_no_gpu_has_none_whatever_its_node_shows(driver):
    """nvidia-smi and the driver show the whole node, and who asked for no GPU was refused for those of others."""
    for told in ({}, {"SYMBERT_GPUS": "0"}, {"SLURM_GPUS_ON_NODE": "0", "SLURM_JOB_GPUS": ""}):
        assert who_counts_a_gpu({"SLURM_JOB_ID": "4711", **told}, driver) is None
    given = {"SLURM_JOB_ID": "4711", "SLURM_JOB_GPUS": "2", "SYMBERT_GPUS": "0"}
    assert who_counts_a_gpu(given, driver) == "Slurm gave this job GPUs (SLURM_JOB_GPUS=2)"
