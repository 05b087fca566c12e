"""The committed results of studies: each page follows from its runs."""

from pathlib import Path

import pytest

from symbert.study.page import write_study

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs/evidence"
STUDIES = sorted(runs.parent.name for runs in EVIDENCE.glob("*/runs.csv"))
LARGEST = 2_000_000  # bytes of a study

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")


@pytest.mark.parametrize("name", STUDIES)
def test_every_number_of_a_page_comes_out_of_its_runs(name, tmp_path):
    write_study(ROOT / f"studies/{name}.yaml", EVIDENCE / name / "runs.csv", tmp_path / "README.md")
    committed = {file.name for file in (EVIDENCE / name).iterdir()} - {"runs.csv"}
    assert {file.name for file in tmp_path.iterdir()} == committed
    for file in tmp_path.glob("*.[cm]*"):  # csv and Markdown; pixels of text depend on the libraries
        assert file.read_text(encoding="utf-8") == (EVIDENCE / name / file.name).read_text(encoding="utf-8"), file.name


@pytest.mark.parametrize("name", STUDIES)
def test_a_studys_results_are_small(name):
    assert sum(file.stat().st_size for file in (EVIDENCE / name).iterdir()) < LARGEST


def test_search_and_plateau_are_committed():
    assert {"search", "plateau"} <= {*STUDIES}
