import gzip
import json

import datasets
import numpy as np
import pandas
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from corpus.oscar import record, refuse, write_part
from symbert.corpus.annotation import quality_warnings
from symbert.corpus.document import decode, decode_web_text, documents, read_cells
from symbert.errors import ConfigError, DataError, MissingInputError


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


WEB_TEXTS = [
    ({"text": "a", "url": "https://a.example/", "timestamp": "2019"}, ("a", "https://a.example/", None)),  # C4
    ({"text": "a", "id": "<urn:uuid:1>", "url": "https://a.example/"}, ("a", "https://a.example/", "<urn:uuid:1>")),
    ({"text": "a", "id": 7, "metadata": {"harmful_pp": "text"}}, ("a", None, "7")),
    ({"text": "", "url": None}, ("", None, None)),
    (record("a", number=3), ("a", "https://good.example/page", "<urn:uuid:3>")),  # OSCAR 23.01
    ({"content": "a", "metadata": {"annotation": ["tiny"]}}, ("a", None, None)),  # OSCAR 22.01
    ({"text": "a", "url": "https://a.example/", "id": 7, "warc_headers": {}}, ("a", "https://a.example/", "7")),
]


@pytest.mark.parametrize(("line", "expected"), WEB_TEXTS)
def test_text_of_other_publishers_is_read_without_annotations(line, expected):
    document = decode_web_text(json.dumps(line).encode(), "x:1")
    assert (document.content, document.url, document.record_id) == expected
    assert document.metadata.harmful_pp is None
    assert not document.metadata.quality_warnings


@pytest.mark.parametrize("line", [b"{}", b'{"text": null}', b'{"text": 1}', b'{"url": "a"}', b"[]", b"null", b"\xff"])
def test_a_line_without_text_is_refused_with_its_place(line):
    with pytest.raises(DataError, match=r"^own\.jsonl:7: "):
        decode_web_text(line, "own.jsonl:7")


LINES = [json.dumps({"text": text, "url": "https://a.example/"}).encode() for text in ("first", "second\u2028", "")]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.jsonl", bytes), ("a.jsonl.gz", gzip.compress), ("a.jsonl.zst", zstandard.compress)],
)
def test_every_format_gives_the_same_documents(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack(b"\n".join(LINES)))
    columns = {"text": ["first", "second\u2028", ""], "url": ["https://a.example/"] * 3, "other": [1, 2, 3]}
    pandas.DataFrame(columns).to_parquet(tmp_path / "a.parquet")
    read = list(documents(tmp_path / name, "computed", refuse))
    assert [number for number, _ in read] == [1, 2, 3]
    assert read == list(documents(tmp_path / "a.parquet", "computed", refuse))


def test_rows_are_documents_in_every_form_that_the_datasets_library_reads(tmp_path):
    rows = {"text": ["one\ntwo", "NA", 'a "quoted" text'], "id": ["007", "8", "9"], "other": [1, 2, 3]}
    pandas.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    saved = datasets.Dataset.from_dict(rows)
    saved.save_to_disk(tmp_path / "saved")
    datasets.DatasetDict({"train": saved.select([0]), "test": saved.select([1, 2])}).save_to_disk(tmp_path / "splits")
    (arrow,) = (tmp_path / "saved").glob("*.arrow")
    for part in (tmp_path / "a.csv", tmp_path / "saved", tmp_path / "splits", arrow):
        read = list(documents(part, "computed", refuse))
        assert [number for number, _ in read] == [1, 2, 3]
        assert [document.content for _, document in read] == rows["text"], part
        assert [document.record_id for _, document in read] == rows["id"], "a number keeps its zeros"


@pytest.mark.parametrize(("name", "pack"), [("a.txt", bytes), ("a [1]*.txt", bytes), ("a.txt.gz", gzip.compress)])
def test_empty_lines_part_the_documents_of_a_text_file(tmp_path, name, pack):
    (tmp_path / name).write_bytes(pack("one\ntwo\n\nthree\r\n\n\n\nfour é".encode()))
    read = list(documents(tmp_path / name, "computed", refuse))
    assert [(number, one.content) for number, one in read] == [(1, "one\ntwo"), (2, "three"), (3, "four é")]


@pytest.mark.parametrize("between", ["\n\n", "\n\n\n", "\r\n\r\n\r\n", "\n \t\n\n", "\n" * 9])
def test_a_second_empty_line_is_no_part_of_the_next_document(tmp_path, between):
    """It was its first line, and most documents then had a `header` of short lines."""
    texts = [f"{'A line of some length. ' * 6}{number}\n" * 9 for number in range(5)]
    (tmp_path / "a.txt").write_bytes(("\n\n" + between.join(text.rstrip() for text in texts) + "\n\n").encode())
    read = [document.content for _, document in documents(tmp_path / "a.txt", "computed", refuse)]
    assert read == [text.rstrip() for text in texts]
    assert not any("header" in quality_warnings(text) for text in read)


