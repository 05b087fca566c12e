"""What is asked of Slurm, by a stand-in of its command; tests/campaigns/slurm asks a real one."""

import os
import signal

import pytest

from pretrain.corpora import brief, options
from symbert import cli
from symbert.pretrain.launch import requeue
from symbert.pretrain.train import Trainer


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
    monkeypatch.setenv("PATH", str(scontrol.parent / "empty"))
    requeue()
    assert "job 17 is not requeued" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("received", "requests"), [(["SIGUSR1"], ["requeue 17"]), (["SIGTERM"], []), (["SIGUSR1", "SIGTERM"], [])]
)
def test_a_training_asks_for_another_session_when_the_limit_is_near_and_nobody_cancelled_it(
    scontrol, manifest, monkeypatch, tmp_path, received, requests
):
    compute, numbers = Trainer.step, (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    handlers = [signal.getsignal(number) for number in numbers]

    def interrupted(trainer, step, *flags):
        if step == 3:
            for name in received:
                os.kill(os.getpid(), signal.Signals[name])
        return compute(trainer, step, *flags)

    monkeypatch.setattr(Trainer, "step", interrupted)
    try:
        assert cli.main(options(manifest, brief(steps=10), tmp_path / "run")) == 75
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            signal.signal(number, handler)
    assert requests_of(scontrol) == requests
