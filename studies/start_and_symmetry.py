"""The finding "start and symmetry": its numbers, tables and figures, from docs/findings/start-and-symmetry/runs.csv.

python -m studies.start_and_symmetry
"""

import itertools
from collections.abc import Iterator
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.patches import ConnectionPatch
from scipy.stats import norm, ttest_ind
from scipy.stats import t as student

from studies import direction, dose, mechanism, theory
from studies.collected import RUNS, Point
from studies.contrasts import declared, effect, in_words
from studies.outcomes import (
    COPIES,
    LAYERS,
    LEVEL,
    OPERATORS,
    RATES,
    at,
    cell,
    interval,
    markdown,
    read_runs,
    with_numbers,
)
from symbert.report.statistics import p_in_words

PAGES = (
    RUNS.parents[1] / "start-and-symmetry.md",
    RUNS.with_name("studies.md"),  # its appendices
    RUNS.parents[1] / "theory.md",
)
PAIRS = [
    ("symmetric", "original"),
    ("symmetric-wide", "original-wide"),
    ("original-wide", "original"),
    ("pairwise", "pairwise-narrow"),
    ("symmetric-wide", "symmetric"),
    ("pairwise-narrow", "original"),
    ("pairwise", "original-wide"),
    ("pairwise", "original"),
    ("symmetric-wide", "original"),
]
CONTROLS = [
    ("original-symmetric", "original"),
    ("symmetric-others", "symmetric"),
    ("original-unscaled", "original-wide"),
]
CONTROLS += [("shared", "original"), ("symmetric", "original-wide"), ("symmetric", "original-symmetric")]
UNNAMED = [("pairwise", "original"), ("symmetric-wide", "original")]  # pairs of the later study without a contrast
UNNAMED += [("symmetric", "original-wide"), ("symmetric", "original-symmetric")]
START = ("original-wide", "original")
COMPARED = ("original-wide", "symmetric", "symmetric-wide", "pairwise-narrow", "pairwise")  # with `original`
LATER = "start-and-symmetry"
DECLARING = ("plateau", LATER, "direction", "own-position", "width")  # studies that declare contrasts
COLORS = ("#56B4E9", "#0072B2", "#000000", "#D55E00", "#009E73")  # of depths and texts
WIDTHS = [
    {"text": "copying-48", "size": "small", "learning_rate": rate} for rate in (1e-3, 2.5e-4)
]  # BERT-small's shape
WIDTHS += [{"text": "documentation-48", "size": "small", "learning_rate": 2.5e-4}]
PLACES = {  # of a number on a page, named PLACE:FIRST/SECOND
    "copies-2": {"grid": "paired", **COPIES[2]},
    "copies-4": {"grid": "paired", **COPIES[4]},
    "copies-8-first": {"grid": "paired", **COPIES[8]},
    "copies-8": {"study": LATER, **COPIES[8]},
    "copies-2-slow": {"grid": "paired", **RATES[5e-4]},
    "copies-2-fast": {"grid": "paired", **RATES[2e-3]},
    "documentation-8": {"study": LATER, "text": "documentation-48"},
    "documentation-2": {"grid": "paired", "text": "documentation-48"},
    "own-copies": {"study": "own-position", "grid": "copying"},
    "own-documentation": {"study": "own-position", "grid": "documentation"},
    **{
        name: {"study": "direction", "grid": name}
        for name in ("directed-2", "directed-8", "addressed-2", "addressed-8", "repeated-2", "repeated-8", "cycled-2")
    },
    "depth": {"grid": "8 to 2 layers"},
    "growth": {"grid": "growth"},
    "small-copies": {"study": "width", **WIDTHS[1]},
    "small-copies-fast": {"study": "width", **WIDTHS[0]},
    "small-documentation": {"study": "width", **WIDTHS[2]},
}
ELSEWHERE = {  # a word after the name of a number, for its ratio at another level or by the report's rule
    "0.2-higher": "by step +0.2",
    "0.2-lower": "by step -0.2",
    "0.6-lower": "by step -0.6",
    "rule": "by rule",
    "rule-two-thirds": "by rule, two thirds",
}
SETTINGS = {  # of the table on the page: its places, and how runs there are found
    "copies, 8 layers, 1e-3": ("copies-8", {"study": LATER, **COPIES[8]}),
    "English, 8 layers, 1e-3": ("documentation-8", {"study": LATER, "text": "documentation-48"}),
    "copies, BERT-small's shape, 1e-3": ("small-copies-fast", {"study": "width", **WIDTHS[0]}),
    "the same, 2.5e-4 (added after the pilot)": ("small-copies", {"study": "width", **WIDTHS[1]}),
    "English, BERT-small's shape, 2.5e-4": ("small-documentation", {"study": "width", **WIDTHS[2]}),
}
QUESTIONS = {
    "scale: `original`, wide / narrow": ("original-wide", "original"),
    "scale: `pairwise`, wide / narrow": ("pairwise", "pairwise-narrow"),
    "the paper’s: `pairwise` / `original`": ("pairwise", "original"),
    "both wide: `pairwise` / `original`": ("pairwise", "original-wide"),
    "the paper’s: `symmetric` / `original`": ("symmetric", "original"),
    "both wide: `symmetric` / `original`": ("symmetric-wide", "original-wide"),
}
DOCUMENTATION = {
    length: {"text": f"documentation-{length}", "size": "tiny", "learning_rate": 1e-3} for length in (48, 16)
}


