import json

import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from corpus.oscar import record, write_part
from symbert.corpus.blocklist import Blocklist
from symbert.corpus.document import decode
from symbert.corpus.filters import filter_part, id_of, make_filters
from symbert.corpus.reasons import REASONS
from symbert.corpus.sources import part_file
from symbert.errors import ConfigError, DataError
from symbert.files import read_json
from symbert.settings import FilterSettings

BAD_URL = "https://phishing.example/a"

# Each with the reason that is counted, by facts of the paper's and authors' edge semantics.
CASES = [
    (record(), None),
    (record(content=""), None),
    (record(harmful_pp=5.000001), None),
    (record(harmful_pp=99_999.99), None),
    (record(categories=["press"]), None),
    (record(categories=[], quality_warnings=[]), None),
    (record(url="https://phishing.example.org/"), None),
    ({"content": "x", "metadata": {"harmful_pp": 500}}, None),
    (record(categories=["press", "sect"]), "blocked_category"),
    (record(url=BAD_URL), "blocked_url"),
    (record(harmful_pp=None), "no_perplexity"),
    ({"content": "x", "metadata": {}}, "no_perplexity"),
    (record(harmful_pp=0.0), "perplexity_too_low"),
    (record(harmful_pp=5.0), "perplexity_too_low"),
    (record(harmful_pp=-1), "perplexity_too_low"),
    (record(harmful_pp=100_000), "perplexity_too_high"),
    (record(quality_warnings=["tiny"]), "quality_warning"),
    (record(url=BAD_URL, categories=["adult"], harmful_pp=1, quality_warnings=["noisy"]), "blocked_category"),
    (record(url=BAD_URL, harmful_pp=None, quality_warnings=["noisy"]), "blocked_url"),
    (record(harmful_pp=1e6, quality_warnings=["noisy"]), "perplexity_too_high"),
]


@pytest.fixture
def run(tmp_path, blocklist_file, write_section):
    """Filters records; gives the kept rows and the counts."""
    brief = write_section("filter")

    def run(lines: list) -> tuple[list[dict], dict]:
        part = write_part(tmp_path / "en_meta_part_1.jsonl.zst", lines)
        filter_part(part, blocklist_file, brief, tmp_path / "kept.parquet", tmp_path / "counts.json")
        return pyarrow.parquet.read_table(tmp_path / "kept.parquet").to_pylist(), read_json(tmp_path / "counts.json")

    return run


@pytest.mark.parametrize(("line", "reason"), CASES)
def test_a_document_is_dropped_for_the_first_reason_only(run, line, reason):
    kept, counts = run([line])
    assert len(kept) == (reason is None)
    assert counts["dropped"] == {name: int(name == reason) for name in REASONS}


def test_counts_are_exact_and_overlaps_ignore_the_order(run):
    kept, counts = run([line for line, _ in CASES])
    assert counts["part"] == "en_meta_part_1"
    assert (counts["read"], counts["kept"], counts["bad"]) == (20, 8, 0)
    assert counts["dropped"] == dict(zip(REASONS, [2, 2, 2, 3, 2, 1], strict=True))
    assert counts["overlaps"] == dict(zip(REASONS, [2, 3, 3, 4, 2, 4], strict=True))
    assert counts["characters"]["kept"] == sum(len(row["text"]) for row in kept)
    assert counts["characters"]["read"] == sum(len(line["content"]) for line, _ in CASES)


def test_kept_documents_keep_order_id_url_and_text(run):
    texts = ["first\u2028line", "second\r\nline", "é" * 1000]
    kept, _ = run([record(text, number=number) for number, text in enumerate(texts)])
    assert [row["text"] for row in kept] == texts
    assert [row["id"] for row in kept] == ["<urn:uuid:0>", "<urn:uuid:1>", "<urn:uuid:2>"]
    assert {row["url"] for row in kept} == {"https://good.example/page"}


def test_a_document_without_id_is_known_by_its_text():
    first, second = (decode(json.dumps({"content": text, "metadata": {}}).encode(), "x") for text in "ab")
    assert id_of(first) != id_of(second)
    assert id_of(first).startswith("sha256:")


def test_a_part_of_which_nothing_is_kept_gives_an_empty_table(run):
    kept, counts = run([record(harmful_pp=None)])
    assert kept == []
    assert counts["characters"] == {"read": 10, "kept": 0}


def test_a_bad_line_ends_the_command_and_leaves_nothing(run, tmp_path):
    with pytest.raises(DataError, match=r"en_meta_part_1\.jsonl\.zst:2: "):
        run([record(), b"{}", record()])
    assert not list(tmp_path.glob("*kept*"))
    assert not (tmp_path / "counts.json").exists()


def test_a_misspelt_category_is_refused_with_the_near_one(blocklist_file):
    with pytest.raises(ConfigError, match=r"'phising' .* did you mean 'phishing'"):
        make_filters(FilterSettings(["phising"], "exact", 5.0, 1e5), Blocklist(blocklist_file))


records = st.builds(
    record,
    url=st.sampled_from([BAD_URL, "https://good.example/", "https://press.example/"]),
    harmful_pp=st.none() | st.floats(0, 2e5),
    categories=st.none() | st.lists(st.sampled_from(["adult", "press"]), max_size=2),
    quality_warnings=st.none() | st.lists(st.sampled_from(["tiny", "noisy"]), max_size=2),
    content=st.text(max_size=5),
)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(records, max_size=6), st.lists(records, max_size=6))
def test_filtering_two_parts_is_filtering_their_concatenation(run, first, second):
    (kept_first, first_counts), (kept_second, second_counts) = run(first), run(second)
    kept, counts = run(first + second)
    assert kept == kept_first + kept_second
    for reason in REASONS:
        assert counts["dropped"][reason] == first_counts["dropped"][reason] + second_counts["dropped"][reason]
    assert counts["read"] == counts["kept"] + counts["bad"] + sum(counts["dropped"].values())


def test_the_mirrors_first_part_is_filtered_as_its_annotation_says(mirror, mirror_blocklist, tmp_path, write_section):
    brief = write_section("filter", match="suffix")
    part = mirror / part_file("en_meta_part_1").location
    filter_part(part, mirror_blocklist, brief, tmp_path / "kept.parquet", tmp_path / "counts.json")
    counts = read_json(tmp_path / "counts.json")
    assert (counts["read"], counts["kept"]) == (5740, 943)
    assert counts["dropped"] == dict(zip(REASONS, [161, 0, 100, 3, 413, 4120], strict=True))
    assert counts["overlaps"]["blocked_url"] == 161, "re-matching the URLs finds what the metadata says"
    assert pyarrow.parquet.ParquetFile(tmp_path / "kept.parquet").metadata.num_rows == 943
