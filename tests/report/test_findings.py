"""The finding "start and symmetry": its pages and its table of contrasts follow from its runs."""

import itertools
import json
import re

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import ttest_1samp, ttest_ind
from torch.nn import functional as F

from model.models import configured
from studies import collected, direction, dose, mechanism, outcomes, start_and_symmetry, theory
from studies import contrasts as declaration
from studies.exits import plateau_exit
from symbert.corpus import texts
from symbert.model.anatomy import _visit, logits_of
from symbert.model.bert import MaskedModel, initialize
from symbert.model.configuration import Configuration
from symbert.model.init import width_of

pytestmark = pytest.mark.study
LEVELS = {"copying": 2.8, "documentation": 2.8, "chained": 2.1, "repeated": 2.59, "swapped": 2.51, "cycled": 2.5}
LEVELS |= {"neighbours": 2.63, "addressed": 2.34, "directed": 2.2, "documentation-words": 3.61}  # nats, of texts
START = "original-wide", "original"
GRIDS = {  # of contrasts that are ratios of ratios, or of one operator: the cells that differ from plateau on copies
    "8 to 2 layers": [{"size": "deep8"}, {"size": "tiny"}],
    "rate 5e-4 to 2e-3": [{"size": "tiny", "learning_rate": 5e-4}, {"size": "tiny", "learning_rate": 2e-3}],
}


def cells(*attentions: str, **place: str) -> list[dict[str, str]]:
    return [{**place, "attention": attention} for attention in attentions]


FOUR, LATER = ("symmetric-wide", "original-wide", "symmetric", "original"), "start-and-symmetry"
OTHERS = {  # ratios without a contrast: the first cell by the second, or that by the third by the fourth
    "own-documentation:symmetric-wide/symmetric": cells(*FOUR[::2], study="own-position", text="documentation-48"),
    "documentation-2:symmetric-others/original": cells(
        "symmetric-others", "original", study="plateau", text="documentation-48"
    ),
    "wide-tie-by-narrow": cells(*FOUR, study=LATER, size="deep8", text="copying-48"),
    "wide-tie-by-narrow-first": cells(*FOUR, study="plateau", size="deep8", text="copying-48"),
    **{
        f"dose:{first}/{second}": cells(first, second, study="dose", text="documentation-48")
        for first, second in (
            ("original-1.20", "original-0.31"),
            ("original-1.20", "original-1.80"),
            ("pairwise-0.60", "pairwise-1.80"),
        )
    },
    **{
        f"word-pieces:{name}/original": cells(name, "original", study="word-pieces")
        for name in ("original-wide", "symmetric", "pairwise")
    },
    "start-directed-by-copies": [
        *cells("original-wide", "original", study="direction", size="deep8", text="directed-48"),
        *cells("original-wide", "original", study=LATER, size="deep8", text="copying-48"),
    ],
    "start-directed-by-copies-2": [
        *cells("original-wide", "original", study="direction", size="tiny", text="directed-48"),
        *cells("original-wide", "original", study="direction", size="tiny", text="copying-48"),
    ],
    "tie-neighbours-by-swapped": [
        *cells("symmetric", "original", study="direction", text="neighbours-48"),
        *cells("symmetric", "original", study="direction", text="swapped-48"),
    ],
}


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """The runs with their outcomes."""
    return outcomes.read_runs()


@pytest.fixture(scope="module")
def contrasts(runs) -> pd.DataFrame:
    """All contrasts."""
    return start_and_symmetry.contrasts_of(runs)


@pytest.fixture(scope="module")
def facts(runs, contrasts) -> dict[str, str]:
    """All numbers of the pages by name."""
    return start_and_symmetry.numbers_of(runs, contrasts)


def steps_to(runs, shift=0.0, **cell) -> pd.Series:
    """By seed the step at which the loss crosses the level of its text, or one beside it, for good, on the line between
    two evaluations."""
    chosen = runs[(runs[list(cell)] == pd.Series(cell)).all(axis=1)].set_index("seed")
    assert chosen.index.is_unique and chosen["text"].nunique() == 1
    level, steps = round(LEVELS[chosen["text"].iloc[0].rpartition("-")[0]] + shift, 2), {}
    for seed, run in chosen.iterrows():
        losses = np.array(run["losses"].split(), float)
        above = max(np.flatnonzero(losses > level), default=-1)  # the last evaluation there
        steps[seed] = float(run["steps"] if above + 1 == len(losses) else run["evaluate_every"])
        if 0 <= above < len(losses) - 1:
            inner = np.interp(-level, -losses[above : above + 2], [above + 1, above + 2])
            steps[seed] = run["evaluate_every"] * inner
    return pd.Series(steps).sort_index()


def ratio_in_words(logarithms) -> str:
    low, high = np.exp(ttest_1samp(logarithms, 0).confidence_interval(0.95))
    return f"{np.exp(np.mean(logarithms)):.2f} [{low:.2f}, {high:.2f}]"


