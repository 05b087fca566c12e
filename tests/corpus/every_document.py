"""Ids of every document of a mirror, by tokie behind its guard and by Hugging Face: a check that takes a minute.

    PYTHONPATH=src:tests python -m corpus.every_document ../shared/mirror

It ends with 1 if any document has other ids.
"""

import sys
from pathlib import Path

from corpus.oscar import refuse
from corpus.stock import stock_ids
from symbert.corpus.document import documents
from symbert.corpus.guarded import guarded
from symbert.corpus.wordpiece import Reference, encoder
from symbert.sources import VOCABULARY


def main(mirror: Path) -> int:
    """Compare all parts; the number of documents that differ."""
    vocabulary = mirror / VOCABULARY.location
    fast = guarded(Reference(encoder(vocabulary)))
    compared = tokens = different = 0
    for part in sorted(mirror.glob("oscar-corpus/OSCAR-2301/en_meta/*.jsonl.zst")):
        texts = [document.content for _, document in documents(part, "published", refuse)]
        for text, expected in zip(texts, stock_ids(vocabulary, texts), strict=True):
            different += fast.encode(text).tolist() != expected
            compared, tokens = compared + 1, tokens + len(expected)
        print(f"{part.name}: {compared:,} documents, {tokens:,} tokens, {fast.referred} referred, {different} differ")
    return different


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])) > 0)
