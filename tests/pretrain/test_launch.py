"""How pre-training is started; docs/cluster.md and tests/campaigns/slurm start it so."""

import subprocess

import pytest

from symbert.configuration import check, merge
from symbert.errors import ConfigError
from symbert.pretrain.launch import launcher, threads_per_process


def test_one_process_is_plain_python():
    assert launcher(1, 1) == "python -m symbert --log {log:q}"


def test_several_processes_of_one_machine_are_torchruns_which_passes_signals_on():
    words = launcher(4, 1).split()
    assert words[:4] == ["python", "-m", "symbert.console", "{log:q}"] and words[-2:] == ["-m", "symbert"]
    assert words[4:8] == ["torchrun", "--standalone", "--nproc-per-node", "4"]
    assert words[words.index("--signals-to-handle") + 1] == "SIGTERM,SIGINT,SIGUSR1"


def test_on_several_nodes_one_torchrun_per_node_starts_its_share():
    words = launcher(8, 2).split()
    assert words[4] == "srun" and words[words.index("--ntasks") + 1] == "2"
    assert words[words.index("--nnodes") + 1] == "2" and words[words.index("--nproc-per-node") + 1] == "4"


def test_nodes_meet_at_the_first_one_at_a_port_of_the_job(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "123456")
    endpoint = launcher(8, 2).split("--rdzv-endpoint ")[1].split(" --nproc-per-node")[0]
    said = subprocess.run(["bash", "-c", f"echo {endpoint}; hostname"], capture_output=True, text=True).stdout.split()
    assert said[0] == f"{said[1]}:23456"


@pytest.mark.parametrize(
    "processes, nodes, threads, each", [(1, 1, 3, "3"), (4, 1, 32, "8"), (4, 1, 2, "1"), (8, 2, 16, "4")]
)
def test_threads_are_shared_out_and_none_has_less_than_one(processes, nodes, threads, each):
    words = threads_per_process(processes, nodes).format(threads=threads)
    assert subprocess.run(["bash", "-c", f"echo {words}"], capture_output=True, text=True).stdout.strip() == each


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"processes": 3, "nodes": 2}, r"'pretrain.processes' is 3, which 'pretrain.nodes' \(2\) does not divide"),
        ({"processes": 256}, r"'pretrain.processes' is 256, more than the 128 sequences of 'pretrain.batch_size'"),
    ],
)
def test_processes_that_cannot_share_a_batch_evenly_are_refused(root, config, changes, reason):
    with pytest.raises(ConfigError, match=reason):
        check(merge(config, {"pretrain": changes}))
