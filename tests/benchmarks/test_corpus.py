import json

import numpy as np
import pytest

from benchmarks import inputs
from benchmarks.agreement import compare_documents, compare_tokens
from benchmarks.corpus import compare, contestants, empty, preparations
from benchmarks.measure import interleave, measure
from symbert.corpus.texts import documentation


@pytest.fixture(scope="module")
def prose() -> list[str]:
    """English, as much as a short benchmark needs."""
    return documentation().splitlines()[:2000]


@pytest.fixture(scope="module")
def measured(tmp_path_factory, root, prose):
    """The folder and the round of a benchmark of 1 MB."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(root))
        patch.setattr(inputs, "documentation", lambda: "\n".join(prose))
        patch.setattr(inputs, "URLS", 2000)
        patch.setattr(inputs, "VOCABULARY_TEXTS", 100)
        inputs.build(folder, 1, large=2, listed=4000, vocabulary=None)
        measure(preparations(folder)[0], "once")
        (only,) = interleave(contestants(folder), 1, lambda: empty(folder))
        yield folder, only, compare(folder)


def test_all_contestants_do_the_same_work(measured):
    folder, _, agreed = measured
    counts = json.loads((folder / "output/parts/part.json").read_text())["counts"]
    assert f"{counts['kept']:,} documents kept" in agreed
    assert 0 < counts["kept"] < counts["read"]
    assert counts["dropped"]["blocked_url"] == 0 < counts["dropped"]["blocked_category"]


def test_another_kept_document_or_another_id_is_noticed(measured, tmp_path):
    output = measured[0] / "output"
    with pytest.raises(AssertionError):
        compare_documents(output / "parts/large.parquet", output / "authors.jsonl.zst")
    stream = np.load(output / "parts/part.npy")
    stream[700] += 1
    np.save(tmp_path / "other.npy", stream)
    with pytest.raises(AssertionError, match="Mismatched elements: 1 "):
        compare_tokens(tmp_path / "other.npy", output / "parts/part.offsets.npy", output)
