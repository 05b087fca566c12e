"""The analysis that dose.md declares: the integrated learning rate of the escape over the width of the start."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from scipy.stats import page_trend_test, ttest_1samp

from studies.outcomes import COPIES, LEVEL, OPERATORS, at, interval, markdown
from studies.theory import NARROW, WIDE, deviation_of, escape, fitted
from symbert.report.statistics import holm, p_in_words

PLAN = Path(__file__).with_suffix(".md")
WIDTHS = ["0.08", "0.16", "0.31", "0.60", "1.20", "1.80", "3.50", "7.00"]
RISING, LARGEST = WIDTHS[:6], WIDTHS[-1]  # the widths over which the escape was predicted to fall; of collapsed entropy
AFTER = "1.80"  # the width that the largest is compared with
TEXTS = {"copying-48": "copies", "documentation-48": "documentation"}
SCALES = {"√width": np.sqrt, "width": np.asarray, "ln width": np.log}


def cells_of(runs: pd.DataFrame, operator: str, outcome: str, text: str = "copying-48") -> pd.DataFrame:
    """An outcome by seed and width, of the seeds that have every width."""
    cells = at(runs, study="dose", text=text).pivot(index="seed", columns="attention", values=outcome)
    return cells[[f"{operator}-{width}" for width in WIDTHS]].set_axis(WIDTHS, axis="columns").dropna()


def predicted() -> dict[str, list[str]]:
    """The rows of the table of predictions in dose.md."""
    rows = re.findall(r"^\| `(.*)$", PLAN.read_text(encoding="utf-8"), re.M)
    return {row.split(" | ")[0].replace("`", ""): row.rstrip(" |").split(" | ")[1:] for row in rows}


def words(values: np.ndarray, digits: int = 3) -> str:
    """A mean with Student's interval over seeds."""
    low, high = interval(values)
    return f"{np.mean(values):.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]".replace("-", "−")


def numbers_of(runs: pd.DataFrame) -> dict[str, str]:
    """Means beside predictions, and tests, on both texts; and the numbers of sentences on them."""
    means = {f"predicted: {name}": values for name, values in predicted().items()}
    tests = {}
    for text, place in TEXTS.items():
        means |= {f"{place}: {name}": line for name, line in means_of(runs, text).items()}
        tests |= {f"{place}: {name}": line for name, line in tests_of(runs, text).items()}
    header = ["", "slope in √width", "coefficient of an added square", f"residuals · 10³ in {', '.join(SCALES)}"]
    header += ["p of the trend", "steps at 7 to 1.8", "p"]
    narrowest = cells_of(runs, "pairwise", "distance")[WIDTHS[0]].mean()
    line = float(predicted()["pairwise, line through its own two"][0])
    by_doubling = np.log2(np.array(RISING, float))
    rising = cells_of(runs, "original", "distance")[RISING].to_numpy()
    facts = {
        "dose:pairwise-0.08": f"{narrowest:.3f}",
        "dose:pairwise-0.08:line": f"{line:.3f}",
        "dose:pairwise-0.08:from-line": f"{abs(narrowest - line):.3f}",
        "dose:original:saved-by-doubling": words(-np.polyfit(by_doubling, rising.T, 1)[0]),
    }
    for operator in ("original", "pairwise"):
        slopes = {place: slopes_of(cells_of(runs, operator, "distance", text)) for text, place in TEXTS.items()}
        name = f"dose-documentation:{operator}"
        facts[f"{name}:slope-less-copies"] = words(slopes["documentation"] - slopes["copies"])
        facts[f"{name}:p"] = tests[f"documentation: {operator}"][3]
        for width, mean in zip(WIDTHS, means[f"documentation: {operator}"], strict=True):
            facts[f"{name}-{width}"] = mean.replace("≥", "at least")
    return {
        "dose-means": markdown(["∫η by width", *WIDTHS], [[name, *line] for name, line in means.items()]),
        "dose-tests": markdown(header, [[name, *line] for name, line in tests.items()]),
        **facts,
    }


def means_of(runs: pd.DataFrame, text: str) -> dict[str, list[str]]:
    """By operator ∫η of each width, the mean over seeds; a bound where runs do not escape."""
    rows = {}
    for name in ("original", "pairwise"):
        distances, not_escaped = (cells_of(runs, name, outcome, text) for outcome in ("distance", "not_escaped"))
        means = distances.mean()
        rows[name] = [f"{'≥ ' if not_escaped[width].any() else ''}{means[width]:.3f}" for width in WIDTHS]
    return rows


