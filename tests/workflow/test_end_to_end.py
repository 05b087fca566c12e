"""The whole chain at a tiny scale through Snakemake."""

import json
import re

import pytest

TABLES = (
    "corpus",
    "table1_operators",
    "table2_parameters",
    "table2_training",
    "table3_glue",
    "table3_published",
    "scores",
    "statistics",
    "milestones",
    "claims",
    "robustness",
)
FIGURES = ("corpus", "figure2_tiny", "figure3_checkpoints", "robustness")


@pytest.fixture
def results(finished):
    return finished.directory / "results" / "demo-embedded"


def test_every_table_and_figure_is_there(results):
    for table in TABLES:
        for suffix in ("csv", "md", "tex", "html"):
            assert (results / f"report/tables/{table}.{suffix}").stat().st_size > 100
    for figure in FIGURES:
        assert (results / f"report/figures/{figure}.png").read_bytes().startswith(b"\x89PNG")
        assert (results / f"report/figures/{figure}.pdf").read_bytes().startswith(b"%PDF")
        caption, _, explanation = (results / f"report/figures/{figure}.txt").read_text().partition("\n\n")
        assert explanation and len(caption.split()) <= 60, caption
    page = (results / "report/report.html").read_text()
    assert len(re.findall('<p class="summary">', page)) == 3
    assert max(len(caption.split()) for caption in re.findall(r"<figcaption[^>]*>(.*)</figcaption>", page)) <= 60
    assert page.count("<table") >= len(TABLES) and page.count("data:image/png") == len(FIGURES)


def test_every_document_is_accounted_for_and_every_filter_acts(results):
    """The embedded corpus has documents for each drop reason, among its parts."""
    dropped = {}
    for path in (results / "corpus/filtered").glob("*.counts.json"):
        counts = json.loads(path.read_text())
        assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())
        for reason, number in counts["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + number
    assert len(dropped) == 6 and all(dropped.values()), dropped


def test_scores_are_there_once_for_each_seed(results):
    for attention in ("original", "pairwise"):
        for step, seeds in ((10, [1]), (20, [1, 2])):
            for task in ("mrpc", "mnli", "sst2"):
                path = results / f"glue/tiny-{attention}/seed-1/step-{step}/{task}.json"
                assert [score["finetune_seed"] for score in json.loads(path.read_text())] == seeds


def test_stand_ins_are_called_so_wherever_their_scores_are(results):
    for suffix in ("csv", "md", "tex"):
        assert "stand-in" in (results / f"report/tables/table3_glue.{suffix}").read_text()


def test_the_papers_numbers_do_not_stand_beside_stand_in_scores(results):
    assert "78.74" not in (results / "report/tables/table3_glue.md").read_text()
    assert "78.74" in (results / "report/tables/table3_published.md").read_text()
