"""The demo's corpus: every filter is seen to act on it."""

from collections import Counter

from corpus.oscar import refuse, write_settings
from symbert.corpus.annotation import harmful_perplexity, quality_warnings
from symbert.corpus.document import documents
from symbert.corpus.filters import REASONS
from symbert.corpus.parts import prepare_part
from symbert.files import read_json
from symbert.sources import CORPUS_CHECKSUMS, DEMO, DEMO_PARTS, HARMFUL_MODEL, VOCABULARY, part_file

PARTS = [f"en_meta_part_{number}" for number in range(1, DEMO_PARTS + 1)]


def test_every_filter_is_seen_to_act_and_most_text_is_kept(tmp_path, blocklist_file):
    needed, total = {"blocklist": blocklist_file, "checksums": DEMO / CORPUS_CHECKSUMS.location}, Counter()
    folder = write_settings(tmp_path / "parts", DEMO / VOCABULARY.location, needed)
    for part in PARTS:
        prepare_part(DEMO / part_file(part).location, folder / f"{part}.npy")
        counts = read_json(folder / f"{part}.json")["counts"]
        total.update(counts["dropped"])
        total.update({f"characters {key}": counts["characters"][key] for key in ("read", "kept")})
    assert {reason: total[reason] for reason in REASONS[:5]} == dict(zip(REASONS, [11, 11, 11, 6, 6], strict=False))
    assert total["quality_warning"] > 15
    assert total["characters kept"] > 0.6 * total["characters read"]


def test_annotations_are_those_of_our_own_rules():
    perplexity, count = harmful_perplexity(DEMO / HARMFUL_MODEL.location), 0
    for part in PARTS:
        for _, document in documents(DEMO / part_file(part).location, "published", refuse):
            assert (document.metadata.quality_warnings or []) == quality_warnings(document.content)
            assert document.metadata.harmful_pp in (None, perplexity(document.content))
            count += 1
    assert count > 100