def slopes_of(cells: pd.DataFrame) -> np.ndarray:
    """Per seed, the slope of the least-squares line in √width over the widths of predicted fall."""
    return np.array([np.polyfit(np.sqrt(np.array(RISING, float)), seed, 1)[0] for seed in cells[RISING].to_numpy()])


def tests_of(runs: pd.DataFrame, text: str) -> dict[str, list[str]]:
    """By operator: slope, square, residuals and the two declared tests."""
    lines, p_values = {}, []
    widths = np.array(RISING, float)
    for operator in ("original", "pairwise"):
        cells = cells_of(runs, operator, "distance", text)
        values = cells[RISING].to_numpy()
        squares = np.array([np.polyfit(np.sqrt(widths), seed, 2)[0] for seed in values])
        residuals = (
            np.mean([np.polyfit(scale(widths), seed, 1, full=True)[1] for seed in values]) for scale in SCALES.values()
        )
        steps = cells_of(runs, operator, "step", text)
        ratios = np.log(steps[LARGEST] / steps[AFTER])
        low, high = np.exp(interval(ratios))
        # Page's test expects ranks to rise, so the columns stand in the order of falling widths.
        p_values += [page_trend_test(values[:, ::-1], method="exact").pvalue, ttest_1samp(ratios, 0).pvalue]
        shape = [words(slopes_of(cells)), words(squares), " / ".join(f"{1e3 * size:.2f}" for size in residuals)]
        largest, after = (cells_of(runs, operator, "not_escaped", text)[width].any() for width in (LARGEST, AFTER))
        late = f"{'at least ' if largest else ''}{np.exp(ratios.mean()):.2f} [{low:.2f}, {high:.2f}]"
        late += ", and runs do not escape at 1.8" if after else ""
        lines[operator] = [*shape, "", late, ""]
    corrected = holm(p_values)
    for line, trend, late in zip(lines.values(), corrected[::2], corrected[1::2], strict=True):
        line[3], line[5] = p_in_words(trend), p_in_words(late)
    return lines


def draw(runs: pd.DataFrame) -> plt.Figure:
    """Integrated learning rate at the escape over the width of the start, on copies beside what was predicted."""
    figure, rows = plt.subplots(2, 2, figsize=(9, 7), sharex=True, sharey="row", layout="constrained")
    known = at(runs, study="plateau", **COPIES[2]).groupby("attention")["distance"].mean()
    constants = fitted(known["original"], known["original-wide"])
    roots = np.linspace(0.25, 2.7, 50)
    for (text, place), panels in zip(TEXTS.items(), rows, strict=True):
        for panel, name in zip(panels, ("original", "pairwise"), strict=True):
            color = OPERATORS[name][2]
            dose = at(runs, study="dose", text=text)
            dose = dose[dose["attention"].str.startswith(f"{name}-")]
            for not_escaped, face, label in ((False, color, "new seeds"), (True, "white", "not escaped: at least")):
                shown = dose[dose["not_escaped"] == not_escaped]
                widths = shown["attention"].str.split("-").str[-1].astype(float)
                if len(shown):
                    panel.plot(
                        np.sqrt(widths), shown["distance"], "o", mfc=face, mec=color, ms=4, alpha=0.7, label=label
                    )
            panel.set(title=f"{name}, {place}", ylim=(0, None))
    for panel, name in zip(rows[0], ("original", "pairwise"), strict=True):
        fit = known[[*OPERATORS[name][:2]]]
        panel.plot(np.sqrt([NARROW, WIDE]), fit, "X", color="#C00000", ms=8, label="plateau, fitted to")
        line = np.polynomial.Polynomial.fit(np.sqrt([NARROW, WIDE]), fit, 1)
        panel.plot(roots, line(roots), ":", color="grey", label="predicted: a line in √width")
        if name == "original":
            escapes = [escape(deviation_of(root**2), *constants) for root in roots]
            panel.plot(roots, escapes, "--", color="grey", label="predicted: the theory")
    for panel in rows.flat:
        panel.legend(frameon=False, fontsize=8)
    for panel in rows[1]:
        panel.set_xlabel("√ of the width of the initial logits")
    for panels in rows:
        panels[0].set_ylabel(f"∫η at {LEVEL} nats")
    return figure
