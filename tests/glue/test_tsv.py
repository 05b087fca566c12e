import pytest
from hypothesis import given
from hypothesis import strategies as st

from glue.originals import write_lines
from symbert.errors import DataError, MissingInputError
from symbert.glue.tasks import GLUE
from symbert.glue.tsv import LAYOUTS, read_rows, read_split

QQP = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n"
MNLI = "index\tsentence1\tsentence2\tgold_label\n"
STSB = "index\tsentence1\tsentence2\tscore\n"
MRPC = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"


@pytest.fixture
def rows_of(tmp_path):
    """Writes the lines of a split's file and reads them."""

    def read(name, file, *lines, split="train"):
        write_lines(tmp_path / file, *lines)
        return list(read_split(tmp_path, GLUE[name], split))

    return read


def test_quotation_marks_and_separators_other_than_tab_and_line_feed_are_text(rows_of):
    texts = ['"one" two', '"open', "a\u2028b\x85c\x0bd\x1ce", " blanks ", "a\rb", "'s"]
    found = rows_of("sst2", "SST-2/train.tsv", "sentence\tlabel\n", *(f"{text}\t1\n" for text in texts))
    assert [row["sentence"] for row in found] == texts


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\t\n")), max_size=5))
def test_any_text_without_tab_and_line_feed_is_read_as_it_was_written(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("cola") / "train.tsv"
    texts = [text.rstrip("\r") for text in texts]
    write_lines(path, *(f"gj04\t1\t\t{text}\n" for text in texts))
    found = read_rows(path, LAYOUTS["cola"], ("sentence",), GLUE["cola"].labels)
    assert list(found) == [{"sentence": text, "label": 1, "idx": place} for place, text in enumerate(texts)]


def test_a_byte_order_mark_windows_line_ends_and_a_last_empty_line_are_not_text(rows_of):
    lines = "\ufeffsentence\tlabel\r\n", "good\t1\r\n", "bad\t0\r\n", "\r\n"
    expected = [{"sentence": "good", "label": 1, "idx": 0}, {"sentence": "bad", "label": 0, "idx": 1}]
    assert rows_of("sst2", "SST-2/train.tsv", *lines) == expected
    assert rows_of("sst2", "SST-2/train.tsv", "sentence\tlabel\ngood\t1\nbad\t0") == expected


@pytest.mark.parametrize(("label", "number"), [("entailment", 0), ("not_entailment", 1), ("0", 0), ("1", 1)])
def test_a_class_is_given_by_its_name_or_its_number(rows_of, label, number):
    (row,) = rows_of(
        "rte", "RTE/dev.tsv", "index\tsentence1\tsentence2\tlabel\n", f"0\ta\tb\t{label}\n", split="validation"
    )
    assert row == {"sentence1": "a", "sentence2": "b", "label": number, "idx": 0}


def test_the_same_number_means_another_class_in_wnli(rows_of):
    (row,) = rows_of("wnli", "WNLI/train.tsv", "index\tsentence1\tsentence2\tlabel\n", "0\ta\tb\tentailment\n")
    assert row["label"] == 1


def test_the_broken_rows_of_qqp_are_skipped_but_counted(rows_of, capsys):
    cut = "1\t3\t4\thow\twhy\n", "not\t0\n"
    found = rows_of(
        "qqp", "QQP/train.tsv", QQP, "0\t1\t2\ta?\tb?\t1\n", *cut, "2\t5\t6\t\td?\t0\n", "3\t7\t8\te?\tf?\t\n"
    )
    assert [(row["question1"], row["question2"], row["label"], row["idx"]) for row in found] == [
        ("a?", "b?", 1, 0),
        ("", "d?", 0, 3),
    ]
    assert "QQP/train.tsv: skipped 3 rows without text or label, first line 3" in capsys.readouterr().err


def test_mrpc_is_split_by_the_list_of_evaluated_pairs(rows_of, tmp_path):
    write_lines(tmp_path / "MRPC/dev_ids.tsv", "7\t8\n", "5\t6\r\n")
    lines = MRPC, "1\t1\t2\ta\tb\r\n", "0\t7\t8\tc\td\r\n", "1\t8\t7\te\tf\r\n", "0\t5\t6\tg\th\r\n"
    training = rows_of("mrpc", "MRPC/msr_paraphrase_train.txt", *lines)
    assert [(row["sentence2"], row["label"], row["idx"]) for row in training] == [("b", 1, 0), ("f", 1, 2)]
    evaluation = list(read_split(tmp_path, GLUE["mrpc"], "validation"))
    assert [(row["sentence1"], row["label"], row["idx"]) for row in evaluation] == [("c", 0, 1), ("g", 0, 3)]


def test_mrpc_may_be_split_already(rows_of):
    found = rows_of("mrpc", "MRPC/dev.tsv", MRPC, "1\t1\t2\ta\tb\r\n", split="validation")
    assert found == [{"sentence1": "a", "sentence2": "b", "label": 1, "idx": 0}]


@pytest.mark.parametrize(
    ("name", "file", "lines", "message"),
    [
        (
            "mnli",
            "MNLI/train.tsv",
            [MNLI, "0\ta\tb\tneutral\n", "1\tc\td\t-\n"],
            "3: gold_label is '-', expected one of",
        ),
        (
            "mnli",
            "MNLI/train.tsv",
            [MNLI, "0\ta\tb\n"],
            r"2: text or label is missing \(3 fields\); get the file again",
        ),
        ("mnli", "MNLI/train.tsv", [MNLI, "0\ta\tb\t\n"], r"2: text or label is missing"),
        (
            "sst2",
            "SST-2/train.tsv",
            ["index\tsentence\n", "0\ta\n"],
            "1: no column 'label', found index, sentence; get",
        ),
        ("sst2", "SST-2/train.tsv", [], "1: no column 'sentence', found nothing"),
        ("stsb", "STS-B/train.tsv", [STSB, "0\ta\tb\t5.2\n"], "2: score is '5.2', expected a number from 0 to 5"),
        ("stsb", "STS-B/train.tsv", [STSB, "0\ta\tb\tnan\n"], "2: score is 'nan', expected a number from 0 to 5"),
        (
            "cola",
            "CoLA/train.tsv",
            ["gj04\t1\t\ta\n", "gj04\t2\t\tb\n"],
            "2: label is '2', expected one of unacceptable",
        ),
        ("cola", "CoLA/train.tsv", ["gj04\t1\t\ta\n", "gj04\t1\n"], "2: text or label is missing"),
    ],
)
def test_a_line_that_is_no_row_of_the_task_is_named_with_the_reason(rows_of, tmp_path, name, file, lines, message):
    with pytest.raises(DataError, match=f"{tmp_path / file}:{message}"):
        rows_of(name, file, *lines)


def test_bytes_that_are_no_text_are_named_by_line(tmp_path):
    path = tmp_path / "SST-2/train.tsv"
    path.parent.mkdir()
    path.write_bytes(b"sentence\tlabel\nfine\t1\ncaf\xe9\t1\n")
    with pytest.raises(DataError, match=r"train.tsv:3: not UTF-8; get the file again"):
        list(read_split(tmp_path, GLUE["sst2"], "train"))


def test_a_missing_file_is_named_with_its_archive(tmp_path):
    with pytest.raises(MissingInputError, match="MNLI/dev_mismatched.tsv: file not found; put GLUE's MNLI there"):
        list(read_split(tmp_path, GLUE["mnli"], "validation_mismatched"))


def test_microsofts_file_without_glues_list_of_pairs_is_not_taken_for_a_split(rows_of):
    with pytest.raises(MissingInputError, match="MRPC/dev_ids.tsv: file not found"):
        rows_of("mrpc", "MRPC/msr_paraphrase_train.txt", MRPC, "1\t1\t2\ta\tb\r\n")
