"""Parallel text: the rows that are packed, their pieces, which keep case and spaces, and the scores of written text."""

import gzip
import json
import re

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from sacrebleu.metrics import BLEU, CHRF

from pretrain.parallel import pack, settings_of
from symbert.cli import main
from symbert.pretrain.parallel_text import END, PADDING, START, UNKNOWN, TextPieces
from symbert.pretrain.tasks import count_matches, scores_of

SIDES = ("source", "target")
LINES = {
    "source": ["A cat.", "", "A dog.", "A bird.", "One two three four five six seven.", "A fish.", "A   cow ."],
    "target": ["Ein Kater.", "Leer.", "", "Ein Vogel.", "Zu lang.", "Eins zwei drei vier fünf sechs.", "Eine Kuh ."],
    "validation_source": ["A bird.", "A horse."],
    "validation_target": ["Ein Vogel.", "Eine Kuh."],
}


@pytest.fixture
def files(tmp_path):
    """A few lines by hand, one for each reason to leave a pair out."""
    paths = {key: tmp_path / f"{key}.txt" for key in LINES}
    for key, path in paths.items():
        path.write_text("".join(f"{line}\n" for line in LINES[key]), encoding="utf-8")
    return {key: str(path) for key, path in paths.items()}


def packed(manifest) -> dict:
    return json.loads(manifest.read_text())


def lines_of(manifest, split: str) -> list[list[str]]:
    """What rows say, by side: special tokens are where they must be."""
    pieces, sides = TextPieces(json.loads((manifest.parent / "vocabulary.json").read_text())), []
    for side in SIDES:
        rows = np.load(manifest.parent / f"{split}-{side}.npy").tolist()
        for row in rows:
            end = row.index(END)
            assert set(row[end + 1 :]) <= {PADDING} and PADDING not in row[:end]
            assert row.count(START) == (side == "target") and (side == "source" or row[0] == START)
        sides.append([pieces.decode(row) for row in rows])
    return sides


def test_pairs_are_packed_or_counted_with_the_reason(files, tmp_path, capsys):
    manifest = pack(files, tmp_path, max_length=16)
    assert lines_of(manifest, "train") == [["A cat.", "A cow ."], ["Ein Kater.", "Eine Kuh ."]]
    assert lines_of(manifest, "validation") == [LINES["validation_source"], LINES["validation_target"]]
    facts = packed(manifest)
    assert facts["rows"] == {"train": 2, "validation": 2} and facts["lines"] == {"train": 7, "validation": 2}
    reasons = ("empty_source", "empty_target", "source_too_long", "target_too_long", "held_out")
    assert facts["left_out"] == {"train": dict.fromkeys(reasons, 1), "validation": dict.fromkeys(reasons, 0)}
    assert json.loads((manifest.parent / "references.json").read_text()) == LINES["validation_target"]
    assert "warning: pack pairs: train: 2 of 7 pairs; left out: 1 empty_source, 1 empty" in capsys.readouterr().err
    source, target = ((np.load(tmp_path / f"parallel/train-{side}.npy") != PADDING).sum(1) for side in SIDES)
    assert facts["mean_tokens"] == {"source": source.mean(), "target": (target - 1).mean()}, "read by each stack"


def test_the_longest_pair_that_is_kept_has_as_many_tokens_as_the_limit(files, tmp_path):
    """A source with its END, and what the decoder reads of a target: START and all but END."""
    longest = packed(pack(files, tmp_path, max_length=128))["rows"]["train"]
    source, target = ((np.load(tmp_path / f"parallel/train-{side}.npy") != PADDING).sum(1) for side in SIDES)
    limit = int(max(source.max(), target.max() - 1))
    assert packed(pack(files, tmp_path, max_length=limit))["rows"]["train"] == longest == 4
    assert packed(pack(files, tmp_path, max_length=limit - 1))["rows"]["train"] == 3


