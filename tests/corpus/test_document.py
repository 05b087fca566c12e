import gzip
import json

import datasets
import numpy as np
import pandas
import pyarrow.parquet
import pytest
import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from corpus.oscar import record, refuse
from symbert.corpus import document as module
from symbert.corpus.document import decode, decode_web_text, documents
from symbert.errors import ConfigError, DataError, MissingInputError

GOOD, BOM = b'{"content": "a", "metadata": {}}', b"\xef\xbb\xbf"


def read(part, annotations="computed", bad=refuse) -> list:
    return list(documents(part, annotations, bad))


def texts_of(part) -> list[str]:
    return [document.content for _, document in read(part)]


def with_metadata(text: str) -> bytes:
    """A line whose metadata is JSON text, so that it may be no JSON at all."""
    return GOOD.replace(b"{}", text.encode())


def test_missing_null_and_empty_annotations_and_headers_are_read_as_none():
    for text in ("{}", '{"harmful_pp": null, "quality_warnings": null, "categories": null}'):
        metadata = decode(with_metadata(text), "x:1").metadata
        assert metadata.harmful_pp is None and not metadata.quality_warnings and not metadata.categories
    for headers in (b"{", b'{"warc_headers": null,', b'{"warc_headers": {},'):
        document = decode(headers + GOOD[1:], "x:1")
        assert (document.url, document.record_id, document.content) == (None, None, "a")


BAD_METADATA = ["null", "[]", '{"harmful_pp": NaN}', '{"harmful_pp": Infinity}', '{"harmful_pp": 1e999}']
BAD_METADATA += ['{"harmful_pp": "7.5"}', '{"harmful_pp": true}', '{"categories": "adult"}']
BAD_METADATA += ['{"quality_warnings": [1]}', '{"x": ' + "[" * 100_000 + "}"]
BAD_METADATA += ['{"annotation": null}', '{"annotation": ["tiny"]}']  # OSCAR 22.01
BAD_CONTENT = [b"null", b"1", b'"\\ud800"', b'"\xff"', b'"a\x00"', b'"a", "metadata": {}} {}']
BAD_LINES = [b"", b"{", b"[]", b'{"content": "a"}', b'{"metadata": {}}', *map(with_metadata, BAD_METADATA)]
BAD_LINES += [GOOD.replace(b'"a"', content) for content in BAD_CONTENT]
BAD_WEB_TEXT = [b"{}", b'{"text": null}', b'{"text": 1}', b'{"url": "a"}', b"[]", b"null", b"\xff"]


def test_a_bad_line_is_refused_with_its_place():
    for decoder, lines in ((decode, BAD_LINES), (decode_web_text, BAD_WEB_TEXT)):
        for line in lines:
            with pytest.raises(DataError, match=r"^part\.zst:7: "):
                decoder(line, "part.zst:7")


WEB_TEXT = [  # a line, and its text, URL and id
    ({"text": "a", "url": "https://a.example/", "timestamp": "2019"}, ("a", "https://a.example/", None)),  # C4
    ({"text": "a", "id": "<urn:uuid:1>", "url": "https://a.example/"}, ("a", "https://a.example/", "<urn:uuid:1>")),
    ({"text": "a", "id": 7, "metadata": {"harmful_pp": "text"}}, ("a", None, "7")),
    ({"text": "", "url": None}, ("", None, None)),
    (record("a", number=3, harmful_pp=7.5), ("a", "https://good.example/page", "<urn:uuid:3>")),  # OSCAR 23.01
    ({"content": "a", "metadata": {"annotation": ["tiny"]}}, ("a", None, None)),  # OSCAR 22.01
]


def test_text_of_other_publishers_is_read_without_annotations():
    for line, expected in WEB_TEXT:
        document = decode_web_text(json.dumps(line).encode(), "x:1")
        assert (document.content, document.url, document.record_id) == expected
        assert document.metadata.harmful_pp is None and not document.metadata.quality_warnings


ROWS = {"text": ["one\ntwo", "NA", 'a "quoted" \u2028text'], "id": ["007", "8", "9"], "other": [1, 2, 3]}