def logarithms_of(runs, sides, compared="attention", **place) -> pd.Series:
    """By seed, of all that both have, the logarithm of the ratio of steps."""
    first, second = (steps_to(runs, **place, **{compared: side}) for side in sides)
    return np.log(first / second).dropna()


def test_every_run_is_there_once_with_the_exit_of_its_curve(runs):
    assert not runs.duplicated([*collected.AXES, "seed"]).any()
    for study, count in (("plateau", 440), ("search", 8), ("dose", 160), ("width", 146)):
        planned = {
            (*(point[axis] for axis in collected.AXES), seed)
            for _, points, seeds, _ in collected.grids_of(study)
            for point in points
            for seed in seeds
        }
        found = runs[runs["study"] == study]
        assert planned == {*found[[*collected.AXES, "seed"]].itertuples(index=False, name=None)} and len(found) == count
    for run in runs.itertuples():
        losses = list(map(float, run.losses.split()))
        step = plateau_exit(range(run.evaluate_every, run.steps + 1, run.evaluate_every), losses)
        assert len(losses) == run.steps // run.evaluate_every and run.exit == str(step or "never")


def test_contrasts_and_pages_follow_from_the_runs(contrasts, facts):
    committed = pd.read_csv(collected.RUNS.with_name("contrasts.csv"))
    fresh = pd.read_csv(pd.io.common.StringIO(contrasts.to_csv(index=False)))
    pd.testing.assert_frame_equal(fresh, committed, rtol=1e-9)
    for path in start_and_symmetry.PAGES:
        text = path.read_text(encoding="utf-8")
        assert outcomes.with_numbers(text, facts) == text, path


@pytest.mark.parametrize("path", start_and_symmetry.PAGES, ids=lambda path: path.stem)
def test_every_interval_on_a_page_stands_between_markers(path):
    text, generated = path.read_text(encoding="utf-8"), r"<!-- \S+ -->((?:(?!<!--).)*)<!-- end -->"
    prose = re.sub(generated, "", text, flags=re.S)
    assert "<!--" not in prose  # every marker has its end, and none stands within another
    assert re.findall(r"[\d.]+ \[[−-]?[\d.]+, [−-]?[\d.]+\]", prose) == []


@pytest.mark.parametrize("shift", [0, 0.2, -0.2, -0.6])
def test_contrasts_are_the_ratios_of_steps_of_their_cells(runs, contrasts, shift):
    assert len(contrasts) > 200
    planned = {
        (study, grid): seeds
        for study in start_and_symmetry.DECLARING
        for grid, _, seeds, _ in collected.grids_of(study)
    }
    by_level = contrasts[f"by step {shift:+}" if shift else "by step"]
    for row, ratio in zip(contrasts.itertuples(), by_level, strict=True):
        shared = {"study": "plateau", "text": "copying-48", "learning_rate": 1e-3, "shift": shift}
        sides = row.first, row.second
        if row.grid in GRIDS:
            first, second = (logarithms_of(runs, sides, **shared | cell) for cell in GRIDS[row.grid])
        elif row.grid == "growth":
            name = row.first.partition(",")[0]
            first, second = (np.log(steps_to(runs, attention=name, size=size, **shared)) for size in ("deep8", "tiny"))
        else:
            place = {axis: getattr(row, axis) for axis in ("text", "size", "attention", "learning_rate")}
            place = {axis: value for axis, value in place.items() if pd.notna(value) and value != ""}
            place["study"] = "plateau" if pd.isna(row.study) else row.study
            compared = "size" if "attention" in place else "attention"
            first, second = logarithms_of(runs, sides, compared, shift=shift, **place), 0
        logarithms = (first - second).dropna()
        logarithms = logarithms[logarithms.index.isin(planned.get((row.study, row.grid), logarithms.index))]
        assert len(logarithms) == row.seeds, row
        assert ratio == pytest.approx(np.exp(logarithms.mean()), rel=1e-9), row
        if not shift:
            bounds = np.exp(ttest_1samp(logarithms, 0).confidence_interval(0.95))
            assert (row.ratio, row.low, row.high) == pytest.approx((ratio, *bounds), rel=1e-9), row


@pytest.mark.parametrize("name", OTHERS)
def test_ratios_without_a_contrast_are_those_of_their_cells(runs, facts, name):
    logarithms = [np.log(steps_to(runs, **cell)) for cell in OTHERS[name]]
    ratios = [first - second for first, second in zip(logarithms[::2], logarithms[1::2], strict=True)]
    ratio = (ratios[0] - ratios[1] if len(ratios) == 2 else ratios[0]).dropna()
    assert re.sub("at (least|most) ", "", facts[name]) == ratio_in_words(ratio)


