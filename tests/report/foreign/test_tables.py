"""Tables of scores are read as they are brought: units, signs, aliases; what is no score is named with its row."""

import itertools
import math
import random
import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from symbert.errors import DataError
from symbert.report.foreign import tables
from symbert.report.foreign.naming import Naming
from symbert.report.foreign.reading import read_foreign
from symbert.report.foreign.rows import frame_of, scores_of

HEADER = "model,task,finetune_seed,score"


@pytest.fixture
def read(tmp_path):
    """Writes lines to a csv file and reads them: value by model, score column and seed."""

    def make(*lines, header=HEADER, encoding="utf-8"):
        file = tmp_path / "scores.csv"
        file.write_bytes("\n".join([header, *lines, ""]).encode(encoding))
        rows, notes = tables.read(file)
        make.notes = [note.removeprefix(f"{file}: ") for note in notes]
        return {(row["attention"], row["column"], row["finetune_seed"]): row["value"] for row in rows}

    return make


def test_a_plain_table_has_a_row_per_score(read):
    assert read("mine,rte,1,0.5", "mine,cola,2,-0.25") == {("mine", "rte", 1): 0.5, ("mine", "cola", 2): -0.25}
    assert read.notes == []


@pytest.mark.parametrize(
    ("lines", "header", "encoding"),
    [
        (["mine,rte,1,87.5"], HEADER, "utf-8"),
        (["mine,rte,1,0.875"], HEADER, "utf-8"),
        (["mine,rte,1,87.5%"], HEADER, "utf-8"),
        (["mine,rte,1,87.5 %"], HEADER, "utf-8"),
        (['mine,rte,1,"87,5"'], HEADER, "utf-8"),
        (["mine;rte;1;87,5"], HEADER.replace(",", ";"), "utf-8"),
        (["mine\trte\t1\t87.5"], HEADER.replace(",", "\t"), "utf-8"),
        (["mine,rte,1,87.5"], HEADER, "utf-8-sig"),
        (["", " mine , RTE , 1.0 , 8.75e1 ", ""], " Model , Task , Seed , Score ", "utf-8-sig"),
        (["87.5,1,rte,mine"], "score,finetune-seed,task,operator", "utf-8"),
    ],
)
def test_a_score_is_read_in_every_way_that_people_write_it(read, lines, header, encoding):
    assert read(*lines, header=header, encoding=encoding) == {("mine", "rte", 1): pytest.approx(0.875, abs=1e-15)}


@pytest.mark.parametrize(
    ("word", "column"),
    [
        ("MNLI", "mnli_matched"),
        ("MNLI-m", "mnli_matched"),
        ("MNLI-mm", "mnli_mismatched"),
        ("mnli_mismatched", "mnli_mismatched"),
        ("mnli-mm", "mnli_mismatched"),
        ("mnli_mismatch", "mnli_mismatched"),
        ("SST-2", "sst2"),
        ("STS-B", "stsb"),
        ("CoLA", "cola"),
    ],
)
def test_a_task_may_have_its_other_names(read, word, column):
    assert read(f"mine,{word},1,0.5") == {("mine", column, 1): 0.5}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("mine,rte,1,true", "row 3: the score is 'true', expected a number"),
        ("mine,rte,1,NaN", "row 3: the score is 'NaN', expected a number; leave it empty where there is no score"),
        ("mine,rte,1,inf", "row 3: the score is 'inf'"),
        ("mine,rte,1,0.5 ± 0.1", "row 3: the score is '0.5 ± 0.1'"),
        ('mine,rte,1,"1,234.5"', "row 3: the score is '1,234.5'"),
        ("mine,rte,1,870", "row 3: the score is 870.0, expected at most 100 percent"),
        ("mine,squad,1,0.5", "row 3: unknown task 'squad'; "),
        ("mine,glue_score,1,0.5", "row 3: unknown task 'glue_score'"),
        ("mine,rte,one,0.5", "row 3: finetune_seed is one, expected a whole number"),
        ("mine,rte,1.5,0.5", "row 3: finetune_seed is 1.5"),
        ("mine,rte,,0.5", "row 3: no finetune_seed; number the runs of a model"),
        (",rte,1,0.5", "row 3: no model"),
        ("a/b,rte,1,0.5", "row 3: the attention 'a/b' has a '/'"),
        ("mine,rte,1,87,5", "Expected 4 fields in line 3, saw 5"),
    ],
)
def test_what_is_no_score_is_named_with_its_row(read, line, problem):
    with pytest.raises(DataError) as caught:
        read("mine,cola,1,0.5", line)
    assert problem in str(caught.value) and "scores.csv" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ("model,task,score", "no columns 'finetune_seed', expected one"),
        ("task,finetune_seed,score", "no column 'model' or 'operator'; add one"),
        ("model,task,finetune_seed,score,Score", "2 columns 'score', expected one"),
        ("model,task,seed,finetune_seed,score", "2 columns 'finetune_seed'"),
    ],
)
def test_a_column_that_is_missing_or_there_twice_is_named(read, header, problem):
    with pytest.raises(DataError, match=problem):
        read(",".join(["1"] * (header.count(",") + 1)), header=header)


