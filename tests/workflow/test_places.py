"""Where the workflow may be run: in any folder, and as a module of another workflow."""

import os

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
