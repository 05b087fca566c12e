"""Where text and tasks come from: what is said and assumed of a source, once."""

from dataclasses import dataclass

_OSCAR = (
    "OSCAR's packaging is CC0; its text comes from Common Crawl, whose terms of use apply, and remains its authors'."
)


@dataclass(frozen=True)
class TextSource:
    """A value of `source`, `corpus.source` or `glue.source`; how its files are fetched is in `corpus.sources`."""

    corpus: str  # of a caption
    tasks: str  # of a caption
    training_text: str  # of a model card
    terms: str  # of that text, in a model card
    is_stand_in: bool = False
    annotations: str = "published"  # those of the corpus, unless the configuration says otherwise; or computed
    is_published: bool = True  # under the publishers' names: files in their layout


SOURCES = {
    "embedded": TextSource(
        corpus="a stand-in corpus made from documentation text",
        tasks="stand-in tasks made from documentation text, not GLUE",
        training_text="a stand-in corpus made from the documentation of Python packages",
        terms="That text is part of the packages that it documents, under their licences.",
        is_stand_in=True,
    ),
    "mirror": TextSource(
        corpus="OSCAR from a local mirror",
        tasks="GLUE from a local mirror",
        training_text="OSCAR parts of a local mirror",
        terms=_OSCAR,
    ),
    "hub": TextSource(
        corpus="OSCAR-2301 from its publisher",
        tasks="GLUE from its publisher",
        training_text="OSCAR-2301",
        terms=_OSCAR,
    ),
    "files": TextSource(
        corpus="the user's own (source files)",
        tasks="GLUE from its original files",
        training_text="the user's own files",
        terms="The terms of those files are known to whoever gave them.",
        annotations="computed",
        is_published=False,
    ),
}


def is_stand_in(source: str | None) -> bool:
    """Whether what comes from a source only has the shape of the paper's text or tasks."""
    return source in SOURCES and SOURCES[source].is_stand_in
