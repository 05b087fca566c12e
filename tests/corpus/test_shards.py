import tracemalloc
from collections import Counter
from functools import partial
from itertools import chain, pairwise

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from corpus.oscar import prepare_texts, step_of_parts, write_settings
from symbert.configuration import PackSettings
from symbert.corpus import shards
from symbert.corpus.counts import Characters, Counts
from symbert.corpus.filters import REASONS
from symbert.corpus.parts import Encoder, PartRecord, Tokens, prepare_part
from symbert.corpus.tokens import OFFSET
from symbert.corpus.wordpiece import SPECIAL_TOKENS
from symbert.errors import DataError, IntegrityError, MissingInputError
from symbert.files import read_json, sha256_of, write_json

Document = tuple[int, int]  # (id hash, tokens)


def ids_of(number: int, document: Document) -> list[int]:
    """Distinct tokens for each document, so that a lost or doubled one shows."""
    return [(100 * number + place) % 60_000 for place in range(document[1])]


def write_parts(folder, documents: list[Document], cuts=(), counts=()) -> list[str]:
    """Parts as prepare-part writes them, documents dealt at `cuts`; their names.

    Every document was kept, but for parts of which `counts` has the documents kept, too high in perplexity, and warned
    of.
    """
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "a"]))
    bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    for part, (first, after) in enumerate(pairwise(bounds)):
        pieces = [ids_of(number, documents[number]) for number in range(first, after)]
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        table = [(start, documents[first + row][0], 10 * row + 1) for row, start in enumerate(starts)]
        np.save(folder / f"parts/part_{part}.npy", np.array([*chain(*pieces)], np.uint16))
        np.save(folder / f"parts/part_{part}.offsets.npy", np.array(table, OFFSET))
        kept, high, warned = counts[part] if counts else (after - first, 0, 0)
        dropped = {**dict.fromkeys(REASONS, 0), "perplexity_too_high": high, "quality_warning": warned}
        name, read = f"part_{part}", kept + high + warned
        counted = Counts(name, "", read, kept, 0, [], 0, dropped, dropped, Characters(0, 0, dropped))
        tokens = Tokens(name, after - first, 0, 0, None, Encoder("none", 0, 0), "", "", "")
        write_json(folder / f"parts/{name}.json", PartRecord(counted, tokens))
        sign(folder, name)
    return [f"part_{part}" for part in range(len(bounds) - 1)]


def sign(folder, part):
    """Have the record of a part say what its files are now."""
    path = folder / f"parts/{part}.json"
    facts = read_json(path)
    for kind, end in (("tokens", ".npy"), ("offsets", ".offsets.npy")):
        facts["record"][f"{kind}_sha256"] = sha256_of(folder / f"parts/{part}{end}")
    facts["record"]["vocabulary_sha256"] = sha256_of(folder / "vocab.txt")
    write_json(path, facts)


def pack_files(folder, parts, length=4, held_out=2, max_documents=10**6, shard_rows=3, vocabulary=None):
    """Packs parts; gives the manifest."""
    settings = PackSettings(length, held_out, max_documents, shard_rows)
    step = step_of_rows(folder, parts, settings, vocabulary or folder / "vocab.txt")
    write_json(folder / "shards/settings.json", step)
    with pytest.MonkeyPatch.context() as patch:  # rows shorter than the 8 tokens that settings may name
        patch.setattr("symbert.corpus.shards.read_step", lambda place, kind: step)
        patch.chdir(folder)
        shards.pack(folder / "shards/manifest.json")
    return read_json(folder / "shards/manifest.json")


def step_of_rows(folder, parts, settings, vocabulary) -> shards.Pack:
    """The step of rows of the parts in a folder, which is one with a key then."""
    step = shards.Pack(parts=step_of_parts(vocabulary), texts=parts, pack=settings)
    keyed = folder / step.parts.folder
    keyed.parent.mkdir(parents=True, exist_ok=True)
    keyed.unlink(missing_ok=True)
    keyed.symlink_to(folder / "parts")
    return step


def pack(folder, documents: list[Document], cuts=(), counts=(), **settings):
    """Packs documents that are dealt to parts at `cuts`; gives the manifest."""
    return pack_files(folder, write_parts(folder, documents, cuts, counts), **settings)


def rows_of(folder, manifest, split) -> np.ndarray:
    files = [shard["file"] for shard in manifest["shards"] if shard["split"] == split]
    return np.concatenate([np.load(folder / "shards" / file) for file in files])


DOCUMENTS = [(number * 7919 % 101, 3 + number % 5) for number in range(40)]


