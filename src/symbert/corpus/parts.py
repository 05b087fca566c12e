"""`symbert prepare-part`: the text of a part through the filters to token ids, in one process.

Documents are read, filtered and encoded a few at a time, so that memory depends on the longest documents and not on the
part; the text of kept documents is written nowhere.
"""

import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import numpy as np

from symbert.configuration import FilterSettings
from symbert.console import Progress
from symbert.corpus.annotation import annotator
from symbert.corpus.blocklist import Blocklist, BuildBlocklist, look_up_nothing
from symbert.corpus.counts import Counts, Tally
from symbert.corpus.dataset import Reading, rows_of
from symbert.corpus.document import Document, Line, LongDocument, documents, suffix_of
from symbert.corpus.filters import check_categories, make_rules
from symbert.corpus.guarded import DisagreementError, Guarded, guarded
from symbert.corpus.tokens import OFFSET, ArrayWriter, count_words, hash_of_text, id_hash, sha256_of_text
from symbert.corpus.wordpiece import TOKEN, Reference, encoder, warn_of_misfit
from symbert.digests import FEWER_PARTS, listed_digest
from symbert.errors import DataError, IntegrityError, UsageError
from symbert.files import MEGABYTE, publish, sha256_of, together, write_json
from symbert.sources import RESTORE, listed_sha256, located, name_of_text, verified
from symbert.steps import File, Step, read_step

CUSTOM_PART = re.compile(r"[0-9a-f]{16}-\w+")  # as `name_of_text` calls it
AT_ONCE = 64  # documents that are filtered before they are encoded
FIRST_CHECKED = 16  # documents
CHECKED_SHARE = 200  # one document in so many


class PrepareParts(Step, frozen=True):
    """The token ids of the documents of parts that no rule drops. A job reads the text of one part, which is known by
    its publisher's list, or, where it is the user's own, by the part's name."""

    place: ClassVar[str] = "corpus/parts"
    files: ClassVar[dict[str, str]] = {"tokens": "{part}.npy", "offsets": "{part}.offsets.npy", "record": "{part}.json"}
    memory: ClassVar[int] = 2000  # MB

    vocabulary: File
    filter: FilterSettings
    split_by_content: bool  # whether rows are held out by the hash of a document's text, and not of its id
    checksums: File | None = None  # the publisher's list of SHA-256 sums
    blocklist: BuildBlocklist | None = None  # these where a filter needs them
    harmful_model: File | None = None  # of KenLM
    dataset: Reading | None = None  # how the files of a dataset are read

    def reads(self) -> list[str]:
        """What every part needs beside its text."""
        files = filter(None, (self.vocabulary, self.checksums, self.harmful_model))
        tries = [self.blocklist.paths()["trie"]] if self.blocklist else []
        return [*(located(file.path) for file in files), *tries]


class Encoder(msgspec.Struct, frozen=True):
    """What gave the ids."""

    name: str
    checked: int  # documents that were encoded twice and compared
    reference: int  # documents with text for tokenizers alone


class Tokens(msgspec.Struct, frozen=True):
    """The documents of a part that are kept, and the digests of its files."""

    part: str
    documents: int
    tokens: int
    words: int
    lines: int | None  # of a .txt file, whose documents empty lines separate
    encoder: Encoder
    vocabulary_sha256: str
    tokens_sha256: str
    offsets_sha256: str


class PartRecord(msgspec.Struct, frozen=True):
    """{part}.json."""

    counts: Counts
    record: Tokens


def prepare_part(
    text: Annotated[Path, "the part: a file of documents"],
    output: Annotated[Path, "PART.npy, in a folder with a settings.json"],
    /,
    max_bad_fraction: Annotated[float, "share of the lines that may be malformed"] = 0.0,
) -> None:
    """Make the files of a part of `PrepareParts`: `output`, {part}.npy, the token ids of its documents, each
    [CLS] … [SEP], flat uint16; {part}.offsets.npy, an OFFSET for each document; {part}.json, a `PartRecord`.

    `max_bad_fraction` of the lines may be malformed. IntegrityError for another file than the publisher's, DataError
    for a damaged one.
    """
    step = read_step(output.parent, PrepareParts)
    if text.exists() and not (text.is_file() or text.is_dir()):
        raise UsageError(f"{text}: is no file, and a part is read twice: for its SHA-256 first; write it to a file")
    digest = _verified_digest(text, step.checksums)
    if step.split_by_content and CUSTOM_PART.fullmatch(output.stem) and name_of_text(str(text), digest) != output.stem:
        raise DataError(f"{text}: changed since the workflow was started; start it again")
    _write_part(text, output, step, max_bad_fraction, digest)


