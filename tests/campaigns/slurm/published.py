"""Small published files that a whole run on the cluster reads: text of made-up words, the demo's tasks."""

import hashlib
import random
import shutil
import string
from pathlib import Path

from corpus.oscar import record, write_part
from symbert.sources import DEMO

PARTS, DOCUMENTS, LINES, WORDS = 2, 60, 6, 25
# No letter both begins and continues a word, so that the quick encoder is left out and no code point compared with it.
FIRST, NEXT = string.ascii_lowercase[:13] + ".,:?'", string.ascii_lowercase[13:]


def write_mirror(root: Path) -> Path:
    """A directory in the publishers' layout."""
    _write_oscar(root / "oscar-corpus/OSCAR-2301/en_meta")
    for folder in ("ut1", "nyu-mll/glue"):
        shutil.copytree(DEMO / folder, root / folder)
    vocabulary = root / "google-bert/bert-base-uncased/vocab.txt"
    vocabulary.parent.mkdir(parents=True)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *FIRST, *(f"##{letter}" for letter in NEXT)]
    vocabulary.write_text("".join(f"{piece}\n" for piece in pieces))
    return root


def _write_oscar(folder: Path) -> None:
    folder.mkdir(parents=True)
    draw, checksums = random.Random(1), []
    for number in range(1, PARTS + 1):
        documents = [record(_text(draw), number=DOCUMENTS * number + count) for count in range(DOCUMENTS)]
        path = write_part(folder / f"en_meta_part_{number}.jsonl.zst", documents)
        checksums.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    (folder / "checksum.sha256").write_text("".join(checksums))


def _text(draw: random.Random) -> str:
    """Lines long enough to deserve no quality warning."""
    words = [draw.choice(FIRST[:13]) + "".join(draw.choices(NEXT, k=draw.randint(1, 8))) for _ in range(LINES * WORDS)]
    return "\n".join(" ".join(words[first : first + WORDS]) for first in range(0, len(words), WORDS))