def write_rows(folder) -> list:
    """The same rows in every format."""
    frame, saved = pandas.DataFrame(ROWS), datasets.Dataset.from_dict(ROWS)
    lines = [json.dumps(row).encode() for row in frame.to_dict("records")]
    plain = b"\n".join(lines)
    folder.mkdir(exist_ok=True)
    (folder / "a.jsonl").write_bytes(plain)
    (folder / "a.jsonl.gz").write_bytes(gzip.compress(plain + b"\n"))
    (folder / "a.jsonl.zst").write_bytes(zstandard.compress(plain))
    # Windows puts a mark before the first line, and files put together have more.
    (folder / "marks.jsonl").write_bytes(BOM + lines[0] + b"\r\n" + BOM + b"\n".join(lines[1:]))
    frame.to_parquet(folder / "a.parquet")
    frame.to_csv(folder / "a.csv", index=False)
    saved.save_to_disk(folder / "saved")
    splits = {"train": saved.select([0]), "test": saved.select([1, 2])}
    datasets.DatasetDict(splits).save_to_disk(folder / "splits")
    return sorted(folder.iterdir())


def test_every_format_gives_the_same_documents(tmp_path):
    parts = write_rows(tmp_path / "rows")
    assert len(parts) == 8
    for part in parts:
        rows = [(document.content, document.record_id) for _, document in read(part)]
        assert rows == list(zip(ROWS["text"], ROWS["id"], strict=True)), part
        assert [number for number, _ in read(part)] == [1, 2, 3]


def test_empty_lines_part_the_documents_of_a_text_file(tmp_path):
    """A second empty line was the first line of the next document, which then had a `header` of short lines."""
    texts = ["one\ntwo", "three", "four é"]
    for between in ("\n\n", "\n\n\n", "\r\n\r\n\r\n", "\n \t\n\n", "\n\u200b\n"):
        content = ("\n\n" + between.join(texts) + "\n\n").encode()
        for name, packed in (("a.txt", content), ("a [1]*.txt", content), ("a.txt.gz", gzip.compress(content))):
            (tmp_path / name).write_bytes(packed)
            found = [(number, document.content) for number, document in read(tmp_path / name)]
            assert found == list(enumerate(texts, start=1))


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\t\n")), max_size=5))
@example(['"To be', "or not", 'to be"', "a\u2028b\x85c\x0bd\x1ce", " blanks ", "a\rb", "'s"])
def test_any_text_without_tab_and_line_feed_is_read_from_a_tsv_as_it_was_written(tmp_path_factory, texts):
    """Quotation marks were read as those of a .csv: of four rows two were left."""
    content = "".join(f"{text}\t1\r\n" for text in ["text", *texts]).encode()
    path = tmp_path_factory.mktemp("part") / "a.tsv.gz"
    path.write_bytes(gzip.compress(content))
    assert texts_of(path) == texts


SHIFTED = [  # a file's name and content, and the line that is refused
    *(("a.csv", "text\nHello, world\n", 2), ("a.csv", 'text,id\n"two\nlines",1\nb,2,\n', 4)),
    *(("a.csv", "text,id\na,1\nb\n", 3), ("a.csv", 'text,id\na,1\n"never closed,2\nc,3\n', 3)),
    *(("a.csv", 'text,id\na,1\n"b"c,2\nd,3\n', 3), ("a.csv", "body\na\n", 1)),
    *(("a.tsv", "text\tid\na\t1\nb\t2\t3\n", 3), ("a.csv", 'text\na\n\n"two\nlines"\n"b\nc\nd\n', 6)),
]


def test_a_row_with_another_number_of_cells_is_refused_with_its_line(tmp_path):
    """Every row with a cell more than the header shifted the columns, without a word."""
    for name, content, line in SHIFTED:
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=rf"{name}:{line}: "):
            read(tmp_path / name)


def test_a_table_whose_cells_are_separated_otherwise_is_told_so(tmp_path):
    """Of a .csv as Excel writes it where the comma is the decimal mark, a text with a comma was called a cell more."""
    contents = {
        "a.csv": "\ufefftext;label\r\nOne, two;1\r\n",
        "b.csv": "sep=;\r\ntext;label\r\n",
        "c.csv": "text\tid\n",
    }
    for name, content in {**contents, "d.tsv": "text,id\na,1\n"}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=f"{name}:1: .*; separate cells by '{',' if name != 'd.tsv' else '.t'}'"):
            read(tmp_path / name)


def test_rows_without_a_filled_cell_are_blank_lines(tmp_path):
    """Spreadsheets write them below a table; each was an empty document, hence two tokens."""
    (tmp_path / "a.csv").write_text('\n,,\nid,text,\n1,a,\n,,\n2,,\n"","",""\n')
    (tmp_path / "a.tsv").write_text("id\ttext\n\t\n1\ta\n2\t\n\t\n")
    assert texts_of(tmp_path / "a.csv") == texts_of(tmp_path / "a.tsv") == ["a", ""]


