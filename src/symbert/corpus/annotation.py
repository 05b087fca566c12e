"""OSCAR's annotations by OSCAR's own rules, for text that comes without them."""

from collections.abc import Callable
from pathlib import Path

from symbert.corpus.blocklist import Found
from symbert.corpus.document import Document, Metadata
from symbert.corpus.perplexity import harmful_perplexity
from symbert.corpus.quality import quality_warnings


def annotator(
    harmful_model: Path | None, look_up: Callable[[str | None], Found], match: str
) -> Callable[[Document], Metadata]:
    """A function that gives the annotations of a document: the categories that `look_up` finds of its URL by `match`
    (exact or suffix), quality warnings, and harmful perplexity under a KenLM model, if there is one; null where OSCAR
    writes null.
    """
    perplexity = harmful_perplexity(harmful_model) if harmful_model else None

    def annotate(document: Document) -> Metadata:
        categories = getattr(look_up(document.url), match)
        return Metadata(
            harmful_pp=perplexity(document.content) if perplexity else None,
            quality_warnings=quality_warnings(document.content) or None,
            categories=sorted(categories) or None,
        )

    return annotate
