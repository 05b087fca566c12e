"""GPUs as Snakemake counts them: dry runs where a program in nvidia-smi's place lists some."""

import re

import pytest

NINE = ("--set-resources", "pretrain_model:gpu=9")  # more than there are: as many as Snakemake has are granted
ONE_SMALL = "sweep={sizes: [small], attention: [original], pretrain_seeds: [1], curve: {sizes: []}}"


@pytest.fixture
def gpus(tmp_path, monkeypatch):
    """Gives this machine that many GPUs."""

    def install(count: int) -> None:
        program = tmp_path / "nvidia-smi"
        lines = [f"echo 'GPU {number}: Fake (UUID: GPU-{number})'" for number in range(count)]
        program.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    return install


@pytest.mark.parametrize(("count", "given"), [(2, "SYMBERT_GPUS=1"), (0, "SYMBERT_GPUS=0")])
def test_every_job_that_trains_is_told_of_the_gpu_that_it_was_given(checkout, gpus, count, given):
    gpus(count)
    outcome = checkout.snakemake("--dry-run", "--printshellcmds", "glue", "--config", ONE_SMALL)
    for command in ("pretrain-model", "finetune"):
        assert re.search(rf"{given} exec python -m symbert --log \S+ {command} ", outcome.output)


def granted(checkout, *options: str) -> int:
    """GPUs that the one pre-training has in a dry run."""
    outcome = checkout.snakemake("--dry-run", "pretrain", *options, "--config", ONE_SMALL)
    assert outcome.jobs["pretrain_model"] == 1, outcome.output
    return int(re.search(r"^rule pretrain_model:.*?^    resources: .*?\bgpu=(\d+)", outcome.output, re.M | re.S)[1])


def test_a_training_asks_for_one_gpu_and_has_no_more_than_this_machine(checkout, gpus):
    gpus(2)
    assert granted(checkout) == 1
    assert granted(checkout, *NINE) == 2


def test_a_machine_without_gpus_trains_all_the_same(checkout, gpus):
    gpus(0)
    assert granted(checkout) == 0


def test_the_gpus_of_a_login_node_are_no_limit_of_its_cluster(checkout, gpus):
    gpus(0)
    assert granted(checkout, *NINE, "--executor", "slurm", "--jobs", "10") == 9