def write_texts(folder, documents: list[tuple[int, str]], cuts=()) -> list[str]:
    """As `write_parts`, the tokens of each document being the letters of its text."""
    parts = write_parts(folder, [(id_hash, len(text)) for id_hash, text in documents], cuts)
    texts = iter(text for _, text in documents)
    for part in parts:
        letters = "".join(next(texts) for _ in np.load(folder / f"parts/{part}.offsets.npy"))
        np.save(folder / f"parts/{part}.npy", np.frombuffer(letters.encode(), np.uint8).astype(np.uint16))
        sign(folder, part)
    return parts


def letters_of(rows: np.ndarray) -> list[str]:
    """The rows of `write_texts` as they were written."""
    return [bytes(row.astype(np.uint8)).decode() for row in rows]


ids = st.integers(0, 3) | st.integers(0, 2**64 - 1)  # some of them equal
texts = st.lists(st.tuples(ids, st.text("abc", min_size=2, max_size=30)), min_size=3, max_size=30)
PASSED_OVER = [(0, text) for text in ("ab", "ab", "cc", "cc", "cb", "cb", "ab", "ab")]  # the first row and the last


@example(PASSED_OVER, [], 4, 2, 40)
@example([(2**64 - 3, "cc"), (2**64 - 2, "ca")], [], 2, 1, 40)  # ids that floating-point numbers do not tell apart
@settings(max_examples=40)
@given(texts, st.lists(st.integers(0, 30), max_size=4), st.integers(2, 5), st.integers(1, 6), st.integers(1, 40))
def test_rows_and_the_documents_that_are_in_them_are_those_of_a_naive_packer(
    tmp_path_factory, documents, cuts, length, held_out, shard_rows
):
    """Rows over three letters, of which many occur twice, so that a validation row may be a training row, too."""
    documents = [*documents, (2**64 - 1, 20 * "ab")]
    folder = tmp_path_factory.mktemp("corpus")
    lowest = sorted(documents)
    filled = np.cumsum([len(text) for _, text in lowest])
    threshold = lowest[int(np.argmax(filled >= held_out * length))][0]
    sides: dict[str, list[tuple[str, int]]] = {"train": [], "validation": []}
    for number, (id_hash, text) in enumerate(documents):
        sides["validation" if id_hash <= threshold else "train"] += [(letter, number) for letter in text]
    rows = {
        side: [letters[at : at + length] for at in range(0, len(letters) - length + 1, length)]
        for side, letters in sides.items()
    }
    read = {"".join(letter for letter, _ in row) for row in rows["train"]}
    candidates = rows["validation"][: 2 * held_out]
    is_new = ["".join(letter for letter, _ in row) not in read for row in candidates]
    places = np.flatnonzero(is_new)[:held_out]
    kept = [candidates[place] for place in places]
    files = write_texts(folder, documents, cuts)
    attempt = partial(pack_files, folder, files, length=length, held_out=held_out, shard_rows=shard_rows)
    if filled[-1] < held_out * length or not kept or not rows["train"]:
        with pytest.raises(DataError, match="; take more text"):
            attempt()
        return
    manifest = attempt()
    for side, expected in (("train", rows["train"]), ("validation", kept)):
        assert letters_of(rows_of(folder, manifest, side)) == ["".join(letter for letter, _ in row) for row in expected]
        assert manifest["documents"][side] == len({origin for row in expected for _, origin in row})
    tokens = {side: len(letters) for side, letters in sides.items()}
    assert manifest["tokens"] == sum(tokens.values()) and manifest["remainder_tokens"] == tokens["train"] % length
    seen = places[-1] if len(kept) == held_out else len(candidates)
    assert manifest["passed_over_rows"] == is_new[:seen].count(False)
    assert manifest["surplus_tokens"] == {"validation": tokens["validation"] - length * len(kept)}


def test_the_unigram_entropy_is_that_of_the_validation_rows_but_for_special_tokens(tmp_path):
    """By which the report says when a run escapes the plateau; runs of corpora that differ in it alone are the same."""
    manifest = pack(tmp_path, [(7, 3), (9, 100), (8, 30), (7, 3), (7, 2), (8, 30)], held_out=10)
    held_out = rows_of(tmp_path, manifest, "validation").ravel().tolist()
    assert {0, 1, 2} < {*held_out}, "[PAD], [UNK] and [CLS] are among them"
    counts = Counter(token for token in held_out if token not in (0, 2, 3, 4))
    assert manifest["unigram_entropy"] == pytest.approx(stats.entropy([*counts.values()]))
    learned = msgspec.convert({**manifest, "unigram_entropy": 1.0}, shards.Packed)
    assert learned.learned_hash() == manifest["hash"]
    twice = np.array([[1, 1, 5, 5], [2, 0, 3, 4]], np.uint16)
    assert shards.unigram_entropy(twice, manifest["special_tokens"]) == pytest.approx(np.log(2))
    assert shards.unigram_entropy(twice[1:], manifest["special_tokens"]) == 0


