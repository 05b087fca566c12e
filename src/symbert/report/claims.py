"""The claims of arXiv 2406.06366 and of the abstract of arXiv 2412.00359: templates/claims.csv has a row for each, with
the name of its check in `CHECKS`.

A row says what the paper prints, what its authors' raw files give, and what makes the claim hold. A check says what
models of one size give. Claims about `shared` are tested by the protocol of the first paper.
"""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from symbert.report import published
from symbert.report.collect import Collection, losses_of
from symbert.report.formats import Table, frame_of, table_of
from symbert.report.names import family
from symbert.report.published import COLUMNS
from symbert.report.setting import is_pretrained_here, other_scores, other_training
from symbert.report.statistics import (
    CONFIDENCE,
    FEWEST,
    Comparison,
    Crossing,
    Escape,
    Interval,
    compared,
    corrected,
    crossing_of,
    escapes_of,
    glue_scores,
    mean_curves,
    p_in_words,
    paired_interval,
    spread,
)
from symbert.report.tables.robustness import ADVERSARIAL_MEAN, domain_scores, noise_scores

CLAIMS = Path(__file__).with_name("templates") / "claims.csv"
VARIANTS = ("symmetric", "pairwise")
ALL = ("original", *VARIANTS)
HALVED = ("pairwise", "original")
SMALL_TASKS = ("rte", "mrpc", "stsb", "cola")  # fewer than 10,000 training rows
SCORE_DEVIATIONS = 2  # printed standard deviations between a score and the printed one
ESCAPE_TOLERANCE = 0.1  # of a printed step, which was read off a plot
STEADY, GROWN = 1.25, 1.5  # escapes of base by those of small: at most, at least
HALF = 0.6  # of the steps of original, which counts as half
LOSS_TOLERANCE = 0.05  # nats: half of the 0.1 that the paper speaks of
TIME_SAVED = 5.0  # percent: half of a tenth


class Finding(NamedTuple):
    """What an experiment gives for a claim: in words, and whether it holds; None where seeds or checkpoints leave it
    open."""

    ours: str
    holds: bool | None


class MissingEvidence(Exception):
    """The experiment does not have what a claim is about; the message says what is missing."""


def other_robustness(data: Collection) -> str | None:
    """As `other_scores`; out-of-domain sets must be whole, too."""
    partial = data.robustness is not None and data.robustness["partial"].any()
    return other_scores(data) or ("out-of-domain sets have other rows than published" if partial else None)


def _need(known: Container[str], names: Iterable[str], missing: str) -> None:
    for name in names:
        if name not in known:
            raise MissingEvidence(missing.format(name))


def saved(data: Collection, size: str, attention: str, kind: str = "parameters") -> float:
    """Percentage of parameters that an operator saves against `original`; `kind` is a key of the counts."""
    counts = data.parameters.get(size, {}).get(kind, {})
    _need(counts, ("original", attention), f"no {size}-{{}} in this experiment")
    return 100 * (1 - counts[attention] / counts["original"])


def final_scores_of(data: Collection, size: str, *attentions: str, columns: tuple[str, ...] = COLUMNS) -> pd.Series:
    """The mean of some score columns (percent) per operator and seed; MissingEvidence names what was not scored."""
    trained = data.trained
    if trained is None:
        raise MissingEvidence("no scores")
    scores = trained[(trained["size"] == size) & trained["attention"].isin(attentions)]
    _need(set(scores["attention"]), attentions, f"no scores of {size}-{{}}")
    _need(set(scores["column"]), columns, "{} is not among the tasks")
    means = glue_scores(scores[scores["column"].isin(columns)]).dropna()
    _need(means.index.unique("attention"), attentions, f"no seed of {size}-{{}} has every column")
    return means


def lead(data: Collection, size: str, attention: str, columns: tuple[str, ...] = COLUMNS) -> Comparison:
    """How much higher than `original` an operator scores in the mean of some score columns."""
    final_scores_of(data, size, "original", attention, columns=columns)  # or it says what is missing
    scores = data.trained[(data.trained["size"] == size) & data.trained["column"].isin(columns)]
    return lead_in(glue_scores(scores).dropna(), size, attention)


def lead_in(scores: pd.Series, size: str, attention: str) -> Comparison:
    """The same, with p corrected for the number of operators that are compared with `original`."""
    of_size = scores[scores.index.get_level_values("size") == size].to_frame("score").droplevel(["size", "step"])
    models = {name: seeds.droplevel("attention") for name, seeds in of_size.groupby(level="attention")}
    _need(models, ("original", attention), f"no scores of {size}-{{}}")
    pairs = ((name, "original", seeds, models["original"]) for name, seeds in models.items() if name != "original")
    leads = {pair.model: pair for pair in corrected(each for pair in pairs for each in compared(size, *pair)) if pair.n}
    _need(leads, [attention], f"{size}-{{}} and {size}-original have no seed in common")
    return leads[attention]


