"""What the embedded source has in place of things that cannot be shipped: a blocklist, harmful text, a model of it.

All domains are under the reserved names `.example` and `.invalid` (RFC 2606), so none can be a real site.
"""

import gzip
import hashlib
import io
import math
import tarfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from symbert.corpus.annotation import words
from symbert.files import publish, write_text

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


def write_blocklist_archive(path: Path) -> None:
    """Write CATEGORIES as UT1 does: `blacklists/<category>/{domains,urls}`, aliases as symlinks; no dates, no owner."""
    with (
        publish(path) as temporary,
        open(temporary, "wb") as file,
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
        lines.append(f"{log10:.6f}\t{word}\t{math.log10(model.backoffs.get(word, 1.0)):.6f}")
    lines += ["", "\\2-grams:"]
    lines += [f"{math.log10(probability):.6f}\t{' '.join(pair)}" for pair, probability in model.bigrams.items()]
    write_text(path, "\n".join([*lines, "", "\\end\\", ""]))
