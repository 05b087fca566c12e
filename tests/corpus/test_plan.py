"""The plan of a corpus against numbers worked out by hand."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from symbert.config import merge
from symbert.corpus import plan
from symbert.corpus.plan import contents_in_words, intake, plan_of
from symbert.errors import MissingInputError

ROOT = Path(__file__).parents[2]
PAPER = merge(yaml.safe_load((ROOT / "config.yaml").read_text()), {"scale": "paper", "source": "hub"})


def planned(**corpus):
    return plan_of(merge(PAPER, {"corpus": corpus}))


def test_300_parts_hold_the_papers_corpus():
    """70e9 tokens are 136,718,750 rows of 512, which the paper rounds to 137 million."""
    found = planned()
    assert found.parts == 300
    assert round(found.documents_kept) == 30_000_000 and round(found.tokens) == 70_000_000_000
    assert found.rows == {"train": 136_708_750, "validation": 10_000}


def test_disk_of_the_papers_corpus():
    """A token has 2 bytes; 30e6 documents have an offset of 20 and an index entry of 16; 20 parts lie there at a time.

    Text kept: 70e9 tokens of 4.68 bytes, 0.41 as parquet; text read: 1 / 0.67 of it, 0.382 as compressed parts.
    """
    found = planned()
    assert found.disk["token streams"] == pytest.approx(140e9 + 0.6e9)
    assert found.disk["shards"] == 2 * 512 * 136_718_750 == 140e9
    assert found.disk["index of documents"] == pytest.approx(0.48e9)
    assert found.disk["filtered documents"] == pytest.approx(134.316e9)
    assert found.download == pytest.approx(70e9 * 4.68 / 0.67 * 0.382, rel=1e-9) == pytest.approx(186.78e9, rel=1e-4)
    assert found.disk["raw parts"] == pytest.approx(found.download / 15)
    assert found.high_water_mark == pytest.approx(sum(found.disk.values()) - found.disk["raw parts"])


@given(st.integers(1, 700), st.integers(1, 40))
def test_more_parts_are_never_less_of_anything(parts, per_batch):
    fewer, more = (planned(parts=count, parts_per_batch=per_batch) for count in (parts, parts + 1))
    for name in ("parts", "documents_read", "documents_kept", "tokens", "download", "high_water_mark"):
        assert getattr(fewer, name) <= getattr(more, name) * (1 + 1e-12), name
    for name in ("disk", "core_hours", "rows"):
        for key, value in getattr(fewer, name).items():
            assert value <= getattr(more, name)[key] * (1 + 1e-12), key
    assert fewer.parts <= parts and max(fewer.disk.values()) <= fewer.high_water_mark


@given(
    st.lists(st.integers(0, 50_000), min_size=1, max_size=40),
    st.integers(1, 7),
    st.integers(1, 60),
)
def test_a_batch_is_read_unless_those_up_to_the_last_but_one_suffice(tokens, per_batch, documents):
    """Against the rule of the workflow: batch b waits for what count-batch said of batch b - 2."""
    taken, enough = 0, []
    for first in range(0, len(tokens), per_batch):
        if len(enough) >= 2 and enough[-2]:
            break
        taken = min(first + per_batch, len(tokens))
        total = sum(tokens[:taken])
        enough.append(round(total / plan.TOKENS_PER_DOCUMENT) >= documents)
    assert intake(tokens, per_batch, documents) == taken


def test_a_mirror_is_planned_from_its_file_sizes(mirror):
    """Real documents in OSCAR's form: 69,495 in 12 parts of 77.85 MB, 16.5 % of them kept."""
    found = plan_of(merge(PAPER, {"source": "mirror", "mirror": str(mirror), "corpus": {"parts": 12}}))
    assert found.parts == 12 and found.download == 0
    assert found.disk["raw parts"] == pytest.approx(77_850_099 - 1_095), "without the checksums"
    assert found.documents_read == pytest.approx(69_495, rel=0.1)
    assert found.documents_kept == pytest.approx(0.165 * 69_495, rel=0.1)


def test_a_part_that_the_mirror_lacks_is_named(tmp_path):
    with pytest.raises(MissingInputError, match="en_meta_part_1.jsonl.zst: file not found; ask for fewer corpus.parts"):
        plan_of(merge(PAPER, {"source": "mirror", "mirror": str(tmp_path), "corpus": {"parts": 1}}))


def test_files_of_the_user_are_planned_where_they_are(tmp_path):
    for name, count in (
        *(("a.ndjson", 1340), ("b.json.zst", 382), ("c.parquet", 410)),
        *(("d.txt", 1000), ("saved/data.arrow", 1000), ("saved/state.json", 99)),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * count)
    config = merge(PAPER, {"corpus": {"source": "files", "files": str(tmp_path / "[abcds]*")}})
    found = plan_of(config)
    assert found.parts == 5 and found.download == found.disk["raw parts"] == 0
    assert found.tokens == pytest.approx(5000 * 0.67 / 4.68)


def test_text_that_is_not_filtered_is_not_planned_as_if_a_third_were_dropped(tmp_path):
    """All 4,680 bytes of text stay: 1,000 tokens of 4.68 bytes each, and 0.41 bytes of parquet for each byte."""
    (tmp_path / "a.jsonl").write_bytes(b"x" * 6271)  # 1.34 for each byte of text
    files = {"source": "files", "files": str(tmp_path / "*.jsonl")}
    everything = plan_of(merge(PAPER, {"corpus": {**files, "filter": {"rules": []}}}))
    filtered = plan_of(merge(PAPER, {"corpus": {**files, "filter": {"rules": ["categories"]}}}))
    assert everything.tokens == pytest.approx(1000, rel=1e-3)
    assert everything.disk["filtered documents"] == pytest.approx(0.41 * 4680, rel=1e-3)
    assert everything.disk["token streams"] == pytest.approx(2 * 1000 + 20 * 1000 / (70e9 / 30e6), rel=1e-3)
    assert filtered.tokens == pytest.approx(670, rel=1e-3)
    assert filtered.disk["filtered documents"] == pytest.approx(0.67 * 0.41 * 4680, rel=1e-3)


def test_the_contents_of_the_papers_corpus_are_told_in_words():
    said = " ".join(contents_in_words(PAPER))
    for words in ("300 of 300 parts", "30,000,000 of", "70,000,000,000 tokens", "137,000,000 training rows"):
        assert words in said, words
    assert "10,000 held out" in said and "51,200,000 rows" in said
