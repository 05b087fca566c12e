"""The categories table: documents in a blocked UT1 category by the corpus's metadata, by their URL, or by both."""

from symbert.report import captions
from symbert.report.corpus_counts import Row, not_read
from symbert.report.data import Data
from symbert.report.exhibits import exhibit
from symbert.report.formats import Table, frame_of, table_of

ANY = "any"  # the entry of documents in at least one blocked category
COLUMNS = {"both": "both", "metadata_only": "only_metadata", "url_only": "only_url", "parent_only": "by_parent_domain"}


@exhibit(
    chapter="Corpus", place=3, heading="Blocked categories: OSCAR’s metadata and UT1", reads=("settings", "categories")
)
def categories_table(data: Data) -> Table:
    """Where the categories that come with the documents and those of their URLs, looked up in UT1, agree and where they
    do not: documents read, in all parts, per blocked category and in any of them.

    Categories without any document are in csv only.
    """
    parts, settings = data.counts, data.settings
    names = dict.fromkeys([ANY, *(name for part in parts for name in part["categories"])])
    rows = [_row(name, [part["categories"].get(name, {}) for part in parts]) for name in names]
    shown = [row for row in rows if row["category"] == ANY or any(row[column] for column in COLUMNS.values())]
    skipped = not_read(parts)
    wording = captions.wording_of(settings)
    caption = (
        f"Documents of {wording.corpus} that are in a blocked category of UT1, by the metadata that come with the "
        "document, by its URL, or by both."
        f"\n\n{wording.experiment}{f'; {skipped}' if skipped else ''}. Both, only metadata and only URL: by the "
        "metadata that come with the document, or by its URL, looked up in UT1 by the rule of this experiment "
        f"({settings.match}); agreement is the share of both in the three. By parent domain: what the rule suffix "
        "finds and the rule exact does not. Any: in at least one of the categories; a document may be in several."
    )
    return table_of(rows, caption, "tab:corpus_categories", readable=frame_of(shown))


def _row(name: str, entries: list[Row]) -> Row:
    """A column that no part has a count for (computed annotations have no metadata) stays empty."""
    counted = {
        column: sum(entry[key] for entry in entries if key in entry) if any(key in entry for entry in entries) else None
        for key, column in COLUMNS.items()
    }
    known = [counted[column] for column in ("both", "only_metadata", "only_url")]
    agreement = 100 * known[0] / sum(known) if None not in known and sum(known) else None
    return {"category": name, **counted, "agreement_percent": agreement}