def test_a_ratio_is_a_bound_where_runs_do_not_escape(facts):
    assert facts["copies-8:symmetric/original"].startswith("0.55 [")
    assert facts["documentation-8:symmetric-wide/original-wide"].startswith("at least 2.26 [")
    assert facts["own-documentation:symmetric-others-wide/symmetric-wide"].startswith("at most 0.63 [")
    assert facts["small-documentation:pairwise/original"] == "0 of 8 escape"


def random_effects(groups) -> str:
    """DerSimonian and Laird's number for groups of logarithms, by their own formulas, with its normal interval."""
    means, variances = np.array([(group.mean(), group.var(ddof=1) / len(group)) for group in groups]).T
    fixed = (means / variances).sum() / (1 / variances).sum()
    excess = ((means - fixed) ** 2 / variances).sum() - (len(means) - 1)
    between = max(0, excess / ((1 / variances).sum() - (variances**-2).sum() / (1 / variances).sum()))
    weights = 1 / (variances + between)
    bounds = np.exp((weights * means).sum() / weights.sum() + np.array([0, -1, 1]) * 1.959964 * weights.sum() ** -0.5)
    return "{:.2f} [{:.2f}, {:.2f}]".format(*bounds)


def test_what_is_pooled_are_random_effects_of_its_grids(runs, facts):
    later = {"study": "start-and-symmetry", "size": "deep8", "text": "copying-48"}
    first = {"study": "plateau", "text": "copying-48", "learning_rate": 1e-3}
    starts = [logarithms_of(runs, START, size="deep8", **first), logarithms_of(runs, START, **later)]
    assert facts["start-of-both"] == random_effects(starts)
    assert facts["start-differs"] == f"{ttest_ind(*starts, equal_var=False).pvalue:.3f}"
    pair = "pairwise", "original-wide"
    grids = [logarithms_of(runs, pair, size=size, **first) for size in ("tiny", "deep4", "deep8")]
    grids += [logarithms_of(runs, pair, size="tiny", **first | {"learning_rate": rate}) for rate in (5e-4, 2e-3)]
    grids.append(logarithms_of(runs, pair, **later))
    grids.append(logarithms_of(runs, pair, study="width", text="copying-48", learning_rate=2.5e-4))
    assert len(grids) == 7 and facts["equal-start"] == random_effects(grids)


def test_last_losses_are_compared_by_seed(runs, facts):
    ends = outcomes.at(runs, study="width", text="documentation-48", learning_rate=2.5e-4)
    ends = ends.set_index(["attention", "seed"])["losses"].map(lambda losses: float(losses.split()[-1]))
    differences = (ends["symmetric"] - ends["original"]).dropna()
    low, high = ttest_1samp(differences, 0).confidence_interval(0.95)
    assert f"**{differences.mean():+.3f} [{low:+.3f}, {high:+.3f}]** |" in facts["last-losses"]
    assert (ends[["pairwise", "symmetric-wide"]] > 2.8).all()


def test_a_tie_widens_the_logits_between_distinct_tokens(facts):
    pieces, ids = texts._characters(texts.copying()[:20_000])
    rows = torch.tensor(ids[: 48 * 48].astype(int)).reshape(48, 48)
    is_distinct = ~torch.eye(48, dtype=torch.bool)
    by_weights, on_copies = {}, {}
    for name in ("original", "symmetric", "original-symmetric", "pairwise"):
        by_weights[name], on_copies[name] = [], []
        for seed in range(11, 21):
            config = configured("tiny", name, vocabulary_size=len(pieces), dropout=0.0)
            model = MaskedModel(config)
            initialize(model, seed)
            by_weights[name] += [width_of(layer.attention.self) for layer in model.bert.encoder.layer]

            def describe(operator, hidden, stds=on_copies[name]):
                stds.append(logits_of(operator, hidden)[..., is_distinct].std().item())

            _visit(model.bert, rows, describe)
    original, tied, at_start, wide = (np.mean(widths) for widths in by_weights.values())
    assert at_start == pytest.approx(tied)
    widths = {"symmetric": tied, "symmetric/original": tied / original}
    widths |= {"pairwise/symmetric": wide / tied, "pairwise/original": wide / original}
    for name, width in widths.items():
        assert float(facts[f"width:{name}"]) == pytest.approx(width, rel=0.015), name
    on_copies = {name: np.mean(stds) for name, stds in on_copies.items()}
    assert on_copies["symmetric"] / on_copies["original"] == pytest.approx(1.34, abs=0.005)