def is_ahead(lead: Comparison, sign: int = 1) -> bool | None:
    """Whether the primary test shows that a model scores higher than its reference, or with a sign of −1 lower."""
    return sign * lead.difference > 0 if lead.is_significant else None


def are_all(answers: list[bool | None]) -> bool | None:
    """Whether all are true: false as soon as one is false, None as long as one is open."""
    return False if False in answers else None if None in answers else True


def listed(form: str, values: Iterable[float | None]) -> str:
    """Numbers in words, each written in the same form; a dash for None."""
    return "; ".join("–" if value is None else form.format(value).replace("-", "−") for value in values)


def points(value: float) -> str:
    """A difference in percentage points."""
    return listed("{:.1f}", [round(value, 1) + 0.0])  # adding zero takes the sign from minus zero


def in_points(lead: Comparison) -> str:
    """A difference, Welch's interval, and the primary p with Holm's correction: '0.6 [−0.2, 1.4], p 0.143'."""
    if lead.interval is None:
        return points(lead.difference)
    bounds = f"{points(lead.difference)} [{points(lead.interval.low)}, {points(lead.interval.high)}]"
    return f"{bounds}, p {p_in_words(lead.holm_p, 3)}"


def check_parameters(data: Collection, size: str) -> Finding:
    """Shares of a model's parameters that the variants save, to the printed digit."""
    shares = [round(saved(data, size, name), 2) for name in VARIANTS]
    printed = [published.PARAMETERS_SAVED.get((size, name)) for name in VARIANTS]
    return Finding(listed("{:.2f} %", shares), shares == printed)


def check_thirds(data: Collection, size: str) -> Finding:
    """Shares of query, key and value that the variants save: a third, and towards a third with more heads."""
    symmetric = saved(data, size, "symmetric", "attention_parameters")
    few, many = (saved(data, each, "pairwise", "attention_parameters") for each in ("small", size))
    heads = [data.parameters[each]["shape"]["num_attention_heads"] for each in ("small", size)]
    ours = f"{symmetric:.2f} %; {few:.2f} % ({heads[0]} heads) to {many:.2f} % ({heads[1]} heads)"
    return Finding(ours, math.isclose(symmetric, 100 / 3) and few < many < symmetric)


def check_attention_parameters(data: Collection, size: str) -> Finding:
    """Share of query, key and value that `shared` saves, cut off after two digits as it is printed."""
    share = saved(data, size, "shared", "attention_parameters")
    return Finding(f"{share:.4f} %", math.floor(100 * share) / 100 == published.ATTENTION_SAVED.get((size, "shared")))


def check_scores(data: Collection, size: str) -> Finding:
    """Mean GLUE scores over all seeds, near the printed ones."""
    scores = {name: spread(final_scores_of(data, size, name)).mean for name in HALVED}
    printed = {name: published.SCORES.get((size, name), (math.nan, math.nan)) for name in HALVED}
    near = [abs(scores[name] - printed[name][0]) <= SCORE_DEVIATIONS * printed[name][1] for name in HALVED]
    return Finding(listed("{:.2f}", scores.values()), all(near))


def check_lead(
    data: Collection, size: str, attention: str, sign: int = 1, columns: tuple[str, ...] = COLUMNS
) -> Finding:
    """How much higher than `original` an operator scores, or with a sign of −1 lower, by the primary test."""
    ahead = lead(data, size, attention, columns)
    return Finding(in_points(ahead), is_ahead(ahead, sign))


def check_robustness(data: Collection, size: str) -> Finding:
    """How much higher than `original` it scores in the means over all kinds and shares of noise, and over all sets."""
    if data.robustness is None:
        raise MissingEvidence("robustness was not measured")
    levels, sets = noise_scores(data.robustness), domain_scores(data.robustness)
    if levels.empty:
        raise MissingEvidence("no noise was measured")
    noise = lead_in(levels.drop(columns="clean").mean(axis=1), size, "shared")
    if sets.empty:
        raise MissingEvidence("no out-of-domain set was measured")
    domain = lead_in(sets.drop(columns=ADVERSARIAL_MEAN, errors="ignore").mean(axis=1), size, "shared")
    ours = f"{in_points(noise)} on noise; {in_points(domain)} out of domain"
    return Finding(ours, are_all([is_ahead(noise), is_ahead(domain)]))


