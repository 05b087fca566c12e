"""`symbert prepare-part`: the text of a part through the filters to token ids, in one process.

Documents are read, filtered and encoded a few at a time, so that memory depends on the longest document and not on the
part; the text of kept documents is written nowhere.
"""

import hashlib
import re
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from symbert.configuration import FilterSettings, settings_from
from symbert.console import Progress
from symbert.corpus.annotation import annotator
from symbert.corpus.blocklist import Blocklist, look_up_nothing
from symbert.corpus.counts import Tally, histogram
from symbert.corpus.digests import listed_digest
from symbert.corpus.document import Document, documents
from symbert.corpus.filters import check_categories, make_rules
from symbert.corpus.guarded import DisagreementError, Guarded, guarded
from symbert.corpus.tokens import OFFSET, ArrayWriter, count_words, id_hash
from symbert.corpus.wordpiece import TOKEN, Reference, encoder
from symbert.errors import DataError, IntegrityError, UsageError
from symbert.files import publish, read_json, sha256_of, write_json
from symbert.sources import RESTORE, listed_sha256, located, name_of_text, verified

SETTINGS = {"filter": dict, "vocabulary": str, "split_by_content": bool}
OWN_PART = re.compile(r"[0-9a-f]{16}-\w+")  # as `name_of_text` calls it
CHARACTERS_AT_ONCE = 1 << 22  # of documents that are encoded together
FIRST_CHECKED = 16  # documents
CHECKED_SHARE = 200  # one document in so many
Encoders = tuple[Reference | Guarded, Reference | None]
"""The encoder that gives the ids, and the one that a sample of them is compared with."""


def prepare_part(text: Path, output: Path, /, max_bad_fraction: float = 0.0) -> None:
    """Write the token ids of the documents of a part that no rule drops, each [CLS] … [SEP], as one flat uint16 .npy.

    settings.json beside `output`, {part}.npy, has the filters, the vocabulary, the files that filters need, and the
    publisher's list of digests. Written are also {part}.offsets.npy, an OFFSET for each document (its first token, the
    hash of its id or, by `split_by_content`, of its text, and its line in the part); and {part}.json, the `counts` of
    documents by outcome and the `record` of tokens, digests and encoder: `checked` documents were encoded twice and
    compared, `reference` documents have text for tokenizers alone.

    `max_bad_fraction` of the lines may be malformed. IntegrityError for another file than the publisher's, DataError
    for a damaged one.
    """
    settings = read_json(output.parent / "settings.json", SETTINGS)
    settings["filter"]["max_bad_fraction"] = max_bad_fraction
    if text.exists() and not (text.is_file() or text.is_dir()):
        raise UsageError(f"{text}: is no file, and a part is read twice: for its SHA-256 first; write it to a file")
    digest = _verified_digest(text, settings.get("checksums"))
    if settings["split_by_content"] and OWN_PART.fullmatch(output.stem) and name_of_text(str(text)) != output.stem:
        raise DataError(f"{text}: changed since the workflow was started; start it again")
    vocabulary, offsets = verified(settings["vocabulary"]), output.with_suffix(".offsets.npy")
    reference = Reference(encoder(vocabulary))
    fast = guarded(reference)
    try:
        counts, record = _write(text, output, settings, (fast or reference, fast and reference))
    except DisagreementError as difference:
        print(f"{text}: {difference}; tokenizers encodes the whole part", file=sys.stderr)
        counts, record = _write(text, output, settings, (reference, None))
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
    listed = {RESTORE: listed_sha256(text)}
    if checksums:
        listed["delete it and run again"] = listed_digest(verified(checksums), "sha256", text.name).value
    for remedy, expected in listed.items():
        if expected not in (None, digest):
            raise IntegrityError(f"{text}: sha256 expected {expected}, found {digest}; {remedy}")
    return digest


