"""Working copies of the project for a cluster whose nodes are one machine, and Snakemake as it runs in them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from campaigns.slurm import cluster
from workflow.checkout import check_out, heed_signals

CONFIG = """\
experiment: x
corpus: {parts: 2, pack: {sequence_length: 32, validation_sequences: 16, max_documents: 400}}
pretrain: {steps: 300, batch_size: 8, warmup_steps: 5, evaluate_every: 100, save_every: 20}
glue: {max_examples: 32, max_evaluation_examples: 32, max_length: 32, epochs: 1, robustness: {noise: []}}
sweep:
  attention: [original, pairwise]
  pretrain_seeds: [1]
  finetuned_pretrain_seeds: null
  finetune_seeds: [1]
  tasks: [rte]
  suites: [glue]
  curve: {finetune_seeds: [1], steps: {tiny: [300]}}
"""
# The GPUs are only device files: our commands are told to compute on the CPU, after Slurm has said which GPU they have.
ON_CPU = """
import os, sys
if "symbert" in sys.orig_argv:
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
"""
# The queue as Snakemake asks for it: while the file `silent` lies beside it, it does not answer.
SQUEUE = """\
#!/bin/sh
folder=$(dirname "$0")
[ -e "$folder/silent" ] && echo >> "$folder/asked"
while [ -e "$folder/silent" ]; do sleep 0.2; done
exec /usr/bin/squeue "$@"
"""
HASTE = ("--symbert-slurm-init-seconds-before-status-checks", "3", "--latency-wait", "10")  # one idle node
ON_SLURM = ("--profile", "profiles/slurm", *HASTE)


def working_copy(root: Path, directory: Path) -> Path:
    """A copy of the project with the configuration of the chain."""
    check_out(root, directory)
    (directory / "own.yaml").write_text(CONFIG)
    (directory / "site").mkdir()
    (directory / "site/sitecustomize.py").write_text(ON_CPU)
    (directory / "bin").mkdir()
    (directory / "bin/squeue").write_text(SQUEUE)
    (directory / "bin/squeue").chmod(0o755)
    adapt(directory, gpu=1)
    return directory


def adapt(directory: Path, **resources) -> None:
    """Name the partitions, and change what is asked for pre-training, as a user does."""
    path = directory / "profiles/slurm/config.yaml"
    profile = yaml.safe_load(path.read_text())
    of_gpus = {"slurm_partition": "gpu"}
    profile["default-resources"]["slurm_partition"] = "main"
    profile["set-resources"] = {"score": of_gpus, "score_robustness": of_gpus, "pretrain": of_gpus | resources}
    path.write_text(yaml.safe_dump(profile))


def log_of(directory: Path) -> Path:
    """What all runs of Snakemake in a working copy say; printed, too, when all takes too long."""
    return cluster.HOME / f"{directory.name}.log"


@contextmanager
def snakemake(directory: Path, *arguments: str) -> Iterator[subprocess.Popen]:
    """The workflow, which ends with what is done meanwhile; its log is printed when that fails."""
    with open(log_of(directory), "a") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--configfile", "own.yaml", *arguments],
            cwd=directory,
            env={
                **os.environ,
                **{"PYTHONPATH": str(directory / "site"), "HF_HUB_OFFLINE": "1"},
                "PATH": f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
            },
            stdout=output,
            stderr=output,
            preexec_fn=heed_signals,
        )
    try:
        yield process
    except BaseException:
        print(log_of(directory).read_text()[-6000:])
        raise
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