class Deviation(NamedTuple):
    """Sample standard deviation over fine-tuning seeds, pooled where there are several pre-trained models."""

    value: float  # percentage points
    freedom: int  # degrees of freedom


def deviation(scores: pd.Series) -> Deviation:
    """Spread of the GLUE score of one operator over fine-tuning seeds."""
    seeds = scores.groupby(level="pretrain_seed", sort=False)
    freedom = seeds.count() - 1
    if not freedom.sum():
        raise MissingEvidence("one fine-tuning seed has no spread")
    return Deviation(math.sqrt((seeds.var() * freedom).sum() / freedom.sum()), int(freedom.sum()))


def ratio_interval(first: Deviation, second: Deviation) -> Interval | None:
    """95 % interval of the ratio of two standard deviations, from quantiles of the F distribution; None where both are
    zero, and where one is of fewer than three values."""
    if first.value == second.value == 0 or min(first.freedom, second.freedom) + 1 < FEWEST:
        return None
    from scipy.special import fdtri  # slow to load, and with few seeds nothing needs it

    tail, ratio = (1 - CONFIDENCE) / 2, first.value / second.value if second.value else math.inf
    low, high = (ratio / math.sqrt(fdtri(first.freedom, second.freedom, q)) for q in (1 - tail, tail))
    return Interval(low, high)


def check_deviations(data: Collection, size: str) -> Finding:
    """Standard deviations of the variants and of `original` over fine-tuning seeds, by intervals of their ratios."""
    *variants, original = (deviation(final_scores_of(data, size, name)) for name in (*VARIANTS, "original"))
    ratios = [ratio_interval(variant, original) for variant in variants]
    below = [None if ratio is None or ratio.includes(1) else ratio.high < 1 for ratio in ratios]
    return Finding(listed("{:.2f}", (each.value for each in (*variants, original))), are_all(below))


def crossings_of(curve: pd.DataFrame | None, size: str) -> list[Crossing]:
    """Where pairwise and original first reach 95 % of the highest final score; one that does not reach it would need
    more than its last step: `step` is infinite, `after` None."""
    means, line = ({}, None) if curve is None else mean_curves(curve)
    _need(means, HALVED, f"no checkpoints of {size}-{{}} were scored")
    return [crossing_of(means[name], line) for name in HALVED]


def ratio_of(first: Crossing, second: Crossing) -> Interval:
    """Between what the ratio of two numbers of steps lies, by the checkpoints before and after each crossing."""
    low = (first.before or 0) / (second.after or math.inf)
    return Interval(low, (first.after or math.inf) / second.before if second.before else math.inf)


def _span(ratio: Interval) -> str:
    if math.isinf(ratio.high):
        return f"> {ratio.low:.2f}" if ratio.low else "any"
    return f"{ratio.low:.2f}–{ratio.high:.2f}" if ratio.low else f"< {ratio.high:.2f}"


def check_half(data: Collection, size: str) -> Finding:
    """Steps to 95 % of the highest final score, by the whole of the bounds that checkpoints give their ratio; with what
    these would be without a run beside a crossing that predicts one class throughout."""
    curve = data.curves["glue"][data.curves["glue"]["size"] == size] if "glue" in data.curves else None
    first, second = crossings_of(curve, size)
    ratio = ratio_of(first, second)
    holds = True if ratio.high <= HALF else False if ratio.low >= HALF else None
    words = [f"{first.in_words}; {second.in_words}; ratio {_span(ratio)}"]
    return Finding("; ".join([*words, *_without_collapses(curve, size, (first, second))]), holds)


def _without_collapses(curve: pd.DataFrame, size: str, crossings: Iterable[Crossing]) -> Iterator[str]:
    """For each task and checkpoint beside a crossing with a run that predicts one class throughout, the bounds of the
    ratio without this checkpoint, and without the task."""
    collapsed = curve[curve["constant_prediction"].eq(True)]
    for name, crossing in zip(HALVED, crossings, strict=True):
        beside = collapsed[(collapsed["attention"] == name) & collapsed["step"].isin([crossing.before, crossing.after])]
        for step, task in dict.fromkeys(zip(beside["step"], beside["task"], strict=True)):
            left = {"this checkpoint": curve[(curve["attention"] != name) | (curve["step"] != step)]}
            left |= {task: curve[curve["task"] != task]}
            spans = []
            for what, rest in left.items():
                with suppress(MissingEvidence):  # of the only task, or the only checkpoint
                    spans.append(f"without {what} {_span(ratio_of(*crossings_of(rest, size)))}")
            yield f"{name} predicts one class of {task} at {step:,}{': ' if spans else ''}{', '.join(spans)}"


