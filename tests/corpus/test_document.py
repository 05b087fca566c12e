import json

import pytest
import zstandard

from corpus.oscar import record, write_part
from symbert.corpus.document import LONGEST_LINE, decode, documents
from symbert.errors import DataError, MissingInputError


def with_metadata(text: str) -> bytes:
    """A line whose metadata is JSON text, so that it may be no JSON at all."""
    return b'{"content": "a", "metadata": ' + text.encode() + b"}"


def test_missing_null_and_empty_annotations_are_read_as_none():
    for text in ("{}", '{"harmful_pp": null, "quality_warnings": null, "categories": null}'):
        metadata = decode(with_metadata(text), "x:1").metadata
        assert metadata.harmful_pp is None
        assert not metadata.quality_warnings
        assert not metadata.categories
    assert decode(with_metadata('{"categories": [], "quality_warnings": []}'), "x:1").metadata.categories == []


@pytest.mark.parametrize("headers", [b"", b'"warc_headers": null,', b'"warc_headers": {},'])
def test_a_document_without_warc_headers_has_neither_url_nor_id(headers):
    document = decode(b"{" + headers + b'"content": "", "metadata": {}}', "x:1")
    assert (document.url, document.record_id, document.content) == (None, None, "")


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        with_metadata("null"),
        with_metadata("[]"),
        with_metadata('{"harmful_pp": NaN}'),
        with_metadata('{"harmful_pp": Infinity}'),
        with_metadata('{"harmful_pp": 1e999}'),
        with_metadata('{"harmful_pp": "7.5"}'),
        with_metadata('{"harmful_pp": true}'),
        with_metadata('{"categories": "adult"}'),
        with_metadata('{"quality_warnings": [1]}'),
        with_metadata('{"x": ' + "[" * 100_000 + "}"),
        b'{"content": "a"}',
        b'{"metadata": {}}',
        b'{"content": null, "metadata": {}}',
        b'{"content": 1, "metadata": {}}',
        b'{"content": "\\ud800", "metadata": {}}',
        b'{"content": "\xff", "metadata": {}}',
        b'{"content": "a", "metadata": {}, "tlsh": "\xff"}',
        b'{"content": "a\x00", "metadata": {}}',
        b'{"content": "a", "metadata": {}} {}',
    ],
)
def test_a_bad_line_is_refused_with_its_place(line):
    with pytest.raises(DataError, match=r"^part\.zst:7: "):
        decode(line, "part.zst:7")


def test_the_schema_of_oscar_22_is_refused_by_name():
    for annotation in ("null", '["tiny"]'):
        with pytest.raises(DataError, match=r"OSCAR 22\.01"):
            decode(with_metadata('{"annotation": ' + annotation + "}"), "x:1")
    assert decode(with_metadata('{"annotation": null, "quality_warnings": null}'), "x:1").content == "a"


def test_a_record_ends_at_a_line_feed_only(tmp_path):
    texts = ["a\u2028b", "c\u0085d", "e\r\nf", "\x1cg"]
    lines = [json.dumps(record(text), ensure_ascii=False).encode() for text in texts]
    read = list(documents(write_part(tmp_path / "part.jsonl.zst", lines)))
    assert [(number, document.content) for number, document in read] == list(enumerate(texts, start=1))


def test_all_frames_are_read_wherever_they_are_cut(tmp_path):
    raw = b"".join(json.dumps(record(f"text {number}")).encode() + b"\n" for number in range(5))
    path = tmp_path / "part.jsonl.zst"
    for cut in range(0, len(raw), 37):
        path.write_bytes(zstandard.compress(raw[:cut]) + zstandard.compress(raw[cut:-1]))
        assert [document.content for _, document in documents(path)] == [f"text {number}" for number in range(5)]


def test_every_truncation_is_an_error_that_names_the_file(tmp_path):
    whole = write_part(
        tmp_path / "whole.zst", [record("text " * 50, number=number) for number in range(40)]
    ).read_bytes()
    path = tmp_path / "part.jsonl.zst"
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError, match=r"part\.jsonl\.zst"):
            list(documents(path))


def test_a_frame_that_asks_for_too_much_memory_is_refused(tmp_path):
    parameters = zstandard.ZstdCompressionParameters(window_log=28, write_content_size=False)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path = tmp_path / "part.jsonl.zst"
    path.write_bytes(compressor.compress(b"{}\n") + compressor.flush())
    with pytest.raises(DataError, match="damaged zstd stream"):
        list(documents(path))


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path):
    path = tmp_path / "part.jsonl.zst"
    path.write_bytes(zstandard.compress(json.dumps(record()).encode() + b"\n" + b" " * (LONGEST_LINE + 1)))
    with pytest.raises(DataError, match=r"part\.jsonl\.zst:2: line of more than"):
        list(documents(path))


def test_a_missing_part_is_named(tmp_path):
    with pytest.raises(MissingInputError, match=r"absent\.zst"):
        list(documents(tmp_path / "absent.zst"))