def test_the_manifest_describes_the_files_beside_it(tmp_path):
    manifest = pack(tmp_path, DOCUMENTS)
    assert manifest["special_tokens"] == {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    assert manifest["vocabulary_size"] == 6
    assert manifest["vocabulary_sha256"] == sha256_of(tmp_path / "vocab.txt")
    assert sum(manifest["documents"].values()) == 40
    files = {path.name for path in (tmp_path / "shards").iterdir()}
    assert files == {"settings.json", "manifest.json", *(shard["file"] for shard in manifest["shards"])}
    for shard in manifest["shards"]:
        path = tmp_path / "shards" / shard["file"]
        rows = np.load(path)
        assert (rows.dtype, rows.shape) == (np.uint16, (shard["rows"], 4))
        assert shard["sha256"] == sha256_of(path)
        assert shard["rows"] <= 3
    for split in ("train", "validation"):
        assert manifest["rows"][split] == len(rows_of(tmp_path, manifest, split))


def test_only_the_first_documents_count(tmp_path):
    capped = pack(tmp_path / "capped", DOCUMENTS, cuts=[10, 25, 30], max_documents=20)
    short = pack(tmp_path / "short", DOCUMENTS[:20], cuts=[10, 20, 20])
    assert capped == short


def test_damaged_missing_and_unfit_files_are_named(tmp_path):
    for name in ("part_1.npy", "part_1.offsets.npy"):
        parts = write_parts(tmp_path, DOCUMENTS, cuts=[20])
        path = tmp_path / "parts" / name
        content = bytearray(path.read_bytes())
        content[-9] ^= 4
        path.write_bytes(content)
        with pytest.raises(IntegrityError, match=rf"{name}: sha256 expected \w+, found \w+"):
            pack_files(tmp_path, parts)
    for end in (".npy", ".offsets.npy", ".json"):
        parts = write_parts(tmp_path, DOCUMENTS)
        (tmp_path / f"parts/part_0{end}").unlink()
        with pytest.raises(MissingInputError, match=f"part_0{end}"):
            pack_files(tmp_path, parts)
    parts = write_parts(tmp_path, DOCUMENTS)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "b"]))
    with pytest.raises(DataError, match=r"part_0\.json: vocabulary of sha256 \w+, expected \w+"):
        pack_files(tmp_path, parts)
    assert [path.name for path in (tmp_path / "shards").iterdir()] == ["settings.json"]


