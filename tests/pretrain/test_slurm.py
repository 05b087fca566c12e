"""What is asked of Slurm, by a stand-in of its command; tests/campaigns/slurm asks a real one."""

import os
import signal

import pytest
import yaml

from pretrain.corpora import brief, options, write_corpus
from symbert import cli
from symbert.errors import PreemptedError, TimeLimitError
from symbert.pretrain.launch import requeue

HANDLED = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """The requests that a stand-in of `scontrol` was called with, in job 17; it answers as `answer` says."""

    class Requests:
        answer = "exit 0"

        def __init__(self):
            monkeypatch.setenv("SLURM_JOB_ID", "17")
            monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
            self.respond(self.answer)

        def respond(self, answer: str) -> None:
            script = tmp_path / "scontrol"
            script.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{answer}\n')
            script.chmod(0o755)

        @property
        def list(self) -> list[str]:
            return (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []

    return Requests()


@pytest.fixture
def handlers():
    """Puts back the signal handlers that a run in this process installs."""
    kept = {number: signal.getsignal(number) for number in HANDLED}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def test_a_requeue_names_this_job(asked, capsys):
    requeue()
    assert asked.list == ["requeue 17"]
    assert capsys.readouterr().err == ""


def test_a_refusal_is_one_line_that_says_how_to_go_on(asked, capsys):
    asked.respond("echo 'Requested operation is presently disabled' >&2\necho 'for job 17' >&2\nexit 1")
    requeue()
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "job 17 is not requeued (Requested operation is presently disabled for job 17); run the same" in said


def test_without_the_command_there_is_a_warning(asked, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    requeue()
    assert "job 17 is not requeued" in capsys.readouterr().err and asked.list == []


@pytest.mark.parametrize("rank, requests", [("0", ["requeue 17"]), ("1", [])])
def test_of_several_processes_the_leading_one_asks(asked, monkeypatch, rank, requests):
    monkeypatch.setenv("RANK", rank)
    requeue()
    assert asked.list == requests


def test_outside_a_job_nothing_is_asked(asked, monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID")
    requeue()
    assert asked.list == []


@pytest.mark.parametrize("error, requests", [(TimeLimitError("saved"), ["requeue 17"]), (PreemptedError("saved"), [])])
def test_a_command_asks_when_its_time_limit_is_near_and_not_when_it_is_cancelled(asked, monkeypatch, error, requests):
    def fail(folder: str, threads: int) -> None:
        """Stop."""
        raise error

    monkeypatch.setattr(cli, "load", lambda command: fail)
    assert cli.main(["pretrain", "--folder", "x", "--threads", "1"]) == 75
    assert asked.list == requests


@pytest.mark.parametrize(
    "received, requests", [(["SIGUSR1"], ["requeue 17"]), (["SIGTERM"], []), (["SIGUSR1", "SIGTERM"], [])]
)
def test_a_training_asks_for_another_session_when_the_limit_is_near_and_nobody_cancelled_it(
    asked, monkeypatch, tmp_path, handlers, received, requests
):
    from symbert.pretrain.train import Trainer

    compute = Trainer.step

    def interrupted(trainer, step, *flags):
        if step == 3:
            for name in received:
                os.kill(os.getpid(), signal.Signals[name])
        return compute(trainer, step, *flags)

    monkeypatch.setattr(Trainer, "step", interrupted)
    manifest = write_corpus(tmp_path / "shards")
    assert cli.main(options(manifest, brief(steps=10), tmp_path / "run")) == 75
    assert asked.list == requests


def test_the_profile_that_overrides_the_clusters_says_nothing_of_where_jobs_run(root):
    profile = yaml.safe_load((root / "profiles/default/config.yaml").read_text())
    assert set(profile) == {"rerun-triggers", "rerun-incomplete", "scheduler", "show-failed-logs", "logger"}
