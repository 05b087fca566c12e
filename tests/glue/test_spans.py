"""Windows of contexts, answers as tokens and back, and the search for the likeliest span: on cases made by hand."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.corpus.wordpiece import encoder
from symbert.errors import DataError
from symbert.glue import squad as spans
from symbert.glue.squad import (
    ANSWER,
    LONGEST_ANSWER,
    Contexts,
    Question,
    answers_of,
    best_spans,
    hold_out,
    most_context,
    texts_of,
    tokenise_questions,
    windows_of,
)

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "who", "?", ".", "the", "mai", "##zi", "##ere", "of"]
PIECES += [f"w{number}" for number in range(40)]
LONG = 36  # of which 12 is the stride, 6 the longest question


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """Pieces of a small vocabulary."""
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.txt"
    path.write_text("".join(f"{piece}\n" for piece in PIECES))
    return encoder(path)


def published(context, *answers, question="Who?", number=0):
    """A row of the hub: answers as texts, each where it first stands in the context."""
    places = [context.index(text) for text in answers]
    row = {"id": f"q{number}", "title": "t", "context": context, "question": question}
    return row | {"answers": {"text": list(answers), "answer_start": places}}


def prepared(tokenizer, *rows, split="validation", max_length=LONG):
    return tokenise_questions(split, pa.Table.from_pylist(list(rows)), tokenizer, max_length).to_pylist()


def test_windows_do_not_depend_on_how_many_questions_are_read_at_once(tokenizer, monkeypatch):
    """All at once took two gigabytes of SQuAD's training rows, as much as the rule asks for."""
    contexts = [" ".join(f"w{place}" for place in range(start, 40)) for start in (0, 30, 5, 20)]
    rows = [published(context, "w35", number=number) for number, context in enumerate(contexts)]
    expected = prepared(tokenizer, *rows)
    assert [window["question"] for window in expected] == [0, 0, 1, 2, 2, 3]
    for block in (1, 2, 3):
        monkeypatch.setattr(spans, "QUESTIONS_AT_ONCE", block)
        assert prepared(tokenizer, *rows) == expected


def pieces(window):
    return " ".join(PIECES[token] for token in window["input_ids"])


def marked(window):
    """The pieces of the span that the window is labelled with."""
    first, last = window["label"]
    return " ".join(PIECES[token] for token in window["input_ids"][first : last + 1])


def recovered(window, first, last):
    return window["context"][window["starts"][first] : window["ends"][last]]


def test_a_short_context_is_one_row_with_the_tokens_of_its_answer(tokenizer):
    (row,) = prepared(tokenizer, published("The w1 of w2.", "w2", "of w2"))
    assert pieces(row) == "[CLS] who ? [SEP] the w1 of w2 . [SEP]"
    assert row["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert row["label"] == [7, 7] and row["answers"] == ["w2", "of w2"]
    assert row["begins_here"] == [False] * 4 + [True] * 5 + [False]
    assert recovered(row, 4, 8) == "The w1 of w2." and row["starts"][3] == row["ends"][9] == 0
    (row,) = prepared(tokenizer, published("The w1."))
    assert row["label"] == [0, 0] and marked(row) == "[CLS]" and row["answers"] == []


def test_a_word_of_several_pieces_and_a_letter_with_an_accent_are_recovered_whole(tokenizer):
    context = "w1 Maizière of"
    (row,) = prepared(tokenizer, published(context, "Maizière"))
    assert marked(row) == "mai ##zi ##ere" and recovered(row, *row["label"]) == "Maizière"
    (row,) = prepared(tokenizer, published(context, "zière"))
    assert marked(row) == "##zi ##ere" and recovered(row, *row["label"]) == "zière"
    (row,) = prepared(tokenizer, published(context, "aiz"))  # inside of pieces: all that it touches
    assert marked(row) == "mai ##zi" and recovered(row, *row["label"]) == "Maizi"


def test_a_long_context_has_windows_a_stride_apart_and_the_answer_where_it_is_whole(tokenizer):
    """36 less 2 of the question and 3 others: windows of 31 tokens at 0 and 12."""
    context = " ".join(f"w{number}" for number in range(40))
    answers = {"w11 w12": 1, "w0": 1, "w39": 1, "w30 w31": 1, "w30": 2, "w12": 2, "w11": 1}
    for answer, windows in answers.items():
        rows = prepared(tokenizer, published(context, answer))
        assert [len(row["input_ids"]) for row in rows] == [36, 4 + 28 + 1]
        assert pieces(rows[1]).startswith("[CLS] who ? [SEP] w12 w13")
        found = [row for row in rows if row["label"] != [0, 0]]
        whole = [row for row in rows if f" {answer} " in pieces(row)]
        assert found == whole and all(marked(row) == answer for row in found)
        assert len(found) == windows, "across the begin of the second, only the first has it whole"
    answer = " ".join(f"w{number}" for number in range(5, 37))  # no window has it whole
    assert [row["label"] for row in prepared(tokenizer, published(context, answer))] == [[0, 0]] * 2


def test_a_long_question_is_cut_and_makes_windows_shorter(tokenizer):
    rows = prepared(tokenizer, published(" ".join(["w1"] * 40), question=" ".join(["who"] * 9)))
    assert pieces(rows[0]).startswith("[CLS]" + " who" * 6 + " [SEP]") and len(rows[0]["input_ids"]) == LONG
    assert len(rows) == 3, "27 tokens of 40 at 0, 12 and 24"


def test_an_answer_that_does_not_stand_where_it_should_is_refused(tokenizer):
    row = published("The w1.", "w1")
    row["answers"]["answer_start"] = [5]
    with pytest.raises(DataError, match="question q0: no answer 'w1' at character 5; get the file again"):
        prepared(tokenizer, row)
    with pytest.raises(DataError, match="context ' ' has no tokens"):
        prepared(tokenizer, published(" "))


@given(st.integers(1, 400), st.integers(1, 100), st.integers(1, 60))
def test_windows_cover_every_token_and_each_is_read_in_one(tokens, longest, stride):
    windows = windows_of(tokens, longest, stride)
    assert windows[0][0] == 0 and windows[-1][1] == tokens
    assert all(end - first == min(longest, tokens - first) for first, end in windows)
    assert all(later[0] - earlier[0] == min(stride, longest) for earlier, later in pairwise(windows))
    assert all(end < tokens for _, end in windows[:-1]), "none is needless"
    read = np.zeros(tokens, int)
    for (first, end), here in zip(windows, most_context(windows, tokens), strict=True):
        read[first:end] += here
    assert (read == 1).all()


def test_a_token_is_read_where_it_has_most_context():
    """The rule of run_squad.py, of three windows by hand; of equal scores the first."""
    windows = [(0, 6), (3, 9), (6, 10)]
    expected = np.full(10, -1)
    for token in range(10):
        scores = [min(token - first, end - 1 - token) + 0.01 * (end - first) for first, end in windows]
        inside = [first <= token < end for first, end in windows]
        expected[token] = max((number for number in range(3) if inside[number]), key=lambda number: scores[number])
    found = np.full(10, -1)
    for number, ((first, end), here) in enumerate(zip(windows, most_context(windows, 10), strict=True)):
        found[first:end][here] = number
    assert found.tolist() == expected.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]


