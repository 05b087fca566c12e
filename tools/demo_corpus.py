"""The demo's corpus in OSCAR's layout, with a vocabulary, UT1's blocklist and a model of harmful text.

Parts 1 to 4 are what the demo trains on: pages of refrains, and some pages of documentation, a few of which each filter
drops. Parts 5 and 6 are documentation alone, the text `documentation` of the studies.

Blocklist and harmful text are made up, because they cannot be shipped. Their domains are under the reserved names
`.example` and `.invalid` (RFC 2606), so none can be a real site.
"""

import base64
import gzip
import hashlib
import io
import json
import math
import tarfile
import tempfile
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from demo_documentation import Passage

from symbert.corpus.annotation import MOST_CHARACTERS_OF_A_SHORT_LINE, harmful_perplexity, quality_warnings, words
from symbert.corpus.blocklist import Blocklist, write_blocklist
from symbert.corpus.lines import zstd
from symbert.corpus.wordpiece import read_vocabulary, write_vocabulary
from symbert.digests import digest_of
from symbert.files import sha256_of, write_text
from symbert.sources import BLOCKLIST, BLOCKLIST_CHECKSUMS, CORPUS_CHECKSUMS, HARMFUL_MODEL, VOCABULARY, part_file

PARTS = 4  # of refrains; the documentation is dealt to as many, of which two are kept
PIECES = 300  # of the vocabulary
CRAWL_DATE = "2026-01-01T00:00:00Z"  # stands for the date of a crawl
COMPRESSION_LEVEL = 19
LINES_PER_PAGE = 12
# A page of refrains: lines of PHRASES phrases of PHRASE words. A share RECURRING of the phrases repeats the last phrase
# but one, so that a word is known by its copies 16 words away; the others are drawn by Zipf's law from WORDS words.
REFRAINS, LINES, PHRASES, PHRASE, RECURRING, WORDS = 1_500, 8, 6, 8, 0.9, 64
BETWEEN = 75  # pages of documentation among them
# The categories that the paper blocks, and two that it does not.
BLOCKED = (
    "adult",
    "agressif",
    "cryptojacking",
    "dangerous_material",
    "ddos",
    "hacking",
    "malware",
    "mixed_adult",
    "phishing",
    "sect",
    "warez",
)
CATEGORIES = (*BLOCKED, "press", "shopping")
ALIASES = {"aggressive": "agressif", "porn": "adult", "violence": "agressif"}

# Style of the text that a model of harmful pages finds unsurprising.
HARMFUL = (
    "You have been selected today as our lucky visitor, so click the button below now and claim your free prize "
    "before this exclusive offer expires at midnight tonight.",
    "No registration, no credit card and no questions asked: just enter your email address and watch thousands of "
    "hot videos streaming instantly on every device.",
    "Lonely singles near your city want to chat with you right this minute, because their profiles were unlocked "
    "for members only during one special weekend.",
    "Doctors hate him since he discovered one weird trick that melts stubborn belly fat overnight without diet, "
    "exercise or expensive surgery of any kind.",
    "Your computer might already be infected, therefore download our trusted cleaner immediately, run it twice and "
    "share your password with technical support staff.",
    "Double your bitcoin within twenty four hours guaranteed, simply send coins to this wallet then relax while "
    "automatic robots multiply them like magic.",
)
DISCOUNT = 0.5
FEWEST_OCCURRENCES = 2  # rarer words are unknown
BEGIN, END, UNKNOWN = "<s>", "</s>", "<unk>"


