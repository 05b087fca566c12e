"""Table 2, continued: what training each model gave and took, from this experiment's runs."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import groupby
from typing import Any

from symbert.report import captions, published
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, decimal_of, table_of
from symbert.report.runs import Model, Timing, models_of, of_original
from symbert.report.statistics import Spread, spread
from symbert.settings import ReportSettings

Row = dict[str, Any]
Timings = dict[tuple[str, str], list[Timing]]  # by size and operator, one per pre-training seed


@exhibit(chapter="Pre-training", place=4, heading="Table 2, continued: training", reads=("settings", "runs", "timings"))
def training_table(data: Data) -> Table:
    """Table 2, continued: what training gave and took, per model: validation loss at the last step, exit from the
    initial plateau, standard deviation of logits and entropy of attention before training, and speed, measured on these
    machines as they were.
    """
    settings, models = data.settings, models_of(data.runs)
    timings = {model: list(group) for model, group in groupby(data.timings, key=lambda run: (run.size, run.attention))}
    pretrain_seeds = max(len(model.runs) for model in models)
    rows = [_row(model, timings, pretrain_seeds > 1) for model in models]
    return table_of(rows, _caption(settings, pretrain_seeds, data.timings), "tab:training")


def _row(model: Model, timings: Timings, several: bool) -> Row:
    loss, own = spread(run.losses[-1] for run in model.runs), timings[model.size, model.attention]
    step, tokens, mfu = (_speed(own, key) for key in ("step_seconds", "tokens_per_second", "mfu"))
    return {
        "size": model.size,
        "attention": model.attention,
        **({"pretrain_seeds": loss.count} if several else {}),
        "validation_loss": decimal_of(loss.mean, 3),
        **({"std": _decimal(loss.deviation)} if several else {}),
        **_exits(model, several),
        "logit_std": _decimal(_mean(run.logit_std for run in model.runs)),
        "attention_entropy": _decimal(_mean(run.attention_entropy for run in model.runs)),
        "step_milliseconds": None if step is None else 1000 * step,
        "of_original_percent": of_original(own, timings.get((model.size, "original"), [])),
        "tokens_per_second": None if tokens is None else round(tokens),
        "mfu_percent": None if mfu is None else 100 * mfu,
    }


def _exits(model: Model, several: bool) -> Row:
    """Mean exit from the plateau and its range; None where a seed does not leave it."""
    exits: Spread | None = None if None in model.exits else spread(model.exits)
    mean = {"plateau_exit": exits and round(exits.mean)}
    return mean | {"earliest_exit": exits and exits.lowest, "latest_exit": exits and exits.highest} if several else mean


def _speed(own: list[Timing], key: str) -> float | None:
    """Mean of a speed over the seeds that were timed; None without any, or where they ran on different machines."""
    measured = [timing for timing in own if getattr(timing, key) is not None]
    return _mean(getattr(timing, key) for timing in measured) if len({run.machine for run in measured}) == 1 else None


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that were measured; None without any."""
    measured = [value for value in values if value is not None]
    return spread(measured).mean if measured else None


def _decimal(value: float | None) -> Decimal | None:
    return None if value is None else decimal_of(value, 3)


def _caption(settings: ReportSettings, pretrain_seeds: int, timings: list[Timing]) -> str:
    claim = f" ({published.SHARED_PAPER} claims about a tenth less time for shared)"
    return (
        f"Table 2, continued: training. {captions.experiment_of(settings)}. "
        f"{captions.pretraining_of(settings, pretrain_seeds)} {_seeds_note(pretrain_seeds)}"
        "Validation loss: nats per masked token at the last step. Plateau exit: the first evaluation after the "
        "initial plateau, as in figure 2; a dash where a run does not leave it. Logit std and attention entropy "
        "(nats): of the untrained model, means over its layers. Speed was measured on these machines as they were, "
        "where runs side by side disturb each other; make bench-pretrain compares operators interleaved. Step: "
        "median over the steps of a run; of original: the share of the step time of original on the same machine"
        f"{claim if any(timing.attention == 'shared' for timing in timings) else ''}. MFU: FLOPs of the model, with "
        "its head on masked positions only, in percent of the peak that the run measured. "
        f"Machines: {_machines(timings)}."
    )


def _seeds_note(pretrain_seeds: int) -> str:
    """What is a mean and what a spread; empty for one seed."""
    if pretrain_seeds == 1:
        return ""
    return (
        "Values are means over pre-training seeds; std is the sample standard deviation of their validation losses, "
        "earliest and latest exit are their range. Speeds are a dash where the seeds of a model ran on different "
        "machines; the share of original is the mean over the seeds that original ran with on the same machine. "
    )


def _machines(timings: list[Timing]) -> str:
    """What the sizes ran on, with the range of the peaks measured there."""
    peaks: dict[tuple[str, str], list[float | None]] = {}
    for timing in timings:
        peaks.setdefault((timing.size, timing.machine), []).append(timing.peak_flops)
    return "; ".join(f"{size} on {machine}{_peak(flops)}" for (size, machine), flops in peaks.items())


def _peak(flops: list[float | None]) -> str:
    measured = [peak for peak in flops if peak is not None]
    if not measured:
        return ""
    unit, name = (1e12, "TFLOP/s") if min(measured) >= 1e12 else (1e9, "GFLOP/s")
    low, high = (f"{value / unit:,.0f}" for value in (min(measured), max(measured)))
    return f", peak {low if low == high else f'{low}–{high}'} {name}"
