"""How fast operators train, as `symbert measure-speeds` measured them in turns: their files as a data frame."""

from pathlib import Path

import pandas as pd

from symbert.errors import DataError
from symbert.files import read_json

REMEDY = "delete it and run again"
OPERATOR = {"step_seconds": [(int, float)], "flops_per_step": (int, float)}
SPEEDS = {"size": str, "device": str, "processor": str, "precision": str, "threads": int, "micro_batch_size": int}
SPEEDS |= {"peak_flops": (int, float, type(None)), "tokens_per_step": int, "operators": {str: OPERATOR}}
SHOWN = ("step_milliseconds", "of_original_percent", "tokens_per_second", "mfu_percent")
COLUMNS = ("size", "attention", *SHOWN, "ratios", "machine")


def read_speeds(files: list[Path]) -> pd.DataFrame:
    """A row per size and operator, from a file per size; `machine` is in words.

    `step_milliseconds` is the median over rounds. `ratios` are the step times by those of `original` in the same round,
    None without it, and `of_original_percent` is their median. DataError names the file of another shape.
    """
    rows = []
    for file in files:
        if not read_json(file, {"operators": dict})["operators"]:
            continue
        measured = read_json(file, SPEEDS)
        seconds = pd.DataFrame({name: each["step_seconds"] for name, each in measured["operators"].items()})
        if seconds.empty:
            raise DataError(f"{file}: no step was timed; {REMEDY}")
        peak = measured["peak_flops"]
        for name, each in measured["operators"].items():
            ratios = (seconds[name] / seconds["original"]).to_numpy() if "original" in seconds else None
            step = float(seconds[name].median())
            rows.append(
                {
                    "size": measured["size"],
                    "attention": name,
                    "step_milliseconds": 1000 * step,
                    "of_original_percent": None if ratios is None else 100 * float(pd.Series(ratios).median()),
                    "tokens_per_second": measured["tokens_per_step"] / step,
                    "mfu_percent": peak and 100 * each["flops_per_step"] / step / peak,
                    "ratios": ratios,
                    "machine": _machine(measured),
                }
            )
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _machine(measured: dict) -> str:
    device, threads = measured["device"], measured["threads"]
    parts = [f"cpu ({measured['processor']})" if device == "cpu" else device, measured["precision"]]
    parts += [f"{threads} thread{'s' if threads > 1 else ''}", f"{measured['micro_batch_size']:,} sequences at a time"]
    return ", ".join(parts)
