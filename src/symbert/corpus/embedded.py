"""The embedded source: a corpus in the publishers' layout, made of installed documentation, without network.

Everything is a function of the installed package versions and the settings, byte for byte.
"""

import base64
import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tokenizers import BertWordPieceTokenizer

from symbert.corpus.blocklist import Blocklist, build_blocklist
from symbert.corpus.documentation import read_documentation
from symbert.corpus.language_model import estimate, write_arpa
from symbert.corpus.lines import zstd
from symbert.corpus.pages import Page, documentation_pages, with_examples
from symbert.corpus.perplexity import harmful_perplexity
from symbert.corpus.quality import quality_warnings
from symbert.corpus.sources import (
    BLOCKLIST,
    BLOCKLIST_CHECKSUMS,
    CORPUS_CHECKSUMS,
    HARMFUL_MODEL,
    VOCABULARY,
    part_file,
)
from symbert.corpus.stand_ins import HARMFUL, harmful_text, write_blocklist_archive
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.files import publish, sha256_of, write_text
from symbert.progress import Progress
from symbert.settings import EmbeddedSettings, read_settings

RAREST_CHARACTER = 1e-5  # share of the text below which a character gets no piece
CRAWL_DATE = "2026-01-01T00:00:00Z"  # stands for the date of a crawl
COMPRESSION_LEVEL = 9


def write_embedded_corpus(settings: Path, documentation: Path, root: Path) -> None:
    """Write parts, checksums, blocklist, model of harmful text and vocabulary below `root`, as a mirror holds them.

    The text is that of the file of `write_documentation`.
    """
    embedded = read_settings(settings, EmbeddedSettings)
    progress = Progress("write embedded corpus", 4, "steps", interval=0)
    plain = documentation_pages(read_documentation(documentation))
    texts = [page.text for page in plain]
    progress.update(1, f"{len(texts):,} documents of documentation")
    write_vocabulary(texts, embedded.vocabulary_size, root / VOCABULARY.location)
    progress.update(2, f"vocabulary of {embedded.vocabulary_size:,} pieces")
    write_arpa(estimate(texts, map(harmful_text, range(len(HARMFUL)))), root / HARMFUL_MODEL.location)
    _write_blocklist(root)
    progress.update(3, "model of harmful text, blocklist")
    annotate = _annotation(root)
    pages = with_examples(plain)
    lines = [json.dumps(annotate(page), ensure_ascii=False) for page in pages]
    _write_parts(lines, embedded.parts, root)
    progress.update(4, f"{len(lines):,} documents in {embedded.parts} parts")


def write_vocabulary(texts: Iterable[str], size: int, path: Path) -> None:
    """Train an uncased WordPiece vocabulary of `size` pieces; [PAD] has id 0."""
    texts = list(texts)
    counts = Counter(character for text in texts for character in text)
    rare = {ord(character): None for character, count in counts.items() if count < RAREST_CHARACTER * counts.total()}
    texts = [text.translate(rare) for text in texts]
    tokenizer = BertWordPieceTokenizer()
    # Given first, because the trainer numbers the letters within words as it meets them in a hash map.
    inner_letters = [f"##{letter}" for letter in _inner_letters(tokenizer, texts)]
    special_tokens = [*SPECIAL_TOKENS.values(), *inner_letters]
    tokenizer.train_from_iterator(texts, vocab_size=size, special_tokens=special_tokens, show_progress=False)
    pieces = tokenizer.get_vocab()
    write_text(path, "".join(f"{piece}\n" for piece in sorted(pieces, key=pieces.__getitem__)))


def _inner_letters(tokenizer: BertWordPieceTokenizer, texts: list[str]) -> list[str]:
    """The characters that stand within words, as the tokenizer sees words."""
    found: set[str] = set()
    for word in {word for text in texts for word in text.split()}:
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str(word)):
            found.update(piece[1:])
    return sorted(found)


def _write_blocklist(root: Path) -> None:
    archive = root / BLOCKLIST.location
    write_blocklist_archive(archive)
    digest = hashlib.md5(archive.read_bytes(), usedforsecurity=False).hexdigest()
    write_text(root / BLOCKLIST_CHECKSUMS.location, f"{digest}  {archive.name}\n")


def _annotation(root: Path) -> Callable[[Page], dict[str, Any]]:
    """A function from a page to OSCAR's record of it, annotated by our own rules with the files below `root`."""
    perplexity = harmful_perplexity(root / HARMFUL_MODEL.location)
    with tempfile.TemporaryDirectory(dir=root, prefix=".blocklist-") as folder:
        build_blocklist(root / BLOCKLIST.location, Path(folder, "trie"), Path(folder, "summary"))
        blocklist = Blocklist(Path(folder, "trie"))  # stays mapped when the file is gone

    def record(page: Page) -> dict[str, Any]:
        categories = sorted(blocklist.look_up(page.url).exact) if page.has_categories else []
        return {
            "content": page.text,
            "warc_headers": _warc_headers(page),
            "metadata": {
                "identification": {"label": "en", "prob": 1.0},
                "harmful_pp": perplexity(page.text) if page.has_perplexity else None,
                "tlsh": None,
                "quality_warnings": quality_warnings(page.text) or None,
                "categories": categories or None,
                "sentence_identifications": None,
            },
        }

    return record


def _warc_headers(page: Page) -> dict[str, str]:
    content = page.text.encode()
    return {
        "warc-type": "conversion",
        "warc-target-uri": page.url,
        "warc-date": CRAWL_DATE,
        "warc-record-id": page.record_id,
        "warc-identified-content-language": "eng",
        "content-type": "text/plain",
        "content-length": str(len(content)),
        "warc-block-digest": f"sha1:{base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()}",
    }


def _write_parts(lines: list[str], parts: int, root: Path) -> None:
    """Deal the lines to parts in turn, and write the list of their checksums."""
    checksums = []
    for number in range(parts):
        path = root / part_file(f"en_meta_part_{number + 1}").location
        with publish(path) as temporary:
            text = "".join(f"{line}\n" for line in lines[number::parts])
            temporary.write_bytes(zstd.compress(text.encode(), COMPRESSION_LEVEL))
        checksums.append(f"{sha256_of(path)}  {path.name}\n")
    write_text(root / CORPUS_CHECKSUMS.location, "".join(checksums))
