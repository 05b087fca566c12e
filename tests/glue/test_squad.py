"""SQuAD 2.0: scores against the rules of its evaluation script, windows of contexts, answers as tokens and back, the
likeliest span, the model, and the publisher's rows as far as the mirror has them."""

import json
import math
import re
import string
from collections import Counter
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch.nn import functional as F
from transformers import AutoModelForQuestionAnswering, BertForQuestionAnswering

from glue.laboratory import records_in
from model.models import stock
from symbert.corpus.wordpiece import encoder
from symbert.errors import DataError, DivergedError
from symbert.glue import squad
from symbert.glue.encoder import Encoder
from symbert.glue.export import export_classifier
from symbert.glue.prepare import TaskFacts, metadata_of
from symbert.glue.sources import published_schema
from symbert.glue.squad import ANSWER, Question, best_threshold, exact, f1, measured, texts_of
from symbert.glue.tasks import published_split, task_named
from symbert.glue.train import Packed, load_classifier, predict, read_rows, reset_head
from symbert.model.bert import SpanModel


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


def windowed(tokenizer, *rows, split="validation", max_length=LONG):
    table = pa.Table.from_pylist(list(rows))
    return squad.tokenise_questions(split, table, Encoder(tokenizer, mask=None), max_length).to_pylist()


def test_windows_do_not_depend_on_how_many_questions_are_read_at_once(tokenizer, monkeypatch):
    """All at once took two gigabytes of SQuAD's training rows, as much as the rule asks for."""
    contexts = [" ".join(f"w{place}" for place in range(start, 40)) for start in (0, 30, 5, 20)]
    rows = [published(context, "w35", number=number) for number, context in enumerate(contexts)]
    expected = windowed(tokenizer, *rows)
    assert [window["question"] for window in expected] == [0, 0, 1, 2, 2, 3]
    for block in (1, 2, 3):
        monkeypatch.setattr(squad, "QUESTIONS_AT_ONCE", block)
        assert windowed(tokenizer, *rows) == expected


def pieces(window):
    return " ".join(PIECES[token] for token in window["input_ids"])


def marked(window):
    """The pieces of the span that the window is labelled with."""
    first, last = window["label"]
    return " ".join(PIECES[token] for token in window["input_ids"][first : last + 1])


def recovered(window, first, last):
    return window["context"][window["starts"][first] : window["ends"][last]]