def test_memory_does_not_grow_with_the_number_of_parts(tmp_path):
    """Twenty times the documents in twenty times the parts."""
    few, many = ([(number * 7919 % 100_003, 50) for number in range(count)] for count in (1_000, 20_000))
    peaks = []
    for documents in (few, many):
        folder = tmp_path / str(len(documents))
        files = write_parts(folder, documents, cuts=range(1_000, len(documents), 1_000))
        tracemalloc.start()
        pack_files(folder, files, length=64, held_out=8, shard_rows=10_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def test_too_few_documents_name_the_filters_that_dropped_them(tmp_path, capsys):
    told = "1 of 1,137 documents were kept (perplexity_too_high 1,099, quality_warning 37)"
    for documents, lacking in (([(1, 3)], "3 tokens .*fewer than the 8 held out"), ([(1, 8)], "no training row")):
        with pytest.raises(DataError, match=f"{lacking}.*; take more text"):
            pack(tmp_path, documents, cuts=[1], counts=[(1, 99, 37), (0, 1000, 0)])
        assert told in capsys.readouterr().err
    for dropped, is_warned in ((3, False), (4, True)):
        capsys.readouterr()
        pack(tmp_path, [(1, 8), (2, 8), (3, 8)], counts=[(3, 0, dropped)])
        assert ("3 of 7 documents were kept (quality_warning 4)" in capsys.readouterr().err) == is_warned


def test_fewer_validation_rows_are_advised_only_where_they_hold_out_fewer_documents(tmp_path):
    """A remedy asked to lower a 1."""
    four_and_four = [(1, 4), (2, 4), (3, 3)]  # rows have 4 tokens
    for held_out, documents, helps in (
        (1, [(1, 8)], False),
        (2, [(1, 8)], False),
        (2, four_and_four, True),
        (2, [(1, 3), (2, 7), (3, 3)], False),
    ):
        with pytest.raises(DataError, match="no training row") as refusal:
            pack(tmp_path, documents, held_out=held_out)
        assert ("validation_sequences" in str(refusal.value)) == helps
        if helps:
            assert pack(tmp_path, documents, held_out=1)["rows"]["train"]


def said_of(capsys, word: str) -> bool:
    """Whether a line of warning has a word; nothing else is asked of it."""
    return any(word in line for line in capsys.readouterr().err.splitlines() if line.startswith("warning: "))


def test_tokens_that_are_neither_trained_on_nor_validated_are_told_where_they_are_many(tmp_path, capsys):
    """Of three books one was held out whole for a few rows, and a third of the text was lost without a word."""
    for lengths, is_told in (([100, 100, 100], True), ([9] * 33, False)):
        manifest = pack(tmp_path, [*enumerate(lengths)])
        lost = manifest["tokens"] - 4 * sum(manifest["rows"].values()) - manifest["remainder_tokens"]
        assert manifest["surplus_tokens"]["validation"] == lost
        assert said_of(capsys, f"{lost} of {sum(lengths)} tokens are neither") == is_told == (lost > sum(lengths) / 10)


def test_a_vocabulary_that_cannot_write_the_text_is_told(tmp_path, capsys):
    """Of a Russian text 85 % of the tokens were [UNK], and the models were trained to the end."""
    unknown = "\x01"
    for share, is_told in ((0, False), (2, False), (3, True)):  # of twenty tokens; rows of 4 hold them all
        texts = [
            (number, 10 * letter + unknown * share + letter * (10 - share)) for number, letter in enumerate("abcde")
        ]
        manifest = pack_files(tmp_path, write_texts(tmp_path, texts), held_out=5)
        assert manifest["unknown_tokens"] == 5 * share
        assert said_of(capsys, f"{5 * share} of 100 tokens are [UNK]") == is_told


def test_lines_of_txt_files_that_no_empty_line_parts_are_told_with_what_parts_them(tmp_path, vocabulary, capsys):
    """A file of a sentence a line was one document, of which the remedy was to take more parts."""
    folder = write_settings(tmp_path / "parts", vocabulary, split_by_content=True, rules=[], annotations="computed")
    sentences = [f"the {'function ' * (number % 7)}value {'returns ' * (number % 11)}\n" for number in range(200)]
    for between, end in (("", ".txt"), ("\n", ".txt"), ("", ".csv")):
        text = tmp_path / f"own{end}"
        text.write_text("text\n" * (end == ".csv") + between.join(sentences))
        prepare_part(text, folder / "own.npy")
        capsys.readouterr()
        if between or end == ".csv":
            pack_files(tmp_path, ["own"], length=32, shard_rows=999, vocabulary=vocabulary)
            assert not said_of(capsys, "empty line")
        else:
            with pytest.raises(DataError, match="200 lines .* 1 document; put an empty line"):
                pack_files(tmp_path, ["own"], vocabulary=vocabulary)
            assert said_of(capsys, "empty line")
    for name, between in (("lines", ""), ("parted", "\n")):
        (tmp_path / f"{name}.txt").write_text(between.join(sentences))
        prepare_part(tmp_path / f"{name}.txt", folder / f"{name}.npy")
    capsys.readouterr()
    pack_files(tmp_path, ["parted", "lines"], length=32, shard_rows=999, vocabulary=vocabulary)
    assert said_of(capsys, "200 lines of .txt files are 1 document;"), "whatever other files are beside it"


def test_equal_texts_under_two_ids_have_one_hash_where_the_split_is_by_content(tmp_path, vocabulary):
    """Every text stood twice, under two ids, and 145 of 155 validation rows were in the training text, too."""
    texts = [f"the value of {number}" for number in range(50) for _ in range(2)]
    prepare_texts(tmp_path / "parts", "own", texts, vocabulary, split_by_content=True)
    hashes = np.load(tmp_path / "parts/own.offsets.npy")["id_hash"].reshape(-1, 2)
    assert (hashes[:, 0] == hashes[:, 1]).all() and len(set(hashes[:, 0])) == 50


def test_of_an_earlier_packing_neither_a_smaller_one_nor_one_that_fails_leaves_anything(tmp_path):
    earlier, manifest = pack(tmp_path, DOCUMENTS), pack(tmp_path, DOCUMENTS[:15])
    assert earlier["hash"] != manifest["hash"]
    assert {path.name for path in (tmp_path / "shards").glob("*.npy")} == {file["file"] for file in manifest["shards"]}
    parts = write_texts(tmp_path, [(9, "menumenumenu"), (1, "menu")])
    with pytest.raises(DataError, match="all 1 held-out rows occur among the training rows"):
        pack_files(tmp_path, parts, held_out=1)
    assert {path.name for path in (tmp_path / "shards").iterdir()} == {"settings.json"}
