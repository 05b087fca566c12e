"""What the profile for Slurm makes of the workflow's jobs; tests/slurm sends them to a real Slurm of one node."""

import os
import re

import pytest

from symbert.config import batches_of
from symbert.project import read_chosen
from symbert.report.exhibits import EXHIBITS
from workflow.checkout import dry_run

PAPER = ("scale=paper", "source=hub")
CLUSTER = ("--profile", "profiles/slurm", "--cores", "64", "--slurm-init-seconds-before-status-checks", "1")
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


def told(copy, submitted, site: str, *arguments: str) -> str:
    """The words of `sbatch` for the training of a small model, at a site."""
    (copy.directory / "profiles/slurm/site.yaml").write_text(site)
    outcome = copy.tiny("pretrain", *CLUSTER, *arguments)
    assert outcome.code != 0 and "sbatch" in outcome.output, outcome.output
    return submitted().partition(" --wrap=")[0]


def test_a_training_on_four_nodes_asks_for_each_nodes_gpus_memory_and_threads(copy, submitted):
    """16 processes of a small model: four GPUs, 4 × 8 GB and 4 × 4 threads on each node."""
    words = told(copy, submitted, "partition: {gpu: gpu}\n", "--config", *FOUR_NODES)
    assert "-p gpu -t 1440 --mem 32000 --nodes=4 --requeue --ntasks=4 --cpus-per-task=16" in words
    assert words.count("gpu:") == 1 and "--signal=USR1@120" in words and words.endswith("--gres=gpu:4")


def test_options_of_the_command_line_lose_neither_minutes_nor_partitions_and_a_site_may_know_gres_alone(
    copy, submitted
):
    """`--default-resources` and `--set-resources` took the place of all that the profile said."""
    site = "partition: {gpu: gpu}\nminutes: {gpu: 720}\nqos: long\ngpus_by: gres\ngpu_type: a100\n"
    options = ("--default-resources", "disk_mb=5", "--set-resources", "pretrain_model:mem_mb=1234")
    words = told(copy, submitted, site, *options, "--config", FOUR_NODES[0])
    assert "-p gpu -t 720 --qos=long --mem 1234 " in words and "--signal=USR1@120" in words
    assert words.endswith("--gres=gpu:a100:1") and "--gpus" not in words


def test_the_papers_jobs_are_as_many_of_slurm_as_the_guide_says(root, checkout):
    """None of a local rule, one of each group, and one of each other job."""
    jobs = dry_run(checkout, "--config", *PAPER).jobs
    exhibits = {exhibit.rule for exhibit in EXHIBITS.values() if exhibit.chapter != "Corpus"}
    report = exhibits | {"count_parameters", "write_page"}
    grouped = {"filter_part", "tokenize_part", "extract_checkpoint", *report}
    alone = {rule: count for rule, count in jobs.items() if rule not in grouped | local_rules(root)}
    batches, runs = len(batches_of(read_chosen(root, None, None, list(PAPER)))), jobs["pretrain_model"]
    guide = " ".join((root / "docs/cluster.md").read_text().split())
    assert alone["finetune"] == 57 and runs == 6
    told = (
        f"the {sum(jobs.values()):,} jobs of the workflow are {batches + runs + 1 + sum(alone.values())} of Slurm: "
        f"{batches} batches of parts, {runs} pre-trainings, {runs} jobs that extract"
    )
    assert told in guide


def local_rules(root) -> set[str]:
    """The rules that run where Snakemake does."""
    texts = [path.read_text() for path in [root / "Snakefile", *(root / "workflow/rules").glob("*.smk")]]
    blocks = re.findall(r"^localrules:\n((?:    \w+,\n)+)", "\n".join(texts), re.M)
    return set(re.findall(r"\w+", " ".join(blocks)))
