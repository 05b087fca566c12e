"""The numbers of docs/findings/authors-scores.md, from the results that the paper's authors published.

python -m studies.authors_scores    writes them into the page, each between its comment and the end
"""

from pathlib import Path

import pandas as pd

from studies.outcomes import markdown, with_numbers
from symbert.pretrain.compute import linear_rate
from symbert.report.imported import AUTHORS
from symbert.report.published import COLUMNS, ESCAPE_LOSS, PLATEAU_ENDS, STEPS
from symbert.report.statistics import (
    TARGET,
    Crossing,
    comparisons,
    crossing_of,
    escapes_of,
    mean_curves,
    p_in_words,
    seed_scores,
)
from symbert.report.tidy import parted, read_losses, read_scores

PAGE = Path(__file__).parents[1] / "docs/findings/authors-scores.md"
OPERATORS = ("original", "symmetric", "pairwise")
GAINING = ["cola", "mrpc", "rte"]  # columns in which pairwise gains at base
WARM_UP = 10_000  # steps
COLLAPSED = 50_000  # step of the checkpoint at which `original` predicts one class of cola


def numbers_of(scores: pd.DataFrame, losses: pd.DataFrame) -> dict[str, str]:
    """The facts of the page by name, from all scores and losses of the authors."""
    final, curve = parted(scores, STEPS)
    columns = seed_scores(final[final["size"] == "base"])[list(COLUMNS)].groupby(level="attention")
    gain = columns.mean().loc["pairwise"] - columns.mean().loc["original"]
    ends = {operator: PLATEAU_ENDS["base", operator] for operator in OPERATORS}
    rates = {
        operator: sum(linear_rate(step, 1, WARM_UP, STEPS) for step in range(end)) for operator, end in ends.items()
    }
    half = half_the_steps(curve)
    both, no_collapse, no_cola = half.values()
    return {
        "scores": table_of_scores(final),
        "gains": ", ".join(f"{column} {gain[column]:.2f}" for column in GAINING),
        "other-columns": f"{gain.drop(GAINING).mean():.2f}".replace("-", "−"),
        "rte-std": f"{columns.std().loc['original', 'rte']:.2f}",
        "half": markdown(
            ["", "`pairwise` between", "`original` between", "ratio"],
            [[name, between(ours), between(theirs), ratio(ours, theirs)] for name, (ours, theirs) in half.items()],
        ),
        "half-ratio": ratio(*both),
        "half-collapse": ratio(*no_collapse),
        "half-cola": ratio(*no_cola),
        "half-line": f"{both[0].step / both[1].step:.2f} ({both[0].step:,.0f} and {both[1].step:,.0f})",
        "symmetric-curve": "{:.2f} at step {:,} to {:.2f}".format(*ends_of_symmetric(curve)),
        "ends": markdown(
            ["operator", "end", "of the steps of `original`", "integrated rate", "of that of `original`"],
            [
                [
                    operator,
                    f"{end:,}",
                    "" if operator == "original" else f"{end / ends['original']:.2f}",
                    f"{rates[operator]:,.0f}",
                    "" if operator == "original" else f"{rates[operator] / rates['original']:.2f}",
                ]
                for operator, end in ends.items()
            ],
        ),
        "steps-ratio": f"{ends['pairwise'] / ends['original']:.2f}",
        "rate-ratio": f"{rates['pairwise'] / rates['original']:.2f}",
        "escapes": table_of_escapes(losses),
    }


def table_of_scores(final: pd.DataFrame) -> str:
    """The differences of the GLUE score with intervals and p."""
    tested = [pair for pair in comparisons(final) if pair.score == "glue_score"]
    rows = []
    for pair in sorted(tested, key=lambda pair: (pair.size, pair.model)):
        row = [pair.size, f"{pair.model} − original", f"{pair.difference:.2f}"]
        row += [f"{pair.interval.low:.2f} to {pair.interval.high:.2f}", p_in_words(pair.p), p_in_words(pair.holm_p)]
        rows.append([cell.replace("-", "−") for cell in row])
    return markdown(["size", "compared", "difference", "Welch's 95 %", "p", "with Holm"], rows)


def half_the_steps(curve: pd.DataFrame) -> dict[str, tuple[Crossing, Crossing]]:
    """Where the curves of base, `pairwise` and `original`, reach 95 % of the highest final score: as they are, without
    one checkpoint, and without one column."""
    base = curve[curve["size"] == "base"]

    def crossings(scores: pd.DataFrame, left_out: tuple[int, ...] = ()) -> tuple[Crossing, Crossing]:
        means, _ = mean_curves(scores)
        line = TARGET * max(means[operator].iloc[-1] for operator in OPERATORS)
        return crossing_of(means["pairwise"], line), crossing_of(means["original"].drop([*left_out]), line)

    return {
        "all columns and checkpoints": crossings(base),
        f"without the checkpoint of `original` at {COLLAPSED:,}": crossings(base, (COLLAPSED,)),
        "without the column cola": crossings(base[base["column"] != "cola"]),
    }


def between(crossing: Crossing) -> str:
    """The checkpoints around a crossing."""
    return f"{crossing.before:,} and {crossing.after:,}"


def ratio(ours: Crossing, theirs: Crossing) -> str:
    """The range of the ratio of two crossings, whose checkpoints bound them."""
    return f"{ours.before / theirs.after:.2f} to {ours.after / theirs.before:.2f}"


def ends_of_symmetric(curve: pd.DataFrame) -> tuple[float, int, float]:
    """The first score of `symmetric` of base, its step, and the last score."""
    scores = mean_curves(curve[curve["size"] == "base"])[0]["symmetric"]
    return scores.iloc[0], int(scores.index[0]), scores.iloc[-1]


def table_of_escapes(losses: pd.DataFrame) -> str:
    """The ends of the plateau that the paper prints beside the escapes by a level of the loss, and the evaluation
    before each."""
    rows = []
    for size in ("base", "small"):
        for operator in OPERATORS:
            run = losses[(losses["size"] == size) & (losses["attention"] == operator)]
            escape = escapes_of(run.set_index("step")[["loss"]].T, ESCAPE_LOSS).median
            printed = PLATEAU_ENDS.get((size, operator))
            rows.append(
                [size, operator, f"{printed:,}" if printed else "–", f"{escape.before:,.0f}", f"{escape.at:,.0f}"]
            )
    return markdown(["size", "operator", "printed end", f"above {ESCAPE_LOSS} until", "escape"], rows)


def main() -> None:
    """Write the numbers into the page."""
    numbers = numbers_of(read_scores(AUTHORS / "scores.csv"), read_losses(AUTHORS / "losses.csv"))
    PAGE.write_text(with_numbers(PAGE.read_text(encoding="utf-8"), numbers), encoding="utf-8")


if __name__ == "__main__":
    main()
