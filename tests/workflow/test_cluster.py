"""What the profile for Slurm makes of the jobs; tests/campaigns/slurm sends them to a real Slurm."""

import os
import re

import pytest
import yaml

CLUSTER = ("--cores", "64", "--symbert-slurm-init-seconds-before-status-checks", "1")
FOUR_NODES = (
    "sweep={sizes: [small], attention: [original], pretrain_seeds: [1], curve: {sizes: []}}",
    "pretrain={processes: 16, nodes: 4, batch_size: 16}",
)


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """The words that a stand-in of `sbatch`, which refuses all jobs, was called with."""
    pytest.importorskip("snakemake_executor_plugin_slurm")
    answers = {
        "sbatch": f'printf "%s\\n" "$@" signal=$SBATCH_SIGNAL >> {tmp_path}/words; exit 1',
        "scontrol": "echo 'MinJobAge = 300 sec'",
    }
    for name in ("sbatch", "scontrol", "squeue", "sinfo", "sacct", "sacctmgr"):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\n{answers.get(name, 'exit 0')}\n")
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return lambda: " ".join((tmp_path / "words").read_text().splitlines())


SITES = {  # resources of pre-training at a site
    "four nodes": {"slurm_partition": "gpu", "gpu_model": "a100"},
    "gres": {"slurm_partition": "gpu", "runtime": 720, "qos": "long", "gpu": 0, "gres": "gpu:a100:1"},
    "hyphens": {"slurm_partition": "'all'", "runtime": "2d", "gpu": 0, "slurm_extra": "--gpus-per-node=a100-80gb:1"},
}


def test_the_words_of_sbatch_for_a_training_on_four_nodes_and_at_a_site_that_knows_gres_alone(copy, submitted):
    """16 processes of a small model: four GPUs, 4 × 8 GB and 4 × 4 threads on each node."""
    profile, commands = yaml.safe_load((copy.directory / "profiles/slurm/config.yaml").read_text()), []
    for site, config in zip(SITES, (FOUR_NODES, FOUR_NODES[:1], FOUR_NODES[:1]), strict=True):
        (copy.directory / site).mkdir()
        (copy.directory / site / "config.yaml").write_text(
            yaml.safe_dump(profile | {"set-resources": {"pretrain": SITES[site]}})
        )
        commands.append(("--until", "pretrain", "--profile", site, *CLUSTER, "--config", *config))
    outcomes = copy.tinies(*commands)
    assert all(outcome.code != 0 and "sbatch" in outcome.output for outcome in outcomes), outcomes
    jobs = [words.rpartition("--parsable")[2] for words in submitted().split(" --wrap=")]
    nodes, gres, hyphens = (next(words for words in jobs if time in words) for time in ("-t 1440", "-t 720", "-t 2880"))
    assert "-p gpu -t 1440 --mem 32000 --nodes=4 --requeue --ntasks=4 --cpus-per-task=16" in nodes
    assert nodes.endswith("--gres=gpu:a100:4") and nodes.count("gpu:") == 1 and "--gpus" not in nodes
    assert "-p gpu -t 720 --qos=long --mem 8000 " in gres
    assert gres.endswith("--gres=gpu:a100:1") and "--gpus" not in gres
    assert "-p all " in hyphens and "--gpus-per-node=a100-80gb:1" in hyphens and "--gpus=" not in hyphens
    told = re.findall(r"signal=(\S*)", submitted())
    assert len(told) >= len(SITES) and {*told} == {"USR1@120"}, "whatever `slurm_extra` a site has"
