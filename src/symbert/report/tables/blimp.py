"""BLiMP: how often models find the acceptable sentence of a minimal pair likelier, by phenomenon."""

import pandas as pd

from symbert.glue.blimp import PAIRS_OF_PARADIGM
from symbert.report import captions
from symbert.report.blimp import accuracies
from symbert.report.collect import Collection
from symbert.report.formats import Table
from symbert.report.statistics import STAND_IN

STAND_INS = "stand-in pairs made from documentation text, not BLiMP: the worse sentence has two words exchanged"


def blimp_table(data: Collection) -> Table | None:
    """Share of minimal pairs in which a model finds the acceptable sentence likelier, without fine-tuning: the mean
    over all paradigms and that of each phenomenon, at the last step; the csv has all steps and seeds.
    """
    if data.blimp is None:
        return None
    judgements = data.blimp
    rows, last = accuracies(judgements), judgements.groupby("host")["step"].max()
    if judgements["stand_in"].any():
        rows = rows.add_suffix(STAND_IN)
    is_last = rows.index.get_level_values("step") == last[rows.index.get_level_values("host")].to_numpy()
    models = rows[is_last].groupby(level=["host", "size", "attention"], sort=False)
    readable = models.mean()
    if judgements["pretrain_seed"].nunique() > 1:
        readable.insert(1, "std", models[rows.columns[0]].std())
    readable.insert(0, "model", [captions.host_model(*model) for model in readable.index])
    return Table(rows.reset_index(), _caption(judgements, data), "tab:blimp", readable=readable)


def pairs_in_words(judgements: pd.DataFrame) -> str:
    """Which pairs were judged: '67 paradigms of 1,000 minimal pairs of BLiMP'."""
    pairs, paradigms = judgements["pairs"], judgements["paradigm"].nunique()
    each = f"{pairs.min():,}" if pairs.min() == pairs.max() else f"{pairs.min():,} to {pairs.max():,}"
    if judgements["stand_in"].any():
        return f"{paradigms} paradigms of {each} {STAND_INS}"
    of_all = f" of the {PAIRS_OF_PARADIGM:,}" if judgements["partial"].any() else ""
    return f"{paradigms} paradigms of {each}{of_all} minimal pairs of BLiMP"


def _caption(judgements: pd.DataFrame, data: Collection) -> str:
    wording, seeds = captions.wording_of(data.settings), judgements["pretrain_seed"].nunique()
    trained = captions.training_of_hosts(data.settings, list(dict.fromkeys(judgements["host"])))
    of_several = "; mean over pre-training seeds, std is their sample standard deviation" if seeds > 1 else ""
    of_decoders = ", of a decoder each given those before it" if (judgements["host"] == "decoder").any() else ""
    ties = 100 * judgements["ties"].sum() / judgements["pairs"].sum()
    return (
        f"Accuracy in percent on {pairs_in_words(judgements)}, at step {_last_steps(judgements)} "
        f"({captions.seeds_of(seeds)}){of_several}. Chance is 50."
        f"\n\n{wording.experiment}. {trained}. No fine-tuning. How likely a sentence is: the sum of the "
        f"log probabilities of its tokens, each masked alone (Salazar et al. 2020){of_decoders}. A tie counts half, as "
        f"a coin would: {ties:.2f} % of all pairs, such as those whose sentences have the same word pieces."
    )


def _last_steps(judgements: pd.DataFrame) -> str:
    """'1,800', or where hosts have other last steps '1,800 (decoder: 900)'."""
    first, *others = judgements.groupby("host", sort=False)["step"].max().items()
    differing = ", ".join(f"{host}: {step:,}" for host, step in others if step != first[1])
    return f"{first[1]:,}{f' ({differing})' if differing else ''}"
