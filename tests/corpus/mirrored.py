"""Real documents of the mirror, the first of one part."""

from functools import cache
from itertools import islice
from pathlib import Path

from corpus.oscar import refuse
from symbert.corpus.document import Document, documents
from symbert.sources import part_file


@cache
def mirrored_documents(mirror: Path, count: int = 1500) -> list[Document]:
    """Part 7, which has several frames cut within lines."""
    part = mirror / part_file("en_meta_part_7").location
    return [document for _, document in islice(documents(part, "published", refuse), count)]