def test_one_share_among_percentages_is_named():
    """0.8 % accuracy is no model's; a correlation of 0.8 % may be."""
    rows, marked = [], []
    for column, metric, value in (("rte", "", 60.0), ("stsb", "pearson", 0.8), ("rte", "accuracy", 0.8)):
        rows.append({"column": column, "metric": metric, "value": value, "origin": f"row {len(rows)}"})
        marked.append(False)
    with pytest.raises(DataError, match="^row 2: the score 0.8 among percentages; write all in one unit"):
        tables._to_shares(rows, marked)
    assert tables._to_shares(rows[:2], marked[:2]) is None and rows[1]["value"] == 0.008


def test_an_empty_score_and_columns_and_metrics_of_ones_own_are_named_and_not_skipped(read):
    lines = ["mine,rte,1,0.5,accuracy,3", "mine,rte,1,9.5,runtime,3", "mine,cola,1,,matthews,3"]
    assert read(*lines, header=f"{HEADER},metric,learning rate") == {("mine", "rte", 1): 0.5}
    assert read.notes == ["column 'learning_rate'", "metric runtime (1 rows)", "no score in row 4"]


def test_metrics_become_the_tasks_score_and_others_are_named(read, tmp_path):
    """The mean of accuracy and F1; the accuracy of CoLA is no score of GLUE's."""
    lines = [
        "m,mrpc,1,80,acc",
        "m,mrpc,1,90,F1",
        "m,cola,1,40,mcc",
        "m,cola,1,77,accuracy",
        "m,qqp,1,70,combined_score",
    ]
    read(*lines, header=f"{HEADER},metric")
    reading = read_foreign(tmp_path / "scores.csv", Naming())
    scores = reading.scores.set_index("column")
    assert scores["score"].to_dict() == pytest.approx({"mrpc": 0.85, "cola": 0.4, "qqp": 0.7})
    assert scores.loc["mrpc", "details"] == {"accuracy": 0.8, "f1": 0.9} and scores.loc["qqp", "details"] == {}
    assert reading.notes == ["accuracy of cola (1): it does not count for the task"]
    read("m,mrpc,1,80,acc", header=f"{HEADER},metric")
    with pytest.raises(DataError, match="row 2: mrpc lacks f1; add it, or call the value 'score'"):
        read_foreign(tmp_path / "scores.csv", Naming())


