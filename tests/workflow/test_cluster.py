"""What the profile for Slurm makes of the jobs; tests/campaigns/slurm sends them to a real Slurm of one node."""

import os

import pytest
import yaml

CLUSTER = ("--profile", "profiles/slurm", "--cores", "64", "--symbert-slurm-init-seconds-before-status-checks", "1")
FOUR_NODES = (
    "sweep={sizes: [small], attention: [original], pretrain_seeds: [1], curve: {sizes: []}}",
    "pretrain={processes: 16, nodes: 4, batch_size: 16}",
)


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """The words that a stand-in of `sbatch`, which refuses all jobs, was called with."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    answers = {"sbatch": f'printf "%s\\n" "$@" >> {tmp_path}/words; exit 1', "scontrol": "echo 'MinJobAge = 300 sec'"}
    for name in ("sbatch", "scontrol", "squeue", "sinfo", "sacct", "sacctmgr"):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{answers.get(name, 'exit 0')}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return lambda: " ".join((tmp_path / "words").read_text().splitlines())


def told(copy, submitted, resources: dict, *arguments: str) -> str:
    """The words of `sbatch` for the training of a small model, at a site that gives pre-training these resources."""
    path = copy.directory / "profiles/slurm/config.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | {"set-resources": {"pretrain": resources}}))
    outcome = copy.tiny("--until", "pretrain", *CLUSTER, *arguments)
    assert outcome.code != 0 and "sbatch" in outcome.output, outcome.output
    return submitted().partition(" --wrap=")[0]


def test_a_training_on_four_nodes_asks_for_each_nodes_gpus_memory_and_threads(copy, submitted):
    """16 processes of a small model: four GPUs, 4 × 8 GB and 4 × 4 threads on each node."""
    words = told(copy, submitted, {"slurm_partition": "gpu"}, "--config", *FOUR_NODES)
    assert "-p gpu -t 1440 --mem 32000 --nodes=4 --requeue --ntasks=4 --cpus-per-task=16" in words
    assert words.count("gpu:") == 1 and "--signal=USR1@120" in words and words.endswith("--gres=gpu:4")


def test_a_site_sets_limits_and_quality_of_service_and_may_know_gres_alone(copy, submitted):
    site = {"slurm_partition": "gpu", "runtime": 720, "qos": "long", "gpu": 0, "gres": "gpu:a100:1"}
    words = told(copy, submitted, site, "--config", FOUR_NODES[0])
    assert "-p gpu -t 720 --qos=long --mem 8000 " in words and "--signal=USR1@120" in words
    assert words.endswith("--gres=gpu:a100:1") and "--gpus" not in words
