"""What the tests' own Slurm leaves alone and how it is stopped, without a Slurm."""

import subprocess

import pytest

from campaigns.slurm import cluster

pytestmark = pytest.mark.campaign


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch):
    """A machine without Slurm, whose places lie in a folder; no test here may reach another."""
    for name, path in {"HOME": "home", "LOCK": "lock", "FETCHED": "fetched", "NAME": "name"}.items():
        monkeypatch.setattr(cluster, name, tmp_path / path)
    monkeypatch.setattr(cluster, "LINKS", [tmp_path / "slurm.conf"])
    monkeypatch.setattr(cluster, "GRACE", 1)
    monkeypatch.delenv("SLURM_CONF", raising=False)
    cluster.HOME.mkdir()


def test_a_daemon_that_does_not_end_is_killed_and_all_else_is_removed(tmp_path):
    script = tmp_path / "slurmd"
    script.write_text("#!/bin/sh\ntrap '' TERM\necho ready\nwhile :; do sleep 0.1; done\n")
    script.chmod(0o755)
    with subprocess.Popen([script], stdout=subprocess.PIPE, text=True) as daemon:
        assert daemon.stdout.readline() == "ready\n" and "slurmd runs" in cluster.signs_of_slurm()
        (cluster.HOME / "slurmd.first.pid").write_text(f"{daemon.pid}\n")
        cluster.LINKS[0].symlink_to(cluster.HOME / "slurm.conf")
        cluster.stop()
        assert daemon.wait(1) == -9
    assert not cluster.HOME.exists() and not cluster.LINKS[0].is_symlink()


def test_processes_and_links_of_others_are_left_alone(tmp_path):
    cluster.LINKS[0].symlink_to(tmp_path / "site/slurm.conf")
    with subprocess.Popen(["sleep", "60"]) as other:
        (cluster.HOME / "slurmd.first.pid").write_text(f"{other.pid}\n")
        cluster.stop()
        assert other.poll() is None and cluster.LINKS[0].is_symlink()
        other.kill()
