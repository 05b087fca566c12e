"""Tables of heads and of probes: what trained attention looks like, and what operators can express."""

from typing import Any

import pandas as pd

from symbert.report import captions
from symbert.report.anatomy import MEASURES, MODEL
from symbert.report.collect import Collection
from symbert.report.formats import Table, decimal_of, table_of

PLACE = [column for column in MODEL if column != "pretrain_seed"]


def anatomy_table(data: Collection) -> Table | None:
    """Symmetry and directionality of the scores of heads, width of their logits, entropy of their attention and the
    share that a token gives to itself, for each layer at the last step; the csv has all steps.
    """
    if data.anatomy is None:
        return None
    heads, settings = data.anatomy, data.settings
    means = heads.groupby(PLACE, sort=False)[MEASURES].mean().reset_index()
    for measure in MEASURES:
        means[measure] = [decimal_of(value, 3) for value in means[measure]]
    last = means[means["step"] == means.groupby("size")["step"].transform("max")]
    seeds = heads["pretrain_seed"].nunique()
    caption = (
        f"Attention of trained models ({captions.seeds_of(seeds)}): means over the heads of each layer, on the first "
        f"validation rows of {captions.wording_of(settings).corpus}."
        f"\n\n{captions.wording_of(settings).experiment}. {captions.wording_of(settings).pretraining}. "
        "Symmetry: 1 where the score of two tokens is the same both ways, −1 where it "
        "changes sign, about 0 at random; directionality: 1 where few columns of the matrix of scores stand out, −1 "
        "where few rows do (Saponati et al. 2025, arXiv 2502.10927). Logit std over all pairs of tokens; attention "
        "entropy in nats; own share: of a token's attention, what it gives to itself."
    )
    return Table(means, caption, "tab:anatomy", readable=last.drop(columns="step"))


RELATIONS = ("cycle", "partner", "chain")


def probes_table(data: Collection) -> Table | None:
    """Share of tokens whose largest score is that of the token that they are to attend to, along a directed cycle, to
    partners and along a chain, with and without the own position.
    """
    if data.probes is None:
        return None
    probes = data.probes
    rows = [_row(name, probed) for name, probed in probes.groupby("attention", sort=False)]
    chances = sorted({f"{chance:.2f}" for chance in probes[probes["relation"].isin(RELATIONS)]["chance"]})
    caption = (
        "Relations between 16 tokens that one head learns: the share of tokens whose largest score is that of their "
        "target, the next of a directed cycle or of a chain, or a partner; others: no token may attend to itself. "
        "Lookups: the share of right answers."
        "\n\nIn brackets the exact 95 % interval over the tokens of five relations. Chance gives "
        f"{' or '.join(chances)}. Steps: the median until all tokens of a relation were right, over those of all "
        "relations that were learned. A symmetric score cannot point along a cycle. Lookups of one "
        "layer (recall of eight pairs, fuzzy with noisy keys, induction): the share of right answers when a training "
        "ends, at 0.9 or after 200 steps, with the lowest and highest of five seeds, and the median of the steps; "
        "chance gives 0.03."
    )
    return table_of(rows, caption, "tab:probes")


def _row(name: str, probed: pd.DataFrame) -> dict[str, Any]:
    cells = {}
    for each in probed.itertuples():
        column = f"{each.relation}{' others' if each.own_position == 'no' else ''}"
        cells[column] = f"{each.share:.2f} [{each.low:.2f}, {each.high:.2f}]"
        if each.relation not in RELATIONS and not pd.isna(each.steps):
            cells[column] += f" in {each.steps:.0f}"
    probed = probed[probed["relation"].isin(RELATIONS)]
    return {"attention": name, **cells, "steps": decimal_of(probed["steps"].median(), 0)}