def chosen_afterwards(runs: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Pairs at each depth, rate and text of plateau, their interactions, and pairs of the later study that it did not
    name: nothing is corrected for their number."""
    every, later = runs, runs[runs["study"] == LATER]
    runs = runs[runs["study"] == "plateau"]

    def cells(attentions: tuple[str, str], *places: Point, seeds: int) -> list[pd.DataFrame]:
        points = [{**place, "attention": attention} for place in places for attention in attentions]
        return [cell(runs, point, [*range(1, seeds + 1)]) for point in points]

    for place, pair in itertools.product(WIDTHS, PAIRS[-4:-1]):
        compared = [cell(at(every, study="width"), {**place, "attention": name}, [*range(41, 49)]) for name in pair]
        yield {"study": "width", "grid": "unnamed", **place, "first": pair[0], "second": pair[1]} | effect(*compared)
    for place, last, pairs in ((COPIES[8], 20, UNNAMED), ({**COPIES[8], "text": "documentation-48"}, 18, UNNAMED[:1])):
        for pair in pairs:
            compared = [cell(later, {**place, "attention": name}, [*range(11, last + 1)]) for name in pair]
            yield {"study": LATER, "grid": "unnamed", **place, "first": pair[0], "second": pair[1]} | effect(*compared)
    for place in (*COPIES.values(), RATES[5e-4], RATES[2e-3], *DOCUMENTATION.values()):
        for pair in (*PAIRS, *CONTROLS):
            compared = cells(pair, place, seeds=10)
            if all(map(len, compared)):
                yield {"grid": "paired", **place, "first": pair[0], "second": pair[1]} | effect(*compared)
    for grid, places in (("8 to 2 layers", (COPIES[8], COPIES[2])), ("rate 5e-4 to 2e-3", (RATES[5e-4], RATES[2e-3]))):
        for pair in PAIRS:
            yield {"grid": grid, "first": pair[0], "second": pair[1]} | effect(*cells(pair, *places, seeds=5))
    for name in (*(name for *names, _ in OPERATORS.values() for name in names), "shared", "shared-wide"):
        deep, shallow = (cells((name,), COPIES[layers], seeds=5)[0] for layers in (8, 2))
        yield {"grid": "growth", "first": f"{name}, 8 layers", "second": "2 layers"} | effect(deep, shallow)


def contrasts_of(runs: pd.DataFrame) -> pd.DataFrame:
    """All contrasts, the declared ones first."""
    rows = [row for study in DECLARING for row in declared(runs, study)]
    return pd.DataFrame([*rows, *chosen_afterwards(runs)])


# Tables


def words_table(runs: pd.DataFrame) -> str:
    """Word pieces: steps and integrated learning rate to their level by seed, and the ratio of steps to `original`."""
    study = at(runs, study="word-pieces")
    lines = []
    for attention in study["attention"].unique():
        pair = [at(study, attention=name).set_index("seed").sort_index() for name in (attention, "original")]
        not_escaped = pair[0]["not_escaped"]
        steps = (f"{'at least ' if not_escaped[seed] else ''}{step:,.0f}" for seed, step in pair[0]["step"].items())
        ratio = "–" if attention == "original" else in_words(pd.Series(effect(*pair)))
        distances = (f"{distance:.2f}" for distance in pair[0]["distance"])
        lines.append([f"`{attention}`", " / ".join(steps), " / ".join(distances), ratio])
    return markdown(["", "steps by seed", "∫η by seed", "ratio of steps to `original`"], lines)


def width_table(contrasts: pd.DataFrame) -> str:
    """The ratios at BERT-small's shape by text and rate; a bound where runs of the first do not escape."""
    columns = {}
    for place in WIDTHS:
        rows = at(contrasts, study="width", **place).set_index(["first", "second"]).loc[PAIRS[:-1]]
        name = np.format_float_scientific(place["learning_rate"], trim="-", exp_digits=1)
        columns[f"{dose.TEXTS[place['text']]}, {name}"] = [ratio_or_count(row) for _, row in rows.iterrows()]
    pairs = [f"`{first}` / `{second}`" for first, second in PAIRS[:-1]]
    return markdown(["BERT-small's shape, eight seeds", *columns], zip(pairs, *columns.values(), strict=True))


def ratio_or_count(row: pd.Series) -> str:
    """A ratio, a bound where some runs do not escape, and how many escape where none of the first does: that would
    measure the horizon."""
    first, second = (int(count) for count in row["not_escaped"].split("/")[:2])
    if first == row["seeds"]:
        return f"0 of {row['seeds']} escape"
    bound = "at least " if first and not second else "at most " if second and not first else ""
    return f"{bound}{in_words(row)}"


def together(contrasts: pd.DataFrame) -> str:
    """The ratio of several grids by random effects (DerSimonian and Laird 1986), with the normal 95 % interval.

    The variance of a grid's mean logarithm follows from its Student's interval.
    """
    means = np.log(contrasts["ratio"].to_numpy())
    half = np.log(contrasts["high"] / contrasts["low"]).to_numpy() / 2
    variances = (half / student.ppf(0.975, contrasts["seeds"].to_numpy() - 1)) ** 2
    weights = 1 / variances
    spread = (weights * (means - np.average(means, weights=weights)) ** 2).sum() - (len(means) - 1)
    between = max(0.0, spread / (weights.sum() - (weights**2).sum() / weights.sum()))
    weights = 1 / (variances + between)
    middle, error = np.average(means, weights=weights), weights.sum() ** -0.5
    bounds = np.exp([middle, middle - norm.ppf(0.975) * error, middle + norm.ppf(0.975) * error])
    return in_words(pd.Series(bounds, ["ratio", "low", "high"]))


def last_losses(runs: pd.DataFrame) -> str:
    """Differences of the last validation loss from `original`, by text and shape."""
    places = {f"{dose.TEXTS[text]}, 8 layers": {"study": LATER, **COPIES[8], "text": text} for text in dose.TEXTS}
    places |= {
        f"BERT-small's shape, {dose.TEXTS[place['text']]}, {place['learning_rate']:g}": {"study": "width", **place}
        for place in WIDTHS
    }
    columns = {}
    for name, place in places.items():
        losses = last_losses_of(at(runs, **place))
        columns[name] = []
        for model in COMPARED:
            differences = (losses[model] - losses["original"]).to_numpy()
            low, high = interval(differences)
            cell = f"{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]".replace("-", "−")
            columns[name].append(f"**{cell}**" if low > 0 or high < 0 else cell)
    return markdown(["", *columns], zip((f"`{model}`" for model in COMPARED), *columns.values(), strict=True))


def ratios(contrasts: pd.DataFrame) -> dict[str, str]:
    """Every ratio by place and pair, with its interval; and, with a further word, what else a contrast says."""
    facts = {}
    for name, place in PLACES.items():
        for _, row in at(contrasts, **place).iterrows():
            facts |= facts_of_ratio(f"{name}:{row['first']}/{row['second']}".replace(" ", ""), row)
    return facts


def facts_of_ratio(name: str, row: pd.Series) -> dict[str, str]:
    """A ratio with its interval and alone, at other levels and by the rule, its seeds below one; of two cells what is
    saved in ∫η and the difference in steps, and Holm's p where it is declared."""
    facts = {name: ratio_or_count(row), f"{name}:ratio": f"{row['ratio']:.2f}"}
    facts[f"{name}:below"] = f"{row['below_one']} of {row['seeds']}"
    facts |= {f"{name}:{word}": f"{row[column]:.2f}" for word, column in ELSEWHERE.items()}
    if pd.notna(row.get("saved")):
        saved = f"{row['saved']:.3f} [{row['saved_low']:.3f}, {row['saved_high']:.3f}]"
        facts[f"{name}:saved"] = saved.replace("-", "−")
        facts[f"{name}:steps"] = f"{-row['saved_steps']:.0f}".replace("-", "−")
    if pd.notna(row.get("holm_p")):
        facts[f"{name}:p"] = p_in_words(row["holm_p"], 3)
    return facts


def ratios_elsewhere(runs: pd.DataFrame) -> dict[str, str]:
    """Ratios of cells that no study compares by a contrast, and ratios of ratios, by name."""

    def ratio(study: str, place: Point, seeds: range, *attentions: str) -> dict[str, Any]:
        return effect(*(cell(at(runs, study=study), {**place, "attention": name}, [*seeds]) for name in attentions))

    english, later = {"text": "documentation-48", "size": "tiny"}, range(11, 21)
    pieces = {"text": "documentation-words-48"}
    both = ("symmetric-wide", "original-wide", "symmetric", "original")
    rows = {
        "own-documentation:symmetric-wide/symmetric": ratio("own-position", english, range(26, 36), *both[::2]),
        "documentation-2:symmetric-others/original": ratio(
            "plateau", english, range(1, 11), "symmetric-others", both[3]
        ),
        "wide-tie-by-narrow": ratio(LATER, COPIES[8], later, *both),
        "wide-tie-by-narrow-first": ratio("plateau", COPIES[8], range(1, 6), *both),
        **{
            f"dose:{first}/{second}": ratio("dose", english, range(21, 26), first, second)
            for first, second in (
                ("original-1.20", "original-0.31"),
                ("original-1.20", "original-1.80"),
                ("pairwise-0.60", "pairwise-1.80"),
            )
        },
        **{
            f"word-pieces:{name}/original": ratio("word-pieces", pieces, range(36, 39), name, "original")
            for name in ("original-wide", "symmetric", "pairwise")
        },
        **{
            name: direction.ratio_of(runs, pair, layers, *texts)
            for name, pair, layers, *texts in (
                ("start-directed-by-copies", START, 8, "directed", "copying"),
                ("start-directed-by-copies-2", START, 2, "directed", "copying"),
                ("tie-neighbours-by-swapped", direction.TIE, 2, "neighbours", "swapped"),
                ("tie-cycled-by-swapped", direction.TIE, 2, "cycled", "swapped"),
                ("directed-2:symmetric/original-symmetric", direction.TIE_AFTER_IT, 2, "directed"),
            )
        },
    }
    return {key: fact for name, row in rows.items() for key, fact in facts_of_ratio(name, pd.Series(row)).items()}


def facts_elsewhere(runs: pd.DataFrame, contrasts: pd.DataFrame) -> dict[str, str]:
    """Numbers of sentences that are no ratio of steps, by name."""
    tie = at(contrasts, **PLACES["documentation-8"], first="symmetric", second="original").iloc[0]
    own = at(contrasts, **PLACES["own-documentation"])
    before = at(contrasts, study="width", text="documentation-48")["by step +0.2"]
    travelled = {}
    for name, (first, second) in itertools.product(("small-copies", "small-copies-fast"), (START, direction.TIE)):
        small = at(runs, **PLACES[name]).set_index(["attention", "seed"])["distance"].map(np.log)
        travelled[f"{name}:{first}/{second}:distance"] = f"{np.exp((small[first] - small[second]).mean()):.2f}"
    tried = at(runs, study="width", text="documentation-48", seed=41).set_index(["attention", "learning_rate"])["step"]
    small_losses = last_losses_of(at(runs, **PLACES["small-copies-fast"]))
    addressed = last_losses_of(at(runs, text="addressed-48", size="deep8"))
    plateaus = runs[runs["study"] != "search"]
    return {
        "tie-on-documentation:from-one": f"{(tie[['ratio', *ELSEWHERE.values()]] - 1).abs().max():.2f}",
        "own-documentation:from-one": f"{(own['by step +0.2'] - 1).abs().max():.2f}",
        "small-documentation:before": f"{before.min():.2f} to {before.max():.2f}",
        **travelled,
        "small-copies-fast:pairwise:loss": f"{small_losses['pairwise'].mean():.1f}",
        "half-rate:pairwise": f"{tried['pairwise', 1.25e-4]:.0f}",
        "half-rate:original": f"{tried['original', 1.25e-4]:.0f}",
        "own-rate:original": f"{tried['original', 2.5e-4]:.0f}",
        "addressed-8:loss": f"{addressed['symmetric'].min() - addressed['original'].max():.1f}",
        "plateaus:shortest": f"{plateaus.loc[~plateaus['not_escaped'], 'step'].min():.0f}",
        "plateaus:longest": f"{plateaus.loc[plateaus['rule escaped'], 'rule'].max():,.0f}",
    }


def answers_table(runs: pd.DataFrame, contrasts: pd.DataFrame) -> str:
    """Six questions by setting: the ratio of steps, and the difference of the last loss in nats, bold where Student's
    95 % interval excludes 0."""
    ratio_of, lines = ratios(contrasts), []
    losses = {setting: last_losses_of(at(runs, **place)) for setting, (_, place) in SETTINGS.items()}
    for question, (first, second) in QUESTIONS.items():
        cells = []
        for setting, (place, _) in SETTINGS.items():
            differences = (losses[setting][first] - losses[setting][second]).to_numpy()
            low, high = interval(differences)
            difference = f"{differences.mean():+.2f}".replace("-", "−")
            shown = f"**{difference}**" if low > 0 or high < 0 else difference
            cells.append(f"{ratio_of[f'{place}:{first}/{second}']}<br>{shown}")
        lines.append([question, *cells])
    return markdown(["steps to the escape, first / second<br>last loss, first − second (nats)", *SETTINGS], lines)


def last_losses_of(runs: pd.DataFrame) -> dict[str, pd.Series]:
    """By model the last validation loss of each seed."""
    by_model = runs.set_index("seed").sort_index().groupby("attention")["losses"]
    return {model: losses.str.split().str[-1].astype(float) for model, losses in by_model}


def numbers_of(runs: pd.DataFrame, contrasts: pd.DataFrame) -> dict[str, str]:
    """The tables and numbers of the pages, by name."""
    paired, study = at(contrasts, grid="paired"), at(contrasts, study=LATER)
    new = at(study, **COPIES[8])
    deep = pd.concat([at(paired, **COPIES[8]), new])
    both = deep[(deep["first"] == "original-wide") & (deep["second"] == "original")]
    starts = [
        np.log(np.divide(*(at(of, attention=name).set_index("seed").sort_index()["step"] for name in START)))
        for of in (at(runs, study=name, **COPIES[8]) for name in ("plateau", "start-and-symmetry"))
    ]
    equal = pd.concat([at(paired, text="copying-48"), at(new), at(contrasts, study="width", **WIDTHS[1])])
    equal = at(equal, first="pairwise", second="original-wide")
    others = deep[[*ELSEWHERE.values()]]
    return {
        **ratios(contrasts),
        **ratios_elsewhere(runs),
        **facts_elsewhere(runs, contrasts),
        "answers": answers_table(runs, contrasts),
        "levels": f"{others.sub(deep['ratio'], axis=0).abs().max().max():.2f}",
        "word-pieces": words_table(runs),
        "width": width_table(contrasts),
        "last-losses": last_losses(runs),
        "start-of-both": together(both),
        "start-differs": p_in_words(ttest_ind(*starts, equal_var=False).pvalue, 3),
        "equal-start": together(equal),
        **dose.numbers_of(runs),
        **direction.numbers_of(runs),
        **mechanism.numbers_of(*map(pd.read_csv, (mechanism.MEASURES, mechanism.LEARNED))),
        **theory.numbers_of(runs),
    }


# Figures


def draw_escapes(runs: pd.DataFrame) -> plt.Figure:
    """Escapes by depth, on copies and on documentation: a panel per operator, hollow narrow, filled wide; a dot a run,
    a triangle where it is not within the steps."""
    figure, rows = plt.subplots(2, 3, figsize=(10, 7), sharey="row", layout="constrained")
    ends = {}
    marks = [200, 300, 400, 600, 800], [800, 1000, 2000, 3000, 4000, 6000]
    for panels, text, ticks in zip(rows, dose.TEXTS, marks, strict=True):
        runs_of_text = at(runs, text=text, learning_rate=1e-3)
        runs_of_text = runs_of_text[runs_of_text["study"].isin(["plateau", LATER])]
        for panel, (name, (narrow, wide, color)) in zip(panels, OPERATORS.items(), strict=True):
            looks = (narrow, "narrow", "white", "--", 0.95), (wide, "wide", color, "-", 1.05)
            for attention, label, face, line, shift in looks:
                found = at(runs_of_text, attention=attention)
                layers, steps, is_bound = found["size"].map(LAYERS), found["step"], found["not_escaped"]
                style = {"mfc": face, "mec": color, "alpha": 0.8, "ls": ""}
                panel.plot(layers[~is_bound] * shift, steps[~is_bound], marker="o", ms=5, label=label, **style)
                panel.plot(layers[is_bound] * shift, steps[is_bound], marker="^", ms=6, **style)
                means = np.exp(np.log(steps).groupby(layers).mean())
                panel.plot(means.index * shift, means, line, color=color, lw=1)
                ends[text, attention] = (8 * shift, means[8])
            panel.set(title=f"{name}, {dose.TEXTS[text]}", xlabel="layers", xscale="log", yscale="log")
            panel.set_xticks([2, 4, 8], ["2", "4", "8"])
            panel.legend(frameon=False, loc="upper left", title="initialisation", title_fontsize=8, fontsize=8)
            panel.minorticks_off()
        panels[0].set_yticks(ticks, [f"{step:,}" for step in ticks])
        panels[0].set_ylabel("steps to the escape")
    copies = next(iter(dose.TEXTS))
    places = {"coordsA": rows[0, 0].transData, "coordsB": rows[0, 1].transData}
    compared = ends[copies, "original"], ends[copies, "pairwise"]
    arrow = {"arrowstyle": "-|>", "color": "#C00000", "lw": 1.5, "shrinkA": 6, "shrinkB": 6}
    figure.add_artist(ConnectionPatch(*compared, **places, **arrow))
    rows[0, 1].annotate("the paper's\ncomparison", (4.25, 285), color="#C00000", fontsize=8)
    return figure


def draw_rates(contrasts: pd.DataFrame) -> plt.Figure:
    """Ratios over the learning rate, on copies and on documentation, with 95 % intervals; hollow: at least, as some of
    the first do not escape, or, on the upper edge, none does."""
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True, layout="constrained")
    compared = {("original-wide", "original"): "#000000", ("symmetric", "original"): "#E69F00"}
    compared |= {("pairwise", "original-wide"): "#0072B2"}
    shapes = {
        "tiny": ("2 layers", 0.96, "o"),
        "small": ("4 layers of width 512", 1.0, "s"),
        "deep8": ("8 layers", 1.04, "D"),
    }
    edge = 3.0
    for panel, text in zip(panels, dose.TEXTS, strict=True):
        rows = at(contrasts, text=text)
        rows = rows[(rows["grid"].eq("paired") & rows["size"].ne("deep8")) | rows["study"].isin([LATER, "width"])]
        for (pair, color), (size, (label, shift, marker)) in itertools.product(compared.items(), shapes.items()):
            shown = at(rows, first=pair[0], second=pair[1], size=size).sort_values("learning_rate")
            rates, name = shown["learning_rate"].to_numpy() * shift, " / ".join(pair)
            counts = shown["not_escaped"].str.partition("/")[0].astype(int)
            is_measured = (counts < shown["seeds"]).to_numpy()
            ratios = np.where(is_measured, shown["ratio"], edge)
            panel.vlines(rates[is_measured], shown["low"][is_measured], shown["high"][is_measured], color=color, lw=1.2)
            panel.plot(rates[is_measured], ratios[is_measured], color=color, lw=0.8)
            for rate, ratio, is_bound in zip(rates, ratios, counts > 0, strict=True):
                face = "white" if is_bound else color
                panel.plot(rate, ratio, marker, color=color, mfc=face, clip_on=False)
            if panel is panels[0]:
                panel.plot([], [], marker, ls="-", color=color, lw=0.8, label=f"{name}, {label}")
        panel.axhline(1, color="grey", lw=0.8)
        panel.set(xscale="log", yscale="log", xlabel="peak learning rate", title=dose.TEXTS[text], ylim=(0.4, edge))
        panel.set_xlim(2.2e-4, 2.3e-3)
        panel.set_xticks([2.5e-4, 5e-4, 1e-3, 2e-3], ["2.5e-4", "5e-4", "1e-3", "2e-3"])
        panel.set_yticks([0.5, 0.7, 1, 1.5, 2, 3], ["0.5", "0.7", "1", "1.5", "2", "3"])
        panel.minorticks_off()
    panels[0].set_ylabel("ratio of steps to the escape")
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def draw_forest(contrasts: pd.DataFrame) -> plt.Figure:
    """Paired ratios with 95 % intervals, on copies by depth and on documentation."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout="constrained")
    paired, study = at(contrasts, grid="paired"), at(contrasts, study=LATER)
    copies = [(f"{layers} layers", at(paired, **place)) for layers, place in COPIES.items()]
    texts = [(f"2 layers, rows of {length}", at(paired, **place)) for length, place in DOCUMENTATION.items()]
    copies.append(("8 layers, new seeds", at(study, **COPIES[8])))
    texts += [("", study[:0]), ("8 layers, new seeds", at(study, text="documentation-48"))]
    for rows, place in ((copies, WIDTHS[1]), (texts, WIDTHS[2])):
        rows.append(("4 layers of width 512, 2.5e-4", at(contrasts, study="width", **place)))
    names = [" / ".join(pair) for pair in PAIRS]
    for panel, title, series in zip(panels, ("copies", "documentation"), (copies, texts), strict=True):
        for offset, ((label, rows), look, color) in enumerate(zip(series, "osD*^", COLORS, strict=True)):
            compared = rows["first"] + " / " + rows["second"]
            shown = rows[compared.isin(names)]
            heights = [0.26 - 0.13 * offset - names.index(name) for name in compared[shown.index]]
            if heights:
                panel.hlines(heights, shown["low"], shown["high"], color=color, lw=1.5)
                panel.plot(shown["ratio"], heights, look, color=color, label=label)
                bounds = [not not_escaped.startswith("0/") for not_escaped in shown["not_escaped"]]
                panel.plot(shown["ratio"][bounds], np.array(heights)[bounds], look, color=color, mfc="white")
                panel.plot(shown["high"][bounds], np.array(heights)[bounds], ">", color=color, ms=4)
        panel.axvline(1, color="grey", lw=0.8)
        panel.set(xscale="log", xlabel=f"ratio of steps to {LEVEL} nats", title=title)
        panel.set_xticks([0.3, 0.5, 0.7, 1, 1.5, 2, 3], ["0.3", "0.5", "0.7", "1", "1.5", "2", "3"])
        panel.minorticks_off()
        panel.legend(frameon=False, fontsize=8)
    panels[0].set_yticks(range(0, -len(names), -1), names)
    return figure


def main() -> None:
    """Write everything that follows from runs.csv."""
    runs = read_runs()
    contrasts = contrasts_of(runs)
    contrasts.to_csv(RUNS.with_name("contrasts.csv"), index=False)
    numbers = numbers_of(runs, contrasts)
    for page in PAGES:
        page.write_text(with_numbers(page.read_text(encoding="utf-8"), numbers), encoding="utf-8")
    figures = {"escapes": draw_escapes(runs), "forest": draw_forest(contrasts), "dose": dose.draw(runs)}
    figures["rates"] = draw_rates(contrasts)
    figures["direction"] = direction.draw(runs)
    figures["mechanism"] = mechanism.draw(pd.read_csv(mechanism.LEARNED))
    for name, figure in figures.items():
        figure.savefig(RUNS.with_name(f"{name}.png"), dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
