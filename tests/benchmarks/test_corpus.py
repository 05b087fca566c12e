import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import corpus, harness

BUILD = """
import sys
from benchmarks import corpus
corpus.URL_COUNT, corpus.VOCABULARY_TEXTS = 2000, 100
corpus.run_function("build_input", *sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, root):
    """The folder of a benchmark of 1 MB after its first round."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{root}:{root / 'src'}")
        subprocess.run([sys.executable, "-c", BUILD, folder, "1", "4000"], check=True)
        subprocess.run(corpus.symbert("build-blocklist", folder / "ut1/blocklist.marisa"), check=True)
        (measured,) = harness.interleave(corpus.contestants(folder), 1, lambda: corpus.empty(folder))
        assert all(figure.value(measured) > 0 for figure in corpus.FIGURES)
        yield folder


def test_all_contestants_do_the_same_work(folder):
    counts = json.loads((folder / "output/parts/part.json").read_text())["counts"]
    assert f"{counts['kept']:,} documents kept" in corpus.compare(folder)
    assert 0 < counts["kept"] < counts["read"]
    assert counts["dropped"]["blocked_url"] == 0 < counts["dropped"]["blocked_category"]


def test_another_document_or_id_stops_the_benchmark(folder):
    parts = folder / "output/parts"
    another = np.load(parts / "part.npy")
    another[-2] ^= 1
    np.save(folder / "another.npy", another)
    for name, damaged, message in (
        ("part.parquet", parts / "large.parquet", "other documents"),
        ("part.npy", folder / "another.npy", "Mismatched elements: 1 "),
    ):
        content = (parts / name).read_bytes()
        (parts / name).write_bytes(damaged.read_bytes())
        with pytest.raises(SystemExit, match=message):
            corpus.compare(folder)
        (parts / name).write_bytes(content)