def test_what_the_page_concludes_holds_for_its_contrasts(runs, contrasts):
    """A difference is claimed only where an interval excludes one; growth is judged by interactions."""
    paired = contrasts[contrasts["grid"] == "paired"]
    of = {(row.size, row.text, row.learning_rate, row.first, row.second): row for row in paired.itertuples()}

    def excludes_one(size, text, first, second, rate=1e-3):
        row = of[size, text, rate, first, second]
        return row.high < 1 or row.low > 1

    starts = [("original-wide", "original"), ("pairwise", "pairwise-narrow"), ("symmetric-wide", "symmetric")]
    ties = [("symmetric", "original"), ("symmetric-wide", "original-wide")]
    for size, pair in itertools.product(("tiny", "deep4", "deep8"), (*starts, *ties)):
        assert excludes_one(size, "copying-48", *pair) and of[size, "copying-48", 1e-3, *pair].high < 1
    for rate, pair in itertools.product((5e-4, 2e-3), starts):
        assert of["tiny", "copying-48", rate, *pair].high < 1
    new = outcomes.at(contrasts, study="start-and-symmetry", grid="copying").set_index(["first", "second"])
    assert len(new) == 9 and (new["seeds"] == 10).all() and (new["not_escaped"] == "0/0").all()
    shorter = new.loc[[*starts, *ties, ("original-symmetric", "original"), ("symmetric-others", "symmetric")]]
    assert (shorter["verdict"] == "shorter").all() and (shorter["holm_p"].round(4) == 0.0176).all()
    assert shorter["below_one"].tolist() == [10, 10, 10, 10, 9, 10, 10]
    same = new.loc[[("pairwise", "original-wide"), ("pairwise-narrow", "original")]]
    assert (same["verdict"] == "within 25 %").all() and (same["low"] > 0.9).all()
    assert new.loc[("symmetric-others", "symmetric"), "logrank_verdict"] == "within 25 %"
    undecided = {
        size: not excludes_one(size, "copying-48", "pairwise", "original-wide") for size in ("tiny", "deep4", "deep8")
    }
    assert undecided == {"tiny": True, "deep4": False, "deep8": True}
    for pair in (("symmetric", "original"), ("original-wide", "original"), ("pairwise-narrow", "original")):
        assert not excludes_one("tiny", "documentation-48", *pair)
    for text in ("copying-48", "documentation-48"):
        assert of["tiny", text, 1e-3, "symmetric-others", "symmetric"].below_one == 10
    assert of["tiny", "documentation-48", 1e-3, "original-unscaled", "original-wide"].not_escaped == "5/0"
    interactions = contrasts[contrasts["grid"] == "8 to 2 layers"].set_index(["first", "second"]).loc[[*starts, *ties]]
    assert (interactions["below_one"] == 5).all() and (interactions["student_p"] < 0.004).all()
    declared = contrasts[contrasts["study"] == "plateau"].dropna(subset="holm_p")
    verdicts = declared.groupby("contrast")["logrank_verdict"].agg(set)
    assert len(declared) == 70
    for name in ("operator-at-the-narrow-start", "operator-at-the-wide-start"):  # hypothesis a
        assert verdicts[name] <= {"within 25 %", "undecided"}
    by_grid = declared.set_index(["grid", "contrast"])["logrank_verdict"]
    for name in ("start-of-original", "start-of-pairwise", "symmetry-at-the-start"):  # hypotheses b and c
        assert by_grid["copying", name] == "shorter" and by_grid["documentation", name] == "within 25 %"
    assert by_grid["documentation", "rate-of-the-logits"] == "longer"


def test_with_eight_layers_on_documentation_the_start_of_original_alone_is_shown(runs, contrasts):
    rows = outcomes.at(contrasts, study="start-and-symmetry", grid="documentation").set_index(["first", "second"])
    start, second = rows.loc[("original-wide", "original")], rows.loc[("pairwise", "pairwise-narrow")]
    tie, third = rows.loc[("symmetric", "original")], rows.loc[("pairwise", "original-wide")]
    assert (start["verdict"], start["not_escaped"], round(start["p"], 4)) == ("shorter", "0/0", 0.0078)
    assert (second["verdict"], second["not_escaped"], second["below_one"]) == ("undecided", "1/0", 4)
    assert (third["verdict"], third["below_one"]) == ("none declared", 1)
    assert (tie["not_escaped"], tie["below_one"]) == ("0/0", 4)
    assert tie[[name for name in tie.index if name.startswith("by ")]].between(0.965, 1.035).all()
    assert rows.loc[("symmetric-wide", "symmetric"), "not_escaped"] == "6/0"
    assert not outcomes.at(runs, study="word-pieces")["not_escaped"].any()


def test_where_no_token_attends_to_itself_a_tie_is_earlier_in_every_seed(contrasts):
    own = contrasts[contrasts["study"] == "own-position"].set_index(["contrast", "grid"])
    assert (own["holm_p"].round(4) == 0.0078).all() and own["not_escaped"].tolist() == ["0/2", *["0/0"] * 7]
    for contrast in ("own-position-at-the-wide-start", "own-position-at-the-narrow-start"):
        assert (own.loc[contrast, "below_one"] == 10).all()
    assert (own.loc[pd.IndexSlice[:, "documentation"], "by step +0.2"] - 1).abs().max() < 0.03
    assert (own["logrank_verdict"] == "within 25 %").tolist() == [False, True, False, False] * 2


