"""Text as WordPiece ids, as `BertTokenizerFast` of bert-base-uncased gives them."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from symbert.corpus.arrays import ArrayWriter
from symbert.errors import DataError, MissingInputError
from symbert.files import publish
from symbert.progress import Progress

SPECIAL_TOKENS = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
TOKEN = np.dtype(np.uint16)
OFFSET = np.dtype([("start", np.int64), ("id_hash", np.uint64)])
LARGEST_VOCABULARY = np.iinfo(TOKEN).max + 1
DOCUMENTS_AT_ONCE = 64


def tokenize_part(documents: Path, vocabulary: Path, output: Path, offsets: Path) -> None:
    """Write the ids of a part's documents, each [CLS] ... [SEP], as one flat uint16 .npy.

    `offsets` has one row per document: `start`, its first token, and `id_hash`, 64 bits of the SHA-256 of
    its id, by which the split into training and validation is made.
    """
    import pyarrow.parquet

    tokenizer = encoder(vocabulary)
    if not Path(documents).is_file():
        raise MissingInputError(f"{documents}: file not found; run filter-part")
    file = pyarrow.parquet.ParquetFile(documents)
    progress = Progress(f"tokenize {documents.stem}", file.metadata.num_rows, "documents")
    starts: list[tuple[int, int]] = []
    with publish(output) as temporary, ArrayWriter(temporary, TOKEN) as tokens:
        for batch in file.iter_batches(DOCUMENTS_AT_ONCE, columns=["id", "text"]):
            encodings = tokenizer.encode_batch_fast(batch["text"].to_pylist())
            for record_id, encoding in zip(batch["id"].to_pylist(), encodings, strict=True):
                starts.append((tokens.length, id_hash(record_id)))
                tokens.append(np.array(encoding.ids, TOKEN))
            progress.update(len(starts), f"{tokens.length:,} tokens")
    with publish(offsets) as temporary, ArrayWriter(temporary, OFFSET) as rows:
        rows.append(np.array(starts, OFFSET))


def encoder(vocabulary: Path) -> Tokenizer:
    """The uncased BERT tokenizer of a vocabulary file; a pair is encoded [CLS] a [SEP] b [SEP]."""
    pieces = read_vocabulary(vocabulary)
    tokenizer = Tokenizer(WordPiece(pieces, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS.values()))
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, pieces[token]) for token in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def read_vocabulary(path: Path) -> dict[str, int]:
    """Piece to id, one piece a line; DataError when it is no vocabulary of BERT or ids exceed 16 bits."""
    if not Path(path).is_file():
        raise MissingInputError(f"{path}: file not found; run download-vocabulary")
    pieces = list(_lines(path))
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    for token in SPECIAL_TOKENS.values():
        if token not in vocabulary:
            raise DataError(f"{path}: no {token} in it; expected a vocabulary of BERT, one piece a line")
    if len(vocabulary) < len(pieces):
        raise DataError(f"{path}: {len(pieces) - len(vocabulary)} pieces occur twice; get the file again")
    if len(pieces) > LARGEST_VOCABULARY:
        raise DataError(
            f"{path}: {len(pieces):,} pieces; token ids have 16 bits, use at most {LARGEST_VOCABULARY:,} pieces"
        )
    return vocabulary


def id_hash(record_id: str) -> int:
    """The first 64 bits of the SHA-256 of a document's id."""
    return int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8], "big")


def _lines(path: Path) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8", newline="\n") as file:  # pieces may contain U+2028
            for line in file:
                yield line.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}); get the file again") from None
