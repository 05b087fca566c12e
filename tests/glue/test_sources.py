import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from glue.laboratory import write_lines
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import sha256_of
from symbert.glue.sources import published_schema, read_split
from symbert.glue.tasks import GLUE, SUITES, published_split

REPOSITORY = SUITES["glue"].repository
TRAIN = published_split(GLUE["rte"], "train")


def classes_in_hub_words(labels):
    return json.dumps({"info": {"features": {"label": {"names": list(labels)}}}})


@pytest.fixture
def publish_rte(tmp_path):
    """Writes a small RTE in the hub's layout, its training table changed; gives the root."""

    def write(change=lambda table: table):
        task = GLUE["rte"]
        columns = [["a b", "c d"], ["e", "f"], [0, 1], [0, 1]]
        for split in task.splits:
            schema = published_schema(task).with_metadata({"huggingface": classes_in_hub_words(task.labels)})
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            table = pa.table(arrays, schema=schema)
            path = tmp_path / "mirror" / published_split(task, split).location
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(change(table) if split == "train" else table, path)
        return tmp_path / "mirror"

    return write


def read(root, task="rte", split="train"):
    """The rows of a split of the files below `root`."""
    return read_split(GLUE[task], split, {"source": str(root / REPOSITORY)})


def replaced(name, values):
    return lambda table: table.set_column(table.schema.get_field_index(name), name, values)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda table: table.drop_columns("sentence2"), "'sentence2'"),
        (replaced("label", pa.array([0.0, 1.0])), "'label'"),
        (replaced("label", pa.array([-1, -1])), "labels from -1"),
        (replaced("label", pa.array([0, 2])), "labels from 0 to 2"),
        (replaced("sentence1", pa.array(["a", None])), "'sentence1'"),
        (lambda table: table.replace_schema_metadata({"huggingface": classes_in_hub_words("ba")}), "classes are b, a"),
    ],
)
def test_a_file_that_is_not_the_task_is_refused_by_name(laboratory, publish_rte, change, named):
    with pytest.raises(DataError, match=named) as refusal:
        laboratory.prepare("rte", root=publish_rte(change))
    assert "nyu-mll/glue/rte/train-00000-of-00001.parquet" in str(refusal.value)
    assert not list(laboratory.results.rglob("*.parquet"))


def flips(content: bytes, count: int):
    """As many copies, each with one bit changed, the same ones each time."""
    for place in random.Random(11).sample(range(8 * len(content)), count):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << place % 8
        yield bytes(flipped)


def test_no_flipped_bit_of_a_fetched_file_is_accepted_and_a_missing_one_is_named(publish_rte):
    """It was believed that the sums of a mirror were compared with something."""
    root = publish_rte()
    path = root / TRAIN.location
    content, digest = path.read_bytes(), sha256_of(path)
    (root / "SHA256SUMS").write_text(f"{digest}  {TRAIN.location}\n")
    table = read(root)
    assert table.to_pylist()[0] == {"sentence1": "a b", "sentence2": "e", "label": 0, "idx": 0} and len(table) == 2
    for flipped in flips(content, 50):
        path.write_bytes(flipped)
        with pytest.raises(IntegrityError, match=rf"^{path}: sha256 expected {digest}, found "):
            read(root)
    (root / "SHA256SUMS").unlink()
    refused = 0
    for flipped in flips(content, 100):  # Parquet's own complaints are ArrowInvalid, OSError, and some come from JSON
        path.write_bytes(flipped)
        try:
            read(root)
        except DataError:
            refused += 1
    assert refused > 25
    path.unlink()
    with pytest.raises(MissingInputError, match=r"train-00000-of-00001\.parquet: file not found"):
        read(root)


QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
PARSES = "sentence1_binary_parse\tsentence2_binary_parse\tsentence1_parse\tsentence2_parse"
MNLI = f"index\tpromptID\tpairID\tgenre\t{PARSES}\tsentence1\tsentence2\tlabel1\tlabel2\tgold_label\n"
STSB = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n"
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
PAIRS = "index\tsentence1\tsentence2\tlabel\n"
QNLI = "index\tquestion\tsentence\tlabel\n"
AB, PARSED = {"sentence1": "a", "sentence2": "b"}, 4 * "\t( )"
PUBLISHED = {  # a file of each task, its header and a row in the archive's columns, and what the hub has of the row
    "cola": ("CoLA/dev.tsv", "", "gj04\t0\t*\ta\n", {"sentence": "a", "label": 0}),
    "sst2": ("SST-2/dev.tsv", "sentence\tlabel\n", "a\t1\n", {"sentence": "a", "label": 1}),
    "stsb": ("STS-B/dev.tsv", STSB, "0\tg\tf\ty\to\ts\ts\ta\tb\t2.500\n", AB | {"label": 2.5}),
    "qqp": ("QQP/dev.tsv", QQP, "0\t1\t2\ta\tb\t1\n", {"question1": "a", "question2": "b", "label": 1}),
    "mnli": (
        *("MNLI/dev_matched.tsv", MNLI, f"0\tp\tp\tg{PARSED}\ta\tb\tentailment\tneutral\tneutral\n"),
        {"premise": "a", "hypothesis": "b", "label": 1},
    ),
    "qnli": ("QNLI/dev.tsv", QNLI, "0\ta\tb\tnot_entailment\n", {"question": "a", "sentence": "b", "label": 1}),
    "rte": ("RTE/dev.tsv", PAIRS, "0\ta\tb\tnot_entailment\n", AB | {"label": 1}),
    "wnli": ("WNLI/dev.tsv", PAIRS, "0\ta\tb\t1\n", AB | {"label": 1}),
}


