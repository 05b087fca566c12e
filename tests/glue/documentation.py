"""A made-up documentation: sentences in the manner of docstrings, of every package that the stand-ins name."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from symbert.corpus.documentation import Passage

PACKAGES = ("matplotlib", "huggingface_hub", "numpy", "scipy", "pandas", "networkx", "sympy")
OPENINGS = ("Return the", "Compute a", "If the", "Whether a", "The", "A", "Number of")
NOUNS = "array matrix token model graph edge axis value index label column frame series order weight".split()  # noqa: SIM905
LINKS = ("of the", "for each", "in a", "with the", "to an", "that is")


def passages() -> Iterator[Passage]:
    """7,000 passages, the same each time."""
    draw = Random("documentation")
    for number in range(1000):
        for package in PACKAGES:
            noun, link, other = draw.choice(NOUNS), draw.choice(LINKS), draw.choice(NOUNS)
            words = [draw.choice(OPENINGS), noun, link, other, *draw.sample(NOUNS, 2)]
            name = f"{package}.part.find_{noun}_{number}"
            yield Passage(package, "1.0", f"{package}/part.py", name, " ".join(words) + ". And more is said.")


def write(path: Path) -> Path:
    """A file of these passages."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([vars(passage) for passage in passages()]), path)
    return path
