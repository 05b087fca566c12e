"""Rows by the tokenizers of foreign models beside what stock transformers makes of the same texts."""

import json
import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from msgspec.structs import replace
from transformers import AutoTokenizer

from foreign import FAMILIES, make_model, tokenizer_in, tokenizer_of
from symbert.errors import ConfigError, DataError
from symbert.glue import squad
from symbert.glue.blimp import published_pairs
from symbert.glue.encoder import encoder_of, load_tokenizer
from symbert.glue.forms import TEXTS, formed
from symbert.glue.noise import noisy
from symbert.glue.prepare import SENTENCES, PairFacts, metadata_of, sample
from symbert.glue.sources import read_split
from symbert.glue.squad import HELD_OUT, texts_of
from symbert.glue.tasks import CustomTask, task_named
from symbert.glue.train import read_rows
from symbert.sources import DEMO

LENGTH = 24
SHARP = [
    *("The  cat sat.", " On É mats\u200b, ", "NAÏVE don't", "\U0001f600 3.14 \u4e2d\u6587", "a\tb\nc", "x" * 120),
    *("a [SEP] b <s> </s> [MASK]", "e\u0301 \ufb01 ½ \u00ad", "short", "one two three four five six seven " * 6),
]
FORMED = ["wic", "wsc", "copa", "multirc", "record"]


@pytest.fixture
def model(tmp_path):
    """The folder of a small model of a family."""
    return lambda family: make_model(tmp_path / "models" / family, family)


def stock_rows(folder, texts, max_length=LENGTH):
    """Ids and token types of texts or pairs, as stock transformers cuts them; zeros where it has no types."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    found = [tokenizer(*text, truncation="longest_first", max_length=max_length) for text in texts]
    return [(row["input_ids"], row.get("token_type_ids", [0] * len(row["input_ids"]))) for row in found]


def rows_in(file, **of):
    """Ids and token types of prepared rows that have these values."""
    rows = pq.read_table(file).to_pylist()
    chosen = [row for row in rows if of.items() <= row.items()]
    return [(row["input_ids"], row["token_type_ids"]) for row in chosen]


def own_task(folder, texts):
    """A task of these texts, every third for validation, and the texts of each split."""
    split_of = {"train": [texts[at] for at in range(len(texts)) if at % 3], "validation": texts[::3]}
    names = ["first", "second"][: len(texts[0])]
    for split, chosen in split_of.items():
        labels = [{"label": "yes" if at % 2 else "no"} for at in range(len(chosen))]
        lines = [dict(zip(names, text, strict=True)) | label for text, label in zip(chosen, labels, strict=True)]
        (folder / f"{split}.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    paths = {split: str(folder / f"{split}.jsonl") for split in split_of}
    return CustomTask(columns=names, labels=["no", "yes"], metric="accuracy", **paths).digested(), split_of


def equals_stock(laboratory, folder, texts):
    """Compare rows of a task of the user's own with the stock ones; gives those of its validation split."""
    custom, split_of = own_task(laboratory.results.parent, texts)
    rows = {"custom": custom, "tokenizer": tokenizer_in(folder), "max_length": LENGTH}
    file = laboratory.prepare("own", **rows, allow_partial=False)
    for split, chosen in split_of.items():
        assert rows_in(file, split=split) == stock_rows(folder, chosen)
    return rows_in(file, split="validation")


@pytest.mark.parametrize("family", FAMILIES)
def test_sentences_and_pairs_are_those_of_the_stock_tokenizer(family, laboratory, model):
    folder = model(family)
    equals_stock(laboratory, folder, [(text,) for text in SHARP])
    rows = equals_stock(laboratory, folder, [(a, b) for a in SHARP for b in SHARP[1::3]])
    has_types = family in ("bert", "electra", "distilbert", "deberta-v2", "deberta-v3")
    assert {kind for _, types in rows for kind in types} == ({0, 1} if has_types else {0})
    assert max(len(ids) for ids, _ in rows) == LENGTH
    special = tokenizer_of(family).num_special_tokens_to_add(pair=True)
    assert special == (4 if family in ("roberta", "xlm-roberta", "mpnet", "deberta") else 3)


