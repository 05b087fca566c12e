"""Table 2, continued: what training each model gave and took, from this experiment's runs."""

import pandas as pd

from symbert.report import captions, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Rounded, Table, decimal_of, table_of
from symbert.report.runs import losses_of
from symbert.report.speeds import SHOWN
from symbert.report.statistics import spread

OF_SEVERAL = ("pretrain_seeds", "std")  # columns that take several pre-training seeds
SPEED = (
    " Speed: median over rounds that take one optimizer step of each operator, in one process; of original: the median "
    "share of the step time of original in the same round{claim}. MFU: FLOPs of the model, with its head on masked "
    "positions only, in percent of the dense peak of the device's data sheet in that precision, a dash where none is "
    "known. Machines: {machines}."
)


@exhibit(
    chapter="Pre-training",
    place=4,
    heading="Table 2, continued: training",
    reads=("settings", "runs"),
    may_read=("speeds",),
    of_imported=False,
)
def training_table(data: Data) -> Table:
    """Table 2, continued: what training gave and took, per model: validation loss at the last step, standard deviation
    of logits and entropy of attention before training, and speed, measured side by side.
    """
    losses, runs = losses_of(data.runs), data.runs.drop_duplicates(["size", "attention", "pretrain_seed"])
    starts = runs.set_index(["size", "attention"])
    speeds = data.speeds.set_index(["size", "attention"])
    pretrain_seeds = max(map(len, losses.values()))
    hidden = () if pretrain_seeds > 1 else OF_SEVERAL
    rows = []
    for (size, attention), seeds in losses.items():
        loss = spread(seeds.iloc[:, -1])
        speed = speeds.loc[(size, attention)] if (size, attention) in speeds.index else {}
        row = {
            "size": size,
            "attention": attention,
            "pretrain_seeds": loss.count,
            "validation_loss": decimal_of(loss.mean, 3),
            "std": decimal_of(loss.deviation, 3),
            **{name: _mean(starts.loc[[(size, attention)], name]) for name in ("logit_std", "attention_entropy")},
            **{name: speed.get(name) for name in SHOWN},
        }
        row["tokens_per_second"] = decimal_of(row["tokens_per_second"], 0)
        rows.append({key: value for key, value in row.items() if key not in hidden})
    return table_of(rows, _caption(data, pretrain_seeds), "tab:training")


def _mean(values: pd.Series) -> Rounded | None:
    """The mean of what runs logged; None where none did."""
    logged = values.dropna()
    return decimal_of(spread(logged).mean, 3) if len(logged) else None


def _caption(data: Data, pretrain_seeds: int) -> str:
    wording, speeds, speed = captions.wording_of(data.settings), data.speeds, ""
    if len(speeds):
        machines = dict(zip(speeds["size"], speeds["machine"], strict=True))
        is_claimed = "shared" in set(speeds["attention"])
        claim = f" ({published.SHARED_PAPER} claims about a tenth less time for shared)" if is_claimed else ""
        speed = SPEED.format(claim=claim, machines="; ".join(f"{size} on {it}" for size, it in machines.items()))
    of_several = (
        "Values are means over pre-training seeds; std is the sample standard deviation of their validation losses. "
    )
    return (
        f"Table 2, continued: what training gave and took ({captions.seeds_of(pretrain_seeds)})."
        f"\n\n{wording.experiment}. {wording.pretraining}. {of_several if pretrain_seeds > 1 else ''}"
        "Validation loss: nats per masked token at the last step. Logit std and attention entropy (nats): of the "
        f"untrained model, means over its layers.{speed}"
    )
