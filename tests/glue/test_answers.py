"""Scores of answers, against the rules of the evaluation script of SQuAD 2.0 written out anew."""

import re
import string
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from symbert.glue.squad import ANSWER, Question, best_threshold, exact, f1, measured, texts_of


def normalized(text):
    """Lower case, without the punctuation of ASCII, without articles, single blanks."""
    kept = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept, flags=re.UNICODE).split())


def official(text, answers):
    """Exact match and F1 of one answer."""
    golds = [answer for answer in answers if normalized(answer)] or [""]
    exacts, f1s = [], []
    for gold in golds:
        exacts.append(int(normalized(gold) == normalized(text)))
        expected, given_words = normalized(gold).split(), normalized(text).split()
        if not expected or not given_words:
            f1s.append(float(expected == given_words))
            continue
        shared = 0
        for word, count in Counter(expected).items():
            shared += min(count, given_words.count(word))
        precision, recall = shared / len(given_words), shared / len(expected)
        f1s.append(2 * precision * recall / (precision + recall) if shared else 0.0)
    return max(exacts), max(f1s)


CASES = [
    ("The Rhine", ("Rhine",), 1, 1.0),  # an article
    ("rhine!", ("the Rhine", "Danube"), 1, 1.0),  # several answers, punctuation, case
    ("a river in Europe", ("river",), 0, 0.5),  # precision 1/3, recall 1
    ("Lothar de Maizière", ("Lothar de Maizière, ",), 1, 1.0),
    ("Maiziere", ("Maizière",), 0, 0.0),  # letters with an accent are others
    ("10–20", ("1020",), 0, 0.0),  # a dash that is not of ASCII stays
    ("10-20", ("1020",), 1, 1.0),
    ("", (), 1, 1.0),
    ("Rhine", (), 0, 0.0),
    ("the", (), 1, 1.0),  # nothing is left of it
    ("", ("Rhine",), 0, 0.0),
    ("", ("the", "..."), 1, 1.0),  # nothing is left of any answer
    ("the", ("the", "Rhine"), 0, 0.0),  # of one, something is
    ("to be or not to be", ("to be",), 0, 2 * 2 / 8),  # each word as often as it is shared
]


def test_an_answer_scores_as_in_the_official_script():
    for text, answers, right, share in CASES:
        assert (exact(text, answers), f1(text, answers)) == (right, pytest.approx(share)), text
        assert official(text, answers) == (right, pytest.approx(share)), text


texts = st.text(st.sampled_from("aAthe nré–.,'x "), max_size=12)


@given(texts, st.lists(texts, max_size=3))
def test_scores_of_any_texts_are_the_official_ones(text, answers):
    assert (exact(text, tuple(answers)), f1(text, tuple(answers))) == pytest.approx(official(text, answers))


def cases(*rows):
    """Questions with a context of words, and answers: words of the context, expected ones, a margin."""
    questions, answers = np.empty(len(rows), dtype=object), np.zeros(len(rows), ANSWER)
    for number, (text, expected, margin) in enumerate(rows):
        questions[number] = Question(f"so {text} it is", expected)
        answers[number] = (3, 3 + len(text), margin)
    return questions, answers


def mean_f1(questions, answers, threshold):
    return measured(questions, texts_of(questions, answers, threshold))["f1"]


def test_the_threshold_gives_the_answers_that_are_worth_it():
    rows = cases(("x", ("x",), 5.0), ("y", (), 4.0), ("y z", ("z",), 3.0), ("z", ("z",), 2.0), ("w", (), 1.0))
    threshold = best_threshold(*rows)
    assert threshold == 2.0, "5 − … : 1, 0, 2/3, 5/3, 2/3 more than no answer at all"
    assert texts_of(*rows, threshold) == ["x", "y", "y z", "z", ""]
    assert mean_f1(*rows, threshold) == pytest.approx((1 + 0 + 2 / 3 + 1 + 1) / 5)


def test_no_answer_at_all_is_a_threshold_too_and_equal_margins_go_together():
    for rows in (cases(("x", ("y",), 3.0), ("x", (), 1.0)), cases(("x", ("x",), 1.0), ("y", (), 1.0), ("z", (), 1.0))):
        assert set(texts_of(*rows, best_threshold(*rows))) == {""}


words = st.sampled_from(["x", "y", "x y", "the"])
answered = st.tuples(words, st.lists(words, max_size=2).map(tuple), st.integers(-2, 2).map(float))


@given(st.lists(answered, min_size=1, max_size=8))
def test_no_other_threshold_scores_higher(rows):
    rows = cases(*rows)
    every = (mean_f1(*rows, threshold) for threshold in np.arange(-2.5, 3))
    assert mean_f1(*rows, best_threshold(*rows)) == pytest.approx(max(every))


def test_questions_with_and_without_an_answer_are_scored_apart():
    questions, _ = cases(("x", ("x",), 0), ("x", ("x y",), 0), ("x", (), 0), ("x", (), 0))
    details = measured(questions, ["x", "x", "", "z"])
    assert details == {
        "exact": 0.5,
        "f1": pytest.approx((1 + 2 / 3 + 1 + 0) / 4),
        "has_answer_exact": 0.5,
        "has_answer_f1": pytest.approx((1 + 2 / 3) / 2),
        "no_answer_f1": 0.5,
    }
    assert measured(questions[:1], ["x"]).keys() == {"exact", "f1", "has_answer_exact", "has_answer_f1"}
