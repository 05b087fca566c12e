"""What is read of SuperGLUE's rows, and how predictions of rows become scores of questions: on cases made by hand."""

import math
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from symbert.configuration import TaskLimits
from symbert.errors import DataError
from symbert.glue import forms
from symbert.glue.forms import formed
from symbert.glue.metrics import measure
from symbert.glue.prepare import sample
from symbert.glue.sources import published_schema
from symbert.glue.tasks import SUITES, published_split
from symbert.glue.train import HEADS, read_rows, shuffled
from symbert.sources import DEMO

SUPERGLUE = SUITES["superglue"].tasks


def read(task: str, *rows: dict) -> list[dict]:
    """What is read of rows whose columns that a case does not name are empty."""
    schema = published_schema(SUPERGLUE[task])
    empty = {field.name: "" if pa.types.is_string(field.type) else None for field in schema}
    table = pa.Table.from_pylist([empty | row for row in rows], schema=schema)
    return [row for part in formed(SUPERGLUE[task], "validation", table) for row in part.to_pylist()]


def test_copa_reads_the_premise_and_its_question_beside_each_choice():
    rows = read("copa", COPA, {**COPA, "question": "cause", "label": 0})
    assert [(row["text"], row["pair"]) for row in rows[:2]] == [
        ("It rained. What happened as a result?", "Mist."),
        ("It rained. What happened as a result?", "Mud."),
    ]
    assert rows[2]["text"] == "It rained. What was the cause of this?"
    assert [(row["group"], row["label"]) for row in rows] == [(0, 0), (0, 1), (1, 1), (1, 0)]


