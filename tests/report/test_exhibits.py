"""One declaration makes a table or figure: its rule, its place on the page, its caption and its command."""

import subprocess
import sys

import pytest

from symbert.cli import main
from symbert.report import exhibits


@pytest.mark.parametrize(("reads", "needed"), [("runs", "settings"), ("robustness", "scores")])
def test_what_an_exhibit_reads_is_given_with_all_that_it_is_computed_from(reads, needed):
    """A table of runs alone ended with an internal error: their steps are in the settings."""
    assert needed in exhibits.options_to_read(reads)
    for options in exhibits.OPTIONS.values():
        assert "settings" in options or options == exhibits.OPTIONS["machines"], "which no settings change"


def test_a_wrong_name_and_a_missing_option_are_told(capsys, tmp_path):
    assert main(["exhibit", "table-glue", "--output", str(tmp_path / "t.csv")]) == 64
    assert (
        "exhibit: no 'table-glue'; choose from text-summary, figure-figure2, table-table3_glue"
        in capsys.readouterr().err
    )
    assert main(["exhibit", "table-table3_glue", "--output", str(tmp_path / "t.csv")]) == 64
    assert "exhibit: table-table3_glue needs --settings" in capsys.readouterr().err


def test_the_report_never_imports_torch():
    load = "from symbert.report import page; from symbert.report.exhibits import EXHIBITS as exhibits; import sys"
    code = f"{load}; [exhibit.load() for exhibit in exhibits.values()]; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_the_registry_imports_neither_pandas_nor_matplotlib():
    """Snakemake reads it at every start."""
    code = "import symbert.report.inputs, sys; sys.exit(bool({'pandas', 'matplotlib', 'scipy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