def test_json_of_several_lines_and_json_called_txt_are_told_how_to_be_read(tmp_path):
    """The remedy was to correct a line; a .txt of JSON lines was text, with its quotation marks and backslashes."""
    objects = [{"text": "one\ntwo", "id": 1}, {"text": "three"}]
    listed, one_by_one = r"jq -c '\.\[\]'", r"jq -c \."
    written = {"a.json": (f" {json.dumps(objects)}", listed), "b.json": (json.dumps(objects, indent=2), listed)}
    written["c.jsonl"] = ("\n".join(json.dumps(item, indent=2) for item in objects), one_by_one)
    written["d.txt"] = ("\n".join(map(json.dumps, objects)), "is JSON.*jsonl")
    for name, (content, remedy) in {**written, "e.txt": (written["a.json"][0], "is JSON")}.items():
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=f"{name}:.*{remedy}"):
            read(tmp_path / name)
    for first in ("{ a set }", "[1] a note", '{"a": 1}', "[]", '"a"'):
        (tmp_path / "f.txt").write_text(f"{first}\n\n{json.dumps(objects[0])}\n")
        assert texts_of(tmp_path / "f.txt") == [first, json.dumps(objects[0])]


def test_damaged_and_absent_files_are_named(tmp_path):
    pandas.DataFrame({"text": ["a"]}).to_parquet(tmp_path / "a.parquet")
    contents = {"a.csv": b"text\ncaf\xe9\n", "a.txt": b"caf\xe9\n", "b.csv": b""}
    contents |= {f"a{end}.gz": gzip.compress(b"text\n" * 999)[:-9] for end in (".txt", ".csv", ".tsv")}
    contents["a.parquet"] = (tmp_path / "a.parquet").read_bytes()[:-20]
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=f"{name}:") as refusal:
            read(tmp_path / name)
        assert "\n" not in str(refusal.value)
    for name in ("none.csv", "none.parquet"):
        with pytest.raises(MissingInputError, match=f"{name}: file not found"):
            read(tmp_path / name)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(ConfigError, match=f"{name}: has no annotations of OSCAR"):
            read(tmp_path / name, "published")


def test_a_saved_dataset_of_which_a_file_was_cut_anywhere_is_refused(tmp_path):
    """A stream that was cut between two of its batches was read as a shorter one."""
    saved, path = datasets.Dataset.from_dict({"text": list("abcdef")}), tmp_path / "saved"
    saved.save_to_disk(path)
    (file,) = path.glob("*.arrow")
    table = pyarrow.table({"text": list("abcdef")})
    with pyarrow.OSFile(str(file), "wb") as output, pyarrow.ipc.new_stream(output, table.schema) as stream:
        stream.write_table(table, max_chunksize=2)
    whole = file.read_bytes()
    assert texts_of(path) == list("abcdef")
    for size in range(0, len(whole), 8):
        file.write_bytes(whole[:size])
        with pytest.raises(DataError, match="saved: "):
            read(path)


def test_bad_rows_are_named_and_the_others_read(tmp_path):
    good = b'{"text": "a", "other": "\xe2\x82\xac"}\n'
    (tmp_path / "a.jsonl").write_bytes(good + good.replace(b"\x82", b"\xff") + good)
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", None, "c"]}), tmp_path / "null.parquet")
    for name in ("a.jsonl", "null.parquet"):
        bad = []
        assert [number for number, _ in read(tmp_path / name, bad=bad.append)] == [1, 3]
        assert [str(error).split(": ")[0] for error in bad] == [f"{tmp_path / name}:2"]


def test_a_text_of_a_table_that_is_not_utf_8_is_refused(tmp_path):
    """Arrow does not look into the bytes of strings."""
    buffers = [None, pyarrow.py_buffer(np.arange(4, dtype=np.int32)), pyarrow.py_buffer(b"a\xffc")]
    texts = pyarrow.Array.from_buffers(pyarrow.string(), 3, buffers)
    pyarrow.parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "bytes.parquet")
    bad = []
    assert [number for number, _ in read(tmp_path / "bytes.parquet", bad=bad.append)] == [1, 3] and len(bad) == 1
    with pytest.raises(DataError, match=r"bytes\.parquet:2: 'text' .*UTF-8"):
        read(tmp_path / "bytes.parquet")