def changed(name, **changes):
    def change(folder):
        file = folder / name
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def as_before_tokenizer_json(folder):
    """Without tokenizer.json: vocab.txt, or vocab.json and merges.txt."""
    found = json.loads((folder / "tokenizer.json").read_text())["model"]
    (folder / "tokenizer.json").unlink()
    if "merges" in found:
        (folder / "vocab.json").write_text(json.dumps(found["vocab"]))
        (folder / "merges.txt").write_text("#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in found["merges"]))
    else:
        (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in found["vocab"]))


CUT = {"direction": "Right", "max_length": 5, "strategy": "OnlyFirst", "stride": 0}
PADDED = {
    **{"strategy": {"Fixed": 40}, "direction": "Left", "pad_to_multiple_of": None},
    **{"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"},
}


@pytest.mark.parametrize(
    ("family", "change", "is_other"),
    [
        ("bert", changed("tokenizer_config.json", do_lower_case=False), True),
        ("bert", changed("tokenizer.json", truncation=CUT, padding=PADDED), False),
        ("bert", changed("tokenizer_config.json", padding_side="left"), False),
        ("modernbert", changed("tokenizer_config.json", truncation_side="left"), True),
        ("modernbert", changed("tokenizer.json", truncation=CUT, padding=PADDED), False),
        ("roberta", changed("tokenizer_config.json", add_prefix_space=True), True),
        ("bert", as_before_tokenizer_json, False),
        ("roberta", as_before_tokenizer_json, False),
    ],
)
def test_settings_of_a_tokenizer_count_as_stock_transformers_reads_them(family, change, is_other, laboratory, model):
    texts, folder = [(a, b) for a in SHARP[::2] for b in SHARP[::3]], model(family)
    before = equals_stock(laboratory, folder, texts)
    change(folder)
    shutil.rmtree(laboratory.results)
    assert (equals_stock(laboratory, folder, texts) != before) == is_other


@pytest.mark.parametrize("task", FORMED)
def test_tasks_with_a_form_have_the_labels_and_groups_of_bert_and_the_stock_ids_of_their_texts(task, laboratory, model):
    folder, wanted = model("roberta"), {"max_examples": 12, "max_evaluation_examples": 6, "max_length": 64}
    step = laboratory.rows(task, tokenizer=tokenizer_in(folder), **wanted)
    file = laboratory.prepared(step, task)
    tokens = ["input_ids", "token_type_ids"]
    ours, of_bert = (pq.read_table(path).drop_columns(tokens) for path in (file, laboratory.prepare(task, **wanted)))
    assert ours.equals(of_bert)
    row = task_named(task)
    (part,) = formed(row, "train", sample(row, "train", read_split(row, "train", step.source), step.limits))
    texts = [tuple(text[name] for name in TEXTS if name in text) for text in part.to_pylist()]
    assert rows_in(file, split="train") == stock_rows(folder, texts, max_length=64)


def test_noisy_sets_are_the_struck_texts_of_the_clean_rows(laboratory, model):
    folder = model("xlm-roberta")
    clean = laboratory.rows("cola", tokenizer=tokenizer_in(folder), max_length=LENGTH, max_evaluation_examples=None)
    file = laboratory.prepared(laboratory.sets(clean, noise=[0.3], kinds=["drop"]), "cola")
    rows = read_split(task_named("cola"), "validation", clean.source)
    texts = noisy(rows["sentence"].to_pylist(), "drop", 0.3, 1, rows["idx"].to_numpy(), 0)
    assert rows_in(file, set="drop-30 cola") == stock_rows(folder, [(text,) for text in texts])


