"""Table 2, continued: what training each model gave and took, from this experiment's runs."""

import pandas as pd

from symbert.report import captions, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.machines import RUN
from symbert.report.runs import losses_of
from symbert.report.statistics import spread
from symbert.settings import ReportSettings

OF_SEVERAL = ("pretrain_seeds", "std")  # columns that take several pre-training seeds


@exhibit(chapter="Pre-training", place=4, heading="Table 2, continued: training", reads=("settings", "runs", "timings"))
def training_table(data: Data) -> Table:
    """Table 2, continued: what training gave and took, per model: validation loss at the last step, standard
    deviation of logits and entropy of attention before training, and speed, measured on these
    machines as they were.
    """
    settings, losses = data.settings, losses_of(data.runs)
    pretrain_seeds = max(map(len, losses.values()))
    hidden = () if pretrain_seeds > 1 else OF_SEVERAL
    runs = data.runs.drop_duplicates(list(RUN)).merge(data.timings, on=list(RUN))
    rows = []
    for (size, attention), seeds in runs.groupby(["size", "attention"], sort=False):
        loss = spread(losses[size, attention].iloc[:, -1])
        step, tokens, mfu = (_speed(seeds, key) for key in ("step_seconds", "tokens_per_second", "mfu"))
        row = {
            "size": size,
            "attention": attention,
            "pretrain_seeds": loss.count,
            "validation_loss": decimal_of(loss.mean, 3),
            "std": decimal_of(loss.deviation, 3),
            "logit_std": decimal_of(_mean(seeds["logit_std"]), 3),
            "attention_entropy": decimal_of(_mean(seeds["attention_entropy"]), 3),
            "step_milliseconds": None if step is None else 1000 * step,
            "of_original_percent": _mean(seeds["of_original_percent"]),
            "tokens_per_second": decimal_of(tokens, 0),
            "mfu_percent": None if mfu is None else 100 * mfu,
        }
        rows.append({key: value for key, value in row.items() if key not in hidden})
    return table_of(rows, _caption(settings, pretrain_seeds, data.timings), "tab:training")


def _speed(seeds: pd.DataFrame, key: str) -> float | None:
    """Mean of a speed over the seeds that were timed; None without any, or where they ran on different machines."""
    measured = seeds.dropna(subset=key)
    return _mean(measured[key]) if measured["machine"].nunique() == 1 else None


def _mean(values: pd.Series) -> float | None:
    """The mean of the values that were measured; None without any."""
    measured = values.dropna()
    return spread(measured).mean if len(measured) else None


def _caption(settings: ReportSettings, pretrain_seeds: int, timings: pd.DataFrame) -> str:
    claim = f" ({published.SHARED_PAPER} claims about a tenth less time for shared)"
    seeds_note = (
        "Values are means over pre-training seeds; std is the sample standard deviation of their validation losses. "
        "Speeds are a dash where the seeds of a model ran on different "
        "machines; the share of original is the mean over the seeds that original ran with on the same machine. "
    )
    return (
        f"Table 2, continued: what training gave and took ({captions.seeds_of(pretrain_seeds)}). Speed was measured "
        "on these machines as they were."
        f"\n\n{captions.wording_of(settings).experiment}. {captions.wording_of(settings).pretraining}. "
        f"{seeds_note if pretrain_seeds > 1 else ''}"
        "Validation loss: nats per masked token at the last step. "
        "Logit std and attention entropy "
        "(nats): of the untrained model, means over its layers. "
        "Runs side by side disturb each other; make bench-pretrain compares operators interleaved. Step: "
        "median over the steps of a run; of original: the share of the step time of original on the same machine"
        f"{claim if 'shared' in set(timings['attention']) else ''}. MFU: FLOPs of the model, with "
        "its head on masked positions only, in percent of the "
        "dense peak of the device's data sheet in that precision; a dash where none is known. "
        f"Machines: {_machines(timings)}."
    )


def _machines(timings: pd.DataFrame) -> str:
    """What the sizes ran on, with the range of the peaks measured there."""
    peaks = timings.groupby(["size", "machine"], sort=False)["peak_flops"]
    return "; ".join(f"{size} on {machine}{_peak(flops.dropna().tolist())}" for (size, machine), flops in peaks)


def _peak(measured: list[float]) -> str:
    if not measured:
        return ""
    unit, name = (1e12, "TFLOP/s") if min(measured) >= 1e12 else (1e9, "GFLOP/s")
    low, high = (f"{value / unit:,.0f}" for value in (min(measured), max(measured)))
    return f", peak {low if low == high else f'{low}–{high}'} {name}"
