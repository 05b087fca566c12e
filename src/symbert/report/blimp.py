"""How checkpoints judge minimal pairs: the records of `score` as a table of accuracies."""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from symbert.errors import DataError
from symbert.files import read_json
from symbert.glue.blimp import PARADIGMS
from symbert.glue.metrics import checked
from symbert.hosts import ENCODER, HOSTS
from symbert.report.order import model_rank
from symbert.report.runs import run_name
from symbert.report.scores import REMEDY

COUNTS = {"pairs": int, "right": int, "ties": int}
CHECKPOINT = {"size": str, "attention": str, "pretrain_seed": int, "step": int}  # of a host: HOST, or the encoder
HOST = "model_host"
FLAGS = {"partial": bool, "stand_in": bool}
RECORD = {**CHECKPOINT, **FLAGS, "paradigms": {str: COUNTS}, "settings_hash": str, "data_sha256": str}

Checkpoint = tuple[str | int, ...]  # its host, and the values of CHECKPOINT


def read_judgements(files: list[Path], settings_hash: str | None, wanted: Iterable[Checkpoint] = ()) -> pd.DataFrame:
    """A row per checkpoint and paradigm, in the order of tables: the checkpoint and its host, `phenomenon`, `paradigm`,
    its pairs, `accuracy` in percent, and whether the pairs are stand-ins or not all that are published.

    A tie counts half, as a coin would. DataError names the file of another shape, of pairs that do not add up, and of
    other settings or pairs than the others', and a checkpoint that is there twice, or `wanted` and not there;
    IntegrityError a file that was damaged since it was written.
    """
    records = []
    for file in files:
        record = checked(read_json(file, RECORD, REMEDY), str(file), REMEDY)
        records.append(record)
        for flaw in _flaws(record, records[0], settings_hash):
            raise DataError(f"{file}: {flaw}; {REMEDY}")
    judged = Counter(map(_checkpoint_of, records))
    for checkpoint in [one for one in judged if judged[one] > 1]:
        raise DataError(f"blimp: {_in_words(checkpoint)} is there twice; give it once")
    for checkpoint in [one for one in wanted if one not in judged]:
        raise DataError(f"blimp: {_in_words(checkpoint)} is missing; run again")
    records.sort(key=_rank)
    rows = [
        {"host": record.get(HOST, ENCODER), **{key: record[key] for key in (*CHECKPOINT, *FLAGS)}}
        | {"phenomenon": PARADIGMS[paradigm], "paradigm": paradigm, **counts}
        for record in records
        for paradigm, counts in record["paradigms"].items()
    ]
    table = pd.DataFrame(rows)
    table["accuracy"] = 100 * (table["right"] + table["ties"] / 2) / table["pairs"]
    return table


def _checkpoint_of(record: dict[str, Any]) -> Checkpoint:
    return record.get(HOST, ENCODER), *(record[key] for key in CHECKPOINT)


def _in_words(checkpoint: Checkpoint) -> str:
    host, *run, step = checkpoint
    return f"{'' if host == ENCODER else f'{host} '}{run_name(*run)} step {step}"


def _rank(record: dict[str, Any]) -> tuple[Any, ...]:
    host = list(HOSTS).index(record.get(HOST, ENCODER))
    return host, model_rank(record["size"], record["attention"]), record["pretrain_seed"], record["step"]


def _flaws(record: dict[str, Any], first: dict[str, Any], settings_hash: str | None) -> Iterator[str]:
    """What is wrong with a record, beside the first of all."""
    if list(record["paradigms"]) != list(PARADIGMS):
        yield f"has {len(record['paradigms'])} paradigms, expected BLiMP's {len(PARADIGMS)} in their order"
    for paradigm, counts in record["paradigms"].items():
        if not (min(counts.values()) >= 0 and 0 < counts["pairs"] >= counts["right"] + counts["ties"]):
            yield f"counts of {paradigm} do not add up"
    if record.get(HOST, ENCODER) not in HOSTS:
        yield f"{HOST!r} is {record[HOST]}, expected one of {', '.join(HOSTS)}"
    if settings_hash is not None and record["settings_hash"] != settings_hash:
        yield f"judged under settings {record['settings_hash']}, expected {settings_hash}"
    if record["data_sha256"] != first["data_sha256"]:
        yield "judged other pairs than the other checkpoints"