JSON_TEXTS = ['He said "no"\nand left \\ at once', "plain", "7 pm é"]


def test_a_column_of_json_gives_the_texts_and_not_their_json(tmp_path):
    """`datasets` 5 makes one of JSON Lines of mixed types: each text had quotation marks around it and \\n within."""
    features = datasets.Features({"text": datasets.Json(), "url": datasets.Value("string")})
    rows = {"text": [*map(json.dumps, [*JSON_TEXTS, 3, ["a"]]), None], "url": ["https://a.example"] * 6}
    saved = datasets.Dataset.from_dict(rows, features=features)
    saved.save_to_disk(tmp_path / "saved")
    saved.to_parquet(tmp_path / "a.parquet")
    plain = pyarrow.table({"text": rows["text"]})  # of which only the metadata say that it is JSON
    info = {"info": {"features": {"text": {"_type": "Json"}}}}
    marked = plain.replace_schema_metadata({"huggingface": json.dumps(info)})
    pyarrow.parquet.write_table(marked, tmp_path / "marked.parquet")
    typed = pyarrow.table({"text": pyarrow.array(rows["text"], pyarrow.json_())})  # as DuckDB writes it
    pyarrow.parquet.write_table(typed, tmp_path / "typed.parquet", store_schema=False)
    for name in ("saved", "a.parquet", "marked.parquet", "typed.parquet"):
        bad = []
        assert [document.content for _, document in read(tmp_path / name, bad=bad.append)] == JSON_TEXTS, name
        assert [str(error).split(": ")[0] for error in bad] == [f"{tmp_path / name}:{row}" for row in (4, 5, 6)]
    pyarrow.parquet.write_table(plain.slice(0, 3), tmp_path / "plain.parquet")
    assert texts_of(tmp_path / "plain.parquet") == rows["text"][:3], "texts that look like JSON are texts"


ODD_CELLS = [  # of JSON: an unused id, url or content, and cells that nothing reads
    *({"id": value} for value in (1.0, {"$oid": "0"}, ["a"], True, float("nan"), "\ud800")),
    *({"url": value} for value in (["https://a.example/"], {"raw": "a"}, 7, "\udc00")),
    *({"content": {"x": 1}}, {"score": float("inf")}, {"title": "\ud83d"}, {"warc_headers": "none"}),
    {"warc_headers": {"warc-record-id": "\ud800", "warc-target-uri": 7}},
]


def test_a_text_is_not_refused_for_cells_that_are_not_read(tmp_path):
    """pandas writes whole numbers as 1.0, MongoDB ids as objects, and Python NaN."""
    for cells in ODD_CELLS:
        line = json.dumps({"text": "a", **cells}).encode()
        document = decode_web_text(line, "x:1", reads_url=False)
        assert (document.content, document.url, document.record_id) == ("a", None, None), cells
        if "url" in cells or ("warc_headers" in cells and "warc-target-uri" in cells["warc_headers"]):
            with pytest.raises(DataError, match="^x:1: 'url' .*categories"):
                decode_web_text(line, "x:1", reads_url=True)
        else:
            decode_web_text(line, "x:1", reads_url=True)
    columns = {
        "id": pyarrow.array([1, 10**18], pyarrow.timestamp("ns")),
        "url": pyarrow.array([10**12, 0], pyarrow.timestamp("s")),  # beyond the years of Python
        "x": pyarrow.array([bytes(16)] * 2, pyarrow.uuid()),
    }
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a", "b"], **columns}), tmp_path / "a.parquet")
    assert [document.content for _, document in documents(tmp_path / "a.parquet", "computed", refuse, False)] == [
        "a",
        "b",
    ]


def test_half_of_a_surrogate_pair_is_called_so():
    """A whole line was called truncated."""
    for text in ("\ud800", "a \udc00 b", "\ud83d"):
        with pytest.raises(DataError, match="^x:1: 'text' .*surrogate") as refusal:
            decode_web_text(json.dumps({"text": text}).encode(), "x:1")
        str(refusal.value).encode()
        with pytest.raises(DataError, match="^x:1: .*surrogate"):
            decode(json.dumps({"content": text, "metadata": {}}).encode(), "x:1")


