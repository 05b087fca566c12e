"""Made-up inputs of the corpus stage, as many as asked for: equal arguments give equal files.

Every function writes to `input` in a folder, which exists.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import zstandard

from benchmarks.inputs import write_archive, write_settings
from benchmarks.packed import vocabulary
from benchmarks.web import LISTED_SUFFIXES, Web, domains, frequent_words
from symbert.corpus.blocklist import build_blocklist
from symbert.corpus.documentation import read_documentation
from symbert.corpus.parts import filter_part
from symbert.corpus.tokens import OFFSET
from symbert.files import sha256_of, write_json

PIECES = 30_522  # of BERT's vocabulary
TOKENS_OF_PART, TOKENS_OF_DOCUMENT = 1 << 20, 600


def write_part(folder: Path, documents: int) -> None:
    """A part of so many documents, a small blocklist, and settings, in the layout of `benchmarks.commands`."""
    given = folder / "input"
    paragraphs = [passage.text for passage in read_documentation()]
    listed = list(domains(frequent_words(paragraphs), LISTED_SUFFIXES, 20_000, seed=0))
    write_archive(given / "blacklists.tar.gz", listed)
    build_blocklist(given / "blacklists.tar.gz", folder / "blocklist.marisa", folder / "blocklist.json")
    web = Web(paragraphs, listed, seed=1)
    with open(given / "part.jsonl.zst", "wb") as file, zstandard.ZstdCompressor().stream_writer(file) as compressed:
        for _ in range(documents):
            compressed.write(msgspec.json.encode(web.record()) + b"\n")
    write_settings(given)


def write_kept(folder: Path, documents: int) -> None:
    """The kept ones of so many documents, and a vocabulary that has some of their words."""
    write_part(folder, documents)
    given = folder / "input"
    words = frequent_words([passage.text for passage in read_documentation()])
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = [*vocabulary(104), *letters, *(f"##{letter}" for letter in letters), *words]
    (given / "vocab.txt").write_text("\n".join(pieces) + "\n")
    kept = given / "part.parquet"
    filter_part(
        given / "part.jsonl.zst",
        "part",
        given / "filter.json",
        kept,
        given / "counts.json",
        folder / "blocklist.marisa",
    )


def write_tokens(folder: Path, parts: int) -> None:
    """So many tokenized parts of a million random ids each, with offsets, records, and lists of the files."""
    given = folder / "input"
    write_vocabulary(given)
    digest = sha256_of(given / "vocab.txt")
    names = [f"part-{number:05}" for number in range(parts)]
    for number, name in enumerate(names):
        draw = np.random.default_rng(number)
        tokens = draw.integers(1_000, PIECES, TOKENS_OF_PART, np.uint16)
        starts = np.arange(0, TOKENS_OF_PART, TOKENS_OF_DOCUMENT)
        offsets = np.zeros(len(starts), OFFSET)
        offsets["start"], offsets["line"] = starts, np.arange(len(starts)) + 1
        offsets["id_hash"] = draw.integers(0, 1 << 64, len(starts), np.uint64)
        np.save(given / f"{name}.npy", tokens)
        np.save(given / f"{name}.offsets.npy", offsets)
        digests = {
            kind: sha256_of(given / f"{name}{suffix}")
            for kind, suffix in (("tokens", ".npy"), ("offsets", ".offsets.npy"))
        }
        facts = {"part": name, "taken": True, "documents": len(starts), "vocabulary_sha256": digest}
        write_json(given / f"{name}.json", facts | {f"{kind}_sha256": value for kind, value in digests.items()})
    for kind, suffix in (("tokens", ".npy"), ("offsets", ".offsets.npy"), ("records", ".json")):
        write_list(given / f"{kind}.list", [given / f"{name}{suffix}" for name in names])
    write_settings(given)


def write_domains(folder: Path, count: int) -> None:
    """A UT1 archive of so many domains."""
    words = frequent_words([passage.text for passage in read_documentation()])
    write_archive(folder / "input/blacklists.tar.gz", list(domains(words, LISTED_SUFFIXES, count, seed=0)))


def write_vocabulary(given: Path) -> None:
    """A vocabulary as large as BERT's."""
    (given / "vocab.txt").write_text("\n".join(vocabulary(PIECES)) + "\n")


def write_list(path: Path, files: Sequence[Path]) -> None:
    """The names of files, each ended by a NUL."""
    path.write_text("".join(f"{file}\0" for file in files))
