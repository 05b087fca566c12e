"""The embedded source: a corpus in the publishers' layout, made of the documentation of packages, without network.

Everything is a function of the settings, byte for byte.
"""

import base64
import hashlib
import json
import tempfile
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from tokenizers.models import WordPiece

from symbert.corpus.annotation import MOST_CHARACTERS_OF_A_SHORT_LINE, harmful_perplexity, quality_warnings
from symbert.corpus.blocklist import Blocklist, write_blocklist
from symbert.corpus.digests import digest_of
from symbert.corpus.documentation import DOCUMENTATION, Passage, read_documentation, source_url
from symbert.corpus.lines import zstd
from symbert.corpus.stand_ins import (
    BLOCKED,
    HARMFUL,
    domain_of,
    estimate,
    gibberish,
    harmful_text,
    write_arpa,
    write_blocklist_archive,
)
from symbert.corpus.wordpiece import SPECIAL_TOKENS, learn_pieces, uncased
from symbert.files import publish, sha256_of, write_text
from symbert.progress import Progress
from symbert.settings import EmbeddedSettings, read_settings
from symbert.sources import BLOCKLIST, BLOCKLIST_CHECKSUMS, CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY, part_file

CRAWL_DATE = "2026-01-01T00:00:00Z"  # stands for the date of a crawl
COMPRESSION_LEVEL = 9
LINES_PER_PAGE = 12
EXAMPLES = 2 * len(BLOCKED)  # pages altered for each rule that documentation does not fail by itself


@dataclass(frozen=True)
class Page:
    """A text, one paragraph a line, where it stands, and which annotation is withheld from it."""

    url: str
    text: str
    has_categories: bool = True
    has_perplexity: bool = True

    @property
    def record_id(self) -> str:
        """A WARC record id that follows from the text."""
        return f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, self.text)}>"


def documentation_pages(passages: Iterable[Passage]) -> list[Page]:
    """Pages of about LINES_PER_PAGE lines, each from one file and at its address, by record id.

    Short paragraphs are joined with the following ones of their file until the line is no short line.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for passage in passages:
        files[source_url(passage)].append(passage.text)
    pages = []
    for url, texts in files.items():
        lines = [""]
        for text in texts:
            if len(lines[-1]) > MOST_CHARACTERS_OF_A_SHORT_LINE:
                lines.append("")
            lines[-1] = f"{lines[-1]} {text}".lstrip()
        count = max(1, len(lines) // LINES_PER_PAGE)
        bounds = [len(lines) * number // count for number in range(count + 1)]
        pages += [Page(url, "\n".join(lines[first:after])) for first, after in pairwise(bounds)]
    return sorted(pages, key=lambda page: page.record_id)


def with_examples(pages: list[Page]) -> list[Page]:
    """`pages` and some of our own, by record id, so that every drop reason occurs.

    Of the pages without quality warnings, EXAMPLES move to blocked addresses, EXAMPLES do so with the category
    withheld (as if the list were newer than the annotation), and EXAMPLES lose their perplexity.
    """
    good = [page for page in pages if not quality_warnings(page.text)]
    examples: dict[str, Page] = {}
    for number, page in enumerate(good[: 3 * EXAMPLES]):
        moved = replace(page, url=f"https://{domain_of(BLOCKED[number % len(BLOCKED)])}/{number}")
        altered = (moved, replace(moved, has_categories=False), replace(page, has_perplexity=False))
        examples[page.record_id] = altered[number // EXAMPLES]
    own = [Page(f"https://prizes.example/{number}", harmful_text(number)) for number in range(len(HARMFUL))]
    own += [Page(f"https://noise.example/{number}", gibberish(number)) for number in range(len(HARMFUL))]
    everything = [examples.get(page.record_id, page) for page in pages] + own
    return sorted(everything, key=lambda page: page.record_id)


def write_embedded_corpus(settings: Path, root: Path, documentation: Path = DOCUMENTATION) -> None:
    """Write parts, checksums, blocklist, model of harmful text and vocabulary below `root`, as a mirror holds them."""
    embedded = read_settings(settings, EmbeddedSettings)
    progress = Progress("write embedded corpus", 4, "steps", interval=0)
    plain = documentation_pages(read_documentation(documentation))
    texts = [page.text for page in plain]
    progress.update(1, f"{len(texts):,} documents of documentation")
    write_vocabulary(texts, embedded.vocabulary_size, root / VOCABULARY.location)
    progress.update(2, f"vocabulary of {embedded.vocabulary_size:,} pieces")
    write_arpa(estimate(texts, map(harmful_text, range(len(HARMFUL)))), root / HARMFUL_MODEL.location)
    archive = root / BLOCKLIST.location
    write_blocklist_archive(archive)
    write_text(root / BLOCKLIST_CHECKSUMS.location, f"{digest_of(archive, 'md5')}  {archive.name}\n")
    progress.update(3, "model of harmful text, blocklist")
    perplexity = harmful_perplexity(root / HARMFUL_MODEL.location)
    with tempfile.TemporaryDirectory(prefix="symbert-") as folder:
        write_blocklist(archive, Path(folder, "trie"), Path(folder, "summary"))
        blocklist = Blocklist(Path(folder, "trie"))
        records = (_oscar_record(page, perplexity, blocklist) for page in with_examples(plain))
        lines = [f"{json.dumps(record, ensure_ascii=False)}\n" for record in records]
    checksums = []
    for number in range(embedded.parts):  # dealt in turn
        path = root / part_file(f"en_meta_part_{number + 1}").location
        with publish(path) as temporary:
            temporary.write_bytes(zstd.compress("".join(lines[number :: embedded.parts]).encode(), COMPRESSION_LEVEL))
        checksums.append(f"{sha256_of(path)}  {path.name}\n")
    write_text(root / CORPUS_CHECKSUMS.location, "".join(checksums))
    progress.update(4, f"{len(lines):,} documents in {embedded.parts} parts")


def write_vocabulary(texts: Iterable[str], size: int, path: Path) -> None:
    """Train an uncased WordPiece vocabulary of `size` pieces; [PAD] has id 0."""
    pieces = learn_pieces(uncased(WordPiece(unk_token="[UNK]")), list(texts), size, list(SPECIAL_TOKENS.values()))
    write_text(path, "".join(f"{piece}\n" for piece in pieces))


def _oscar_record(page: Page, perplexity: Callable[[str], float], blocklist: Blocklist) -> dict[str, Any]:
    """OSCAR's record of a page, annotated by our own rules."""
    content = page.text.encode()
    digest = base64.b32encode(hashlib.sha1(content, usedforsecurity=False).digest()).decode()
    categories = sorted(blocklist.look_up(page.url)) if page.has_categories else []
    return {
        "content": page.text,
        "warc_headers": {
            "warc-type": "conversion",
            "warc-target-uri": page.url,
            "warc-date": CRAWL_DATE,
            "warc-record-id": page.record_id,
            "warc-identified-content-language": "eng",
            "content-type": "text/plain",
            "content-length": str(len(content)),
            "warc-block-digest": f"sha1:{digest}",
        },
        "metadata": {
            "identification": {"label": "en", "prob": 1.0},
            "harmful_pp": perplexity(page.text) if page.has_perplexity else None,
            "tlsh": None,
            "quality_warnings": quality_warnings(page.text) or None,
            "categories": categories or None,
            "sentence_identifications": None,
        },
    }
