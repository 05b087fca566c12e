"""Questions whose answer is a span of a context, or none: windows of long contexts, answers as tokens, and back.

A row is [CLS] question [SEP] window [SEP], or a pair as the tokenizer of a foreign model has it. A context longer than
a window has several, each of which begins `max_length // STRIDES` tokens after the one before; what is asked of a
window without the answer is the span of the row's first token, as of a question without answer. The rules are those of
run_squad.py (github.com/google-research/bert): of `max_length` 384 the stride is 128 and a question has at most 64
tokens, an answer has at most 30; a span begins with a token in the window where it has most context, and the score of
no answer is the lowest of the windows'. Not as there: the best span of a window is searched among all, not among the
twenty likeliest first and last tokens.

Scores are those of the evaluation script of SQuAD 2.0 (Rajpurkar, Jia and Liang, ACL 2018): a question without answer
is answered right by the empty text. A prediction is a span and its margin over no answer; the empty text takes its
place where the margin is below a threshold, which is chosen on questions held out from training: that script chooses it
on the questions that it scores.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Encoding

from symbert.draws import permute
from symbert.errors import DataError
from symbert.glue.encoder import Encoder
from symbert.glue.forms import normal, overlap

STRIDES, QUESTIONS = 3, 6  # parts of the longest row: a stride is one of three, a question at most one of six
BLANKS = re.compile(r"\s+")
LONGEST_ANSWER = 30  # tokens
QUESTIONS_AT_ONCE = 2_000  # whose windows are Python objects: 14 MB in a thousand
HELD_OUT = "held_out"  # split of the prepared rows, on which the threshold of no answer is chosen
HELD_OUT_SHARE, HELD_OUT_SEED = 20, 2  # one training context in so many, drawn with this seed
NO_ANSWER = (0, 0)  # the span of [CLS]

COLUMNS = {  # of prepared rows; the last five are read for scores alone, and null in training rows
    "split": pa.string(),
    "input_ids": pa.list_(pa.int32()),
    "token_type_ids": pa.list_(pa.int8()),
    "label": pa.list_(pa.int64(), 2),  # the first and the last token of the answer
    "question": pa.int32(),  # its number; its windows stand together
    "starts": pa.list_(pa.int32()),  # of each token, in characters of the context; 0 outside of it
    "ends": pa.list_(pa.int32()),
    "begins_here": pa.list_(pa.bool_()),  # whether a token has most context in this window
    "context": pa.string(),
    "answers": pa.list_(pa.string()),
}

# The prediction of a question: its likeliest span in characters of the context, and by how much the logits of that
# exceed those of no answer. Of a window: its span in tokens, and both sums of logits.
ANSWER = np.dtype([("start", np.int32), ("end", np.int32), ("margin", np.float64)])
SPAN = np.dtype([("first", np.int32), ("last", np.int32), ("span", np.float64), ("none", np.float64)])


@dataclass(frozen=True)
class Question:
    """The context and the answers that people marked in it, none where the question has no answer."""

    context: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class Contexts:
    """Of the rows of a split: where each `token` stands in its context and whether spans begin with it; questions."""

    starts: np.ndarray
    ends: np.ndarray
    begins_here: np.ndarray
    groups: np.ndarray  # `row`: the number of the question
    questions: np.ndarray  # of `Question`


def hold_out(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Training rows, and those held out: the questions on one context in HELD_OUT_SHARE, the same for every model.

    Which contexts these are follows from how many there are. DataError with fewer than two contexts.
    """
    contexts = pc.unique(rows["context"])
    if len(contexts) < 2:
        raise DataError("split 'train' has one context, expected two or more: one is held out; raise glue.max_examples")
    places = permute(np.arange(len(contexts)), len(contexts), HELD_OUT_SEED)
    chosen = contexts.take(places[: max(1, len(contexts) // HELD_OUT_SHARE)])
    is_held_out = pc.is_in(rows["context"], value_set=chosen)
    return rows.filter(pc.invert(is_held_out)), rows.filter(is_held_out)


def tokenise_questions(split: str, rows: pa.Table, encoder: Encoder, max_length: int) -> pa.Table:
    """COLUMNS of the windows of published rows; DataError where an answer is not in the context where it should be, or
    a context has no tokens."""
    blocks, number, frame = [], 0, encoder.frame()
    for block in rows.to_batches(max_chunksize=QUESTIONS_AT_ONCE):
        windows: list[dict[str, Any]] = []
        texts = pc.unique(block["context"]).to_pylist()
        contexts = dict(zip(texts, encoder.texts(texts), strict=True))
        asked = encoder.texts(block["question"].to_pylist())
        for row, question in zip(block.to_pylist(), asked, strict=True):
            context, ids = contexts[row["context"]], question.ids[: max_length // QUESTIONS]
            offsets = offsets_of(row["context"], context)
            if not offsets.any():
                raise DataError(f"context {row['context']!r} has no tokens; leave its questions out")
            answer = answer_of(row, offsets)
            places = windows_of(len(context.ids), max_length - len(ids) - frame.special, max_length // STRIDES)
            before, after = [*frame.before, *ids, *frame.between], len(frame.after)
            for (first, end), here in zip(places, most_context(places, len(context.ids)), strict=True):
                label = NO_ANSWER
                if answer and first <= answer[0] and answer[1] < end:
                    label = tuple(len(before) + token - first for token in answer)
                window = {
                    "split": split,
                    "input_ids": [*before, *context.ids[first:end], *frame.after],
                    "token_type_ids": frame.types_of(len(ids), end - first),
                    "label": label,
                    "question": number,
                }
                if split != "train":
                    starts, ends = (np.pad(column, (len(before), after)) for column in offsets[first:end].T)
                    window |= {"starts": starts, "ends": ends, "begins_here": np.pad(here, (len(before), after))}
                    window |= {"context": row["context"], "answers": row["answers"]["text"]}
                windows.append(window)
            number += 1
        blocks.append(pa.Table.from_pylist(windows, schema=pa.schema(COLUMNS)))
    return pa.concat_tables(blocks)


def offsets_of(text: str, context: Encoding) -> np.ndarray:
    """Where each token begins and ends in its text, in characters, without the blanks that it may have (`token 2`).

    Characters of which the tokenizer makes nothing, as combining marks and zero-width spaces, belong to the token
    before them in their word, or to its first: the official scripts cut answers out of the words as they were written.
    A token of blanks alone is at 0 and 0, as those outside of the context: no answer begins or ends with it.
    """
    offsets = np.zeros((len(context), 2), np.int32)
    for token, (begin, end) in enumerate(context.offsets):
        part = text[begin:end]
        if word := part.strip():
            start = begin + len(part) - len(part.lstrip())
            offsets[token] = start, start + len(word)
    words = np.flatnonzero(offsets[:, 1])
    borders = zip([0, *offsets[words, 1].tolist()], [*offsets[words, 0].tolist(), len(text)], strict=True)
    for place, (end, begin) in enumerate(borders):
        parts = BLANKS.split(text[end:begin])  # of the word before, and of the word of this token
        if place:
            offsets[words[place - 1], 1] = end + len(parts[0])
        if place < len(words) and (len(parts) > 1 or not place):
            offsets[words[place], 0] = begin - len(parts[-1])
    return offsets


def answer_of(row: dict[str, Any], offsets: np.ndarray) -> tuple[int, int] | None:
    """The first and last token of a published row's first answer; None where there is none.

    These are the tokens that share a character with it. DataError where its text does not stand where the row says.
    """
    if not row["answers"]["text"]:
        return None
    for text, start in zip(row["answers"]["text"], row["answers"]["answer_start"], strict=True):
        if row["context"][start : start + len(text)] != text:
            raise DataError(f"question {row['id']}: no answer {text!r} at character {start}; get the file again")
    start, end = row["answers"]["answer_start"][0], row["answers"]["answer_start"][0] + len(row["answers"]["text"][0])
    shared = np.flatnonzero((offsets[:, 0] < end) & (start < offsets[:, 1]))
    return (int(shared[0]), int(shared[-1])) if shared.size else None


def windows_of(tokens: int, longest: int, stride: int) -> list[tuple[int, int]]:
    """First token and end of each window of a context; the last one ends with it."""
    windows = [(0, min(longest, tokens))]
    while windows[-1][1] < tokens:
        first = windows[-1][0] + min(stride, longest)
        windows.append((first, min(first + longest, tokens)))
    return windows


def most_context(windows: list[tuple[int, int]], tokens: int) -> list[np.ndarray]:
    """For each window, whether each of its tokens has most context in it: in just one window of all.

    Context is the lower number of tokens on either side, and a hundredth of the window's length.
    """
    scores = np.full((len(windows), tokens), -1.0)
    for scored, (first, end) in zip(scores, windows, strict=True):
        place = np.arange(end - first)
        scored[first:end] = np.minimum(place, place[::-1]) + 0.01 * (end - first)
    best = scores.argmax(axis=0)
    return [best[first:end] == number for number, (first, end) in enumerate(windows)]


def best_spans(logits: np.ndarray, may_begin: np.ndarray, may_end: np.ndarray) -> np.ndarray:
    """The likeliest SPAN of at most LONGEST_ANSWER tokens of each row, of logits `row token 2`.

    `may_begin` and `may_end` are `row token`. Of equally likely spans it is the first to begin, then the shortest. A
    row where none begins has the sum −∞.
    """
    values = logits.astype(np.float64)
    starts, ends = np.where(may_begin, values[..., 0], -np.inf), np.where(may_end, values[..., 1], -np.inf)
    padded = np.pad(ends, ((0, 0), (0, LONGEST_ANSWER - 1)), constant_values=-np.inf)
    reached = np.lib.stride_tricks.sliding_window_view(padded, LONGEST_ANSWER, axis=1)
    sums = starts + reached.max(axis=2)
    rows, first = np.arange(len(sums)), sums.argmax(axis=1)
    spans = np.zeros(len(sums), SPAN)
    spans["first"], spans["last"] = first, first + reached[rows, first].argmax(axis=1)
    spans["span"], spans["none"] = sums[rows, first], values[:, 0].sum(axis=1)
    return spans


def answers_of(
    contexts: Contexts, first: np.ndarray, lengths: np.ndarray, outputs: Iterable[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """The ANSWER of each question, of the logits `row token 2` of some rows at a time.

    `first` and `lengths` say which tokens are a row's. A question's answer is the likeliest span of its windows.
    """
    spans = np.zeros(len(first), SPAN)
    for rows, logits in outputs:
        tokens = first[rows, None] + np.arange(logits.shape[1])
        inside = np.arange(logits.shape[1]) < lengths[rows, None]
        tokens = np.where(inside, tokens, 0)
        may_end = inside & (contexts.ends[tokens] > 0)
        spans[rows] = best_spans(logits, may_end & contexts.begins_here[tokens], may_end)
    windows = np.flatnonzero(np.diff(contexts.groups, prepend=-1))  # the first of each question
    parts = zip(windows, np.split(spans["span"], windows[1:]), strict=True)
    likeliest = np.array([at + part.argmax() for at, part in parts])
    answers = np.zeros(len(windows), ANSWER)
    answers["start"] = contexts.starts[first[likeliest] + spans["first"][likeliest]]
    answers["end"] = contexts.ends[first[likeliest] + spans["last"][likeliest]]
    answers["margin"] = spans["span"][likeliest] - np.minimum.reduceat(spans["none"], windows)
    return answers


def scored_answers(
    held_out: np.ndarray, answers_held_out: np.ndarray, questions: np.ndarray, answers: np.ndarray
) -> dict[str, Any]:
    """`score`, the F1, and its `details`; the `threshold`, chosen on questions held out; the F1 of no answer to any
    question (`majority`); whether the model itself gives none (`constant`)."""
    threshold = best_threshold(held_out, answers_held_out)
    texts = texts_of(questions, answers, threshold)
    details, majority = measured(questions, texts), measured(questions, [""] * len(questions))["f1"]
    scores = {"score": details["f1"], "details": details, "majority": majority}
    return {**scores, "threshold": threshold, "constant": not any(texts)}


def best_threshold(questions: np.ndarray, answers: np.ndarray) -> float:
    """The margin from which answers are given, so that their mean F1 is highest: the margin of one of them.

    Of equally good ones it is the highest, with the fewest answers; just above all margins where no answer is best.
    """
    order = np.argsort(-answers["margin"], kind="stable")
    margins, texts = answers["margin"][order], texts_of(questions, answers, -np.inf)
    gained = np.array(
        [f1(text, question.answers) - f1("", question.answers) for text, question in zip(texts, questions, strict=True)]
    )
    totals = np.cumsum(gained[order])
    is_last = np.append(margins[:-1] != margins[1:], True)  # equal margins are answered together
    best = np.where(is_last, totals, -np.inf).argmax()
    return float(margins[best] if totals[best] > 0 else np.nextafter(margins[0], np.inf))


def texts_of(questions: np.ndarray, answers: np.ndarray, threshold: float) -> list[str]:
    """The answer to each question: a span, or the empty text where the margin is below the threshold."""
    return [
        question.context[answer["start"] : answer["end"]] if answer["margin"] >= threshold else ""
        for question, answer in zip(questions, answers, strict=True)
    ]


def measured(questions: np.ndarray, texts: list[str]) -> dict[str, float]:
    """Exact match and F1 of all questions, of those with an answer, and of those without, whose two are the same.

    A kind of question that does not occur is left out.
    """
    exacts, f1s = (
        np.array([score(text, question.answers) for text, question in zip(texts, questions, strict=True)])
        for score in (exact, f1)
    )
    has_answer = np.array([bool(question.answers) for question in questions])
    details = {
        "exact": exacts,
        "f1": f1s,
        "has_answer_exact": exacts[has_answer],
        "has_answer_f1": f1s[has_answer],
        "no_answer_f1": f1s[~has_answer],
    }
    return {name: float(values.mean()) for name, values in details.items() if values.size}


def exact(text: str, answers: tuple[str, ...]) -> float:
    """Whether a text is one of the answers in normal form: 1 or 0."""
    return float(normal(text) in _expected(answers))


def f1(text: str, answers: tuple[str, ...]) -> float:
    """The highest F1 of the words that a text shares with an answer, 0 to 1; of no words, whether both have none."""
    return max(overlap(text, answer) for answer in _expected(answers)) if normal(text) else exact(text, answers)


def _expected(answers: tuple[str, ...]) -> list[str]:
    """The answers in normal form of which something is left; the empty text where that is none."""
    return [answer for answer in map(normal, answers) if answer] or [""]