@pytest.fixture
def rows_of(tmp_path):
    """Writes the lines of a split's file and reads them."""

    def read(name, file, *lines, split="train"):
        write_lines(tmp_path / file, *lines)
        return read_split(GLUE[name], split, {"original_files": str(tmp_path)}).to_pylist()

    return read


def test_the_files_of_an_archive_give_the_rows_of_the_hub(rows_of):
    assert PUBLISHED.keys() == GLUE.keys() - {"mrpc"}
    for name, (file, header, row, expected) in PUBLISHED.items():
        (found,) = rows_of(name, file, header, row, split=GLUE[name].splits[1])
        assert found == expected | {"idx": 0}, name


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\t\n")), max_size=5))
@example(['"one" two', '"open', "a\u2028b\x85c\x0bd\x1ce", " blanks ", "a\rb", "'s"])
def test_any_text_without_tab_and_line_feed_is_read_as_it_was_written(tmp_path_factory, texts):
    root, texts = tmp_path_factory.mktemp("cola"), [text.rstrip("\r") for text in texts]
    write_lines(root / "CoLA/train.tsv", *(f"gj04\t1\t\t{text}\n" for text in texts))
    found = read_split(GLUE["cola"], "train", {"original_files": str(root)})
    assert found.to_pylist() == [{"sentence": text, "label": 1, "idx": place} for place, text in enumerate(texts)]


def test_a_byte_order_mark_windows_line_ends_and_a_last_empty_line_are_not_text(rows_of):
    lines = "\ufeffsentence\tlabel\r\n", "good\t1\r\n", "bad\t0\r\n", "\r\n"
    expected = [{"sentence": "good", "label": 1, "idx": 0}, {"sentence": "bad", "label": 0, "idx": 1}]
    assert rows_of("sst2", "SST-2/train.tsv", *lines) == expected
    assert rows_of("sst2", "SST-2/train.tsv", "sentence\tlabel\ngood\t1\nbad\t0") == expected


def test_a_class_is_given_by_its_name_or_its_number(rows_of):
    """The same number means another class in WNLI."""
    labels = {"entailment": 0, "not_entailment": 1, "0": 0, "1": 1}
    rows = rows_of("rte", "RTE/dev.tsv", PAIRS, *(f"0\ta\tb\t{label}\n" for label in labels), split="validation")
    assert [row["label"] for row in rows] == list(labels.values())
    (row,) = rows_of("wnli", "WNLI/train.tsv", PAIRS, "0\ta\tb\tentailment\n")
    assert row == {"sentence1": "a", "sentence2": "b", "label": 1, "idx": 0}


def test_the_broken_rows_of_qqp_are_skipped_but_counted(rows_of, capsys):
    cut = "1\t3\t4\thow\twhy\n", "not\t0\n"
    found = rows_of(
        "qqp", "QQP/train.tsv", QQP, "0\t1\t2\ta?\tb?\t1\n", *cut, "2\t5\t6\t\td?\t0\n", "3\t7\t8\te?\tf?\t\n"
    )
    assert [(row["question1"], row["question2"], row["label"], row["idx"]) for row in found] == [
        ("a?", "b?", 1, 0),
        ("", "d?", 0, 3),
    ]
    said = capsys.readouterr().err
    assert said.startswith("warning: ") and "QQP/train.tsv: skipped 3 broken rows, first line 3" in said


def test_mrpc_is_split_by_the_list_of_evaluated_pairs(rows_of, tmp_path):
    write_lines(tmp_path / "MRPC/dev_ids.tsv", "7\t8\n", "5\t6\r\n")
    lines = MRPC, "1\t1\t2\ta\tb\r\n", "0\t7\t8\tc\td\r\n", "1\t8\t7\te\tf\r\n", "0\t5\t6\tg\th\r\n"
    training = rows_of("mrpc", "MRPC/msr_paraphrase_train.txt", *lines)
    assert [(row["sentence2"], row["label"], row["idx"]) for row in training] == [("b", 1, 0), ("f", 1, 2)]
    evaluation = read_split(GLUE["mrpc"], "validation", {"original_files": str(tmp_path)}).to_pylist()
    assert [(row["sentence1"], row["label"], row["idx"]) for row in evaluation] == [("c", 0, 1), ("g", 0, 3)]


GOLD, SCORE = PAIRS.replace("label", "gold_label"), PAIRS.replace("label", "score")
MISTAKES = [
    ("mnli", "MNLI/train.tsv", [GOLD, "0\ta\tb\tneutral\n", "1\tc\td\t-\n"], "3: 'gold_label'"),
    ("mnli", "MNLI/train.tsv", [GOLD, "0\ta\tb\n"], "2: .*3 fields"),
    ("sst2", "SST-2/train.tsv", ["index\tsentence\n", "0\ta\n"], "1: no column 'label'"),
    ("cola", "CoLA/train.tsv", ["gj04\t1\t\ta\n", "gj04\t2\t\tb\n"], "2: 'label'"),
    ("stsb", "STS-B/train.tsv", [SCORE, "0\ta\tb\thigh\n"], "2: 'score'"),
]


def test_a_line_that_is_no_row_of_the_task_is_named_with_the_reason(rows_of, tmp_path):
    for name, file, lines, named in MISTAKES:
        with pytest.raises(DataError, match=f"{tmp_path / file}:{named}"):
            rows_of(name, file, *lines)
    with pytest.raises(DataError, match="STS-B: labels from 5.5"):
        rows_of("stsb", "STS-B/train.tsv", SCORE, "0\ta\tb\t5.5\n")
    (tmp_path / "SST-2/train.tsv").write_bytes(b"sentence\tlabel\nfine\t1\ncaf\xe9\t1\n")
    with pytest.raises(DataError, match=r"train.tsv:3: not UTF-8"):
        read_split(GLUE["sst2"], "train", {"original_files": str(tmp_path)})
