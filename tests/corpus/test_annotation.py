from collections import Counter

from corpus.oscar import refuse
from symbert.corpus.annotation import annotator
from symbert.corpus.blocklist import Blocklist
from symbert.corpus.document import Document, Metadata, WarcHeaders, documents
from symbert.corpus.language_model import estimate, write_arpa
from symbert.corpus.perplexity import harmful_perplexity
from symbert.corpus.sources import HARMFUL_MODEL, part_file


def test_annotations_are_what_each_rule_gives_and_null_where_oscar_writes_null(tmp_path, make_blocklist):
    blocklist = make_blocklist({"adult": (["bad.example"], []), "press": (["bad.example"], [])})
    write_arpa(estimate(["the file is read"], ["the file"]), tmp_path / "en.arpa")
    long = "the file is read and read again by all of the readers who ever read a file of that kind or any other kind"
    good, bad = "\n".join([long] * 10), "the file"
    perplexity = harmful_perplexity(tmp_path / "en.arpa")
    for match, categories in (("exact", None), ("suffix", ["adult", "press"])):
        annotate = annotator(tmp_path / "en.arpa", blocklist.look_up, match)
        url = WarcHeaders("https://www.bad.example/")
        assert annotate(Document(good, Metadata(), url)) == Metadata(perplexity(good), None, categories)
        found = annotate(Document(bad, Metadata(), None))
        assert found == Metadata(perplexity(bad), ["tiny", "short_sentences"], None)


# The mirror's README: values that were set by hand, at and beside the edges of the perplexity window.
HAND_SET = {0.0: 8, 4.9999995: 6, 5.0: 7, 5.0000005: 6, 99999.99: 5, 100_000.0: 8, 100000.01: 5}


def test_annotations_of_the_whole_mirror_equal_its_own_but_for_those_that_its_readme_counts(mirror, mirror_blocklist):
    """The mirror was annotated independently, by the same rules. Every document that differs is accounted for."""
    annotate = annotator(mirror / HARMFUL_MODEL.location, Blocklist(mirror_blocklist).look_up, "suffix")
    differing, hand_set = Counter(), Counter()
    for number in range(1, 13):
        part = mirror / part_file(f"en_meta_part_{number}").location
        for _, document in documents(part, "published", refuse):
            published, computed = document.metadata, annotate(document)
            if set(published.categories or ()) != set(computed.categories or ()):
                differing[f"categories: {published.categories}"] += 1
            if (published.quality_warnings or None) != computed.quality_warnings:
                differing["quality_warnings"] += 1
            if published.harmful_pp is None:
                differing["harmful_pp: None"] += 1
            elif abs(published.harmful_pp / computed.harmful_pp - 1) > 1e-4:
                hand_set[published.harmful_pp] += 1
            differing["documents"] += 1
    # Keys that were taken away (11 documents) or lists that were emptied (8): of these, 6 and 5 are in UT1.
    # Perplexity is null in two of a hundred; warnings were only taken from documents that deserve none.
    assert differing == {"documents": 69_495, "categories: None": 6, "categories: []": 5, "harmful_pp: None": 1387}
    assert hand_set == HAND_SET
