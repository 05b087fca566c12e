"""What the corpus stage is compared with. `python -m benchmarks.peers FUNCTION PATHS` runs one of them.

The authors' way is written from its description: zstandard, json and json.dumps for the filter; `datasets.map` with
the fast tokenizer of BERT and Python lists of 512 for the rows.
"""

import io
import json
import sys
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

SEQUENCE_LENGTH = 512
DOCUMENTS_AT_ONCE = 1000
BLOCKED = frozenset(
    (
        *("agressif", "adult", "cryptojacking", "dangerous_material", "phishing", "warez"),
        *("ddos", "hacking", "malware", "mixed_adult", "sect"),
    )
)


def main(name: str, *paths: str) -> None:
    """Run one of the functions below."""
    globals()[name](*map(Path, paths))


def is_kept(metadata: dict) -> bool:
    """The paper's filter, on OSCAR's annotations alone."""
    return (
        BLOCKED.isdisjoint(metadata.get("categories") or ())
        and 5.0 < (metadata.get("harmful_pp") or 100_000.0) < 100_000.0
        and not metadata.get("quality_warnings")
    )


def decode_part(part: Path) -> None:
    """The floor of every filter: decompress, and parse the fields that a filter needs."""
    import msgspec

    class Metadata(msgspec.Struct):
        harmful_pp: float | None = None
        quality_warnings: list[str] | None = None
        categories: list[str] | None = None

    class Headers(msgspec.Struct, rename={"url": "warc-target-uri", "record_id": "warc-record-id"}):
        url: str | None = None
        record_id: str | None = None

    class Document(msgspec.Struct):
        content: str
        warc_headers: Headers
        metadata: Metadata

    decode = msgspec.json.Decoder(Document).decode
    with open(part, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        for line in io.BufferedReader(stream, 1 << 20):
            decode(line)


def filter_part(part: Path, output: Path) -> None:
    """The authors' filter: kept documents as JSON lines, compressed like the part."""
    with (
        open(part, "rb") as file,
        open(output, "wb") as kept,
        zstandard.ZstdCompressor().stream_writer(kept) as compressed,
    ):
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), encoding="utf-8", newline="\n")
        for line in lines:
            document = json.loads(line)
            if is_kept(document["metadata"]):
                compressed.write(json.dumps(document).encode() + b"\n")


def load_documents(documents: Path, cache: Path) -> None:
    """The authors' kept documents as a data set on the disk."""
    import datasets

    _load(datasets, documents, cache)


def tokenize_documents(documents: Path, cache: Path, vocabulary: Path, output: Path) -> None:
    """The authors' rows: tokens of 1,000 documents at a time, joined and cut in Python; each remainder is dropped."""
    import datasets

    datasets.disable_progress_bars()
    tokenizer = bert(vocabulary)
    loaded = _load(datasets, documents, cache)
    tokens = loaded.map(
        lambda batch: tokenizer(batch["content"], return_special_tokens_mask=True),
        batched=True,
        batch_size=DOCUMENTS_AT_ONCE,
        remove_columns=loaded.column_names,
    )
    tokens.map(group, batched=True, batch_size=DOCUMENTS_AT_ONCE, cache_file_name=str(output))


def encode_documents(documents: Path, vocabulary: Path, output: Path) -> None:
    """The ids by `encode_batch_fast` of tokenizers, in numpy: one stream, which needs only another shape to be rows."""
    tokenizer = bert(vocabulary).backend_tokenizer
    pieces = []
    with open(documents, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        lines = io.BufferedReader(stream, 1 << 20)
        while batch := [json.loads(line)["content"] for line in islice(lines, DOCUMENTS_AT_ONCE)]:
            pieces += [np.array(encoding.ids, np.uint16) for encoding in tokenizer.encode_batch_fast(batch)]
    np.save(output, np.concatenate(pieces))


def group(batch: dict[str, list[list[int]]]) -> dict[str, list[list[int]]]:
    """Rows of 512 from the joined columns of a batch."""
    joined = {name: list(chain.from_iterable(lists)) for name, lists in batch.items()}
    starts = range(0, len(joined["input_ids"]) - SEQUENCE_LENGTH + 1, SEQUENCE_LENGTH)
    return {name: [items[start : start + SEQUENCE_LENGTH] for start in starts] for name, items in joined.items()}


def bert(vocabulary: Path):
    """The fast tokenizer of uncased BERT."""
    from transformers import BertTokenizerFast

    return BertTokenizerFast(str(vocabulary), do_lower_case=True)


def _load(datasets, documents: Path, cache: Path):
    """With the first document's types, for the library guesses them block by block, and dates as it likes."""
    with open(documents, "rb") as file, zstandard.ZstdDecompressor().stream_reader(file) as stream:
        features = datasets.Features(_types(datasets, json.loads(io.BufferedReader(stream).readline())))
    files, folder = str(documents), str(cache)
    return datasets.load_dataset("json", data_files=files, split="train", cache_dir=folder, features=features)


def _types(datasets, value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _types(datasets, item) for key, item in value.items()}
    if isinstance(value, list):
        return datasets.List(_types(datasets, next(item for item in value if item is not None)))
    if value is None:  # the lists that OSCAR leaves out
        return datasets.List(datasets.Value("string"))
    return datasets.Value("string" if isinstance(value, str) else "float64")


if __name__ == "__main__":
    main(*sys.argv[1:])