def test_a_short_context_is_one_row_with_the_tokens_of_its_answer(tokenizer):
    (row,) = windowed(tokenizer, published("The w1 of w2.", "w2", "of w2"))
    assert pieces(row) == "[CLS] who ? [SEP] the w1 of w2 . [SEP]"
    assert row["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
    assert row["label"] == [7, 7] and row["answers"] == ["w2", "of w2"]
    assert row["begins_here"] == [False] * 4 + [True] * 5 + [False]
    assert recovered(row, 4, 8) == "The w1 of w2." and row["starts"][3] == row["ends"][9] == 0
    (row,) = windowed(tokenizer, published("The w1."))
    assert row["label"] == [0, 0] and marked(row) == "[CLS]" and row["answers"] == []


def test_a_word_of_several_pieces_and_a_letter_with_an_accent_are_recovered_whole(tokenizer):
    context = "w1 Maizière of"
    (row,) = windowed(tokenizer, published(context, "Maizière"))
    assert marked(row) == "mai ##zi ##ere" and recovered(row, *row["label"]) == "Maizière"
    (row,) = windowed(tokenizer, published(context, "zière"))
    assert marked(row) == "##zi ##ere" and recovered(row, *row["label"]) == "zière"
    (row,) = windowed(tokenizer, published(context, "aiz"))  # inside of pieces: all that it touches
    assert marked(row) == "mai ##zi" and recovered(row, *row["label"]) == "Maizi"


MARKED = "“Mai\u0301” a\u0301 (mai\u0323zi\u0323) \u200bmai\u200b w1–mai\u0301\u0302, \u0301 w2\u200d"


def test_an_answer_that_ends_with_a_combining_mark_is_predicted_as_it_was_written(tokenizer):
    """Offsets of tokens leave out what the tokenizer does: "mai" was the nearest to "mai\u0301", and exact match 0."""
    answers = {
        **{"Mai\u0301": "mai", "mai\u0323zi\u0323": "mai ##zi", "\u200bmai\u200b": "mai", "w2\u200d": "w2"},
        **{"mai\u0301\u0302": "mai", "\u200bmai\u200b w1–mai\u0301\u0302": "mai w1 [UNK] mai"},
    }
    for answer, tokens in answers.items():
        (row,) = windowed(tokenizer, published(MARKED, answer))
        text = recovered(row, *row["label"])
        assert (marked(row), text) == (tokens, answer) and official(text, [answer]) == (1, 1.0)
    (row,) = windowed(tokenizer, published("\u200b\u0301w1\u0301 w2", "w1"))
    assert recovered(row, *row["label"]) == "\u200b\u0301w1\u0301"


letters = st.text("aé1\u0301\u0327\u200b한ẞİ中-.", min_size=1, max_size=4)


@given(st.lists(letters, min_size=1, max_size=5), st.data())
def test_the_words_of_an_answer_are_recovered_as_the_official_scripts_cut_them(tokenizer, words, data):
    """These cut at blanks: from the word of the first token to that of the last (get_final_text of run_squad.py, where
    its alignment fails because the tokenizer left characters out)."""
    context = " ".join(words)
    encoded = tokenizer.encode(context, add_special_tokens=False)
    offsets = squad.offsets_of(context, encoded)
    has_tokens = [bool(tokenizer.encode(word, add_special_tokens=False).ids) for word in words]
    if any(has_tokens):
        first, last = sorted(data.draw(st.sampled_from(np.flatnonzero(has_tokens).tolist())) for _ in range(2))
        start = len(" ".join(words[:first])) + (first > 0)
        end = len(" ".join(words[: last + 1]))
        answer = np.flatnonzero((offsets[:, 0] < end) & (start < offsets[:, 1]))
        assert context[offsets[answer[0], 0] : offsets[answer[-1], 1]] == context[start:end]


def test_a_long_context_has_windows_a_stride_apart_and_the_answer_where_it_is_whole(tokenizer):
    """36 less 2 of the question and 3 others: windows of 31 tokens at 0 and 12."""
    context = " ".join(f"w{number}" for number in range(40))
    answers = {"w11 w12": 1, "w0": 1, "w39": 1, "w30 w31": 1, "w30": 2, "w12": 2, "w11": 1}
    for answer, windows in answers.items():
        rows = windowed(tokenizer, published(context, answer))
        assert [len(row["input_ids"]) for row in rows] == [36, 4 + 28 + 1]
        assert pieces(rows[1]).startswith("[CLS] who ? [SEP] w12 w13")
        found = [row for row in rows if row["label"] != [0, 0]]
        whole = [row for row in rows if f" {answer} " in pieces(row)]
        assert found == whole and all(marked(row) == answer for row in found)
        assert len(found) == windows, "across the begin of the second, only the first has it whole"
    answer = " ".join(f"w{number}" for number in range(5, 37))  # no window has it whole
    assert [row["label"] for row in windowed(tokenizer, published(context, answer))] == [[0, 0]] * 2


def test_a_long_question_is_cut_and_makes_windows_shorter(tokenizer):
    rows = windowed(tokenizer, published(" ".join(["w1"] * 40), question=" ".join(["who"] * 9)))
    assert pieces(rows[0]).startswith("[CLS]" + " who" * 6 + " [SEP]") and len(rows[0]["input_ids"]) == LONG
    assert len(rows) == 3, "27 tokens of 40 at 0, 12 and 24"


def test_an_answer_that_does_not_stand_where_it_should_is_refused(tokenizer):
    row = published("The w1.", "w1")
    row["answers"]["answer_start"] = [5]
    with pytest.raises(DataError, match="question q0: no answer 'w1' at character 5; get the file again"):
        windowed(tokenizer, row)
    with pytest.raises(DataError, match="context ' ' has no tokens"):
        windowed(tokenizer, published(" "))


@given(st.integers(1, 400), st.integers(1, 100), st.integers(1, 60))
def test_windows_cover_every_token_and_each_is_read_in_one(tokens, longest, stride):
    windows = squad.windows_of(tokens, longest, stride)
    assert windows[0][0] == 0 and windows[-1][1] == tokens
    assert all(end - first == min(longest, tokens - first) for first, end in windows)
    assert all(later[0] - earlier[0] == min(stride, longest) for earlier, later in pairwise(windows))
    assert all(end < tokens for _, end in windows[:-1]), "none is needless"
    read = np.zeros(tokens, int)
    for (first, end), here in zip(windows, squad.most_context(windows, tokens), strict=True):
        read[first:end] += here
    assert (read == 1).all()


def test_some_contexts_are_held_out_with_all_their_questions():
    rows = pa.Table.from_pylist([{"context": f"c{number // 3}", "id": number} for number in range(120)])
    kept, held_out = squad.hold_out(rows)
    contexts = [set(part["context"].to_pylist()) for part in (kept, held_out)]
    assert len(contexts[1]) == 2 and not contexts[0] & contexts[1]
    assert held_out.num_rows == 6 and sorted(kept["id"].to_pylist() + held_out["id"].to_pylist()) == list(range(120))
    assert squad.hold_out(rows)[1] == held_out, "the same for all models"
    with pytest.raises(DataError, match=r"one context.*raise glue.max_examples"):
        squad.hold_out(rows.slice(0, 3))


values = st.integers(-3, 3).map(float)
masked = st.lists(st.tuples(values, values, st.booleans(), st.booleans()), min_size=1, max_size=70)


@given(masked)
def test_the_likeliest_span_is_that_of_a_search_through_all(tokens):
    logits = np.array([[token[:2] for token in tokens]], np.float32)
    may_begin, may_end = (np.array([[token[place] for token in tokens]]) for place in (2, 3))
    best, (span,) = None, squad.best_spans(logits, may_begin, may_end)
    for first, (start, *_) in enumerate(tokens):
        for last in range(first, min(first + squad.LONGEST_ANSWER, len(tokens))):
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
    rows = windowed(tokenizer, published(context), published("The w1.", "w1"))
    lengths = np.array([len(row["input_ids"]) for row in rows])
    starts, ends, here = (np.concatenate([row[name] for row in rows]) for name in ("starts", "ends", "begins_here"))
    questions = np.array([Question(context, ()), Question("The w1.", ("w1",))], dtype=object)
    contexts = squad.Contexts(starts, ends, here, np.array([0, 0, 1]), questions)
    logits = np.full((3, LONG, 2), -np.inf)
    for row, length in enumerate(lengths):
        logits[row, :length] = 0
    logits[0, 0], logits[1, 0], logits[2, 0] = (1, 2), (3, 4), (1, 1)
    logits[0, 4 + 5, 0], logits[0, 4 + 6, 1] = 6, 6  # w5 w6
    logits[1, 4 + 0, 0] = 50  # w12, which has more context in the first window
    logits[1, 2, 0] = logits[1, 2, 1] = 90  # a token of the question
    logits[1, 4 + 27, 0], logits[1, 4 + 27, 1] = 4, 4.5  # w39
    logits[2, 4, 0], logits[2, 5, 1] = 1, 2  # the w1
    parts = ((rows, logits[rows]) for rows in (np.array([2]), np.array([1, 0])))
    answers = squad.answers_of(contexts, np.cumsum(lengths) - lengths, lengths, parts)
    assert texts_of(questions, answers, -np.inf) == ["w5 w6", "The w1"] and answers.dtype == ANSWER
    assert answers["margin"].tolist() == [12 - 3, 3 - 2]


TASK = task_named("squad2")


def test_every_real_answer_is_recovered_from_its_tokens(mirror):
    """The first answer of each of 1,000 questions: in normal form for all but those that end inside of a word piece."""
    table = pq.read_table(mirror / published_split(TASK, "validation").location)
    rows = table.cast(published_schema(TASK).remove_metadata())
    tokenizer = encoder(mirror / "google-bert/bert-base-uncased/vocab.txt")
    asked = [row for row in rows.to_pylist() if row["answers"]["text"]]
    assert (rows.num_rows, len(asked)) == (1000, 516)
    recovered = []
    for row in asked:
        context = tokenizer.encode(row["context"], add_special_tokens=False)
        offsets = squad.offsets_of(row["context"], context)
        first, last = squad.answer_of(row, offsets)
        text = row["context"][offsets[first, 0] : offsets[last, 1]]
        assert row["answers"]["text"][0].strip() in text
        recovered.append(exact(text, row["answers"]["text"][:1]))
        assert f1(text, row["answers"]["text"][:1]) > 0
    assert np.mean(recovered) > 0.99


FEW = {"max_length": 40, "max_examples": 80, "max_evaluation_examples": 40}


@pytest.fixture
def prepared(laboratory):
    """The prepared stand-in, of some questions in rows of at most 40 tokens."""
    return laboratory.prepare("squad2", **FEW)


def test_a_checkpoint_is_fine_tuned_and_scored_with_the_threshold_of_what_was_held_out(laboratory, prepared):
    scores = laboratory.finetune(["squad2"], [1, 2], rows=FEW)
    rows = read_rows(prepared, TASK, torch.device("cpu"))
    assert metadata_of(prepared, TaskFacts).rows == {"train": 80, "validation": 40}
    assert len(rows["validation"].truth) == 40 < len(rows["validation"]), "some contexts are longer than a row"
    assert 1 <= len(rows["held_out"].truth) <= 8 and max(each.lengths.max() for each in rows.values()) == 40
    for seed, record in enumerate(records_in(scores), start=1):
        details, kept = record["details"]["squad2"], scores.parent / f"finetuned/squad2/seed-{seed}.json"
        predicted = json.loads(kept.read_text())["predictions"]
        answers = {
            split: np.array([tuple(each) for each in predicted[split]], ANSWER) for split in ("validation", "held_out")
        }
        threshold = best_threshold(rows["held_out"].truth, answers["held_out"])
        assert record["thresholds"] == {"squad2": threshold}
        texts = texts_of(rows["validation"].truth, answers["validation"], threshold)
        assert details == measured(rows["validation"].truth, texts) and record["metrics"]["squad2"] == details["f1"]
        unanswerable = np.mean([not question.answers for question in rows["validation"].truth])
        assert record["majority"] == {"squad2": unanswerable} and 0.3 < unanswerable < 0.7
        assert record["constant_prediction"] == (not any(texts))


def test_stock_transformers_loads_the_exported_model_with_equal_logits(tmp_path, laboratory, prepared, vocabulary):
    start = laboratory.checkpoint()
    (start / "vocab.txt").write_text(vocabulary.read_text())
    scores = laboratory.finetune(["squad2"], rows=FEW, keep=300)
    weights = scores.parent / "finetuned/squad2/seed-1.safetensors"
    export_classifier(weights, start, tmp_path / "out")
    stock = AutoModelForQuestionAnswering.from_pretrained(tmp_path / "out").eval()
    assert type(stock) is BertForQuestionAnswering
    assert "BertForQuestionAnswering" in (tmp_path / "out/README.md").read_text()
    ours = load_classifier(start, 2, 0.0, SpanModel).eval()
    ours.load_state_dict(load_file(weights))
    batch = Packed(ours).batch(read_rows(prepared, TASK, torch.device("cpu"))["validation"], np.array([0]))
    outputs = stock(batch.input_ids[None], token_type_ids=batch.token_type_ids[None])
    expected = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    torch.testing.assert_close(Packed(ours).logits(batch), expected, rtol=0, atol=1e-5)


@pytest.fixture
def rows(prepared):
    """Rows of some questions of the stand-in, of which some have several windows."""
    return read_rows(prepared, TASK, torch.device("cpu"))["validation"]


@pytest.fixture
def model(laboratory):
    """A model of spans, in float64."""
    model = load_classifier(laboratory.checkpoint("original"), 2, 0.0, SpanModel).double()
    reset_head(model, 1)
    return model


def test_logits_loss_and_gradients_are_those_of_stock_transformers(rows, model):
    """Of rows padded to the longest, whose other slots take no part."""
    theirs, index = stock(model, BertForQuestionAnswering), np.arange(len(rows))
    trainee = Packed(model)
    batch, tokens = trainee.batch(rows, index), [trainee.batch(rows, np.array([row])) for row in index]
    ids, types, attended = torch.zeros(3, len(rows), rows.lengths.max(), dtype=torch.int64)
    for row, (alone, length) in enumerate(zip(tokens, rows.lengths, strict=True)):
        ids[row, :length], types[row, :length], attended[row, :length] = alone.input_ids, alone.token_type_ids, 1
    outputs = theirs(ids, attended, types)
    expected = torch.stack([outputs.start_logits, outputs.end_logits], dim=-1)
    expected = expected.masked_fill(attended[..., None] == 0, -math.inf)
    found = trainee.logits(batch)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)
    start, end = (F.cross_entropy(expected[..., place], batch.labels[:, place]) for place in (0, 1))
    loss = rows.head.loss(found, batch.labels)
    assert loss.item() == pytest.approx(((start + end) / 2).item(), abs=1e-12)
    loss.backward()
    ((start + end) / 2).backward()
    gradients = {name: weights.grad for name, weights in theirs.named_parameters()}
    for name, weights in model.named_parameters():
        torch.testing.assert_close(weights.grad, gradients[name], rtol=0, atol=1e-12, msg=name)


def test_spans_of_logits_that_are_not_finite_are_no_answers(rows, model):
    """Slots without a token have −∞ on purpose: these are not meant."""
    predict(Packed(model), rows)
    for value in (math.inf, -math.inf, math.nan):
        model.qa_outputs.bias.data[1] = value
        with pytest.raises(DivergedError, match="a logit is not finite"):
            predict(Packed(model), rows)