def test_who_does_not_escape_where_a_relation_has_a_direction(runs, contrasts):
    rows = outcomes.at(contrasts, study="direction").set_index(["grid", "first"])
    not_escaped = rows["not_escaped"][rows["not_escaped"] != "0/0"].to_dict()
    assert not_escaped == {
        ("directed-2", "symmetric"): "7/0",
        ("directed-2", "original-symmetric"): "2/0",
        ("directed-2", "original-wide"): "2/0",
        ("addressed-2", "symmetric"): "6/0",
        ("cycled-2", "symmetric"): "1/0",
    }
    assert (rows["seeds"] == 8).all()
    losses = start_and_symmetry.last_losses_of(outcomes.at(runs, text="addressed-48", size="deep8"))
    assert losses["symmetric"].min() > losses["original"].max()


def test_attention_to_copies_grows_faster_and_faster_and_a_wide_start_is_ahead(facts):
    measures, learned = pd.read_csv(mechanism.MEASURES), pd.read_csv(mechanism.LEARNED)
    exits = measures[measures["moment"] == "escape"].sort_values("copies").groupby(["size", "attention", "seed"]).last()
    agreeing = exits.loc[pd.IndexSlice[:, ["original", "original-wide"], :], "agreement"]
    assert len(agreeing) == 12 and agreeing.max() < 0.8
    assert facts["descent:agreement"] == f"{agreeing.min():.2f} to {agreeing.max():.2f}"
    assert facts["mechanism-predictions"].count("refuted by ") == 8
    assert len(learned) == 24 and (learned["overlap escape"] > learned["overlap start"]).all()
    narrow_to_wide = ("original", "symmetric", "original-wide", "symmetric-wide")
    overlaps = [float(facts[f"learned:{name}:overlap-at-start"]) for name in narrow_to_wide]
    steps = [int(facts[f"attention:{name}:step"]) for name in narrow_to_wide]
    assert overlaps == sorted(overlaps) and steps == sorted(steps, reverse=True)
    for name in narrow_to_wide:  # from 0.01 to 0.03, and from there to 0.1
        assert int(facts[f"attention:{name}:span-1"]) > int(facts[f"attention:{name}:span-2"])


def test_the_step_of_a_level_of_attention_is_exact_for_an_exponential():
    attended = " ".join(f"{64 / 48**2 + 0.001 * np.exp(evaluation * 25 / 100)}" for evaluation in range(30))
    for level in (0.01, 0.03, 0.1):
        assert mechanism.step_of(attended, level) == pytest.approx(100 * np.log(level / 0.001))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("shorter", "undecided", ["shorter", "undecided", "none declared"]),
        ("within 25 %", "shorter", ["within 25 %", "not tested", "none declared"]),
        ("seeds are missing", "shorter", ["seeds are missing", "not tested", "none declared"]),
    ],
)
def test_in_a_fixed_sequence_nothing_is_tested_after_a_contrast_that_is_not_significant(first, second, expected):
    verdicts = {"start-of-original": first, "start-of-pairwise": second, "symmetry-at-the-wide-start": "longer"}
    rows = [{"contrast": name, "verdict": verdict} for name, verdict in verdicts.items()]
    sequence = declaration.SEQUENCES["start-and-symmetry", "documentation"]
    assert [row["verdict"] for row in declaration.in_sequence(rows, sequence)] == expected


def test_the_distance_is_the_sum_of_the_rates():
    rates = [1e-3 * step / 100 if step < 100 else 1e-3 * (20_000 - step) / 19_900 for step in range(1000)]
    assert outcomes.travelled(250, 1e-3, 100, 20_000) == pytest.approx(sum(rates[:250]))
    assert outcomes.travelled(250.5, 1e-3, 100, 20_000) == pytest.approx(sum(rates[:250]) + rates[250] / 2)


def test_the_closed_form_of_the_theory_is_what_steps_of_signs_do():
    query, key = np.random.default_rng(0).normal(0, 0.1, (2, 200_000))
    for step in range(1, 2001):
        query, key = query + 1e-4 * np.sign(key), key + 1e-4 * np.sign(query)
        if step in (300, 2000):
            assert theory.overlap(step * 1e-4, 0.1) == pytest.approx((query * key).mean(), rel=0.02, abs=2e-4)


def slopes_in(scale, cells) -> np.ndarray:
    """Least-squares slopes over the widths of predicted fall, by seed."""
    widths = scale(np.array([float(width) for width in dose.RISING]))
    return cells[dose.RISING].to_numpy() @ (widths - widths.mean()) / ((widths - widths.mean()) ** 2).sum()


