"""What trained attention looks like: symmetry, directionality, width, entropy and own share, layer by layer."""

from symbert.report import captions
from symbert.report.anatomy import MEASURES, MODEL
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of

PLACE = [column for column in MODEL if column != "pretrain_seed"]


@exhibit(chapter="Operators", place=6, heading="Attention of trained models", reads=("settings", "anatomy"))
def anatomy_table(data: Data) -> Table:
    """Symmetry and directionality of the scores of heads, width of their logits, entropy of their attention and the
    share that a token gives to itself, for each layer at the last step; the csv has all steps.
    """
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