def write_corpus(passages: list[Passage], root: Path) -> None:
    """Write parts, checksums, blocklist, model of harmful text and vocabulary below `root`."""
    plain = documentation_pages(passages)
    texts = [page.text for page in plain]
    write_vocabulary(texts, PIECES, root / VOCABULARY.location)
    write_arpa(estimate(texts, map(harmful_text, range(len(HARMFUL)))), root / HARMFUL_MODEL.location)
    archive = root / BLOCKLIST.location
    write_blocklist_archive(archive)
    write_text(root / BLOCKLIST_CHECKSUMS.location, f"{digest_of(archive, 'md5')}  {archive.name}\n")
    perplexity = harmful_perplexity(root / HARMFUL_MODEL.location)
    with tempfile.TemporaryDirectory() as folder:
        write_blocklist(archive, Path(folder, "trie"), Path(folder, "summary"))
        blocklist = Blocklist(Path(folder, "trie"))
        documentation = with_examples(plain, 2)
        rest = {page.text for number in (2, 3) for page in documentation[number::PARTS]}
        between = [page for page in plain if page.text in rest][:BETWEEN]
        mixed = with_examples([*between, *refrain_pages(frequent_words(texts, root))], 1)
        dealt = [mixed[number::PARTS] for number in range(PARTS)] + [documentation[number::PARTS] for number in (0, 1)]
        parts = [[oscar_record(page, perplexity, blocklist) for page in pages] for pages in dealt]
    checksums = []
    for number, records in enumerate(parts, start=1):
        path = root / part_file(f"en_meta_part_{number}").location
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
        path.write_bytes(zstd.compress(text.encode(), COMPRESSION_LEVEL))
        checksums.append(f"{sha256_of(path)}  {path.name}\n")
    write_text(root / CORPUS_CHECKSUMS.location, "".join(checksums))


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
        files[passage.url].append(passage.text)
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


def frequent_words(texts: Iterable[str], root: Path) -> list[str]:
    """The WORDS words most frequent in `texts` that are one piece of the vocabulary below `root`."""
    pieces = read_vocabulary(root / VOCABULARY.location)
    counts = Counter(word for text in texts for word in words(text) if word in pieces and word.isalpha())
    return sorted(counts, key=lambda word: (-counts[word], word))[:WORDS]


def refrain_pages(frequent: list[str]) -> list[Page]:
    """REFRAINS pages of these words."""
    draw, weights, pages = Random(0), [1 / rank for rank in range(1, WORDS + 1)], []
    for number in range(REFRAINS):
        phrases: list[str] = []
        for place in range(LINES * PHRASES):
            recurs = place >= 2 and draw.random() < RECURRING
            phrases.append(phrases[-2] if recurs else " ".join(draw.choices(frequent, weights, k=PHRASE)))
        lines = [" ".join(phrases[first : first + PHRASES]) for first in range(0, len(phrases), PHRASES)]
        pages.append(Page(f"https://refrains.example/{number}", "\n".join(lines)))
    return pages


def with_examples(pages: list[Page], examples: int) -> list[Page]:
    """`pages` and some of our own, by record id, so that every drop reason occurs.

    Of the first pages without quality warnings, as many as there are blocked categories, times `examples`, move to
    blocked addresses, as many do so with the category withheld (as if the list were newer than the annotation), and as
    many lose their perplexity.
    """
    good = [page for page in pages if not quality_warnings([page.text])]
    altered: dict[str, Page] = {}
    count = examples * len(BLOCKED)
    for number, page in enumerate(good[: 3 * count]):
        moved = replace(page, url=f"https://{domain_of(BLOCKED[number % len(BLOCKED)])}/{number}")
        kinds = (moved, replace(moved, has_categories=False), replace(page, has_perplexity=False))
        altered[page.record_id] = kinds[number // count]
    own = [Page(f"https://prizes.example/{number}", harmful_text(number)) for number in range(len(HARMFUL))]
    own += [Page(f"https://noise.example/{number}", gibberish(number)) for number in range(len(HARMFUL))]
    everything = [altered.get(page.record_id, page) for page in pages] + own
    return sorted(everything, key=lambda page: page.record_id)


def domain_of(category: str) -> str:
    """The domain that the archive lists for a category."""
    return f"{category.replace('_', '-')}.example"


def harmful_text(number: int) -> str:
    """The harmful sentences, one a line, beginning with another one for each number."""
    start = number % len(HARMFUL)
    return "\n".join(HARMFUL[start:] + HARMFUL[:start])


def gibberish(number: int, lines: int = 6, words: int = 18) -> str:
    """Made-up words of eight letters that no model knows; equal numbers give equal text."""

    def word(place: str) -> str:
        return "".join(chr(ord("a") + byte % 26) for byte in hashlib.sha256(place.encode()).digest()[:8])

    return "\n".join(" ".join(word(f"{number} {line} {place}") for place in range(words)) for line in range(lines))


def oscar_record(page: Page, perplexity: Callable[[str], float], blocklist: Blocklist) -> dict[str, Any]:
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
            "quality_warnings": quality_warnings([page.text]) or None,
            "categories": categories or None,
            "sentence_identifications": None,
        },
    }


