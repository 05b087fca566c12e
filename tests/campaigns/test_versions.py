"""The tiny chain on the oldest and the newest Snakemake 9 of the registry; the pinned one runs all other tests."""

import re
import subprocess
import sys

import pytest

from workflow.checkout import TINY, check_out

OLDEST = ("snakemake==9.0.0", "snakemake-interface-logger-plugins==1.2.4", "pulp<3.3")
NEWEST = ("snakemake>=9,<10",)


@pytest.mark.campaign
@pytest.mark.parametrize("packages", [OLDEST, NEWEST], ids=["oldest", "newest"])
def test_the_chain_runs_on_the_oldest_and_the_newest_snakemake_9(root, tmp_path, packages):
    """Snakemake and its dependencies lie in a folder before those of the environment."""
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    installed = subprocess.run([*install, "--target", tmp_path / "other", *packages], capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"the registry does not give it: {installed.stderr.splitlines()[-1]}")
    copy = check_out(root, tmp_path / "copy")
    (copy.directory / "tiny.yaml").write_text(TINY)

    def snakemake(*words: str) -> str:
        """What a run says, standard error included."""
        command = [sys.executable, "-m", "snakemake", "--cores", "2", *words, "--configfile", "tiny.yaml"]
        environment = {**copy.environment, "PYTHONPATH": f"{tmp_path / 'other'}:{root / 'src'}"}
        run = subprocess.run(command, cwd=copy.directory, env=environment, capture_output=True, text=True)
        assert run.returncode == 0, (run.stdout + run.stderr)[-5000:]
        return run.stdout + run.stderr

    assert re.search(r"pretrain +2", snakemake("--dry-run"))
    snakemake()
    assert (copy.directory / "results/demo-embedded/report/report.html").is_file()
    assert "othing to be done" in snakemake()
