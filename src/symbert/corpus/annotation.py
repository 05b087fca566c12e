"""OSCAR's annotations by OSCAR's own rules, for text that comes without them."""

from collections.abc import Callable
from pathlib import Path

from symbert.corpus.blocklist import Blocklist
from symbert.corpus.document import Document, Metadata
from symbert.corpus.perplexity import harmful_perplexity
from symbert.corpus.quality import quality_warnings


def annotator(harmful_model: Path, blocklist: Blocklist, match: str) -> Callable[[Document], Metadata]:
    """A function that gives the annotations of a document: categories of its URL by `match` (exact or suffix),
    quality warnings, and harmful perplexity under a KenLM model; null where OSCAR writes null.
    """
    perplexity = harmful_perplexity(harmful_model)

    def annotate(document: Document) -> Metadata:
        categories = getattr(blocklist.look_up(document.url), match)
        return Metadata(
            harmful_pp=perplexity(document.content),
            quality_warnings=quality_warnings(document.content) or None,
            categories=sorted(categories) or None,
        )

    return annotate
