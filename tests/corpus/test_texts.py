"""Small texts of a sweep and their rows."""

import json
from collections import Counter

import numpy as np
import pytest

from symbert.corpus import texts
from symbert.corpus.texts import DISTANCE, SPAN, TEXTS, copying, write_text
from symbert.files import write_json
from symbert.pretrain.tasks import PackedRows, verify_manifest, verify_shards

TEXT = "def f(x):\n    return x\n" * 200


@pytest.fixture
def short(monkeypatch) -> None:
    """Texts of 30,000 characters."""
    monkeypatch.setattr(texts, "CHARACTERS", 30_000)


def rows_of(tmp_path, monkeypatch, vocabulary=None, content=TEXT, length=8) -> tuple[dict, dict[str, np.ndarray]]:
    monkeypatch.setitem(TEXTS, "copying", lambda: content)
    settings = {"source": "copying", "vocabulary": vocabulary, "sequence_length": length, "validation_sequences": 10}
    write_json(tmp_path / "settings.json", {**settings, "read": "nowhere"})
    write_text(tmp_path / "manifest.json")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    rows = {split: PackedRows(tmp_path / "manifest.json", split) for split in ("train", "validation")}
    return manifest, {split: packed[np.arange(len(packed))] for split, packed in rows.items()}


def test_the_rows_of_a_text_are_its_characters_each_once(tmp_path, monkeypatch):
    manifest, rows = rows_of(tmp_path, monkeypatch)
    verify_manifest(tmp_path / "manifest.json")
    verify_shards(tmp_path / "manifest.json")
    count = len(TEXT) // 8
    assert manifest["rows"] == {"train": count - 10, "validation": 10}
    names = sorted(set(TEXT))
    decoded = Counter("".join(names[token - 5] for token in row) for split in rows.values() for row in split.tolist())
    assert decoded == Counter(TEXT[start : start + 8] for start in range(0, 8 * count, 8))
    assert manifest["vocabulary_size"] == 5 + len(names)


def test_of_the_synthetic_language_three_quarters_are_copies_from_a_fixed_distance(short):
    text = np.frombuffer(copying().encode("utf-32-le"), np.uint32)
    assert len(text) == 30_000 and copying() == copying()

    def share_of_repeated_spans(distance: int) -> float:
        spans = text.reshape(-1, SPAN)
        skipped = distance // SPAN
        return (spans[skipped:] == spans[:-skipped]).all(axis=1).mean()

    assert share_of_repeated_spans(DISTANCE) == pytest.approx(0.75, abs=0.03)
    assert share_of_repeated_spans(SPAN) == 0
