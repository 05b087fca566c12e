import json

import numpy as np
import pytest

from corpus.test_tokens import MANY, write_documents
from symbert.cli import main
from symbert.corpus.samples import documents_in_row, locate_sample
from symbert.corpus.shards import pack_shards
from symbert.corpus.tokens import tokenize_part
from symbert.corpus.wordpiece import encoder
from symbert.errors import DataError, MissingInputError, UsageError
from symbert.files import read_json

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
    settings.write_text(
        json.dumps({**values, "max_training_rows": None, "max_tokens": None, "sequences_per_shard": 1000})
    )
    pack_shards(**files, vocabulary=vocabulary, settings=settings, output=folder / "shards/manifest.json")
    return folder


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
    for line in capsys.readouterr().out.splitlines():
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
