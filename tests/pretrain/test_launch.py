"""How pre-training is started; docs/cluster.md and tests/campaigns/slurm start it so."""

import subprocess

import pytest

from symbert.configuration import check, merge
from symbert.errors import ConfigError
from symbert.pretrain.launch import launcher, threads_per_process


def test_one_process_is_plain_python_and_several_are_torchruns_which_passes_signals_on():
    assert launcher(1, 1) == "python -m symbert --log {log:q}"
    words = launcher(4, 1).split()
    assert words[4:8] == ["torchrun", "--standalone", "--nproc-per-node", "4"] and words[-2:] == ["-m", "symbert"]
    assert words[words.index("--signals-to-handle") + 1] == "SIGTERM,SIGINT,SIGUSR1"


def test_on_several_nodes_one_torchrun_per_node_starts_its_share_and_they_meet_at_a_port_of_the_job(monkeypatch):
    line = launcher(8, 2)
    words = line.split()
    values = [words[words.index(name) + 1] for name in ("--ntasks", "--nnodes", "--nproc-per-node")]
    assert words[4] == "srun" and values == ["2", "2", "4"]
    monkeypatch.setenv("SLURM_JOB_ID", "123456")
    endpoint = line.split("--rdzv-endpoint ")[1].split(" --nproc-per-node")[0]
    said = subprocess.run(["bash", "-c", f"echo {endpoint}; hostname"], capture_output=True, text=True).stdout.split()
    assert said[0] == f"{said[1]}:23456"


def test_threads_are_shared_out_and_none_has_less_than_one():
    for processes, nodes, threads, share in ((1, 1, 3, "3"), (4, 1, 32, "8"), (4, 1, 2, "1"), (8, 2, 16, "4")):
        words = threads_per_process(processes, nodes).format(threads=threads)
        assert subprocess.run(["bash", "-c", f"echo {words}"], capture_output=True, text=True).stdout.strip() == share


def test_processes_that_do_not_divide_into_nodes_are_refused(config):
    with pytest.raises(ConfigError, match=r"'pretrain\.processes' is 3, .*'pretrain\.nodes'"):
        check(merge(config, {"pretrain": {"processes": 3, "nodes": 2}}))
