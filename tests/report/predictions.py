"""The page of docs/evidence/predictions, from results of its experiment.

    PYTHONPATH=tests python -m report.predictions collect results/predictions docs/evidence/predictions/measures.csv
    PYTHONPATH=tests python -m report.predictions write docs/evidence/predictions/measures.csv …/README.md

`collect` keeps what the report's table reads: a row per operator and seed of pre-training (−1: of a probe, whose seeds
are its own), a column per measure. `write` puts two tables between the marks of the page: the report's, and the same of
the operators that leave the plateau.
"""

import math
import re
import sys
from pathlib import Path

import pandas as pd
import yaml

from symbert.own import define
from symbert.report.data import Data
from symbert.report.formats import table_of, to_markdown
from symbert.report.tables.predictions import measures_of, predictions_of

TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end of table -->)", re.DOTALL)
SIZE = "tiny"
LAST = 1_000  # step, which is scored


def collect(results: Path, measures: Path) -> None:
    """Write the measures of finished results of the experiment beside them, whose operators come in its order."""
    own = yaml.safe_load((measures.parent / "experiment.yaml").read_text(encoding="utf-8"))["operators"]
    define({"operators": own, "sizes": {}, "tasks": {}})
    runs = sorted(results.glob(f"pretrain/{SIZE}-*/seed-*"))
    data = Data(
        settings=results / "settings/report.json",
        done=[run / "done.json" for run in runs],
        metrics=[run / "metrics.jsonl" for run in runs],
        scores=sorted(results.glob(f"glue/{SIZE}-*/seed-*/step-{LAST}/*.json")),
        finetune_seeds=[1, 2],
        probes=results / "report/probes.csv",
    )
    measures_of(SIZE, data).to_csv(measures)


def read_measures(file: Path) -> pd.DataFrame:
    """What `collect` wrote."""
    return pd.read_csv(file, index_col=["attention", "seed"])


def table_in_markdown(measures: pd.DataFrame) -> str:
    """The report's table of the measures."""
    return to_markdown(table_of(list(predictions_of(SIZE, measures)), "", "")).lstrip()


def leaving(measures: pd.DataFrame) -> pd.DataFrame:
    """The measures of the operators whose median run leaves the plateau."""
    exits = measures["plateau exit"].groupby(level="attention").median()
    return measures[measures.index.get_level_values("attention").isin(exits[exits < math.inf].index)]


def tables_of(measures: pd.DataFrame) -> list[str]:
    """The tables of the page, in its order."""
    return [table_in_markdown(measures), table_in_markdown(leaving(measures))]


def write(measures: Path, page: Path) -> None:
    """Put the tables of the measures into the page."""
    tables = iter(tables_of(read_measures(measures)))
    page.write_text(TABLE.sub(lambda _: next(tables), page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    command, *paths = sys.argv[1:]
    {"collect": collect, "write": write}[command](*map(Path, paths))