def test_some_contexts_are_held_out_with_all_their_questions():
    rows = pa.Table.from_pylist([{"context": f"c{number // 3}", "id": number} for number in range(120)])
    kept, held_out = hold_out(rows)
    contexts = [set(part["context"].to_pylist()) for part in (kept, held_out)]
    assert len(contexts[1]) == 2 and not contexts[0] & contexts[1]
    assert held_out.num_rows == 6 and sorted(kept["id"].to_pylist() + held_out["id"].to_pylist()) == list(range(120))
    assert hold_out(rows)[1] == held_out, "the same for all models"
    with pytest.raises(DataError, match=r"one context.*raise glue.max_examples"):
        hold_out(rows.slice(0, 3))


values = st.integers(-3, 3).map(float)
masked = st.lists(st.tuples(values, values, st.booleans(), st.booleans()), min_size=1, max_size=70)


@given(masked)
def test_the_likeliest_span_is_that_of_a_search_through_all(tokens):
    logits = np.array([[token[:2] for token in tokens]], np.float32)
    may_begin, may_end = (np.array([[token[place] for token in tokens]]) for place in (2, 3))
    best, (span,) = None, best_spans(logits, may_begin, may_end)
    for first, (start, *_) in enumerate(tokens):
        for last in range(first, min(first + LONGEST_ANSWER, len(tokens))):
            score = start + tokens[last][1]
            if may_begin[0, first] and may_end[0, last] and (best is None or score > best[0]):
                best = score, first, last
    assert span["none"] == tokens[0][0] + tokens[0][1]
    if best is None:
        assert span["span"] == -np.inf
    else:
        assert (span["span"], span["first"], span["last"]) == best


def test_the_answer_of_a_question_is_the_likeliest_of_its_windows_and_no_answer_the_least_likely(tokenizer):
    """Two windows of one question, one of another; rows come in another order, padded to the longest."""
    context = " ".join(f"w{number}" for number in range(40))
    rows = prepared(tokenizer, published(context), published("The w1.", "w1"))
    lengths = np.array([len(row["input_ids"]) for row in rows])
    starts, ends, here = (np.concatenate([row[name] for row in rows]) for name in ("starts", "ends", "begins_here"))
    questions = np.array([Question(context, ()), Question("The w1.", ("w1",))], dtype=object)
    contexts = Contexts(starts, ends, here, np.array([0, 0, 1]), questions)
    logits = np.full((3, LONG, 2), -np.inf)
    for row, length in enumerate(lengths):
        logits[row, :length] = 0
    logits[0, 0], logits[1, 0], logits[2, 0] = (1, 2), (3, 4), (1, 1)
    logits[0, 4 + 5, 0], logits[0, 4 + 6, 1] = 6, 6  # w5 w6
    logits[1, 4 + 0, 0] = 50  # w12, which has more context in the first window
    logits[1, 2, 0] = logits[1, 2, 1] = 90  # a token of the question
    logits[1, 4 + 27, 0], logits[1, 4 + 27, 1] = 4, 4.5  # w39
    logits[2, 4, 0], logits[2, 5, 1] = 1, 2  # the w1
    order = [np.array([2]), np.array([1, 0])]
    answers = answers_of(contexts, np.cumsum(lengths) - lengths, lengths, ((rows, logits[rows]) for rows in order))
    assert texts_of(questions, answers, -np.inf) == ["w5 w6", "The w1"] and answers.dtype == ANSWER
    assert answers["margin"].tolist() == [12 - 3, 3 - 2]
