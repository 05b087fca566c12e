"""Where the workflow may be run: in any folder, and as a module of another workflow."""

import shutil
import subprocess

import pytest

from workflow.checkout import Checkout, check_out, dry_run

TABLE = "results/{}/report/tables/table2_parameters.csv"
OTHER = """\
module symbert:
    snakefile: "{snakefile}"
    config: config["laboratory"]

use rule * from symbert as symbert_*

rule parameters:
    default_target: True
    input: "{table}"
    output: "parameters.csv"
    shell: "cp {{input:q}} {{output:q}}"
"""


@pytest.fixture
def elsewhere(tmp_path) -> Checkout:
    """A folder outside the project, where Snakemake is run."""
    folder = tmp_path / "another folder"
    folder.mkdir()
    return Checkout(folder)


def test_the_workflow_runs_in_a_folder_of_ones_own_and_writes_there(checkout, elsewhere):
    """It was "config.yaml is not present or accessible"."""
    (elsewhere.directory / "mine.yaml").write_text("experiment: mine\nsweep: {attention: [symmetric]}\n")
    outcome = elsewhere.snakemake(
        TABLE.format("mine"), "--snakefile", str(checkout.directory / "Snakefile"), "--configfile", "mine.yaml"
    )
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"count_parameters": 1, "tabulate_table2_parameters": 1}
    assert (elsewhere.directory / TABLE.format("mine")).is_file()
    assert not (checkout.directory / "results").exists()


def test_a_scale_and_files_of_ones_own_are_sought_in_that_folder(checkout, elsewhere):
    (elsewhere.directory / "short.yaml").write_text("pretrain: {steps: 600, warmup_steps: 30, save_every: 300}\n")
    words = ("--snakefile", str(checkout.directory / "Snakefile"), "--config", "scale=short.yaml")
    outcome = elsewhere.snakemake("pretrain", "--dry-run", *words, "sweep={sizes: [tiny], curve: {sizes: []}}")
    assert outcome.code == 0 and "results/short-embedded/pretrain/" in outcome.output, outcome.output


def test_the_workflow_is_a_module_of_another_one(checkout, elsewhere):
    """It was "KeyError: 'scale'": a module has the configuration of the workflow that uses it, and no other."""
    snakefile, table = checkout.directory / "Snakefile", TABLE.format("demo-embedded")
    (elsewhere.directory / "Snakefile").write_text(OTHER.format(snakefile=snakefile, table=table))
    words = ("--config", "laboratory={sweep: {attention: [symmetric]}}")
    outcome = elsewhere.snakemake(*words)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs.keys() == {"symbert_count_parameters", "symbert_tabulate_table2_parameters", "parameters"}
    assert "tiny,symmetric," in (elsewhere.directory / "parameters.csv").read_text()
    assert elsewhere.snakemake("--dry-run", *words).jobs == {}
    wrong = elsewhere.snakemake("--dry-run", "--config", "laboratory={sweep: {attention: [symetric]}}")
    assert wrong.code == 64 and "did you mean 'symmetric'" in wrong.output, wrong.output


@pytest.mark.skipif(shutil.which("snakedeploy") is None, reason="snakedeploy is not installed")
def test_snakedeploy_makes_a_workflow_of_a_clone(root, tmp_path):
    clone = check_out(root, tmp_path / "clone").directory
    shutil.copytree(root / "config", clone / "config")
    command = ["snakedeploy", "deploy-workflow", str(clone), str(tmp_path / "deployed"), "--branch", "main"]
    subprocess.run(command, check=True, capture_output=True)
    snakefile = tmp_path / "deployed/workflow/Snakefile"
    text = snakefile.read_text()
    assert text.count('"Snakefile"') == 1, "of a clone it notes a path within it"
    snakefile.write_text(text.replace('"Snakefile"', f'"{clone}/Snakefile"'))
    outcome = Checkout(tmp_path / "deployed").snakemake("paper_tables")
    assert outcome.code == 0 and (tmp_path / "deployed/results/demo-embedded/report/tables").is_dir(), outcome.output


def test_the_file_to_begin_with_chooses_what_is_chosen_without_it(checkout, root):
    begun = checkout.snakemake("--dry-run", "--configfile", str(root / "config/config.yaml"))
    assert begun.code == 0 and begun.jobs == dry_run(checkout).jobs
