"""`symbert prepare-part`: the text of a part through the filters to token ids, in one process.

Documents are read, filtered and encoded a few at a time, so that memory depends on the longest documents and not on the
part; the text of kept documents is written nowhere.
"""

import hashlib
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from symbert.configuration import FilterSettings, settings_from
from symbert.console import Progress
from symbert.corpus.annotation import annotator
from symbert.corpus.blocklist import Blocklist, look_up_nothing
from symbert.corpus.counts import Tally
from symbert.corpus.dataset import Reading, rows_of
from symbert.corpus.document import Document, Line, documents, suffix_of
from symbert.corpus.filters import check_categories, make_rules
from symbert.corpus.guarded import DisagreementError, Guarded, guarded
from symbert.corpus.tokens import OFFSET, ArrayWriter, count_words, id_hash
from symbert.corpus.wordpiece import TOKEN, Reference, encoder, warn_of_misfit
from symbert.digests import FEWER_PARTS, listed_digest
from symbert.errors import DataError, IntegrityError, UsageError
from symbert.files import MEGABYTE, publish, read_json, sha256_of, together, write_json
from symbert.sources import RESTORE, Config, listed_sha256, located, name_of_text, verified

SETTINGS = {"filter": dict, "vocabulary": str, "split_by_content": bool}
OWN_PART = re.compile(r"[0-9a-f]{16}-\w+")  # as `name_of_text` calls it
AT_ONCE = 64  # documents that are filtered before they are encoded
FIRST_CHECKED = 16  # documents
CHECKED_SHARE = 200  # one document in so many


def prepare_part(text: Path, output: Path, /, max_bad_fraction: float = 0.0) -> None:
    """Write the token ids of the documents of a part that no rule drops, each [CLS] … [SEP], as one flat uint16 .npy.

    settings.json beside `output`, {part}.npy, has the filters, the vocabulary, the files that filters need, the
    publisher's list of digests, and how the files of a dataset are read. Written are also {part}.offsets.npy, an OFFSET
    for each document (its first token, the hash of its id or, by `split_by_content`, of its text, and its line in the
    part); and {part}.json, the `counts` of documents by outcome and the `record` of tokens, digests and encoder:
    `checked` documents were encoded twice and compared, `reference` documents have text for tokenizers alone.

    `max_bad_fraction` of the lines may be malformed. IntegrityError for another file than the publisher's, DataError
    for a damaged one.
    """
    settings = read_json(output.parent / "settings.json", SETTINGS)
    settings["filter"]["max_bad_fraction"] = max_bad_fraction
    if text.exists() and not (text.is_file() or text.is_dir()):
        raise UsageError(f"{text}: is no file, and a part is read twice: for its SHA-256 first; write it to a file")
    digest = _verified_digest(text, settings.get("checksums"))
    if (
        settings["split_by_content"]
        and OWN_PART.fullmatch(output.stem)
        and name_of_text(str(text), digest) != output.stem
    ):
        raise DataError(f"{text}: changed since the workflow was started; start it again")
    _write_part(text, output, settings, digest)


@together()
def _write_part(text: Path, output: Path, settings: Config, digest: str) -> None:
    vocabulary, offsets = verified(settings["vocabulary"]), output.with_suffix(".offsets.npy")
    reference = Reference(encoder(vocabulary))
    warn_of_misfit(vocabulary, reference.tokenizer)
    fast = guarded(reference)
    try:
        counts, record = _write(text, output, settings, fast or reference, fast and reference)
    except DisagreementError as difference:
        print(f"{text}: {difference}; tokenizers encodes the whole part", file=sys.stderr)
        counts, record = _write(text, output, settings, reference, None)
    digests = {"vocabulary_sha256": vocabulary, "tokens_sha256": output, "offsets_sha256": offsets}
    record |= {name: sha256_of(path) for name, path in digests.items()}
    facts = {
        "counts": {"part": output.stem, "file_sha256": digest, **counts},
        "record": {"part": output.stem, **record},
    }
    write_json(output.with_suffix(".json"), facts)


