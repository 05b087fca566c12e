"""The documents of a part as one stream of token ids, and where in it each document begins; both are .npy files."""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from symbert.corpus.counts import histogram
from symbert.corpus.guarded import DisagreementError, Guarded, guarded
from symbert.corpus.wordpiece import TOKEN, Reference, encoder
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import publish, sha256_of, write_json
from symbert.progress import Progress

if TYPE_CHECKING:
    import pyarrow

OFFSET = np.dtype([("start", np.int64), ("id_hash", np.uint64), ("line", np.uint32)])
COLUMNS = ["line", "id", "text"]
BYTES_AT_ONCE = 1 << 22  # of text
FIRST_CHECKED = 16  # documents
CHECKED_SHARE = 200  # one document in so many
WHITE_SPACE = np.isin(np.arange(256), list(b" \t\n\v\f\r"))


class ArrayWriter:
    """A .npy file that grows by items of one shape; the header is completed on leaving the context."""

    def __init__(self, path: Path, dtype: np.dtype, item: tuple[int, ...] = ()) -> None:
        self.length = 0
        self._dtype, self._item = dtype, item
        self._file = open(path, "wb")  # noqa: SIM115 (closed on leaving)

    def __enter__(self) -> "ArrayWriter":
        write_header(self._file, self._dtype, (0, *self._item))
        return self

    def append(self, items: np.ndarray) -> None:
        """Add items of the file's type."""
        self._file.write(np.ascontiguousarray(items).data)
        self.length += len(items)

    def __exit__(self, *_: object) -> None:
        self._file.seek(0)
        write_header(self._file, self._dtype, (self.length, *self._item))
        self._file.close()


def write_header(file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """The .npy header of an array; numpy pads it so that its size is the same however long the array grows."""
    description = {"descr": npy.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy.write_array_header_1_0(file, description)


def open_array(path: Path, dtype: np.dtype) -> np.ndarray:
    """A read-only memory map; MissingInputError or DataError name the file."""
    try:
        array = np.lib.format.open_memmap(path, mode="r")  # np.load would open archives, too
    except FileNotFoundError:
        raise MissingInputError(f"{path}: file not found; run the rule that makes it") from None
    except ValueError as error:
        raise DataError(f"{path}: not an array ({error}); delete it and run again") from None
    if array.dtype != dtype or array.ndim != 1:
        raise DataError(f"{path}: {array.ndim} dimensions of {array.dtype}, expected 1 of {dtype}; run tokenize-part")
    return array


def tokenize_part(
    documents: Path, vocabulary: Path, output: Path, offsets: Path, record: Path, split_by_content: bool = False
) -> None:
    """Write the ids of a part's documents, each [CLS] ... [SEP], as one flat uint16 .npy.

    `offsets` has one row per document: `start`, its first token; `id_hash`, 64 bits of the SHA-256 of its id, by
    which the split into training and validation is made, or of its text (`split_by_content`); `line`, its line in the
    raw part. `record` has counts, checksums, and which encoder gave the ids: `checked` documents were encoded twice and
    compared, `reference` documents have text that went to tokenizers. Most text is encoded by tokie; the ids are the
    same without.
    """
    reference = Reference(encoder(vocabulary))
    part = _Part(Path(documents), split_by_content)
    fast = guarded(reference)
    try:
        counts = part.write(fast or reference, fast and reference, output, offsets)
    except DisagreementError as difference:
        print(f"{documents}: {difference}; tokenizers encodes the whole part", file=sys.stderr)
        counts = part.write(reference, None, output, offsets)
    checksums = {"tokens_sha256": sha256_of(output), "offsets_sha256": sha256_of(offsets)}
    facts = {"part": part.name, "taken": part.taken, **counts, "vocabulary_sha256": sha256_of(vocabulary), **checksums}
    write_json(record, facts)


def id_hash(record_id: str) -> int:
    """The first 64 bits of the SHA-256 of a document's id, or of its text."""
    return int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8], "big")


