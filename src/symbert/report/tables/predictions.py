"""Whether what an operator can express says how soon it leaves the plateau, and how it scores."""

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from symbert.report import captions
from symbert.report.correlation import rank_correlation
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.inference import holm
from symbert.report.order import sizes
from symbert.report.runs import exits_of, losses_of
from symbert.report.statistics import MEANS, seed_scores

LOOKUPS = ("recall", "fuzzy", "induction")
EXIT, SCORE = "plateau exit", "GLUE score"
GLUE_SCORE, _ = MEANS
EXPLANATION = (
    "Spearman's rank correlation over operators, of which there are few: the interval (95 %) is a bootstrap over "
    "operators and their seeds, p is exact over all orders of the operators, and the smallest p is what so many "
    "operators, with their ties, can give at all. Holm: corrected for all rows of a size. Of relations, which have the "
    "names of the table of probes, the share of right targets is measured; of lookups the steps until 0.9 of the "
    "answers are right. A run that stays on the plateau counts as later than all others. A dash: the measure is the "
    "same for all operators."
)


@exhibit(
    chapter="Operators",
    place=8,
    heading="Do probes predict?",
    reads=("settings", "runs", "scores", "probes"),
)
def predictions_table(data: Data) -> Table:
    """Whether what operators can express predicts their exit from the plateau and their score, and whether the exit
    predicts the score.
    """
    rows = [row for size in sizes(data.runs["size"]) for row in predictions_of(size, measures_of(size, data))]
    operators = max(row["operators"] for row in rows)
    caption = (
        f"Rank correlations over {operators} operators, from what a single layer can express or learn (probes) to the "
        f"plateau exit and the GLUE score. {captions.wording_of(data.settings).experiment}.\n\n{EXPLANATION}"
    )
    return table_of(rows, caption, "tab:predictions")


def predictions_of(size: str, measures: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """The rows of a size, from what `measures_of` gives."""
    probes, outcomes = ([name for name in measures if (name in (EXIT, SCORE)) == is_outcome] for is_outcome in (0, 1))
    pairs = [(probe, outcome) for outcome in outcomes for probe in probes]
    pairs += [(EXIT, SCORE)] if SCORE in outcomes else []
    found = [(first, second, rank_correlation(measures, first, second)) for first, second in pairs]
    tested = [one.p_value for *_, one in found if one.p_value is not None]
    corrected = iter(holm(tested).tolist() if tested else ())
    for first, second, one in found:
        low, high = one.interval or (None, None)
        yield {
            "size": size,
            "measure": first,
            "predicts": second,
            "operators": one.n,
            "correlation": one.value,
            "low": low,
            "high": high,
            "p_value": decimal_of(one.p_value, 4),
            "smallest_p_value": decimal_of(one.smallest_p_value, 4),
            "holm_p_value": None if one.p_value is None else decimal_of(next(corrected), 4),
        }


def measures_of(size: str, data: Data) -> pd.DataFrame:
    """A row per operator and seed of pre-training, a column per measure; what probes measure has no such seed."""
    columns: dict[str, dict[tuple[str, int], float]] = {}
    for each in data.probes.itertuples():
        name = f"{each.relation}{' others' if each.own_position == 'no' else ''}"
        steps = math.inf if pd.isna(each.steps) else each.steps
        columns.setdefault(name, {})[each.attention, -1] = steps if each.relation in LOOKUPS else each.share
    for (of, attention), losses in losses_of(data.runs).items():
        for seed, step in zip(losses.index, exits_of(losses), strict=True) if of == size else ():
            columns.setdefault(EXIT, {})[attention, seed] = math.inf if step is None else step
    scores = seed_scores(data.trained[data.trained["size"] == size])
    if GLUE_SCORE in scores:
        columns[SCORE] = scores[GLUE_SCORE].groupby(level=["attention", "pretrain_seed"]).mean().to_dict()
    measures = pd.DataFrame(columns)
    measures.index = measures.index.set_names(["attention", "seed"])
    return measures