def _write(
    text: Path, output: Path, settings: dict[str, Any], encoders: Encoders
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Publish tokens and offsets; gives the counts of documents and of tokens."""
    chosen = settings_from(settings["filter"], FilterSettings, "settings.json")
    rules, tally = make_rules(chosen), Tally(chosen)
    look_up, annotate = look_up_nothing, None
    if chosen.has("categories"):
        listed = Blocklist(Path(located(settings["blocklist"])))
        check_categories(chosen.blocked_categories, listed.names)
        look_up = partial(listed.look_up, match=chosen.match)
    if chosen.annotations == "computed":
        annotate = annotator(verified(settings["harmful_model"]) if "harmful_model" in settings else None, look_up)
    with ExitStack() as stack:
        arrays = ((output, TOKEN), (output.with_suffix(".offsets.npy"), OFFSET))
        writers = [stack.enter_context(ArrayWriter(stack.enter_context(publish(path)), kind)) for path, kind in arrays]
        stream = _Stream(*writers, encoders, settings["split_by_content"])
        progress = Progress(f"prepare {output.stem}", None, "documents")
        for line, document in documents(text, chosen.annotations, tally.bad):
            if annotate:
                document.metadata = annotate(document)
            categories = look_up(document.url)
            reasons = rules(document, categories)
            tally.document(document, categories, reasons)
            if not reasons:
                stream.add(line, id_of(document), document.content)
            progress.update(tally.read, f"{stream.tokens.length:,} tokens")
        tally.check(text)
        stream.flush()
    return tally.counts(), stream.record()


class _Stream:
    """The token ids of documents, one after another, and where each begins."""

    def __init__(self, tokens: ArrayWriter, offsets: ArrayWriter, encoders: Encoders, split_by_content: bool) -> None:
        self.tokens, self._offsets = tokens, offsets
        self._encoder, self._check = encoders
        self._split_by_content = split_by_content
        self._pending: list[tuple[int, str, str]] = []
        self._characters = self._words = self._checked = 0
        self._bins = np.array(histogram("tokens", []))

    def add(self, line: int, name: str, text: str) -> None:
        """Encode a document, now or together with the next ones."""
        self._pending.append((line, name, text))
        self._characters += len(text)
        if self._characters >= CHARACTERS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Encode and write the documents that wait. DisagreementError when the two encoders give other ids."""
        if not self._pending:
            return
        lines, names, texts = zip(*self._pending, strict=True)
        self._pending, self._characters = [], 0
        ids = [self._encoder.encode(text) for text in texts]
        lengths, table = np.array([len(document) for document in ids]), np.empty(len(ids), OFFSET)
        table["start"] = self.tokens.length + np.cumsum(lengths) - lengths
        keys = texts if self._split_by_content else names
        table["id_hash"] = np.array([id_hash(key) for key in keys], np.uint64)
        table["line"] = lines
        if self._check:
            is_first = np.arange(len(ids)) + self._offsets.length < FIRST_CHECKED
            sample = np.flatnonzero(is_first | (table["id_hash"] % CHECKED_SHARE == 0))
            for place in sample:
                if not np.array_equal(ids[place], self._check.encode(texts[place])):
                    difference = f"{self._encoder.name} gives other ids than {self._check.name}"
                    raise DisagreementError(f"document {names[place]}: {difference}")
            self._checked += len(sample)
        self._offsets.append(table)
        self.tokens.append(np.concatenate(ids).astype(TOKEN))
        self._words += count_words(texts)
        self._bins += histogram("tokens", lengths)

    def record(self) -> dict[str, Any]:
        """The counts."""
        encoder = {"name": self._encoder.name, "checked": self._checked, "reference": self._encoder.referred}
        return {
            "documents": self._offsets.length,
            "tokens": self.tokens.length,
            "words": self._words,
            "histogram": self._bins.tolist(),
            "encoder": encoder,
        }


def id_of(document: Document) -> str:
    """The WARC record id, or one derived from the text where there is none."""
    return document.record_id or f"sha256:{hashlib.sha256(document.content.encode()).hexdigest()}"