@together()
def _write_part(text: Path, output: Path, step: PrepareParts, max_bad_fraction: float, digest: str) -> None:
    vocabulary, offsets = verified(step.vocabulary.path), output.with_suffix(".offsets.npy")
    reference = Reference(encoder(vocabulary))
    warn_of_misfit(vocabulary, reference.tokenizer)
    fast = guarded(reference)
    try:
        tally, found = _write(text, output, step, max_bad_fraction, fast or reference, fast and reference)
    except DisagreementError as difference:
        print(f"{text}: {difference}; tokenizers encodes the whole part", file=sys.stderr)
        tally, found = _write(text, output, step, max_bad_fraction, reference, None)
    digests = {"vocabulary_sha256": vocabulary, "tokens_sha256": output, "offsets_sha256": offsets}
    tokens = Tokens(part=output.stem, **found, **{name: sha256_of(path) for name, path in digests.items()})
    write_json(output.with_suffix(".json"), PartRecord(tally.counts(output.stem, digest), tokens))


def _verified_digest(text: Path, checksums: File | None) -> str:
    """The SHA-256 of a part; IntegrityError when the publisher's list or that of its mirror has another."""
    digest = sha256_of(text, absent="download it, or correct corpus.files")
    if text.is_dir():
        verified(str(text))
        return digest
    listed = {RESTORE: listed_sha256(text)}
    if checksums:
        expected = listed_digest(verified(checksums.path), "sha256", text.name, remedy=FEWER_PARTS)
        listed["delete it and run again"] = expected.value
    for remedy, expected in listed.items():
        if expected not in (None, digest):
            raise IntegrityError(f"{text}: sha256 expected {expected}, found {digest}; {remedy}")
    return digest


def _write(
    text: Path,
    output: Path,
    step: PrepareParts,
    max_bad_fraction: float,
    tokenizer: Reference | Guarded,
    check: Reference | None,
) -> tuple[Tally, dict[str, Any]]:
    """Publish tokens and offsets; gives the counts of documents, and the fields of `Tokens` that it knows.

    DisagreementError when `check` gives other ids of a document in the sample.
    """
    chosen, tally = step.filter, Tally(max_bad_fraction)
    rules, look_up, annotate = make_rules(chosen), look_up_nothing, None
    if step.blocklist:
        listed = Blocklist(Path(step.blocklist.paths()["trie"]))
        check_categories(chosen.blocked_categories, listed.names, listed.without_entries)
        look_up = partial(listed.look_up, match=chosen.match)
    if chosen.annotations == "computed":
        annotate = annotator(verified(step.harmful_model.path) if step.harmful_model else None, look_up)
    progress = Progress(f"prepare {output.stem}", None, "documents")

    rows = rows_of(text, step.dataset) if step.dataset else None

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

    are_paragraphs, words, lines, checked = suffix_of(text) == ".txt" and not step.dataset, 0, 0, 0
    with (
        publish(output) as token_file,
        publish(output.with_suffix(".offsets.npy")) as offset_file,
        ArrayWriter(token_file, TOKEN) as tokens,
        ArrayWriter(offset_file, OFFSET) as offsets,
    ):
        for line, document in _some_at_once(kept()):
            hashed = hash_of_text(document.pieces) if step.split_by_content else id_hash(id_of(document))
            if check and (offsets.length < FIRST_CHECKED or hashed % CHECKED_SHARE == 0):
                if not all(map(np.array_equal, *(each.encoded(document.pieces) for each in (tokenizer, check)))):
                    fact = f"{tokenizer.name} gives other ids than {check.name}"
                    raise DisagreementError(f"document {id_of(document)}: {fact}")
                checked += 1
            offsets.append(np.array([(tokens.length, hashed, line)], OFFSET))
            for ids in tokenizer.stream(document.pieces):
                tokens.append(ids)
            words += sum(map(count_words, document.pieces))
            if are_paragraphs:
                lines += 1 + sum(piece.count("\n") + piece.count("\r") for piece in document.pieces)
        tally.check(text)
    return tally, {
        "documents": offsets.length,
        "tokens": tokens.length,
        "words": words,
        "lines": lines if are_paragraphs else None,
        "encoder": Encoder(tokenizer.name, checked, tokenizer.referred),
    }


def _some_at_once(documents: Iterator[Line]) -> Iterator[Line]:
    """The documents, of which some are made before the first of them is used: encoding alone keeps the caches warm.

    Not so many of long ones, which memory would have to hold.
    """
    held: list[Line] = []
    characters = 0
    for line, document in documents:
        held.append((line, document))
        characters += document.length
        if len(held) == AT_ONCE or characters > MEGABYTE:
            yield from held
            held, characters = [], 0
    yield from held


def id_of(document: Document | LongDocument) -> str:
    """The WARC record id, or one derived from the text where there is none."""
    return document.record_id or f"sha256:{sha256_of_text(document.pieces).hexdigest()}"
