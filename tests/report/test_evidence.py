"""The committed results of studies: the numbers of each page follow from its runs."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from symbert.configuration import ReportFacts, settings_from, training_of
from symbert.experiment.project import read_chosen
from symbert.experiment.sweep import Grid, grids_of, report_of_grids
from symbert.report.collect import Collection
from symbert.report.statistics import exits_of
from symbert.report.tables.pretraining import contrasts_table, grid_exits_table

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "docs/findings"
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

AXES = ("text", "size", "attention", "learning_rate")
STATISTICS = ("contrast", "seeds", "first_median_exit", "second_median_exit", "ratio", "low", "high", "narrow_low")
STATISTICS += ("narrow_high", "p_value", "holm_p_value", "verdict")

pytestmark = pytest.mark.usefixtures("nothing_of_ones_own")


def collection_of(name: str) -> Collection:
    """The grids of a study's configuration, with the curves of its runs.csv."""
    config = read_chosen(ROOT, None, [ROOT / f"studies/{name}.yaml"], None)
    frame = pd.read_csv(EVIDENCE / name / "runs.csv", dtype={"exit": str, "losses": str})
    grids = [(grid, [_losses(config, grid, point, frame) for point in grid.points]) for grid in grids_of(config)]
    facts = settings_from(report_of_grids(config, grids_of(config)), ReportFacts, name)
    return Collection(facts, grids=grids)


def _losses(config: dict, grid: Grid, point: dict, frame: pd.DataFrame) -> pd.DataFrame:
    """The runs of a point; each has the exit that runs.csv says."""
    training = training_of(config, "encoder", point)
    wanted = {axis: point[axis] for axis in ("text", "size", "attention")}
    wanted |= {key: getattr(training, key) for key in ("learning_rate", "batch_size", "steps", "evaluate_every")}
    chosen = frame[frame["seed"].isin(grid.seeds) & (frame[[*wanted]] == pd.Series(wanted)).all(axis=1)]
    chosen = chosen.sort_values("seed")
    assert chosen["seed"].tolist() == grid.seeds
    steps = range(training.evaluate_every, training.steps + 1, training.evaluate_every)
    losses = [list(map(float, losses.split())) for losses in chosen["losses"]]
    table = pd.DataFrame(losses, index=grid.seeds, columns=list(steps))
    exits = zip(*vars(exits_of(table)).values(), strict=True)
    assert [str(int(step)) if left else "never" for step, left in exits] == chosen["exit"].tolist()
    return table


def tables_of(page: str) -> list[list[list[str]]]:
    """The tables of a page, as rows of cells."""
    tables = [part for part in page.split("\n\n") if part.startswith("|")]
    return [[[cell.strip() for cell in row.strip("|").split("|")] for row in table.splitlines()] for table in tables]


@pytest.mark.parametrize("name", STUDIES)
def test_the_exits_of_a_page_come_out_of_its_runs(name):
    committed = tables_of((EVIDENCE / name / "README.md").read_text(encoding="utf-8"))
    shown = grid_exits_table(collection_of(name)).readable
    assert not shown.empty
    for _, of_grid in shown.groupby("grid", sort=False):
        rows = of_grid.pivot(index="attention", columns="at", values="exit")
        places, operators = (list(dict.fromkeys(of_grid[key])) for key in ("at", "attention"))
        exits = [[operator, *rows.loc[operator, places]] for operator in operators]
        assert exits in [table[2:] for table in committed if table[0] == ["operator", *places]]


def test_the_contrasts_of_a_page_come_out_of_its_runs():
    table = contrasts_table(collection_of("plateau"))
    committed, page = EVIDENCE / "plateau/contrasts.csv", (EVIDENCE / "plateau/README.md").read_text(encoding="utf-8")
    expected = pd.read_csv(committed).to_dict("records")
    for row, wanted in zip(table.frame.to_dict("records"), expected, strict=True):
        axes = [axis for axis in AXES if row[axis] and pd.notna(wanted[axis])]
        assert [row[key] for key in (*axes, *STATISTICS)] == [wanted[key] for key in (*axes, *STATISTICS)]
    rows = [row for table in tables_of(page) for row in table]
    for row in table.readable.drop(columns="grid").to_dict("records"):
        assert [cell for cell in row.values() if cell] in rows


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
