"""A stand-in for parallel text: documentation sentences, and the same with another word in the place of each."""

import json
import random
import re
from collections import Counter
from pathlib import Path

from symbert.cli import main
from symbert.corpus.documentation import DOCUMENTATION, read_documentation
from symbert.files import sha256_of
from symbert.keys import PARALLEL_FILES

WORDS = 24  # kinds, the most frequent of documentation
LENGTHS = range(3, 7)  # words of a sentence


def sentences(count: int) -> list[str]:
    """Different sentences of the most frequent words, in the order in which documentation has them."""
    words = [
        word for passage in read_documentation(DOCUMENTATION)[:6000] for word in re.findall("[a-z]+", passage.text)
    ]
    frequent = {word for word, _ in Counter(words).most_common(WORDS)}
    kept, draw, lines = [word for word in words if word in frequent], random.Random(0), []
    first = 0
    while len(lines) < count:
        length = draw.choice(LENGTHS)
        lines.append(f"{' '.join(kept[first : first + length]).capitalize()}.")
        lines = list(dict.fromkeys(lines))
        first += length
    return lines


def substituted(line: str) -> str:
    """The line with each word written backwards and the next letter for each: `The value.` is `Fiu fvmbw.`"""

    def other(word: re.Match) -> str:
        letters = "".join(chr((ord(letter) - ord("a") + 1) % 26 + ord("a")) for letter in reversed(word[0].lower()))
        return letters.capitalize() if word[0][0].isupper() else letters

    return re.sub("[A-Za-z]+", other, line)


def write_text(folder: Path, training: int = 400, held_out: int = 40) -> dict[str, str]:
    """The four files by key, plain text."""
    lines = sentences(training + held_out)
    sides = {
        "source": lines[:training],
        "target": [substituted(line) for line in lines[:training]],
        "validation_source": lines[training:],
        "validation_target": [substituted(line) for line in lines[training:]],
    }
    for key, side in sides.items():
        (folder / f"{key}.txt").write_text("".join(f"{line}\n" for line in side))
    return {key: str(folder / f"{key}.txt") for key in sides}


def settings_of(files: dict[str, str], path: Path, **changes: int) -> Path:
    """The section of settings of these files, in a file."""
    contents = {key: sha256_of(Path(files[key])) for key in PARALLEL_FILES}
    path.write_text(json.dumps({**files, "sha256": contents, **{"vocabulary_size": 200, "max_length": 32, **changes}}))
    return path


def pack(files: dict[str, str], folder: Path, **changes: int) -> Path:
    """The manifest of the packed pairs of these files, or of the stand-in's."""
    settings = settings_of(files, folder / "parallel.json", **changes)
    assert main(["pack-pairs", "--settings", str(settings), "--output", str(folder / "parallel/manifest.json")]) == 0
    return folder / "parallel/manifest.json"
