"""The committed results of studies: the tables of each page follow from its runs, and so do the numbers of its text."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from symbert.study.page import write_study

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs/evidence"
STUDIES = sorted(runs.parent.name for runs in EVIDENCE.glob("*/runs.csv"))
LOSS = 2.8  # nats, at which the runs of plateau are compared
PAIRED = {  # ratios of steps with 2, 4 and 8 layers, first to second, worked out by hand from runs.csv
    ("symmetric", "original"): (0.83, 0.74, 0.59),
    ("symmetric-wide", "original-wide"): (0.85, 0.75, 0.62),
    ("original-wide", "original"): (0.76, 0.69, 0.56),
    ("pairwise", "pairwise-narrow"): (0.73, 0.63, 0.46),
    ("pairwise", "original-wide"): (0.95, 0.89, 0.79),
    ("pairwise-narrow", "original"): (0.99, 0.98, 0.96),
}

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")


@pytest.mark.parametrize("name", STUDIES)
def test_the_tables_of_a_page_come_out_of_its_runs(name, tmp_path):
    write_study(ROOT / f"studies/{name}.yaml", EVIDENCE / name / "runs.csv", tmp_path / "README.md")
    committed = {file.name for file in (EVIDENCE / name).iterdir()} - {"runs.csv"}
    assert {file.name for file in tmp_path.iterdir()} == committed
    page = (EVIDENCE / name / "README.md").read_text(encoding="utf-8")
    made = (tmp_path / "README.md").read_text(encoding="utf-8")
    tables = [part for part in made.split("\n\n") if part.startswith("|")]
    assert tables and all(table in page for table in tables)
    for file in tmp_path.glob("*.csv"):
        assert file.read_text(encoding="utf-8") == (EVIDENCE / name / file.name).read_text(encoding="utf-8"), file.name


Steps = dict[str, dict[int, float]]  # to a loss, by operator and seed; NaN for never


@pytest.fixture(scope="module")
def steps() -> dict[tuple[str, str, float, int], Steps]:
    """Where each curve of plateau first reaches the loss, by text, size, learning rate and length of the run."""
    found: dict[tuple[str, str, float, int], Steps] = {}
    for run in pd.read_csv(EVIDENCE / "plateau/runs.csv").itertuples():
        losses = np.array([float(loss) for loss in run.losses.split()])
        after, step = int((losses <= LOSS).argmax()), math.nan
        if losses[after] <= LOSS:
            step = run.evaluate_every * (1 + np.interp(-LOSS, -losses[after - 1 : after + 1], [after - 1, after]))
        cell = found.setdefault((run.text, run.size, run.learning_rate, run.steps), {}).setdefault(run.attention, {})
        assert run.seed not in cell
        cell[run.seed] = float(step)
    return found


def logarithms(cells: Steps, first: str, second: str) -> np.ndarray:
    """Of the ratio of the steps of two operators, by seed."""
    assert cells[first].keys() == cells[second].keys()
    return np.log([cells[first][seed] / cells[second][seed] for seed in sorted(cells[first])])


def in_words(logarithms: np.ndarray) -> str:
    low, high = np.exp(ttest_1samp(logarithms, 0).confidence_interval(0.95))
    return f"{np.exp(logarithms.mean()):.2f} [{low:.2f}, {high:.2f}]"


def test_the_paired_ratios_of_the_page_follow_from_the_curves(steps):
    page = (EVIDENCE / "plateau/README.md").read_text(encoding="utf-8")
    by_depth = [steps["copying-48", size, 1e-3, 1000] for size in ("tiny", "deep4", "deep8")]
    for pair, ratios in PAIRED.items():
        found = [logarithms(cells, *pair) for cells in by_depth]
        assert [np.exp(values.mean()) for values in found] == pytest.approx(ratios, abs=0.005)
        assert f"| `{pair[0]}` / `{pair[1]}` | {' | '.join(map(in_words, found))} |" in page
    own = logarithms(steps["documentation-48", "tiny", 1e-3, 2000], "symmetric-others", "symmetric")
    assert (own < 0).all() and in_words(own) == "0.87 [0.83, 0.90]" and f"{in_words(own)} on" in page


def test_on_the_page_a_ratio_differs_from_one_only_where_its_interval_does(steps):
    """Significant against not significant was read as a difference, and undecided as equality."""

    def excludes_one(logarithms: np.ndarray) -> bool:
        return bool(ttest_1samp(logarithms, 0).pvalue < 0.05)

    two, four, eight = (steps["copying-48", size, 1e-3, 1000] for size in ("tiny", "deep4", "deep8"))
    for pair in PAIRED:
        undecided = pair in {("pairwise", "original-wide"), ("pairwise-narrow", "original")}
        assert excludes_one(logarithms(eight, *pair)) is not undecided
    assert excludes_one(logarithms(four, "pairwise", "original-wide"))
    half, twice = (steps["copying-48", "tiny", rate, 2000] for rate in (5e-4, 2e-3))
    assert excludes_one(logarithms(half, "pairwise", "original-wide"))
    for operator, wide in (
        ("original", "original-wide"),
        ("pairwise-narrow", "pairwise"),
        ("symmetric", "symmetric-wide"),
    ):
        assert excludes_one(logarithms(half, wide, operator) - logarithms(twice, wide, operator))
    characters = steps["documentation-48", "tiny", 1e-3, 2000]
    for pair in (("symmetric", "original"), ("original-wide", "original"), ("pairwise-narrow", "original")):
        assert not excludes_one(logarithms(characters, *pair))
    assert excludes_one(logarithms(characters, "original-symmetric", "original"))
    fewer = {
        operator: {seed: by_seed[seed] for seed in eight[operator]}
        for operator, by_seed in two.items()
        if operator in eight
    }
    starts = [(f"{operator}-wide", operator) for operator in ("original", "symmetric", "shared")]
    for pair in (
        *starts,
        ("pairwise", "pairwise-narrow"),
        ("symmetric", "original"),
        ("symmetric-wide", "original-wide"),
    ):
        interaction = logarithms(eight, *pair) - logarithms(fewer, *pair)
        assert (interaction < 0).all() and ttest_1samp(interaction, 0).pvalue < 0.004, pair


def test_the_steps_that_a_wide_start_saves_on_documentation_may_be_none_or_as_many_as_on_the_copies(steps):
    """It was believed to do nothing there."""
    saved = []
    for cells in (steps["copying-48", "tiny", 1e-3, 1000], steps["documentation-48", "tiny", 1e-3, 2000]):
        differences = [step - cells["original-wide"][seed] for seed, step in cells["original"].items()]
        saved.append((np.mean(differences), *ttest_1samp(differences, 0).confidence_interval(0.95)))
    assert [[round(value) for value in bounds] for bounds in saved] == [[81, 71, 92], [47, -50, 143]]
    page = (EVIDENCE / "plateau/README.md").read_text(encoding="utf-8")
    assert "81 [71, 92] steps" in page and "47 [−50, 143]" in page