class _Part:
    """Kept documents, read a few at a time, so that memory depends on the longest document and not on the part."""

    def __init__(self, path: Path, split_by_content: bool) -> None:
        import pyarrow.parquet

        if not path.is_file():
            raise MissingInputError(f"{path}: file not found; run filter-part")
        try:
            self._file = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        except pyarrow.ArrowInvalid as error:
            raise DataError(f"{path}: not parquet ({error}); delete it and run filter-part") from None
        for column in COLUMNS:
            if column not in self._file.schema_arrow.names:
                raise DataError(f"{path}: no column '{column}'; delete it and run filter-part")
        self.name = path.stem
        self.taken = (self._file.schema_arrow.metadata or {}).get(b"taken", b"true") == b"true"
        self._path = path
        self._split_by_content = split_by_content

    def write(
        self, encoder: Reference | Guarded, check: Reference | None, output: Path, offsets: Path
    ) -> dict[str, Any]:
        """Publish tokens and offsets; what was counted. DisagreementError when `check` gives a document other ids."""
        progress = Progress(f"tokenize {self.name}", self._file.metadata.num_rows, "documents")
        words = checked = 0
        bins = np.array(histogram("tokens", []))
        with (
            publish(output) as token_file,
            publish(offsets) as offset_file,
            ArrayWriter(token_file, TOKEN) as tokens,
            ArrayWriter(offset_file, OFFSET) as rows,
        ):
            for batch in self._batches():
                names, texts = batch["id"].to_pylist(), batch["text"].to_pylist()
                hashes = np.array([id_hash(key) for key in (texts if self._split_by_content else names)], np.uint64)
                ids = []
                for name, text in zip(names, texts, strict=True):
                    try:
                        ids.append(encoder.encode(text))
                    except DisagreementError as error:
                        raise DisagreementError(f"document {name}: {error}") from None
                if check:
                    sample = (np.arange(len(ids)) + rows.length < FIRST_CHECKED) | (hashes % CHECKED_SHARE == 0)
                    for place in np.flatnonzero(sample):
                        if not np.array_equal(ids[place], check.encode(texts[place])):
                            raise DisagreementError(
                                f"document {names[place]}: {encoder.name} gives other ids than {check.name}"
                            )
                    checked += np.count_nonzero(sample)
                lengths = np.array([len(document) for document in ids])
                table = np.empty(len(ids), OFFSET)
                table["start"] = tokens.length + np.cumsum(lengths) - lengths
                table["id_hash"], table["line"] = hashes, _values(batch["line"], np.uint32, len(batch))
                rows.append(table)
                tokens.append(np.concatenate(ids).astype(TOKEN))
                words += count_words(batch["text"])
                bins += histogram("tokens", lengths)
                progress.update(rows.length, f"{tokens.length:,} tokens")
        return {
            "documents": rows.length,
            "tokens": tokens.length,
            "words": words,
            "histogram": bins.tolist(),
            "encoder": {"name": encoder.name, "checked": int(checked), "reference": encoder.referred},
        }

    def _batches(self) -> Iterator["pyarrow.RecordBatch"]:
        """At least one document each, and more as long as their texts have no more than BYTES_AT_ONCE."""
        for group in range(self._file.num_row_groups):
            try:
                documents = self._file.read_row_group(group, COLUMNS, use_threads=False)
            except OSError as error:
                raise IntegrityError(f"{self._path}: damaged ({error}); delete it and run filter-part") from None
            for batch in documents.to_batches():
                bounds = _values(batch["text"], np.int32, len(batch) + 1)
                ends = bounds[1:] - bounds[:1]
                first = 0
                while first < len(ends):
                    before = ends[first - 1] if first else 0
                    after = max(first + 1, int(np.searchsorted(ends, before + BYTES_AT_ONCE, side="right")))
                    yield batch.slice(first, after - first)
                    first = after


def count_words(texts: "pyarrow.StringArray") -> int:
    """Runs of characters between ASCII white space, in all texts together; counted on Arrow's bytes."""
    bounds = _values(texts, np.int32, len(texts) + 1)
    space = WHITE_SPACE[np.frombuffer(texts.buffers()[2] or b"", np.uint8)[bounds[0] : bounds[-1]]]
    begins = ~space
    begins[1:] &= space[:-1]
    firsts = bounds[:-1][np.diff(bounds) > 0] - bounds[0]
    begins[firsts] = ~space[firsts]  # whatever the text before ends with
    return int(np.count_nonzero(begins))


def _values(array: "pyarrow.Array", dtype: type[np.generic], count: int) -> np.ndarray:
    """The numbers in an array, or where its texts begin and end; Arrow's own way to numpy imports pandas."""
    return np.frombuffer(array.buffers()[1] or b"", dtype)[array.offset : array.offset + count]