def mean_in_words(values) -> str:
    low, high = ttest_1samp(values, 0).confidence_interval(0.95)
    return f"{np.mean(values):.3f} [{low:.3f}, {high:.3f}]".replace("-", "−")


def test_on_copies_the_escape_comes_earlier_with_the_width_until_attention_collapses(runs, facts):
    for line in dose.tests_of(runs, "copying-48").values():  # a trend, a square, and later at the largest width
        square, late = (float(line[column].split("[")[1].split(",")[0]) for column in (1, 4))
        assert line[3] == "< 0.0001" and square > 0 and late > 1 and float(line[5]) < 0.01
    saved = -slopes_in(np.log2, dose.cells_of(runs, "original", "distance"))
    assert facts["dose:original:saved-by-doubling"] == mean_in_words(saved)
    assert float(facts["dose:pairwise-0.08:from-line"]) < 0.02  # as predicted to be more


def test_on_documentation_the_dose_has_a_valley(runs, facts):
    names = ("original", "pairwise")
    steps = {name: dose.cells_of(runs, name, "step", "documentation-48") for name in names}
    earliest = {name: set(steps[name].idxmin(axis=1)) for name in names}
    assert earliest == {"original": {"1.20"}, "pairwise": {"0.31", "0.60", "1.20"}}
    not_escaped = runs[(runs["study"] == "dose") & runs["not_escaped"]].groupby("attention").size()
    assert not_escaped.to_dict() == {
        "original-7.00": 5, "pairwise-0.08": 1, "pairwise-1.80": 1, "pairwise-3.50": 5, "pairwise-7.00": 5
    }  # fmt: skip
    tests = dose.tests_of(runs, "documentation-48")
    for name in names:
        on_both = (dose.cells_of(runs, name, "distance", text) for text in ("documentation-48", "copying-48"))
        difference = np.subtract(*(slopes_in(np.sqrt, distances) for distances in on_both))
        assert facts[f"dose-documentation:{name}:slope-less-copies"] == mean_in_words(difference)
        low, high = ttest_1samp(difference, 0).confidence_interval(0.95)
        assert low < 0 < high
        assert float(tests[name][1].split("[")[1].split(",")[0]) > 0  # a square, so no line
    original, pairwise = tests.values()
    assert float(original[3]) < 0.05 < float(pairwise[3])
    assert float(original[5]) < 0.01 and original[4].startswith("at least 1.") and float(pairwise[5]) > 0.05


def test_at_the_shape_of_bert_small_wide_ties_and_pairwise_do_not_escape_documentation(runs, contrasts, facts):
    width = contrasts[contrasts["study"] == "width"].dropna(subset="holm_p").set_index(["grid", "contrast"])
    assert len(width) == 15 and (width["seeds"] == 8).all()
    verdicts = width["verdict"].groupby(level=0).agg(list)
    assert verdicts["copying-slow"] == ["shorter"] * 4 + ["longer"]
    assert verdicts["copying"] == ["shorter", "shorter", "longer", "shorter", "shorter"]
    assert verdicts["documentation"] == ["within 25 %", "longer", "longer", "within 25 %", "longer"]
    assert width.loc["documentation", "not_escaped"].tolist() == ["0/0", "8/0", "8/0", "0/0", "8/0"]
    assert width.loc["copying", "not_escaped"].tolist() == ["0/0", "0/0", "8/0", "0/0", "0/0"]
    assert (width.loc[width["not_escaped"] == "8/0", "holm_p"].round(3) == 0.039).all()
    tied = width.xs("symmetry-at-the-wide-start", level="contrast").loc[["copying", "copying-slow"]]
    assert (tied["holm_p"].round(3) == 0.039).all() and (tied["logrank_verdict"] == "within 25 %").all()
    same = outcomes.at(contrasts, study="width", grid="unnamed", text="copying-48")
    same = same[same["first"] + same["second"] != "pairwiseoriginal"].set_index(["learning_rate", "first"])
    held = (same["low_90"] > 0.8) & (same["high_90"] < 1.25)
    assert held[~held].index.tolist() == [(1e-3, "pairwise")] and len(held) == 4
    assert width.loc[("documentation", "symmetry-at-the-narrow-start"), "holm_p"].round(2) == 0.17
    cells = (
        outcomes.at(runs, study="width", text="copying-48")
        .set_index(["learning_rate", "attention", "seed"])
        .sort_index()
    )
    assert (cells.loc[(1e-3, "symmetric-wide"), "step"] < 100).sum() == 7
    logs = np.log(cells["distance"])
    for place, rate in (("small-copies-fast", 1e-3), ("small-copies", 2.5e-4)):
        for first in ("original-wide", "symmetric"):
            travelled = np.exp((logs[rate, first] - logs[rate, "original"]).mean())
            assert facts[f"{place}:{first}/original:distance"] == f"{travelled:.2f}"