def test_quotes_in_a_tsv_are_text(tmp_path):
    """They were read as those of a .csv: of four rows two were left."""
    rows = ['"To be', "or not", 'to be"', 'that is "the" question']
    for name, pack in (("a.tsv", bytes), ("a.tsv.gz", gzip.compress)):
        (tmp_path / name).write_bytes(
            pack(
                "".join(f"{row}\t00{n}\n" for n, row in [("id", "text"), *enumerate(rows)])
                .replace("text\t00id", "text\tid")
                .encode()
            )
        )
        read = [document for _, document in documents(tmp_path / name, "computed", refuse)]
        assert [document.content for document in read] == rows
        assert [document.record_id for document in read] == ["000", "001", "002", "003"]


@pytest.mark.parametrize(
    ("name", "content", "line"),
    [
        ("a.csv", "text\nHello, world\n", 2),
        ("a.csv", 'text,id\n"two\nlines",1\nb,2,\n', 4),
        ("a.csv", "text,id\na,1\nb\n", 3),
        ("a.csv", 'text,id\na,1\n"never closed,2\nc,3\n', 4),
        ("a.tsv", "text\tid\na\t1\nb\t2\t3\n", 3),
    ],
)
def test_a_row_with_another_number_of_cells_is_refused_with_its_line(tmp_path, name, content, line):
    """Every row with a cell more than the header shifted the columns, without a word."""
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"{name}:{line}: "):
        list(documents(tmp_path / name, "computed", refuse))


def test_a_misplaced_quote_is_one_bad_row_of_a_csv(tmp_path):
    """It ended the part, also where `max_bad_fraction` allows bad rows."""
    (tmp_path / "a.csv").write_text('text,id\na,1\n"b"c,2\nd,3\n')
    rows = list(read_cells(tmp_path / "a.csv"))
    assert [str(row) if isinstance(row, DataError) else row["id"] for row in rows[::2]] == ["1", "3"]
    assert isinstance(rows[1], DataError) and "a.csv:3: " in str(rows[1])


def test_damaged_files_that_the_datasets_library_reads_are_named_in_one_line(tmp_path, capfd):
    contents = {"a.csv": b"text\ncaf\xe9\n", "a.txt": b"caf\xe9\n", "a.arrow": b"none", "b.csv": b""}
    contents |= {f"a{end}.gz": gzip.compress(b"text\n" * 999)[:-9] for end in (".txt", ".csv", ".tsv")}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}:.*; (get|convert)") as refusal:
            list(documents(tmp_path / name, "computed", refuse))
        assert "\n" not in str(refusal.value)
    assert capfd.readouterr().err == ""
    with pytest.raises(MissingInputError, match=r"none\.csv: file not found; correct corpus\.files"):
        list(documents(tmp_path / "none.csv", "computed", refuse))
    (tmp_path / "c.csv").write_bytes(b"body\na\n")
    with pytest.raises(DataError, match=r"c\.csv:1: neither 'text' nor 'content'"):
        list(documents(tmp_path / "c.csv", "computed", refuse))
    with pytest.raises(ConfigError, match=r"c\.csv: has no annotations of OSCAR"):
        list(documents(tmp_path / "c.csv", "published", refuse))


def test_a_line_is_bad_wherever_it_is_not_utf_8(tmp_path):
    """The decoder does not look into strings that it skips."""
    good = b'{"text": "a", "other": "\xe2\x82\xac"}\n'
    (tmp_path / "a.jsonl").write_bytes(good + good.replace(b"\x82", b"\xff") + good)
    bad = []
    assert [number for number, _ in documents(tmp_path / "a.jsonl", "computed", bad.append)] == [1, 3]
    assert "a.jsonl:2: not UTF-8" in str(bad[0])


def test_bad_rows_of_a_parquet_file_are_named_and_the_others_read(tmp_path):
    pandas.DataFrame({"content": ["a", None, "c"]}).to_parquet(tmp_path / "a.parquet")
    bad = []
    read = [number for number, _ in documents(tmp_path / "a.parquet", "computed", bad.append)]
    assert read == [1, 3]
    assert len(bad) == 1
    assert "a.parquet:2: neither 'text' nor 'content'" in str(bad[0])


def test_a_row_that_is_not_utf_8_is_bad_and_the_others_are_read(tmp_path):
    """Arrow does not look into the bytes of its strings; it was believed that a row is always text."""
    offsets, data = np.array([0, 1, 2, 3], np.int32), b"a\xffc"
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(data)])
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    bad = []
    read = [(number, one.content) for number, one in documents(tmp_path / "a.parquet", "computed", bad.append)]
    assert read == [(1, "a"), (3, "c")]
    assert [str(error).split(": ")[0] for error in bad] == [f"{tmp_path}/a.parquet:2"]


