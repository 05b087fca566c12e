import json
import os
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


def test_all_contestants_do_the_same_work_and_another_document_or_id_stops_the_benchmark(tmp_path, root, monkeypatch):
    """A benchmark of 1 MB after its first round."""
    monkeypatch.setenv("PYTHONPATH", f"{root}:{root / 'src'}")
    subprocess.run([sys.executable, "-c", BUILD, tmp_path, "1", "4000"], check=True)
    subprocess.run(corpus.symbert(tmp_path, "build-blocklist", "ut1/blocklist.marisa"), check=True)
    (measured,) = harness.interleave(corpus.contestants(tmp_path), 1, lambda: corpus.empty(tmp_path))
    assert all(figure.value(measured) > 0 for figure in corpus.FIGURES)
    parts = tmp_path / "output/parts"
    counts = json.loads((parts / "part.json").read_text())["counts"]
    assert f"{counts['kept']:,} documents kept" in corpus.compare(tmp_path)
    assert 0 < counts["kept"] < counts["read"]
    assert counts["dropped"]["blocked_url"] == 0 < counts["dropped"]["blocked_category"]
    another = np.load(parts / "part.npy")
    another[-2] ^= 1
    np.save(tmp_path / "another.npy", another)
    for name, damaged, message in (
        ("part.offsets.npy", parts / "large.offsets.npy", "other documents"),
        ("part.npy", tmp_path / "another.npy", "Mismatched elements: 1 "),
    ):
        content = (parts / name).read_bytes()
        (parts / name).write_bytes(damaged.read_bytes())
        with pytest.raises(SystemExit, match=message):
            corpus.compare(tmp_path)
        (parts / name).write_bytes(content)


def test_workers_beside_each_other_have_a_core_each():
    """Two on one core took as long as one after the other."""
    wait = "import os, time; [time.sleep(0.02) for _ in range(500) if len(os.sched_getaffinity(0)) > 1]; "
    alone = f"{wait}exit(len(os.sched_getaffinity(0)) > 1)"
    harness.run(harness.Contestant("two", [[sys.executable, "-c", alone]] * 3, workers=2), "here")
    anywhere = f"import os; exit(os.sched_getaffinity(0) != {os.sched_getaffinity(0)})"
    harness.run(harness.Contestant("one", [[sys.executable, "-c", anywhere]]), "here")