@pytest.mark.parametrize("sign", [-1, 1])
def test_the_analysis_of_the_dose_finds_the_line_that_runs_lie_on(runs, sign):
    draw = np.random.default_rng(1)
    rows = [
        {"study": "dose", "text": "copying-48", "attention": f"{name}-{width}", "seed": seed, "not_escaped": False}
        | {"distance": 0.5 + sign * 0.1 * float(width) ** 0.5 + 1e-4 * draw.normal(), "step": 300 + draw.normal()}
        for name, width, seed in itertools.product(("original", "pairwise"), dose.WIDTHS, range(21, 26))
    ]
    for line in dose.tests_of(pd.DataFrame(rows), "copying-48").values():
        slope, square, residuals, trend, ratio, late = (cell.replace("−", "-") for cell in line)
        assert float(slope.split()[0]) == pytest.approx(sign * 0.1, abs=1e-3)
        assert abs(float(square.split()[0])) < 0.01 and residuals.startswith("0.00 / ")
        assert trend == ("< 0.0001" if sign < 0 else "1.0000")
        assert ratio.startswith("1.00 ") and float(late) > 0.05


@pytest.mark.parametrize(
    ("layers", "ratios", "expected"),
    [
        (8, (0.97, 0.985, 0.5), ["held"] * 4),  # above 0.9, larger than on copies, between, …
        (8, (0.60, 1.10, 0.8), ["refuted"] * 4),
        (8, (0.90, 1.00, 0.4), ["undecided", "held", "undecided", "undecided"]),
        (2, (0.97, 0.985, 0.5), ["held", "held", "held"]),  # between, within 25 %, copies below 0.9
        (2, (0.60, 1.10, 0.8), ["refuted", "refuted", "held"]),
    ],
)
def test_the_predictions_of_a_directed_text_are_judged_by_the_intervals_of_their_ratios(layers, ratios, expected):
    draw, rows, copies = np.random.default_rng(5), [], direction.COPIED[layers]
    attentions = ("original", "symmetric", "original-symmetric", "original-wide")
    places = ("direction", "directed-48", ratios), (copies, "copying-48", (0.8, 0.6, 0.5))
    for (study, text, factors), seed in itertools.product(places, range(19)):
        pace = draw.uniform(900, 1800)  # of a seed
        for attention, factor in zip(attentions, (1, *factors), strict=True):
            row = {**outcomes.COPIES[layers], "study": study, "text": text, "attention": attention, "seed": seed}
            row |= dict.fromkeys(("rule", "rule, two thirds"), pace) | {"corpus_hash": text, "not_escaped": False}
            steps = pace * factor * np.exp(0.01 * draw.normal())
            rows.append(row | dict.fromkeys(("step", "distance", "step +0.2", "step -0.2", "step -0.6"), steps))
    lines = direction.numbers_of(pd.DataFrame(rows))["direction-predictions"].splitlines()[2:]
    assert [line.split(" | ")[-1].strip(" |") for line in lines] == expected


