"""The documents of the embedded corpus: the documentation, and a few that each filter must drop."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from symbert.corpus.documentation import Passage, source_url
from symbert.corpus.quality import MOST_CHARACTERS_OF_A_SHORT_LINE, quality_warnings
from symbert.corpus.stand_ins import BLOCKED, HARMFUL, domain_of, gibberish, harmful_text

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
    pages = (Page(url, text) for url, texts in files.items() for text in _texts(list(_long_lines(texts))))
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


def _long_lines(texts: list[str]) -> Iterator[str]:
    line = ""
    for text in texts:
        line = f"{line} {text}".lstrip()
        if len(line) > MOST_CHARACTERS_OF_A_SHORT_LINE:
            yield line
            line = ""
    if line:
        yield line


def _texts(lines: list[str]) -> Iterator[str]:
    """The lines of a file, dealt evenly to pages."""
    count = max(1, len(lines) // LINES_PER_PAGE)
    bounds = [len(lines) * number // count for number in range(count + 1)]
    for number in range(count):
        yield "\n".join(lines[bounds[number] : bounds[number + 1]])
