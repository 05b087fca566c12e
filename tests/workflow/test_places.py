"""Where the workflow may be run: in any folder, and as a module of another workflow."""

import os
import subprocess
import sys

import pytest

from workflow.checkout import ENVIRONMENT, Checkout

OTHER = """\
configfile: "other.yaml"

module symbert:
    snakefile: "{snakefile}"
    config: config["symbert"]

use rule * from symbert as symbert_*

rule mine:
    default_target: True
    input: rules.symbert_paper.output
    output: "mine.txt"
    shell: "ls {{input:q}} > {{output:q}}"
"""


@pytest.fixture
def elsewhere(tmp_path) -> Checkout:
    """A folder outside the project, where Snakemake is run."""
    folder = tmp_path / "another folder"
    folder.mkdir()
    return Checkout(folder)


def test_the_workflow_runs_in_a_folder_of_ones_own_and_writes_there(checkout, elsewhere, monkeypatch):
    monkeypatch.setitem(ENVIRONMENT, "PYTHONPATH", f"{ENVIRONMENT['PYTHONPATH']}{os.pathsep}")  # as where none is set
    (elsewhere.directory / "mine.yaml").write_text("experiment: mine\nsweep: {attention: [symmetric]}\n")
    words = ("--snakefile", str(checkout.directory / "Snakefile"))
    mine = ("--configfile", "mine.yaml")
    for library in ("numpy", "operator", "random"):  # which jobs took for the library
        (elsewhere.directory / f"{library}.py").write_text("# notes\n")
    tables, planned = elsewhere.commands(("paper", *words, *mine), ("--dry-run", *words, *mine))
    assert tables.code == 0 and tables.jobs == {"paper": 1}, tables.output
    assert (elsewhere.directory / "results/paper").is_dir() and not (checkout.directory / "results").exists()
    assert planned.code == 0 and "results/mine/report/report.html" in planned.output, planned.output


def test_the_workflow_is_a_module_of_another_one_that_configures_it(checkout, elsewhere):
    """Of the other one's own configuration nothing was read, without a word."""
    (elsewhere.directory / "Snakefile").write_text(OTHER.format(snakefile=checkout.directory / "Snakefile"))
    mine = "symbert: {experiment: mine, sweep: {attention: [shared], pretrain_seeds: [1]}}\nsamples: [a]\n"
    (elsewhere.directory / "other.yaml").write_text(mine)
    wrong = ("--dry-run", "--config", "symbert={sweep: {attention: [symetric]}}")
    outcome, nothing, trained, refused = elsewhere.commands((), ("--dry-run",), ("--dry-run", "symbert_all"), wrong)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs.keys() == {"symbert_paper", "mine"} and nothing.jobs == {}
    assert trained.jobs["symbert_pretrain"] == 1 and "results/mine/report" in trained.output, trained.output
    assert refused.code == 64 and "'symmetric'" in refused.output, refused.output


DEPLOYED = """\
configfile: "config/config.yaml"

module symbert:
    snakefile: github("owner/symbert", path="Snakefile", branch="main")
    config: config

use rule * from symbert
"""


@pytest.mark.campaign
def test_a_workflow_that_snakedeploy_writes_finds_the_package_that_is_installed(checkout, elsewhere, tmp_path):
    """It took the address of the repository for a folder. A local repository stands in for GitHub's."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    for words in (["init", "-q"], ["add", "-f", "Snakefile", "workflow", "envs"], ["commit", "-qm", "Rules"]):
        subprocess.run([*git, *words], cwd=checkout.directory, check=True)
    (elsewhere.directory / "config").mkdir()
    (elsewhere.directory / "config/config.yaml").write_text("scale: demo\nsweep: {attention: [shared]}\n")
    (elsewhere.directory / "Snakefile").write_text(DEPLOYED)
    instead = {"KEY": f"url.{checkout.directory}/.git.insteadOf", "VALUE": "https://github.com/owner/symbert"}
    values = {f"GIT_CONFIG_{name}_0": value for name, value in instead.items()} | {"GIT_CONFIG_COUNT": "1"}
    environment = {**elsewhere.environment, **values, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--dry-run"]
    planned = subprocess.run(command, cwd=elsewhere.directory, env=environment, capture_output=True, text=True)
    assert planned.returncode == 0, planned.stderr
    assert "shared" in planned.stdout and "results/demo-embedded/report/report.html" in planned.stdout
