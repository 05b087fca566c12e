"""One declaration makes a table or figure: its rule, its place on the page, its caption and its command."""

import subprocess
import sys

import pytest

from symbert.cli import main
from symbert.report import exhibits
from symbert.report.data import Data
from symbert.report.exhibits import CHAPTERS, EXHIBITS

DECLARATION = '''
from symbert.report.exhibits import exhibit

@exhibit(chapter="Corpus", heading="H", reads=("counts",){more})
def corpus_table(data):
    """What the corpus
    has.

    Not part of the caption.
    """
'''


def test_every_exhibit_loads_and_reads_what_there_is():
    for exhibit in EXHIBITS.values():
        exhibit.load()
        assert {*exhibit.reads, *exhibit.may_read, *exhibit.follows} <= set(dir(Data)) | {"sections"}
        assert len(exhibit.caption) > 80 and exhibit.caption.endswith(".")
        assert len(exhibit.caption.split()) <= 60, exhibit.id
        assert not set(exhibit.caption) & set("{*`_|"), "which mean something to the caption's template"
    assert len(EXHIBITS) > 20 and {exhibit.chapter for exhibit in EXHIBITS.values()} == set(CHAPTERS[:-1])


def test_no_two_exhibits_have_one_place():
    places = [(exhibit.chapter, exhibit.place) for exhibit in EXHIBITS.values()]
    assert len(set(places)) == len(places)


def test_a_declaration_is_read_without_its_module(tmp_path):
    file = tmp_path / "my_own.py"
    file.write_text(DECLARATION.format(more=", place=9") + "import no_such_package\n")
    (exhibit,) = exhibits._declared("table", file)
    assert (exhibit.id, exhibit.rule, exhibit.stem) == ("table-my_own", "tabulate_my_own", "tables/my_own")
    assert exhibit.reads == ("counts",) and exhibit.place == 9 and exhibit.is_of_experiment
    assert exhibit.caption == "What the corpus has."


@pytest.mark.parametrize(("reads", "needed"), [("runs", "settings"), ("robustness", "scores")])
def test_what_an_exhibit_reads_is_given_with_all_that_it_is_computed_from(reads, needed):
    """A table of runs alone ended with an internal error: their steps are in the settings."""
    assert needed in exhibits.options_to_read(reads)
    for options in exhibits.OPTIONS.values():
        assert "settings" in options or options == exhibits.OPTIONS["machines"], "which no settings change"


@pytest.mark.parametrize("text", ["", DECLARATION.format(more="") * 2, DECLARATION.replace("Corpus", "Other")])
def test_a_file_without_one_exhibit_of_a_chapter_is_refused(tmp_path, text):
    (tmp_path / "my_own.py").write_text(text.format(more=""))
    with pytest.raises(ValueError, match="declare one exhibit, of a chapter of At a glance, Claims"):
        exhibits._declared("table", tmp_path / "my_own.py")


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