@pytest.mark.parametrize("attention", ["original", "symmetric"])
def test_the_measures_of_the_mechanism_are_those_of_the_product_of_query_and_key(attention):
    """The reference computes scores as x M yᵀ of a layer and differentiates the loss with respect to M."""
    shape = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 32}
    dropout = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob"), 0.0)
    config = Configuration(**shape, **dropout, attention=attention, vocab_size=50, initializer_range=0.3)
    model = MaskedModel(config)
    initialize(model, 1)
    draw = torch.Generator().manual_seed(2)
    batches = [
        {
            "input_ids": torch.randint(50, (4, 24), generator=draw),
            "positions": torch.randperm(96, generator=draw)[:14],
            "targets": torch.randint(50, (14,), generator=draw),
        }
        for _ in range(3)
    ]
    rows = mechanism.measures_of(model, batches)
    layer = model.bert.encoder.layer[0]
    site = layer.attention.self
    query = site.query.weight.detach().unflatten(0, (2, 8)).mT  # `head hidden dimension`
    key = query if attention == "symmetric" else site.key.weight.detach().unflatten(0, (2, 8)).mT
    cosines, copies, masked, by_score, by_product = [], [], [], [], []
    for batch in batches:
        product = (query @ key.mT).requires_grad_()
        hidden = model.bert.embeddings(batch["input_ids"])
        scores = torch.einsum("bih,nhk,bjk->bnij", hidden, product, hidden) / 8**0.5
        weights = scores.softmax(-1)
        for place in batch["positions"].tolist():
            row, token = divmod(place, 24)
            copied = (weights[row, :, token, at].detach() for at in (token - 16, token + 16) if 0 <= at < 24)
            masked.append(sum(copied, torch.zeros(2)))
        value = site.value(hidden).unflatten(-1, (2, 8))
        mixed = torch.einsum("bnij,bjnd->bind", weights, value).flatten(2)
        out = layer.feed_forward_chunk(layer.attention.output(mixed, hidden)).flatten(0, 1)[batch["positions"]]
        loss = F.cross_entropy(model.cls["predictions"](out), batch["targets"])
        of_scores, of_product = torch.autograd.grad(loss, [scores, product])
        by_score.append(of_scores)
        by_product.append(of_product)
        pairs = F.cosine_similarity(hidden[:, :, None], hidden[:, None], dim=-1)
        cosines.append(pairs[:, ~torch.eye(24, dtype=torch.bool)].mean().item())
        copies.append(
            [sum(weights[:, n, i, j].sum() for i in range(24) for j in (i - 16, i + 16) if 0 <= j < 24) for n in (0, 1)]
        )
    for head, row in enumerate(rows):
        gradients = torch.stack([gradient[head] for gradient in by_product])
        assert row["cosine"] == pytest.approx(np.mean(cosines), rel=1e-4)
        assert row["copies"] == pytest.approx(sum(found[head].item() for found in copies) / (3 * 4 * 24), rel=1e-4)
        norm = torch.cat([gradient[:, head] for gradient in by_score]).norm().item() / 3
        assert row["gradient"] == pytest.approx(norm, rel=1e-4)
        consistency = gradients.mean(0).norm() / gradients.flatten(1).norm(dim=1).mean()
        assert row["consistency"] == pytest.approx(consistency.item(), rel=1e-4)
        left, _, right = torch.linalg.svd(-gradients.mean(0))
        of_query, of_key = query[head].mT @ left[:, 0], key[head].mT @ right[0]
        assert row["overlap"] == pytest.approx((of_query @ of_key).item(), rel=1e-3)
        assert row["agreement"] == ((of_query * of_key) > 0).double().mean().item()
    assert mechanism.attended(model, batches)[0].tolist() == pytest.approx(
        torch.stack(masked).mean(0).tolist(), rel=1e-4
    )


@pytest.fixture
def results(tmp_path, monkeypatch, runs):
    """A results folder with one finished run of a study, and a runs.csv without it."""
    table = tmp_path / "runs.csv"
    collected_runs = pd.read_csv(collected.RUNS, dtype=str)
    row = collected_runs[collected_runs["study"] == "plateau"].iloc[0]
    collected_runs.drop(row.name).to_csv(table, index=False)
    monkeypatch.setattr(collected, "RUNS", table)
    monkeypatch.setattr("sys.argv", ["collected", str(tmp_path / "results")])
    folder = tmp_path / f"results/runs/encoder/deep4-original-00000000/seed-{row['seed']}"
    folder.mkdir(parents=True)
    rows = {"text": {"source": "copying", "vocabulary": None, "sequence_length": 48}}
    training = {"learning_rate": 1e-3, "batch_size": 32, "steps": 1000, "evaluate_every": 25}
    training |= {"warmup_steps": 100, "schedule_steps": 20_000, "dropout": 0.0}
    run = {"size": row["size"], "pretrain_seed": int(row["seed"]), "training": training}
    run |= {"operator": {"name": row["attention"]}, "rows": rows}
    (folder / "run.json").write_text(json.dumps(run))
    start = {"logit_std": [float(row["logit_std"])], "attention_entropy": [float(row["attention_entropy"])]}
    records = [{"split": "initial", "step": 0, **start}, {"split": "train", "step": 10, "loss": 4.0}]
    losses = enumerate(row["losses"].split(), 1)
    records += [{"split": "validation", "step": 25 * number, "loss": float(loss)} for number, loss in losses]
    metrics = "".join(f"{json.dumps(record)}\n" for record in records)
    (folder / "metrics.jsonl").write_text(metrics)
    digest = collected.hashlib.sha256(metrics.encode()).hexdigest()
    (folder / "done.json").write_text(json.dumps({"corpus_hash": row["corpus_hash"], "metrics_sha256": digest}))
    timing = {"step_seconds": float(row["seconds"]) / 1000, "versions": {"torch": row["torch"]}}
    timing |= {"device": "cpu", **{key: row[key] for key in ("commit", "processor")}}
    (folder / "timing.json").write_text(json.dumps(timing))
    return folder, table, row


def test_a_finished_run_is_collected_once(results):
    _, table, row = results
    for _ in range(2):
        collected.main()
        runs = pd.read_csv(table, dtype=str)
        assert runs.iloc[-1].to_dict() == row.to_dict() and not runs.duplicated().any()


def test_a_run_whose_metrics_are_not_those_of_its_end_is_refused(results):
    folder, *_ = results
    with (folder / "metrics.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(SystemExit, match=r"metrics\.jsonl: not the file"):
        collected.main()