def test_parquet_without_text_or_for_published_annotations_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    pandas.DataFrame({"body": ["a"]}).to_parquet(path)
    with pytest.raises(DataError, match=r"a\.parquet:1: neither 'text' nor 'content'"):
        list(documents(path, "computed", refuse))
    with pytest.raises(ConfigError, match=r"a\.parquet: .*corpus\.annotations to computed"):
        list(documents(path, "published", refuse))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"a\.parquet: damaged"):
        list(documents(path, "computed", refuse))
    with pytest.raises(MissingInputError, match=r"none\.parquet"):
        list(documents(tmp_path / "none.parquet", "computed", refuse))


@given(st.lists(st.sampled_from([(b'{"text": "a"}', True), (b'{"text": 1}', False), (b"", None), (b"\xff", False)])))
def test_each_bad_line_is_reported_once_and_every_other_line_but_blank_ones_read(tmp_path_factory, cases):
    path = tmp_path_factory.mktemp("part") / "a.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line, _ in cases))
    bad = []
    read = [number for number, _ in documents(path, "computed", bad.append)]
    assert read == [number for number, (_, good) in enumerate(cases, start=1) if good]
    expected = [f"{path}:{number}: " for number, (_, good) in enumerate(cases, start=1) if good is False]
    assert [str(error)[: len(start)] for error, start in zip(bad, expected, strict=True)] == expected


def test_a_part_of_oscar_is_read_with_its_annotations(tmp_path):
    part = write_part(tmp_path / "part.jsonl.zst", [record(harmful_pp=7.5, quality_warnings=["tiny"])])
    [(_, document)] = documents(part, "published", refuse)
    assert (document.metadata.harmful_pp, document.metadata.quality_warnings) == (7.5, ["tiny"])
    [(_, document)] = documents(part, "computed", refuse)
    assert (document.metadata.harmful_pp, document.content) == (None, "Some text.")


BOM = b"\xef\xbb\xbf"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress])
def test_a_byte_order_mark_is_no_part_of_a_line(tmp_path, pack):
    """Windows puts one before the first line, and files put together have more; it was "invalid character"."""
    name = {bytes: "a.jsonl", gzip.compress: "a.jsonl.gz", zstandard.compress: "a.jsonl.zst"}[pack]
    (tmp_path / name).write_bytes(pack(BOM + LINES[0] + b"\r\n" + BOM + LINES[1] + b"\n" + LINES[2]))
    (tmp_path / "plain.jsonl").write_bytes(b"\n".join(LINES))
    read = list(documents(tmp_path / name, "computed", refuse))
    assert read == list(documents(tmp_path / "plain.jsonl", "computed", refuse)) and len(read) == 3


@pytest.mark.parametrize("annotations", ["published", "computed"])
def test_blank_lines_are_no_documents_and_no_bad_ones_and_are_told(tmp_path, capsys, annotations):
    """They were bad lines, for a reason that had nothing to do with them."""
    path, line = tmp_path / "a.jsonl", b'{"content": "a", "metadata": {}}\n'
    path.write_bytes(BOM + b"\n" + line + b"\n \t\r\n" + line + b"\n")
    assert [number for number, _ in documents(path, annotations, refuse)] == [2, 5]
    assert capsys.readouterr().err == f"{path}: 4 blank lines skipped\n"
    path.write_bytes(2 * line)
    assert len(list(documents(path, annotations, refuse))) == 2 and capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.zst", "a.parquet"])
def test_a_part_that_may_not_be_read_is_told_so_and_not_that_it_is_damaged(tmp_path, monkeypatch, name):
    path = tmp_path / name
    path.touch()

    def denied(*arguments, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", denied)
    monkeypatch.setattr("pyarrow.parquet.ParquetFile", denied)
    with pytest.raises(PermissionError, match=str(path)):
        list(documents(path, "computed", refuse))


@pytest.mark.parametrize("annotations", ["computed", "published"])
@pytest.mark.parametrize(
    "text",
    [
        json.dumps([record(), record(number=2)]),
        json.dumps([record(), record(number=2)], indent=2),
        json.dumps(record(), indent=2),
        "\n" + json.dumps(record()).replace(", ", ",\n"),
    ],
)
def test_a_whole_file_of_json_is_not_told_to_be_got_again(tmp_path, text, annotations):
    """To get an array again gives the same array."""
    part, bad = tmp_path / "own.json", []
    part.write_text(text)
    assert list(documents(part, annotations, bad.append)) == []
    line = 2 if text.startswith("\n") else 1
    assert str(bad[0]) == f"{part}:{line}: an array, or JSON over several lines; write one object a line (JSON lines)"
