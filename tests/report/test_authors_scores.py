"""docs/findings/authors-scores.md: its numbers follow from the authors' files, by formulas written here."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

OF_TASK = {"cola": ["matthews_correlation"], "mnli": ["accuracy", "accuracy_mm"]}
OF_TASK |= {task: ["combined_score"] for task in ("mrpc", "stsb", "qqp")}
NAME = re.compile(r"(Exp\d)_results/bert_(\w+?)_(\w+?)_\d+-\d+-(?:ckpt|seed)(\d+)_(\w+?)_\d+-\d+")
WARM_UP, STEPS = 10_000, 200_000


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs/findings/authors-scores.md").read_text(encoding="utf-8").replace("−", "-")


@pytest.fixture(scope="module")
def scores(root):
    """Points by experiment, size, operator, seed or checkpoint, and column."""
    rows = []
    for folder, results in pd.read_parquet(root / "tests/report/authors/results.parquet").groupby("folder"):
        *place, task = NAME.fullmatch(folder).groups()
        values = dict(zip(results["name"], results["value"], strict=True))
        for number, metric in enumerate(OF_TASK.get(task, ["accuracy"]) if task != "wnli" else []):
            rows.append((*place[:3], int(place[3]), f"{task}{number or ''}", 100 * values[f"eval_{metric}"]))
    table = pd.DataFrame(rows, columns=["experiment", "size", "operator", "number", "column", "score"])
    return table.pivot(index=["experiment", "size", "operator", "number"], columns="column", values="score")


def split_p(first, second):
    """The share of all splits of both samples whose means differ by as much."""
    pool, seen = np.concatenate([first, second]), abs(first.mean() - second.mean())
    chosen = [list(part) for part in itertools.combinations(range(pool.size), first.size)]
    return np.mean([abs(pool[part].mean() - np.delete(pool, part).mean()) >= seen - 1e-12 for part in chosen])


def test_the_table_of_scores(page, scores):
    final = scores.loc["Exp2"].mean(axis=1)
    for size in ("base", "small"):
        original = final[size]["vanilla"].to_numpy()
        exact = {name: split_p(final[size][name].to_numpy(), original) for name in ("pairwise", "symmetric")}
        low, high = sorted(exact.values())
        holm = {name: max(2 * low, high) if p == high and low != high else min(2 * low, 1) for name, p in exact.items()}
        for name in exact:
            ours = final[size][name].to_numpy()
            interval = stats.ttest_ind(ours, original, equal_var=False).confidence_interval(0.95)
            row = (
                f"| {size} | {name} | {ours.mean() - original.mean():.2f} | {interval.low:.2f} to {interval.high:.2f} |"
            )
            assert f"{row} {exact[name]:.4f} | {holm[name]:.4f} |" in page


def test_the_columns_in_which_pairwise_gains(page, scores):
    base = scores.loc["Exp2", "base"]
    gain = base.loc["pairwise"].mean() - base.loc["vanilla"].mean()
    small = ["cola", "mrpc", "rte"]
    assert "cola ({:.2f} points), mrpc ({:.2f}) and rte ({:.2f})".format(*gain[small]) in " ".join(page.split())
    assert f"its mean is {gain.drop(small).mean():.2f}." in " ".join(page.split())
    assert f"standard deviation of {base.loc['vanilla']['rte'].std():.2f} points" in " ".join(page.split())


def crossing(curve, line):
    """The checkpoints around the first crossing, and the step on the straight line between them."""
    steps, values = curve.index.to_numpy(), curve.to_numpy()
    after = next(place for place in range(1, steps.size) if values[place - 1] < line <= values[place])
    before = after - 1
    share = (line - values[before]) / (values[after] - values[before])
    return steps[before], steps[after], steps[before] + share * (steps[after] - steps[before])


def test_half_the_steps(page, scores):
    curves = scores.loc["Exp3", "base"].mean(axis=1)
    line = 0.95 * max(curves[name].iloc[-1] for name in ("pairwise", "vanilla"))
    (low, high, ours), (lowest, highest, theirs) = (crossing(curves[name], line) for name in ("pairwise", "vanilla"))
    words = " ".join(page.split())
    assert f"checkpoints at {low:,} and {high:,} steps, by `original` between {lowest:,} and {highest:,}" in words
    assert f"between {low / highest:.2f} and {high / lowest:.2f}" in words
    assert f"it is {ours / theirs:.2f} ({ours:,.0f} and {theirs:,.0f})" in words
    first, *_, last = curves["symmetric"]
    assert curves["symmetric"].max() < line and first == max(curve.iloc[0] for _, curve in curves.groupby("operator"))
    assert f"starts highest ({first:.2f} at step 6,000) and ends below the line, at {last:.2f}" in words
    assert scores.loc["Exp3", "base", "vanilla", 50_000]["cola"] == 0, "one class throughout has no correlation"
    before, after, _ = crossing(curves["vanilla"].drop(50_000), line)
    assert f"crosses the line between {before:,} and {after:,}" in words
    assert f"between {low / after:.2f} and {high / before:.2f}" in words
    others = scores.loc["Exp3", "base"].drop(columns="cola").mean(axis=1)
    line = 0.95 * max(others[name].iloc[-1] for name in ("pairwise", "vanilla"))
    (low, high, _), (lowest, highest, _) = (crossing(others[name], line) for name in ("pairwise", "vanilla"))
    assert f"between {low:,} and {high:,} and `original` between {lowest:,} and {highest:,}: " in words
    assert f": {low / highest:.2f} to {high / lowest:.2f}." in words


def test_the_escapes(page, authors_losses):
    words = " ".join(page.split())
    assert "--escape-loss 5.8" in words
    first = {model: next(250 * at for at, loss in enumerate(losses, start=1) if loss <= 5.8)
             for model, losses in authors_losses.items()}  # fmt: skip
    names = ("original", "symmetric", "pairwise")
    base, small = ([first[size, name] for name in names] for size in ("base", "small"))
    assert "{:,} (`original`), {:,} (`symmetric`) and {:,} (`pairwise`), within a tenth".format(*base) in words
    assert all(abs(step / end - 1) <= 0.1 for step, end in zip(base, (25_000, 13_500, 12_000), strict=True))
    assert "At small they are {:,}, {:,} and {:,};".format(*small) in words and small[0] > 1.1 * 12_000


def test_the_integrated_rates(page):
    rate = np.minimum(np.arange(STEPS) / WARM_UP, (STEPS - np.arange(STEPS)) / (STEPS - WARM_UP))
    travelled = {step: rate[:step].sum() for step in (25_000, 13_500, 12_000)}
    for step, name in ((13_500, "symmetric"), (12_000, "pairwise")):
        row = next(line for line in page.splitlines() if line.startswith(f"| {name} | {step:,} |"))
        cells = [float(cell.replace(",", "")) for cell in row.strip("| ").split(" | ")[2:]]
        assert cells == pytest.approx(
            [step / 25_000, travelled[step], travelled[step] / travelled[25_000]], rel=0.01, abs=0.0051
        )
    assert f"| original | 25,000 | | {19_407:,} | |" in page and travelled[25_000] == pytest.approx(19_407.4, abs=0.1)
