"""What the tests' own Slurm leaves alone and how it is stopped, without a Slurm."""

import fcntl
import os
import subprocess

import pytest

from campaigns.slurm import cluster

pytestmark = pytest.mark.campaign


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine without Slurm, whose places lie in a folder; no test here may reach another."""
    places = {"HOME": tmp_path / "home", "LOCK": tmp_path / "lock", "FETCHED": tmp_path / "fetched"}
    for name, path in places.items():
        monkeypatch.setattr(cluster, name, path)
    monkeypatch.setattr(cluster, "LINKS", [tmp_path / "slurm.conf"])
    monkeypatch.setattr(cluster, "NAME", str(tmp_path))
    monkeypatch.setattr(cluster, "GRACE", 1)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_CONF", raising=False)
    (tmp_path / "home").mkdir()
    (tmp_path / "bin").mkdir()


@pytest.fixture
def daemon(tmp_path):
    """A process with the name of a daemon, which heeds no SIGTERM."""
    script = tmp_path / "bin/slurmd"
    script.write_text("#!/bin/sh\ntrap '' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    script.chmod(0o755)
    with subprocess.Popen([script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_daemon_that_runs_belongs_to_another_slurm(daemon):
    assert "slurmd runs" in cluster.signs_of_slurm()


def test_a_daemon_that_does_not_end_is_killed_and_all_else_is_removed(daemon, tmp_path):
    (cluster.HOME / "slurmd.pid").write_text(f"{daemon.pid}\n")
    cluster.LINKS[0].symlink_to(cluster.HOME / "slurm.conf")
    cluster.stop()
    assert daemon.wait(1) == -9
    assert not cluster.HOME.exists() and not cluster.LINKS[0].is_symlink()


def test_a_process_with_the_number_of_a_daemon_and_another_name_is_left_alone():
    with subprocess.Popen(["sleep", "60"]) as other:
        (cluster.HOME / "slurmd.pid").write_text(f"{other.pid}\n")
        cluster.stop()
        assert other.poll() is None
        other.kill()


def test_a_link_that_another_slurm_made_is_left_alone(tmp_path):
    cluster.LINKS[0].symlink_to(tmp_path / "site/slurm.conf")
    cluster.stop()
    assert cluster.LINKS[0].is_symlink()


@pytest.mark.parametrize("action", ["install", "run", "stop"])
def test_a_second_one_leaves_the_first_alone(monkeypatch, action):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with open(cluster.LOCK, "w") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        assert cluster.main(action) == "another test of Slurm goes on"
    assert cluster.HOME.is_dir()