def _verified_digest(text: Path, checksums: str | None) -> str:
    """The SHA-256 of a part; IntegrityError when the publisher's list or that of its mirror has another."""
    digest = sha256_of(text, absent="download it, or correct corpus.files")
    if text.is_dir():
        verified(str(text))
        return digest
    listed = {RESTORE: listed_sha256(text)}
    if checksums:
        expected = listed_digest(verified(checksums), "sha256", text.name, remedy=FEWER_PARTS)
        listed["delete it and run again"] = expected.value
    for remedy, expected in listed.items():
        if expected not in (None, digest):
            raise IntegrityError(f"{text}: sha256 expected {expected}, found {digest}; {remedy}")
    return digest


def _write(
    text: Path, output: Path, settings: Config, tokenizer: Reference | Guarded, check: Reference | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Publish tokens and offsets; gives the counts of documents and of tokens.

    DisagreementError when `check` gives other ids of a document in the sample.
    """
    chosen = settings_from(settings["filter"], FilterSettings, "settings.json")
    rules, tally = make_rules(chosen), Tally(chosen)
    look_up, annotate = look_up_nothing, None
    if chosen.has("categories"):
        listed = Blocklist(Path(located(settings["blocklist"])))
        check_categories(chosen.blocked_categories, listed.names, listed.without_entries)
        look_up = partial(listed.look_up, match=chosen.match)
    if chosen.annotations == "computed":
        annotate = annotator(verified(settings["harmful_model"]) if "harmful_model" in settings else None, look_up)
    progress = Progress(f"prepare {output.stem}", None, "documents")

    dataset = msgspec.convert(settings["dataset"], Reading) if "dataset" in settings else None
    rows = rows_of(text, dataset) if dataset else None

    def kept() -> Iterator[Line]:
        for line, document in documents(text, chosen.annotations, tally.bad, chosen.has("categories"), rows):
            if annotate:
                document.metadata = annotate(document)
            categories = look_up(document.url)
            reasons = rules(document, categories)
            tally.document(document, categories, reasons)
            progress.update(tally.read, f"{tokens.length:,} tokens")
            if not reasons:
                yield line, document

    words = lines = checked = 0
    with (
        publish(output) as token_file,
        publish(output.with_suffix(".offsets.npy")) as offset_file,
        ArrayWriter(token_file, TOKEN) as tokens,
        ArrayWriter(offset_file, OFFSET) as offsets,
    ):
        for line, document in _some_at_once(kept()):
            content, name = document.content, id_of(document)
            hashed = id_hash(content if settings["split_by_content"] else name)  # first: it copies the text
            ids = tokenizer.encode(content)
            if check and (offsets.length < FIRST_CHECKED or hashed % CHECKED_SHARE == 0):
                if not all(map(np.array_equal, tokenizer.encoded(content), check.encoded(content))):
                    raise DisagreementError(f"document {name}: {tokenizer.name} gives other ids than {check.name}")
                checked += 1
            offsets.append(np.array([(tokens.length, hashed, line)], OFFSET))
            tokens.append(ids.astype(TOKEN, copy=False))
            words += count_words(content)
            lines += 1 + content.count("\n") + content.count("\r")
        tally.check(text)
    return tally.counts(), {
        "documents": offsets.length,
        "tokens": tokens.length,
        "words": words,
        "lines": lines if suffix_of(text) == ".txt" and not dataset else None,  # whose documents empty lines separate
        "encoder": {"name": tokenizer.name, "checked": checked, "reference": tokenizer.referred},
    }


def _some_at_once(documents: Iterator[Line]) -> Iterator[Line]:
    """The documents, of which some are made before the first of them is used: encoding alone keeps the caches warm.

    Not so many of long ones, which memory would have to hold.
    """
    some: list[Line] = []
    characters = 0
    for line, document in documents:
        some.append((line, document))
        characters += len(document.content)
        if len(some) == AT_ONCE or characters > MEGABYTE:
            yield from some
            some, characters = [], 0
    yield from some


def id_of(document: Document) -> str:
    """The WARC record id, or one derived from the text where there is none."""
    return document.record_id or f"sha256:{hashlib.sha256(document.content.encode()).hexdigest()}"