def test_the_same_text_has_the_same_hash_and_any_change_another(files, tmp_path):
    """Compressed it is the same text. A sign without a piece changes no row, but the text that is scored."""
    before = packed(pack(files, tmp_path))
    assert packed(pack(files, tmp_path)) == before
    with gzip.open(tmp_path / "target.gz", "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in LINES["target"]))
    again = packed(pack({**files, "target": str(tmp_path / "target.gz")}, tmp_path))
    assert again["hash"] == before["hash"] and again["text_sha256"] != before["text_sha256"]
    hashes = {before["hash"]}
    for word in ("Katze", "☂", "☃"):
        (tmp_path / "validation_target.txt").write_text(f"Ein Vogel.\nEine {word}.\n", encoding="utf-8")
        manifest = pack(files, tmp_path)
        assert json.loads((manifest.parent / "references.json").read_text())[1] == f"Eine {word}."
        hashes.add(packed(manifest)["hash"])
    assert len(hashes) == 4


def test_a_file_of_pairs_is_the_one_that_the_list_above_it_names(files, tmp_path, capsys):
    (tmp_path / "SHA256SUMS").write_text(f"{'0' * 64}  target.txt\n")
    assert main(["pack-pairs", str(settings_of(files, tmp_path))]) == 65
    assert "target.txt: sha256 expected 0000" in capsys.readouterr().err


def test_white_space_and_ends_of_lines_of_other_systems_are_no_text(files, tmp_path):
    before = lines_of(pack(files, tmp_path), "train")
    text = "".join(f"{line}\r\n" for line in LINES["source"])
    (tmp_path / "source.txt").write_bytes(b"\xef\xbb\xbf" + text.replace("A cat", " A \t cat").encode())
    assert lines_of(pack(files, tmp_path), "train") == before


@pytest.mark.parametrize(
    ("content", "changes", "code", "reason"),
    [
        (b"Eins.\nZwei.\n", {}, 65, "source.txt, .*target.txt: one of them alone has line 3"),
        (b"", {}, 65, "target.txt: one of them alone has line 1"),
        (b"Eins.\nK\xe4se.\n", {}, 65, "target.txt: line 2: not UTF-8"),
        (gzip.compress(b"Eins.\n" * 7)[:-6], {}, 65, "target.txt: ends within a compressed frame"),
        (b"\n" * 7, {}, 65, r"none of its 7 pairs with .*target.txt is left \(1 empty_source, 6 empty_target\)"),
        (None, {"vocabulary_size": 20}, 64, "'parallel.vocabulary_size' is 20"),
    ],
    ids=["unequal", "empty", "latin-1", "cut", "blank", "alphabet"],
)
def test_files_that_are_no_pairs_are_refused_in_one_line(files, tmp_path, capsys, content, changes, code, reason):
    target = tmp_path / "target.txt"
    target.write_bytes(target.read_bytes() if content is None else content)
    manifest = settings_of(files, tmp_path, **changes)
    assert main(["pack-pairs", str(manifest)]) == code
    assert re.search(reason, capsys.readouterr().err.splitlines()[-1])
    target.write_text("Changed since the settings were written.\n")
    assert main(["pack-pairs", str(manifest)]) == 65
    assert "target.txt: sha256 expected" in capsys.readouterr().err and not manifest.exists()


TEXT = ["The cat (a tabby) sat; it didn't move.", "Der Kater saß — wie immer — auf dem Ofen!", "猫は静かに座った。"]
PIECES = TextPieces.learned_from(TEXT * 3, 120)


def test_a_line_comes_back_with_its_case_its_spaces_and_its_signs():
    """A sentence without a space was one word, which as a whole was unknown from its 101st letter on."""
    for line in [*TEXT, "the Tabby cat; (didn't) move!", "Kater; 猫 sat。", "猫は静かに座った。" * 20]:
        (ids,) = PIECES.encode([line])
        assert UNKNOWN not in ids and PIECES.decode(ids) == line
        assert PIECES.decode([START, *ids, END, *ids, PADDING]) == line


@given(st.lists(st.text(sorted({*"".join(TEXT)} - {" "}), min_size=1, max_size=12), max_size=6))
def test_all_lines_of_known_letters_come_back(words):
    line = " ".join(words)
    (ids,) = PIECES.encode([line])
    assert UNKNOWN not in ids and PIECES.decode(ids) == line


def test_the_name_of_a_special_token_in_a_text_is_text():
    """As a token, </s> in a web page would end the translation there."""
    pieces = TextPieces.learned_from(["a < b > c / s </s> <pad>"] * 3, 60)
    (ids,) = pieces.encode(["</s> <pad>"])
    assert {PADDING, START, END}.isdisjoint(ids) and pieces.decode(ids) == "</s> <pad>"


REFERENCES = ["The cat sat on the mat.", "Hello there, world!", "It rains — again.", "He didn't go; she did."]
WRITTEN = ["The cat sat on a mat.", "hello world!", "", "He didn't go, she did."]


def test_sums_over_batches_give_the_scores_of_the_whole_text():
    """A process without a share of the held-out pairs adds as many numbers as the others."""
    counts = (count_matches(WRITTEN[part], REFERENCES[part]) for part in (slice(3), slice(3, 4), slice(0)))
    scores = scores_of([float(sum(column)) for column in zip(*counts, strict=True)])
    assert scores == {
        "chrf": CHRF().corpus_score(WRITTEN, [REFERENCES]).score,
        "bleu": BLEU().corpus_score(WRITTEN, [REFERENCES]).score,
    }
    assert 20 < scores["bleu"] < 80 and scores_of(count_matches([], [])) == {"chrf": 0, "bleu": 0}
