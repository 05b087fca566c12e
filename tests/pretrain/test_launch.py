"""How pre-training is started and requeued, by a stand-in of scontrol; tests/campaigns/slurm asks a real one."""

import os
import signal
import subprocess

import pytest
from msgspec.structs import replace

from pretrain.corpora import brief, options
from symbert import cli
from symbert.configuration import Pretrain
from symbert.experiment.project import PROJECT, read_config
from symbert.pretrain.launch import launcher, options_of_training, requeue
from symbert.pretrain.train import Trainer


def section(processes: int, nodes: int, **keys) -> Pretrain:
    return replace(read_config(PROJECT).pretrain, processes=processes, nodes=nodes, **keys)


def test_one_process_is_plain_python_and_several_are_torchruns_which_passes_signals_on():
    assert launcher(section(1, 1)) == "python -m symbert"
    words = launcher(section(4, 1)).split()
    assert words[:4] == ["torchrun", "--standalone", "--nproc-per-node", "4"] and words[-2:] == ["-m", "symbert"]
    assert words[words.index("--signals-to-handle") + 1] == "SIGTERM,SIGINT,SIGUSR1"


def test_on_several_nodes_one_torchrun_per_node_starts_its_share_and_they_meet_at_a_port_of_the_job(monkeypatch):
    line = launcher(section(8, 2))
    words = line.split()
    values = [words[words.index(name) + 1] for name in ("--ntasks", "--nnodes", "--nproc-per-node")]
    assert words[0] == "srun" and values == ["2", "2", "4"]
    monkeypatch.setenv("SLURM_JOB_ID", "123456")
    endpoint = line.split("--rdzv-endpoint ")[1].split(" --nproc-per-node")[0]
    said = subprocess.run(["bash", "-c", f"echo {endpoint}; hostname"], capture_output=True, text=True).stdout.split()
    assert said[0] == f"{said[1]}:23456"


def test_threads_are_shared_out_and_none_has_less_than_one():
    for processes, nodes, threads, share in ((1, 1, 3, "3"), (4, 1, 32, "8"), (4, 1, 2, "1"), (8, 2, 16, "4")):
        words = options_of_training(section(processes, nodes)).format(threads=threads)
        said = subprocess.run(["bash", "-c", f"echo {words}"], capture_output=True, text=True).stdout
        assert said.strip() == f"--threads {share}"
    words = options_of_training(section(1, 1, micro_batch_size=4, shard_parameters=True))
    assert words == "--threads {threads} --micro-batch-size 4 --shard-parameters"


@pytest.fixture
def scontrol(tmp_path, monkeypatch):
    """A stand-in in job 17 that keeps its requests in the file beside it."""
    script = tmp_path / "scontrol"
    script.write_text('#!/bin/sh\necho "$@" >> "$0.asked"\n')
    script.chmod(0o755)
    script.with_suffix(".asked").touch()
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return script


def requests_of(scontrol) -> list[str]:
    return scontrol.with_suffix(".asked").read_text().splitlines()


def test_the_leading_process_of_a_job_asks_for_its_requeue(scontrol, monkeypatch, capsys):
    monkeypatch.setenv("RANK", "1")
    requeue()
    assert requests_of(scontrol) == []
    monkeypatch.setenv("RANK", "0")
    requeue()
    assert requests_of(scontrol) == ["requeue 17"] and capsys.readouterr().err == ""
    monkeypatch.delenv("SLURM_JOB_ID")
    requeue()
    assert requests_of(scontrol) == ["requeue 17"]


def test_a_refusal_is_one_line_that_says_how_to_go_on(scontrol, monkeypatch, capsys):
    scontrol.write_text("#!/bin/sh\necho 'presently disabled' >&2\necho 'for job 17' >&2\nexit 1\n")
    requeue()
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "job 17 is not requeued (presently disabled for job 17); run the same" in said


@pytest.mark.parametrize(
    ("received", "requests"), [(["SIGUSR1"], ["requeue 17"]), (["SIGTERM"], []), (["SIGUSR1", "SIGTERM"], [])]
)
def test_a_training_asks_for_another_session_when_the_limit_is_near_and_nobody_cancelled_it(
    scontrol, manifest, monkeypatch, tmp_path, signals_kept, received, requests
):
    compute = Trainer.start

    def interrupted(trainer, step, *flags):
        if step == 3:
            for name in received:
                os.kill(os.getpid(), signal.Signals[name])
        return compute(trainer, step, *flags)

    monkeypatch.setattr(Trainer, "start", interrupted)
    assert cli.main(options(manifest, brief(steps=10), tmp_path / "run")) == 75
    assert requests_of(scontrol) == requests