def losses_in(data: Collection, size: str, attention: str) -> pd.DataFrame:
    """The losses of an operator: a row per pre-training seed, a column per step."""
    losses = {name: seeds for (of, name), seeds in losses_of(data.runs).items() if of == size}
    _need(losses, [attention], f"no losses of {size}-{{}}")
    return losses[attention]


def escape_in(data: Collection, size: str, attention: str) -> Escape:
    """Between which evaluations half of the runs have escaped the initial plateau."""
    losses = losses_in(data, size, attention)
    if data.escape_loss is None:
        raise MissingEvidence("the loss at which a run has escaped is not known")
    return escapes_of(losses, data.escape_loss).median


def lies_in(found: Interval, low: float, high: float) -> bool | None:
    """Whether a number lies between two others; None where the interval that it lies in leaves that open."""
    if low <= found.low and found.high <= high:
        return True
    return False if found.high < low or found.low >= high else None


def check_escapes(data: Collection, size: str, attentions: tuple[str, ...]) -> Finding:
    """Steps at which operators escape the initial plateau, near the printed ends of it."""
    escapes = {name: escape_in(data, size, name) for name in attentions}
    printed = {name: published.PLATEAU_ENDS.get((size, name), 0) for name in attentions}
    near = [
        lies_in(Interval(*escape), printed[name] - tolerance, printed[name] + tolerance)
        for name, escape in escapes.items()
        for tolerance in [ESCAPE_TOLERANCE * printed[name]]
    ]
    return Finding("; ".join(escape.in_words for escape in escapes.values()), are_all(near))


def check_growth(data: Collection, size: str) -> Finding:
    """By how much the plateau lengthens from small to base, with `original` and with the variants."""
    if size != "base":
        raise MissingEvidence(f"{size} is not what the paper compares with small")
    ours, growths = [], []
    for name in ALL:
        base, small = (escape_in(data, each, name) for each in (size, "small"))
        growths.append(Interval(base.before / small.at, base.at / small.before if small.before else math.inf))
        are_known = base.step and small.step and base.before and small.before
        ours.append(f"{base.at / small.at:.1f} ×" if are_known else f"{_span(growths[-1])} ×")
    bounds = [(GROWN, math.inf), *[(0, STEADY)] * len(VARIANTS)]
    return Finding(
        "; ".join(ours), are_all([lies_in(growth, *bound) for growth, bound in zip(growths, bounds, strict=True)])
    )


def check_loss(data: Collection, size: str, attention: str, expected: float) -> Finding:
    """How much higher than that of `original` an operator's last validation loss is, near what is expected."""
    ours, original = (float(losses_in(data, size, name).to_numpy()[:, -1].mean()) for name in (attention, "original"))
    return Finding(listed("{:.3f}", [ours - original]), abs(ours - original - expected) <= LOSS_TOLERANCE)


def check_step_time(data: Collection, size: str) -> Finding:
    """Percentage of the step time of `original` that `shared` saves, measured in turns on one device."""
    speeds = data.speeds[data.speeds["size"] == size].set_index("attention")
    _need(speeds.index, ("shared", "original"), f"no step times of {size}-{{}}")
    saved = 100 * (1 - speeds.at["shared", "ratios"])
    mean = listed("{:.1f} %", [spread(saved.tolist()).mean])
    if len(saved) < FEWEST:
        return Finding(mean, None)
    interval = paired_interval(saved)
    holds = None if interval.includes(TIME_SAVED) else interval.low > TIME_SAVED
    return Finding(f"{mean} [{listed('{:.1f}', [interval.low])}, {listed('{:.1f}', [interval.high])}]", holds)


Check = Callable[[Collection, str], Finding]  # of a size; raises MissingEvidence
Obstacle = Callable[[Collection], str | None]  # why an experiment may not judge a claim
CHECKS: dict[str, tuple[Check, Obstacle | None]] = {  # by their names in templates/claims.csv
    "parameters": (check_parameters, None),
    "thirds": (check_thirds, None),
    "scores": (check_scores, other_scores),
    "lead of pairwise": (partial(check_lead, attention="pairwise"), other_scores),
    "lead of symmetric": (partial(check_lead, attention="symmetric", sign=-1), other_scores),
    "deviations": (check_deviations, other_scores),
    "half": (check_half, other_scores),
    "escapes": (partial(check_escapes, attentions=ALL), other_training),
    "escape of original": (partial(check_escapes, attentions=("original",)), other_training),
    "growth": (check_growth, other_training),
    "loss of symmetric": (partial(check_loss, attention="symmetric", expected=0.1), other_training),
    "loss of pairwise": (partial(check_loss, attention="pairwise", expected=0), other_training),
    "attention parameters": (check_attention_parameters, None),
    "step time": (check_step_time, other_training),
    "small tasks": (partial(check_lead, attention="shared", columns=SMALL_TASKS), other_scores),
    "robustness": (check_robustness, other_robustness),
}


