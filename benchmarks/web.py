"""Random documents in OSCAR-2301's schema and random addresses; equal arguments give equal ones.

The prose is given; some of its words are replaced by made-up and foreign ones, because the web never runs out of
new words. All domains are under reserved names (RFC 2606).
"""

import base64
import math
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

MEDIAN_LENGTH, LENGTH_SIGMA, LONGEST = 2700, 0.9, 1_000_000  # characters of text, log-normal: 4,000 on average
MADE_UP, FOREIGN = 0.02, 0.004  # shares of words
TYPOGRAPHIC = 0.3  # share of documents with curly quotes
FLAGGED, BLOCKED, LISTED, NO_PERPLEXITY = 0.44, 0.03, 0.05, 0.02  # shares of documents
FOREIGN_WORDS = (
    *("café", "naïve", "crème", "señor", "São", "Zürich", "Straße", "Łódź", "25°C", "20€", "½"),
    *("Ελλάδα", "Москва", "العربية", "東京", "한국", "😀"),
)
QUALITY_WARNINGS = ("tiny", "short_sentences", "header", "footer", "noisy")
LISTED_SUFFIXES = ("example", "invalid", "blogs.example")
OTHER_SUFFIXES = ("test", "co.test")


class Web:
    """Draws documents and addresses; the blocked ones are on `listed` domains."""

    def __init__(self, paragraphs: list[str], listed: list[str], seed: int) -> None:
        self._random = random.Random(seed)
        self._paragraphs = [paragraph.split(" ") for paragraph in paragraphs]
        self._words = frequent_words(paragraphs)
        self._listed = listed
        self._hosts = [f"www.{domain}" for domain in domains(self._words, OTHER_SUFFIXES, 20_000, seed)]
        # One entry a line; short lines are not identified.
        self._identifications = [
            {"label": "en", "prob": self._probability(0.4)} if self._random.random() > 0.15 else None
            for _ in range(5_000)
        ]

    def record(self) -> dict[str, Any]:
        """A document as OSCAR publishes it; about half of them pass the paper's filter."""
        text, draw = self.text(), self._random.random
        blocked = draw() < BLOCKED
        categories = ["porn", "adult"] if blocked else ["press"] if draw() < LISTED else None
        return {
            "content": text,
            "warc_headers": self._warc_headers(text, blocked),
            "metadata": {
                "identification": {"label": "en", "prob": self._probability(0.8)},
                "harmful_pp": None if draw() < NO_PERPLEXITY else round(self._random.lognormvariate(6.5, 1.2), 5),
                "tlsh": "tlsh:T1" + self._random.randbytes(35).hex().upper(),
                "quality_warnings": [self._random.choice(QUALITY_WARNINGS)] if draw() < FLAGGED else None,
                "categories": categories,
                "sentence_identifications": self._random.choices(self._identifications, k=text.count("\n") + 1),
            },
        }

    def text(self) -> str:
        """A document's text, one paragraph a line."""
        wanted = min(MEDIAN_LENGTH * math.exp(self._random.gauss(0, LENGTH_SIGMA)), LONGEST)
        lines: list[str] = []
        while wanted > 0:
            lines.append(" ".join(self._with_rare_words(self._random.choice(self._paragraphs))))
            wanted -= len(lines[-1]) + 1
        text = "\n".join(lines)
        if self._random.random() < TYPOGRAPHIC:
            text = re.sub(r'"([^"\n]*)"', r"“\1”", text).replace("'", "’").replace(" - ", " – ")
        return text

    def url(self, listed: bool) -> str:
        """An address: on a listed domain or on another; a few are written in an unusual way."""
        host = self._random.choice(self._listed if listed else self._hosts)
        slug = "-".join(self._random.choices(self._words, k=self._random.randint(1, 6)))
        form = self._random.random()
        if form < 0.03:
            return f"https://{host.upper()}:443/Caf%C3%A9/../{slug}"
        scheme = "https" if form < 0.7 else "http"
        query = f"?id={self._random.randrange(10**6)}" if form > 0.9 else ""
        return f"{scheme}://{host}/{self._random.choice(self._words)}/{self._random.randint(2001, 2022)}/{slug}{query}"

    def _with_rare_words(self, words: list[str]) -> list[str]:
        count = int(len(words) * (MADE_UP + FOREIGN) + self._random.random())
        if count:
            words = list(words)
            for _ in range(count):
                words[self._random.randrange(len(words))] = self._rare_word()
        return words

    def _rare_word(self) -> str:
        if self._random.random() < FOREIGN / (MADE_UP + FOREIGN):
            return self._random.choice(FOREIGN_WORDS)
        head, tail = self._random.choices(self._words, k=2)
        return head[: len(head) // 2 + 1] + tail[len(tail) // 2 :]

    def _probability(self, least: float) -> float:
        return round(self._random.uniform(least, 1.0), 8)

    def _warc_headers(self, text: str, blocked: bool) -> dict[str, str]:
        identity = self._random.randbytes(16).hex()
        return {
            "warc-refers-to": f"<urn:uuid:{identity[::-1]}>",
            "warc-record-id": f"<urn:uuid:{identity}>",
            "warc-type": "conversion",
            "warc-date": f"2022-12-0{self._random.randint(1, 9)}T10:{self._random.randint(10, 59)}:00Z",
            "warc-target-uri": self.url(blocked),
            "warc-block-digest": f"sha1:{base64.b32encode(self._random.randbytes(20)).decode()}",
            "warc-identified-content-language": "eng",
            "content-type": "text/plain",
            "content-length": str(len(text.encode())),
        }


def frequent_words(paragraphs: list[str]) -> list[str]:
    """The 20,000 most frequent plain words."""
    counts = Counter(re.findall(r"\b[a-z]{3,12}\b", " ".join(paragraphs)))
    return sorted(counts, key=lambda word: (-counts[word], word))[:20_000]


def domains(words: list[str], suffixes: tuple[str, ...], count: int, seed: int) -> Iterator[str]:
    """Domains of two words each, no two of the same two; some have a hyphen, some a number."""
    draw = random.Random(seed)
    for pair in draw.sample(range(len(words) ** 2), count):
        first, second = divmod(pair, len(words))
        form = draw.random()
        number = draw.randrange(1000) if form > 0.8 else ""
        yield f"{words[first]}{'-' if form < 0.2 else ''}{words[second]}{number}.{draw.choice(suffixes)}"