def test_a_file_without_text_names_the_columns_that_it_has(tmp_path):
    frame = pandas.DataFrame({"id": ["7"], "body": ["a"], "title": ["b"]})
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    datasets.Dataset.from_pandas(frame).save_to_disk(tmp_path / "saved")
    for name in ("a.parquet", "a.csv", "a.jsonl", "saved"):
        with pytest.raises(DataError, match=f"{name}:1: .*found id, body, title; c") as refusal:
            read(tmp_path / name)
        assert ("max_bad_fraction" in str(refusal.value)) == (name == "a.jsonl"), "in a table no row has the column"
    with pytest.raises(DataError, match="^x:1: 'content' is null; "):
        decode_web_text(b'{"id": 7, "content": null}', "x:1")


def test_a_name_that_two_columns_have_is_refused_where_it_is_read_and_else_not(tmp_path):
    """Arrow's KeyError was called a bug of ours."""
    cells = pyarrow.array(["a", "b"])
    for twice, is_read in (("text", True), ("url", True), ("other", False)):
        names = ["text", twice, twice][twice == "text" :]
        table = pyarrow.Table.from_arrays([cells] * len(names), names=names)
        pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
        (tmp_path / "a.csv").write_text("".join(",".join(row) + "\n" for row in (names, names)))
        for name, count in (("a.parquet", 2), ("a.csv", 1)):
            if is_read:
                with pytest.raises(DataError, match=f"{name}: .*'{twice}'"):
                    read(tmp_path / name)
            else:
                assert len(read(tmp_path / name)) == count


def test_datasets_without_rows_are_read_as_none(tmp_path):
    """Of the `datasets` library's own IndexError the run ended with 70."""
    full, empty = datasets.Dataset.from_dict({"text": ["a"]}), datasets.Dataset.from_dict({"text": []})
    kinds = {"empty": empty, "nothing": datasets.Dataset.from_dict({}), "none": datasets.DatasetDict({})}
    kinds["some"] = datasets.DatasetDict({"train": empty, "test": full, "validation": empty})
    for name, saved in kinds.items():
        saved.save_to_disk(tmp_path / name)
        assert texts_of(tmp_path / name) == (["a"] if name == "some" else []), name


def test_only_at_the_beginning_of_a_file_is_u_feff_a_mark(tmp_path):
    """A quoted cell whose later line began with one lost it."""
    (tmp_path / "a.csv").write_bytes(BOM + 'text,id\n"one\n\ufefftwo",1\n\ufeffthree,2\n'.encode())
    assert texts_of(tmp_path / "a.csv") == ["one\n\ufefftwo", "\ufeffthree"]
    (tmp_path / "a.txt").write_bytes(BOM + "one\n\ufefftwo\n".encode())
    assert texts_of(tmp_path / "a.txt") == ["one\n\ufefftwo"]


def test_a_document_of_too_many_lines_is_refused_with_what_parts_them_and_the_next_one_read(tmp_path, monkeypatch):
    """A .txt of a sentence a line was held whole, however large; a line of a .jsonl has 64 MB at most."""
    monkeypatch.setattr(module, "LONGEST_LINE", 64)
    path, fits, bad = tmp_path / "a.txt", "é" * 31 + "\na", []
    path.write_text(f"{fits}\n\n{fits}b\n\n" + "a line\n" * 99 + "\nlast\n")
    assert [(number, len(document.content)) for number, document in read(path, bad=bad.append)] == [(1, 33), (4, 4)]
    assert [str(error).split(": ")[0] for error in bad] == [f"{path}:2", f"{path}:3"]
    assert "2 lines" in str(bad[0]) and "99 lines" in str(bad[1]) and "empty line" in str(bad[1])


LINES = [(b'{"text": "a"}', True), (b'{"text": 1}', False), (b"\xff", False), (b"", None), (b" \t\r", None)]


@given(st.lists(st.sampled_from(LINES)), st.sampled_from([b"", BOM]))
def test_each_bad_line_is_reported_once_and_every_other_line_but_blank_ones_read(tmp_path_factory, cases, mark):
    path, bad = tmp_path_factory.mktemp("part") / "a.jsonl", []
    path.write_bytes(mark + b"".join(line + b"\n" for line, _ in cases))
    numbered = list(enumerate(cases, start=1))
    assert [number for number, _ in read(path, bad=bad.append)] == [number for number, (_, good) in numbered if good]
    expected = [f"{path}:{number}: " for number, (_, good) in numbered if good is False]
    assert [str(error)[: len(start)] for error, start in zip(bad, expected, strict=True)] == expected