def test_two_rows_of_one_cell_are_named_both(read, tmp_path):
    read("mine,rte,1,0.5", "other,rte,1,0.5", "mine,RTE,1,0.5")
    with pytest.raises(DataError, match="row 4: the same model, task and seed as .*row 2; keep one of them"):
        read_foreign(tmp_path / "scores.csv", Naming())


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ([0.5, True], "score is 'True'"),
        ([0.5, math.nan], "score is 'nan'"),
        ([0.5, None], None),
        (["0.5", "50 %"], None),
    ],
)
def test_a_parquet_table_has_values_of_its_own(tmp_path, values, problem):
    """A null is a score that there is not; a truth value or NaN is none."""
    file = tmp_path / "scores.parquet"
    columns = {"model": ["small-mine"], "task": ["rte"], "finetune_seed": [1]}
    for number, value in enumerate(values):
        pq.write_table(pa.table(columns | {"score": [value]}), file)
        if number and problem:
            with pytest.raises(DataError, match=f"scores.parquet:row 1: the {problem}"):
                tables.read(file)
        else:
            rows, notes = tables.read(file)
            assert [(row["size"], row["value"]) for row in rows] == ([] if value is None else [("small", 0.5)])
            assert len(notes) == (value is None)


def test_a_file_that_is_no_table_is_not_recognized(tmp_path):
    contents = {
        "a.csv": b"x,y\n1,2\n",
        "b.csv": b"",
        "c.csv": b"\xff\xfe\x00",
        "d.parquet": b"PAR0",
        "e.txt": b"task,score\n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        assert not tables.recognizes(tmp_path / name)
    (tmp_path / "f.csv").write_text("task,score\n")
    assert tables.recognizes(tmp_path / "f.csv"), "it is to be refused, and not skipped"


def test_the_example_of_the_documentation_is_read(root, tmp_path):
    (example,) = re.findall(r"```csv\n(.*?)```", (root / "docs/scores.md").read_text(encoding="utf-8"), re.S)
    (tmp_path / "scores.csv").write_text(example)
    reading = read_foreign(tmp_path, Naming())
    scores = {
        (row.size, row.attention, row.column, row.finetune_seed): row.score for row in reading.scores.itertuples()
    }
    assert scores == pytest.approx(
        {
            ("small", "mine", "rte", 1): 0.581,
            ("small", "mine", "rte", 2): 0.592,
            ("", "roberta", "rte", 1): 0.664,
            ("", "roberta", "stsb", 1): 0.883,
        }
    )
    assert [line.partition(": ")[2] for line in reading.left_out()] == ["no score in row 4"]


CELLS = list(itertools.product(["small-mine", "other"], ["rte", "cola", "mnli_matched", "stsb"], [1, 2, 3]))
SCORES = st.dictionaries(st.sampled_from(CELLS), st.floats(-1, 1).filter(lambda x: x == 0 or abs(x) > 1e-9), min_size=1)


@settings(max_examples=30)
@given(scores=SCORES, seed=st.integers(0, 99))
def test_any_order_of_rows_gives_the_same_scores(tmp_path_factory, scores, seed):
    file = tmp_path_factory.mktemp("permuted") / "scores.csv"
    lines = [f"{model},{task},{number},{score!r}" for (model, task, number), score in scores.items()]
    frames = []
    for _ in range(2):
        file.write_text("\n".join([HEADER, *lines]))
        frames.append(read_foreign(file, Naming()).scores.drop(columns="origin"))
        random.Random(seed).shuffle(lines)
    pd.testing.assert_frame_equal(*frames)


@settings(max_examples=30)
@given(scores=SCORES)
def test_a_table_that_was_written_is_read_back_to_the_last_bit(tmp_path_factory, scores):
    file = tmp_path_factory.mktemp("written") / "scores.csv"
    rows = []
    for (model, task, seed), score in scores.items():
        size, _, attention = model.rpartition("-")
        run = {"size": size, "attention": attention, "pretrain_seed": 1, "step": None, "finetune_seed": seed}
        cell = {"task": task.partition("_")[0], "column": task, "rows": 277, "origin": ""}
        metrics = ("pearson", "spearman") if task == "stsb" else ("",)
        rows += [run | cell | {"metric": metric, "value": score} for metric in metrics]
    expected, _ = scores_of(frame_of(rows))
    file.write_text(tables.write(expected, file))
    again = read_foreign(file, Naming()).scores
    pd.testing.assert_frame_equal(again.drop(columns="origin"), expected.drop(columns="origin"), check_exact=True)