def test_sets_of_other_domains_are_cut_by_the_same_tokenizer(laboratory, model, tmp_path):
    folder, texts = model("deberta-v3"), [("It rains.", "Rain falls"), ("No É", "Yes"), ("a", "b")]
    columns = dict(zip(("premise", "hypothesis"), zip(*texts, strict=True), strict=True))
    pq.write_table(pa.table({**columns, "label": [0, 1, 2]}), tmp_path / "ax.parquet")
    clean = laboratory.rows("mnli", tokenizer=tokenizer_in(folder), max_length=LENGTH)
    file = laboratory.prepared(laboratory.sets(clean, root=tmp_path, sets=["ax"]), "mnli")
    assert rows_in(file, set="ax") == stock_rows(folder, texts)


CONTEXT = (
    "The Rhine  rises in\nSwitzerland. Köln \U0001f600 is on it, 1.234 km from É\u0301ze; don't \u4e2d (naïve) end."
)


def naive_spans(stock, question, context, place, max_length):
    """Ids of the windows of stock transformers, and for each the first and last token that has a letter of the answer,
    or of the row, where a window lacks some of them."""
    start, end = place
    length = max_length - stock.num_special_tokens_to_add(pair=True) - len(stock(question, add_special_tokens=False)[0])
    overlap = max(0, length - max_length // 3)
    whole = stock(context, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    letters = [at for at in range(start, end) if not context[at].isspace()]
    answer = [token for token, (a, b) in enumerate(whole) if any(a <= at < b for at in letters)]
    windows = stock(
        *(question, context),
        **{"truncation": "only_second", "max_length": max_length, "stride": overlap},
        return_overflowing_tokens=True,
    )
    spans, seen = [], 0
    for number, ids in enumerate(windows["input_ids"]):
        inside = [token for token, text in enumerate(windows.sequence_ids(number)) if text == 1]
        first = number * (length - overlap)
        has_all = first <= answer[0] and answer[-1] < first + len(inside)
        span = [inside[0] + token - first for token in (answer[0], answer[-1])] if has_all else [0, 0]
        types = windows.get("token_type_ids", [[0] * max_length])[0]  # DebertaTokenizer has others in later windows
        spans.append((ids, types[: len(ids)], span))
        seen = max(seen, first + len(inside))
    assert seen == len(whole)
    return spans


@pytest.mark.parametrize("family", FAMILIES)
def test_spans_of_answers_are_those_of_a_naive_matcher_and_are_cut_from_the_context(family, model):
    folder, question = model(family), "Where is it?"
    stock = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    encoder = encoder_of(None, tokenizer_in(folder))
    words = [word.span() for word in re.finditer(r"\S+", CONTEXT)]
    for first in range(len(words)):
        for last in range(first, min(first + 3, len(words))):
            start, end = place = words[first][0], words[last][1]
            row = {"id": "1", "title": "", "context": CONTEXT, "question": question}
            row["answers"] = {"text": [CONTEXT[start:end]], "answer_start": [start]}
            table = squad.tokenise_questions("validation", pa.Table.from_pylist([row]), encoder, 60).to_pylist()
            found = [(window["input_ids"], window["token_type_ids"], window["label"]) for window in table]
            assert found == naive_spans(stock, question, CONTEXT, place, 60)
            for window in table:
                a, b = window["label"]
                if b:
                    assert CONTEXT[window["starts"][a] : window["ends"][b]] == CONTEXT[start:end]
    texts = [CONTEXT[a:b] for window in table for a, b in zip(window["starts"], window["ends"], strict=True)]
    assert all(text == text.strip() for text in texts)


@pytest.mark.parametrize("family", ["roberta", "deberta-v3"])
def test_a_model_that_is_sure_of_every_span_scores_all_answers(family, laboratory, model):
    file = laboratory.prepare("squad2", tokenizer=tokenizer_in(model(family)), max_length=128)
    rows = read_rows(file, task_named("squad2"), torch.device("cpu"))
    for split in ("validation", HELD_OUT):
        part = rows[split]
        logits = np.zeros((len(part), part.lengths.max(), 2))
        for end in (0, 1):
            logits[np.arange(len(part)), part.labels[:, end], end] = 9
        answers = squad.answers_of(part.contexts, part.first, part.lengths, [(np.arange(len(part)), logits)])
        texts = texts_of(part.truth, answers, 0)
        assert any(texts) and all(text in (q.answers or [""]) for text, q in zip(texts, part.truth, strict=True))


def test_pairs_of_sentences_are_those_of_the_stock_tokenizer_and_its_mask_is_told(laboratory, model):
    folder = model("roberta")
    step = laboratory.pairs(tokenizer=tokenizer_in(folder))
    file = laboratory.prepared(step, "blimp")
    published = pq.read_table(DEMO / published_pairs("wh_island").location).to_pylist()
    found = [row for row in pq.read_table(file).to_pylist() if row["paradigm"] == "wh_island"]
    for side in SENTENCES:
        expected = [ids for ids, _ in stock_rows(folder, [(pair[side],) for pair in published], max_length=64)]
        assert [row[side] for row in found] == expected
    assert metadata_of(file, PairFacts).mask == tokenizer_of("roberta").mask_token_id
    changed("tokenizer_config.json", mask_token=None)(folder)
    with pytest.raises(ConfigError, match=r"no mask.*'blimp'"):
        laboratory.prepared(laboratory.pairs(tokenizer=tokenizer_in(folder)), "blimp")


def test_models_with_the_same_tokenizer_share_rows_and_others_do_not(laboratory, model, tmp_path):
    folder = model("bert")
    other = shutil.copytree(folder, tmp_path / "other")
    make_model(other, "bert", seed=1, hidden_size=16)
    keys = [laboratory.rows("rte", tokenizer=tokenizer_in(place)).key for place in (folder, other)]
    assert keys[0] == keys[1]
    assert laboratory.rows("rte", tokenizer=replace(tokenizer_in(other), model_type="distilbert")).key != keys[0]
    changed("tokenizer_config.json", do_lower_case=False)(other)
    assert laboratory.rows("rte", tokenizer=tokenizer_in(other)).key != keys[0]


def test_a_tokenizer_that_was_changed_since_the_start_is_refused(laboratory, model):
    folder = model("bert")
    step = laboratory.rows("rte", tokenizer=tokenizer_in(folder))
    assert {str(folder / "tokenizer.json"), str(folder / "tokenizer_config.json")} <= set(step.reads_for("rte"))
    changed("tokenizer_config.json", do_lower_case=False)(folder)
    with pytest.raises(DataError, match=r"tokenizer_config\.json: changed since"):
        laboratory.prepared(step, "rte")


def test_other_files_of_the_folder_do_not_count(model):
    folder = model("bert")
    known = tokenizer_in(folder)
    (folder / "added_tokens.json").write_text('{"matrix": 300}')
    assert (
        "matrix" not in load_tokenizer(known).get_vocab()
        and "matrix" in load_tokenizer(tokenizer_in(folder)).get_vocab()
    )


REFUSED = {
    "no vocabulary": ({"tokenizer_config.json": "{}"}, "bert", "no vocabulary in tokenizer_config.json"),
    "damaged": ({"tokenizer.json": "{"}, "modernbert", "cannot read its tokenizer"),
    "sentencepiece": ({"spm.model": "x"}, "deberta-v2", "pip install sentencepiece protobuf"),
    "python": (
        {"tokenizer_config.json": '{"tokenizer_class": "ByT5Tokenizer"}'},
        "t5",
        "ByT5Tokenizer.*Python",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tokenizer_of_which_no_rows_can_be_made_is_refused_in_one_line(case, tmp_path):
    """Without a vocabulary, transformers makes one of five tokens, by which every word is unknown."""
    files, model_type, told = REFUSED[case]
    for name, content in {**files, "config.json": json.dumps({"model_type": model_type})}.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"^{tmp_path}: .*{told}") as error:
        load_tokenizer(tokenizer_in(tmp_path))
    assert "; " in str(error.value) and "\n" not in str(error.value)
