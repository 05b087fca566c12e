"""Scores of answers to questions, as the evaluation script of SQuAD 2.0 has them (Rajpurkar, Jia and Liang, ACL 2018).

A question without answer is answered right by the empty text. What is predicted is a span and its margin over no
answer; the empty text takes its place where the margin is below a threshold, which is chosen on questions held out
from training: that script chooses it on the questions that it scores.
"""

from typing import Any

import numpy as np

from symbert.glue.forms import normal, overlap


def exact(text: str, answers: tuple[str, ...]) -> float:
    """Whether a text is one of the answers in normal form: 1 or 0."""
    return float(normal(text) in _expected(answers))


def f1(text: str, answers: tuple[str, ...]) -> float:
    """The highest F1 of the words that a text shares with an answer, 0 to 1; of no words, whether both have none."""
    if not normal(text):
        return float("" in _expected(answers))
    return max(overlap(text, answer) for answer in _expected(answers))


def _expected(answers: tuple[str, ...]) -> list[str]:
    """The answers in normal form of which something is left; the empty text where that is none."""
    return [answer for answer in map(normal, answers) if answer] or [""]


def text_of(question: Any, answer: np.void) -> str:
    """The span of the context that an ANSWER is."""
    return question.context[answer["start"] : answer["end"]]


def best_threshold(questions: np.ndarray, answers: np.ndarray) -> float:
    """The margin from which answers are given, so that their mean F1 is highest: the margin of one of them.

    Of equally good ones it is the highest, with the fewest answers; just above all margins where no answer is best.
    """
    order = np.argsort(-answers["margin"], kind="stable")
    margins = answers["margin"][order]
    gained = [
        f1(text_of(question, answer), question.answers) - f1("", question.answers)
        for question, answer in zip(questions[order], answers[order], strict=True)
    ]
    totals = np.cumsum(gained)
    is_last = np.append(margins[:-1] != margins[1:], True)  # equal margins are answered together
    best = np.where(is_last, totals, -np.inf).argmax()
    return float(margins[best] if totals[best] > 0 else np.nextafter(margins[0], np.inf))


def given_texts(questions: np.ndarray, answers: np.ndarray, threshold: float) -> list[str]:
    """What each question is answered with: a span, or the empty text where the margin is below the threshold."""
    pairs = zip(questions, answers, strict=True)
    return [text_of(question, answer) if answer["margin"] >= threshold else "" for question, answer in pairs]


def measured(questions: np.ndarray, texts: list[str]) -> dict[str, float]:
    """Exact match and F1 of all questions, of those with an answer, and of those without, whose two are the same.

    A kind of question that does not occur is left out.
    """
    exacts, f1s = (
        np.array([score(text, question.answers) for text, question in zip(texts, questions, strict=True)])
        for score in (exact, f1)
    )
    has_answer = np.array([bool(question.answers) for question in questions])
    details = {"exact": exacts, "f1": f1s}
    details |= {"has_answer_exact": exacts[has_answer], "has_answer_f1": f1s[has_answer]}
    details["no_answer_f1"] = f1s[~has_answer]
    return {name: float(values.mean()) for name, values in details.items() if values.size}


def scored_answers(
    held_out: np.ndarray, answers_held_out: np.ndarray, questions: np.ndarray, answers: np.ndarray
) -> dict[str, Any]:
    """`score`, the F1, and its `details`; the `threshold`, chosen on questions held out; the F1 of no answer to any
    question (`majority`); whether the model itself gives none (`constant`)."""
    threshold = best_threshold(held_out, answers_held_out)
    texts = given_texts(questions, answers, threshold)
    details = measured(questions, texts)
    majority = measured(questions, [""] * len(questions))["f1"]
    scores = {"score": details["f1"], "details": details, "majority": majority}
    return {**scores, "threshold": threshold, "constant": not any(texts)}
