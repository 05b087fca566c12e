import random
import string
import unicodedata

import pytest
from hypothesis import given, settings

from corpus.stock import hard_texts, stock_ids
from symbert.corpus import wordpiece
from symbert.corpus.wordpiece import Reference, encoder, never_occurring, read_vocabulary, warn_of_misfit
from symbert.errors import DataError


def test_the_trained_vocabulary_has_the_asked_size_special_tokens_first_and_no_hash_order(vocabulary):
    pieces = read_vocabulary(vocabulary)
    assert list(pieces)[:5] == ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert len(pieces) <= 120
    inner = [piece for piece in pieces if len(piece) == 3 and piece.startswith("##")]
    assert inner == sorted(inner)
    assert "function" in pieces


def test_an_unusable_vocabulary_is_named(tmp_path):
    path, special = tmp_path / "vocab.txt", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    numbers = [*special, *map(str, range(65_532))]
    for lines in (["[PAD]", "a"], [*special, "a", "a"], numbers, ["\udcff"]):
        path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
        with pytest.raises(DataError, match=r"vocab\.txt:"):
            read_vocabulary(path)


def test_an_empty_line_and_a_pointer_and_a_piece_that_occurs_twice_are_named(tmp_path):
    """An empty line counted as a piece."""
    path, special = tmp_path / "vocab.txt", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    cases = {
        ":7: an empty line": [*special, "a", "", "b"],
        ":7: ": [*special, "a", "", ""],
        "'a' occurs": ["a", *special, "a"],
    }
    cases["byte order mark"] = [f"\ufeff{special[0]}", *special[1:]]
    for named, lines in {**cases, "Git LFS": ["version https://git-lfs.github.com/spec/v1", "size 9"]}.items():
        path.write_text("\n".join([*lines, ""]))
        with pytest.raises(DataError, match=rf"vocab\.txt.*{named}"):
            read_vocabulary(path)


def test_pieces_that_no_text_can_give_are_told_of_a_vocabulary_of_another_case(vocabulary, tmp_path, capsys):
    """A cased vocabulary was trained to the end, and half of its pieces never occurred."""
    special, rest = (pieces := list(read_vocabulary(vocabulary)))[:5], pieces[5:]
    accents = str.maketrans("aoue", "äöüé")
    kinds = {
        "fits": rest,
        "ideographs": [*rest, "中", "##中", "ß", "[unused1]"],
        "capitals": [*rest, *(piece.capitalize() for piece in rest)],
        "accents": [piece.translate(accents) for piece in rest],
    }
    for kind, kept in kinds.items():
        path = tmp_path / f"{kind}.txt"
        path.write_text("\n".join(dict.fromkeys([*special, *kept])))
        tokenizer = encoder(path)
        lost, text = set(never_occurring(tokenizer)), " ".join(piece.removeprefix("##") for piece in kept)
        assert lost.isdisjoint(tokenizer.encode(text).tokens)
        decomposed = (unicodedata.normalize("NFD", piece.lower()) for piece in kept)
        unchanged = {"".join(c for c in word if unicodedata.category(c) != "Mn") for word in decomposed}
        assert lost == set(kept) - unchanged
        warn_of_misfit(path, tokenizer)
        told = capsys.readouterr().err
        assert (f"{len(lost)} of " in told) == (kind in ("capitals", "accents")) == bool(told)


@pytest.fixture(scope="module")
def reference(vocabulary):
    return Reference(encoder(vocabulary))


@settings(max_examples=300)
@given(hard_texts)
def test_ids_equal_those_of_hugging_face_wherever_a_text_is_cut(vocabulary, reference, text):
    [expected] = stock_ids(vocabulary, [text])
    assert reference.tokenizer.encode(text).ids == reference.encode(text).tolist() == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wordpiece, "CHUNK", 5)
        assert reference.encode(text).tolist() == expected


BASE64 = "".join(random.Random(1).choices(string.ascii_letters + string.digits + "+/", k=100_000))


@pytest.mark.parametrize(
    ("text", "longest"),
    [
        (f"data:image/png;base64,{BASE64}== end", 16_000),
        (f"[{'a' * 50_000}] [{'1' * 50_000}SEP] [SEP]{'b' * 50_000}[MASK]", 16_000),
        ("-" * 20_000 + "]" * 20_000 + "_|" * 20_000, 16_000),
        ("a" * 50_000 + "\u0301" + "b" * 50_000 + "é" + "c" * 50_000, 310),
        ("жa" * 50_000 + "? " + "ж\u0301" * 50_000, 100_001),  # whole: memory grows with words of other scripts alone
    ],
)
def test_a_long_text_without_blanks_is_encoded_in_small_chunks(vocabulary, reference, text, longest):
    """Of 4 MB of base64 in a line tokenizers took 0.5 GB, of as many hyphens 1.7 GB."""
    assert max(map(len, reference.chunks(text))) <= longest
    assert reference.encode(text).tolist() == stock_ids(vocabulary, [text])[0]
