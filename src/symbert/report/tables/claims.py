"""The claims of the papers, one a row: what papers, authors' files and this experiment give, and a verdict."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from symbert.report import captions, published
from symbert.report.claims import CLAIMS, Claim
from symbert.report.claims.evidence import Evidence, MissingEvidence, sizes_of
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, table_of
from symbert.report.runs import models_of

Row = dict[str, Any]
NOT_TESTED = "not tested here"
VERDICTS = {True: "holds", False: "does not hold", None: "undecided"}
CAPTION = (
    f"Claims of {published.PAPER} (by section) and of the abstract of {published.SHARED_PAPER}: what the papers print, "
    "what the raw files of the first one's authors give, and what this experiment gives. Scores are in percent, their "
    "differences in percentage points over the seeds that both models have, in brackets the span of the paired and the "
    "unpaired 95 % interval, which takes three seeds; losses in nats; steps to 95 % with the checkpoints around them, "
    "or more than the last, and what these checkpoints leave open of their ratio, also without each run that collapsed "
    "(predicts one class throughout), where that changes it; plateau exits by the rule of figure 2, a dash where a run "
    "has none. Undecided: the interval includes what it would have to exclude, or there is none; the checkpoints leave "
    "both open; or a single collapsed run would decide. Not tested here: nothing but counts of parameters, which are "
    "exact, is judged on models of another size, on other data, or with settings other than the paper's; where models "
    "of base are missing, those of the largest size here are shown. Claims about shared "
    f"are tested by the protocol of {published.PAPER}, which is not that of {published.SHARED_PAPER}."
)


@exhibit(
    chapter="Claims",
    heading="What became of the papers’ claims",
    caption="Claims of arXiv 2406.06366 and arXiv 2412.00359: what the papers print, what the authors' raw files "
    "give, what this experiment gives, and a verdict: undecided where the interval of a difference includes what it "
    "would have to exclude, or checkpoints leave it open, and not tested here wherever this experiment is not at the "
    "paper's settings.",
    reads=("settings", "parameters"),
    may_read=("scores", "curve", "runs", "timings", "robustness"),
)
def claims_table(data: Data) -> Table:
    """A row per claim; verdicts that were reached here are bold. Claims about what is not given are not tested."""
    models = models_of(data.runs)
    evidence = Evidence(data.settings, data.parameters, data.trained, data.curve, models, data.timings, data.robustness)
    rows = [_row(claim, evidence) for claim in CLAIMS]
    reached = {(at, "verdict") for at, row in enumerate(rows) if not row["verdict"].startswith(NOT_TESTED)}
    seeds = 0 if evidence.scores is None else evidence.scores["pretrain_seed"].nunique()
    of_one = " With one pre-training seed, intervals speak of the noise of fine-tuning only." if seeds == 1 else ""
    caption = f"{CAPTION}{of_one} {captions.experiment_of(evidence.settings)}."
    return table_of(rows, caption, "tab:claims", best=frozenset(reached))


def _row(claim: Claim, evidence: Evidence) -> Row:
    ours, verdict = judge(claim, evidence)
    return {
        "claim": claim.text,
        "models": claim.models,
        "the_paper": claim.paper,
        "raw_files": claim.authors,
        "here": ours,
        "verdict": verdict,
        "holds_if": claim.rule,
        "source": claim.source,
    }


def judge(claim: Claim, evidence: Evidence) -> tuple[str | None, str]:
    """What this experiment gives, and the verdict, with the reason where the claim is not tested.

    Without models of base, what the largest other size gives is shown and not judged.
    """
    try:
        finding = claim.finding(evidence, claim.size)
    except MissingEvidence as missing:
        return _elsewhere(claim, evidence), f"{NOT_TESTED}: {missing}"
    obstacle = OBSTACLES[claim.about](evidence)
    if obstacle:
        return finding.ours, f"{NOT_TESTED}: {obstacle}"
    hangs = f": it hangs on {finding.hangs_on}" if finding.hangs_on else ""
    return finding.ours, f"{VERDICTS[finding.holds]}{hangs}"


def _elsewhere(claim: Claim, evidence: Evidence) -> str | None:
    for size in sizes_of(evidence) if claim.size == "base" else ():
        try:
            return f"{size}: {claim.finding(evidence, size).ours}"
        except MissingEvidence:
            continue
    return None


def _other_training(evidence: Evidence) -> str | None:
    """Why losses are not comparable with the paper's; None where they are."""
    settings = evidence.settings
    if captions.shows_the_papers_losses(settings):
        return None
    if captions.is_imported(settings):
        return f"pre-training took {settings.steps:,} steps, the paper’s {published.TRAINING[0]:,}"
    return "the corpus is a stand-in" if settings.corpus_source == "embedded" else "pre-training is not the paper’s"


def _other_scores(evidence: Evidence) -> str | None:
    """Why scores are not comparable with the paper's; None where they are."""
    tables = [_counted(table) for table in (evidence.scores, evidence.curve) if table is not None]
    if any(table["stand_in"].any() for table in tables):
        return "the tasks are stand-ins"
    if any(table["partial"].any() for table in tables):
        return "tasks have other rows than GLUE’s"
    other = _other_training(evidence)
    if other or captions.shows_the_papers_scores(evidence.settings):
        return other
    return "fine-tuning is not the paper’s"


def _counted(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores that count for the GLUE score."""
    return scores[scores["column"].isin(published.COLUMNS)]


def _other_robustness(evidence: Evidence) -> str | None:
    """As `_other_scores`; out-of-domain sets must be whole, too."""
    partial = evidence.robustness is not None and evidence.robustness["partial"].any()
    return _other_scores(evidence) or ("out-of-domain sets have other rows than published" if partial else None)


OBSTACLES: dict[str, Callable[[Evidence], str | None]] = {  # to judging, by what a claim is about
    "counts": lambda evidence: None,
    "losses": _other_training,
    "scores": _other_scores,
    "robustness": _other_robustness,
}
