"""Exhibits exist where their inputs do, and their commands have these and no others."""

import shutil

import pytest

from symbert.report.exhibits import EXHIBITS
from symbert.report.inputs import ReportFiles, report_code
from symbert.suites import BESIDE_GLUE

OWN = ("settings", "parameters", "scores", "curve", "robustness", "speeds", "provenance", "sections")
OWN += ("counts", "records", "manifest", "anatomy", "probes", "blimp", "hosts", "courses")
FINE_TUNED = [suite.name for suite in BESIDE_GLUE if suite.tasks]
OF_SUPERGLUE = {f"table-superglue{kind}" for kind in ("", "_scores", "_statistics")} | {"figure-superglue_checkpoints"}
WORDS = {
    "finetune_seeds": [1, 2],
    "pretrain_seeds": [1, 2, 3],
    "curve_seeds": [1],
    "sessions": ["s/1.json"],
}


@pytest.fixture
def report():
    """The files of a report without some of its inputs."""

    def make(*without, origin=(), words=WORDS):
        inputs = {option: [] if option in without else [f"in/{option}.1", f"in/{option}.2"] for option in OWN}
        runs = ("done", "metrics")
        of_size = {
            size: {name: [f"in/{name}.{size}"] for name in runs if name not in without} for size in ("tiny", "base")
        }
        of_suite = {
            suite.name: {name: [f"in/{suite.name}.{name}"] for name in ("scores", "curve") if name not in without}
            for suite in BESIDE_GLUE
            if suite.name not in without
        }
        return ReportFiles("out", inputs | {"origin": list(origin)}, of_size, words, of_suite)

    return make


def ids(report):
    return {exhibit.id for exhibit in report.exhibits}


def test_an_experiment_of_ones_own_has_every_exhibit(report):
    assert [exhibit.id for exhibit in report().exhibits] == list(EXHIBITS)


@pytest.mark.parametrize(
    ("without", "lost"),
    [
        ("robustness", {"table-robustness", "figure-robustness"}),
        ("curve", {"figure-figure3_checkpoints", *(f"figure-{name}_checkpoints" for name in FINE_TUNED)}),
        ("superglue", OF_SUPERGLUE),
        ("anatomy", {"table-anatomy", "figure-anatomy"}),
        ("blimp", {"table-blimp", "figure-blimp"}),
        ("hosts", {"table-hosts", "figure-hosts"}),
        ("probes", {"table-probes"}),
    ],
)
def test_what_was_not_asked_for_has_no_exhibit(report, without, lost):
    assert set(EXHIBITS) - ids(report(without)) == lost


def test_imported_scores_have_no_corpus_no_speed_and_no_settings(report):
    lacking = ("robustness", "speeds", "provenance", "counts", "records", "manifest", "done", "metrics")
    lacking += ("anatomy", "probes", "blimp", "hosts", "courses", *FINE_TUNED)
    imported = report(*lacking, origin=["import.json"], words={"finetune_seeds": [1], "curve_seeds": [1]})
    made = {"claims", "table3_glue", "table3_published", "statistics", "scores", "milestones", "provenance", "runs"}
    made |= {"table1_operators", "table2_parameters", "figure3_checkpoints", "summary"}
    assert {exhibit.name for exhibit in imported.exhibits} == made
    assert imported.made_of(EXHIBITS["table-runs"]) == {"origin": ["import.json"]}


def test_provenance_waits_for_the_scores_that_it_does_not_read(report):
    provenance, others = EXHIBITS["table-provenance"], [suite.name for suite in BESIDE_GLUE]
    scores, curve = (
        [f"in/{name}.1", f"in/{name}.2", *(f"in/{suite}.{name}" for suite in others)] for name in ("scores", "curve")
    )
    assert report().made_before(provenance) == [*scores, *curve, "in/robustness.1", "in/robustness.2"]
    assert report().made_of(provenance).keys() == {"sections", "provenance"}


def test_the_summary_reads_the_scores_of_every_suite(report):
    others = [f"in/{suite.name}.scores" for suite in BESIDE_GLUE]
    assert report().made_of(EXHIBITS["text-summary"])["suite_scores"] == others


def test_a_report_asks_for_every_run_and_score_that_it_compares(report):
    """A table that lacks an input which no rule makes counts as finished where an old one lies there."""
    compared = {"scores", "curve", "robustness", "blimp", "provenance"}
    others = {f"in/{suite.name}.{name}" for suite in BESIDE_GLUE for name in ("scores", "curve")}
    assert set(report().asked_for) == others | {f"in/{name}.{number}" for name in compared for number in (1, 2)}


@pytest.mark.parametrize(
    ("files", "makes_anew"),
    [
        (("report/tables/corpus.py", "report/templates/style.css", "corpus/counts.py", "filters.py", "sizes.py"), True),
        (("files.py", "settings.py", "model/attention.py", "glue/train.py", "cli.py"), False),
    ],
)
def test_tables_and_figures_are_made_anew_just_when_what_the_report_imports_changes(root, tmp_path, files, makes_anew):
    ignored = shutil.ignore_patterns("__pycache__")  # into which other processes write meanwhile
    package = shutil.copytree(root / "src/symbert", tmp_path / "symbert", ignore=ignored)
    for file in files:
        before = report_code(package)
        with open(package / file, "a") as code:
            code.write("# edited")
        assert (report_code(package) != before) is makes_anew, file
