"""The claims of the two papers as data: what they print, what the authors' raw files give, and what makes each hold.

Sources: arXiv 2406.06366 by section, and the abstract of arXiv 2412.00359 for `shared`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from symbert.report import measures
from symbert.report.evidence import Evidence
from symbert.report.measures import HALVED, SMALL_TASKS, VARIANTS, Finding, halves, listed
from symbert.report.published import (
    ATTENTION_SAVED,
    PARAMETERS_SAVED,
    PLATEAU_EXITS,
    RAW_CROSSINGS,
    RAW_FINAL_LOSSES,
    RAW_PLATEAU_EXITS,
    RAW_SCORES,
    SCORES,
    SHARED_PAPER,
)
from symbert.report.statistics import Crossing


@dataclass(frozen=True)
class Claim:
    """A claim about models of one size, in plain words.

    `paper` and `authors` are the values that the paper prints and that its authors' raw files give, `rule` what makes
    the claim hold. `about` names what must be the paper's before an experiment may judge it.
    """

    text: str
    size: str
    models: str  # operators that values are listed of, in this order
    source: str
    paper: str
    authors: str | None
    rule: str
    check: Callable[[Evidence, str], Finding]
    about: str  # counts | losses | scores | robustness


def _values(form: str, printed: Mapping[tuple[str, str], float], size: str, *attentions: str) -> str:
    return listed(form, (printed[size, name] for name in attentions))


def _scores(printed: Mapping[tuple[str, str], tuple[float, ...]], size: str, at: int, *attentions: str) -> str:
    """GLUE scores of operators, or with `at` 1 their standard deviations."""
    return listed("{:.2f}", (printed[size, name][at] for name in attentions))


def _less_original(form: str, printed: Mapping[tuple[str, str], float], size: str, attention: str) -> str:
    return listed(form, [printed[size, attention] - printed[size, "original"]])


def _points(printed: Mapping[tuple[str, str], tuple[float, ...]], size: str, attention: str) -> str:
    """The difference in GLUE score to `original`."""
    return listed("{:.1f}", [printed[size, attention][0] - printed[size, "original"][0]])


def _crossings(printed: Mapping[tuple[str, str], tuple[int, int, int]]) -> str:
    return halves(*(Crossing(*printed["base", name]) for name in HALVED))


ABOVE, BELOW = "95 % interval above 0", "95 % interval below 0"
ALL = ("original", *VARIANTS)

CLAIMS: tuple[Claim, ...] = (
    Claim(
        "About 6 % fewer parameters",
        "base",
        "symmetric; pairwise",
        "abstract, §2.4, table 2",
        paper=_values("{:.2f} %", PARAMETERS_SAVED, "base", *VARIANTS),
        authors=None,
        rule="the printed digits",
        check=measures.check_parameters,
        about="counts",
    ),
    Claim(
        "About 3 % fewer parameters",
        "small",
        "symmetric; pairwise",
        "§2.4, table 2",
        paper=_values("{:.2f} %", PARAMETERS_SAVED, "small", *VARIANTS),
        authors=None,
        rule="the printed digits",
        check=measures.check_parameters,
        about="counts",
    ),
    Claim(
        "A third fewer parameters in query, key and value; with pairwise, towards a third as heads are added",
        "base",
        "symmetric; pairwise",
        "§2.4, §7",
        paper="1/3; towards 1/3",
        authors=None,
        rule="symmetric saves a third; pairwise less, and more of it in base than in small",
        check=measures.check_thirds,
        about="counts",
    ),
    Claim(
        "A GLUE score of 79.36 against 78.74",
        "base",
        "pairwise; original",
        "abstract, §5.2, table 3",
        paper=_scores(SCORES, "base", 0, "pairwise", "original"),
        authors=_scores(RAW_SCORES, "base", 0, "pairwise", "original"),
        rule="both within two printed standard deviations",
        check=measures.check_scores,
        about="scores",
    ),
    Claim(
        "A higher GLUE score",
        "base",
        "pairwise − original",
        "§4.2, table 3",
        paper=_points(SCORES, "base", "pairwise"),
        authors=_points(RAW_SCORES, "base", "pairwise"),
        rule=ABOVE,
        check=partial(measures.check_higher, attention="pairwise"),
        about="scores",
    ),
    Claim(
        "A higher GLUE score",
        "small",
        "pairwise − original",
        "§4.2, table 3",
        paper=_points(SCORES, "small", "pairwise"),
        authors=None,
        rule=ABOVE,
        check=partial(measures.check_higher, attention="pairwise"),
        about="scores",
    ),
    Claim(
        "A lower GLUE score",
        "base",
        "symmetric − original",
        "§4.2, table 3",
        paper=_points(SCORES, "base", "symmetric"),
        authors=_points(RAW_SCORES, "base", "symmetric"),
        rule=BELOW,
        check=partial(measures.check_lower, attention="symmetric"),
        about="scores",
    ),
    Claim(
        "A lower GLUE score",
        "small",
        "symmetric − original",
        "§4.2, table 3",
        paper=_points(SCORES, "small", "symmetric"),
        authors=None,
        rule=BELOW,
        check=partial(measures.check_lower, attention="symmetric"),
        about="scores",
    ),
    Claim(
        "A lower standard deviation over fine-tuning seeds",
        "base",
        "symmetric; pairwise; original",
        "§4.2, §5.2",
        paper=_scores(SCORES, "base", 1, *VARIANTS, "original"),
        authors=_scores(RAW_SCORES, "base", 1, *VARIANTS, "original"),
        rule="95 % intervals of both ratios to original below 1",
        check=measures.check_deviations,
        about="scores",
    ),
    Claim(
        "95 % of the final score after half the pre-training steps",
        "base",
        "pairwise; original",
        "abstract, §4.3, figure 3",
        paper="30,000; 65,000",
        authors=_crossings(RAW_CROSSINGS),
        rule="pairwise needs at most 60 % of the steps of original, wherever between its checkpoints each gets there",
        check=measures.check_half,
        about="scores",
    ),
    Claim(
        "An initial plateau of the loss until step 25,000, 13,500 and 12,000",
        "base",
        "original; symmetric; pairwise",
        "§4.1, figure 2b",
        paper=_values("{:,}", PLATEAU_EXITS, "base", *ALL),
        authors=_values("{:,}", RAW_PLATEAU_EXITS, "base", *ALL),
        rule="each within 10 %",
        check=partial(measures.check_exits, attentions=ALL),
        about="losses",
    ),
    Claim(
        "An initial plateau of the loss until step 12,000",
        "small",
        "original",
        "§4.1, figure 2a",
        paper=_values("{:,}", PLATEAU_EXITS, "small", "original"),
        authors=None,
        rule="within 10 %",
        check=partial(measures.check_exits, attentions=("original",)),
        about="losses",
    ),
    Claim(
        "A plateau that lengthens from small to base, but hardly with the variants",
        "base",
        "original; symmetric; pairwise",
        "§4.1",
        paper="2.1 ×; hardly; hardly",
        authors=None,
        rule="original at least 1.5 ×, the others at most 1.25 ×",
        check=measures.check_growth,
        about="losses",
    ),
    Claim(
        "A final validation loss 0.1 higher",
        "base",
        "symmetric − original",
        "§4.1, §5.2",
        paper="0.1",
        authors=_less_original("{:.3f}", RAW_FINAL_LOSSES, "base", "symmetric"),
        rule="from 0.05 to 0.15",
        check=partial(measures.check_loss, attention="symmetric", expected=0.1),
        about="losses",
    ),
    Claim(
        "The same final validation loss",
        "base",
        "pairwise − original",
        "§4.1, §5.1",
        paper="0",
        authors=_less_original("{:.3f}", RAW_FINAL_LOSSES, "base", "pairwise"),
        rule="from −0.05 to 0.05",
        check=partial(measures.check_loss, attention="pairwise", expected=0.0),
        about="losses",
    ),
    Claim(
        "66.53 % fewer parameters in query, key and value",
        "base",
        "shared",
        SHARED_PAPER,
        paper=_values("{:.2f} %", ATTENTION_SAVED, "base", "shared"),
        authors=None,
        rule="the printed digits, cut off",
        check=measures.check_attention_parameters,
        about="counts",
    ),
    Claim(
        "About a tenth less training time",
        "base",
        "shared",
        SHARED_PAPER,
        paper="10 %",
        authors=None,
        rule="saves at least 5 % of a step",
        check=measures.check_step_time,
        about="losses",
    ),
    Claim(
        "Higher accuracy on small tasks of GLUE",
        "base",
        "shared − original",
        SHARED_PAPER,
        paper="up to 5.81 %",
        authors=None,
        rule=f"{ABOVE} in the mean of {', '.join(SMALL_TASKS)}",
        check=partial(measures.check_higher, attention="shared", columns=SMALL_TASKS),
        about="scores",
    ),
    Claim(
        "Better generalisation on noisy and out-of-domain data",
        "base",
        "shared − original",
        SHARED_PAPER,
        paper="no number in its abstract",
        authors=None,
        rule=f"{ABOVE} on both",
        check=partial(measures.check_robustness, attention="shared"),
        about="robustness",
    ),
)
