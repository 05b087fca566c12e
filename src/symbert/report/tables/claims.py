"""The claims of the papers, one a row: what papers, authors' files and this experiment give, and a verdict."""

from contextlib import suppress

from symbert.report import captions, order, published
from symbert.report.claims import CLAIMS, Claim, MissingEvidence
from symbert.report.collect import Collection
from symbert.report.formats import Table, table_of

NOT_TESTED = "not tested here"
VERDICTS = {True: "holds", False: "does not hold", None: "undecided"}
CAPTION = (
    f"Claims of {published.PAPER} (by section) and of the abstract of {published.SHARED_PAPER}: what the papers print, "
    "what the raw files of the first one's authors give, and what this experiment gives."
    "\n\nScores are in percent, their differences in percentage points over the seeds that both models have, in "
    "brackets Welch’s 95 % interval, p by the permutation test of the statistics with Holm’s correction; time by the "
    "interleaved measurement of the operators’ steps; losses in nats; steps to 95 % with the checkpoints around them, "
    "or more than the last, and what these checkpoints leave open of their ratio, also without each run that collapsed "
    "(predicts one class throughout), where that changes it; plateau exits by the rule of figure 2, the median over "
    "runs, a dash where most stay. Undecided: no difference is significant, or there are too few seeds for a test; "
    "the checkpoints leave both open; or a single collapsed run would decide. Not tested here: nothing but counts of "
    "parameters, which are exact, is judged on models of another size, on other data, or with settings other than the "
    "paper's; where models of base are missing, those of the largest size here are shown. Claims about shared are "
    f"tested by the protocol of {published.PAPER}, which is not that of {published.SHARED_PAPER}."
)


def claims_table(data: Collection) -> Table:
    """Claims of arXiv 2406.06366 and arXiv 2412.00359: what the papers print, what the authors' raw files give, what
    this experiment gives, and a verdict: undecided where a difference is not significant or checkpoints leave it open,
    and not tested here wherever this experiment is not at the paper's settings.
    """
    rows, reached = [], set()
    for claim in CLAIMS:
        ours, verdict = _judged(claim, data)
        if not verdict.startswith(NOT_TESTED):
            reached.add((len(rows), "verdict"))
        row = {"claim": claim.text, "models": claim.models, "the_paper": claim.paper, "raw_files": claim.authors}
        rows.append(row | {"here": ours, "verdict": verdict, "holds_if": claim.rule, "source": claim.source})
    seeds = 0 if data.trained is None else data.trained["pretrain_seed"].nunique()
    of_one = (
        " With one pre-training seed, intervals and p speak of the noise of fine-tuning only." if seeds == 1 else ""
    )
    caption = f"{CAPTION}{of_one} {captions.wording_of(data.settings).experiment}."
    folded = {at for at in range(len(rows)) if (at, "verdict") not in reached}
    return table_of(
        rows, caption, "tab:claims", best=reached, folded=frozenset(folded), folded_as=_in_words(len(folded))
    )


def _in_words(untested: int) -> str:
    return f"{untested} claim{'' if untested == 1 else 's'} not tested here, with the reasons"


def _judged(claim: Claim, data: Collection) -> tuple[str | None, str]:
    """What this experiment gives, and the verdict, with the reason where the claim is not tested.

    Without models of base, what the largest other size gives is shown and not judged.
    """
    try:
        finding = claim.check(data, claim.size)
    except MissingEvidence as missing:
        scored = [] if data.trained is None else data.trained["size"]
        for size in order.sizes([*scored, *data.runs["size"]])[::-1] if claim.size == "base" else ():
            with suppress(MissingEvidence):
                return f"{size}: {claim.check(data, size).ours}", f"{NOT_TESTED}: {missing}"
        return None, f"{NOT_TESTED}: {missing}"
    if claim.unless and (obstacle := claim.unless(data)):
        return finding.ours, f"{NOT_TESTED}: {obstacle}"
    hangs = f": it hangs on {finding.hangs_on}" if finding.hangs_on else ""
    return finding.ours, f"{VERDICTS[finding.holds]}{hangs}"