def test_queries_are_read_some_rows_at_a_time_and_numbered_over_all(monkeypatch):
    """Each of ReCoRD's ten entities is a row with the whole passage: all at once they were gigabytes."""
    monkeypatch.setattr(forms, "AT_ONCE", 4)
    rows = [
        {"passage": "p", "query": f"{at} @placeholder", "entities": ["A", "B", "C"], "answers": ["B"]}
        for at in range(5)
    ]
    table = pa.Table.from_pylist(rows)
    parts = list(formed(SUPERGLUE["record"], "train", table))
    assert [part.num_rows for part in parts] == [4, 4, 4, 3]
    assert [group for part in parts for group in part["group"].to_pylist()] == [at // 3 for at in range(15)]
    assert [label for part in parts for label in part["label"].to_pylist()] == [0, 1, 0] * 5


def test_multirc_groups_the_answers_to_a_question_that_do_not_stand_together():
    questions, asked = [(0, 0), (0, 1), (0, 0), (1, 0)], []
    for at, (paragraph, number) in enumerate(questions):
        index = {"paragraph": paragraph, "question": number, "answer": at}
        asked.append({"paragraph": "p", "question": f"q{number}", "answer": "a", "idx": index, "label": at % 2})
    rows = read("multirc", *asked)
    assert [row["group"] for row in rows] == [0, 0, 1, 2]
    assert [row["pair"] for row in rows] == ["q0 a", "q0 a", "q1 a", "q0 a"]
    assert [row["label"] for row in rows] == [0, 0, 1, 1]


def test_record_fills_the_gap_with_each_entity_once_and_knows_what_each_is_worth():
    row = {
        "passage": "Ann Lee met Bo.\n@highlight\nThey sang",
        "query": "@placeholder sang with Bo",
        "entities": ["Ann Lee", "Bo", "Ann Lee", "the Ann"],
        "answers": ["ann lee!"],
    }
    rows = read("record", row)
    assert [row["pair"] for row in rows] == ["Ann Lee sang with Bo", "Bo sang with Bo", "the Ann sang with Bo"]
    assert "@" not in rows[0]["text"] and [row["label"] for row in rows] == [1, 0, 0]
    assert [row["credit"] for row in rows] == pytest.approx([1, 0, 2 / 3])


def test_wic_and_wsc_mark_what_is_asked_about_whichever_comes_first():
    (marked,) = read("wic", WIC)
    assert (marked["text"], marked["pair"]) == ("Run a * run *", "They * run *.")
    swapped = {"span1_text": "he", "span1_index": 6, "span2_text": "the old man", "span2_index": 2}
    texts = [row["text"] for row in read("wsc", WSC, WSC | swapped)]
    assert texts == ["Tom asked * the old man * if # he # slept", "Tom asked # the old man # if * he * slept"]


def test_the_text_decides_where_the_published_index_is_that_of_other_words_and_such_rows_are_counted():
    """It was believed that an index points at its text: that of a published row points at "use", and means "it"."""
    text = "It lay there. Whoever finds it may use it, or keep it, said Ann's son"
    row = {"text": text, "label": 1, "span1_text": "ann", "span2_text": "It", "span1_index": 13}
    marks = {8: "use # it, #", 7: "use # it, #", 6: "finds # it #", 5: "finds # it #"}
    marks |= {0: "# It # lay", -3: "# It # lay", 30: "keep # it, #"}
    for index, marked in marks.items():
        (found,) = read("wsc", row | {"span2_index": index})
        assert marked in found["text"] and found["text"].endswith("* Ann's * son")
        assert found["moved"] == (index in (7, 6, -3, 30))


def test_one_of_the_published_rows_of_wsc_has_the_index_of_another_word(mirror):
    """Row 42: "Some day they might want to use it"; all others mark what the index says."""
    for split, wrong in (("train", []), ("validation", [42])):
        rows = pq.read_table(mirror / published_split(SUPERGLUE["wsc"], split).location).to_pylist()
        (table,) = formed(SUPERGLUE["wsc"], split, pa.Table.from_pylist(rows))
        found = [(row["idx"], made["text"]) for row, made in zip(rows, table.to_pylist(), strict=True) if made["moved"]]
        assert [number for number, _ in found] == wrong and all("to use # it # ," in text for _, text in found)


WIC = {"word": "run", "sentence1": "Run a run", "sentence2": "They run.", "label": 1} | {
    **{"start1": 6, "end1": 9, "start2": 5, "end2": 8}
}
WSC = {"text": "Tom asked the old man if he slept", "label": 1, "span1_text": "the old man", "span1_index": 2} | {
    **{"span2_text": "he", "span2_index": 6}
}
COPA = {"premise": "It rained.", "choice1": "Mist.", "choice2": "Mud.", "question": "effect", "label": 1}
RECORD = {"passage": "Ann met Bo.", "query": "@placeholder sang", "entities": ["Ann", "Bo"], "answers": ["Bo"]}
MISTAKES = [
    *(("wsc", WSC, change) for change in ({"span2_text": "she"}, {"span1_text": "old the man"}, {"span2_text": ""})),
    *(("wic", WIC, {"end2": 11}), ("wic", WIC, {"start1": 9}), ("copa", COPA, {"question": "reason"})),
    *(("record", RECORD, {"query": "He sang"}), ("record", RECORD, {"entities": []})),
]


def test_a_row_that_lacks_what_is_asked_about_is_refused_by_its_number():
    """A word beyond the text was an IndexError; a negative place and characters beyond it marked something else."""
    for task, row, changed in MISTAKES:
        assert read(task, row)
        number = {"passage": 3, "query": 12} if task == "record" else 12
        with pytest.raises(DataError, match=f"^{task}: validation, row .*12"):
            read(task, row, row | {"idx": number} | changed)


answer = st.tuples(st.integers(0, 3), st.integers(0, 1), st.floats(0, 1, width=16), st.integers(-3, 3))
answered = st.lists(answer, min_size=1, max_size=20)


@given(answered)
def test_scores_of_questions_are_those_of_a_loop_over_the_questions(rows):
    rows = sorted(rows, key=lambda row: row[0])
    groups, labels, worth, ranks = map(np.array, zip(*rows, strict=True))
    numbers = np.unique(groups, return_inverse=True)[1]
    truth = np.rec.fromarrays([numbers, labels, worth], names="group, label, credit")
    ranks, classes = ranks.astype(float), ranks % 2
    questions = defaultdict(list)
    for (group, label, credit, rank), predicted in zip(rows, classes, strict=True):
        questions[group].append((label, credit, rank, predicted))
    best = [max(question, key=lambda answer: answer[2]) for question in questions.values()]
    whole = [all(answer[0] == answer[3] for answer in question) for question in questions.values()]
    assert measure(SUPERGLUE["record"], truth, ranks) == pytest.approx(
        {"chosen_right": np.mean([answer[0] for answer in best]), "chosen_credit": np.mean([each[1] for each in best])}
    )
    assert measure(SUPERGLUE["multirc"], truth, classes) == pytest.approx(
        {"f1": f1_score(truth["label"], classes, zero_division=0), "whole_groups": np.mean(whole)}
    )


def test_the_loss_of_choices_is_the_cross_entropy_between_two_rows():
    logits, labels = torch.tensor([[1.0], [3.0], [2.0], [2.0]]), torch.tensor([0, 1, 1, 0])
    first, second = -math.log(math.exp(3) / (math.exp(1) + math.exp(3))), math.log(2)
    assert HEADS["choices"].loss(logits, labels).item() == pytest.approx((first + second) / 2)
    assert HEADS["choices"].loss(logits[:2], labels[:2]).item() == pytest.approx(first)
    assert HEADS["candidates"].of_rows(torch.tensor([[1.0, 3.0], [0.5, 0.0]])).tolist() == [2.0, -0.5]


def test_a_batch_of_choices_has_both_rows_of_each_example(prepared):
    file = prepared("copa", max_length=32, max_examples=None, max_evaluation_examples=None)
    rows = read_rows(file, SUPERGLUE["copa"], torch.device("cpu"))["train"]
    batches = [rows.labels[index] for index in shuffled(rows, 16, 1, epoch=0)]
    assert len(rows) == 2000 and len(batches) == math.ceil(rows.examples / 16)
    for labels in batches:
        assert (labels.view(-1, 2).sum(dim=1) == 1).all(), "one of two is right"
    assert len(batches[0]) == 16 * 2


def test_fewer_evaluation_rows_of_multirc_are_whole_questions():
    """Its exact match counts questions of which every answer is judged right: of a part of them it is too high."""
    raw = pq.read_table(DEMO / "aps/super_glue/multirc/validation-00000-of-00001.parquet")

    def counted(table):
        return Counter((index["paragraph"], index["question"]) for index in table["idx"].to_pylist())

    answers = counted(raw)
    for limit in (1, 40):
        limits = TaskLimits(max_length=64, max_examples=None, max_evaluation_examples=limit)
        kept = counted(sample(SUPERGLUE["multirc"], "validation", raw, limits))
        assert kept and all(answers[question] == count for question, count in kept.items())
        assert max(limit - max(answers.values()), 1) <= kept.total() <= max(limit, max(answers.values()))
