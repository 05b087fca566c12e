"""Small texts of a sweep and their rows."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from corpus.oscar import plan
from studies import texts as of_studies
from symbert.configuration import CustomText
from symbert.corpus import texts
from symbert.corpus.texts import DISTANCE, SPAN, TEXTS, WriteText, copying, read_of, write_text
from symbert.errors import ConfigError
from symbert.pretrain.tasks import PackedRows, verify_manifest, verify_shards

TEXT = "def f(x):\n    return x\n" * 200


def step_of(source, vocabulary=None, length=8, held_out=10, read=None) -> WriteText:
    text = CustomText(source=source, vocabulary=vocabulary, sequence_length=length, validation_sequences=held_out)
    return WriteText(text=text, read=read or read_of(source))


def rows_of(tmp_path, monkeypatch, vocabulary=None, content=TEXT, length=8) -> tuple[dict, dict[str, np.ndarray]]:
    monkeypatch.setitem(TEXTS, "copying", lambda: content)
    file = plan(tmp_path / "text", step_of("copying", vocabulary, length)) / "manifest.json"
    write_text(file)
    manifest = json.loads(file.read_text())
    rows = {split: PackedRows(file, split) for split in ("train", "validation")}
    return manifest, {split: packed[np.arange(len(packed))] for split, packed in rows.items()}


def test_the_rows_of_a_text_are_its_characters_each_once(tmp_path, monkeypatch):
    manifest, rows = rows_of(tmp_path, monkeypatch)
    verify_manifest(tmp_path / "text/manifest.json")
    verify_shards(tmp_path / "text/manifest.json")
    count = len(TEXT) // 8
    assert manifest["rows"] == {"train": count - 10, "validation": 10}
    shares = np.unique(rows["validation"], return_counts=True)[1] / rows["validation"].size
    assert manifest["unigram_entropy"] == pytest.approx(-(shares * np.log(shares)).sum())
    names = sorted(set(TEXT))
    decoded = Counter("".join(names[token - 5] for token in row) for split in rows.values() for row in split.tolist())
    assert decoded == Counter(TEXT[start : start + 8] for start in range(0, 8 * count, 8))
    assert manifest["vocabulary_size"] == 5 + len(names)


def test_of_the_synthetic_language_three_quarters_are_copies_from_a_fixed_distance(monkeypatch):
    monkeypatch.setattr(texts, "CHARACTERS", 30_000)
    text = np.frombuffer(copying().encode("utf-32-le"), np.uint32)
    assert len(text) == 30_000 and copying() == copying()

    def share_of_repeated_spans(distance: int) -> float:
        spans = text.reshape(-1, SPAN)
        skipped = distance // SPAN
        return (spans[skipped:] == spans[:-skipped]).all(axis=1).mean()

    assert share_of_repeated_spans(DISTANCE) == pytest.approx(0.75, abs=0.03)
    assert share_of_repeated_spans(SPAN) == 0


def test_of_the_directed_text_the_symbol_before_tells_a_copy_and_the_one_ahead_its_class_alone():
    symbols = np.array([*map(ord, of_studies.directed())]) - ord("a")
    before, after = symbols[:-DISTANCE].reshape(-1, SPAN), symbols[DISTANCE:].reshape(-1, SPAN)
    is_drawn = np.ones(len(before), bool)
    for _ in range(3):  # no span of images is a source
        counts = np.zeros((64, 64), int)
        np.add.at(counts, (before[is_drawn].ravel(), after[is_drawn].ravel()), 1)
        images = (counts - np.outer(counts.sum(1), counts.sum(0)) / counts.sum()).argmax(1)
        few = [symbol for symbol, _ in Counter(images.tolist()).most_common(16)]
        is_drawn = ~np.isin(before, few).all(1)
    assert sorted(Counter(images.tolist()).values()) == [4] * 16, "four symbols have one image"
    is_image = (after == images[before]).all(1)
    assert is_image.mean() == pytest.approx(0.75 / 1.75, abs=0.01), "three quarters, where the source is no image"
    assert not (is_image[2:] & is_image[:-2]).any()


@pytest.mark.parametrize(
    ("text", "length"), [("repeated", 1), ("swapped", 2), ("cycled", 64), ("chained", 2), ("neighbours", 2)]
)
def test_the_controls_have_images_of_a_map_of_symbols_with_rounds_of_one_length(text, length):
    symbols = np.array([*map(ord, getattr(of_studies, text)())]) - ord("a")
    before, after = symbols[:-DISTANCE].reshape(-1, SPAN), symbols[DISTANCE:].reshape(-1, SPAN)
    counts = np.zeros((64, 64), int)
    np.add.at(counts, (before.ravel(), after.ravel()), 1)
    images = (counts - np.outer(counts.sum(1), counts.sum(0)) / counts.sum()).argmax(1)
    rounds = [np.linalg.matrix_power(np.eye(64, dtype=int)[images], power).diagonal() for power in range(1, length + 1)]
    assert rounds[-1].all() and not any(places.any() for places in rounds[:-1])
    is_image = (after == images[before]).all(1)
    chained = (is_image[2:] & is_image[:-2]).mean()
    assert (is_image.mean(), chained) == pytest.approx((0.75, 0.5625) if text == "chained" else (3 / 7, 0), abs=0.01)


def test_of_the_addressed_text_a_value_is_found_by_its_key_at_no_fixed_distance():
    pairs = np.array([*map(ord, of_studies.addressed())]).reshape(-1, 2, 12, 2) - ord("a")
    keys, values = pairs[..., 0], pairs[..., 1]
    assert keys.max() < 32 <= values.min() and values.max() < 64
    assert (np.sort(keys[:, 0]) == np.sort(keys[:, 1])).all() and (np.diff(np.sort(keys[:, 0])) > 0).all()
    places = (keys[:, 1, :, None] == keys[:, 0, None, :]).argmax(-1)
    follows = np.take_along_axis(values[:, 0], places, 1) == values[:, 1]
    chance = ((1 / np.arange(1, 33)) ** 2).sum() / (1 / np.arange(1, 33)).sum() ** 2
    assert follows.mean() == pytest.approx(0.75 + 0.25 * chance, abs=0.01)
    distances = 24 + 2 * (np.arange(12) - places)
    assert np.bincount(distances.ravel()).max() < 0.1 * distances.size


@pytest.mark.usefixtures("folder")
def test_a_function_of_the_users_own_returns_a_text(tmp_path):
    functions = {"cycle": "'abcd' * 500", "short": "'abcd' * 3", "nothing": "None"}
    Path("cycles.py").write_text("".join(f"def {name}(): return {text}\n" for name, text in functions.items()))
    plan(tmp_path / "text", step_of("cycles:cycle"))
    write_text(tmp_path / "text/manifest.json")
    rows = PackedRows(tmp_path / "text/manifest.json", "train")
    assert len(rows) == 240 and (rows[np.arange(240)] == [5, 6, 7, 8] * 2).all()
    plan(tmp_path / "text", step_of("cycles:cycle", read="0123456789abcdef"))
    with pytest.raises(ConfigError, match=r"the text 'cycles:cycle' is \w{16} today, and was 0123456789abcdef"):
        write_text(tmp_path / "text/manifest.json")
    for source, count, told in (
        ("cycles:cycle", 250, "has 250 rows of 8 tokens, and validation takes 250; lower 'validation_sequences' or"),
        ("cycles:short", 1, "has 1 rows of 8 tokens, and validation takes 1; lower 'sequence_length'"),
        ("cycles:nothing", 10, "text 'cycles:nothing': returned NoneType, expected str"),
    ):
        plan(tmp_path / "text", step_of(source, held_out=count))
        with pytest.raises(ConfigError, match=told):
            write_text(tmp_path / "text/manifest.json")