NOT_TESTED = "not tested here"
VERDICTS = {True: "holds", False: "does not hold", None: "undecided"}


def claims_table(data: Collection) -> Table | list[str]:
    """Claims of arXiv 2406.06366 (by section) and of the abstract of arXiv 2412.00359 that can be judged here: what
    the papers print, what the raw files of the first one’s authors give, and what this experiment gives.
    Differences of scores are in points, in brackets Welch’s 95 % interval, p with Holm’s correction; losses in
    nats; steps to 95 % with the checkpoints around them, and what these leave open of their ratio. Scores are means
    over the seeds of Table 3, those of checkpoints over the seeds of Figure 3. The paper reads the end of the
    plateau off a plot; here and of the raw files it is the median escape, which comes later. Undecided: no
    difference is significant, there are too few seeds, or the checkpoints or evaluations leave both open. Only
    counts of parameters are judged on models of another size, on other data, or with other settings than the
    paper’s. The csv has all claims.
    """
    judged = judged_claims(data, CHECKS)
    if not is_pretrained_here(data.experiment):
        return [f"Nothing was pre-trained here, so none of the {len(judged)} claims about operators is tested."]
    order = ("claim", "models", "the_paper", "raw_files", "here", "verdict", "holds_if", "source")
    rows = [{key: row[key] for key in order} for row in judged]
    shown = [row for row in rows if row["verdict"] in VERDICTS.values()]
    remark = " ".join(_not_judged(data, [row for row in rows if row not in shown]))
    return table_of(rows, readable=frame_of(shown), remark=remark) if shown else [remark]


def _not_judged(data: Collection, rows: list[dict[str, str | None]]) -> Iterator[str]:
    """A sentence for the claims about sizes that were not trained here, and for each other reason."""
    scored = () if data.trained is None else data.trained["size"]
    known, by_reason = {*data.runs["size"], *scored}, defaultdict(list)
    for row in rows:
        size = row["models"].partition(":")[0]
        reason = row["verdict"].removeprefix(f"{NOT_TESTED}: ")
        by_reason[reason if size in known else None].append(row)
    for reason, of_reason in by_reason.items():
        claims = "; ".join(dict.fromkeys(row["claim"] for row in of_reason))
        sizes = " or ".join(sorted({family(row["models"].partition(":")[0]) for row in of_reason}))
        number, is_one = f"{len(of_reason)} claim{'s' * (len(of_reason) > 1)}", len(of_reason) == 1
        why = (
            f"need{'s' * is_one} {sizes}"
            if reason is None
            else f"{'is' if is_one else 'are'} {NOT_TESTED}, as {reason}"
        )
        yield f"{number} {why}: {claims}."


def judged_claims(data: Collection, checks: Container[str]) -> list[dict[str, str | None]]:
    """The rows of templates/claims.csv with these checks, what this experiment gives (`here`), and the `verdict`."""
    rows = []
    with open(CLAIMS, encoding="utf-8", newline="") as lines:
        for claim in csv.DictReader(lines):
            if claim["check"] not in checks:
                continue
            ours, verdict = _judged(claim["models"].partition(":")[0], *CHECKS[claim["check"]], data)
            rows.append({key: cell or None for key, cell in claim.items()} | {"here": ours, "verdict": verdict})
    return rows


def _judged(size: str, check: Check, obstacle: Obstacle | None, data: Collection) -> tuple[str | None, str]:
    """What this experiment gives, and the verdict, with the reason where the claim is not tested.

    Without models of base, what the largest other size gives is shown and not judged.
    """
    try:
        finding = check(data, size)
    except MissingEvidence as missing:
        scored = [] if data.trained is None else data.trained["size"]
        for other in filter(None, data.known.sizes([*scored, *data.runs["size"]])[::-1] if size == "base" else ()):
            with suppress(MissingEvidence):
                return f"{other}: {check(data, other).ours}", f"{NOT_TESTED}: {missing}"
        return None, f"{NOT_TESTED}: {missing}"
    if obstacle and (reason := obstacle(data)):
        return finding.ours, f"{NOT_TESTED}: {reason}"
    return finding.ours, VERDICTS[finding.holds]
