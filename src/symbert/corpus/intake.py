"""When the corpus is full: parts are taken in batches, and after enough of them no other part is read."""

from pathlib import Path

from symbert.errors import UsageError
from symbert.files import read_json, write_json
from symbert.settings import IntakeSettings, read_settings

COUNTED = {"documents": int, "tokens": int}


def count_batch(records: list[Path], output: Path, previous: Path | None = None) -> None:
    """Add the documents and tokens of a batch of parts (records of tokenize-part) to those of the batches before it."""
    found = [read_json(path, COUNTED) for path in (*records, *([previous] if previous else []))]
    write_json(output, {key: sum(record[key] for record in found) for key in COUNTED})


def is_full(batch: Path | None, intake: Path | None) -> bool:
    """Whether the documents or tokens up to a batch, which count-batch wrote, are as many as the settings ask for.

    Without a batch, that is for the first parts, it is not. Whether a part is left out depends on parts of earlier
    batches only, never on how many workers there were.
    """
    if batch is None:
        return False
    if intake is None:
        raise UsageError("--batch says what there is, not how much is asked for; add --intake")
    limit, found = read_settings(intake, IntakeSettings), read_json(batch, COUNTED)
    return found["documents"] >= limit.max_documents or (
        limit.max_tokens is not None and found["tokens"] >= limit.max_tokens
    )
