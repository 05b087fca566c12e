"""A packed corpus of made-up rows, in the format of `pack`, and the vocabulary that they are written in."""

import json
from pathlib import Path

import numpy as np

from symbert.corpus.shards import hash_of_corpus
from symbert.files import sha256_of

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
DOCUMENT = 600  # tokens of a document on average, [CLS] and [SEP] among them
VALIDATION_ROWS = 1024  # as many as the demo's


def write_corpus(folder: Path, rows: int, tokens: int, vocabulary_size: int) -> Path:
    """Training rows of so many tokens, and VALIDATION_ROWS; returns the manifest. Equal arguments give equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    pieces = vocabulary(vocabulary_size)
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
    special = {name: pieces.index(piece) for name, piece in SPECIAL.items()}
    generator = np.random.default_rng(1)
    shards = []
    for split, count in (("train", rows), ("validation", VALIDATION_ROWS)):
        path = folder / f"{split}-00000.npy"
        np.save(path, _stream(generator, count * tokens, vocabulary_size, special).reshape(count, tokens))
        shards.append({"file": path.name, "split": split, "rows": count, "sha256": sha256_of(path)})
    manifest = {
        "sequence_length": tokens,
        "vocabulary_size": vocabulary_size,
        "vocabulary_sha256": sha256_of(folder / "vocab.txt"),
        "special_tokens": special,
        "rows": {"train": rows, "validation": VALIDATION_ROWS},
        "shards": shards,
    }
    (folder / "manifest.json").write_text(json.dumps({**manifest, "hash": hash_of_corpus(manifest)}))
    return folder / "manifest.json"


def vocabulary(size: int) -> list[str]:
    """As many pieces, the special ones where bert-base-uncased has them."""
    pieces = ["[PAD]", *(f"[unused{number}]" for number in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    return [*pieces, *(f"piece{number}" for number in range(size - len(pieces)))]


def _stream(generator: np.random.Generator, length: int, vocabulary_size: int, special: dict[str, int]) -> np.ndarray:
    """Documents of words as frequent as Zipf says, each between [CLS] and [SEP], as one stream of ids."""
    words = np.arange(max(special.values()) + 1, vocabulary_size)
    frequency = 1 / np.arange(1, len(words) + 1)
    stream = generator.choice(words, length, p=frequency / frequency.sum()).astype(np.uint16)
    starts = np.flatnonzero(generator.random(length) < 1 / DOCUMENT)
    stream[starts], stream[starts - 1] = special["cls"], special["sep"]
    return stream
