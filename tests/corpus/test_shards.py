import json
import random
import tracemalloc
from functools import partial
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corpus.test_tokens import MANY, write_documents
from symbert.cli import main
from symbert.corpus.shards import documents_in_row, locate_sample, pack_shards
from symbert.corpus.tokens import OFFSET, tokenize_part
from symbert.corpus.wordpiece import SPECIAL_TOKENS, encoder
from symbert.errors import DataError, IntegrityError, MissingInputError, SymbertError, UsageError
from symbert.files import read_json, sha256_of
from symbert.filters import REASONS

Document = tuple[int, int]  # (id hash, tokens)


def ids_of(number: int, document: Document) -> list[int]:
    """Distinct tokens for each document, so that a lost or doubled one shows."""
    return [(100 * number + place) % 60_000 for place in range(document[1])]


def write_parts(folder, documents: list[Document], cuts=(), left_out=()) -> dict[str, list]:
    """Parts as tokenize-part writes them, documents dealt at `cuts`; the files, by option of pack-shards."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "a"]))
    bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    files = {"tokens": [], "offsets": [], "records": []}
    for part, (first, after) in enumerate(pairwise(bounds)):
        pieces = [ids_of(number, documents[number]) for number in range(first, after)]
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        table = [(start, documents[first + row][0], 10 * row + 1) for row, start in enumerate(starts)]
        names = [f"{part}.npy", f"{part}.offsets.npy", f"{part}.json"]
        for paths, name in zip(files.values(), names, strict=True):
            paths.append(folder / name)
        np.save(files["tokens"][-1], np.array([*chain(*pieces)], np.uint16))
        np.save(files["offsets"][-1], np.array(table, OFFSET))
        record = {"part": f"part_{part}", "documents": after - first, "taken": part not in left_out}
        record |= {"tokens_sha256": sha256_of(files["tokens"][-1]), "offsets_sha256": sha256_of(files["offsets"][-1])}
        files["records"][-1].write_text(json.dumps({**record, "vocabulary_sha256": sha256_of(folder / "vocab.txt")}))
    return files


def pack_files(folder, files, length=4, held_out=2, max_documents=10**6, shard_rows=3, counts=None):
    """Packs parts; gives the manifest."""
    values = {"sequence_length": length, "validation_sequences": held_out}
    values |= {"max_documents": max_documents, "sequences_per_shard": shard_rows}
    output = folder / "shards" / "manifest.json"
    with pytest.MonkeyPatch.context() as patch:  # rows shorter than the 8 tokens that settings may name
        patch.setattr("symbert.corpus.shards.read_settings", lambda path, kind: kind(**values))
        pack_shards(**files, vocabulary=folder / "vocab.txt", settings=folder, output=output, counts=counts)
    return read_json(output)


def pack(folder, documents: list[Document], cuts=(), left_out=(), **settings):
    """Packs documents that are dealt to parts at `cuts`; gives the manifest."""
    return pack_files(folder, write_parts(folder, documents, cuts, left_out), **settings)


def rows_of(folder, manifest, split) -> np.ndarray:
    files = [shard["file"] for shard in manifest["shards"] if shard["split"] == split]
    return np.concatenate([np.load(folder / "shards" / file) for file in files])


DOCUMENTS = [(number * 7919 % 101, 3 + number % 5) for number in range(40)]
corpora = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(2, 30)), min_size=3, max_size=40)


@settings(max_examples=40)
@given(corpora, st.lists(st.integers(0, 40), max_size=4), st.integers(1, 9), st.integers(1, 4), st.integers(5, 60))
def test_rows_and_rest_are_the_concatenation_of_the_documents(
    tmp_path_factory, documents, cuts, length, held_out, shard_rows
):
    folder = tmp_path_factory.mktemp("corpus")
    attempt = partial(pack, length=length, held_out=held_out, shard_rows=shard_rows)
    lowest = sorted(documents)
    filled = np.cumsum([tokens for _, tokens in lowest])
    count = int(np.argmax(filled >= held_out * length)) + 1
    threshold = lowest[count - 1][0]
    sides = {"train": [], "validation": []}
    for number, document in enumerate(documents):
        sides["validation" if document[0] <= threshold else "train"] += ids_of(number, document)
    if filled[-1] < held_out * length or len(sides["train"]) < length:
        with pytest.raises(DataError, match=r"corpus\.pack\.validation_sequences"):
            attempt(folder, documents, cuts)
        return
    manifest = attempt(folder, documents, cuts)
    train, validation = (rows_of(folder, manifest, split) for split in ("train", "validation"))
    rest = len(sides["train"]) - train.size
    assert train.ravel().tolist() == sides["train"][: train.size]
    assert 0 <= rest < length
    assert manifest["remainder_tokens"] == rest
    assert validation.shape == (held_out, length)
    assert validation.ravel().tolist() == sides["validation"][: validation.size]
    assert manifest["surplus_tokens"] == {"validation": len(sides["validation"]) - validation.size}
    assert manifest["tokens"] == sum(tokens for _, tokens in documents)


@settings(max_examples=8)
@given(st.lists(st.integers(0, 40), max_size=5))
def test_shards_do_not_depend_on_how_documents_are_dealt_to_parts(tmp_path_factory, cuts):
    whole = pack(tmp_path_factory.mktemp("whole"), DOCUMENTS)
    dealt = pack(tmp_path_factory.mktemp("parts"), DOCUMENTS, cuts)
    for manifest in (whole, dealt):
        del manifest["parts"], manifest["indexes"]
    assert dealt == whole


def write_texts(folder, documents: list[tuple[int, str]], cuts=()) -> dict[str, list]:
    """As `write_parts`, the tokens of each document being the letters of its text."""
    files = write_parts(folder, [(id_hash, len(text)) for id_hash, text in documents], cuts)
    texts = iter(text for _, text in documents)
    for tokens, offsets, record in zip(*files.values(), strict=True):
        letters = "".join(next(texts) for _ in np.load(offsets))
        np.save(tokens, np.frombuffer(letters.encode(), np.uint8).astype(np.uint16))
        record.write_text(json.dumps({**read_json(record), "tokens_sha256": sha256_of(tokens)}))
    return files


def letters_of(rows: np.ndarray) -> list[str]:
    """The rows of `write_texts` as they were written."""
    return [bytes(row.astype(np.uint8)).decode() for row in rows]


def test_no_validation_row_is_a_training_row(tmp_path):
    """It was believed that documents on one side only make rows on one side only; boilerplate makes both."""
    files = write_texts(tmp_path, [(9, "menuTEXTmenu"), (1, "firsmenutextmenulastmore"), (8, "ONEmlastENDS")], [1, 2])
    manifest = pack_files(tmp_path, files, length=4, held_out=4)
    train, validation = (letters_of(rows_of(tmp_path, manifest, split)) for split in ("train", "validation"))
    assert train == ["menu", "TEXT", "menu", "ONEm", "last", "ENDS"], "which no validation row changes"
    assert validation == ["firs", "text", "more"], "`more` was surplus; `last` is a row, and `menu` is so twice"
    assert manifest["rows"] == {"train": 6, "validation": 3} and manifest["passed_over_rows"] == 3
    assert manifest["surplus_tokens"] == {"validation": 12}
    index = np.load(tmp_path / "shards/validation-documents.npy")
    assert index.tolist() == [(0, 1, 1)]


def test_surplus_beyond_the_last_validation_row_is_not_called_passed_over(tmp_path):
    files = write_texts(tmp_path, [(9, "menu"), (1, "menutextmoremenulast")])
    manifest = pack_files(tmp_path, files, length=4, held_out=2)
    assert letters_of(rows_of(tmp_path, manifest, "validation")) == ["text", "more"]
    assert manifest["passed_over_rows"] == 1 and manifest["surplus_tokens"]["validation"] == 12


texts = st.lists(st.tuples(st.integers(0, 2**64 - 1), st.text("abc", min_size=2, max_size=30)), min_size=3, max_size=30)


@settings(max_examples=60)
@given(texts, st.lists(st.integers(0, 30), max_size=4), st.integers(2, 5), st.integers(1, 6), st.integers(1, 40))
def test_validation_rows_and_their_documents_are_those_of_a_naive_packer(
    tmp_path_factory, documents, cuts, length, held_out, shard_rows
):
    """Rows over three letters, of which many occur twice. The index says of every token which document it is from."""
    documents = [*documents, (2**64 - 1, 20 * "ab")]
    folder = tmp_path_factory.mktemp("corpus")
    lowest = sorted(documents)
    count = int(np.argmax(np.cumsum([len(text) for _, text in lowest]) >= held_out * length)) + 1
    sides: dict[str, list[tuple[str, int]]] = {"train": [], "validation": []}
    for number, (id_hash, text) in enumerate(documents):
        side = "validation" if id_hash <= lowest[count - 1][0] else "train"
        sides[side] += [(letter, number) for letter in text]
    rows = {
        side: [letters[at : at + length] for at in range(0, len(letters) - length + 1, length)]
        for side, letters in sides.items()
    }
    read = {"".join(letter for letter, _ in row) for row in rows["train"]}
    candidates = rows["validation"][: 2 * held_out]
    kept = [row for row in candidates if "".join(letter for letter, _ in row) not in read][:held_out]
    files = write_texts(folder, documents, cuts)
    if not kept or not rows["train"]:
        with pytest.raises(DataError):
            pack_files(folder, files, length=length, held_out=held_out, shard_rows=shard_rows)
        return
    manifest = pack_files(folder, files, length=length, held_out=held_out, shard_rows=shard_rows)
    for side, expected in (("train", rows["train"]), ("validation", kept)):
        assert letters_of(rows_of(folder, manifest, side)) == ["".join(letter for letter, _ in row) for row in expected]
        origins = [number for row in expected for _, number in row]
        index = np.load(folder / f"shards/{side}-documents.npy")
        first = [at for at in range(len(origins)) if at == 0 or origins[at] != origins[at - 1]]
        assert index["start"].tolist() == first
        bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts)]
        assert [bounds[part] + (line - 1) // 10 for _, part, line in index.tolist()] == [origins[at] for at in first]


def test_the_manifest_describes_the_files_beside_it(tmp_path):
    manifest = pack(tmp_path, DOCUMENTS)
    assert manifest["special_tokens"] == {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}
    assert manifest["vocabulary_size"] == 6
    assert manifest["vocabulary_sha256"] == sha256_of(tmp_path / "vocab.txt")
    assert sum(manifest["documents"].values()) == 40
    files = {path.name for path in (tmp_path / "shards").iterdir()}
    indexes = {"train-documents.npy", "validation-documents.npy"}
    assert files == {"manifest.json", *indexes, *(shard["file"] for shard in manifest["shards"])}
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


def test_parts_that_were_left_out_and_are_needed_are_refused(tmp_path):
    """They were left out because fewer documents were asked for when they came up."""
    attempt = partial(pack, documents=DOCUMENTS[:20], cuts=[10, 20, 20], left_out=[2, 3])
    with pytest.raises(DataError, match=r"are needed now: part_2, part_3; delete .* and run again"):
        attempt(tmp_path, max_documents=21)
    assert attempt(tmp_path, max_documents=20)["documents"] == {"train": 17, "validation": 3}


def test_later_parts_do_not_make_up_for_one_that_was_left_out(tmp_path):
    """It was believed that enough documents in all are enough; then the shards depended on earlier runs."""
    attempt = partial(pack, documents=DOCUMENTS, cuts=[10, 10], left_out=[1])
    with pytest.raises(DataError, match="left out when less was asked for are needed now: part_1;"):
        attempt(tmp_path, max_documents=20)
    assert sum(attempt(tmp_path, max_documents=10)["documents"].values()) <= 10


def test_documents_of_equal_id_are_on_one_side(tmp_path):
    twins = [(1, 5), (50, 20), (1, 5), (60, 20)]
    manifest = pack(tmp_path, twins, held_out=1)
    assert manifest["rows"]["train"] == 10
    assert manifest["surplus_tokens"]["validation"] == 6, "both twins, of which one row is used"


def test_shards_of_a_larger_corpus_do_not_stay(tmp_path):
    pack(tmp_path, DOCUMENTS)
    manifest = pack(tmp_path, DOCUMENTS[:15])
    files = {path.name for path in (tmp_path / "shards").glob("*.npy")}
    assert files == {file["file"] for file in manifest["shards"] + manifest["indexes"]}


@pytest.mark.parametrize("kind", ["tokens", "offsets"])
def test_a_bit_that_flips_after_tokenising_is_found(tmp_path, kind):
    files = write_parts(tmp_path, DOCUMENTS, cuts=[20])
    path = files[kind][1]
    content = bytearray(path.read_bytes())
    content[-9] ^= 4
    path.write_bytes(content)
    with pytest.raises(
        IntegrityError, match=rf"{path.name}: sha256 expected \w+, found \w+; delete .*1\.json and run tok"
    ):
        pack_files(tmp_path, files)
    assert not (tmp_path / "shards").exists()


def test_parts_of_another_vocabulary_are_refused(tmp_path):
    files = write_parts(tmp_path, DOCUMENTS)
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL_TOKENS.values(), "b"]))
    with pytest.raises(
        DataError, match=r"0\.json: vocabulary of sha256 \w+, expected \w+; delete .* run tokenize-part"
    ):
        pack_files(tmp_path, files)


def test_missing_and_unfit_files_are_named(tmp_path):
    files = write_parts(tmp_path, DOCUMENTS)
    for kind, name in (("tokens", "none.npy"), ("offsets", "none.offsets.npy"), ("records", "none.json")):
        with pytest.raises(MissingInputError, match=name):
            pack_files(tmp_path, {**files, kind: [tmp_path / name]})
    record = read_json(files["records"][0])
    for content, message in ((np.zeros(4, np.uint16), "does not fit"), (np.zeros(4), "dimensions of float64")):
        np.save(files["tokens"][0], content)
        record["tokens_sha256"] = sha256_of(files["tokens"][0])
        files["records"][0].write_text(json.dumps(record))
        with pytest.raises(DataError, match=rf"0\..*npy: .*{message}"):
            pack_files(tmp_path, files)
    files["tokens"][0].write_bytes(b"\x93NUMPY")
    files["records"][0].write_text(json.dumps({**record, "tokens_sha256": sha256_of(files["tokens"][0])}))
    with pytest.raises(DataError, match=r"0\.npy: not an array"):
        pack_files(tmp_path, files)


def test_memory_does_not_grow_with_the_number_of_parts(tmp_path):
    """Twenty times the documents in twenty times the parts."""
    few, many = ([(number * 7919 % 100_003, 50) for number in range(count)] for count in (2_000, 40_000))
    peaks = []
    for documents in (few, many):
        folder = tmp_path / str(len(documents))
        files = write_parts(folder, documents, cuts=range(2_000, len(documents), 2_000))
        tracemalloc.start()
        pack_files(folder, files, length=64, held_out=8, shard_rows=10_000)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


def counted(folder, *parts: tuple[int, int, int]) -> list:
    """Counts as filter-part writes them: of each part the documents kept, too high in perplexity, and warned of."""
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for number, (kept, high, warned) in enumerate(parts):
        dropped = {**dict.fromkeys(REASONS, 0), "perplexity_too_high": high, "quality_warning": warned}
        files.append(folder / f"{number}.counts.json")
        files[-1].write_text(json.dumps({"read": kept + high + warned, "kept": kept, "bad": 0, "dropped": dropped}))
    return files


def test_too_few_documents_are_not_only_a_matter_of_validation_rows(tmp_path, capsys):
    """They were dropped, and the message says by which filter."""
    told = "1 of 1,137 documents were kept (perplexity_too_high 1,099, quality_warning 37)"
    counts = counted(tmp_path, (1, 99, 37), (0, 1000, 0))
    for documents, words in (([(1, 3)], "fewer than the 8 held out"), ([(1, 8)], "no training row is left")):
        with pytest.raises(DataError) as stop:
            pack(tmp_path, documents, counts=counts)
        assert words in str(stop.value) and told in str(stop.value) and "\n" not in str(stop.value)
        assert "--keep-rejected" in str(stop.value) and "corpus.filter" in str(stop.value)
        capsys.readouterr()


def test_no_filter_is_blamed_where_every_document_was_kept(tmp_path):
    with pytest.raises(DataError, match=r"take more parts or lower corpus\.pack\.validation_sequences$"):
        pack(tmp_path, [(1, 3)], counts=counted(tmp_path, (1, 0, 0)))


@pytest.mark.parametrize(("dropped", "warned"), [(3, False), (4, True)])
def test_most_text_is_not_dropped_without_a_word(tmp_path, capsys, dropped, warned):
    pack(tmp_path, [(1, 8), (2, 8), (3, 8)], counts=counted(tmp_path, (3, 0, dropped)))
    said = capsys.readouterr().err
    assert ("3 of 7 documents were kept (quality_warning 4); symbert filter-part --keep-rejected" in said) == warned
    assert said.startswith("warning: ") == ("documents were kept" in said) == warned


LENGTH = 32
SHORT = [text for text in MANY if len(text) < 1000]
PARTS = {"part_1": SHORT[:90], "part_2": [], "part_3": SHORT[90:400]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, vocabulary):
    """Three parts, tokenized and packed; the folder."""
    folder = tmp_path_factory.mktemp("corpus")
    files = {"tokens": [], "offsets": [], "records": []}
    for part, texts in PARTS.items():
        (folder / "filtered").mkdir(exist_ok=True)
        documents = write_documents(folder / f"filtered/{part}.parquet", texts)
        for paths, ending in zip(files.values(), (".npy", ".offsets.npy", ".json"), strict=True):
            paths.append(folder / f"{part}{ending}")
        tokenize_part(documents, vocabulary, *(paths[-1] for paths in files.values()))
    values = {"sequence_length": LENGTH, "validation_sequences": 40, "max_documents": 10**6}
    settings = folder / "pack.json"
    settings.write_text(json.dumps({**values, "sequences_per_shard": 1000}))
    pack_shards(**files, vocabulary=vocabulary, settings=settings, output=folder / "shards/manifest.json")
    return folder


def test_equal_texts_under_two_ids_are_on_one_side_where_the_split_is_by_content(tmp_path, vocabulary):
    """Every text stood twice, under two ids, and 145 of 155 validation rows were in the training text, too."""
    words = ["the", "function", "returns", "value", "of", "given", "mixed", "blanks", "and", "tabs"]
    texts = [" ".join(random.Random(number).choices(words, k=20)) for number in range(200)]
    documents = write_documents(tmp_path / "own.parquet", [text for text in texts for _ in range(2)])
    files = {"tokens": [], "offsets": [], "records": []}
    for paths, ending in zip(files.values(), (".npy", ".offsets.npy", ".json"), strict=True):
        paths.append(tmp_path / f"own{ending}")
    tokenize_part(documents, vocabulary, *(paths[-1] for paths in files.values()), split_by_content=True)
    settings = tmp_path / "pack.json"
    values = {"sequence_length": LENGTH, "validation_sequences": 40, "max_documents": 10**6}
    settings.write_text(json.dumps({**values, "sequences_per_shard": 1000}))
    pack_shards(**files, vocabulary=vocabulary, settings=settings, output=tmp_path / "shards/manifest.json")
    train, validation = (
        {(line - 1) // 4 for line in np.load(tmp_path / f"shards/{split}-documents.npy")["line"]}
        for split in ("train", "validation")
    )
    assert train and validation and train.isdisjoint(validation)


def test_a_packing_that_fails_leaves_no_shards(tmp_path):
    files = write_texts(tmp_path, [(9, "menumenumenu"), (1, "menu")])
    with pytest.raises(DataError, match="all 1 held-out rows occur among the training rows"):
        pack_files(tmp_path, files, held_out=1)
    assert not list((tmp_path / "shards").iterdir())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("symbert.corpus.shards.ArrayWriter", lambda *_: (_ for _ in ()).throw(OSError(28, "full")))
        with pytest.raises(SymbertError):
            pack(tmp_path, DOCUMENTS)
    assert not list((tmp_path / "shards").iterdir())


@pytest.mark.parametrize("split", ["train", "validation"])
def test_every_row_is_the_named_tokens_of_the_named_documents(corpus, vocabulary, split):
    """The documents' tokens are found anew, from the text. A row's first document goes on from the row before, or from
    a later one that is a training row, too, and was therefore passed over."""
    manifest = read_json(corpus / "shards/manifest.json")
    names = [shard["file"] for shard in manifest["shards"] if shard["split"] == split]
    rows = np.concatenate([np.load(corpus / "shards" / name) for name in names])
    tokenizer = encoder(vocabulary)
    used: dict[tuple[str, int], int] = {}
    for number, row in enumerate(rows):
        documents = documents_in_row(corpus / "shards/manifest.json", split, number)
        assert [documents[0]["tokens"][0], documents[-1]["tokens"][1]] == [0, LENGTH]
        for document in documents:
            place = document["part"], document["line"]
            first, after = document["tokens"]
            ids = tokenizer.encode(PARTS[place[0]][(place[1] - 1) // 2]).ids
            passed_over = range(0, len(ids) if split == "validation" and first == 0 else 1, LENGTH)
            begins = (
                [used[place] + more for more in passed_over] if place in used else range(len(ids)) if not first else [0]
            )
            begin = next((at for at in begins if ids[at : at + after - first] == row[first:after].tolist()), None)
            assert begin is not None and (after == LENGTH or begin + after - first == len(ids))
            assert place in used or not first or begin == 0
            used[place] = begin + after - first
    assert len(used) > 10
    assert manifest["passed_over_rows"] > 0


def test_the_command_names_part_line_id_and_url(corpus, capsys):
    paths = ["--manifest", str(corpus / "shards/manifest.json"), "--filtered", str(corpus / "filtered")]
    assert main(["locate-sample", *paths, "--split", "train", "--row", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines
    for line in lines:
        found = json.loads(line)
        assert list(found) == ["part", "line", "tokens", "id", "url"]
        assert found["id"] == f"<urn:uuid:{(found['line'] - 1) // 2}>"


def test_rows_splits_and_parts_that_there_are_not_are_named(corpus, tmp_path):
    manifest = corpus / "shards/manifest.json"
    rows = read_json(manifest)["rows"]["validation"]
    for row in (-1, rows):
        with pytest.raises(UsageError, match=f"row {row}: validation has rows 0 to {rows - 1}"):
            locate_sample(manifest, corpus / "filtered", "validation", row)
    with pytest.raises(UsageError, match="split 'test': choose from train, validation"):
        locate_sample(manifest, corpus / "filtered", "test", 0)
    with pytest.raises(MissingInputError, match=r"part_\d\.parquet: file not found; run filter-part for part_\d"):
        locate_sample(manifest, tmp_path, "train", 0)
    [document, *_] = documents_in_row(manifest, "train", 0)
    write_documents(tmp_path / f"{document['part']}.parquet", [])
    with pytest.raises(DataError, match=r"part_\d\.parquet: 0 documents of line \d+, expected 1"):
        locate_sample(manifest, tmp_path, "train", 0)