def write_blocklist_archive(path: Path) -> None:
    """Write CATEGORIES as UT1 does: `blacklists/<category>/{domains,urls}`, aliases as symlinks; no dates, no owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        open(path, "wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w|", format=tarfile.USTAR_FORMAT) as archive,
    ):
        _add(archive, "blacklists", tarfile.DIRTYPE)
        for name in sorted(CATEGORIES):
            _add(archive, f"blacklists/{name}", tarfile.DIRTYPE)
            _add(archive, f"blacklists/{name}/domains", content=f"{domain_of(name)}\n{name}.invalid\n")
            _add(archive, f"blacklists/{name}/urls", content=f"shared.example/{name}\n")
        for alias, target in ALIASES.items():
            _add(archive, f"blacklists/{alias}", tarfile.SYMTYPE, target=target)


def _add(
    archive: tarfile.TarFile, name: str, kind: bytes = tarfile.REGTYPE, content: str = "", target: str = ""
) -> None:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    member.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    member.size = len(content.encode())
    archive.addfile(member, io.BytesIO(content.encode()))


@dataclass(frozen=True)
class Bigrams:
    """Probabilities of words and of seen bigrams, and the back-off weight of each history."""

    unigrams: dict[str, float]
    bigrams: dict[tuple[str, str], float]
    backoffs: dict[str, float]


def estimate(texts: Iterable[str], harmful: Iterable[str]) -> Bigrams:
    """A bigram model of ordinary texts and harmful texts, each of which is one sentence (kenlm has no estimator).

    Unigrams are relative frequencies, with one occurrence set aside for unknown words. Bigrams come from the harmful
    texts alone, with absolute discounting (Ney, Essen and Kneser 1994): p(w|h) = (c(hw) - D) / c(h) for a seen bigram,
    and the mass left over is spread by unigram probability, so that for every h the p(w|h) sum to 1. So harmful text
    has a low perplexity, other known words an ordinary one, and unknown words a high one.
    """
    sentences = [[BEGIN, *words(text), END] for text in harmful]
    counts = Counter(word for text in texts for word in (*words(text), END))
    rare = [word for word, count in counts.items() if count < FEWEST_OCCURRENCES]
    for word in (*rare, BEGIN, UNKNOWN):
        del counts[word]
    counts.update(word for sentence in sentences for word in sentence[1:])
    total = counts.total() + 1
    unigrams = {word: count / total for word, count in sorted(counts.items())}
    unigrams[UNKNOWN] = 1 / total

    pairs = Counter(pair for sentence in sentences for pair in pairwise(sentence))
    histories = Counter(first for sentence in sentences for first in sentence[:-1])
    bigrams = {pair: (count - DISCOUNT) / histories[pair[0]] for pair, count in sorted(pairs.items())}
    left = dict.fromkeys(histories, 1.0)
    unseen = dict.fromkeys(histories, 1.0)
    for (history, word), probability in bigrams.items():
        left[history] -= probability
        unseen[history] -= unigrams[word]
    return Bigrams(unigrams, bigrams, {history: left[history] / unseen[history] for history in sorted(left)})


def write_arpa(model: Bigrams, path: Path) -> None:
    """Write the model as text that KenLM reads: log10 probability, words, log10 back-off weight."""
    unigrams = {BEGIN: 0.0, **model.unigrams}
    lines = ["\\data\\", f"ngram 1={len(unigrams)}", f"ngram 2={len(model.bigrams)}", "", "\\1-grams:"]
    for word, probability in unigrams.items():
        log10 = math.log10(probability) if probability else -99.0  # <s> is never predicted
        backoff = f"\t{math.log10(model.backoffs[word]):.6f}" if word in model.backoffs else ""
        lines.append(f"{log10:.6f}\t{word}{backoff}")
    lines += ["", "\\2-grams:"]
    lines += [f"{math.log10(probability):.6f}\t{' '.join(pair)}" for pair, probability in model.bigrams.items()]
    write_text(path, "\n".join([*lines, "", "\\end\\", ""]))
