"""Challenge sets as their publishers' files have them."""

from pathlib import Path

import pyarrow as pa

from symbert.errors import DataError, MissingInputError
from symbert.glue.challenges import Challenge
from symbert.glue.sources import read_published, read_rows
from symbert.glue.tasks import GLUE


def read_challenge(challenge: Challenge, root: Path) -> pa.Table:
    """The columns of the task's text and `label` of a set in the directory `root`.

    MissingInputError names the file and its publisher, DataError the columns or labels that are not those of the set.
    """
    path, columns = _file(challenge, root), GLUE[challenge.task].columns
    schema = pa.schema([*((column, pa.string()) for column in columns), ("label", pa.int64())])
    try:
        if path.suffix == ".parquet":
            return read_published(path, str(path), schema, challenge.labels)
        rows = read_rows(path, challenge.layout, columns, challenge.labels)
        return pa.Table.from_pylist(list(rows), schema=schema)
    except DataError as error:
        raise DataError(f"{error} ({challenge.name} is published at {challenge.publisher})") from None


def _file(challenge: Challenge, root: Path) -> Path:
    for path in (root / file for file in challenge.files):
        if path.is_file():
            return path
    raise MissingInputError(
        f"{root / challenge.files[0]}: file not found, nor {challenge.files[1]}; get it from {challenge.publisher}, "
        f"or take '{challenge.collection}' out of 'glue.robustness.sets'"
    )
