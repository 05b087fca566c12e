"""docs/findings/authors-scores.md has the numbers of its command, and these follow by formulas written here."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from studies import authors_scores
from symbert.report.imported import AUTHORS
from symbert.report.tidy import read_losses, read_scores

OF_TASK = {"cola": ["matthews_correlation"], "mnli": ["accuracy", "accuracy_mm"]}
OF_TASK |= {task: ["combined_score"] for task in ("mrpc", "stsb", "qqp")}
NAME = re.compile(r"(Exp\d)_results/bert_(\w+?)_(\w+?)_\d+-\d+-(?:ckpt|seed)(\d+)_(\w+?)_\d+-\d+")
pytestmark = pytest.mark.study
WARM_UP, STEPS = 10_000, 200_000


@pytest.fixture(scope="module")
def numbers():
    made = authors_scores.numbers_of(read_scores(AUTHORS / "scores.csv"), read_losses(AUTHORS / "losses.csv"))
    return {name: text.replace("−", "-") for name, text in made.items()}


def rows_of(table):
    """The cells of a table by row, without its header."""
    return [[cell.strip() for cell in line[1:-1].split("|")] for line in table.splitlines()[2:]]


def test_the_page_has_the_numbers_of_its_command(tmp_path, monkeypatch):
    page = authors_scores.PAGE.read_text(encoding="utf-8")
    copy = tmp_path / "page.md"
    copy.write_text(re.sub(r"(<!-- (?!end)\S+ -->\n?)[^<]*(\n?<!-- end -->)", r"\1\2", page), encoding="utf-8")
    assert "0.0873" in page and "0.0873" not in copy.read_text(encoding="utf-8")
    monkeypatch.setattr(authors_scores, "PAGE", copy)
    authors_scores.main()
    assert copy.read_text(encoding="utf-8") == page, "python -m studies.authors_scores writes them"


def test_every_number_has_a_place_on_the_page(numbers):
    page = authors_scores.PAGE.read_text(encoding="utf-8")
    assert {*re.findall(r"<!-- (\S+) -->", page)} == {*numbers, "end"}


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


def test_the_table_of_scores(numbers, scores):
    final, rows = scores.loc["Exp2"].mean(axis=1), []
    for size in ("base", "small"):
        original = final[size]["vanilla"].to_numpy()
        exact = {name: split_p(final[size][name].to_numpy(), original) for name in ("pairwise", "symmetric")}
        low, high = sorted(exact.values())
        holm = {name: max(2 * low, high) if p == high and low != high else min(2 * low, 1) for name, p in exact.items()}
        for name in exact:
            ours = final[size][name].to_numpy()
            interval = stats.ttest_ind(ours, original, equal_var=False).confidence_interval(0.95)
            cells = [f"{ours.mean() - original.mean():.2f}", f"{interval.low:.2f} to {interval.high:.2f}"]
            rows.append([size, f"{name} - original", *cells, f"{exact[name]:.4f}", f"{holm[name]:.4f}"])
    assert rows_of(numbers["scores"]) == rows


def test_the_columns_in_which_pairwise_gains(numbers, scores):
    base = scores.loc["Exp2", "base"]
    gain = base.loc["pairwise"].mean() - base.loc["vanilla"].mean()
    small = ["cola", "mrpc", "rte"]
    assert {*gain.nlargest(3).index} == {*small}
    assert numbers["gains"] == "cola {:.2f}, mrpc {:.2f}, rte {:.2f}".format(*gain[small])
    assert numbers["other-columns"] == f"{gain.drop(small).mean():.2f}"
    assert numbers["rte-std"] == f"{base.loc['vanilla']['rte'].std():.2f}"


def crossing(curve, line):
    """The checkpoints around the first crossing, and the step on the straight line between them."""
    steps, values = curve.index.to_numpy(), curve.to_numpy()
    after = next(place for place in range(1, steps.size) if values[place - 1] < line <= values[place])
    before = after - 1
    share = (line - values[before]) / (values[after] - values[before])
    return steps[before], steps[after], steps[before] + share * (steps[after] - steps[before])


def test_half_the_steps(numbers, scores):
    curves = scores.loc["Exp3", "base"].mean(axis=1)
    others = scores.loc["Exp3", "base"].drop(columns="cola").mean(axis=1)
    lines = [0.95 * max(means[name].iloc[-1] for name in ("pairwise", "vanilla")) for means in (curves, others)]
    assert scores.loc["Exp3", "base", "vanilla", 50_000]["cola"] == 0, "one class throughout has no correlation"
    pairs = [
        (crossing(curves["pairwise"], lines[0]), crossing(curves["vanilla"], lines[0])),
        (crossing(curves["pairwise"], lines[0]), crossing(curves["vanilla"].drop(50_000), lines[0])),
        (crossing(others["pairwise"], lines[1]), crossing(others["vanilla"], lines[1])),
    ]
    rows = rows_of(numbers["half"])
    for row, ((low, high, _), (lowest, highest, _)) in zip(rows, pairs, strict=True):
        ratio = f"{low / highest:.2f} to {high / lowest:.2f}"
        assert row[1:] == [f"{low:,} and {high:,}", f"{lowest:,} and {highest:,}", ratio]
    assert [numbers[f"half-{name}"] for name in ("ratio", "collapse", "cola")] == [row[3] for row in rows]
    (_, _, ours), (_, _, theirs) = pairs[0]
    assert numbers["half-line"] == f"{ours / theirs:.2f} ({ours:,.0f} and {theirs:,.0f})"
    first, *_, last = curves["symmetric"]
    assert curves["symmetric"].max() < lines[0] and first == max(
        curve.iloc[0] for _, curve in curves.groupby("operator")
    )
    assert numbers["symmetric-curve"] == f"{first:.2f} at step 6,000 to {last:.2f}"


def test_the_escapes(numbers, authors_losses):
    rows = rows_of(numbers["escapes"])
    for size, operator, printed, above, escape in rows:
        first = next(at for at, loss in enumerate(authors_losses[size, operator], start=1) if loss <= 5.8)
        assert (above, escape) == (f"{250 * (first - 1):,}", f"{250 * first:,}"), "evaluated every 250 steps"
        if size == "base":
            assert abs(250 * first / int(printed.replace(",", "")) - 1) <= 0.1
    assert len(rows) == 6 and rows[3][2:] == ["12,000", "13,000", "13,250"], "a tenth above 12,000 lies between"


def test_the_integrated_rates(numbers):
    rate = np.minimum(np.arange(STEPS) / WARM_UP, (STEPS - np.arange(STEPS)) / (STEPS - WARM_UP))
    travelled = {step: rate[:step].sum() for step in (25_000, 13_500, 12_000)}
    first, *others = rows_of(numbers["ends"])
    assert first == ["original", "25,000", "", "19,407", ""]
    assert travelled[25_000] == pytest.approx(19_407.4, abs=0.1)
    for (name, end, *cells), step in zip(others, (13_500, 12_000), strict=True):
        assert end == f"{step:,}" and [float(cell.replace(",", "")) for cell in cells] == pytest.approx(
            [step / 25_000, travelled[step], travelled[step] / travelled[25_000]], rel=0.01, abs=0.0051
        ), name
    assert [numbers["steps-ratio"], numbers["rate-ratio"]] == [others[1][2], others[1][4]]
