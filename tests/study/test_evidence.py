"""The committed results of studies: each page follows from its runs."""

from pathlib import Path

import pandas as pd
import pytest

from symbert.study.page import write_study

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs/evidence"
STUDIES = sorted(runs.parent.name for runs in EVIDENCE.glob("*/runs.csv"))
GROWN = ("depth-8", "longer")
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


def test_what_the_page_of_plateau_concludes_follows_from_its_contrasts():
    """Its section "In short" is written by hand; these verdicts are what it says in words."""
    contrasts = pd.read_csv(EVIDENCE / "plateau/contrasts.csv").set_index(["contrast", "attention", "size"])["verdict"]
    rates = pd.read_csv(EVIDENCE / "plateau/contrasts.csv").set_index(["learning_rate", "contrast"])["verdict"]

    def verdicts(*names: str) -> list[str]:
        return [verdict for (contrast, *_), verdict in contrasts.items() if contrast in names]

    narrow = [f"{grid}-operator-at-the-narrow-start" for grid in ("documentation", "copying", "depth")]
    assert verdicts(*narrow) == ["equal"] * 4 + ["undecided"]
    assert verdicts("documentation-operator-at-the-wide-start", "copying-operator-at-the-wide-start") == [
        "undecided",
        "equal",
    ]
    assert verdicts("depth-operator-at-the-wide-start") == ["undecided"] * 3
    starts = [f"start-of-{operator}" for operator in ("original", "pairwise", "symmetric")]
    assert verdicts(*(f"copying-{start}" for start in starts)) == ["shorter"] * 3
    assert verdicts(*(f"documentation-{start}" for start in starts)) == ["equal", "equal", "longer"]
    symmetry = ["symmetry-at-the-start", "symmetric-at-the-narrow-start"]
    assert verdicts(*(f"copying-{name}" for name in symmetry)) == ["shorter"] * 2
    assert verdicts(*(f"documentation-{name}" for name in symmetry)) == ["equal"] * 2
    grown = {attention for (contrast, attention, _), verdict in contrasts.items() if (contrast, verdict) == GROWN}
    assert grown == {"original", "pairwise-narrow", "shared"}
    assert verdicts("depth-4") != [] and "longer" not in verdicts("depth-4")
    assert verdicts("documentation-shared-at-the-narrow-start", "copying-shared-at-the-narrow-start") == ["longer"] * 2
    assert verdicts("documentation-own-position", "copying-own-position") == ["equal"] * 2
    starts = [f"rates-start-of-{operator}" for operator in ("original", "pairwise", "symmetric")]
    assert [*rates[5e-4][starts]] == ["shorter"] * 3 and [*rates[2e-3][starts]] == ["undecided", "shorter", "undecided"]
    equal_starts = [f"rates-operator-at-the-{start}-start" for start in ("narrow", "wide")]
    assert [*rates[5e-4][equal_starts]] == [*rates[2e-3][equal_starts]] == ["equal", "undecided"]
    symmetric = [f"rates-symmetric-at-the-{start}-start" for start in ("narrow", "wide")]
    assert [*rates[5e-4][symmetric]] == ["shorter"] * 2 and [*rates[2e-3][symmetric]] == ["undecided"] * 2
    short = ["operator-at-the-narrow-start", "operator-at-the-wide-start", "symmetric-at-the-narrow-start"]
    assert verdicts(*(f"length-{name}" for name in short)) == ["equal"] * 3
    starts = [f"length-start-of-{operator}" for operator in ("original", "pairwise", "symmetric")]
    assert verdicts(*starts) == ["equal", "undecided", "longer"]
